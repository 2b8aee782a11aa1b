"""Packing arrays in NZ order."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pypto.dtypes import DataType
from pypto.layouts import c0_of, fix_pipe_words, from_mx_a, from_mx_b, from_nz, to_mx_a, to_mx_b, to_nz

BYTE_SIZED = sorted(
    {t.numpy for t in DataType if t.bits >= 8 and t not in (DataType.HF8, DataType.TASK_ID)}, key=lambda d: d.name
)


def numbered(shape, dtype):
    """Elements whose bytes tell them apart, as far as their width allows."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.random.default_rng(1).integers(0, 256, size, np.uint8)
    return raw.view(dtype).reshape(shape)


def bits(array):
    return array.view(f"u{array.dtype.itemsize}")


def test_every_byte_sized_dtype_is_covered():
    assert {d.name for d in BYTE_SIZED} == {
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
        "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu",
    }  # fmt: skip


@pytest.mark.parametrize("dtype", BYTE_SIZED, ids=lambda d: d.name)
def test_every_element_is_where_the_layout_puts_it(dtype):
    c0 = 32 // dtype.itemsize
    assert c0_of(dtype) == c0
    array = numbered((3, 32, 3 * c0), dtype)
    packed = to_nz(array)
    assert packed.shape == (3, 3, 2, 16, c0) and packed.dtype == dtype and packed.flags.c_contiguous
    flat, source = bits(packed).reshape(-1), bits(array)
    rows, columns = 32, 3 * c0
    for b, r, c in np.ndindex(array.shape):
        # Strides of the layout in elements, counted by hand.
        at = b * rows * columns + (c // c0) * rows * c0 + (r // 16) * 16 * c0 + (r % 16) * c0 + c % c0
        assert flat[at] == source[b, r, c]


@settings(max_examples=60, deadline=None)
@given(
    dtype=st.sampled_from(BYTE_SIZED),
    batch=st.one_of(st.none(), st.integers(0, 3)),
    rows=st.integers(0, 3),
    columns=st.integers(0, 3),
)
def test_unpacking_undoes_packing(dtype, batch, rows, columns):
    c0 = 32 // dtype.itemsize
    shape = (*(() if batch is None else (batch,)), rows * 16, columns * c0)
    array = numbered(shape, dtype)
    packed = to_nz(array)
    assert packed.shape == (1 if batch is None else batch, columns, rows, 16, c0)
    same = from_nz(packed, shape)
    assert same.dtype == dtype and same.flags.c_contiguous
    np.testing.assert_array_equal(bits(same), bits(array))
    np.testing.assert_array_equal(bits(from_nz(packed.reshape(-1), shape)), bits(array))
    if batch != 1:
        np.testing.assert_array_equal(bits(from_nz(packed)), bits(array))


def test_a_batch_of_one_is_left_out_unless_asked_for():
    array = numbered((1, 16, 32), np.int8)
    assert from_nz(to_nz(array)).shape == (16, 32)
    assert from_nz(to_nz(array), [1, 16, 32]).shape == (1, 16, 32)


def test_arrays_in_any_memory_order_and_lists_are_packed():
    array = numbered((64, 32), np.int16).T[:, ::2]
    np.testing.assert_array_equal(from_nz(to_nz(array)), array)
    assert to_nz([[1] * 4] * 16).shape == (1, 1, 1, 16, 4)


def test_packing_copies():
    array = np.zeros((16, 32), np.int8)
    to_nz(array)[...] = 1
    assert not array.any()
    packed = to_nz(array)
    from_nz(packed)[...] = 1
    assert not packed.any()


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ((24, 32), np.int8, r"24 rows are not a multiple of 16, got \[24, 32\]"),
        ((16, 48), np.int8, r"48 columns are not a multiple of c0 = 32 int8 elements, got \[16, 48\]"),
        ((2, 16, 24), np.float16, r"24 columns are not a multiple of c0 = 16 float16 elements"),
        ((16, 4), np.float32, "4 columns are not a multiple of c0 = 8 float32"),
        ((32,), np.int8, "rank 2 or 3, got rank 1"),
        ((2, 2, 16, 32), np.int8, r"rank 2 or 3, got rank 4 \[2, 2, 16, 32\]"),
        ((16, 64), np.bool_, "bool has no NZ layout: its elements are narrower than a byte"),
        ((16, 64), ml_dtypes.int4, "int4 has no NZ layout"),
        ((16, 64), ml_dtypes.float4_e2m1fn, "fp4 has no NZ layout"),
    ],
)
def test_what_cannot_be_packed(shape, dtype, message):
    with pytest.raises(ValueError, match=message):
        to_nz(np.zeros(shape, dtype))


def test_elements_pypto_does_not_have():
    with pytest.raises(TypeError, match="no PyPTO element type for a float64 array"):
        to_nz(np.zeros((16, 32)))


@pytest.mark.parametrize(
    ("packed", "shape", "message"),
    [
        ((1, 2, 2, 16, 16), None, r"an NZ array of int8 has shape \[B, C/32, R/16, 16, 32\], got \[1, 2, 2, 16, 16\]"),
        ((32, 32), None, r"got \[32, 32\]"),
        ((1, 2, 1, 16, 32), (24, 64), r"no NZ tensor of int8 has shape \[24, 64\]"),
        ((1, 2, 1, 16, 32), (16, 48), r"no NZ tensor of int8 has shape \[16, 48\]"),
        ((1, 2, 1, 16, 32), (1024,), "no NZ tensor"),
        ((1, 2, 1, 16, 32), (32, 64), r"has 1024 elements, not the 2048 of \[32, 64\]"),
        ((1, 2, 1, 16, 32), (32, 32), r"\[1, 2, 1, 16, 32\] is not the NZ form \[1, 1, 2, 16, 32\] of \[32, 32\]"),
    ],
)
def test_what_cannot_be_unpacked(packed, shape, message):
    with pytest.raises(ValueError, match=message):
        from_nz(np.zeros(packed, np.int8), shape)


def test_numpy_is_loaded_on_first_use():
    import subprocess
    import sys

    code = "import sys, pypto.layouts; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("dtype", [np.uint8, ml_dtypes.float8_e8m0fnu])
def test_every_scale_is_where_its_box_has_it(dtype):
    left = numbered((48, 6), dtype)
    right = numbered((6, 48), dtype)
    a, b = to_mx_a(left), to_mx_b(right)
    assert a.shape == b.shape == (1, 3, 3, 16, 2) and a.flags.c_contiguous and b.flags.c_contiguous
    for line, group in np.ndindex(48, 6):
        # Bytes before it, counted by hand: boxes of 32, lines of a box of 2.
        at = ((line // 16) * 3 + group // 2) * 32 + (line % 16) * 2 + group % 2
        assert bits(a).reshape(-1)[at] == bits(left)[line, group]
        assert bits(b).reshape(-1)[at] == bits(right)[group, line]
    np.testing.assert_array_equal(bits(from_mx_a(a)), bits(left))
    np.testing.assert_array_equal(bits(from_mx_b(b)), bits(right))


@pytest.mark.parametrize("shape", [(24, 2), (16, 3), (16,), (1, 16, 2)])
def test_scales_that_fill_no_boxes_are_refused(shape):
    for pack in (to_mx_a, lambda x: to_mx_b(np.asarray(x).T)):
        with pytest.raises(ValueError, match="boxes of 16 by 2, got"):
            pack(np.zeros(shape, np.uint8))


def test_arrays_that_are_no_boxes_of_scales_are_refused():
    for unpack in (from_mx_a, from_mx_b):
        with pytest.raises(ValueError, match=r"\[1, .., .., 16, 2\], got \[2, 1, 1, 16, 2\]"):
            unpack(np.zeros((2, 1, 1, 16, 2), np.uint8))


def test_words_of_the_fix_pipe_hold_factor_offset_and_sign():
    words = fix_pipe_words([1.5, -2.0], [255, -256])
    assert words.dtype == np.uint64 and words.shape == (1, 2)
    assert [hex(int(w)) for w in words[0]] == ["0x5fe03fc00000", "0x6000c0000000"]
    assert hex(int(fix_pipe_words(0.5, 3, signed=False)[0, 0])) == "0x603f000000"
    assert fix_pipe_words(np.ones(64)).shape == (1, 64)
    with pytest.raises(ValueError, match="11 significant bits, of 0.1.* it would take 0.0999"):
        fix_pipe_words([1.0, 0.1])
    with pytest.raises(ValueError, match="-256 to 255, got 256 to 256"):
        fix_pipe_words(1.0, 256)
