"""What a kernel's entry point unpacks from its argument words, and what it passes on to the kernel.

Tensors come first, then scalars and communication contexts, each a 64-bit word. What PTO codegen added to the kernel's
parameters has no word: extents are read from the tensors' descriptors, the rest is asked of the runtime.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from ...arith.inverse import solve
from ...dtypes import DataType
from ...errors import user_error
from ...ir.expr import Expr, Var
from ...ir.naming import free_name, identifier, written_name
from ...ir.program import Function
from ...ir.types import CommCtxType, ScalarType, TensorType
from ...ops.rules import value as constant
from ..cpp_names import KEYWORDS, SCALAR_TYPES
from ..kernel import distributed_params, dynamic_dims
from ..pairs import PAIRED
from ..render import macro

_TYPES: Final = SCALAR_TYPES | {
    DataType.FP16: "half", DataType.BF16: "bfloat16_t", DataType.FP8E4M3FN: "float8_e4m3_t",
    DataType.FP8E5M2: "float8_e5m2_t", DataType.FP8E8M0: "float8_e8m0_t", DataType.HF8: "hifloat8_t",
    DataType.FP4: "float4_e2m1x2_t",
}  # fmt: skip
_RESERVED: Final = KEYWORDS | {"half", "args"}


@dataclass(frozen=True)
class Argument:
    """A value the entry point passes on: ``kind`` names the macro that declares it, ``word`` is its argument word."""

    kind: str
    name: str
    type: str = ""
    word: int = -1
    text: str = ""


def arguments_of(function: Function) -> list[Argument]:
    """The arguments of a kernel, but those that every launch has: in the order of its parameters.

    Raises ValueError for an extent that does not follow from the shapes of the tensors.
    """
    names = _Names()
    tensors = [p for p in function.params if isinstance(p.type, TensorType)]
    scalars = [p for p in function.params if isinstance(p.type, ScalarType)]
    given = [p for p in function.params if isinstance(p.type, CommCtxType)]
    known = {p: names.take(p.name_hint) for p in (*tensors, *scalars, *given)}
    made = [Argument("tensor", known[p], cpp_type(p), i) for i, p in enumerate(tensors)]
    made += [Argument("scalar", known[p], cpp_type(p), len(made) + i) for i, p in enumerate(scalars)]
    contexts = [known[p] for p in given]
    for tensor in distributed_params(function)[len(given) :]:
        contexts.append(names.take(f"{written_name(tensor.name_hint)}_ctx"))
    made += [Argument("context", name, "", len(made) + i) for i, name in enumerate(contexts)]
    for dim in dynamic_dims(function):
        made.append(Argument("extent", names.take(dim.name_hint), text=_recovered(dim, tensors, known, function)))
    return made


def cpp_type(param: Var) -> str:
    """The C++ type of a parameter's elements, or of a scalar one. Raises ValueError for a dtype the device lacks."""
    dtype: DataType = param.type.dtype  # pyright: ignore[reportAttributeAccessIssue]
    found = _TYPES.get(dtype)
    if found is None:
        name = written_name(param.name_hint)
        raise user_error(ValueError, f"parameter {name!r} holds {dtype}, which a kernel cannot be given", param.span)
    return found


class _Names:
    """Hands out each C++ identifier once."""

    def __init__(self) -> None:
        self._used: set[str] = set(_RESERVED)

    def take(self, hint: str) -> str:
        name = free_name(identifier(hint), self._used)
        self._used.add(name)
        return name


# Extents: a symbol's value, from a dimension that is an expression of it.


def _recovered(dim: Var, tensors: list[Var], names: dict[Var, str], function: Function) -> str:
    for tensor, axis, stated in _dimensions(tensors):
        shape = _cpp("shape", names[tensor], axis)
        if tensor.type.dtype in PAIRED and axis == len(tensor.type.shape) - 1:  # pyright: ignore[reportAttributeAccessIssue]
            shape = _cpp("times", shape, 2)
        text = _solved(stated, dim, shape)
        if text is not None:
            return text
    raise user_error(
        ValueError,
        f"{written_name(dim.name_hint)!r} has non-invertible uses only in the shapes of {function.name!r}: no tensor's "
        "extent says what it is",
        function.span,
        f"give it as a parameter of its own: {written_name(dim.name_hint)}: pl.Scalar[pl.INDEX]",
    )


def _dimensions(tensors: list[Var]) -> Iterator[tuple[Var, int, Expr]]:
    for tensor in tensors:
        for axis, stated in enumerate(tensor.type.shape):  # pyright: ignore[reportAttributeAccessIssue]
            yield tensor, axis, stated


def _solved(stated: Expr, dim: Var, value: str) -> str | None:
    """``dim`` as C++, where ``stated`` is an expression of it that has the value ``value``; None when many would do."""
    found = solve(stated, constant)
    if found is None or found[0] is not dim:
        return None
    for step, number in found[1]:
        value = _cpp("less", number, value) if step == "from" else _cpp(step, value, number)
    return value


def _cpp(construct: str, *parts: Any) -> str:
    """The C++ expression ``construct``, a macro of ``arguments.cpp.j2``, of ``parts``."""
    return macro("wrapper/arguments.cpp.j2", construct, *parts)


def unpacking(arguments: list[Argument]) -> str:
    """The C++ that declares ``arguments``."""
    return "".join(_cpp(a.kind, a) for a in arguments)
