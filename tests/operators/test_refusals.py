"""What an operator cannot do is refused with the reason, at the line of the kernel."""

import numpy as np
import pytest
from operator_harness import compile_text
from operator_values import fill

from pypto.backend import ASCEND910B, ASCEND950
from pypto.dtypes import DataType


def kernel(*lines, columns=64, dtype="FP32"):
    body = "\n".join(f"    {line}" for line in lines)
    tensor = f"pl.Tensor[[16, {columns}], pl.{dtype}]"
    return (
        "@pl.function(type=pl.FunctionType.InCore)\n"
        f"def k(x: {tensor}, m: pl.Scalar[pl.INDEX], n: pl.Scalar[pl.INDEX], y: pl.Out[{tensor}]):\n{body}\n"
    )


LOAD = "t = pl.load(x, [0, 0], [16, 64], valid_shape=[m, n])"


@pytest.mark.parametrize(
    ("lines", "dtype", "target", "message"),
    [
        (
            (LOAD, "pl.store(pl.tile.add(t, t), [0, 0], y)"),
            "BF16",
            ASCEND910B,
            "tile.add takes tiles of .* not BF16, on Ascend910B",
        ),
        (
            (LOAD, "pl.store(pl.tile.divs(t, 3), [0, 0], y)"),
            "UINT8",
            ASCEND950,
            "tile.divs takes tiles of .* not UINT8, on Ascend950",
        ),
        (
            (LOAD, "s = pl.tile.cmp(t, t, cmp_type=2)", "pl.store(pl.tile.sel(s, t, t, s), [0, 0], y)"),
            "INT32",
            ASCEND910B,
            "tile.cmp on Ascend910B: .*INT32 for equality only",
        ),
        ((LOAD, "pl.store(pl.tile.col_prod(t), [0, 0], y)"), "INT8", ASCEND950, "tile.col_prod takes .* not INT8"),
    ],
)
def test_at_compile_time(lines, dtype, target, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        compile_text(kernel(*lines, dtype=dtype), target)
    assert "<pypto text" in str(caught.value) and "^" in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "m", "n", "message"),
    [
        ((LOAD, "tmp = pl.create_tile([16, 64], dtype=pl.FP32)",
          "pl.store(pl.tile.row_expand_sub(t, pl.tile.row_sum(t, tmp)), [0, 0], y)"), 5, 0, "nothing to reduce in 5x0"),
        ((LOAD, "pl.store(pl.tile.col_max(t), [0, 0], y)"), 0, 7, "nothing to reduce in 0x7"),
        ((LOAD, "pl.store(t, [m, 0], y)"), 9, 64, "9..18 of axis 0, which has 16"),
        ((LOAD, "pl.store(pl.tile.slice(t, [8, 64], [m, 0]), [0, 0], y)"), 9, 64, "8x64 at .9, 0. leaves a tile"),
    ],
)  # fmt: skip
def test_when_it_runs(lines, m, n, message):
    compiled = compile_text(kernel(*lines), ASCEND910B)
    x, y = np.ones((16, 64), np.float32), fill(np.dtype(np.float32), (16, 64))
    with pytest.raises(ValueError, match=message) as caught:
        compiled(x, m, n, y)
    assert "<pypto text" in str(caught.value)


NUMBERS = """
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[16, 64], pl.{dtype}], s: pl.Scalar[pl.{scalar}], y: pl.Out[pl.Tensor[[16, 64], pl.{dtype}]]):
    t = pl.load(x, [0, 0], [16, 64])
    tmp = pl.create_tile([16, 64], dtype=pl.{dtype})
    pl.store({use}, [0, 0], y)
"""


@pytest.mark.parametrize("use", ["pl.tile.shls(t, s)", "pl.tile.shrs(t, s)"])
@pytest.mark.parametrize("target", [ASCEND910B, ASCEND950])
def test_a_count_of_bits_is_not_negative(use, target):
    compiled = compile_text(NUMBERS.format(dtype="INT16", scalar="INT16", use=use), target)
    x = np.ones((16, 64), np.int16)
    compiled(x, 3, np.zeros_like(x))
    with pytest.raises(ValueError, match="a shift by -1: counts are 0 or greater") as caught:
        compiled(x, -1, np.zeros_like(x))
    assert "<pypto text" in str(caught.value)


@pytest.mark.parametrize("use", ["pl.tile.rems(t, s, tmp)", "pl.tile.rem(t, tmp2, tmp)"])
def test_remainders_the_910b_would_round_are_refused(use):
    source = NUMBERS.format(dtype="INT32", scalar="INT32", use=use)
    if "tmp2" in use:
        source = source.replace("    tmp =", "    tmp2 = pl.tile.full([16, 64], pl.INT32, s)\n    tmp =")
    x = np.full((16, 64), 1 << 24, np.int32)
    for target, limit in ((ASCEND910B, True), (ASCEND950, False)):
        compiled, y = compile_text(source, target), np.zeros_like(x)
        compiled(x, 7, y)
        assert (y == (1 << 24) % 7).all()
        for far, scalar in (((1 << 24) + 1, 7), (5, -(1 << 24) - 1)):
            if not limit:
                compiled(np.full_like(x, far), scalar, y)
                assert (y == far % scalar).all()
                continue
            with pytest.raises(ValueError, match="is beyond 2\\*\\*24, and a2a3 computes remainders in f32"):
                compiled(np.full_like(x, far), scalar, y)


GATHERED = """
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[16, 64], pl.FP32], p: pl.Tensor[[8, 32], pl.INT32], n: pl.Scalar[pl.INDEX],
      y: pl.Out[pl.Tensor[[8, 32], pl.FP32]]):
    t = pl.load(x, [0, 0], [16, 64])
    i = pl.load(p, [0, 0], [8, 32], valid_shape=[8, {valid}])
    tmp = pl.create_tile([8, 32], dtype=pl.INT32)
    pl.store(pl.tile.gather(t, i, tmp), [0, 0], y)
"""


@pytest.mark.parametrize("target", [ASCEND910B, ASCEND950])
def test_gathered_rows_have_no_gaps(target):
    with pytest.raises(ValueError, match="must have all its 32 columns valid, got 20(?s:.*)pl.set_validshape"):
        compile_text(GATHERED.format(valid=20), target)
    compiled = compile_text(GATHERED.format(valid="n"), target)
    x, p, y = np.ones((16, 64), np.float32), np.zeros((8, 32), np.int32), np.zeros((8, 32), np.float32)
    compiled(x, p, 32, y)
    assert (y == 1).all()
    with pytest.raises(ValueError, match="must have all its 32 columns valid, got 20"):
        compiled(x, p, 20, y)


BLOCK = """
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[16, 64], pl.FP32], v: pl.Tensor[[16, 8], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    pl.store(pl.tile.row_expand_{name}(pl.load(x, [0, 0], [16, 64]), pl.load(v, [0, 0], [16, 8])), [0, 0], y)
"""


@pytest.mark.parametrize("name", ["add", "mul", "max"])
def test_a_block_that_expands_holds_copies_of_one_value(name):
    compiled = compile_text(BLOCK.format(name=name), ASCEND910B)
    x, v = np.ones((16, 64), np.float32), np.repeat(np.arange(16, dtype=np.float32)[:, None], 8, axis=1)
    v[3] = np.nan
    y = np.zeros_like(x)
    compiled(x, v, y)
    with np.errstate(all="ignore"):
        want = {"add": x + v[:, :1], "mul": x * v[:, :1], "max": np.maximum(x, v[:, :1])}[name]
    np.testing.assert_array_equal(y, want)
    v[5, 7] += 1
    with pytest.raises(ValueError, match="must hold copies of one value in the 32 bytes of a row"):
        compiled(x, v, y)


RANDOM = """
@pl.function(type=pl.FunctionType.InCore)
def k(y: pl.Out[pl.Tensor[[16, 64], pl.{dtype}]]):
    pl.store(pl.tile.random(1, 2, 3, 4, 5, 6, [16, 64], dtype=pl.{dtype}, rounds={rounds}), [0, 0], y)
"""


@pytest.mark.parametrize("dtype", ["INT32", "UINT32"])
@pytest.mark.parametrize("rounds", [7, 10])
def test_random_numbers_are_those_of_a_device_and_one_target_has_them(dtype, rounds):
    source = RANDOM.format(dtype=dtype, rounds=rounds)
    with pytest.raises(ValueError, match="tile.random on Ascend910B: .*has no such instruction"):
        compile_text(source, ASCEND910B)
    compiled = compile_text(source, ASCEND950)
    assert "pto.trandom ins(" in compiled.pto["k"]
    with pytest.raises(ValueError, match="its generator is not specified publicly"):
        compiled(np.zeros((16, 64), dtype.lower()))


FP4 = """
C = pl.dynamic("C")

@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[{shape}, pl.FP4], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[16, 128], pl.BF16]]):
    {body}
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("pl.store(pl.cast(pl.load(x, [0, n], [16, 64]), pl.BF16), [0, 0], y)", "an offset n of FP4 .*write 2 \\* n"),
        ("pl.store(pl.cast(pl.load(x, [0, 1], [16, 64]), pl.BF16), [0, 0], y)", "an offset 1 of FP4 elements is not"),
        ("t = pl.load(x, [0, 0], [16, 64], valid_shape=[16, n])\n    pl.store(pl.cast(t, pl.BF16), [0, 0], y)",
         "an extent n of FP4 elements is not known to be even"),
        ("t = pl.slice(pl.load(x, [0, 0], [16, 128]), [16, 64], [0, 0])\n    pl.store(pl.cast(t, pl.BF16), [0, 0], y)",
         "FP4 elements share bytes: they are loaded, stored and cast only.*pl.BF16"),
        ("t = pl.load(x, [0, 0], [16, 64])\n    pl.store(pl.cast(pl.add(t, t), pl.BF16), [0, 0], y)", "FP4"),
        ("pl.store(pl.cast(pl.load(x, [0, 0], [16, 32]), pl.BF16), [0, 0], y)", "not a multiple of 32 bytes"),
    ],
)  # fmt: skip
def test_elements_that_share_bytes_are_refused_where_they_cannot_be_counted(body, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        compile_text(FP4.format(shape="[16, 128]", body=body), ASCEND950)


def test_arrays_of_elements_that_share_bytes_have_even_rows():
    body = "pl.store(pl.cast(pl.load(x, [0, 0], [16, 64]), pl.BF16), [0, 0], y)"
    with pytest.raises(ValueError, match="no native cast path from fp4 to bfloat16"):
        compile_text(FP4.format(shape="[16, 128]", body=body), ASCEND910B)
    compiled = compile_text(FP4.format(shape="[16, C]", body=body), ASCEND950)
    with pytest.raises(ValueError, match="rows of 65 FP4 elements, and two share a byte"):
        compiled(np.zeros((16, 65), DataType.FP4.numpy), 0, np.zeros((16, 128), DataType.BF16.numpy))
    numbers = (np.arange(16 * 200) * 3 % 16).astype(np.uint8).reshape(16, 200)
    x, y = numbers.view(DataType.FP4.numpy)[:, ::2], np.zeros((16, 128), DataType.BF16.numpy)
    fixed = np.ascontiguousarray(x)
    fixed.setflags(write=False)
    compiled(fixed, 0, np.zeros_like(y))
    compiled(x, 0, y)
    np.testing.assert_array_equal(y[:, :64].astype(np.float32), x[:, :64].astype(np.float32))
    assert not y[:, 64:].any()
