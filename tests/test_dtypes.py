"""The element-type table."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from pypto import dtypes
from pypto.dtypes import DataType, from_numpy

INTEGERS = [d for d in DataType if d.is_int()]


def test_codes_are_distinct_and_look_up_their_member():
    assert len({d.code() for d in DataType}) == len(DataType)
    assert all(DataType(d.code()) is d for d in DataType)
    assert DataType.TASK_ID.code() == 0x50
    with pytest.raises(ValueError):
        DataType(0x7F)


def test_every_member_has_its_module_constant():
    assert {f"DT_{d.name}" for d in DataType} == {n for n in vars(dtypes) if n.startswith("DT_")}
    assert all(getattr(dtypes, f"DT_{d.name}") is d for d in DataType)


@pytest.mark.parametrize(
    "dtype, text, bits, mlir",
    [
        (DataType.FP32, "fp32", 32, "f32"),
        (DataType.BF16, "bfloat16", 16, "bf16"),
        (DataType.UINT8, "uint8", 8, "ui8"),
        (DataType.INT64, "int64", 64, "i64"),
        (DataType.BOOL, "bool", 1, "i1"),
        (DataType.INDEX, "index", 64, "index"),
        (DataType.FP4, "fp4", 4, "!pto.f4E2M1x2"),
        (DataType.HF8, "hf8", 8, "!pto.hif8"),
    ],
)
def test_names_and_widths(dtype, text, bits, mlir):
    assert (dtype.to_string(), str(dtype), f"{dtype}") == (text, text, text)
    assert (dtype.get_bit(), dtype.mlir) == (bits, mlir)


def test_kinds_exclude_each_other():
    for d in DataType:
        assert [d.is_float(), d.is_signed_int(), d.is_unsigned_int()].count(True) <= 1
        assert d.is_int() == (d.is_signed_int() or d.is_unsigned_int())
    assert not DataType.BOOL.is_int() and not DataType.BOOL.is_float()
    assert not DataType.TASK_ID.is_int()
    assert DataType.INDEX.is_signed_int() and DataType.INDEX is not DataType.INT64


def test_storage_packs_four_bit_elements_two_a_byte():
    assert [DataType.FP4.storage_bytes(n) for n in (0, 1, 2, 3)] == [0, 1, 1, 2]
    assert DataType.BOOL.storage_bytes(5) == 5
    assert DataType.FP32.storage_bytes(5) == 20
    assert DataType.INT4.get_byte() == DataType.BOOL.get_byte() == 1


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_ranges_agree_with_numpy(dtype):
    info = ml_dtypes.iinfo(dtype.numpy)
    assert dtype.int_range() == (info.min, info.max)


def test_range_of_a_float_is_refused():
    with pytest.raises(TypeError, match="fp16 is not an integer"):
        DataType.FP16.int_range()


def test_numpy_round_trip():
    for d in DataType:
        if d in (DataType.HF4, DataType.HF8, DataType.TASK_ID):
            with pytest.raises(TypeError, match=str(d)):
                _ = d.numpy
        else:
            assert from_numpy(d.numpy) is (DataType.INT64 if d is DataType.INDEX else d)
    assert DataType.BF16.numpy == np.dtype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("foreign", [np.float64, np.complex64, "S3"])
def test_array_types_without_equivalent_are_refused(foreign):
    with pytest.raises(TypeError, match="no PyPTO element type"):
        from_numpy(foreign)


def test_types_without_pto_spelling_are_refused():
    with pytest.raises(TypeError, match="hf4 has no PTO element type"):
        _ = DataType.HF4.mlir


def test_members_stay_single_through_copy_and_pickle():
    for d in DataType:
        assert copy.deepcopy(d) is d and copy.copy(d) is d and pickle.loads(pickle.dumps(d)) is d
    assert repr(DataType.FP32) == "DataType.FP32"


def test_import_brings_no_array_library():
    code = "import sys, pypto.dtypes; sys.exit(any(m in sys.modules for m in ('numpy', 'ml_dtypes')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
