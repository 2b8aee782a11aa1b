"""What a target has no instruction for is refused at the user's line, before any text is written."""

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.backend import ASCEND910B, ASCEND950
from pypto.backend.targets import TARGETS
from pypto.codegen import PTOCodegen, generate_pto
from pypto.errors import Diagnosed, VerificationError
from pypto.ir.pass_manager import OptimizationStrategy, PassManager

HEAD = "import pypto.language as pl\n@pl.function(type=pl.FunctionType.InCore)\n"


def compile_lines(target, lines, dtype="FP32", shape=(16, 64), out=None, extra=""):
    """A kernel that loads ``a`` and stores ``b``; the first of ``lines`` is line 5 of its text."""
    out = out or dtype
    parameters = f"x: pl.Tensor[{list(shape)}, pl.{dtype}], {extra}y: pl.Out[pl.Tensor[{list(shape)}, pl.{out}]]"
    body = [f"a = pl.load(x, [0, 0], {list(shape)})", *lines, "pl.store(b, [0, 0], y)"]
    text = HEAD + f"def k({parameters}):\n" + "".join(f"    {line}\n" for line in body)
    return pl.compile(pl.parse(text), target=target, dump_passes=False, skip_ptoas=True)


def refusal(*args, **kwargs):
    with pytest.raises(ValueError) as caught:
        compile_lines(*args, **kwargs)
    error = caught.value
    assert isinstance(error, Diagnosed) and type(error).__name__ != "PtoError"
    return error


# Element types.

ONLY_ON_950 = [
    ("b = pl.add(a, a)", "INT8"), ("b = pl.add(a, a)", "BF16"), ("b = pl.sub(a, a)", "INT8"),
    ("b = pl.maximum(a, a)", "INT8"), ("b = pl.mul(a, 3)", "BF16"), ("b = pl.row_expand_add(a, pl.load(c, [0, 0], "
    "[32, 1]))", "INT8"), ("b = pl.tile.addc(a, a, a)", "BF16"), ("b = pl.neg(a)", "BF16"),
    ("b = pl.div(a, a)", "INT32"), ("b = pl.tile.part_add(a, a)", "BF16"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "dtype"), ONLY_ON_950)
def test_element_types_one_target_lacks(line, dtype):
    extra = f"c: pl.Tensor[[32, 1], pl.{dtype}], "
    shape = (32, 64)
    compile_lines("Ascend950", [line], dtype, shape, extra=extra)
    error = refusal("Ascend910B", [line], dtype, shape, extra=extra)
    assert "Ascend910B" in error.message and f"not {dtype}" in error.message and "FP32" in error.message
    assert error.span is not None and error.span.begin_line == 5


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(
    ("line", "dtype", "takes"),
    [
        ("b = pl.exp(a)", "BF16", "FP16 or FP32"),
        ("b = pl.mul(a, a)", "BF16", "FP16 or FP32"),
        ("b = pl.tile.relu(a)", "INT16", "INT32, FP16 or FP32"),
    ],
)
def test_element_types_no_target_has(target, line, dtype, takes):
    with pytest.raises((ValueError, Diagnosed)) as caught:
        compile_lines(target, [line], dtype)
    assert dtype in str(caught.value).upper()


def test_the_hint_names_a_cast_the_target_has():
    assert "pl.cast(x, pl.FP16)" in str(refusal(ASCEND910B, ["b = pl.add(a, a)"], "INT8"))
    assert "pl.cast(x, pl.FP32)" in str(refusal(ASCEND910B, ["b = pl.add(a, a)"], "BF16"))


# Comparisons.

def test_integers_compare_for_equality_only_on_the_910b():
    error = refusal("Ascend910B", ["m = pl.cmp(a, a, cmp_type=2)", "b = a"], "INT32")
    assert "equality only" in error.message and "FP32" in error.message
    compile_lines("Ascend910B", ["m = pl.cmp(a, a, cmp_type=0)", "b = pl.add(a, a)"], "INT32")
    compile_lines("Ascend950", ["m = pl.cmp(a, a, cmp_type=2)", "b = pl.add(a, a)"], "INT32")


# Instructions one target has.


@pytest.mark.parametrize("target", ["Ascend910B", "Ascend950"])
def test_what_no_target_has_an_instruction_for_is_written_with_others(target):
    compile_lines(target, ["b = pl.add_relu(a, a)"])


# Extents and layouts.


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(
    ("dtype", "shape", "what"), [("FP32", (16, 4), "a row of 4 FP32"), ("FP16", (16, 8), "a row of 8 FP16")]
)
def test_rows_that_are_no_whole_blocks(target, dtype, shape, what):
    error = refusal(target, ["b = pl.add(a, a)"], dtype, shape)
    assert what in error.message and "32 bytes" in error.message and "valid_shape" in str(error)
    assert error.span is not None and error.span.begin_line == 4


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_a_column_expand_of_more_than_one_row(target):
    lines = ["r = pl.load(x, [0, 0], [2, 64])", "b = pl.col_expand_mul(a, r)"]
    with pytest.raises(Diagnosed, match=r"\[1, N\]"):
        compile_lines(target, lines)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_scratch_of_the_wrong_shape(target):
    lines = ["s = pl.tile.create([16, 32], pl.FP32)", "c = pl.set_validshape(s, 16, 32)",
             "b = pl.pow(a, a, c)"]  # fmt: skip
    with pytest.raises(Diagnosed, match="shape"):
        compile_lines(target, lines)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_a_histogram_is_checked_where_it_exists(target):
    text = HEAD + (
        "def k(x: pl.Tensor[[32, 64], pl.UINT16], i: pl.Tensor[[32, 1], pl.UINT8], "
        "y: pl.Out[pl.Tensor[[32, 256], pl.UINT32]]):\n"
        "    a = pl.load(x, [0, 0], [32, 64])\n    c = pl.load(i, [0, 0], [32, 1])\n"
        "    b = pl.histogram(a, c)\n    pl.store(b, [0, 0], y)\n"
    )
    if target is ASCEND950:
        pl.compile(pl.parse(text), target=target, skip_ptoas=True)
    else:
        with pytest.raises(ValueError, match="has no such instruction"):
            pl.compile(pl.parse(text), target=target, skip_ptoas=True)


# Products and accumulators.


def product(dtype, out, target):
    text = HEAD + (
        f"def k(x: pl.Tensor[[32, 64], pl.{dtype}], w: pl.Tensor[[64, 32], pl.{dtype}], "
        f"y: pl.Out[pl.Tensor[[32, 32], pl.{out}]]):\n"
        "    a = pl.move(pl.load(x, [0, 0], [32, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)\n"
        "    b = pl.move(pl.load(w, [0, 0], [64, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)\n"
        "    c = pl.matmul(a, b)\n    pl.store(c, [0, 0], y)\n"
    )
    return pl.compile(pl.parse(text), target=target, skip_ptoas=True)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(
    ("dtype", "out", "legal"),
    [("FP16", "FP32", True), ("FP16", "FP16", True), ("FP16", "BF16", True), ("FP16", "INT32", False),
     ("INT8", "INT32", True), ("INT8", "FP32", False), ("INT8", "INT8", False), ("FP32", "INT8", False)],
)  # fmt: skip
def test_what_an_accumulator_is_stored_as(target, dtype, out, legal):
    if legal:
        product(dtype, out, target)
        return
    with pytest.raises((ValueError, Diagnosed, VerificationError)) as caught:
        product(dtype, out, target)
    assert "PtoError" not in type(caught.value).__name__


# Refused before text is written, and nothing legal is refused.


def test_the_check_comes_before_the_text(monkeypatch):
    from pypto.codegen import module

    def render(*_):
        raise AssertionError("text was written")

    monkeypatch.setattr(module, "render_module", render)
    refusal(ASCEND910B, ["b = pl.add(a, a)"], "INT8")


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_what_passes_verifies_and_runs(target):
    compiled = compile_lines(target, ["b = pl.mul(pl.exp(a), 2.0)"])
    x = np.linspace(-2, 2, 16 * 64, dtype=np.float32).reshape(16, 64)
    y = np.zeros_like(x)
    compiled(x, y)
    np.testing.assert_allclose(y, 2 * np.exp(x), rtol=1e-6)


def test_nested_blocks_are_checked_too():
    lines = ["b = a", "for i in pl.range(2):", "    b = pl.add(b, a)"]
    error = refusal(ASCEND910B, lines, "INT8")
    assert error.span is not None and error.span.begin_line == 7


def test_text_for_another_target_is_checked_for_that_target():
    lowered = compile_lines(ASCEND950, ["b = pl.add(a, a)"], "INT8").lowered
    elsewhere = "on Ascend910B; not supported on the 'a2a3' backend, only supported on the 'a5' backend"
    for write in (lambda: generate_pto(lowered, ASCEND910B), lambda: PTOCodegen(ASCEND910B).generate(lowered)):
        with pytest.raises(ValueError, match=elsewhere):
            write()


def test_plain_text_generation_leaves_to_ptoas_what_ptoas_says():
    lowered = compile_lines(ASCEND950, ["b = pl.cast(pl.cmp(a, a, cmp_type=2), pl.FP16)"], "INT32", out="FP16").lowered
    assert "pto.tcmp" in PTOCodegen(ASCEND910B).generate(lowered)
    with pytest.raises(ValueError, match="compares INT32 for equality only"):
        generate_pto(lowered, ASCEND910B)


def test_an_accumulator_is_not_loaded():
    source = """
import pypto.language as pl

@pl.program
class Kernels:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, a: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
               ) -> pl.Tensor[[16, 16], pl.FP32]:
        t = pl.load(a, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
        y = pl.store(pl.tile.matmul_acc(t, t, t), [0, 0], y)
        return y
"""
    with pytest.raises(ValueError, match="no move from mat to acc on Ascend950") as caught:
        pl.compile(pl.parse(source), target="Ascend950")
    assert "pl.tile.matmul_acc(t, t, t)" in str(caught.value)
    assert "start an accumulator with pl.matmul" in str(caught.value)


# Operands that must not share bytes, and scratch of the right shape.

SELECT = ["m = pl.tile.cmps(a, 0, cmp_type=0)", "w = pl.tile.create([16, 96], pl.INT32)"]


@pytest.mark.parametrize(
    ("scratch", "source", "overlap"),
    [
        ("a", "a", "tmp overlaps src in memory"),
        ("pl.reinterpret_view(m, pl.INT32)", "a", "tmp overlaps mask in memory"),
        ("pl.slice(w, [16, 64], [0, 0])", "pl.slice(w, [16, 64], [0, 32])", "tmp overlaps src in memory"),
        ("pl.slice(w, [16, 32], [0, 0])", "pl.slice(w, [16, 64], [0, 32])", None),
        ("pl.slice(w, [8, 64], [8, 0])", "a", None),
    ],
)
def test_scratch_is_apart_from_what_is_read_on_the_target_that_uses_it(scratch, source, overlap):
    lines = [*SELECT, f"b = pl.tile.sels(m, {source}, {scratch}, 1)"]
    compile_lines("Ascend950", lines, "INT32")
    if overlap is None:
        compile_lines("Ascend910B", lines, "INT32")
        return
    error = refusal("Ascend910B", lines, "INT32")
    assert overlap in error.message and error.span is not None and error.span.begin_line == 7
    assert error.hint == "give tmp a tile of its own"


@pytest.mark.parametrize(
    ("scratch", "message"),
    [
        ("pl.tile.create([17, 64], pl.INT8)", "A2/A3 requires UINT8 tmp scratch, got INT8"),
        ("pl.tile.create([16, 64], pl.UINT8)", "'tmp' needs 17 physical rows, one more than the result, got 16"),
        ("pl.load(c, [0, 0], [17, 64], valid_shape=[17, 4])", "'tmp' needs 8 valid columns"),
        ("pl.load(c, [0, 0], [17, 64], valid_shape=[17, n])", "'tmp' needs 8 valid columns"),
        ("pl.tile.create([17, 64], pl.UINT8)", None),
    ],
)
def test_prelu_keeps_masks_in_its_scratch_on_one_target(scratch, message):
    lines = [f"t = {scratch}", "b = pl.tile.prelu(a, pl.neg(a), t)"]
    extra = "c: pl.Tensor[[17, 64], pl.UINT8], n: pl.Scalar[pl.INDEX], "
    compile_lines("Ascend950", lines, extra=extra)
    if message is None:
        compile_lines("Ascend910B", lines, extra=extra)
        return
    assert message in refusal("Ascend910B", lines, extra=extra).message


def test_prelu_reads_two_tiles_apart_on_one_target():
    lines = ["t = pl.tile.create([17, 64], pl.UINT8)", "b = pl.tile.prelu(a, a, t)"]
    compile_lines("Ascend950", lines)
    assert "src overlaps slope in memory" in refusal("Ascend910B", lines).message


@pytest.mark.parametrize(
    ("index", "columns", "message"),
    [("[16, 1]", 64, r"requires idx shape \[1, R\]"), ("[1, 16]", 20, "32-byte aligned"), ("[1, 16]", 64, None)],
)
def test_rows_are_gathered_by_a_row_of_indices_into_whole_blocks_on_one_target(index, columns, message):
    text = f"""{HEAD}def rows(
    table: pl.Tensor[[64, {columns}], pl.FP16],
    at: pl.Tensor[{index}, pl.INT32],
    out: pl.Out[pl.Tensor[[16, {columns}], pl.FP16]],
):
    places = pl.load(at, [0, 0], {index})
    pl.store(pl.tile.mgather(table, places, coalesce="row"), [0, 0], out)
"""
    lowered = PassManager.get_strategy(OptimizationStrategy.Default).run_passes(ir.Program([pl.parse(text)], "rows"))
    assert "pto.mgather" in PTOCodegen(ASCEND950).generate(lowered)
    if message is None:
        assert "pto.mgather" in PTOCodegen(ASCEND910B).generate(lowered)
        return
    with pytest.raises(ValueError, match=message):
        PTOCodegen(ASCEND910B).generate(lowered)


# Scalars that meet elements.


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(
    ("use", "shown"),
    [
        ("pl.tile.adds(a, 1.5)", "1.5"),
        ("pl.tile.muls(a, s)", "fp32"),
        ("pl.tile.maximums(a, float('inf'))", "inf"),
        ("pl.tile.cmps(a, -0.5, cmp_type=0)", "-0.5"),
        ("pl.tile.adds(a, 2.0)", None),
        ("pl.tile.muls(a, pl.cast(s, pl.INT32))", None),
    ],
)
def test_a_fraction_does_not_become_an_integer_element(target, use, shown):
    line = f"b = pl.tile.sels({use}, a, pl.create_tile([1, 8], dtype=pl.INT32), 1)" if "cmps" in use else f"b = {use}"
    extra = "s: pl.Scalar[pl.FP32], "
    if shown is None:
        compile_lines(target.name, [line], "INT32", extra=extra)
        return
    error = refusal(target.name, [line], "INT32", extra=extra)
    assert f"takes 'rhs' as an element, int32, and {shown} would lose its fraction" in error.message
    assert error.hint is not None and "pl.cast(rhs, pl.INT32)" in error.hint
    assert error.span is not None and error.span.begin_line == 5


# Arguments no pass may meet.

WINDOWS = "x2: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX], w: pl.Tensor[[64, 64], pl.FP32], "


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("b = pl.tile.gather_row(a, w, [1], [0, 0], [16, 64])", r"requires dst_offset with as many dimensions"),
        ("b = pl.tile.gather_row(a, w, [0, 0], [0, 0, 0], [16, 64])", "requires src_offset with as many dimensions"),
        ("b = pl.tile.gather_row(a, w, [0, 0], [0, 0], [16])", "requires shapes with as many dimensions"),
        ("b = pl.tile.gather_row(a, w, [0, 0], [56, 0], [16, 64])", "reads past the end of dimension 0"),
        ("b = pl.tile.gather_row(a, w, [0, 0], [-1, 0], [16, 64])", "provably negative in dimension 0"),
        ("b = pl.tile.gather_row(a, w, [8, 0], [0, 0], [16, 64])", "writes past the end of dimension 0 of acc"),
        ("b = pl.tile.gather_row(a, w, [0, 0], [56, 0], [16, 64], valid_shape=[8, 64])", None),
        ("b = pl.tile.gather_row(a, w, [n, 0], [n, 0], [1, 64])", None),
        ("b = pl.create_tile([16, 64], dtype=pl.FP32, target_memory=pl.Mem.DDR)", "cannot create a tile in DDR"),
        ("b = pl.load(x2, [0, 0], [n, 64])", "the extents of a tile are constants, 'b' has .n, 64."),
        ("b = pl.tile.sels(pl.tile.cmps(pl.load(i, [0, 0], [16, 64]), 0, cmp_type=0), pl.load(i, [0, 0], [16, 64]), "
         "pl.create_tile([1, 8], dtype=pl.INT32), float('inf'))", "cannot select the non-integral inf"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused_at_their_line(line, message):
    extra = WINDOWS + "i: pl.Tensor[[16, 64], pl.INT32], "
    if message is None:
        compile_lines("Ascend910B", [line], extra=extra)
        return
    with pytest.raises(Diagnosed, match=message) as caught:
        compile_lines("Ascend910B", [line], extra=extra)
    found = caught.value.diagnostic.location
    assert found is not None and found.begin_line == 5


def test_an_argument_left_out_before_scratch_in_another_memory():
    scratch = "pl.load(w, [0, 0], [32, 64], target_memory=pl.Mem.Mat)"
    line = f"b = pl.tile.quant(a, pl.load(s, [0, 0], [32, 1]), tmp={scratch})"
    extra = "s: pl.Tensor[[32, 1], pl.FP32], w: pl.Tensor[[32, 64], pl.FP32], "
    compile_lines("Ascend910B", [line], shape=(32, 64), out="INT8", extra=extra)
