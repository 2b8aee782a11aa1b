"""Kernels for the CanonicalizeTileSlice tests, as text: a test states the lines that matter."""

from __future__ import annotations

from text_programs import kernel

import pypto.language as pl
from pypto import ir, passes
from pypto.backend import get_target
from pypto.codegen import generate_pto
from pypto.passes.pipeline import default_passes


def program(params: str, lines: str, result: str = "pl.Tensor[[16, 64], pl.FP32]", type: str = "InCore") -> ir.Program:
    """A program of one function of ``lines``."""
    return kernel(params, lines, result, f"@pl.function(type=pl.FunctionType.{type})")


def run(before: ir.Program) -> ir.Program:
    return passes.canonicalize_tile_slice()(before)


def vec(lines: str, source: str = "[16, 64], pl.FP32", out: str = "[16, 64], pl.FP32", more: str = "") -> ir.Program:
    """``lines`` on the Vec tile ``t``, loaded from a tensor of ``source``; they make ``y``, which is stored."""
    shape = source[: source.index("]") + 1]
    params = f"x: pl.Tensor[{source}], {more}out: pl.Out[pl.Tensor[{out}]]"
    body = (
        f"t: pl.Tile[{source}, pl.Mem.Vec] = pl.tile.load(x, [0, 0], {shape}, target_memory=pl.Mem.Vec)\n"
        f"{lines.strip()}\nout = pl.tile.store(y, [0, 0], out)\nreturn out"
    )
    return program(params, body, f"pl.Tensor[{out}]")


def mat(lines: str, lhs: str = "[32, 512]", rhs: str = "[512, 64]", more: str = "", dtype: str = "BF16") -> ir.Program:
    """``lines`` on the Mat tiles ``a`` and ``b``; they make the Acc tile ``c`` of [16, 64], which is stored."""
    params = (
        f"lhs: pl.Tensor[{lhs}, pl.{dtype}], rhs: pl.Tensor[{rhs}, pl.{dtype}], {more}"
        "out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]"
    )
    body = (
        f"a: pl.Tile[{lhs}, pl.{dtype}, pl.Mem.Mat] = pl.tile.load(lhs, [0, 0], {lhs}, target_memory=pl.Mem.Mat)\n"
        f"b: pl.Tile[{rhs}, pl.{dtype}, pl.Mem.Mat] = pl.tile.load(rhs, [0, 0], {rhs}, target_memory=pl.Mem.Mat)\n"
        f"{lines.strip()}\nout = pl.tile.store(c, [0, 0], out)\nreturn out"
    )
    return program(params, body)


def acc(lines: str, rows: int = 16, cols: int = 32, whole: str = "[32, 32]", more: str = "") -> ir.Program:
    """``lines`` on the operands ``a`` [rows, 64] and ``b`` [64, cols] and the Acc tile ``acc`` of shape ``whole``."""
    params = f"x: pl.Tensor[[{rows}, 64], pl.FP16], w: pl.Tensor[[64, {cols}], pl.FP16], {more}n: pl.Scalar[pl.INDEX]"
    body = (
        f"xm = pl.tile.load(x, [0, 0], [{rows}, 64], target_memory=pl.Mem.Mat)\n"
        f"wm = pl.tile.load(w, [0, 0], [64, {cols}], target_memory=pl.Mem.Mat)\n"
        "a = pl.tile.move(xm, target_memory=pl.Mem.Left)\n"
        "b = pl.tile.move(wm, target_memory=pl.Mem.Right)\n"
        f"acc = pl.tile.create({whole}, pl.FP32, target_memory=pl.Mem.Acc)\n" + lines.strip()
    )
    return program(params, body, "")


def becomes(before: ir.Program, after: ir.Program) -> None:
    """The pass turns ``before`` into ``after``, leaves that alone, and what it made reads back from print."""
    made = run(before)
    ir.assert_structural_equal(made, after)
    assert run(made) is made
    ir.assert_structural_equal(pl.parse(str(made)), made)


def untouched(before: ir.Program) -> None:
    assert run(before) is before


def text_of(kernel: ir.Program, target: str, without: str | None = None) -> str:
    """The PTO text of a kernel, with a pass left out."""
    chosen = get_target(target)
    with passes.PassContext([], target=chosen):
        made = passes.PassPipeline([p for p in default_passes() if p.name != without]).run(kernel)
    return generate_pto(made, chosen, locations=False)["kernel"]
