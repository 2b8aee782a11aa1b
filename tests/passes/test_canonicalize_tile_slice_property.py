"""CanonicalizeTileSlice on random chains of slices: copied exactly when it must be, and always the right numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings, strategies as st
from tile_slice_programs import run, text_of, vec

from pypto import ir
from pypto.simulator import load

DTYPES = {"FP32": np.float32, "FP16": np.float16, "INT32": np.int32}
ROWS = 12
I_VALUES = (0, 1, 2)


@dataclass(frozen=True)
class Chain:
    """Slices of slices of a [ROWS, cols] tile. Each offset is ``scale * i + add`` in rows and in columns."""

    dtype: str
    cols: int
    steps: tuple[tuple[int, int, int, int], ...]
    shape: tuple[int, int]

    def at(self, i: int) -> tuple[int, int]:
        return sum(s[0] * i + s[1] for s in self.steps), sum(s[2] * i + s[3] for s in self.steps)

    def lines(self) -> str:
        rows, cols, source, text = ROWS, self.cols, "t", ""
        for n, (row_scale, row, col_scale, col) in enumerate(self.steps):
            last = n == len(self.steps) - 1
            rows, cols = rows - row_scale * max(I_VALUES) - row, cols - col_scale * max(I_VALUES) - col
            shape = self.shape if last else (rows, cols)
            offset = f"[{_linear(row_scale, row)}, {_linear(col_scale, col)}]"
            text += f"s{n} = pl.tile.slice({source}, [{shape[0]}, {shape[1]}], {offset})\n"
            source = f"s{n}"
        return text + f"y = pl.tile.muls({source}, 2)\nkept = pl.tile.store(t, [0, 0], kept)"

    def kernel(self) -> ir.Program:
        kept = f"kept: pl.Out[pl.Tensor[[{ROWS}, {self.cols}], pl.{self.dtype}]], "
        out = f"[{self.shape[0]}, {self.shape[1]}], pl.{self.dtype}"
        return vec(self.lines(), f"[{ROWS}, {self.cols}], pl.{self.dtype}", out, f"i: pl.Scalar[pl.INDEX], {kept}")

    def aligned(self) -> bool:
        size = np.dtype(DTYPES[self.dtype]).itemsize
        places = [(row * self.cols + col) * size for row, col in map(self.at, range(64))]
        return all(p % 32 == 0 for p in places)


def _linear(scale: int, add: int) -> str:
    if not scale:
        return str(add)
    return f"i * {scale} + {add}" if add else f"i * {scale}"


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    dtype = draw(st.sampled_from(sorted(DTYPES)))
    unit = 32 // np.dtype(DTYPES[dtype]).itemsize
    small = st.sampled_from([0, 0, 1, unit // 2, unit])
    step = st.tuples(st.sampled_from([0, 0, 1]), st.integers(0, 1), small, small)
    steps = tuple(draw(st.lists(step, min_size=1, max_size=3)))
    return Chain(dtype, draw(st.sampled_from([10, 12])) * unit, steps, (2, unit))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(chains())
def test_copied_exactly_when_misaligned(chain: Chain):
    made = run(chain.kernel())
    assert ("tile.extract" in str(made)) == (not chain.aligned())


@settings(max_examples=15, deadline=None, derandomize=True)
@given(chains(), st.sampled_from(["Ascend910B", "Ascend950"]))
def test_numbers_are_right(chain: Chain, target: str):
    if chain.dtype == "INT32" and not chain.aligned():
        return
    numpy = DTYPES[chain.dtype]
    kernel = load(text_of(chain.kernel(), target)).kernels["kernel"]
    x = np.arange(ROWS * chain.cols).reshape(ROWS, chain.cols).astype(numpy)
    for i in I_VALUES:
        kept, out = np.zeros_like(x), np.zeros(chain.shape, numpy)
        kernel.run([x, kept, out, i], sanitize=True)
        row, col = chain.at(i)
        np.testing.assert_array_equal(out, x[row : row + chain.shape[0], col : col + chain.shape[1]] * numpy(2))
        np.testing.assert_array_equal(kept, x)
