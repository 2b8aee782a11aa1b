"""DeriveCallDirections: what the runtime is told of each argument, and the rule that checks it."""

from __future__ import annotations

import pytest

from pypto import ir, passes
from pypto.ir import ArgDirection, ParamDirection

from .checking import findings, run, unchanged
from .orchestration_programs import CREATE, calls, program

P = passes.IRProperty


def derived(body, more=""):
    before = program(body, more)
    made = run(before, passes.derive_call_directions)
    assert findings(made, P.CallDirectionsResolved) == []
    assert findings(before, P.CallDirectionsResolved)
    unchanged(made, passes.derive_call_directions)
    return made


def last(body, more=""):
    """The directions of the last call of ``main``, in letters."""
    letters = {"Input": "i", "Output": "O", "InOut": "x", "OutputExisting": "o", "NoDep": "-", "Scalar": "s"}
    return "".join(letters[d.name] for d in calls(derived(body, more).get_function("main"))[-1].arg_directions)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("r = self.fill(x, out)\nreturn r", "io"),
        ("r = self.bump(io, 2.0)\nreturn r", "xs"),
        ("r = self.fill(x, io)\nreturn r", "ix"),
        (f"t = {CREATE}\nr = self.fill(x, t)\nreturn r", "io"),
        (f"t = {CREATE}\nr = self.fill(x, t)\nq = self.fill(x, r)\nreturn q", "ix"),
        (f"t = {CREATE}\nu = {CREATE}\nr = self.fill(x, t)\nq = self.fill(x, u)\nreturn q", "io"),
        ("for i in pl.range(4):\n    out = self.fill(x, out)\nreturn out", "ix"),
        ("for i in pl.parallel(4):\n    out = self.fill(x, out)\nreturn out", "io"),
        ("for i in pl.range(4):\n    for j in pl.parallel(4):\n        out = self.fill(x, out)\nreturn out", "ix"),
        ("r = self.fill(pl.no_dep(x), pl.no_dep(out))\nreturn r", "--"),
        ("out, tid = pl.submit(self.fill, x, out)\nout, t2 = pl.submit(self.fill, x, out)\nreturn out", "ix"),
    ],
)
def test_directions_follow_the_buffer(body, expected):
    assert last(body) == expected


def test_what_one_branch_wrote_the_other_did_not():
    body = "if n == 0:\n    out = self.fill(x, out)\nelse:\n    out = self.fill(x, out)\n"
    here, there = (c.arg_directions[1] for c in calls(derived(body + "return out").get_function("main")))
    assert here is there is ArgDirection.OutputExisting
    assert last(body + "out = self.fill(x, out)\nreturn out") == "ix"


def test_a_buffer_that_may_be_one_of_two_was_written_when_either_was():
    body = f"""
t = {CREATE}
u = {CREATE}
t1 = self.fill(x, t)
if n == 0:
    c = pl.yield_(t1)
else:
    c = pl.yield_(u)
r = self.fill(x, c)
return r
"""
    assert last(body) == "ix"


def test_a_tuple_hands_on_its_buffers():
    body = f"""
t = {CREATE}
u = {CREATE}
p, q = self.both(x, t, u)
r = self.fill(x, q)
return r
"""
    assert last(body) == "ix"


WRAPPER = """
    @pl.function(type=pl.FunctionType.Group)
    def wrapper(self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Tensor[[16, 16], pl.FP32],
                io: pl.Tensor[[16, 16], pl.FP32]) -> pl.Tensor[[16, 16], pl.FP32]:
        first = self.fill(x, out)
        second = self.bump(io, 1.0)
        return first
"""


def test_a_wrapper_declares_what_its_kernels_do():
    made = derived("r = self.wrapper(x, out, io)\nreturn r", WRAPPER)
    wrapper = made.get_function("wrapper")
    assert list(wrapper.param_directions) == [ParamDirection.In, ParamDirection.Out, ParamDirection.InOut]
    (call,) = calls(made.get_function("main"))
    assert [d.name for d in call.arg_directions] == ["Input", "OutputExisting", "InOut"]
    stale = made.map_functions(
        lambda f: f.replace(param_directions=ir.node.NodeList([ParamDirection.In] * 3)) if f.name == "wrapper" else f
    )
    assert [m for m in findings(stale, P.CallDirectionsResolved) if "stale param_directions_" in m]


def test_given_directions_stay():
    body = "r = self.fill(x, out, attrs={'arg_directions': [pl.adir.input, pl.adir.output]})\nreturn r"
    made = run(program(body), passes.derive_call_directions)
    assert calls(made.get_function("main"))[0].arg_directions == [ArgDirection.Input, ArgDirection.Output]


@pytest.mark.parametrize("wrong", ["output", "inout", "scalar"])
def test_the_rule_refuses_what_the_callee_does_not_take(wrong):
    body = f"r = self.fill(x, out, attrs={{'arg_directions': [pl.adir.{wrong}, pl.adir.input]}})\nreturn r"
    found = findings(program(body), P.CallDirectionsResolved)
    assert len(found) == 2 and "arg_directions[0] of the call of 'fill'" in found[0] and "Input or NoDep" in found[0]


def test_a_program_without_calls_is_left_alone():
    unchanged(program("return out").map_functions(lambda f: f), passes.derive_call_directions)
