"""What a wrong kernel says: the file, the line, a caret under the construct, and a hint that would be accepted."""

import re

import numpy as np
import pytest

import pypto.language as pl


def refused(build, *, line, match, error=Exception, hint=None):
    """The error of ``build`` is about the source line that contains ``line`` and shows a caret below it."""
    with pytest.raises(error) as caught:
        build()
    text = str(caught.value)
    assert re.search(match, text), text
    assert __file__ in text, text
    shown = [t for t in text.splitlines() if line in t and re.match(r"\s*\d+ \|", t)]
    assert shown, text
    below = text.splitlines()[text.splitlines().index(shown[0]) + 1]
    assert "^" in below, text
    if hint is not None:
        assert re.search(hint, text), text
    return caught.value


def test_shapes_of_an_operator_must_agree():
    def build():
        @pl.function(type=pl.FunctionType.InCore)
        def k(a: pl.Tensor[[16, 16], pl.FP32], b: pl.Tensor[[16, 32], pl.FP32]):
            x = pl.load(a, [0, 0], [16, 16])
            y = pl.load(b, [0, 0], [16, 32])
            pl.add(x, y)

    refused(build, line="pl.add(x, y)", match=r"\[16, 16\].*\[16, 32\]")


def test_dtypes_of_an_operator_must_agree():
    def build():
        @pl.function(type=pl.FunctionType.InCore)
        def k(a: pl.Tensor[[16, 16], pl.FP32], b: pl.Tensor[[16, 16], pl.FP16]):
            pl.add(pl.load(a, [0, 0], [16, 16]), pl.load(b, [0, 0], [16, 16]))

    refused(build, line="pl.add(pl.load(a", match="fp32.*fp16", hint="cast")


def test_an_undefined_name_has_a_suggestion():
    def build():
        @pl.function(type=pl.FunctionType.InCore)
        def k(source: pl.Tensor[[16, 16], pl.FP32]):
            pl.load(sourc, [0, 0], [16, 16])  # noqa: F821

    refused(build, line="pl.load(sourc,", match="sourc", hint="source")


def test_a_name_bound_in_one_branch_is_not_defined_after_it():
    def build():
        @pl.function(type=pl.FunctionType.InCore)
        def k(a: pl.Tensor[[16, 16], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
            if n > 0:
                x = pl.load(a, [0, 0], [16, 16])
            pl.store(x, [0, 0], out)

        pl.compile(k)

    refused(build, line="pl.store(x, [0, 0], out)", match="'?x'?")


@pytest.mark.parametrize("offset", [8, 16, -1])
def test_a_static_load_stays_inside_its_tensor(offset):
    def build():
        @pl.function(type=pl.FunctionType.InCore)
        def k(a: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
            pl.store(pl.load(a, [offset, 0], [16, 16]), [0, 0], out)

        pl.compile(k)

    refused(build, line="pl.load(a, [offset, 0], [16, 16])", match=str(offset))


def test_a_static_slice_stays_inside_its_tile():
    def build():
        @pl.function(type=pl.FunctionType.InCore)
        def k(a: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
            t = pl.load(a, [0, 0], [16, 16])
            pl.store(pl.slice(t, [8, 16], [12, 0]), [0, 0], out)

        pl.compile(k)

    refused(build, line="pl.slice(t, [8, 16], [12, 0])", match="12")


def test_a_tile_that_cannot_fit_names_memory_bytes_and_what_is_alive():
    def build():
        @pl.function(type=pl.FunctionType.InCore)
        def k(a: pl.Tensor[[256, 512], pl.FP32], out: pl.Out[pl.Tensor[[256, 512], pl.FP32]]):
            x = pl.load(a, [0, 0], [256, 512])
            pl.store(pl.exp(x), [0, 0], out)

        pl.compile(k)

    error = refused(build, line="x = pl.load(a, [0, 0], [256, 512])", match="Vec")
    assert "524288" in str(error) and "188416" in str(error)


def test_tiles_alive_together_are_listed_with_their_lines():
    def build():
        @pl.function(type=pl.FunctionType.InCore)
        def k(a: pl.Tensor[[128, 256], pl.FP32], out: pl.Out[pl.Tensor[[128, 256], pl.FP32]]):
            first = pl.load(a, [0, 0], [128, 256])
            second = pl.exp(first)
            pl.store(pl.add(first, second), [0, 0], out)

        pl.compile(k)

    with pytest.raises(ValueError) as caught:
        build()
    text = str(caught.value)
    for name in ("first", "second"):
        assert re.search(rf"{name}.*\d", text), text


@pytest.mark.parametrize(
    "statement",
    [
        "x = [i for i in (1, 2)]",
        "f = lambda v: v",
        "import math",
        "del a",
        "raise ValueError",
        "global b",
        "assert 1",
    ],
)
def test_python_the_language_does_not_have(statement, tmp_path):
    path = tmp_path / "wrong_kernel.py"
    path.write_text(
        "import pypto.language as pl\n"
        "@pl.function(type=pl.FunctionType.InCore)\n"
        "def k(a: pl.Tensor[[16, 16], pl.FP32]):\n"
        f"    {statement}\n"
    )
    with pytest.raises(Exception) as caught:
        exec(compile(path.read_text(), str(path), "exec"), {})
    text = str(caught.value)
    assert f"{path}:4" in text and statement in text and "^" in text, text


def test_an_unknown_keyword_has_a_suggestion():
    def build():
        @pl.function(type=pl.FunctionType.InCore)
        def k(a: pl.Tensor[[16, 16], pl.FP32]):
            pl.load(a, [0, 0], [16, 16], target_memroy=pl.Mem.Vec)

    refused(build, line="target_memroy", match="target_memroy", hint="target_memory")


def test_too_few_arguments_show_the_signature():
    def build():
        @pl.function(type=pl.FunctionType.InCore)
        def k(a: pl.Tensor[[16, 16], pl.FP32]):
            pl.load(a)

    refused(build, line="pl.load(a)", match=r"load\(tensor, offsets, shapes")


def test_every_parameter_has_an_annotation():
    def build():
        @pl.function(type=pl.FunctionType.InCore)
        def k(a, b: pl.Tensor[[16, 16], pl.FP32]):
            pl.load(b, [0, 0], [16, 16])

    refused(build, line="def k(a, b:", match="'?a'?")


def test_tensor_arithmetic_needs_a_core():
    def build():
        @pl.function
        def k(a: pl.Tensor[[16, 16], pl.FP32]) -> pl.Tensor[[16, 16], pl.FP32]:
            y = pl.exp(a)
            return y

        pl.compile(k)

    refused(build, line="y = pl.exp(a)", match="outside any InCore scope", hint="pl.at")


def test_reading_outside_a_tensor_at_run_time_names_the_line():
    @pl.function(type=pl.FunctionType.InCore)
    def k(a: pl.Tensor[[32, 16], pl.FP32], row: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        pl.store(pl.load(a, [row, 0], [16, 16]), [0, 0], out)

    compiled = pl.compile(k)
    out = np.zeros((16, 16), np.float32)
    compiled(np.ones((32, 16), np.float32), 16, out)
    assert out.all()
    with pytest.raises(ValueError) as caught:
        compiled(np.ones((32, 16), np.float32), 17, out)
    assert f"{__file__}:" in str(caught.value)


def test_a_kernels_loop_has_a_step():
    step = 0

    def build():
        @pl.function(type=pl.FunctionType.InCore)
        def k(a: pl.Tensor[[64, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
            t = pl.load(a, [0, 0], [16, 16])
            for i in pl.range(3, 0, step):
                t = pl.add(t, pl.load(a, [i * 16, 0], [16, 16]))
            pl.store(t, [0, 0], out)

        pl.compile(k)

    refused(build, line="for i in pl.range(3, 0, step)", match="step")
