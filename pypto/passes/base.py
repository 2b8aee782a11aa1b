"""What a pass is.

A pass module ``pypto/passes/<snake_name>.py`` defines a factory of the same name that returns a `Pass`::

    def fold_noise() -> Pass:
        return function_pass("FoldNoise", _run, requires={P.SSAForm}, produces={P.SSAForm}, looks_for=("tile.add",))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from ..ir.enums import FunctionType
from ..ir.program import INCORE_TYPES, Function, Program, summarize
from .context import PassContext, current_or_default
from .properties import IRProperty, IRPropertySet

P = IRProperty

Wanted: TypeAlias = type | str
"""A node or type class, an operator name, or, ending in a dot, an operator namespace (``"tensor."``)."""


ON_HOST = frozenset(FunctionType) - INCORE_TYPES
"""Function types whose functions may call others."""


class Pass:
    """A named function from program to program.

    ``run(program, context)`` returns the program it was given when it changes nothing. ``requires``, ``produces``
    and ``invalidates`` are the properties it relies on, establishes and may break. With ``looks_for``, a program
    that contains none of these classes and operators is returned as it is, without calling ``run``; with ``only``,
    functions of other types count as if they contained nothing.
    """

    __slots__ = (
        "name", "run", "requires", "produces", "invalidates", "_kinds", "_ops", "_namespaces", "_always", "_only",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        run: Callable[[Program, PassContext], Program],
        requires: Iterable[IRProperty] = (),
        produces: Iterable[IRProperty] = (),
        invalidates: Iterable[IRProperty] = (),
        looks_for: Iterable[Wanted] | None = None,
        only: Iterable[FunctionType] | None = None,
    ) -> None:
        self.name = name
        self.run = run
        self.requires = frozenset(requires)
        self.produces = frozenset(produces)
        self.invalidates = frozenset(invalidates)
        wanted = list(looks_for or ())
        self._always = looks_for is None
        self._only = None if only is None else frozenset(only)
        self._kinds = tuple(w for w in wanted if isinstance(w, type))
        names = [w for w in wanted if isinstance(w, str)]
        self._ops = frozenset(n for n in names if not n.endswith("."))
        self._namespaces = tuple(n for n in names if n.endswith("."))

    def __call__(self, program: Program) -> Program:
        """Run on ``program`` under the active `PassContext`, telling its instruments."""
        if not isinstance(program, Program):
            raise TypeError(f"pass {self.name} runs on a Program, got {type(program).__name__}")
        active = PassContext.current()
        instruments = active.instruments if active is not None else ()
        for instrument in instruments:
            instrument.run_before_pass(self, program)
        made = self.apply(program, active or current_or_default())
        for instrument in instruments:
            instrument.run_after_pass(self, made)
        return made

    def apply(self, program: Program, context: PassContext) -> Program:
        """Run without instruments."""
        return self.run(program, context) if self.applies_to(program) else program

    def applies_to(self, program: Program) -> bool:
        """Whether ``program`` contains anything the pass looks for."""
        return any(self.concerns(f) for f in program.functions.values())

    def concerns(self, function: Function) -> bool:
        """Whether ``function`` contains anything the pass looks for."""
        if self._only is not None and function.func_type not in self._only:
            return False
        if self._always:
            return True
        found = summarize(function)
        if not found.kinds.isdisjoint(self._kinds) or not found.ops.isdisjoint(self._ops):
            return True
        return bool(self._namespaces) and any(op.startswith(self._namespaces) for op in found.ops)

    def get_name(self) -> str:
        return self.name

    def get_required_properties(self) -> IRPropertySet:
        return IRPropertySet(self.requires)

    def get_produced_properties(self) -> IRPropertySet:
        return IRPropertySet(self.produces)

    def get_invalidated_properties(self) -> IRPropertySet:
        return IRPropertySet(self.invalidates)

    def __repr__(self) -> str:
        return f"Pass({self.name})"


def function_pass(
    name: str,
    change: Callable[[Function], Function],
    requires: Iterable[IRProperty] = (),
    produces: Iterable[IRProperty] = (),
    invalidates: Iterable[IRProperty] = (),
    looks_for: Iterable[Wanted] | None = None,
    only: Iterable[FunctionType] | None = None,
) -> Pass:
    """A pass that changes functions one by one; functions without anything it looks for are kept."""

    def run(program: Program, _context: PassContext) -> Program:
        return program.map_functions(lambda f: change(f) if made.concerns(f) else f)

    made = Pass(name, run, requires, produces, invalidates, looks_for, only)
    return made


def program_pass(
    name: str,
    change: Callable[[Program], Program],
    requires: Iterable[IRProperty] = (),
    produces: Iterable[IRProperty] = (),
    invalidates: Iterable[IRProperty] = (),
    looks_for: Iterable[Wanted] | None = None,
    only: Iterable[FunctionType] | None = None,
) -> Pass:
    """A pass that changes the program as a whole."""
    return Pass(name, lambda program, _context: change(program), requires, produces, invalidates, looks_for, only)


def create_function_pass(
    transform: Callable[[Function], Function],
    name: str = "",
    required: Iterable[IRProperty] = (),
    produced: Iterable[IRProperty] = (),
    invalidated: Iterable[IRProperty] = (),
) -> Pass:
    """A pass from a user's function of one function."""
    return function_pass(name, transform, required, produced, invalidated)


def create_program_pass(
    transform: Callable[[Program], Program],
    name: str = "",
    required: Iterable[IRProperty] = (),
    produced: Iterable[IRProperty] = (),
    invalidated: Iterable[IRProperty] = (),
) -> Pass:
    """A pass from a user's function of one program."""
    return program_pass(name, transform, required, produced, invalidated)
