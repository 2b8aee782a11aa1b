"""Operators beyond the public catalog, through the whole path: source, PTO text, simulator, numpy."""

import ml_dtypes
import numpy as np
import pytest

import pypto.language as pl
from pypto.backend import ASCEND910B, ASCEND950
from pypto.dtypes import DataType as D
from pypto.errors import InvalidOperationError

TARGETS = {"910B": ASCEND910B, "950": ASCEND950}
INTEGERS = ("INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32")
ROWS, COLS = 32, 64
REGIONS = ((ROWS, COLS), (5, 19), (1, 1))


def kernel(body, params, out, target):
    """A kernel over ``params`` (name, shape, dtype[, valid]): each is loaded into a tile of its name."""
    lines, heads = [], []
    for name, shape, dtype, *valid in params:
        heads.append(f"{name}_t: pl.Tensor[{list(shape)}, pl.{dtype}]")
        extra = f", valid_shape={list(valid[0])}" if valid else ""
        lines.append(f"    {name} = pl.load({name}_t, [0, 0], {list(shape)}{extra})")
    heads.append(f"out: pl.Out[pl.Tensor[{list(out[0])}, pl.{out[1]}]]")
    text = (
        "import pypto.language as pl\n@pl.function(type=pl.FunctionType.InCore)\n"
        f"def k({', '.join(heads)}) -> pl.Tensor[{list(out[0])}, pl.{out[1]}]:\n" + "\n".join(lines) + "\n"
        + "\n".join("    " + line for line in body) + "\n    out = pl.store(made, [0, 0], out)\n    return out\n"
    )  # fmt: skip
    return pl.compile(pl.parse(text), target=TARGETS[target], dump_passes=False, skip_ptoas=True)


def numbers(dtype, shape, seed=0, low=-9, high=9):
    rng = np.random.default_rng(seed)
    kind = getattr(D, dtype).numpy
    if kind.kind in "iu":
        low = max(low, 0) if kind.kind == "u" else low
        return rng.integers(low, high, shape).astype(kind)
    return rng.uniform(low, high, shape).astype(kind)


def window(data, valid, fill=0):
    out = np.full_like(data, fill)
    out[: valid[0], : valid[1]] = data[: valid[0], : valid[1]]
    return out


def create(dtype, shape=(ROWS, COLS)):
    return f"pl.tile.create({list(shape)}, pl.{dtype})"


POWER_CASES = [(t, d) for t in TARGETS for d in (*INTEGERS, "FP32", *(("FP16", "BF16") if t == "950" else ()))]


@pytest.mark.parametrize("valid", REGIONS)
@pytest.mark.parametrize("target, dtype", POWER_CASES)
def test_pow_of_tiles_and_of_a_scalar(target, dtype, valid):
    floating = dtype not in INTEGERS
    scratch = [f"tmp = {create(dtype)}"] if floating else []
    extra = ", tmp" if floating else ""
    params = [(n, (ROWS, COLS), dtype, valid) for n in ("x", "y")]
    x = numbers(dtype, (ROWS, COLS), 1)
    y = numbers(dtype, (ROWS, COLS), 2, 0, 5)
    if floating:
        x = np.abs(x) + x.dtype.type(0.25)
    out = np.zeros_like(x)
    kernel([*scratch, f"made = pl.pow(x, y{extra})"], params, ((ROWS, COLS), dtype), target)(x, y, out)
    if floating:
        want = np.power(x.astype(np.float64), y.astype(np.float64))
        eps = float(ml_dtypes.finfo(x.dtype).eps)
        np.testing.assert_allclose(out.astype(np.float64), window(want, valid), rtol=2 * eps, atol=0)
    else:
        exact = np.vectorize(lambda a, b: int(a) ** int(b), otypes=[object])(x, y)
        bits = x.dtype.itemsize * 8
        wrapped = np.array([int(v) % (1 << bits) for v in exact.ravel()], np.uint64).astype(f"u{x.dtype.itemsize}")
        np.testing.assert_array_equal(out, window(wrapped.view(x.dtype).reshape(x.shape), valid))
    out[:] = 0
    kernel([*scratch, f"made = pl.pows(x, 3{extra})"], params[:1], ((ROWS, COLS), dtype), target)(x, out)
    if not floating:
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(out, window(x * x * x, valid))


def test_powers_of_odd_values():
    x = np.array([[0, -2, np.inf, -np.inf, np.nan, 1, 2, 0]], np.float32)
    y = np.array([[0, 3, 2, 3, 0, np.nan, -1, -1]], np.float32)
    out = np.zeros_like(x)
    shape = (1, 8)
    params = [("x", shape, "FP32"), ("y", shape, "FP32")]
    kernel([f"tmp = {create('FP32', shape)}", "made = pl.pow(x, y, tmp)"], params, (shape, "FP32"), "910B")(x, y, out)
    np.testing.assert_array_equal(out, [[1, -8, np.inf, -np.inf, 1, 1, 0.5, np.inf]])


@pytest.mark.parametrize("target, dtype", [("910B", d) for d in ("INT16", "FP16", "FP32")])
@pytest.mark.parametrize("valid", REGIONS)
def test_add_relu(target, dtype, valid):
    x, y = numbers(dtype, (ROWS, COLS), 1), numbers(dtype, (ROWS, COLS), 2)
    out = np.zeros_like(x)
    params = [(n, (ROWS, COLS), dtype, valid) for n in ("x", "y")]
    kernel(["made = pl.add_relu(x, y)"], params, ((ROWS, COLS), dtype), target)(x, y, out)
    np.testing.assert_array_equal(out, window(np.maximum(x + y, x.dtype.type(0)), valid))


AXPY = [(t, s, a) for t in TARGETS for s, a in (("FP16", "FP16"), ("FP32", "FP32"), ("FP16", "FP32"))]


@pytest.mark.parametrize("target, dtype, acc", [*AXPY, ("950", "BF16", "BF16")])
@pytest.mark.parametrize("valid", REGIONS)
def test_axpy_rounds_once(target, dtype, acc, valid):
    x, y = numbers(dtype, (ROWS, COLS), 1), numbers(acc, (ROWS, COLS), 2)
    out = np.zeros_like(y)
    params = [("x", (ROWS, COLS), dtype, valid), ("y", (ROWS, COLS), acc, valid)]
    kernel(["made = pl.axpy(y, x, 0.3)"], params, ((ROWS, COLS), acc), target)(x, y, out)
    factor = np.float64(x.dtype.type(0.3))
    want = (y.astype(np.float64) + x.astype(np.float64) * factor).astype(y.dtype)
    np.testing.assert_array_equal(out, window(want, valid))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("valid", REGIONS)
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("scratch", [False, True])
def test_quant_rounds_to_even_and_clamps(target, valid, offset, scratch):
    x = numbers("FP32", (ROWS, COLS), 1, -400, 400)
    x[0, :6] = [0.5, 1.5, -2.5, np.nan, np.inf, -np.inf]
    scale = np.linspace(0.25, 2, ROWS, dtype=np.float32).reshape(ROWS, 1)
    scale[0] = 1
    shift = np.linspace(0, 200, ROWS, dtype=np.float32).reshape(ROWS, 1)
    rows = (valid[0], 1)
    params = [("x", (ROWS, COLS), "FP32", valid), ("scale", (ROWS, 1), "FP32", rows)]
    given, extra = [x, scale], ""
    if offset:
        params.append(("shift", (ROWS, 1), "FP32", rows))
        given.append(shift)
        extra = ", offset=shift"
    body = []
    if scratch:
        body.append(f"whole = {create('FP32')}")
        body.append(f"tmp = pl.set_validshape(whole, {valid[0]}, {valid[1]})")
        extra += ", tmp=tmp"
    dtype, kind = ("UINT8", np.uint8) if offset else ("INT8", np.int8)
    out = np.zeros((ROWS, COLS), kind)
    body.append(f"made = pl.quant(x, scale{extra})")
    kernel(body, params, ((ROWS, COLS), dtype), target)(*given, out)
    value = x * scale + (shift if offset else np.float32(0))
    value[np.isnan(value)] = 0
    info = np.iinfo(kind)
    want = np.array([min(max(round(float(v)) if np.isfinite(v) else v, info.min), info.max) for v in value.ravel()])
    np.testing.assert_array_equal(out, window(want.reshape(x.shape).astype(kind), valid))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["INT8", "INT16"])
@pytest.mark.parametrize("valid", REGIONS)
def test_dequant_undoes_it(target, dtype, valid):
    x = numbers(dtype, (ROWS, COLS), 3, -120, 120)
    scale = np.linspace(0.25, 2, ROWS, dtype=np.float32).reshape(ROWS, 1)
    shift = np.linspace(-5, 5, ROWS, dtype=np.float32).reshape(ROWS, 1)
    rows = (valid[0], 1)
    params = [("x", (ROWS, COLS), dtype, valid), ("s", (ROWS, 1), "FP32", rows), ("o", (ROWS, 1), "FP32", rows)]
    out = np.zeros((ROWS, COLS), np.float32)
    kernel(["made = pl.dequant(x, s, o)"], params, ((ROWS, COLS), "FP32"), target)(x, scale, shift, out)
    np.testing.assert_array_equal(out, window((x.astype(np.float32) - shift) * scale, valid))


def histogram(x, byte, above):
    """Counts by hand: ``above`` maps a byte position to the value it must have, for each row."""
    out = np.zeros((x.shape[0], 256), np.uint32)
    for row, values in enumerate(x):
        for v in values:
            if all((int(v) >> (8 * k)) & 255 == want[row] for k, want in above.items()):
                out[row, (int(v) >> (8 * byte)) & 255] += 1
    return out


@pytest.mark.parametrize("byte", [0, 1])
def test_histogram_of_16_bits(byte):
    x = np.random.default_rng(5).integers(0, 0x400, (ROWS, COLS)).astype(np.uint16)
    index = (np.arange(ROWS) % 4).astype(np.uint8).reshape(ROWS, 1)
    out = np.zeros((ROWS, 256), np.uint32)
    params = [("x", (ROWS, COLS), "UINT16"), ("i", (ROWS, 1), "UINT8")]
    kernel([f"made = pl.histogram(x, i, byte={byte})"], params, ((ROWS, 256), "UINT32"), "950")(x, index, out)
    np.testing.assert_array_equal(out, histogram(x, byte, {1: index[:, 0]} if byte == 0 else {}))


@pytest.mark.parametrize("byte", [0, 1, 2, 3])
def test_histogram_of_32_bits(byte):
    rng = np.random.default_rng(6)
    x = sum(rng.integers(0, 3, (8, COLS)) << (8 * k) for k in range(4)).astype(np.uint32)
    rows = max(1, 3 - byte)
    index = np.broadcast_to(np.array([[1], [2], [0]], np.uint8)[:rows], (rows, COLS)).copy()
    out = np.zeros((8, 256), np.uint32)
    params = [("x", (8, COLS), "UINT32"), ("i", (rows, COLS), "UINT8")]
    kernel([f"made = pl.histogram(x, i, byte={byte})"], params, ((8, 256), "UINT32"), "950")(x, index, out)
    above = {3 - k: [int(index[k, 0])] * 8 for k in range(3 - byte)}
    np.testing.assert_array_equal(out, histogram(x, byte, above))


CONCAT = ("INT8", "INT16", "INT32", "FP16", "BF16", "FP32")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", CONCAT)
def test_concat_idx_takes_as_many_columns_as_it_is_told(target, dtype):
    x, y = numbers(dtype, (4, 32), 1), numbers(dtype, (4, 32), 2)
    first, second = np.zeros((4, 32), np.int8), np.zeros((4, 32), np.int8)
    first[:, 0], second[:, 0] = [0, 3, 32, 40], [5, 0, 32, 7]
    params = [("x", (4, 32), dtype), ("y", (4, 32), dtype), ("a", (4, 32), "INT8"), ("b", (4, 32), "INT8")]
    out = np.zeros((4, 64), x.dtype)
    kernel(["made = pl.concat_idx(x, y, a, b)"], params, ((4, 64), dtype), target)(x, y, first, second, out)
    for row, (left, right) in enumerate([(0, 5), (3, 0), (32, 32), (32, 7)]):
        np.testing.assert_array_equal(out[row, :left], x[row, :left])
        np.testing.assert_array_equal(out[row, left : left + right], y[row, :right])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("counts", ["INT16", "INT32"])
def test_concat_idx_refuses_counts_the_instruction_would_divide(target, counts):
    params = [("x", (4, 32), "FP32"), ("y", (4, 32), "FP32"), ("a", (4, 32), counts), ("b", (4, 32), counts)]
    with pytest.raises(InvalidOperationError, match="takes counts in INT8"):
        kernel(["made = pl.concat_idx(x, y, a, b)"], params, ((4, 64), "FP32"), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["FP16", "FP32"])
@pytest.mark.parametrize("index", ["INT32", "UINT32"])
@pytest.mark.parametrize("name, better", [("part_argmax", np.greater), ("part_argmin", np.less)])
@pytest.mark.parametrize("narrow", [(ROWS, COLS), (5, 19)])
def test_part_arg_keeps_the_index_of_what_it_chose(target, dtype, index, name, better, narrow):
    x, y = np.round(numbers(dtype, (ROWS, COLS), 1)), np.round(numbers(dtype, (ROWS, COLS), 2))
    i, j = numbers(index, (ROWS, COLS), 3, 0, 1000), numbers(index, (ROWS, COLS), 4, 1000, 2000)
    params = [("x", (ROWS, COLS), dtype), ("y", (ROWS, COLS), dtype, narrow),
              ("i", (ROWS, COLS), index), ("j", (ROWS, COLS), index, narrow)]  # fmt: skip
    for what, shown in (("made", dtype), ("found", index)):
        body = [f"found = {create(index)}", f"value = pl.{name}(x, y, i, j, found)"]
        out = np.zeros((ROWS, COLS), getattr(D, shown).numpy)
        chosen = "value" if what == "made" else "found"
        body.append(f"made = pl.tile.move({chosen}, target_memory=pl.Mem.Vec)" if chosen == "found" else "made = value")
        kernel(body, params, ((ROWS, COLS), shown), target)(x, y, i, j, out)
        first = better(x, y)
        first[narrow[0] :] = True
        first[:, narrow[1] :] = True
        want = np.where(first, x, y) if what == "made" else np.where(first, i, j)
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("target", TARGETS)
def test_prefetch_is_a_hint(target):
    x = numbers("FP16", (ROWS, COLS), 1)
    out = np.zeros_like(x)
    body = [f"ahead = pl.tile.prefetch(x_t, [0, 0], {[ROWS, COLS]})", "made = pl.add(x, x)"]
    compiled = kernel(body, [("x", (ROWS, COLS), "FP16")], ((ROWS, COLS), "FP16"), target)
    assert "pto.tprefetch ins(" in compiled.pto["k"]
    compiled(x, out)
    np.testing.assert_array_equal(out, x + x)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["INT8", "INT16", "INT32", "FP16", "FP32"])
def test_print_shows_what_is_valid_and_what_is_not(target, dtype, capsys):
    x = np.arange(64).reshape(2, 32).astype(getattr(D, dtype).numpy)
    out = np.zeros_like(x)
    body = ["pl.tile.print(x, format='width8_precision2')", "made = pl.add(x, x)" if dtype != "INT8" else "made = x"]
    compiled = kernel(body, [("x", (2, 32), dtype, (1, 3))], ((2, 32), dtype), target)
    compiled(x, out)
    shown = capsys.readouterr().out.splitlines()
    number = "{:8.2f}" if dtype.startswith("FP") else "{:8d}"
    values = [number.format(v) for v in range(3)]
    assert shown[0].endswith("1x3 valid") and shown[1].startswith(" ".join(values) + "  |")
    assert len(shown) == 3


REFUSED = [
    ("910B", "made = pl.pow(x, x)", "FP32", "scratch tile tmp"),
    ("910B", "made = pl.pow(x, x)", "FP16", "scratch tile tmp"),
    ("910B", f"made = pl.pow(x, x, {create('FP16')})", "FP16", "FP16"),
    ("910B", f"made = pl.pow(x, x, {create('INT32')})", "INT32", "takes neither tmp"),
    ("910B", "made = pl.add_relu(x, x)", "INT32", "dtype"),
    ("910B", "made = pl.axpy(x, x, 2.0)", "BF16", "BF16"),
    ("910B", "made = pl.quant(x, x)", "FP32", r"\[M, 1\]"),
    ("910B", "made = pl.quant(x, x)", "FP16", "FP32"),
    ("950", "made = pl.dequant(x, x, x)", "INT32", "INT16"),
    ("950", "made = pl.histogram(x, x)", "INT16", "UINT16"),
    ("950", "made = pl.tile.print(x)", "BF16", "dtype"),
    ("950", "made = pl.part_argmax(x, x, x, x, x)", "FP32", "INT32"),
]


@pytest.mark.parametrize("target, line, dtype, words", REFUSED)
def test_what_is_refused_says_why(target, line, dtype, words):
    with pytest.raises((ValueError, InvalidOperationError), match=words):
        kernel([line], [("x", (ROWS, COLS), dtype)], ((ROWS, COLS), dtype), target)


def test_histogram_is_of_the_950():
    params = [("x", (ROWS, COLS), "UINT16"), ("i", (ROWS, 1), "UINT8")]
    with pytest.raises(ValueError, match="tile.histogram on Ascend910B"):
        kernel(["made = pl.histogram(x, i)"], params, ((ROWS, 256), "UINT32"), "910B")


def test_a_negative_integer_power_is_an_error():
    x, y = numbers("INT32", (ROWS, COLS), 1), np.full((ROWS, COLS), -1, np.int32)
    params = [(n, (ROWS, COLS), "INT32") for n in ("x", "y")]
    with pytest.raises(ValueError, match="negative power"):
        kernel(["made = pl.pow(x, y)"], params, ((ROWS, COLS), "INT32"), "910B")(x, y, np.zeros_like(x))


def drained(op, target="910B", acc="pl.tile.matmul(a, b)", words="[1, 64], pl.UINT64", to="INT8"):
    return pl.compile(pl.parse(f"""
import pypto.language as pl
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[32, 64], pl.FP32], w: pl.Tensor[[64, 64], pl.FP32], q: pl.Tensor[{words}],
      y: pl.Out[pl.Tensor[[32, 64], pl.{to}]]):
    a = pl.load(x, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
    b = pl.load(w, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
    acc = {acc}
    words = pl.load(q, [0, 0], {words[: words.index("]") + 1]}, target_memory=pl.Mem.Mat)
    {op}
"""), target=TARGETS[target], dump_passes=False, skip_ptoas=True)  # fmt: skip


def test_what_leaves_through_the_fix_pipe_is_refused_with_the_reason():
    store = "y = pl.tile.store_fp(acc, words, [0, 0], y)"
    drained(store)
    for given, message in (
        ({"to": "FP16"}, "quantizes accumulators of FP32 to INT8, UINT8 or INT32 to .*, not FP32 to FP16"),
        ({"to": "INT16"}, "gives INT8, UINT8, FP16, BF16, FP8E4M3FN, not INT16"),
        ({"words": "[1, 64], pl.FP32"}, "requires scale UINT64 words.*fix_pipe_words"),
        ({"words": "[1, 32], pl.UINT64"}, "a word for each column of \\[32, 64\\] fp32, got \\[1, 32\\]"),
        ({"words": "[1, 65], pl.UINT64"}, "a multiple of 16 of them"),
        ({"acc": "pl.load(x, [0, 0], [32, 64])"}, "takes tile in Acc, got Vec.*pl.quant"),
    ):
        with pytest.raises((ValueError, InvalidOperationError), match=f"(?s){message}"):
            drained(store, **given)
    drained(store, "950", to="FP16")
    past = "y = pl.store(pl.tile.matmul(pl.tile.extract_fp(acc, words, 16, 0, [32, 64], dtype=pl.INT8), b), [0, 0], y)"
    with pytest.raises((ValueError, InvalidOperationError), match="past the end|exceeds|outside"):
        drained(past)


def test_groups_of_a_block_scaled_operand_are_whole_and_have_their_outputs():
    def made(shape=(64, 64), exp=(2, 64), most=(2, 64), axis=0, dtype="FP32", target="950", kind="UINT8"):
        body = [
            f"e = pl.create_tile({list(exp)}, dtype=pl.{kind})",
            f"most = pl.create_tile({list(most)}, dtype=pl.FP32)",
            f"factor = pl.create_tile({list(most)}, dtype=pl.FP32)",
            f"made = pl.quant_mx(t, e, most, factor, axis={axis})",
        ]
        return kernel(body, [("t", shape, dtype)], (shape, "INT8"), target)

    made()
    for wrong, message in (
        ({"target": "910B"}, "no such instruction"),
        ({"dtype": "FP16"}, "FP32"),
        ({"axis": 2}, "groups along axis 0 or 1, not 2"),
        ({"shape": (48, 64)}, "a whole tile of groups of 32 along axis 0, got"),
        ({"exp": (4, 64)}, "requires exp .2, 64. uint8, one element a group, got .4, 64."),
        ({"most": (2, 32)}, "requires max .2, 64. fp32, one element a group"),
        ({"kind": "INT8"}, "UINT8"),
    ):
        with pytest.raises((ValueError, InvalidOperationError), match=message):
            made(**wrong)
