"""Questions about operators by name, as `pypto.ir` offers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InternalError
from ..ir.enums import MemorySpace
from ..ir.expr import Call, Op
from ..ir.span import UNKNOWN_SPAN, Span
from .registry import ArgEffect, OpDecl, WriteChannel, build_ir_call, effect_of, get_decl


def _declared(name: str) -> OpDecl:
    decl = get_decl(name)
    if decl is None:
        raise ValueError(f"there is no operator {name!r}")
    return decl


def is_op_registered(name: str) -> bool:
    """Whether ``name`` is an operator."""
    return get_decl(name) is not None


def get_op(name: str) -> Op:
    """The `Op` of operator ``name``. Raises ValueError when there is none."""
    return _declared(name).op


def create_op_call(name: str, args: Sequence[Any], *rest: Any, **named: Any) -> Call:
    """The call ``name(args, **kwargs)`` with its type inferred: ``create_op_call(name, args[, kwargs][, span])``.

    Raises ValueError for operands the operator refuses, TypeError for an attribute of another type. The message ends
    with the span where it is known.
    """
    kwargs, span = _kwargs_and_span(rest, named)
    decl = _declared(name)
    if decl.internal:
        raise ValueError(f"{name} is internal-only: passes write it, programs call pld.tensor collectives")
    try:
        return build_ir_call(decl, args, kwargs, span)
    except InternalError as error:
        error.span = error.span or span
        raise
    except (ValueError, TypeError) as error:
        if span.is_valid():
            error.args = (f"{error} at {span}", *error.args[1:])
        raise


def _kwargs_and_span(rest: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Mapping[str, Any], Span]:
    kwargs, span = named.get("kwargs"), named.get("span")
    for item in rest:
        if isinstance(item, Span):
            span = item
        elif item is None or isinstance(item, Mapping):
            kwargs = item
        else:
            raise TypeError(f"create_op_call takes a mapping of attributes and a Span, not a {type(item).__name__}")
    return kwargs or {}, span or UNKNOWN_SPAN


def get_op_memory_spec(name: str) -> dict[str, Any] | None:
    """Where operator ``name`` takes and puts tiles; None when it neither takes nor gives one, or there is none.

    ``input_constraints`` lists the memories of each constrained argument; ``output_memory`` is a `MemorySpace`,
    ``"deferred"`` (the consumers decide), ``"inherit_from_input"`` or None.
    """
    decl = get_decl(name)
    if decl is None or (decl.result_space is None and decl.inherits is None and not decl.spaces):
        return None
    if not name.startswith(("tile.", "pld.tile.")):
        return None
    inputs = [list(decl.spaces[p.name]) for p in decl.args if p.name in decl.spaces]
    return {"input_constraints": inputs, "output_memory": _output_memory(decl)}


def _output_memory(decl: OpDecl) -> MemorySpace | str | None:
    space = decl.result_space
    if not isinstance(space, str):
        return space if space is not None else "inherit_from_input" if decl.inherits else None
    if decl.by_name[space].effect is not None:
        return "inherit_from_input"
    takes_tile = any("tile" in p.kinds for p in decl.args)
    default = decl.by_name[space].default
    return default if takes_tile and isinstance(default, MemorySpace) else "deferred"


def get_op_arg_effect(name: str, index: int, **kwargs: Any) -> ArgEffect:
    """What operator ``name``, called with attributes ``kwargs``, does to its argument ``index``."""
    return effect_of(_declared(name), index, kwargs)


def op_has_declared_arg_effects(name: str) -> bool:
    """Whether operator ``name`` writes an argument, or acts beyond its result."""
    decl = _declared(name)
    return not decl.pure or any(_writes(decl, i) for i in range(len(decl.args)))


def op_has_declared_arg_effect(name: str, index: int) -> bool:
    """Whether a write through argument ``index`` was stated or, for operators that act without one, ruled out."""
    decl = _declared(name)
    if any(_writes(decl, i) for i in range(len(decl.args))):
        return index < len(decl.args) and _writes(decl, index)
    return not decl.pure


def _writes(decl: OpDecl, index: int) -> bool:
    param = decl.args[index]
    return param.effect is not ArgEffect.Read or param.name in decl.effects


def get_op_write_channel(name: str) -> WriteChannel | None:
    """The path operator ``name``'s writes to global memory take."""
    return _declared(name).channel


def get_declared_core_affinity(name: str) -> str | None:
    """The core operator ``name`` is bound to, ``vector`` or ``cube``; None when its operands decide."""
    core = _declared(name).core.value
    return core if core in ("vector", "cube") else None


def is_no_duplicate_op(name: str) -> bool:
    """Whether a second core must not run a copy of operator ``name``."""
    return not _declared(name).duplicable
