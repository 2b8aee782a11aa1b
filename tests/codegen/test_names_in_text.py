"""Names of users reach PTO and C++ as identifiers that nothing else there is called by."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto.errors import Diagnosed
from pypto.ir.naming import identifier

TEXT = """
import pypto.language as pl
@pl.function(type=pl.FunctionType.InCore)
def {kernel}({x}: pl.Tensor[[16, 16], pl.FP32], {n}: pl.Scalar[pl.INT32], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
    {tile} = pl.load({x}, [0, 0], [16, 16])
    b = {n} > 0 and {n} // 2 > 0 or True
    r = pl.mul({tile}, 2.0)
    if {n} > 0 and b:
        r = pl.add({tile}, 1.0)
    pl.store(r, [0, 0], o)
"""


@pytest.mark.parametrize("name", ["α", "größe", "c16_index", "cm1_i64", "arg0", "true", "false", "int", "cst"])
@pytest.mark.parametrize("role", ["x", "n", "tile"])
def test_a_value_may_be_called_what_text_calls_something_else(role: str, name: str):
    names = {"kernel": "k", "x": "x", "n": "n", "tile": "t", role: name}
    out = np.zeros((16, 16), np.float32)
    pl.compile(pl.parse(TEXT.format(**names)), dump_passes=False)(np.ones((16, 16), np.float32), 4, out)
    assert (out == 2).all()


@pytest.mark.parametrize("name", ["c16_index", "arg0", "cst"])
def test_a_kernel_may_be_called_like_a_value(name: str):
    compiled = pl.compile(pl.parse(TEXT.format(kernel=name, x="x", n="n", tile="t")), dump_passes=False)
    assert f"func.func @{name}(" in compiled.pto[name]


@pytest.mark.parametrize(("name", "why"), [("α", "no names of"), ("größe", "no names of")])
def test_a_kernel_that_cpp_has_no_name_for_is_refused(name: str, why: str):
    with pytest.raises(Diagnosed, match=why):
        pl.compile(pl.parse(TEXT.format(kernel=name, x="x", n="n", tile="t")), dump_passes=False)


def test_identifiers_keep_what_is_one_and_spell_other_letters():
    assert [identifier(n) for n in ("row_1", "α", "größe", "1st", "")] == [
        "row_1", "_u03b1_", "gr_u00f6__u00df_e", "v1st", "v"
    ]  # fmt: skip
