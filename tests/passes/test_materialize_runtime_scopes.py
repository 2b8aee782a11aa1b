"""MaterializeRuntimeScopes: scopes around the body, loops and branches of orchestration functions."""

from __future__ import annotations

import pytest
from text_programs import ORCHESTRATION

from pypto import ir, passes

from .checking import check, findings, run, unchanged
from .orchestration_programs import program

P = passes.IRProperty
PLACED = ORCHESTRATION.replace(")", ", auto_scope=False)")


def expected(body):
    return run(program(body, header=PLACED), passes.derive_call_directions)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("out = self.fill(x, out)\nreturn out", "with pl.scope():\n    out = self.fill(x, out)\n    return out"),
        (
            "for i in pl.range(4):\n    out = self.fill(x, out)\nreturn out",
            """
with pl.scope():
    for i in pl.range(4):
        with pl.scope():
            out = self.fill(x, out)
    return out
""",
        ),
        (
            "if n == 0:\n    out = self.fill(x, out)\nelse:\n    out = self.bump(out, 1.0)\nreturn out",
            """
with pl.scope():
    if n == 0:
        with pl.scope():
            out = self.fill(x, out)
    else:
        with pl.scope():
            out = self.bump(out, 1.0)
    return out
""",
        ),
        (
            "with pl.manual_scope():\n    for i in pl.range(4):\n        out = self.fill(x, out)\nreturn out",
            """
with pl.scope():
    with pl.scope(mode=pl.ScopeMode.MANUAL):
        for i in pl.range(4):
            out = self.fill(x, out)
    return out
""",
        ),
    ],
)
def test_scopes_are_placed(before, after):
    made = check(program(before), expected(after), passes.derive_call_directions, passes.materialize_runtime_scopes)
    assert made.get_function("main").attrs == {"auto_scope": False}
    assert findings(made, P.RuntimeScopesMaterialized) == []


def test_carried_values_leave_the_scope():
    before = program("for i in pl.range(4):\n    out = self.fill(x, out)\nreturn out")
    made = run(
        before, passes.convert_to_ssa, passes.derive_call_directions, passes.materialize_runtime_scopes,
        passes.classify_iter_arg_carry,
    )  # fmt: skip
    assert findings(made, P.SSAForm, P.UseAfterDef, P.IterArgCarryClassified) == []


def test_what_the_author_placed_stays():
    unchanged(program("with pl.scope():\n    out = self.fill(x, out)\nreturn out", header=PLACED),
              passes.materialize_runtime_scopes)  # fmt: skip


def test_the_rule_names_the_function():
    (found,) = findings(program("return out"), P.RuntimeScopesMaterialized)
    assert "'main'" in found and "auto_scope" in found


def test_kernels_have_no_scopes():
    made = run(program("return out"), passes.materialize_runtime_scopes)
    assert not any(isinstance(n, ir.RuntimeScopeStmt) for n in ir.visitor.walk(made.get_function("fill")))
