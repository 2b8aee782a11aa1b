"""Scales are bound before every block-scaled product, and only where the memories are known."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir, passes
from pypto.backend import ASCEND950
from pypto.errors import Diagnosed
from pypto.ir.visitor import walk


@pl.program
class Scaled:
    @pl.function(type=pl.FunctionType.InCore)
    def scaled(
        self,
        a: pl.Tensor[[16, 64], pl.FP8E4M3FN],
        a_s: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        b_s: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        out: pl.Tensor[[16, 32], pl.FP32],
    ):
        a_mat = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        a_s_mat = pl.load(a_s, [0, 0], [16, 2], target_memory=pl.Mem.Mat)
        b_mat = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        b_s_mat = pl.load(b_s, [0, 0], [2, 32], target_memory=pl.Mem.Mat)
        left = pl.move(a_mat, target_memory=pl.Mem.Left)
        left_s = pl.move(a_s_mat, target_memory=pl.Mem.LeftScale)
        right = pl.move(b_mat, target_memory=pl.Mem.Right)
        right_s = pl.move(b_s_mat, target_memory=pl.Mem.RightScale)
        acc = pl.matmul_mx(left, left_s, right, right_s)
        total = pl.matmul_mx_acc(acc, left, left_s, right, right_s)
        pl.store(total, [0, 0], out)


def calls(program: ir.Program, name: str) -> list[ir.Call]:
    found = [n for f in program.functions.values() for n in walk(f) if isinstance(n, ir.Call)]
    return [c for c in found if c.op.name == name]


def test_every_product_binds_its_scales_anew():
    with passes.PassContext(target=ASCEND950):
        placed = passes.infer_tile_memory_space()(Scaled)
        bound = passes.insert_mx_scale_addr()(placed)
    binds = calls(bound, "tile.tget_scale_addr")
    assert [b.args[1].name_hint.partition("__")[0] for b in binds] == ["left", "right", "left", "right"]
    results = {s.value: s.var for f in bound.functions.values() for s in walk(f) if isinstance(s, ir.AssignStmt)}
    (product,) = calls(bound, "tile.matmul_mx")
    (total,) = calls(bound, "tile.matmul_mx_acc")
    assert [product.args[1], product.args[3]] == [results[binds[0]], results[binds[1]]]
    assert [total.args[2], total.args[4]] == [results[binds[2]], results[binds[3]]]


def test_a_program_without_such_products_is_the_same_object():
    @pl.program
    class Plain:
        @pl.function(type=pl.FunctionType.InCore)
        def plain(self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
            pl.store(pl.exp(pl.load(x, [0, 0], [16, 16])), [0, 0], y)

    assert passes.insert_mx_scale_addr()(Plain) is Plain


def test_scales_of_a_vector_are_bound_too():
    @pl.program
    class Vector:
        @pl.function(type=pl.FunctionType.InCore)
        def vector(
            self,
            a: pl.Tensor[[16, 64], pl.FP8E4M3FN],
            a_s: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
            b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
            b_s: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
            out: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
        ):
            left = pl.load(a, [0, 0], [16, 64], valid_shape=[1, 64], target_memory=pl.Mem.Mat)
            left_s = pl.load(a_s, [0, 0], [16, 2], valid_shape=[1, 2], target_memory=pl.Mem.Mat)
            right = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
            right_s = pl.load(b_s, [0, 0], [2, 32], target_memory=pl.Mem.Mat)
            product = pl.tile.gemv_mx(left, left_s, right, right_s)
            pl.store(product, [0, 0], out)

    with passes.PassContext(target=ASCEND950):
        bound = passes.insert_mx_scale_addr()(passes.infer_tile_memory_space()(Vector))
    assert len(calls(bound, "tile.tget_scale_addr")) == 2


def test_scales_moved_once_belong_to_one_tile():
    @pl.program
    class Shared:
        @pl.function(type=pl.FunctionType.InCore)
        def shared(
            self,
            a: pl.Tensor[[32, 64], pl.FP8E4M3FN],
            a_s: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
            b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
            b_s: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
            out: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
        ):
            scales = pl.move(
                pl.load(a_s, [0, 0], [16, 2], target_memory=pl.Mem.Mat), target_memory=pl.Mem.LeftScale
            )
            right = pl.move(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
            right_s = pl.move(
                pl.load(b_s, [0, 0], [2, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.RightScale
            )
            top = pl.move(pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
            low = pl.move(pl.load(a, [16, 0], [16, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
            pl.store(pl.matmul_mx(top, scales, right, right_s), [0, 0], out)
            pl.store(pl.matmul_mx(low, scales, right, right_s), [16, 0], out)

    with pytest.raises(ValueError, match="scales were bound to another tile before") as caught:
        pl.compile(Shared, target=ASCEND950, dump_passes=False)
    assert isinstance(caught.value, Diagnosed) and caught.value.hint
