"""Element stores beside bulk stores to one tensor: filled in bulk, staged on chip, or refused."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto.errors import Diagnosed


def compiled_text(kernel):
    return "\n".join(kernel.compile().pto.values())


@pl.jit
def filled(
    x: pl.Tensor[[32, 8], pl.FP32],
    live: pl.Tensor[[2], pl.INT32],
    best: pl.Out[pl.Tensor[[32, 1], pl.FP32]],
    total: pl.Out[pl.Tensor[[32, 1], pl.FP32]],
):
    for block in pl.spmd(2):
        row = block * 16
        if pl.read(live, [block]) > 0:
            part = x[row : row + 16, 0:8]
            best[row : row + 16, 0:1] = pl.row_max(part)
            total[row : row + 16, 0:1] = pl.row_sum(part)
        else:
            for i in pl.range(16):
                pl.write(best, [row + i, 0], -3.0e38)
                pl.write(total, [i + row, 0], 0.0)
    return best, total


def test_a_loop_of_constants_is_stored_as_a_tile():
    text = compiled_text(filled)
    assert text.count("pto.tstore") == 4 and "pto.store_scalar" not in text
    x = np.random.default_rng(3).standard_normal((32, 8)).astype(np.float32)
    x[0, 0], x[16, 0] = -np.inf, np.nan
    best, total = np.ones((32, 1), np.float32), np.ones((32, 1), np.float32)
    filled(x, np.array([1, 0], np.int32), best, total)
    np.testing.assert_array_equal(best[:16, 0], x[:16].max(1))
    np.testing.assert_allclose(total[1:16, 0], x[1:16].sum(1), rtol=1e-5)
    assert (best[16:] == np.float32(-3.0e38)).all() and (total[16:] == 0).all()


@pl.jit
def positions(
    x: pl.Tensor[[64], pl.INT32], count: pl.Tensor[[1], pl.INT32], out: pl.Out[pl.Tensor[[1, 64], pl.INT32]]
):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[0:1, 0:64] = pl.full([1, 64], dtype=pl.INT32, value=-1)
        seen = pl.cast(0, pl.INDEX)
        for i in pl.range(64):
            value = pl.read(x, [i])
            if value >= 0:
                pl.write(out, [0, seen], value)
                seen = seen + 1
        pl.write(count, [0], pl.cast(seen, pl.INT32))
    return out


def test_elements_over_a_whole_fill_are_written_on_chip():
    text = compiled_text(positions)
    assert text.count("pto.tstore") == 1 and text.count("pto.store_scalar") == 1
    x = np.arange(64, dtype=np.int32) - 40
    x[5] = 7
    out, count = np.zeros((1, 64), np.int32), np.zeros(1, np.int32)
    positions(x, count, out)
    kept = x[x >= 0]
    assert count[0] == len(kept)
    np.testing.assert_array_equal(out[0], [*kept, *[-1] * (64 - len(kept))])


REFUSED = {
    "a run shorter than 32 bytes": "for i in pl.range(4):\n    pl.write(out, [i, 0], 0.0)",
    "a run with gaps": "for i in pl.range(8):\n    pl.write(out, [i * 2, 0], 0.0)",
    "values that change": "for i in pl.range(16):\n    pl.write(out, [i, 0], pl.cast(i, pl.FP32))",
    "two runs that overlap": "for i in pl.range(8):\n    pl.write(out, [i, 0], 0.0)\n"
    "    pl.write(out, [i + 1, 0], 1.0)",
    "a loop that does more": "for i in pl.range(8):\n    pl.write(out, [i, 0], 0.0)\n"
    "    pl.write(n, [i], pl.read(n, [i]))",
    "an unknown number": "for i in pl.range(pl.cast(pl.read(n, [0]), pl.INDEX)):\n    pl.write(out, [i, 0], 0.0)",
}


def parse(lines: str):
    body = "\n".join(f"            {line}" for line in lines.splitlines())
    return pl.parse(
        "import pypto.language as pl\n\n@pl.program\nclass Kernels:\n"
        "    @pl.function(type=pl.FunctionType.InCore)\n"
        "    def kernel(self, x: pl.Tensor[[32, 1], pl.FP32], n: pl.Tensor[[32], pl.INT32], "
        "out: pl.Out[pl.Tensor[[32, 1], pl.FP32]]) -> pl.Tensor[[32, 1], pl.FP32]:\n"
        "        if pl.read(n, [0]) > 0:\n"
        "            out = pl.assemble(out, pl.exp(x), [0, 0])\n"
        f"        else:\n{body}\n"
        "        return out\n"
    )


@pytest.mark.parametrize("lines", REFUSED.values(), ids=REFUSED.keys())
def test_other_element_stores_beside_bulk_stores_are_refused(lines):
    with pytest.raises(Diagnosed, match="mixes MTE3 and scalar stores"):
        pl.compile(parse(lines))


STAGED = {
    "a part of the tensor": "out[0:1, 0:32] = pl.full([1, 32], dtype=pl.INT32, value=-1)\npl.write(out, [0, 1], 5)",
    "after an element": "pl.write(out, [0, 1], 5)\nout[0:1, 0:64] = pl.full([1, 64], dtype=pl.INT32, value=-1)",
    "read in between": "out[0:1, 0:64] = pl.full([1, 64], dtype=pl.INT32, value=-1)\n"
    "pl.write(out, [0, 1], pl.read(out, [0, 2]))",
}


@pytest.mark.parametrize("lines", STAGED.values(), ids=STAGED.keys())
def test_fills_that_are_not_the_whole_of_what_happens_before_are_refused(lines):
    body = "\n".join(f"        {line}" for line in lines.splitlines())
    program = pl.parse(
        "import pypto.language as pl\n\n@pl.program\nclass Kernels:\n"
        "    @pl.function(type=pl.FunctionType.InCore)\n"
        "    def kernel(self, out: pl.Out[pl.Tensor[[1, 64], pl.INT32]]) -> pl.Tensor[[1, 64], pl.INT32]:\n"
        f"{body}\n        return out\n"
    )
    with pytest.raises(Diagnosed, match="mixes MTE3 and scalar stores"):
        pl.compile(program)
