"""Kernels from text and files; source positions; comments; compile-time directives."""

from __future__ import annotations

import linecache
import subprocess
import sys
from pathlib import Path

import pytest

import pypto.language as pl
from pypto import ir
from pypto.errors import ParserError, ParserSyntaxError, ParserTypeError
from pypto.ir.stmt import flatten_to_stmts

KERNEL = "@pl.function\ndef f(x: pl.Tensor[[8], pl.FP32]) -> pl.Tensor[[8], pl.FP32]:\n    return pl.exp(x)\n"


def test_text_gives_what_a_decorator_gives():
    @pl.function
    def f(x: pl.Tensor[[8], pl.FP32]) -> pl.Tensor[[8], pl.FP32]:
        return pl.exp(x)

    ir.assert_structural_equal(pl.parse(KERNEL), f)
    assert isinstance(pl.parse(f"import pypto.language as pl\n{KERNEL}"), ir.Function)


def test_files(tmp_path: Path):
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    f = pl.loads(path)
    assert f.span.filename == str(path)
    with pytest.raises(ValueError, match="Expected @pl.program but found @pl.function 'f'"):
        pl.loads_program(path)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("x = 1\n", ValueError, "No @pl.function or @pl.program found"),
        (KERNEL + KERNEL.replace("def f", "def g"), ValueError, "Multiple functions/programs found.*f, g"),
        ("@pl.function\ndef f(:\n", SyntaxError, "Failed to compile code"),
        (
            "@pl.function(type=pl.FunctionType.Bad)\ndef f(): pass\n",
            ParserSyntaxError,
            "'pl.FunctionType' has no 'Bad'",
        ),
        ("y = undefined_name\n", ParserSyntaxError, "name 'undefined_name' is not defined"),
    ],
)
def test_texts_that_are_no_kernel(text: str, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        pl.parse(text)


def test_the_place_of_an_error_in_text():
    with pytest.raises(ParserSyntaxError) as caught:
        pl.parse("@pl.function(type=pl.FunctionType.Bad)\ndef f(): pass\n", filename="made.py")
    span = caught.value.span
    assert (span["filename"], span["begin_line"], span["begin_column"]) == ("made.py", 1, 35)
    assert "InCore" in (caught.value.hint or "")


def test_source_maps_lead_back_to_the_original_file():
    f = pl.parse(KERNEL, source_map={3: ("/user/model.py", 40, 8)})
    span = flatten_to_stmts(f.body)[0].span
    assert (span.filename, span.begin_line, span.begin_column) == ("/user/model.py", 40, 9)


def test_spans_count_characters_from_one():
    line = "    größe = 3.0; y = pl.add(x, größe)"
    f = pl.parse(f"@pl.function\ndef f(x: pl.Tensor[[8], pl.FP32]):\n{line}\n    return y\n")
    first, second, _ = flatten_to_stmts(f.body)
    assert (first.span.begin_line, first.span.begin_column) == (3, 5)
    assert line[second.span.begin_column - 1 :].startswith("y = pl.add")
    assert line[second.value.span.begin_column - 1 : second.value.span.end_column - 1] == "pl.add(x, größe)"


def test_errors_show_the_line_and_a_caret():
    with pytest.raises(ParserError) as caught:

        @pl.function
        def f(x: pl.Tensor[[8], pl.FP32]):
            y = pl.add(x, missing_name)  # noqa: F821
            return y

    lines = str(caught.value).splitlines()
    assert lines[0] == "Undefined variable 'missing_name'"
    assert __file__ in lines[1]
    assert lines[4].index("^") == lines[3].index("missing_name")


def test_notebook_cells_have_sources():
    name = "<ipython-input-1>"
    text = KERNEL
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope = {"pl": pl}
    exec(compile(text, name, "exec"), scope)
    assert scope["f"].span.filename == name
    changed = text.replace("pl.exp", "pl.neg")
    linecache.cache[name] = (len(changed), None, changed.splitlines(keepends=True), name)
    exec(compile(changed, name, "exec"), scope)
    assert flatten_to_stmts(scope["f"].body)[0].value[0].op.name == "tensor.neg"


def test_functions_without_source_are_refused():
    with pytest.raises(ParserSyntaxError, match="Cannot retrieve source code") as caught:
        exec(compile(KERNEL, "<nowhere>", "exec"), {"pl": pl})
    assert "pl.parse()" in (caught.value.hint or "")


def test_command_line_source():
    code = f"import pypto.language as pl\n{KERNEL}print(f.name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "f\n"


def test_importing_the_language_is_light():
    heavy = "numpy jinja2 xdsl ml_dtypes torch"
    code = f"import sys, pypto.language; print([m for m in {heavy.split()} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_comments_travel_with_statements():
    @pl.function
    def f(x: pl.Tensor[[8], pl.FP32], n: pl.Scalar[pl.INDEX]):
        """What it does."""
        # first
        y = pl.exp(x)  # beside
        for _i in pl.range(n):  # rows
            # in the loop, "quoted"
            y = pl.neg(y)
        # before the branch
        if n > 3:
            z = y
        # other case
        else:
            z = x
        return z

    exp, loop, branch, _ = flatten_to_stmts(f.body)
    assert exp.leading_comments == ["What it does.", "first", "beside"]
    assert loop.leading_comments == ["rows"]
    assert flatten_to_stmts(loop.body)[0].leading_comments == ['in the loop, "quoted"']
    assert branch.leading_comments == ["before the branch"]
    assert flatten_to_stmts(branch.else_body)[0].leading_comments == ["other case"]


def test_comments_at_the_end_of_a_block_are_dropped_with_a_warning():
    with pytest.warns(UserWarning, match="tail-of-block comment dropped: left over"):

        @pl.function
        def f(x: pl.Tensor[[8], pl.FP32]):
            for _i in pl.range(3):
                x = pl.exp(x)
                # left over
            return x


def test_static_print(capsys: pytest.CaptureFixture[str]):
    size = 4

    @pl.function
    def f(x: pl.Tensor[[8], pl.FP32]):
        pl.static_print("x is", x, size)
        pl.static_print(f"{x} of {size * 2}")
        return x

    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("]: x is x: pl.Tensor[[8], pl.FP32] 4: pl.Scalar[pl.INDEX]")
    assert second.endswith("]: x: pl.Tensor[[8], pl.FP32] of 8: pl.Scalar[pl.INDEX]")
    assert len(flatten_to_stmts(f.body)) == 1


def test_static_assert():
    size = 4

    @pl.function
    def f(x: pl.Tensor[[8], pl.FP32]):
        pl.static_assert(x.shape[0] == 2 * size, "x has two blocks")
        return x

    assert len(flatten_to_stmts(f.body)) == 1
    with pytest.raises(ParserError, match="static_assert failed: too small"):

        @pl.function
        def g(x: pl.Tensor[[8], pl.FP32]):
            pl.static_assert(size > 8, "too small")
            return x

    with pytest.raises(ParserSyntaxError, match="must be compile-time evaluable"):

        @pl.function
        def h(n: pl.Scalar[pl.INT32]):
            pl.static_assert(n > 8)
            return n


def test_statements_the_language_does_not_have():
    header = "@pl.function\ndef f(x: pl.Tensor[[8], pl.FP32]):\n    "
    unsupported = {
        "try:\n        y = x\n    finally:\n        pass": "try",
        "class A: pass": "a class definition",
        "def g(): pass": "a nested function definition",
        "global y": "global",
        "del x": "del",
        "assert x": "assert",
        "import os": "import",
        "raise x": "raise",
        "a = b = x": "chained assignment",
        "x.y = x": "an attribute cannot be assigned",
        "x + 1": "an expression without effect",
        "y: pl.INT32": "a declaration without a value",
    }
    for text, message in unsupported.items():
        with pytest.raises(ParserError, match=message) as caught:
            pl.parse(f"{header}{text}\n")
        assert caught.value.span["begin_line"] == 3
    with pytest.raises(ParserSyntaxError, match="never reached"):
        pl.parse(f"{header}return x\n    y = x\n")
    with pytest.raises(ParserError, match="return inside a loop"):
        pl.parse(f"{header}for i in pl.range(3):\n        return x\n")
    with pytest.raises(ParserTypeError, match="cannot unpack"):
        pl.parse(f"{header}a, b = x\n")
