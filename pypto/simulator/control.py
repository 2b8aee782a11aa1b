"""Constants, loops, branches and calls as steps."""

from __future__ import annotations

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.func import CallOp, ReturnOp
from xdsl.dialects.scf import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from xdsl.ir import Block, Operation

from pypto.pto.errors import PtoError
from pypto.pto.parser import location_of

from .scalars import constant_value
from .steps import BUILDERS, Compiler, Env, Step, guard


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


def _body(self: Compiler, block: Block, targets: tuple[int, ...]) -> list[Step]:
    """Steps of a block that ends by yielding into ``targets``."""
    steps = self.block(block)
    last = block.last_op
    if isinstance(last, YieldOp):
        copy = _assign(self.slots_of(last.operands), targets)
        if copy is not None:
            steps.append(copy)
    return steps


def _for(self: Compiler, op: ForOp) -> Step:
    block = op.body.block
    lower, upper, step = self.slots_of((op.lb, op.ub, op.step))
    induction, *carried = self.slots_of(block.args)
    enter = _assign(self.slots_of(op.iter_args), tuple(carried))
    leave = _assign(tuple(carried), self.slots_of(op.results))
    body = _body(self, block, tuple(carried))

    def loop(env: Env) -> None:
        stride = env[step]
        if stride <= 0:
            raise PtoError(f"scf.for needs a positive step, got {stride}")
        if enter is not None:
            enter(env)
        for index in range(env[lower], env[upper], stride):
            env[induction] = index
            for run in body:
                run(env)
        if leave is not None:
            leave(env)

    return guard(loop, op)


def _if(self: Compiler, op: IfOp) -> Step:
    condition = self.slot(op.cond)
    results = self.slots_of(op.results)
    then = _body(self, op.true_region.block, results)
    otherwise = _body(self, op.false_region.block, results) if op.false_region.blocks else []

    def branch(env: Env) -> None:
        for run in then if env[condition] else otherwise:
            run(env)

    return branch


def _while(self: Compiler, op: WhileOp) -> Step:
    before, after = op.before_region.block, op.after_region.block
    enter = _assign(self.slots_of(op.arguments), self.slots_of(before.args))
    test = self.block(before)
    decision = before.last_op
    if decision is None:
        raise PtoError("scf.while without scf.condition", location_of(op))
    condition, *passed = self.slots_of(decision.operands)
    forward = _assign(tuple(passed), self.slots_of(after.args))
    leave = _assign(tuple(passed), self.slots_of(op.results))
    body = _body(self, after, self.slots_of(before.args))

    def loop(env: Env) -> None:
        if enter is not None:
            enter(env)
        while True:
            for run in test:
                run(env)
            if not env[condition]:
                break
            if forward is not None:
                forward(env)
            for run in body:
                run(env)
        if leave is not None:
            leave(env)

    return loop


def _call(self: Compiler, op: CallOp) -> Step:
    name = op.callee.string_value()
    arguments = self.slots_of(op.operands)
    results = self.slots_of(op.results)
    invoke = self.invoke

    def call(env: Env) -> None:
        returned = invoke(name, env[0], [env[slot] for slot in arguments])
        for slot, value in zip(results, returned, strict=True):
            env[slot] = value

    return guard(call, op)


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
