"""Arrays on the host's stack: one C++ array each, written in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...dtypes import DataType
from ...errors import InternalError
from ...ir.expr import Call, ConstInt, Expr, Var
from ...ir.types import ArrayType
from ..context import Op
from .blocks import Handle
from .cpp import cpp, scalar_type

if TYPE_CHECKING:
    from .builder import OrchestrationBuilder


State = dict[str, tuple[int, int]]


class Contents:
    """Which contents each array has: writing in place gives it others, and what named the old ones is out of date."""

    def __init__(self) -> None:
        self._version: dict[str, int] = {}
        self._vars: dict[str, list[Var]] = {}
        self._count = 0

    def of(self, name: str) -> int:
        return self._version.get(name, 0)

    def change(self, name: str) -> int:
        """Give ``name`` new contents; their version."""
        self._count += 1
        self._version[name] = self._count
        return self._count

    def named(self, name: str, var: Var) -> None:
        """Note that ``var`` stands for array ``name``."""
        self._vars.setdefault(name, []).append(var)

    def state(self) -> State:
        """The contents of every array, and how many variables stand for it."""
        return {name: (version, len(self._vars.get(name, ()))) for name, version in self._version.items()}

    def restore(self, state: State) -> None:
        self._version.update({name: version for name, (version, _) in state.items()})

    def changed(self, before: State) -> list[str]:
        """Arrays made before that have other contents now."""
        return [name for name, (version, _) in before.items() if self._version[name] != version]

    def is_known(self, name: str, before: State, values: dict[Var, Handle]) -> bool:
        """Whether a variable that stood for the array before stands for its present contents."""
        known = self._vars.get(name, [])[: before[name][1]]
        return any(values[var].version == self._version[name] for var in known)

    def join(self, values: dict[Var, Handle], before: State, one: State, other: State) -> None:
        """After either of two ways to go on: contents of their own, which variables assigned on the way name."""
        for name, (version, _) in before.items():
            ends = {one[name][0], other[name][0]} - {version}
            if ends:
                merged = self.change(name)
                for var in self._vars[name]:
                    if values[var].version in ends:
                        values[var] = values[var]._replace(version=merged)


def declare(builder: OrchestrationBuilder, var: Var, dtype: DataType, extent: int, fill: str | None) -> Handle:
    """A C++ array for ``var``; each element is ``fill``, or zero."""
    name = builder.names.take(var.name_hint)
    kind = scalar_type(dtype, var.span)
    builder.emit(Op("array", type=kind, name=name, extent=extent, fill=fill))
    return Handle(name, builder.block, extent=extent, version=builder.contents.change(name))


def _array_type(value: Expr) -> ArrayType:
    if not isinstance(value.type, ArrayType):
        raise InternalError(f"an array was expected, not {value.type}", value.span)
    return value.type


def _extent(value: Expr) -> int:
    extent = _array_type(value).extent
    if not isinstance(extent, ConstInt):
        raise InternalError("an array's extent was expected to be constant", value.span)
    return extent.value


def _create(builder: OrchestrationBuilder, call: Call, var: Var) -> None:
    dtype = _array_type(call).dtype
    fill = cpp("invalid_task") if dtype is DataType.TASK_ID else None
    bind(builder, var, declare(builder, var, dtype, _extent(call), fill))


def bind(builder: OrchestrationBuilder, var: Var, handle: Handle) -> None:
    """Let ``var`` stand for an array with its present contents."""
    builder.contents.named(handle.text, var)
    builder.bind(var, handle._replace(version=builder.contents.of(handle.text)))


def _place(builder: OrchestrationBuilder, array: Expr, index: Expr) -> str:
    return cpp("element", builder.tensor(array).text, builder.scalars.text(index))


def _get(builder: OrchestrationBuilder, call: Call) -> str:
    return _place(builder, *call.args[:2])


def _get_into(builder: OrchestrationBuilder, call: Call, var: Var) -> None:
    builder.assign_scalar(var, _get(builder, call))


def _update(builder: OrchestrationBuilder, call: Call, var: Var) -> None:
    array, index, value = call.args
    handle = builder.tensor(array)
    builder.emit(Op("set", target=_place(builder, array, index), value=builder.scalars.text(value)))
    builder.contents.change(handle.text)
    bind(builder, var, handle)


def hand_on(builder: OrchestrationBuilder, target: Handle, value: Expr) -> None:
    """Give the carried array ``target`` the contents of the array ``value``: none to move when they are the same."""
    source = builder.tensor(value)
    if source.text == target.text:
        return
    builder.emit(Op("copy_array", target=target.text, source=source.text, extent=target.extent))
    builder.contents.change(target.text)


def _invalid(builder: OrchestrationBuilder, call: Call, var: Var) -> None:
    builder.assign_scalar(var, cpp("invalid_task"))


def _is_valid(builder: OrchestrationBuilder, call: Call) -> str:
    return cpp("method", builder.scalars.text(call.args[0]), "is_valid", [])


def _is_valid_into(builder: OrchestrationBuilder, call: Call, var: Var) -> None:
    builder.assign_scalar(var, _is_valid(builder, call))


OPERATORS: dict[str, Any] = {
    "array.create": _create,
    "array.get_element": _get_into,
    "array.update_element": _update,
    "system.task_invalid": _invalid,
    "system.task_is_valid": _is_valid_into,
}
SCALARS: dict[str, Any] = {
    "array.get_element": _get,
    "system.task_is_valid": _is_valid,
    "system.task_invalid": lambda builder, call: cpp("invalid_task"),
}
