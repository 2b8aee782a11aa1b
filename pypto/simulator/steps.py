"""Operations as closures over a list of values: slots, instructions, scalar functions, error places.

Every SSA value has a slot in ``env``; every operation becomes one function of ``env``. Slot 0 holds
the core.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from xdsl.ir import Block, Operation, SSAValue

from pypto.backend.target import Target
from pypto.errors import Location
from pypto.pto.dialect import InstructionOp
from pypto.pto.errors import PtoError
from pypto.pto.parser import location_of
from pypto.pto.shapes import Tile
from pypto.pto.spec import Instruction, Site
from pypto.pto.types import PartitionViewType, PtrType, TensorViewType, TileBufType
from pypto.pto.verify import site_of

from .sanitize import watch
from .scalars import scalar_function
from .scheduler import Steps

if TYPE_CHECKING:
    from .compile import Function

Env = list[Any]
Step = Callable[[Env], None]
Functions = Callable[[str], "Function"]
"""Another function of the module, by name."""


class Resuming(NamedTuple):
    """A step that may have to wait for another core: run it with ``yield from``."""

    run: Callable[[Env], Steps]


AnyStep = Step | Resuming


def plain(steps: Sequence[AnyStep]) -> list[Step]:
    """The steps that never wait; all of them in most kernels."""
    return [step for step in steps if not isinstance(step, Resuming)]


def resume(steps: Sequence[AnyStep], env: Env) -> Steps:
    """Run steps of which some may wait."""
    for step in steps:
        if isinstance(step, Resuming):
            yield from step.run(env)
        else:
            step(env)


def located(error: PtoError, loc: Location | None) -> PtoError:
    """The error with the place of the operation that raised it, unless it has one."""
    return error if error.span is not None or loc is None else PtoError(error.message, loc, error.hint, error.note)


def guard_resuming(run: Callable[[Env], Steps], op: Operation) -> Resuming:
    """A step that may wait, with errors naming the place of ``op``."""
    loc = location_of(op)

    def guarded(env: Env) -> Steps:
        try:
            yield from run(env)
        except PtoError as error:
            raise located(error, loc) from None

    return Resuming(guarded)


def guard(step: Step, op: Operation) -> Step:
    """``step`` with errors naming the place of ``op``."""
    loc = location_of(op)

    def guarded(env: Env) -> None:
        try:
            step(env)
        except PtoError as error:
            raise located(error, loc) from None

    return guarded


_GLOBAL = (PtrType, TensorViewType, PartitionViewType)
"""Types of values that lead to global memory."""


def at_line(step: AnyStep, loc: Location | None) -> AnyStep:
    """``step``, with its place told to what records accesses to global memory."""

    def here(env: Env) -> None:
        if env[0].strand is not None:
            env[0].strand.loc = loc

    if isinstance(step, Resuming):
        run = step.run

        def resuming(env: Env) -> Steps:
            here(env)
            return (yield from run(env))

        return Resuming(resuming)

    def plain(env: Env) -> None:
        here(env)
        step(env)

    return plain


BUILDERS: dict[type[Operation], Callable[[Compiler, Any], AnyStep | None]] = {}
"""What makes the step of each kind of operation; filled by `control` and `data`. None when it needs no step."""


class Compiler:
    """Compiles one function; `template` is the initial ``env``, constants filled in."""

    def __init__(self, target: Target, functions: Functions, sanitize: bool) -> None:
        self.target = target
        self.functions = functions
        self.sanitize = sanitize
        self.template: Env = [None]
        self.slots: dict[SSAValue, int] = {}
        self.tiles: dict[tuple[Tile, int], int] = {}
        """The slot of each tile allocated at a constant address, before anything else is done."""

    def slot(self, value: SSAValue) -> int:
        found = self.slots.get(value)
        if found is None:
            found = self.slots[value] = len(self.template)
            self.template.append(None)
        return found

    def spare(self) -> int:
        """A slot for a step's own use."""
        self.template.append(None)
        return len(self.template) - 1

    def slots_of(self, values: Sequence[SSAValue]) -> tuple[int, ...]:
        return tuple(self.slot(value) for value in values)

    def block(self, block: Block) -> list[AnyStep]:
        """Steps of a block, without its terminator."""
        steps: list[AnyStep] = []
        for op in block.ops:
            step = self.step(op)
            if step is not None:
                steps.append(step)
        return steps

    def step(self, op: Operation) -> AnyStep | None:
        made = self._step(op)
        if self.sanitize and made is not None and any(isinstance(v.type, _GLOBAL) for v in op.operands):
            return at_line(made, location_of(op))
        return made

    def _step(self, op: Operation) -> AnyStep | None:
        if isinstance(op, InstructionOp):
            return self.instruction(op)
        build = BUILDERS.get(type(op))
        if build is not None:
            return build(self, op)
        function = scalar_function(op)
        if function is None:
            raise PtoError(f"the simulator has no '{op.name}'", location_of(op))
        return guard(apply(function, self.slots_of(op.operands), self.slot(op.results[0])), op)

    def instruction(self, op: InstructionOp) -> Step:
        spec = op.spec
        site = site_of(op, self.target)
        values = op.values()
        absent = tuple(name not in values for name in spec.uses)
        run = spec.bind(site)
        if any(absent):
            run = _without(run, absent)
        names = tuple(name for name in spec.uses if name in values)
        if self.sanitize:
            names = tuple(values)
            run = watch(site, names, run)
        slots = tuple(self.slot(values[name]) for name in names)
        return _instruction_step(run, slots, self.slot(_measured(spec, values)), site, location_of(op))


def _without(run: Callable[..., None], absent: tuple[bool, ...]) -> Callable[..., None]:
    """``run`` called with the operands present, None for the others."""

    def call(*given: Any) -> None:
        rest = iter(given)
        run(*(None if gone else next(rest) for gone in absent))

    return call


def _measured(spec: Instruction, values: dict[str, SSAValue]) -> SSAValue:
    """The tile whose valid extents say how much work an instruction does."""
    names = [operand.name for operand in (*spec.outs, *spec.ins)]
    return next(values[name] for name in names if name in values and isinstance(values[name].type, TileBufType))


def _instruction_step(
    run: Callable[..., None], slots: tuple[int, ...], measured: int, site: Site, loc: Location | None
) -> Step:
    if len(slots) == 2:
        first, second = slots

        def two(env: Env) -> None:
            try:
                run(env[first], env[second])
            except PtoError as error:
                raise located(error, loc) from None
            env[0].executed[site, env[measured].valid] += 1

        return two
    if len(slots) == 3:
        first, second, third = slots

        def three(env: Env) -> None:
            try:
                run(env[first], env[second], env[third])
            except PtoError as error:
                raise located(error, loc) from None
            env[0].executed[site, env[measured].valid] += 1

        return three

    def general(env: Env) -> None:
        try:
            run(*[env[slot] for slot in slots])
        except PtoError as error:
            raise located(error, loc) from None
        env[0].executed[site, env[measured].valid] += 1

    return general


def apply(function: Callable[..., Any], slots: tuple[int, ...], out: int) -> Step:
    if len(slots) == 2:
        left, right = slots

        def binary(env: Env) -> None:
            env[out] = function(env[left], env[right])

        return binary
    if len(slots) == 1:
        (only,) = slots

        def unary(env: Env) -> None:
            env[out] = function(env[only])

        return unary

    def general(env: Env) -> None:
        env[out] = function(*[env[slot] for slot in slots])

    return general
