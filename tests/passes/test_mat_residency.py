"""Matmul operands that every iteration loads alike are loaded before the loop."""

from __future__ import annotations

from textwrap import indent

import numpy as np
import pytest

import pypto.language as pl
from pypto import backend, ir, passes
from pypto.ir.visitor import walk

TEXT = """
import pypto.language as pl

@pl.program
class Kernels:
    @pl.function(type=pl.FunctionType.InCore)
    def fill(
        self, a: pl.Tensor[[16, 64], pl.FP16], x: pl.Out[pl.Tensor[[16, 64], pl.FP16]]
    ) -> pl.Tensor[[16, 64], pl.FP16]:
        x = pl.assemble(x, pl.exp(a), [0, 0])
        return x

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        x: pl.Tensor[[16, 64], pl.FP16],
        w: pl.Tensor[[64, 96], pl.FP16],
        out: pl.Out[pl.Tensor[[16, 96], pl.FP32]],
    ) -> pl.Tensor[[16, 96], pl.FP32]:
BODY
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[16, 64], pl.FP16],
        w: pl.Tensor[[64, 96], pl.FP16],
        out: pl.Out[pl.Tensor[[16, 96], pl.FP32]],
    ) -> pl.Tensor[[16, 96], pl.FP32]:
CALL
        return out
"""
PART = "pl.slice(w, [64, 32], [0, j])"
BODY = f"""
for j in pl.range(0, 96, 32):
    out = pl.assemble(out, pl.matmul(x, {PART}, out_dtype=pl.FP32), [0, j])
"""
CALL = """
fresh = pl.create_tensor([16, 64], dtype=pl.FP16)
fresh = self.fill(a, fresh)
out = self.kernel(fresh, w, out)
"""


def program(body: str = BODY, call: str = CALL, *changes: tuple[str, str]) -> ir.Program:
    """A kernel that multiplies ``x``, which its caller made and filled, with parts of ``w``."""
    text = TEXT.replace("BODY", indent(body.strip(), " " * 8)).replace("CALL", indent(call.strip(), " " * 8))
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    made = pl.parse(text)
    assert isinstance(made, ir.Program)
    return made


def infer(before: ir.Program, target: backend.Target | None = backend.ASCEND910B) -> ir.Function:
    steps = (
        passes.convert_to_ssa, passes.normalize_stmt_structure, passes.flatten_call_expr,
        passes.convert_tensor_to_tile_ops, passes.infer_tile_memory_space,
    )  # fmt: skip
    with passes.PassContext(target=target):
        for step in steps:
            before = step()(before)
    assert "mat_bridge" not in str(before)
    kernel = before.get_function("kernel")
    assert kernel is not None
    return kernel


def looped(kernel: ir.Function) -> list[str]:
    """What the loops of a kernel load and move, by the name of what is made."""
    loops = [n for n in walk(kernel.body) if isinstance(n, ir.ForStmt)]
    inside = {id(s) for loop in loops for s in walk(loop.body)}
    return [
        s.var.name_hint.split("__")[0]
        for s in walk(kernel.body)
        if id(s) in inside and isinstance(s, ir.AssignStmt) and isinstance(s.value, ir.Call)
        and s.value.op.name in ("tile.load", "tile.move")
    ]  # fmt: skip


@pytest.mark.parametrize("target", ["910B", "950"])
def test_the_operand_that_stays_is_loaded_once(target: str) -> None:
    before = program()
    assert looped(infer(before)) == ["t", "t"]
    compiled = pl.compile(before, target=target)
    rng = np.random.default_rng(3)
    a, w = ((rng.standard_normal(s) * 0.3).astype(np.float16) for s in ((16, 64), (64, 96)))
    out = np.full((16, 96), np.nan, np.float32)
    compiled(a, w, out)
    x = np.exp(a.astype(np.float32)).astype(np.float16)
    np.testing.assert_allclose(out, x.astype(np.float32) @ w.astype(np.float32), rtol=2e-2, atol=2e-2)
    kernel = compiled.lowered.get_function("kernel")
    assert kernel is not None and len(looped(kernel)) == 2


def test_only_loads_before_the_first_store_move() -> None:
    more = f"    out = pl.assemble(out, pl.matmul(x, {PART}, out_dtype=pl.FP32), [0, j])\n"
    assert looped(infer(program(BODY + more))).count("x") == 2


def test_nested_loops_keep_it_in_the_outer_one() -> None:
    nested = "for i in pl.range(2):\n" + indent(BODY.strip(), "    ")
    kernel = infer(program(nested))
    assert looped(kernel).count("x") == 2
    outer = next(n for n in walk(kernel.body) if isinstance(n, ir.ForStmt))
    first = ir.flatten_to_stmts(outer.body)
    assert [type(s) for s in first[:3]] == [ir.AssignStmt, ir.AssignStmt, ir.ForStmt]


PANEL = """
for j in pl.range(0, 96, 32):
    panel = pl.tile.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat, attrs={"MARK": True})
    part = pl.tile.load(w, [0, j], [32, 32], target_memory=pl.Mem.Mat)
    first = pl.tile.extract(panel, 0, 0, [16, 32], target_memory=pl.Mem.Left)
    second = pl.tile.extract(panel, 0, 32, [16, 32], target_memory=pl.Mem.Left)
    acc = pl.matmul(first, part)
    acc = pl.matmul_acc(acc, second, part)
    out = pl.store(acc, [0, j], out)
""".replace("MARK", "__compiler_tensor_to_tile_mat_bridge")


def test_a_panel_of_several_operands_is_loaded_once() -> None:
    kernel = infer(program(PANEL))
    assert "panel" not in looped(kernel) and str(kernel).count("tile.extract") == 2
    used_elsewhere = PANEL.replace("panel, 0, 32", "pl.tile.assemble(panel, panel, [0, 0]), 0, 32")
    assert "panel" in looped(infer(program(used_elsewhere)))
    by_hand = PANEL.replace(', attrs={"__compiler_tensor_to_tile_mat_bridge": True}', "")
    assert "panel" in looped(infer(program(by_hand)))


@pytest.mark.parametrize(
    "change",
    [
        ("range(0, 96, 32)", "range(0, 0, 32)"),
        ("range(0, 96, 32)", "range(0, pl.tensor.dim(w, 1), pl.tile.get_block_num())"),
        ("range(0, 96, 32)", "pipeline(0, 96, 32, stage=2)"),
        ("[0, j])\n", "[0, j])\n            pl.system.bar_all()\n"),
        ("fresh = self.fill(a, fresh)\n        out = self.kernel(fresh, w, out)", "out = self.kernel(a, w, out)"),
        ("self.kernel(fresh, w, out)", "self.kernel(fresh, w, out)\n        out = self.kernel(a, w, out)"),
        ("def main(", "def outer(self, a: pl.Tensor[[16, 64], pl.FP16], w: pl.Tensor[[64, 96], pl.FP16], out: pl.Out["
         "pl.Tensor[[16, 96], pl.FP32]]) -> pl.Tensor[[16, 96], pl.FP32]:\n        out = self.main(a, w, out)\n"
         "        return out\n\n    @pl.function(type=pl.FunctionType.Orchestration)\n    def main("),
    ],
)  # fmt: skip
def test_loads_that_stay_in_their_loop(change: tuple[str, str]) -> None:
    assert "x" in looped(infer(program(BODY, CALL, change)))


def test_what_another_argument_lets_the_kernel_write_stays() -> None:
    changes = (
        ("        out: pl.Out[pl.Tensor[[16, 96], pl.FP32]],\n    ) -> pl.Tensor[[16, 96], pl.FP32]:\n        for",
         "        out: pl.Out[pl.Tensor[[16, 96], pl.FP32]],\n        y: pl.InOut[pl.Tensor[[16, 64], pl.FP16]],\n"
         "    ) -> pl.Tensor[[16, 96], pl.FP32]:\n        for"),
        ("self.kernel(fresh, w, out)", "self.kernel(fresh, w, out, fresh)"),
    )  # fmt: skip
    assert "x" in looped(infer(program(BODY, CALL, *changes)))


@pytest.mark.parametrize(("other", "stays"), [(128, False), (1024, True)])
def test_memories_hold_all_tiles_at_once(other: int, stays: bool) -> None:
    before = f"kept = pl.tile.create([{other}, 256], dtype=pl.FP16, target_memory=pl.Mem.Mat)\n"
    assert ("x" in looped(infer(program(before + BODY)))) is stays


def test_without_a_target_nothing_moves() -> None:
    assert "x" in looped(infer(program(), None))
