"""ExpandManualPhaseFence: one dummy task where many launches wait for the same array of tasks."""

from __future__ import annotations

import pytest

from pypto import ir, passes

from .checking import run, unchanged
from .orchestration_programs import calls, program


def fenced(body, steps=()):
    """The source lines of ``main`` that say who waits for what, after the pass."""
    before = run(program(body), *steps, passes.derive_call_directions)
    made = run(before, passes.expand_manual_phase_fence)
    unchanged(made, passes.expand_manual_phase_fence)
    lines = [line.strip() for line in str(made.get_function("main")).splitlines()]
    return made is before, [line for line in lines if "task_dummy(" in line or line.startswith("for ")], made


def waits(made):
    """For each launch, the names of what it waits for."""
    return [[d.name_hint for d in c.deps] for c in calls(made.get_function("main")) if isinstance(c, ir.Submit)]


ARRAY = "with pl.manual_scope():\n    ids = pl.array.create({n}, pl.TASK_ID)\n"


@pytest.mark.parametrize(
    ("n", "loops", "pays"),
    [
        (4, ["pl.parallel(4)"], True),
        (3, ["pl.range(2)"], True),
        (2, ["pl.parallel(2)"], False),
        (1, ["pl.parallel(9)"], False),
        (9, ["pl.range(1)"], False),
        (4, ["pl.range(0)"], False),
        (4, ["pl.parallel(n)"], False),
        (4, ["pl.range(2)", "pl.range(2)"], True),
        (4, ["pl.range(n)", "pl.parallel(4)"], True),
    ],
)
def test_a_fence_stands_where_it_pays_off(n, loops, pays):
    body = ARRAY.format(n=n)
    for depth, loop in enumerate(loops):
        body += "    " * (depth + 1) + f"for i{depth} in {loop}:\n"
    body += "    " * (len(loops) + 1) + "r, t = pl.submit(self.bump, io, 1.0, deps=[ids])\nreturn io"
    same, lines, made = fenced(body)
    assert same is not pays
    if pays:
        (wait,) = waits(made)
        assert wait == ["phase_fence_barrier_0_tid"] and "task_dummy(deps=[ids])" in lines[0]


def test_several_arrays_have_a_fence_each():
    body = ARRAY.format(n=4) + "    more = pl.array.create(4, pl.TASK_ID)\n    for i in pl.parallel(4):\n"
    body += "        r, t = pl.submit(self.bump, io, 1.0, deps=[ids])\n"
    body += "        q, u = pl.submit(self.bump, io, 1.0, deps=[more])\n"
    body += "        s, v = pl.submit(self.bump, io, 1.0, deps=[ids, more])\nreturn io"
    _, lines, made = fenced(body)
    assert waits(made) == [["phase_fence_barrier_0_tid"], ["phase_fence_barrier_1_tid"], ["ids", "more"]]
    assert [("ids" in lines[0]), ("more" in lines[1])] == [True, True]


PHASES = """
with pl.manual_scope():
    ids = pl.array.create(4, pl.TASK_ID)
    for p in pl.range(3):
        fresh = pl.array.create(4, pl.TASK_ID)
        for b in pl.parallel(4):
            r, t = pl.submit(self.bump, io, 1.0, deps=[ids])
            fresh[b] = t
        ids = fresh
return io
"""
UPDATED = PHASES.replace("fresh[b] = t", "ids[b] = t").replace("        ids = fresh\n", "")


def test_a_phase_waits_for_the_phase_before_through_a_fence():
    _, lines, made = fenced(PHASES, (passes.convert_to_ssa,))
    assert [line.split(" ")[0].split(":")[0] for line in lines] == ["for", "phase_fence_barrier_0_tid", "for"]
    assert waits(made) == [["phase_fence_barrier_0_tid"]]


def test_an_array_updated_in_the_loop_is_waited_for_directly():
    same, _, _ = fenced(UPDATED, (passes.convert_to_ssa,))
    assert same


def test_only_manual_scopes_are_compressed():
    body = "ids = pl.array.create(4, pl.TASK_ID)\nfor i in pl.parallel(4):\n"
    same, _, _ = fenced(body + "    r, t = pl.submit(self.bump, io, 1.0, deps=[ids])\nreturn io")
    assert same
