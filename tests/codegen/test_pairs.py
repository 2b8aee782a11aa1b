"""FP4 elements counted in pairs."""

import pytest

from pypto import ir
from pypto.codegen.pairs import in_pairs, tensor_in_pairs
from pypto.dtypes import DataType
from pypto.ir.enums import TensorLayout
from pypto.ir.expr import index_const
from pypto.ir.printer import python_print
from pypto.ir.span import UNKNOWN_SPAN

N = ir.Var("n", ir.ScalarType(DataType.INDEX))


def texts(dims):
    return [python_print(d) for d in dims]


def pairs(*dims, dtype=DataType.FP4):
    return texts(in_pairs(list(dims), dtype, "an offset", UNKNOWN_SPAN))


def test_the_last_dimension_is_halved():
    assert pairs(index_const(3), index_const(64)) == ["3", "32"]
    assert pairs(N, N * 6) == ["n", "n * 6 // 2"]
    assert pairs(index_const(3), index_const(65), dtype=DataType.FP8E4M3FN) == ["3", "65"]
    for odd in (index_const(5), N, N * 3, N * 2 + 1):
        with pytest.raises(ValueError, match="an offset .* of FP4 elements is not known to be even"):
            pairs(odd)


def view(shape, strides, layout=TensorLayout.ND, dtype=DataType.FP4):
    type = ir.TensorType(shape, dtype)
    strides = [index_const(s) if isinstance(s, int) else s for s in strides]
    extents, strides = tensor_in_pairs(type.shape, strides, layout, type, UNKNOWN_SPAN)
    return texts(extents), texts(strides)


def test_rows_of_pairs_are_contiguous():
    assert view([4, 4, 64], [256, 64, 1]) == (["4", "4", "32"], ["128", "32", "1"])
    assert view([4, 64], [1, 64], TensorLayout.DN, DataType.FP8E4M3FN) == (["4", "64"], ["1", "64"])
    for bad, layout in (([1, 64], TensorLayout.DN), ([64, 2], TensorLayout.ND)):
        with pytest.raises(ValueError, match="must follow each other along the last axis"):
            view([4, 64], bad, layout)
    with pytest.raises(ValueError, match="a stride 65 of FP4 elements"):
        view([4, 64], [65, 1])


def test_rows_of_a_symbolic_extent_are_even():
    assert view([4, 3, N], [N * 3, N, 1]) == (["4", "3", "n // 2"], ["n * 3 // 2", "n // 2", "1"])
    with pytest.raises(ValueError, match="an extent n . 1 of FP4 elements"):
        view([4, N + 1], [64, 1])
