"""Scratch the 910B's library would write past, or read wrongly, is refused there; the 950 uses none."""

import pytest

import pypto.language as pl
from pypto.errors import Diagnosed

HEAD = "import pypto.language as pl\n@pl.function(type=pl.FunctionType.InCore)\n"


def compile_with(target, scratch, use, dtype, shape, out):
    text = (
        f"{HEAD}def k(x: pl.Tensor[{shape}, pl.{dtype}], v: pl.Tensor[[{shape[0]}, 1], pl.{dtype}], "
        f"n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[64, 1024], pl.{out}]]):\n"
        f"    a = pl.load(x, [0, 0], {shape})\n    c = pl.load(v, [0, 0], [{shape[0]}, 1])\n"
        f"    tmp = {scratch}\n    b = {use}\n    pl.store(b, [0, 0], y)\n"
    )
    return pl.compile(pl.parse(text), target=target, dump_passes=False, skip_ptoas=True)


def check(scratch, use, dtype, shape, out, message):
    compile_with("Ascend950", scratch, use, dtype, shape, out)
    if message is None:
        compile_with("Ascend910B", scratch, use, dtype, shape, out)
        return
    with pytest.raises(ValueError, match=message) as caught:
        compile_with("Ascend910B", scratch, use, dtype, shape, out)
    assert isinstance(caught.value, Diagnosed) and caught.value.span is not None and caught.value.span.begin_line == 7


def new(rows, columns, dtype):
    return f"pl.create_tile([{rows}, {columns}], dtype=pl.{dtype})"


REM, REMS = "pl.tile.rem(a, a, tmp)", "pl.tile.rems(a, 3.0, tmp)"


@pytest.mark.parametrize(
    ("scratch", "use", "message"),
    [
        (new(1, 64, "FP32"), REM, "2 valid rows of 64 columns"),
        (new(2, 32, "FP32"), REM, "2 valid rows of 64 columns"),
        (new(2, 64, "INT32"), REM, "must have the element type FP32"),
        (new(2, 64, "FP32"), REM, None),
        ("pl.slice(pl.create_tile([2, 64], dtype=pl.FP32), [2, 64], [0, 0], valid_shape=[2, n])", REM, None),
        (new(1, 32, "FP32"), REMS, "1 valid row of 64 columns"),
        (new(1, 64, "FP32"), REMS, None),
    ],
)
def test_remainders(scratch, use, message):
    check(scratch, use, "FP32", [16, 64], "FP32", message)


@pytest.mark.parametrize("use", ["pl.tile.xor(a, a, tmp)", "pl.tile.xors(a, 3, tmp)"])
@pytest.mark.parametrize(
    ("scratch", "message"),
    [
        (new(16, 64, "INT32"), "must have the element type INT16"),
        (new(8, 64, "INT16"), "16x64 elements, those of"),
        (new(16, 64, "INT16"), None),
    ],
)
def test_exclusive_or(scratch, use, message):
    check(scratch, use, "INT16", [16, 64], "INT16", message)


@pytest.mark.parametrize(
    ("rows", "scratch"),
    [
        (16, new(1, 64, "FP32")),
        (16, new(2, 64, "FP32")),
        (16, new(2, 64, "INT32")),
        (1024, new(1, 1912, "FP32")),
        (1024, new(1, 1920, "FP32")),
    ],
)
@pytest.mark.parametrize("name", ["add", "max"])
def test_rows_expanded_in_scratch_that_will_not_do_are_given_other(rows, scratch, name):
    use = f"pl.slice(pl.tile.row_expand_{name}(a, c, tmp), [16, 8], [0, 0])"
    check(scratch, use, "FP32", [rows, 8], "FP32", None)


def test_a_block_of_copies_takes_no_scratch():
    block = "pl.tile.row_expand_add(a, pl.slice(a, [16, 8], [0, 0]), tmp)"
    check(new(4, 64, "FP32"), block, "FP32", [16, 64], "FP32", "'tmp' goes with a column, whose rows it spreads")


@pytest.mark.parametrize(
    ("use", "dtype", "scratch", "message"),
    [
        ("col_argmax", "FP32", new(1, 32, "FP32"), "64 elements, or the shape of"),
        ("col_argmax", "FP32", new(1, 64, "FP32"), None),
        ("col_argmin", "FP16", new(1, 256, "FP16"), "384 elements"),
        ("col_argmin", "FP16", new(16, 256, "FP16"), None),
        ("col_argmin", "FP16", new(1, 384, "FP16"), None),
    ],
)
def test_places_of_extremes(use, dtype, scratch, message):
    check(scratch, f"pl.tile.{use}(a, tmp)", dtype, [16, 256], "INT32", message)


@pytest.mark.parametrize(
    ("dtype", "scratch", "message"),
    [
        ("FP32", new(16, 16, "FP32"), "4096 bytes, the 16x64 elements"),
        ("FP32", new(16, 64, "FP32"), None),
        ("INT8", new(16, 64, "INT8"), None),
        ("FP16", new(1, 32, "FP16"), "2048 bytes"),
    ],
)
def test_transposition(dtype, scratch, message):
    shape = [16, 64] if dtype != "INT8" else [32, 64]
    scratch = scratch.replace("[16, 64]", str(shape))
    check(scratch, "pl.tile.transpose(a, 0, 1, tmp)", dtype, shape, dtype, message)


def test_selection_keeps_its_scalar_in_an_element():
    use = "pl.tile.sels(pl.tile.cmps(a, 0, cmp_type=0), a, tmp, 1)"
    for scratch in (new(1, 32, "UINT8"), new(1, 64, "INT32")):
        text = compile_with("Ascend910B", scratch, use, "INT32", [16, 64], "INT32").pto["k"]
        assert "dtype=i32" in next(line for line in text.splitlines() if "pto.tsels" in line).split("outs")[0]
    check(new(1, 8, "INT32"), use, "INT32", [16, 64], "INT32", None)


@pytest.mark.parametrize(
    ("scratch", "message"), [(new(8, 32, "FP32"), "element type INT32"), (new(8, 8, "INT32"), "8x32")]
)
def test_gather(scratch, message):
    text = (
        f"{HEAD}def k(x: pl.Tensor[[16, 64], pl.FP32], p: pl.Tensor[[8, 32], pl.INT32], "
        "y: pl.Out[pl.Tensor[[8, 32], pl.FP32]]):\n"
        f"    a = pl.load(x, [0, 0], [16, 64])\n    i = pl.load(p, [0, 0], [8, 32])\n    tmp = {scratch}\n"
        "    pl.store(pl.tile.gather(a, i, tmp), [0, 0], y)\n"
    )
    pl.compile(pl.parse(text), target="Ascend950", dump_passes=False, skip_ptoas=True)
    with pytest.raises(ValueError, match=message):
        pl.compile(pl.parse(text), target="Ascend910B", dump_passes=False, skip_ptoas=True)


@pytest.mark.parametrize("target", ["Ascend910B", "Ascend950"])
@pytest.mark.parametrize(
    ("valid", "scratch"),
    [
        ("[8, 40]", new(1, 32, "FP32")),
        ("[8, n]", new(1, 32, "FP32")),
        ("[8, 40]", new(1, 64, "INT32")),
        ("[8, 40]", new(1, 64, "FP32")),
        ("[8, 32]", new(1, 8, "FP32")),
    ],
)
def test_sorting_of_rows_that_are_no_whole_blocks(target, valid, scratch):
    text = (
        f"{HEAD}def k(x: pl.Tensor[[8, 64], pl.FP32], p: pl.Tensor[[8, 64], pl.UINT32], n: pl.Scalar[pl.INDEX], "
        "y: pl.Out[pl.Tensor[[8, 128], pl.FP32]]):\n"
        f"    a = pl.load(x, [0, 0], [8, 64], valid_shape={valid})\n    i = pl.load(p, [0, 0], [8, 64])\n"
        f"    tmp = {scratch}\n    pl.store(pl.tile.sort32(a, i, tmp), [0, 0], y)\n"
    )
    made = pl.compile(pl.parse(text), target=target, dump_passes=False, skip_ptoas=True).pto["k"]
    sorts = [line for line in made.splitlines() if "pto.tsort32" in line]
    assert len(sorts) == 1 and sorts[0].split("outs")[0].count("dtype=f32") == 2
