"""Stages of a pipelined loop have buffers of their own, as far as memory goes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from memory_programs import allocated, bases

import pypto.language as pl
from pypto import backend, ir, passes
from pypto.errors import KernelValueError

Case = tuple[str, int]


def staged(*cases: Case, rows: int = 16, extra: str = "", after: str = "") -> ir.Program:
    """Tiles of ``rows`` rows of 1024 bytes, each loaded, doubled and stored; a case is its membership, and its rows."""
    lines: list[str] = []
    for i, (place, size) in enumerate(cases):
        mark = f', attrs={{"pipeline_membership": "{place}"}}' if place else ""
        lines += [
            f"t{i} = pl.tile.load(x, [0, 0], [{size or rows}, 256]{mark})",
            f"s{i} = pl.add(t{i}, t{i})",
            f"y = pl.store(s{i}, [0, 0], y)",
        ]
    body = "\n".join(f"        {line}" for line in (extra, *lines, after) if line)
    made = pl.parse(f"""
import pypto.language as pl

@pl.program
class Staged:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self, x: pl.Tensor[[256, 256], pl.FP32], y: pl.Out[pl.Tensor[[256, 256], pl.FP32]]
    ) -> pl.Tensor[[256, 256], pl.FP32]:
{body}
        return y
""")
    assert isinstance(made, ir.Program)
    return passes.convert_to_ssa()(made)


def reused(program: ir.Program, instruments: list[passes.PassInstrument] | None = None) -> dict[str, str]:
    """The buffer of each tile, by the name written."""
    with passes.PassContext(instruments or [], target=backend.ASCEND910B):
        for factory in (passes.init_mem_ref, passes.materialize_semantic_aliases, passes.memory_reuse):
            program = factory()(program)
        passes.allocate_memory_addr()(program)
    assert "pipeline_membership" not in str(program)
    return {name.split("__")[0]: base for name, base in bases(program).items()}


def distinct(buffers: dict[str, str], *names: str) -> int:
    return len({buffers[n] for n in names})


def test_stages_have_buffers_of_their_own() -> None:
    assert distinct(reused(staged(("", 0), ("", 0))), "t0", "t1") == 1
    buffers = reused(staged(("0:0", 0), ("0:1", 0)))
    assert distinct(buffers, "t0", "t1") == 2 and buffers["s0"] == buffers["t0"]


def test_one_stage_and_other_loops_share() -> None:
    assert distinct(reused(staged(("0:0", 0), ("0:0", 0))), "t0", "t1") == 1
    assert distinct(reused(staged(("0:0", 0), ("1:1", 0))), "t0", "t1") == 1
    assert distinct(reused(staged(("0:0,1:0", 0), ("0:0,1:1", 0))), "t0", "t1") == 2


def test_stages_are_counted_whatever_their_numbers() -> None:
    assert distinct(reused(staged(("0:0", 0), ("0:2", 0))), "t0", "t1") == 2


def test_as_many_buffers_as_fit_go_round() -> None:
    buffers = reused(staged(*((f"0:{i}", 80) for i in range(4))))
    assert distinct(buffers, "t0", "t1") == 2
    assert buffers["t0"] == buffers["t2"] and buffers["t1"] == buffers["t3"]


def hints_of(program: ir.Program, folder: Path) -> str:
    reused(program, [passes.ReportInstrument(str(folder))])
    log = folder / "perf_hints.log"
    return log.read_text() if log.exists() else ""


def test_a_tile_too_large_for_two_is_told(tmp_path: Path) -> None:
    text = hints_of(staged(("0:0", 100), ("0:1", 100)), tmp_path)
    assert "PH-MR-001" in text and "requested depth 2 has only 1 of 2 buffers in Vec" in text
    assert "shrink the per-stage tile to 94208 bytes or less (102400 now)" in text


def test_what_is_reserved_counts(tmp_path: Path) -> None:
    reserve = 'pl.reserve_buffer(name="ring", size=131072)'
    assert distinct(reused(staged(("0:0", 48), ("0:1", 48))), "t0", "t1") == 2
    assert distinct(reused(staged(("0:0", 48), ("0:1", 48), extra=reserve)), "t0", "t1") == 1
    assert "over-subscribe the space" in hints_of(staged(("0:0", 48), ("0:1", 48), extra=reserve), tmp_path)


def test_the_largest_buffers_go_first() -> None:
    """Four buffers of 40 KB beside a tile that stays are more than there is: their group goes without one."""
    cases = (*((f"0:{i}", 40) for i in range(4)), ("1:0", 8), ("1:1", 8))
    first, last = "kept = pl.load(x, [0, 0], [40, 256])", "y = pl.store(kept, [0, 0], y)"
    buffers = reused(staged(*cases, extra=first, after=last))
    assert distinct(buffers, "t0", "t1", "t2", "t3") == 3 and buffers["t0"] == buffers["t3"]
    assert distinct(buffers, "t4", "t5") == 2


def test_what_goes_from_stage_to_stage_is_one_buffer() -> None:
    @pl.program
    class Carried:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, x: pl.Tensor[[64, 16], pl.FP32], y: pl.Out[pl.Tensor[[8, 16], pl.FP32]]
        ) -> pl.Tensor[[8, 16], pl.FP32]:
            acc = pl.load(x, [0, 0], [8, 16])
            for i in pl.pipeline(8, stage=2):
                acc = pl.add(acc, pl.load(x, [i * 8, 0], [8, 16]))
            y = pl.store(acc, [0, 0], y)
            return y

    compiled = pl.compile(Carried)
    assert len(allocated(compiled.lowered)) == 3
    x, y = np.random.default_rng(0).standard_normal((64, 16), dtype=np.float32), np.zeros((8, 16), np.float32)
    compiled(x, y)
    np.testing.assert_allclose(y, x[:8] + x.reshape(8, 8, 16).sum(0), rtol=1e-5, atol=1e-5)


SPLIT = """
import pypto.language as pl

@pl.program
class Part:
    @pl.function(type=pl.FunctionType.AIV, attrs={ATTRS})
    def kernel(self, x: pl.InOut[pl.Tensor[[16, 128], pl.FP32]]) -> pl.Tensor[[16, 128], pl.FP32]:
        loaded = pl.load(x, [0, 0], [8, 128])
        popped: pl.Tile[[8, 128], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=1)
        made = pl.add(loaded, popped)
        pl.tfree_to_aic(popped)
        x = pl.store(made, [0, 0], x)
        return x
"""


@pytest.mark.parametrize(
    ("target", "attrs", "shared"),
    [
        (backend.ASCEND910B, '{"split": pl.SplitMode.UP_DOWN}', False),
        (backend.ASCEND950, '{"split": pl.SplitMode.UP_DOWN}', True),
        (backend.ASCEND910B, "{}", True),
    ],
)
def test_a_sum_with_a_popped_tile_does_not_replace_what_was_loaded(
    target: backend.Target, attrs: str, shared: bool
) -> None:
    program = pl.parse(SPLIT.replace("{ATTRS}", attrs))
    assert isinstance(program, ir.Program)
    with passes.PassContext([], target=target):
        for factory in (passes.convert_to_ssa, passes.init_mem_ref, passes.materialize_semantic_aliases,
                        passes.memory_reuse):  # fmt: skip
            program = factory()(program)
    buffers = {name.split("__")[0]: base for name, base in bases(program).items()}
    assert (buffers["made"] == buffers["loaded"]) is shared


def test_where_nothing_else_fits_the_kernel_is_refused() -> None:
    text = SPLIT.replace("{ATTRS}", '{"split": pl.SplitMode.UP_DOWN}').replace("[8, 128]", "[200, 128]")
    program = pl.parse(text.replace("[16, 128]", "[400, 128]"))
    assert isinstance(program, ir.Program)
    with passes.PassContext([], target=backend.ASCEND910B):
        for factory in (passes.convert_to_ssa, passes.init_mem_ref, passes.materialize_semantic_aliases):
            program = factory()(program)
        with pytest.raises(KernelValueError, match="devices are known to compute such results wrongly") as caught:
            passes.memory_reuse()(program)
    assert caught.value.span.is_valid() and "pl.cross_core_slot(slot_num=1)" in str(caught.value)
