"""Loops of the core that hands tiles over first run ahead; other loops that cross become plain."""

from __future__ import annotations

import pytest
from checking import unchanged
from text_programs import kernel

from pypto import ir, passes
from pypto.ir.visitor import walk

PRODUCER = """
for i in pl.pipeline(0, {stop}, 1, stage={stage}):
    at = i * 16
    t = pl.tile.load(x, [at, 0], [16, 64])
    pl.tile.tpush_to_aiv(t, split=0)
    e: pl.Tile[[16, 64], pl.FP32] = pl.tile.tpop_from_aiv(split=0)
    pl.tile.store(e, [at, 0], out)
"""


def program(body: str) -> ir.Program:
    params = "x: pl.Tensor[[256, 64], pl.FP32], out: pl.Tensor[[256, 64], pl.FP32]"
    return kernel(params, body, decorator="@pl.function(strict_ssa=True)")


def skewed(body: str) -> list[ir.Stmt]:
    with passes.PassContext([ir.make_roundtrip_instrument()]):
        made = passes.skew_cross_core_pipeline()(program(body))
    unchanged(made, passes.skew_cross_core_pipeline)
    (function,) = made.functions.values()
    return ir.flatten_to_stmts(function.body)


def crossings(stmts: list[ir.Stmt]) -> str:
    """Pushes (p) and pops (c) in order, those of a loop in brackets."""
    text = ""
    for stmt in stmts:
        if isinstance(stmt, ir.ForStmt):
            text += f"[{crossings(ir.flatten_to_stmts(stmt.body))}]"
        else:
            names = [n.op.name for n in walk(stmt) if isinstance(n, ir.Call)]
            text += "".join({"tile.tpush_to_aiv": "p", "tile.tpop_from_aiv": "c"}.get(n, "") for n in names)
    return text


@pytest.mark.parametrize(
    ("stop", "stage", "order"),
    [(4, 2, "pp[ppcc]cc"), (3, 2, "p[pc]c"), (6, 4, "ppp[pppccc]ccc"), (8, 4, "pp[ppcc]cc"), (1, 2, "[pc]")],
)
def test_how_far_ahead(stop: int, stage: int, order: str) -> None:
    stmts = skewed(PRODUCER.format(stop=stop, stage=stage))
    assert crossings(stmts) == order
    loop = next(s for s in stmts if isinstance(s, ir.ForStmt))
    assert loop.kind is ir.ForKind.Sequential and not loop.attrs


def test_no_more_tiles_are_under_way_than_there_are_slots() -> None:
    setup = "pl.aic_initialize_pipe(0, 0, dir_mask=3, slot_size=4096, slot_num=1)\n"
    assert crossings(skewed(setup + PRODUCER.format(stop=4, stage=2))) == "p[pc]c"


def test_each_half_has_its_own_iteration() -> None:
    stmts = skewed(PRODUCER.format(stop=3, stage=2))
    values = [s.value for s in walk(ir.SeqStmts(stmts)) if isinstance(s, ir.AssignStmt) and s.var.name_hint == "at"]
    loop = next(s for s in stmts if isinstance(s, ir.ForStmt))
    first, ahead, behind, last = (v.left if isinstance(v, ir.Mul) else v for v in values)
    assert isinstance(first, ir.ConstInt) and first.value == 0
    assert isinstance(last, ir.ConstInt) and last.value == 2
    assert ahead is loop.loop_var and isinstance(behind, ir.Sub) and behind.left is loop.loop_var


@pytest.mark.parametrize(
    "change",
    [
        ("    e: ", "    pl.tile.tpush_to_aiv(t, split=0)\n    e: "),
        ("store(e, [at, 0], out)", "store(pl.tile.add(e, t), [at, 0], out)"),
        ("store(e, [at, 0], out)", "store(e, [at, 0], x)"),
    ],
    ids=["two pushes", "a tile of the first half", "a tensor the first half reads"],
)
def test_loops_that_cannot_be_pulled_apart_become_plain(change: tuple[str, str]) -> None:
    body = PRODUCER.format(stop=4, stage=2)
    assert change[0] in body
    stmts = skewed(body.replace(*change))
    assert len(stmts) == 1 and isinstance(stmts[0], ir.ForStmt)
    assert stmts[0].kind is ir.ForKind.Sequential and "pipeline_stages" not in stmts[0].attrs


def test_loops_without_both_directions_are_left() -> None:
    body = PRODUCER.format(stop=4, stage=2).replace("pl.tile.tpop_from_aiv(split=0)", "pl.tile.add(t, t)")
    unchanged(program(body), passes.skew_cross_core_pipeline)
