"""The exception tree and the text users see."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace

import pytest

from pypto import errors
from pypto.errors import Diagnostic, DiagnosticSeverity, InternalError, Location, ParserTypeError, user_error


def span(filename="kernel.py", line=2, column=5, end_line=0, end_column=0):
    return SimpleNamespace(
        filename=str(filename), begin_line=line, begin_column=column, end_line=end_line, end_column=end_column
    )


@pytest.fixture
def kernel(tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text("first\n    y = pl.add(x, z)\n\tw = pl.exp(y)\n名 = pl.neg(w)\n", encoding="utf-8")
    return path


def test_full_rendering(kernel):
    where = span(kernel, 2, 9, 2, 21)
    text = Diagnostic("shapes differ", where, hint="reshape x to [64, 64]", notes=["x is [64]"]).render()
    assert text.splitlines() == [
        "Error: shapes differ",
        f" --> {kernel}:2:9",
        "  |",
        "2 |     y = pl.add(x, z)",
        "  |         ^^^^^^^^^^^^",
        "  = hint: reshape x to [64, 64]",
        "  = note: x is [64]",
    ]


@pytest.mark.parametrize(
    "where, marked",
    [
        (dict(line=2, column=9), "pl.add"),
        (dict(line=2, column=9, end_line=2, end_column=12), "pl."),
        (dict(line=2, column=9, end_line=3, end_column=2), "pl.add(x, z)"),
        (dict(line=2, column=9, end_line=2, end_column=999), "pl.add(x, z)"),
        (dict(line=2, column=0), "y = pl.add(x, z)"),
        (dict(line=2, column=999), "y = pl.add(x, z)"),
        (dict(line=3, column=6), "pl.exp"),
    ],
)
def test_caret_covers_the_construct(kernel, where, marked):
    source, caret = Diagnostic("m", span(kernel, **where)).render().splitlines()[-2:]
    assert caret.count("^") == len(marked)
    assert source[caret.index("^") :].startswith(marked)


def test_caret_pads_wide_characters_and_tabs(kernel):
    wide = Diagnostic("m", span(kernel, 4, 5)).render().splitlines()[-1]
    assert wide == "  |      ^^^^^^"  # the one CJK character takes two cells
    tab = Diagnostic("m", span(kernel, 3, 6)).render().splitlines()[-1]
    assert tab == "  | \t    ^^^^^^"


def test_file_wins_over_captured_source_and_is_reread_when_it_changes(kernel, tmp_path):
    diagnostic = Diagnostic("m", span(kernel, 1, 1), source_lines=["generated"])
    assert "first" in diagnostic.render() and "generated" not in diagnostic.render()
    kernel.write_text("rewritten, and longer than before\n")
    assert "rewritten" in diagnostic.render()
    diagnostic.span = span("<jit:k>", 1, 1)
    assert "generated" in diagnostic.render()
    diagnostic.span = span(tmp_path / "gone.py", 9, 1)
    assert diagnostic.render().splitlines() == ["Error: m", f" --> {tmp_path}/gone.py:9:1"]


@pytest.mark.parametrize("unknown", [None, span(line=-1), span(filename=""), {"filename": "k.py"}])
def test_unknown_place_is_left_out(unknown):
    assert Diagnostic("m", unknown, hint="h").render() == "Error: m\n  = hint: h"
    assert Location.of(unknown) is None


def test_severity_and_colour(kernel):
    warning = Diagnostic("slow", span(kernel, 2, 9), severity=DiagnosticSeverity.Warning)
    assert warning.render().startswith("Warning: slow")
    assert "\033[" not in warning.render()
    assert warning.render(color=True).startswith("\033[33mWarning:\033[0m")
    perf = Diagnostic("m", severity=DiagnosticSeverity.PerfHint)
    assert perf.render() == "Performance hint: m"


@pytest.mark.parametrize(
    "builtin, cls",
    [
        (ValueError, errors.KernelValueError),
        (TypeError, errors.KernelTypeError),
        (IndexError, errors.KernelIndexError),
        (NotImplementedError, errors.UnsupportedError),
    ],
)
def test_user_errors_are_the_builtin_kind_and_show_the_source(kernel, builtin, cls):
    error = user_error(builtin, "bad operand", span(kernel, 2, 9), hint="use pl.sub")
    assert isinstance(error, builtin) and type(error) is cls
    assert error.message == errors.message_of(error) == "bad operand"
    assert "pl.add(x, z)" in str(error) and str(error).endswith("= hint: use pl.sub")
    assert str(error).startswith("bad operand\n")


def test_user_error_keeps_a_specific_class():
    error = user_error(errors.CapacityError, "Vec is full")
    assert type(error) is errors.CapacityError and isinstance(error, ValueError)
    assert str(error) == "Vec is full"


def test_parser_errors_hold_a_plain_span_and_survive_pickle_and_copy(kernel):
    error = ParserTypeError("wrong type", span=span(kernel, 2, 9), hint="annotate it")
    assert error.span["line"] == error.span["begin_line"] == 2 and error.span["column"] == 9
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is ParserTypeError and twin.hint == "annotate it" and str(twin) == str(error)
    assert isinstance(error, errors.ParserError) and isinstance(error, errors.Error)
    assert ParserTypeError("m").span is None


def test_internal_errors_name_the_place_and_are_no_user_errors():
    error = InternalError("null var", span("model.py", 42, 5))
    assert str(error) == "null var [model.py:42:5]"
    assert isinstance(error, RuntimeError) and not isinstance(error, (errors.Error, errors.Diagnosed))
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert InternalError in errors.BUG_CLASS_EXCEPTIONS


def test_verification_error_lists_every_finding():
    findings = [Diagnostic("one", rule_name="SSA", error_code=3), Diagnostic("two")]
    error = errors.VerificationError("Verification failed", findings)
    assert str(error) == "Verification failed\nError[SSA]: one\nError: two"
    assert [d.error_code for d in error.diagnostics] == [3, 0]


def test_checks():
    errors.check(1, "no")
    errors.internal_check([0], "no")
    with pytest.raises(ValueError, match="^must be positive$"):
        errors.check(False, "must be positive")
    with pytest.raises(InternalError, match="^broken$"):
        errors.internal_check(None, "broken")
    with pytest.raises(InternalError, match=r"broken \[m.py:1:2\]"):
        errors.internal_check_span(0, "broken", span("m.py", 1, 2))


def test_renderer_repeats_only_a_short_first_sentence(kernel):
    render = errors.ErrorRenderer(use_color=False).render
    short = ParserTypeError("Unknown name. Define it first.", span(kernel, 2, 9))
    assert render(short).splitlines()[-1].endswith("^^^^^^ Unknown name")
    long = ParserTypeError("A message that is far too long to stand beside the caret, really", span(kernel, 2, 9))
    assert render(long).splitlines()[-1].endswith("^^^^^^")


@pytest.mark.parametrize("line, length", [("a.b.c(x)", 5), ("a.", 1), (".a", 1), ("name ", 4), ("3.5", 1)])
def test_token_length(line, length):
    assert errors.token_length(line, 0) == length
