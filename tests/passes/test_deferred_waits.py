"""Waiters register conditions, do nothing else, and are tasks of their own."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest
from text_programs import ORCHESTRATION, method, program

from pypto import ir, passes
from pypto.errors import KernelValueError

WAIT = "pld.system.defer_wait(signal, offsets=[{}, 0], expected={}, cmp=pld.WaitCmp.Ge)"
PARAMS = (
    "signal: pld.DistributedTensor[[80, 1], pl.INT32], counts: pl.Tensor[[80], pl.INT32], "
    "other: pl.Tensor[[80], pl.INT32], me: pl.Scalar[pl.INT32]"
)


def region(body: str, scope: str = "pl.at(level=pl.Level.CORE_GROUP, name_hint='waiter')") -> ir.Program:
    """``body`` as a region of an orchestration."""
    made = program(method("main", PARAMS, f"with {scope}:\n{indent(dedent(body).strip(), '    ')}", "", ORCHESTRATION))
    return passes.outline_incore_scopes()(passes.convert_to_ssa()(made))


def expanded(attrs: str, call: str, kind: str = "Orchestration") -> ir.Program:
    """A kernel that registers a condition, with ``attrs``, and a function that says ``call``."""
    made = program(
        method("waiter", PARAMS, f"pl.func_attr({attrs})\n{WAIT.format(0, 1)}"),
        method("main", PARAMS, call, decorator=f"@pl.function(type=pl.FunctionType.{kind})"),
    )
    steps = (passes.convert_to_ssa, passes.infer_tile_memory_space, passes.expand_mixed_kernel)
    for step in steps:
        made = step()(made)
    return made


@pytest.mark.parametrize(
    "body",
    [
        WAIT.format(0, 1),
        "first = pl.read(counts, [0])\n" + WAIT.format(0, "first"),
        f"for i in pl.range(64):\n    if i != me:\n        {WAIT.format('i', 1)}",
        f"for i in pl.range(1):\n    {WAIT.format('i', 'pl.read(counts, [0])')}",
        f"n = me\nfor i in pl.range(me):\n    n = n + me\n{WAIT.format('n', 1)}",
        f"n = me\nfor i in pl.range(4):\n    {WAIT.format('i', 'n')}\n    n = n + 1",
    ],
)
def test_waiters_are_marked(body: str) -> None:
    made = region(body)
    waiter = made.get_function("waiter")
    assert waiter is not None and waiter.attrs["deferred_completion_waiter"] is True
    steps = (passes.normalize_stmt_structure, passes.infer_tile_memory_space, passes.expand_mixed_kernel)
    for step in steps:
        made = step()(made)
    waiter = made.get_function("waiter")
    assert waiter is not None and waiter.func_type is ir.FunctionType.AIV
    assert passes.expand_mixed_kernel()(made).get_function("waiter") == waiter


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"{WAIT.format(0, 1)}\nx = pl.read(counts, [0])\n{WAIT.format(1, 'x')}", "tensor reads after the first"),
        (f"for i in pl.range(2):\n    x = pl.read(counts, [i])\n    {WAIT.format(0, 'x')}", "may execute tensor reads"),
        (f"for i in pl.range(me):\n    {WAIT.format('i', 1)}", "statically known positive trip count"),
        (f"for i in pl.range(65):\n    {WAIT.format('i', 1)}", "at most 64 conditions"),
        (f"for i in pl.range(33):\n    {WAIT.format('i', 1)}\n    {WAIT.format('i', 2)}", "at most 64 conditions"),
        (f"t = pl.load(counts, [0], [8])\n{WAIT.format(0, 1)}", "cannot create or update payload tensors"),
        (f"pl.system.bar_all()\n{WAIT.format(0, 1)}", "supports only a pre-registration tensor.read"),
    ],
)
def test_what_a_waiter_must_not_do(body: str, message: str) -> None:
    with pytest.raises(KernelValueError, match=message) as caught:
        region(body)
    assert "^" in str(caught.value) and "hint" in str(caught.value)


@pytest.mark.parametrize(
    ("scope", "message"),
    [
        ("pl.at(level=pl.Level.CORE_GROUP, allow_early_resolve=True) as t", "cannot use allow_early_resolve=True"),
        ("pl.spmd(1), pl.at(level=pl.Level.CORE_GROUP)", "nesting it in pl.spmd or pl.cluster is unsupported"),
    ],
)
def test_how_a_waiter_must_not_be_launched(scope: str, message: str) -> None:
    body = WAIT.format(0, 1)
    if "," in scope and scope.startswith("pl.spmd"):
        outer, scope = scope.split(", ", 1)
        body = f"with {scope}:\n    {body}"
        scope = outer
    with pytest.raises(KernelValueError, match=message):
        region(body, scope)


ARGS = "signal, counts, other, me"
MARK = '{"deferred_completion_waiter": True}'


@pytest.mark.parametrize(
    ("attrs", "call", "message"),
    [
        ("{}", f"self.waiter({ARGS})", "bypasses the deferred-waiter task contract"),
        (MARK, "x = me + 1", "no task-level Orchestration call site"),
        (MARK, f'self.waiter({ARGS}, attrs={{"allow_early_resolve": True}})', "cannot use allow_early_resolve=True"),
        (MARK, f'self.waiter({ARGS}, attrs={{"core_num": 2}})', "single-block task"),
        (MARK, f'self.waiter({ARGS}, attrs={{"sync_start": True}})', "single-block task"),
        (MARK, f'self.waiter({ARGS}, attrs={{"predicate": counts[0] > 0}})', "cannot use a dispatch predicate"),
    ],
)
def test_kernels_that_only_say_they_are_waiters(attrs: str, call: str, message: str) -> None:
    with pytest.raises(KernelValueError, match=message):
        expanded(attrs, call)


def test_a_waiter_launched_by_a_kernel_is_no_task() -> None:
    with pytest.raises(KernelValueError, match="single-block task"):
        expanded(MARK, f"self.waiter({ARGS})", "Spmd")
    assert expanded(MARK, f"self.waiter({ARGS})").get_function("waiter") is not None
