"""Numeric cases of the cube: values are small enough that every sum of products is exact."""

from __future__ import annotations

from typing import Any

import numpy as np
from operator_harness import Case, Script, fixed, regions_of
from operator_values import Array, is_float, rounded, small, wrap

from pypto.backend import Target
from pypto.dtypes import DataType

D = DataType
M, K, N = 32, 128, 64


def product(a: Array, b: Array) -> Array:
    """a @ b, exact, in the accumulator's type."""
    if is_float(a.dtype):
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    return wrap(a.astype(object) @ b.astype(object), np.dtype(np.int32))


def acc(dtype: DataType) -> DataType:
    return D.FP32 if dtype.is_float() else D.INT32


def case(op: str, body: str, inputs: Any, outputs: Any, reference: Any, dtypes: Any, name: str = "", runs: Any = ((),)):
    """One case a dtype, as accumulators differ: O in the body is the accumulator's dtype."""

    def run(dtype: DataType, target: Target) -> None:
        made = [s if isinstance(s[0], tuple) else (s, acc(dtype)) for s in outputs]
        given = [(s[0], acc(dtype)) if isinstance(s[0], tuple) and s[1] is None else s for s in inputs]
        text = body.replace("{O}", f"pl.{acc(dtype).name}")
        Script(op, text, given, made, reference, runs, make=small).run(dtype, target)

    return Case(op, name, run, dtypes, per_target=True, covers=regions_of(body, runs))


OPERANDS = fixed(D.FP16, D.BF16, D.FP32, D.INT8)
FLOATS = fixed(D.FP16, D.BF16, D.FP32)
LOADS = """
a = pl.load(x0, [0, 0], [32, 128], valid_shape=[VM, VK], target_memory=pl.Mem.Mat)
b = pl.load(x1, [0, 0], [128, 64], valid_shape=[VK, VN], target_memory=pl.Mem.Mat)
"""


def loads(m: Any = M, k: Any = K, n: Any = N) -> str:
    return LOADS.replace("VM", str(m)).replace("VK", str(k)).replace("VN", str(n))


def _matmul(a: Array, b: Array, y: Array) -> None:
    y[...] = product(a, b).astype(y.dtype)


def _ragged(a: Array, b: Array, m: int, k: int, n: int, y: Array) -> None:
    y[:m, :n] = product(a[:m, :k], b[:k, :n])


def products() -> list[Case]:
    plain = loads() + "pl.store(pl.tile.matmul(a, b), [0, 0], y0)"
    cases = [case("tile.matmul", plain, [(M, K), (K, N)], [(M, N)], _matmul, OPERANDS)]
    moved = (
        loads()
        + """
left = pl.move(a, target_memory=pl.Mem.Left)
right = pl.move(b, target_memory=pl.Mem.Right)
pl.store(pl.tile.matmul(left, right), [0, 0], y0)
"""
    )
    cases.append(case("tile.move", moved, [(M, K), (K, N)], [(M, N)], _matmul, OPERANDS))
    ordered = loads() + "pl.system.bar_m()\npl.store(pl.tile.matmul(a, b), [0, 0], y0)"
    cases.append(case("system.bar_m", ordered, [(M, K), (K, N)], [(M, N)], _matmul, FLOATS))
    ragged = loads("i0", "i1", "i2") + "pl.store(pl.tile.matmul(a, b), [0, 0], y0)"
    runs = ((32, 128, 64), (5, 19, 7), (1, 128, 64), (32, 1, 1), (17, 33, 16))
    cases.append(case("tile.matmul", ragged, [(M, K), (K, N)], [(M, N)], _ragged, OPERANDS, "ragged", runs))
    for to in (D.FP16, D.BF16):

        def narrowed(a: Array, b: Array, y: Array) -> None:
            y[...] = rounded(product(a, b), y.dtype)

        script = case("tile.store", plain, [(M, K), (K, N)], [((M, N), to)], narrowed, FLOATS, f"acc-{to.name}")
        cases.append(script)
    return cases


def accumulations() -> list[Case]:
    loop = """
acc = pl.tile.matmul(
    pl.load(x0, [0, 0], [32, 32], target_memory=pl.Mem.Mat), pl.load(x1, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
)
for k in pl.range(32, 128, 32):
    a = pl.load(x0, [0, k], [32, 32], target_memory=pl.Mem.Mat)
    b = pl.load(x1, [k, 0], [32, 64], target_memory=pl.Mem.Mat)
    acc = pl.tile.matmul_acc(acc, a, b)
pl.store(acc, [0, 0], y0)
"""
    started = """
acc = pl.create_tile([32, 64], dtype={O}, target_memory=pl.Mem.Acc)
for k in pl.range(0, 128, 32):
    a = pl.load(x0, [0, k], [32, 32], target_memory=pl.Mem.Mat)
    b = pl.load(x1, [k, 0], [32, 64], target_memory=pl.Mem.Mat)
    acc = pl.tile.matmul_acc(acc, a, b, k == 0)
pl.store(acc, [0, 0], y0)
"""
    cases = [case("tile.matmul_acc", loop, [(M, K), (K, N)], [(M, N)], _matmul, OPERANDS),
             case("tile.matmul_acc", started, [(M, K), (K, N)], [(M, N)], _matmul, OPERANDS, "init_cond")]  # fmt: skip
    bias = (
        loads()
        + """
c = pl.load(x2, [0, 0], [1, 64], target_memory=pl.Mem.Mat)
pl.store(pl.tile.matmul_bias(a, b, pl.move(c, target_memory=pl.Mem.Bias)), [0, 0], y0)
"""
    )

    def biased(a: Array, b: Array, c: Array, y: Array) -> None:
        total = product(a, b)
        y[...] = total + c if is_float(total.dtype) else wrap(total.astype(object) + c.astype(object), total.dtype)

    cases.append(case("tile.matmul_bias", bias, [(M, K), (K, N), ((1, N), None)], [(M, N)], biased, OPERANDS))
    window = """
a = pl.load(x0, [0, 0], [32, 128], target_memory=pl.Mem.Mat)
b = pl.load(x1, [0, 0], [128, 64], target_memory=pl.Mem.Mat)
left = pl.tile.extract(a, 16, 32, [16, 64], target_memory=pl.Mem.Left)
right = pl.tile.extract(b, 32, i0, [64, 32], target_memory=pl.Mem.Right)
pl.store(pl.tile.matmul(left, right), [0, 0], y0)
"""

    def of_windows(a: Array, b: Array, j: int, y: Array) -> None:
        y[...] = product(a[16:32, 32:96], b[32:96, j : j + 32])

    cases.append(case("tile.extract", window, [(M, K), (K, N)], [(16, 32)], of_windows, OPERANDS, "", ((0,), (32,))))
    return cases


def vectors() -> list[Case]:
    # A row goes to Left in blocks of 512 bytes: 512 elements of the narrowest type.
    operands, result = [(1, 512), (512, 32)], [(1, 32)]
    head = """
a = pl.load(x0, [0, 0], [1, 512], target_memory=pl.Mem.Mat)
b = pl.load(x1, [0, 0], [512, 32], target_memory=pl.Mem.Mat)
"""
    once = head + "pl.store(pl.tile.gemv(a, b), [0, 0], y0)"
    cases = [case("tile.gemv", once, operands, result, _matmul, OPERANDS)]
    twice = head + "pl.store(pl.tile.gemv_acc(pl.tile.gemv(a, b), a, b), [0, 0], y0)"

    def doubled(a: Array, b: Array, y: Array) -> None:
        total = product(a, b)
        y[...] = 2 * total if is_float(total.dtype) else wrap(2 * total.astype(object), total.dtype)

    cases.append(case("tile.gemv_acc", twice, operands, result, doubled, OPERANDS))
    bias = (
        head
        + """
c = pl.load(x2, [0, 0], [1, 32], target_memory=pl.Mem.Mat)
pl.store(pl.tile.gemv_bias(a, b, pl.move(c, target_memory=pl.Mem.Bias)), [0, 0], y0)
"""
    )

    def biased(a: Array, b: Array, c: Array, y: Array) -> None:
        y[...] = (
            wrap(product(a, b).astype(object) + c.astype(object), c.dtype)
            if c.dtype == np.int32
            else (product(a, b) + c)
        )

    cases.append(case("tile.gemv_bias", bias, [*operands, ((1, 32), None)], result, biased, OPERANDS))
    return cases


def batches() -> list[Case]:
    head = """
a = pl.load(x0, [0, 0, 0], [2, 32, 64], target_memory=pl.Mem.Mat)
b = pl.load(x1, [0, 0, 0], [2, 64, 32], target_memory=pl.Mem.Mat)
"""
    plain = head + "pl.store(pl.tile.batch_matmul(a, b), [0, 0, 0], y0)"

    def batched(a: Array, b: Array, y: Array) -> None:
        for i in range(2):
            y[i] = product(a[i], b[i])

    more = head + "pl.store(pl.tile.batch_matmul_acc(pl.tile.batch_matmul(a, b), a, b), [0, 0, 0], y0)"

    def twice(a: Array, b: Array, y: Array) -> None:
        for i in range(2):
            total = product(a[i], b[i])
            y[i] = total + total

    shapes = [(2, 32, 64), (2, 64, 32)]
    return [case("tile.batch_matmul", plain, shapes, [(2, 32, 32)], batched, OPERANDS),
            case("tile.batch_matmul_acc", more, shapes, [(2, 32, 32)], twice, OPERANDS)]  # fmt: skip


def gathered() -> list[Case]:
    """A left operand gathered row by row in L1."""
    body = """
l1 = pl.create_l1([16, 128], dtype={T})
for r in pl.range(16):
    l1 = pl.gather_row(l1, x0, [r, 0], [r + i0, 0], [1, 128])
y0 = pl.assemble(y0, pl.matmul(l1, x1, out_dtype=ACC), [0, 0])
"""

    def rows(x: Array, w: Array, start: int, y: Array) -> None:
        y[...] = product(x[start : start + 16], w)

    made = []
    for dtype, acc in ((DataType.INT8, DataType.INT32), (DataType.FP16, DataType.FP32), (DataType.BF16, DataType.FP32)):
        script = Script(
            "tensor.create_l1",
            body.replace("ACC", f"pl.{acc.name}"),
            [(32, 128), (128, 32)],
            [((16, 32), acc)],
            rows,
            runs=((0,), (3,)),
            make=small,
            tensors=True,
        )
        made.append(script.case(fixed(dtype), dtype.name))
    return made


CASES = [*gathered(), *products(), *accumulations(), *vectors(), *batches()]
