"""Values of different valid regions that meet after a branch or around a loop."""

from __future__ import annotations

import numpy as np
import pytest
from checking import check

import pypto.language as pl
from pypto import passes
from pypto.errors import Diagnosed

F32 = np.float32


def rng(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(F32)


# In ConvertToSSA, on tensors.


def test_what_a_loop_accumulates_is_as_large_as_its_first_product():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def main(
            self,
            a: pl.Tensor[[64, 32], pl.FP32],
            b: pl.Tensor[[32, 16], pl.FP32],
            rows: pl.Scalar[pl.INDEX],
            out: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        ) -> pl.Tensor[[16, 16], pl.FP32]:
            acc = pl.create_tensor([16, 16], dtype=pl.FP32)
            for i in pl.range(4):
                left = pl.slice(a, [16, 32], [i * 16, 0], valid_shape=[rows, 32])
                if i == 0:
                    acc = pl.matmul(left, b)
                else:
                    acc = pl.matmul_acc(acc, left, b)
            out = pl.assemble(out, acc, [0, 0])
            return out

    @pl.program
    class Expected:
        @pl.function(type=pl.FunctionType.InCore, strict_ssa=True)
        def main(
            self,
            a: pl.Tensor[[64, 32], pl.FP32],
            b: pl.Tensor[[32, 16], pl.FP32],
            rows: pl.Scalar[pl.INDEX],
            out: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        ) -> pl.Tensor[[16, 16], pl.FP32]:
            whole = pl.create_tensor([16, 16], dtype=pl.FP32)
            start = pl.set_validshape(whole, rows, 16)
            for i, (held,) in pl.range(4, init_values=(start,)):
                left = pl.slice(a, [16, 32], [i * 16, 0], valid_shape=[rows, 32])
                if i == 0:
                    first = pl.matmul(left, b)
                    acc = pl.yield_(first)
                else:
                    more = pl.matmul_acc(held, left, b)
                    acc = pl.yield_(more)
                done = pl.yield_(acc)
            result = pl.assemble(out, done, [0, 0])
            return result

    check(Before, Expected, passes.convert_to_ssa)


def test_an_extent_computed_in_the_loop_moves_before_it():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def main(
            self, a: pl.Tensor[[64, 32], pl.FP32], left: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
        ) -> pl.Tensor[[16, 32], pl.FP32]:
            best = pl.slice(a, [16, 32], [0, 0])
            for i in pl.range(4):
                half = left // 2
                rows = pl.min(16, half)
                best = pl.slice(a, [16, 32], [i * 16, 0], valid_shape=[rows, 32])
            out = pl.assemble(out, best, [0, 0])
            return out

    @pl.program
    class Expected:
        @pl.function(type=pl.FunctionType.InCore, strict_ssa=True)
        def main(
            self, a: pl.Tensor[[64, 32], pl.FP32], left: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
        ) -> pl.Tensor[[16, 32], pl.FP32]:
            whole = pl.slice(a, [16, 32], [0, 0])
            half = left // 2
            rows = pl.min(16, half)
            start = pl.set_validshape(whole, rows, 32)
            for i, (_held,) in pl.range(4, init_values=(start,)):
                block = pl.slice(a, [16, 32], [i * 16, 0], valid_shape=[rows, 32])
                done = pl.yield_(block)
            result = pl.assemble(out, done, [0, 0])
            return result

    check(Before, Expected, passes.convert_to_ssa)


def refused(build, *parts):
    with pytest.raises(Diagnosed) as error:
        build().compile()
    for part in parts:
        assert part in str(error.value)


def test_an_extent_only_the_loop_knows_is_refused():
    def build():
        @pl.jit
        def kernel(x: pl.Tensor[[100, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.slice(x, [32, 64], [0, 0])
                for i in pl.range(0, 100, 32):
                    rows = pl.min(32, 100 - i)
                    acc = pl.slice(x, [32, 64], [i, 0], valid_shape=[rows, 64])
                y[0:32, 0:64] = acc
            return y

        return kernel

    refused(
        build,
        "the valid region of 'acc' differs",
        "[32, 64] and [rows, 64]",
        "only the loop knows the smaller",
        "acc = pl.slice(x, [32, 64], [i, 0]",
        "compute its extents before the loop",
        "pl.fillpad",
    )


def test_other_shapes_still_need_a_name_of_their_own():
    def build():
        @pl.jit
        def kernel(x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.slice(x, [32, 64], [0, 0])
                for i in pl.range(2):
                    acc = pl.slice(x, [16, 64], [i * 16, 0])
                y[0:32, 0:64] = acc
            return y

        return kernel

    refused(build, "Cannot reassign 'acc'", "give the new value a name of its own")


# On the simulator.

T = pl.dynamic("T")


@pl.jit
def product(
    a: pl.Tensor[[T, 64], pl.FP32],
    b: pl.Tensor[[64, 32], pl.FP32],
    out: pl.Out[pl.Tensor[[T, 32], pl.FP32]],
):
    for block in pl.spmd((pl.tensor.dim(a, 0) + 31) // 32):
        row = block * 32
        acc = pl.create_tensor([32, 32], dtype=pl.FP32)
        for k in pl.pipeline(0, 64, 16, stage=2):
            rows = pl.min(32, pl.tensor.dim(a, 0) - row)
            left = pl.slice(a, [32, 16], [row, k], valid_shape=[rows, 16])
            right = b[k : k + 16, 0:32]
            if k == 0:
                acc = pl.matmul(left, right)
            else:
                acc = pl.matmul_acc(acc, left, right)
        out = pl.assemble(out, acc, [row, 0])
    return out


@pytest.mark.parametrize("rows", [1, 15, 31, 32, 72])
def test_a_product_of_ragged_rows_stays_inside_its_tensor(rows):
    a, b = rng(rows, 64), rng(64, 32)
    a[0, :4] = [0.0, -0.0, -3.0, 1e30]
    out = np.full((rows, 32), np.nan, F32)
    product(a, b, out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-4)


@pl.jit
def squares(x: pl.Tensor[[T, 256], pl.FP32], out: pl.Out[pl.Tensor[[T, 1], pl.FP32]]):
    for block in pl.spmd((pl.tensor.dim(x, 0) + 7) // 8):
        row = block * 8
        rows = pl.min(8, pl.tensor.dim(x, 0) - row)
        total = pl.full([1, 8], dtype=pl.FP32, value=1.0)
        for k in pl.range(0, 256, 64):
            part = pl.slice(x, [8, 64], [row, k], valid_shape=[rows, 64])
            total = pl.add(total, pl.reshape(pl.row_sum(pl.mul(part, part)), [1, 8]))
        scale = pl.div(pl.full([1, 8], dtype=pl.FP32, value=2.0), total)
        out = pl.assemble(out, pl.reshape(scale, [8, 1]), [row, 0])
    return out


@pytest.mark.parametrize("rows", [1, 7, 8, 19])
def test_a_whole_start_is_narrowed_to_the_ragged_rows_added_to_it(rows):
    x = rng(rows, 256)
    x[0, :3] = [-np.inf, 0.0, 2.0]
    x[-1, 5] = np.nan
    out = np.full((rows, 1), -1.0, F32)
    with np.errstate(all="ignore"):
        squares(x, out)
        np.testing.assert_allclose(out[:, 0], 2.0 / (1.0 + (x * x).sum(1)), rtol=1e-5)


@pl.jit
def ragged_sum(
    x: pl.Tensor[[8, 64], pl.FP32], y: pl.Tensor[[8, 64], pl.FP32], out: pl.Out[pl.Tensor[[8, 64], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP):
        part = pl.slice(x, [8, 64], [0, 0], valid_shape=[5, 64])
        columns = pl.slice(y, [8, 64], [0, 0], valid_shape=[8, 48])
        total = pl.sub(pl.add(part, columns), y)
        out = pl.assemble(out, pl.row_expand_mul(total, pl.row_sum(columns)), [0, 0])
    return out


def test_operands_of_different_regions_meet_in_what_both_hold():
    x, y = rng(8, 64), rng(9, 64)[:8].copy()
    x[0, :4], y[0, :4] = [np.inf, -0.0, 0.0, 1.0], [1.0, -1.0, 3.0, -np.inf]
    out = np.full((8, 64), 7.0, F32)
    ragged_sum(x, y, out)
    with np.errstate(all="ignore"):
        wanted = ((x + y) - y)[:5, :48] * y[:5, :48].sum(1, keepdims=True)
    np.testing.assert_allclose(out[:5, :48], wanted, rtol=1e-4, atol=1e-5)
    assert (out[5:] == 7.0).all() and (out[:, 48:] == 7.0).all()


PART, WHOLE = "pl.slice(x, [16, 32], [0, 0], valid_shape=[4, 32])", "pl.slice(x, [16, 32], [0, 0])"
LOSSES = {
    "either way of a branch": [
        "if n > 0:", f"    block = {PART}", "else:", "    block = pl.slice(x, [16, 32], [0, 0], valid_shape=[16, 24])",
    ],
    "a whole value in a branch": [f"block = {PART}", "if n > 0:", f"    block = {WHOLE}"],
    "a part in a branch": [f"block = {WHOLE}", "if n > 0:", f"    block = {PART}"],
    "a loop that widens": [f"block = {PART}", "for i in pl.range(4):", f"    block = {WHOLE}"],
    "a loop that may not run": [f"block = {WHOLE}", "for i in pl.range(n):", f"    block = {PART}"],
    "a first value read whole": [
        f"block = {WHOLE}", "for i in pl.range(4):", "    y = pl.assemble(y, block, [0, 0])", f"    block = {PART}",
    ],
    "a first value kept by a branch": [
        f"block = {WHOLE}", "for i in pl.range(4):", "    if i > n:", f"        block = {PART}",
    ],
}  # fmt: skip


def choosing(*lines: str):
    body = "\n        ".join([*lines, "y = pl.assemble(y, block, [0, 0])", "return y"])
    return pl.parse(f"""
import pypto.language as pl

@pl.program
class Choosing:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[16, 32], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
             ) -> pl.Tensor[[16, 32], pl.FP32]:
        {body}
""")


@pytest.mark.parametrize("case", LOSSES)
def test_what_would_lose_data_is_refused(case: str) -> None:
    with pytest.raises(Diagnosed, match="what is further out would be lost") as caught:
        pl.compile(choosing(*LOSSES[case]))
    assert "block = pl.slice(x, [16, 32], [0, 0]" in str(caught.value)
    assert "names of their own" in str(caught.value) and "pl.fillpad" in str(caught.value)


KEPT = {
    "created, then made in a branch": (
        ["block = pl.create_tensor([16, 32], dtype=pl.FP32)", "if n > 0:", f"    block = {PART}"], 4,
    ),
    "read beside what is narrower": (
        [f"block = {WHOLE}", "for i in pl.range(3):", f"    block = pl.add(block, {PART})"], 4,
    ),
    "a constant in a loop that may not run": (
        ["block = pl.full([16, 32], dtype=pl.FP32, value=0.0)", "for i in pl.range(n):",
         f"    block = pl.add(block, {PART})"], 4,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", KEPT)
def test_what_loses_nothing_is_narrowed(case: str) -> None:
    lines, rows = KEPT[case]
    x, y = rng(16, 32), np.zeros((16, 32), F32)
    pl.compile(choosing(*lines))(x, 2, y)
    wanted = np.zeros((16, 32), F32)
    wanted[:rows] = {"c": x, "r": 4 * x, "a": 2 * x}[case[0]][:rows]
    np.testing.assert_allclose(y, wanted, rtol=1e-6)


@pl.jit
def quantized(x: pl.Tensor[[T, 64], pl.FP32], out: pl.Out[pl.Tensor[[T, 1], pl.FP32]]):
    for block in pl.spmd((pl.tensor.dim(x, 0) + 7) // 8):
        rows = pl.min(8, pl.tensor.dim(x, 0) - block * 8)
        part = pl.slice(x, [8, 64], [block * 8, 0], valid_shape=[rows, 64])
        largest = pl.reshape(pl.row_max(pl.abs(part)), [1, 8])
        largest = pl.maximum(pl.full([1, 8], dtype=pl.FP32, value=0.5), largest)
        scale = pl.div(pl.full([1, 8], dtype=pl.FP32, value=127.0), largest)
        out = pl.assemble(out, pl.reshape(scale, [8, 1]), [block * 8, 0])
    return out


@pytest.mark.parametrize("rows", [3, 8, 13])
def test_a_quotient_of_a_whole_and_a_ragged_tile_is_what_both_hold(rows):
    x, out = rng(rows, 64), np.zeros((rows, 1), F32)
    x[0], x[1, 0] = 0.0, -np.inf
    quantized(x, out)
    np.testing.assert_allclose(out[:, 0], 127.0 / np.maximum(0.5, np.abs(x).max(1)), rtol=1e-6)
