"""ClassifyIterArgCarry: which carried values are the same buffer in every iteration."""

from __future__ import annotations

import pytest

from pypto import ir, passes
from pypto.passes.classify_iter_arg_carry import iter_arg_array_size, iter_arg_is_rebind

from .checking import findings, run, unchanged
from .orchestration_programs import CREATE, program

P = passes.IRProperty
PASSES = (
    passes.convert_to_ssa, passes.derive_call_directions, passes.materialize_runtime_scopes,
    passes.classify_iter_arg_carry,
)  # fmt: skip


def loops(body):
    """The loops of ``main``, outermost first."""
    made = run(program(body), *PASSES)
    unchanged(made, passes.classify_iter_arg_carry)
    assert findings(made, P.IterArgCarryClassified) == []
    return [n for n in ir.visitor.walk(made.get_function("main")) if isinstance(n, ir.ForStmt)]


def plans(body):
    """For each loop, by the name of what it carries: whether it is rebound."""
    return [
        {a.name_hint.split("__")[0]: iter_arg_is_rebind(loop, i) for i, a in enumerate(loop.iter_args)}
        for loop in loops(body)
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for i in pl.range(4):\n    out = self.fill(x, out)\nreturn out", [{"out": False}]),
        ("for i in pl.range(4):\n    out = pl.assemble(out, x, [0, 0])\nreturn out", [{"out": False}]),
        (f"c = x\nfor i in pl.range(4):\n    t = {CREATE}\n    c = self.fill(c, t)\nreturn c", [{"c": True}]),
        (
            "for i in pl.range(2):\n    for j in pl.parallel(2):\n        out = self.fill(x, out)\nreturn out",
            [{"out": False}, {"out": False}],
        ),
        (
            f"""
c = x
for i in pl.range(2):
    for j in pl.range(2):
        t = {CREATE}
        c = self.fill(c, t)
return c
""",
            [{"c": True}, {"c": True}],
        ),
        ("for i in pl.range(4):\n    io, out = self.both(x, out, io)\nreturn out", [{"io": False, "out": False}]),
        ("k = n\nfor i in pl.range(4):\n    k = k + 1\n    out = self.fill(x, out)\nreturn out",
         [{"k": True, "out": False}]),
    ],
)  # fmt: skip
def test_a_carry_is_a_rebind_unless_it_is_the_same_buffer(body, expected):
    assert plans(body) == expected


TASKS = """
with pl.manual_scope():
    prev = None
    for i in pl.range(4):
        for j in pl.parallel({range}):
            out, prev = pl.submit(self.fill, x, out, deps=[prev])
return out
"""


@pytest.mark.parametrize(("range", "size"), [("3", 3), ("8, 0, -2", 4), ("1, 6, 2", 3)])
def test_the_ids_of_a_parallel_loop_are_an_array(range, size):
    for loop in loops(TASKS.format(range=range)):
        sizes = {a.name_hint.split("__")[0]: iter_arg_array_size(loop, i) for i, a in enumerate(loop.iter_args)}
        assert sizes == {"out": 0, "prev": size}


def test_ids_need_no_array_outside_a_manual_scope_or_a_parallel_loop():
    body = "with pl.manual_scope():\n    p = None\n    for i in pl.range(4):\n"
    (loop,) = loops(body + "        out, p = pl.submit(self.fill, x, out, deps=[p])\nreturn out")
    assert [iter_arg_array_size(loop, i) for i in range(2)] == [0, 0]


def test_a_parallel_loop_of_tasks_needs_its_length():
    with pytest.raises(ValueError, match="statically-known trip count") as caught:
        loops(TASKS.format(range="n"))
    assert "for j in pl.parallel(n)" in str(caught.value)


def test_a_loop_without_a_plan_is_found():
    body = "for i in pl.range(4):\n    out = self.fill(x, out)\nreturn out"
    made = run(program(body), *PASSES[:-1])
    (found,) = findings(made, P.IterArgCarryClassified)
    assert "iter_arg_rebind_0" in found
