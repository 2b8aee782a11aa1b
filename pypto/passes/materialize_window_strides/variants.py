"""The kinds of arguments each function is called with: one function in the result for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...dtypes import DataType
from ...errors import user_error
from ...ir.enums import FunctionType
from ...ir.expr import Call, Expr, Submit, Var, const_value
from ...ir.naming import free_name, written_name
from ...ir.program import Function, Program, summarize
from ...ir.types import ScalarType, TensorType
from ...ir.visitor import substitute
from ..return_lineage import ReturnLineage
from .analysis import CallStrides, Strides, equal, packed_strides, stated_strides

Key = tuple[object, ...]
"""For each parameter None, or its strides: numbers, and None for those a call passes. Last, what its group is given."""


@dataclass(eq=False)
class Variant:
    """One kind of a function: ``strides`` are those its parameters come to state, ``leading`` what calls pass first."""

    function: Function
    name: str
    strides: dict[Var, Strides] = field(default_factory=dict)
    leading: list[Var] = field(default_factory=list)
    calls: dict[Call | Submit, tuple[Variant, list[Expr]]] = field(default_factory=dict)
    """For each call, what is called, and what is passed first."""
    peers: dict[str, str] = field(default_factory=dict)
    """New names of the functions that run beside this one, where they have some."""

    def callees(self) -> list[tuple[str, Variant]]:
        """What each call named, and what it calls."""
        return [(call.op.name, callee) for call, (callee, _) in self.calls.items()]

    @property
    def changed(self) -> bool:
        """Whether the function becomes another one."""
        return bool(
            self.strides or self.peers or self.name != self.function.name
            or any(callee.name != call.op.name or first for call, (callee, first) in self.calls.items())
        )  # fmt: skip


class Variants:
    """The variants of the functions of ``program``, by function, those on packed tensors first."""

    def __init__(self, program: Program) -> None:
        self._functions = {f.name: f for f in program.functions.values()}
        self._lineage = ReturnLineage(program)
        self._made: dict[tuple[str, Key], Variant] = {}
        self.of: dict[str, list[Variant]] = {}
        called = set().union(*(summarize(f).callees for f in self._functions.values()))
        for function in self._functions.values():
            if function.name not in called:
                self._variant(function, [None] * len(function.params), ())
        for name, function in self._functions.items():
            if name not in self.of:
                # Functions that call each other in a circle.
                self._variant(function, [None] * len(function.params), ())
        self._name()

    @property
    def matter(self) -> bool:
        """Whether anything changes."""
        return any(v.changed for variants in self.of.values() for v in variants)

    def _variant(self, function: Function, given: Sequence[Strides | None], group: Key) -> Variant:
        key = (*(None if s is None else tuple(const_value(e) for e in s) for s in given), group)
        found = self._made.get((function.name, key))
        if found is not None:
            return found
        made = self._made[function.name, key] = Variant(function, function.name)
        known: dict[Var, Strides | None] = {}
        for param, strides in zip(function.params, given):
            if strides is not None:
                made.strides[param] = _in_own_terms(param, strides, made.leading)
            if isinstance(param.type, TensorType):
                known[param] = made.strides.get(param) or stated_strides(param.type)
        variants = self.of.setdefault(function.name, [])
        variants.insert(0 if not made.strides and not any(group) else len(variants), made)
        if not function.is_incore:
            # The parts of a group name each other, so that each variant of it has parts of its own.
            inside = key if function.func_type is FunctionType.Group and made.strides else ()
            CallStrides(
                function, known, self._lineage, lambda call, args: self._call(made, call, args, inside)
            )
        return made

    def _call(self, caller: Variant, call: Call | Submit, args: Sequence[Strides | None], group: Key) -> None:
        callee = self._functions.get(call.op.name)
        if callee is None or callee.attrs.get("external_source"):
            return
        given = [_wanted(callee, i, call, strides) for i, strides in enumerate(args)]
        given += [None] * (len(callee.params) - len(given))
        variant = self._variant(callee, given, group)
        first = [e for strides in given if strides is not None for e in strides if const_value(e) is None]
        caller.calls[call] = variant, first

    def _name(self) -> None:
        for name, variants in self.of.items():
            for variant in variants[1:]:
                variant.name = self._free_name(f"{name}__strided")
        for variants in self.of.values():
            for variant in variants:
                if variant.function.func_type is FunctionType.Group:
                    renamed = {n: c.name for n, c in variant.callees() if c.name != n}
                    for _, callee in variant.callees():
                        callee.peers = renamed

    def _free_name(self, name: str) -> str:
        return free_name(name, {v.name for variants in self.of.values() for v in variants} | self._functions.keys())


def _in_own_terms(param: Var, strides: Strides, leading: list[Var]) -> Strides:
    """``strides`` with a parameter, added to ``leading``, for each that is no constant."""
    made: list[Expr] = []
    for axis, stride in enumerate(strides):
        if const_value(stride) is None:
            stride = Var(f"{written_name(param.name_hint)}_stride{axis}", ScalarType(DataType.INDEX), param.span)
            leading.append(stride)
        made.append(stride)
    return tuple(made)


def _wanted(callee: Function, index: int, call: Call | Submit, strides: Strides | None) -> Strides | None:
    """The strides parameter ``index`` has to come to state; None when it may stay as it is."""
    param, arg = callee.params[index], call.args[index]
    if not isinstance(param.type, TensorType) or not isinstance(arg.type, TensorType):
        return None
    stated = stated_strides(param.type)
    if stated is None and strides is None:
        return None
    name = written_name(param.name_hint)
    if stated is not None:
        bound = _bound(callee.params, call.args)
        have = strides or packed_strides(arg.type)
        if len(have) == len(stated) and all(
            const_value(n) == 1 or equal(substitute(s, bound), h) for n, s, h in zip(arg.type.shape, stated, have)
        ):
            return None
        raise user_error(
            ValueError,
            f"{name!r} of {callee.name!r} states strides that its argument does not have",
            call.span,
            "leave the strides out of the parameter: they follow from the windows it is given",
        )
    if strides is not None and (len(param.type.shape) != len(strides) or param.type.layout is not arg.type.layout):
        raise user_error(
            ValueError,
            f"{name!r} of {callee.name!r} has another rank or layout than the window it is given",
            call.span,
            "give the parameter the window's shape and layout",
        )
    return strides


def _bound(params: Sequence[Var], args: Sequence[Expr]) -> Mapping[Var, Expr]:
    """What a call says the symbols and numbers of a function's parameters are."""
    found: dict[Var, Expr] = {}
    for param, arg in zip(params, args):
        if isinstance(param.type, ScalarType):
            found[param] = arg
        elif isinstance(param.type, TensorType) and isinstance(arg.type, TensorType):
            found.update((d, e) for d, e in zip(param.type.shape, arg.type.shape) if isinstance(d, Var))
    return found
