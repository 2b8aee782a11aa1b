"""AutoDeriveTaskDependencies: who waits for whom, and what the runtime need not look up."""

from __future__ import annotations

import pytest

from pypto import ir, passes

from .checking import findings, run, unchanged
from .orchestration_programs import CREATE, calls, program

P = passes.IRProperty


def derive():
    return passes.auto_derive_task_dependencies(analyze_auto_scopes=True)


def derived(body, header=None):
    """For each call of ``main``: the names it waits for, and its directions in letters."""
    before = program(body, **({"header": header} if header else {}))
    made = run(before, passes.convert_to_ssa, passes.derive_call_directions, derive)
    assert findings(made, P.CallDirectionsResolved) == []
    unchanged(made, derive)
    letters = {"Input": "i", "InOut": "x", "OutputExisting": "o", "NoDep": "-", "Scalar": "s"}
    return [
        (
            [v.name_hint.split("__")[0] for v in call.attrs.get("compiler_manual_dep_edges", ())],
            "".join(letters[d.name] for d in call.arg_directions),
        )
        for call in calls(made.get_function("main"))
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # A reader after a writer, and the other way round.
        (f"t = {CREATE}\na = self.fill(x, t)\nb = self.fill(a, out)\nreturn b", [([], "io"), (["a"], "-o")]),
        ("a = self.fill(io, out)\nb = self.bump(io, 1.0)\nreturn a, b", [([], "io"), (["a"], "os")]),
        # Two writers; two readers.
        ("a = self.fill(x, out)\nb = self.fill(x, a)\nreturn b", [([], "io"), (["a"], "io")]),
        (f"t = {CREATE}\na = self.fill(x, t)\nb = self.fill(x, out)\nreturn a, b", [([], "io"), ([], "io")]),
        # The writer in between stands for the one before it.
        (
            "a = self.fill(x, out)\nb = self.bump(a, 1.0)\nc = self.bump(b, 2.0)\nreturn c",
            [([], "io"), (["a"], "os"), (["b"], "os")],
        ),
        # What the author states is not stated again.
        (
            "a, t = pl.submit(self.fill, x, out)\nb, u = pl.submit(self.bump, a, 1.0, deps=[t])\nreturn b",
            [([], "io"), ([], "os")],
        ),
    ],
)
def test_tasks_that_touch_a_buffer_are_ordered(body, expected):
    assert derived(body) == expected


WINDOWS = """
big = pl.create_tensor([64, 16], dtype=pl.FP32)
a = pl.slice(big, [16, 16], [0, 0])
b = pl.slice(big, [16, 16], [{at}, 0])
p = self.fill(x, a)
q = self.fill(b, out)
return q
"""


@pytest.mark.parametrize(("at", "expected"), [("16", ([], "io")), ("8", (["p"], "-o")), ("n", (["p"], "io"))])
def test_windows_are_compared(at, expected):
    assert derived(WINDOWS.format(at=at))[-1] == expected


def test_a_tensor_of_either_branch_waits_for_both():
    body = f"""
t = {CREATE}
u = {CREATE}
a = self.fill(x, t)
b = self.fill(x, u)
if n == 0:
    c = pl.yield_(a)
else:
    c = pl.yield_(b)
d = self.fill(c, out)
return d
"""
    assert derived(body)[-1] == (["a", "b"], "-o")


LOOP = "for i in {loop}:\n    out = self.fill(x, out)\nr = self.bump(out, 1.0)\nreturn r"


@pytest.mark.parametrize(
    ("loop", "first", "then"),
    [
        ("pl.range(1)", "x", (["out"], "os")),
        ("pl.range(4)", "x", (["out"], "os")),
        ("pl.parallel(n)", "o", (["out"], "os")),
        ("pl.range(n)", "x", ([], "xs")),
    ],
)
def test_after_a_loop_its_result_stands_for_its_tasks(loop, first, then):
    inside, after = derived(LOOP.format(loop=loop))
    assert inside == ([], "i" + first) and after == then


def test_what_comes_round_in_a_loop_is_looked_up():
    body = f"""
t = {CREATE}
t = self.fill(x, t)
for i in pl.range(4):
    out = self.fill(t, out)
    t = self.bump(t, 1.0)
return out
"""
    _, reader, writer = derived(body)
    assert reader[1] == "ix" and writer[1] == "xs"


PLACED = "@pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)"


def test_scopes_know_of_those_before_them():
    body = "with pl.scope():\n    a = self.fill(x, out)\nwith pl.scope():\n    b = self.bump(a, 1.0)\nreturn b"
    assert derived(body, PLACED) == [([], "io"), (["a"], "os")]


def test_a_scope_that_cannot_be_stated_is_left_to_the_runtime():
    body = """
with pl.scope():
    a = self.fill(x, out)
    b = self.bump(a, 1.0)
    for i in pl.range(n):
        io = self.bump(io, 1.0)
    c = self.bump(io, 2.0)
return b, c
"""
    assert derived(body, PLACED) == [([], "io"), ([], "xs"), ([], "xs"), ([], "xs")]


def test_manual_scopes_and_other_programs_are_left_alone():
    body = "with pl.manual_scope():\n    a, t = pl.submit(self.fill, x, out)\n    b, u = pl.submit(self.bump, a, 1.0)\n"
    body += "return b"
    manual = run(program(body), passes.convert_to_ssa, passes.derive_call_directions)
    unchanged(manual, derive)
    plain = run(program("a = self.fill(x, out)\nb = self.bump(a, 1.0)\nreturn b"), passes.derive_call_directions)
    unchanged(plain, passes.auto_derive_task_dependencies)


def test_an_array_that_a_loop_filled_covers_its_tasks():
    body = """
ids = pl.array.create(4, pl.TASK_ID)
for i in pl.parallel(4):
    a, t = pl.submit(self.fill, x, out)
    ids[i] = t
b, u = pl.submit(self.fill, out, io, deps=[ids[k] for k in range({n})])
return b
"""
    before = run(program(body.format(n=4)), passes.derive_call_directions)
    call = calls(derive()(before).get_function("main"))[-1]
    assert "compiler_manual_dep_edges" not in call.attrs and call.arg_directions[0] is ir.ArgDirection.NoDep
    before = run(program(body.format(n=3)), passes.derive_call_directions)
    assert calls(derive()(before).get_function("main"))[-1].arg_directions[0] is ir.ArgDirection.Input
