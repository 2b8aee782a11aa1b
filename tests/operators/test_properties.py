"""Elementwise operators and reductions over any shape, valid region, dtype and values."""

import numpy as np
from elementwise_cases import BINARY, UNARY, with_scalar
from hypothesis import given, settings, strategies as st
from operator_harness import TARGETS, instruction_dtypes, run_op
from operator_values import NUMPY, assert_same, fill, is_float, ordinary, small, specials
from reduction_cases import reduced

from pypto.dtypes import DataType

EXAMPLES = settings(max_examples=60, deadline=None)


@st.composite
def tiles(draw, op, count, operand="dst"):
    """A target, a dtype the operator takes there, a shape of whole 32-byte rows, a valid region and operands."""
    target = draw(st.sampled_from(TARGETS))
    dtype = draw(st.sampled_from(instruction_dtypes(op, target, operand)))
    shape = draw(st.integers(1, 33)), draw(st.integers(1, 9)) * 256 // dtype.bits
    valid = draw(st.integers(0, shape[0])), draw(st.integers(0, shape[1]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arrays = []
    for _ in range(count):
        values = ordinary(NUMPY[dtype], shape, rng)
        odd = rng.random(shape) < draw(st.sampled_from((0.0, 0.1, 0.9)))
        arrays.append(np.where(odd, rng.choice(specials(NUMPY[dtype]), shape), values).astype(NUMPY[dtype]))
    return target, dtype, shape, valid, arrays


def kernel(dtype, shape, inputs, expr, before="", out=None):
    """A kernel on tiles ``a``, ``b`` of the valid region (m, n)."""
    tensor = f"pl.Tensor[{list(shape)}, pl.{dtype.name}]"
    names = "ab"[:inputs]
    params = [f"x_{name}: {tensor}" for name in names] + ["m: pl.Scalar[pl.INDEX]", "n: pl.Scalar[pl.INDEX]"]
    params.append(f"y: pl.Out[pl.Tensor[{list(out or shape)}, pl.{dtype.name}]]")
    loads = [f"{name} = pl.load(x_{name}, [0, 0], {list(shape)}, valid_shape=[m, n])" for name in names]
    lines = [*loads, *([before] if before else []), f"pl.store({expr}, [0, 0], y)"]
    return f"@pl.function(type=pl.FunctionType.InCore)\ndef k({', '.join(params)}):\n    " + "\n    ".join(lines) + "\n"


def check(op, source, arrays, valid, want, out_shape, out_valid, target, ulp):
    y = fill(arrays[0].dtype, out_shape)
    expected = y.copy()
    expected[: out_valid[0], : out_valid[1]] = want
    run_op(op, source, [*arrays, *valid, y], target)
    assert_same(y, expected, ulp, f"{op} on {target.name}, {out_shape}, valid {valid}")


@EXAMPLES
@given(st.data(), st.sampled_from(sorted(BINARY)))
def test_two_tiles(data, name):
    op = f"tile.{name}"
    target, dtype, shape, (m, n), (a, b) = data.draw(tiles(op, 2))
    with np.errstate(all="ignore"):
        want = BINARY[name](a[:m, :n], b[:m, :n])
    ulp = 0.5 if name in ("maximum", "minimum") else 0
    check(op, kernel(dtype, shape, 2, f"pl.{op}(a, b)"), [a, b], (m, n), want, shape, (m, n), target, ulp)


@EXAMPLES
@given(st.data(), st.sampled_from(sorted(BINARY)))
def test_a_tile_and_a_number(data, name):
    op = f"tile.{name}s"
    target, dtype, shape, (m, n), (a,) = data.draw(tiles(op, 1))
    low, high = dtype.int_range() if dtype.is_int() else (-100, 100)
    number = data.draw(st.integers(max(low, -(2**31) + 1), high) if dtype.is_int() else st.floats(low, high, width=16))
    with np.errstate(all="ignore"):
        want = with_scalar(BINARY[name])(a[:m, :n], number)
    source = kernel(dtype, shape, 1, f"pl.{op}(a, {number!r})")
    check(op, source, [a], (m, n), want, shape, (m, n), target, 0.5 if name in ("maximum", "minimum") else 0)


@EXAMPLES
@given(st.data(), st.sampled_from(sorted(UNARY)))
def test_one_tile(data, name):
    op, (function, ulp) = f"tile.{name}", UNARY[name]
    target, dtype, shape, (m, n), (a,) = data.draw(tiles(op, 1))
    with np.errstate(all="ignore"):
        want = function(a[:m, :n])
    check(op, kernel(dtype, shape, 1, f"pl.{op}(a)"), [a], (m, n), want, shape, (m, n), target, ulp)


@EXAMPLES
@given(st.data(), st.sampled_from(("sum", "max", "min")), st.sampled_from(("row", "col")))
def test_reductions(data, name, word):
    op, axis = f"tile.{word}_{name}", 1 if word == "row" else 0
    target, dtype, shape, (m, n), (a,) = data.draw(tiles(op, 1, "src"))
    if name == "sum":
        a = small(a.dtype, shape, np.random.default_rng(m * 100 + n))
    rows = shape[0] + -shape[0] % (256 // dtype.bits) if axis == 1 else shape[0]
    a = np.concatenate([a, np.zeros((rows - shape[0], shape[1]), a.dtype)])
    m, n = max(m, 1), max(n, 1)
    with np.errstate(all="ignore"):
        want = reduced({"sum": np.sum, "max": np.max, "min": np.min}[name], axis)(a[:m, :n])
    tmp = f"tmp = pl.create_tile({list(a.shape)}, dtype=pl.{dtype.name})" if axis == 1 else ""
    out, valid = ((rows, 1), (m, 1)) if axis == 1 else ((1, shape[1]), (1, n))
    source = kernel(dtype, a.shape, 1, f"pl.{op}(a{', tmp' if tmp else ''})", tmp, out)
    check(op, source, [a], (m, n), want, out, valid, target, 0.5)


@EXAMPLES
@given(st.data(), st.sampled_from((DataType.FP32, DataType.FP16)))
def test_sums_of_any_values_are_close(data, dtype):
    """The order of additions is free: the error is bounded by the magnitudes added."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    m, n = data.draw(st.integers(1, 16)), data.draw(st.integers(1, 128))
    a = rng.standard_normal((16, 128)).astype(NUMPY[dtype])
    y = np.zeros((16, 1), NUMPY[dtype])
    tmp = f"tmp = pl.create_tile([16, 128], dtype=pl.{dtype.name})"
    source = kernel(dtype, (16, 128), 1, "pl.tile.row_sum(a, tmp)", tmp, (16, 1))
    run_op("tile.row_sum", source, [a, m, n, y], TARGETS[0])
    exact = a[:m, :n].astype(np.float64).sum(axis=1, keepdims=True)
    bound = n * np.finfo(np.float32).eps * np.abs(a[:m, :n].astype(np.float64)).sum(axis=1, keepdims=True)
    if is_float(NUMPY[dtype]) and dtype is DataType.FP16:
        bound = bound + np.abs(exact) * 2.0**-11 + 2.0**-25
    assert (np.abs(y[:m].astype(np.float64) - exact) <= bound).all()
    assert (y[m:] == 0).all()
