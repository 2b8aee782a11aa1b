"""Constants, loops, branches and calls as steps."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.func import CallOp, ReturnOp
from xdsl.dialects.scf import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from xdsl.ir import Block, Operation

from pypto.pto.errors import PtoError
from pypto.pto.parser import location_of

from .scalars import constant_value
from .scheduler import Steps
from .steps import BUILDERS, AnyStep, Compiler, Env, Resuming, Step, guard, guard_resuming, plain, resume


def _constant(self: Compiler, op: ConstantOp) -> None:
    # The slot must exist before the template is indexed: `slot` appends to it.
    slot = self.slot(op.results[0])
    self.template[slot] = constant_value(op)


def _nothing(self: Compiler, op: Operation) -> None:
    return None


def _assign(sources: tuple[int, ...], targets: tuple[int, ...]) -> Step | None:
    """Copy slots to slots at once, as if all were read before any is written."""
    pairs = [(source, target) for source, target in zip(sources, targets, strict=True) if source != target]
    if not pairs:
        return None
    if len(pairs) == 1:
        ((source, target),) = pairs

        def one(env: Env) -> None:
            env[target] = env[source]

        return one
    froms, tos = [source for source, _ in pairs], [target for _, target in pairs]

    def many(env: Env) -> None:
        values = [env[source] for source in froms]
        for target, value in zip(tos, values, strict=True):
            env[target] = value

    return many


def _body(self: Compiler, block: Block, targets: tuple[int, ...]) -> list[AnyStep]:
    """Steps of a block that ends by yielding into ``targets``."""
    steps = self.block(block)
    last = block.last_op
    if isinstance(last, YieldOp):
        copy = _assign(self.slots_of(last.operands), targets)
        if copy is not None:
            steps.append(copy)
    return steps


def _indices(env: Env, lower: int, upper: int, step: int) -> range:
    """The values a loop counts through."""
    stride = env[step]
    if stride <= 0:
        raise PtoError(f"scf.for needs a positive step, got {stride}")
    return range(env[lower], env[upper], stride)


def _for(self: Compiler, op: ForOp) -> AnyStep:
    block = op.body.block
    lower, upper, step = self.slots_of((op.lb, op.ub, op.step))
    induction, *carried = self.slots_of(block.args)
    enter = _assign(self.slots_of(op.iter_args), tuple(carried)) or _ignore
    leave = _assign(tuple(carried), self.slots_of(op.results)) or _ignore
    body = _body(self, block, tuple(carried))
    straight = plain(body)

    def loop(env: Env) -> None:
        indices = _indices(env, lower, upper, step)
        enter(env)
        for index in indices:
            env[induction] = index
            for run in straight:
                run(env)
        leave(env)

    def waiting(env: Env) -> Steps:
        indices = _indices(env, lower, upper, step)
        enter(env)
        for index in indices:
            env[induction] = index
            yield from resume(body, env)
        leave(env)

    return guard(loop, op) if len(straight) == len(body) else guard_resuming(waiting, op)


def _ignore(env: Env) -> None:
    """Nothing to copy."""


def _if(self: Compiler, op: IfOp) -> AnyStep:
    condition = self.slot(op.cond)
    results = self.slots_of(op.results)
    then = _body(self, op.true_region.block, results)
    otherwise = _body(self, op.false_region.block, results) if op.false_region.blocks else []
    straight = plain(then), plain(otherwise)

    def branch(env: Env) -> None:
        for run in straight[0] if env[condition] else straight[1]:
            run(env)

    def waiting(env: Env) -> Steps:
        yield from resume(then if env[condition] else otherwise, env)

    return branch if (len(straight[0]), len(straight[1])) == (len(then), len(otherwise)) else Resuming(waiting)


def _while(self: Compiler, op: WhileOp) -> AnyStep:
    before, after = op.before_region.block, op.after_region.block
    enter = _assign(self.slots_of(op.arguments), self.slots_of(before.args)) or _ignore
    test = self.block(before)
    decision = before.last_op
    if decision is None:
        raise PtoError("scf.while without scf.condition", location_of(op))
    condition, *passed = self.slots_of(decision.operands)
    forward = _assign(tuple(passed), self.slots_of(after.args)) or _ignore
    leave = _assign(tuple(passed), self.slots_of(op.results)) or _ignore
    body = _body(self, after, self.slots_of(before.args))
    straight_test, straight = plain(test), plain(body)

    def loop(env: Env) -> None:
        enter(env)
        while True:
            for run in straight_test:
                run(env)
            if not env[condition]:
                break
            forward(env)
            for run in straight:
                run(env)
        leave(env)

    def waiting(env: Env) -> Steps:
        enter(env)
        while True:
            yield from resume(test, env)
            if not env[condition]:
                break
            forward(env)
            yield from resume(body, env)
        leave(env)

    return loop if (len(straight_test), len(straight)) == (len(test), len(body)) else Resuming(waiting)


def _call(self: Compiler, op: CallOp) -> AnyStep:
    arguments = self.slots_of(op.operands)
    results = self.slots_of(op.results)
    callee = self.functions(op.callee.string_value())

    def leave(env: Env, returned: list[Any]) -> None:
        for slot, value in zip(results, returned, strict=True):
            env[slot] = value

    def call(env: Env) -> None:
        leave(env, callee.call(env[0], [env[slot] for slot in arguments]))

    def waiting(env: Env) -> Steps:
        leave(env, (yield from callee.start(env[0], [env[slot] for slot in arguments])))

    return guard_resuming(waiting, op) if callee.resumes else guard(call, op)


BUILDERS.update(
    {
        ConstantOp: _constant,
        YieldOp: _nothing,
        ConditionOp: _nothing,
        ReturnOp: _nothing,
        ForOp: _for,
        IfOp: _if,
        WhileOp: _while,
        CallOp: _call,
    }
)
