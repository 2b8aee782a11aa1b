"""Tiles of some valid rows and columns that cross between the cores, against numpy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import pypto.language as pl
from pypto.runtime.compiled_program import CompiledProgram

ROWS, COLS, DEPTH = 32, 64, 32
F16, F32 = np.float16, np.float32
SPLITS = ("", "UP_DOWN", "LEFT_RIGHT")
TO_VECTORS = """
        t = pl.matmul(pl.slice(a, [32, 32], [0, 0], valid_shape=[{r}, 32]),
                      pl.slice(b, [32, 64], [0, 0], valid_shape=[32, {c}]), out_dtype=pl.FP32)
        y = pl.assemble(y, pl.mul(t, 2.0), [0, 0])
"""
TO_CUBE = """
        s = pl.cast(pl.add(pl.slice(x, [32, 64], [0, 0], valid_shape=[{r}, {c}]), 1.0), pl.FP16)
        t = pl.matmul(s, pl.slice(w, [64, 64], [0, 0], valid_shape=[{c}, 64]), out_dtype=pl.FP32)
        y = pl.assemble(y, t, [0, 0])
"""


@pytest.fixture(params=["Ascend910B", "Ascend950"])
def target(request: pytest.FixtureRequest) -> str:
    return request.param


def compiled(lines: str, split: str, target: str, r: object = "r", c: object = "c") -> CompiledProgram:
    divided = f", optimizations=[pl.split(pl.SplitMode.{split})]" if split else ""
    params = "a: pl.Tensor[[32, 32], pl.FP16], b: pl.Tensor[[32, 64], pl.FP16], x: pl.Tensor[[32, 64], pl.FP16], "
    params += "w: pl.Tensor[[64, 64], pl.FP16], r: pl.Scalar[pl.INDEX], c: pl.Scalar[pl.INDEX]"
    program = pl.parse(
        f"import pypto.language as pl\n@pl.function\ndef k({params}, y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]) -> "
        f"pl.Tensor[[32, 64], pl.FP32]:\n    with pl.at(level=pl.Level.CORE_GROUP{divided}):"
        f"{lines.format(r=r, c=c)}    return y\n"
    )
    made = pl.compile(program, target=target, dump_passes=False)
    made.sanitize = True
    return made


def expect(kernel: CompiledProgram, to_cube: bool, rows: int, cols: int) -> None:
    rng = np.random.default_rng(rows * COLS + cols)
    a, b, x, w = (rng.integers(-4, 5, s).astype(F16) for s in ((32, 32), (32, 64), (32, 64), (64, 64)))
    y = np.full((ROWS, COLS), 7, F32)
    want = y.copy()
    if to_cube:
        want[:rows] = (x[:rows, :cols].astype(F32) + 1) @ w[:cols].astype(F32)
    else:
        want[:rows, :cols] = a[:rows].astype(F32) @ b[:, :cols].astype(F32) * 2
    kernel(a, b, x, w, rows, cols, y)
    np.testing.assert_array_equal(y, want, f"{rows} rows, {cols} columns")


def extents() -> Iterator[tuple[int, int]]:
    """Every number of rows, and every number of columns."""
    return ((1 + i % ROWS, 1 + 7 * i % COLS) for i in range(COLS))


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("lines", [TO_VECTORS, TO_CUBE], ids=["to_vectors", "to_cube"])
def test_every_number_of_valid_rows_and_columns_at_run_time(target: str, lines: str, split: str) -> None:
    kernel = compiled(lines, split, target)
    for rows, cols in extents():
        expect(kernel, lines is TO_CUBE, rows, cols)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("lines", [TO_VECTORS, TO_CUBE], ids=["to_vectors", "to_cube"])
@pytest.mark.parametrize(("rows", "cols"), [(4, 64), (17, 36), (32, 5), (1, 1)])
def test_constant_valid_rows_and_columns(target: str, lines: str, split: str, rows: int, cols: int) -> None:
    expect(compiled(lines, split, target, rows, cols), lines is TO_CUBE, rows, cols)


ACCUMULATED = """
        p = pl.slice(a, [32, 16], [0, 0], valid_shape=[r, 16])
        t = pl.matmul(p, pl.slice(b, [16, 64], [0, 0]), out_dtype=pl.FP32)
        for i in pl.range(1, 2):
            p = pl.slice(a, [32, 16], [0, i * 16], valid_shape=[r, 16])
            t = pl.matmul_acc(t, p, pl.slice(b, [16, 64], [i * 16, 0]))
        y = pl.assemble(y, pl.mul(t, 2.0), [0, 0])
"""


@pytest.mark.parametrize("split", SPLITS)
def test_ragged_products_accumulated_in_a_loop(target: str, split: str) -> None:
    kernel = compiled(ACCUMULATED, split, target)
    for rows in (1, 15, 16, 17, 31, 32):
        expect(kernel, False, rows, COLS)
