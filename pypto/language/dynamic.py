"""Dimensions whose extent is known only at run time."""

from __future__ import annotations

from typing import Any

from ..dtypes import DataType
from ..ir.expr import Expr, Var
from ..ir.types import ScalarType


class DynVar:
    """A run-time dimension. The same object is the same dimension wherever it is used.

    ``var`` is the INDEX variable that stands for it in types.
    """

    __slots__ = ("name", "var")

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"a dynamic dimension needs a name that is an identifier, got {name!r}")
        self.name = name
        self.var = Var(name, ScalarType(DataType.INDEX))

    @classmethod
    def of(cls, var: Var) -> DynVar:
        """The dimension that ``var`` stands for."""
        made = cls(var.name_hint)
        made.var = var
        return made

    def __add__(self, other: Any) -> Expr:
        return self.var + other

    def __radd__(self, other: Any) -> Expr:
        return other + self.var

    def __sub__(self, other: Any) -> Expr:
        return self.var - other

    def __rsub__(self, other: Any) -> Expr:
        return other - self.var

    def __mul__(self, other: Any) -> Expr:
        return self.var * other

    def __rmul__(self, other: Any) -> Expr:
        return other * self.var

    def __floordiv__(self, other: Any) -> Expr:
        return self.var // other

    def __mod__(self, other: Any) -> Expr:
        return self.var % other

    def __repr__(self) -> str:
        return f"pl.dynamic({self.name!r})"


def dynamic(name: str) -> DynVar:
    """A dimension called ``name`` whose extent each launch decides.

    Raises ValueError when ``name`` is not an identifier.
    """
    return DynVar(name)


class _Runtime:
    """The type of `RUNTIME`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "pl.RUNTIME"


RUNTIME = _Runtime()
"""In place of a scalar argument of ``kernel.compile(..)``: the value is given when the compiled program runs."""
