"""Integer expressions as sums: a constant plus coefficients times atoms.

Collecting terms is exact in two's complement at every width, because addition, subtraction and multiplication by a
constant are ring operations. What compares or divides sums must check for itself that nothing wraps (`bounds`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final

from ..dtypes import DataType
from ..ir import expr as E
from ..ir.expr import BinaryExpr, ConstBool, ConstFloat, ConstInt, Expr, UnaryExpr, Var
from ..ir.span import Span
from ..ir.structural import structural_equal, structural_hash

_COMMUTATIVE: Final = frozenset(
    {E.Add, E.Mul, E.Min, E.Max, E.Eq, E.Ne, E.And, E.Or, E.Xor, E.BitAnd, E.BitOr, E.BitXor}
)
_FLIPPED: Final[dict[type, type]] = {E.Gt: E.Lt, E.Ge: E.Le}
_INDEX_LIKE: Final = frozenset({DataType.INDEX, DataType.INT64})


def is_index_like(e: Expr) -> bool:
    """Whether ``e`` is a 64-bit signed integer: sizes and positions, whose arithmetic is taken not to overflow."""
    return e.dtype in _INDEX_LIKE


def same_dtype(a: Expr, b: Expr) -> bool:
    """Whether one can stand for the other: INDEX and INT64 are one representation."""
    x, y = a.dtype, b.dtype
    return x is y or (x in _INDEX_LIKE and y in _INDEX_LIKE)


def discardable(e: Expr) -> bool:
    """Whether evaluating ``e`` has no effect, so that an expression may drop it."""
    if isinstance(e, (Var, ConstInt, ConstFloat, ConstBool)):
        return True
    if isinstance(e, BinaryExpr):
        return discardable(e.left) and discardable(e.right)
    if isinstance(e, UnaryExpr):
        return discardable(e.operand)
    if isinstance(e, E.TupleGetItemExpr):
        return discardable(e.tuple)
    if isinstance(e, E.Call):
        return e.op.decl is not None and e.op.decl.pure and all(discardable(a) for a in e.args)
    return isinstance(e, E.MakeTuple) and all(discardable(a) for a in e.elements)


class _Structure:
    """A key for an expression that is no arithmetic: equal when the expressions are."""

    __slots__ = ("expr", "code")

    def __init__(self, expr: Expr) -> None:
        self.expr = expr
        self.code = structural_hash(expr)

    def __hash__(self) -> int:
        return self.code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Structure) and structural_equal(self.expr, other.expr)


def key_of(e: Any) -> Hashable:
    """A key equal for expressions that always have the same value; operand order of commutative ones is dropped."""
    cls = e.__class__
    if isinstance(e, Var):
        return e.unique_id
    if cls is ConstInt or cls is ConstFloat or cls is ConstBool:
        return (cls, e.value)
    if isinstance(e, BinaryExpr):
        a, b = key_of(e.left), key_of(e.right)
        if cls in _COMMUTATIVE:
            return (cls, frozenset((a, b)))
        return (_FLIPPED[cls], b, a) if cls in _FLIPPED else (cls, a, b)
    if isinstance(e, UnaryExpr):
        return (cls, e.dtype, key_of(e.operand))
    if cls is E.TupleGetItemExpr:
        return (cls, e.index, key_of(e.tuple))
    return _Structure(e) if discardable(e) else id(e)


def same_value(a: Expr, b: Expr) -> bool:
    """Whether the two are the same computation."""
    return a is b or key_of(a) == key_of(b)


def identical(a: Any, b: Any) -> bool:
    """Whether the two (scalars) are written the same, operand order included."""
    if a is b:
        return True
    if a.__class__ is not b.__class__ or not (a.type is b.type or same_dtype(a, b)):
        return False
    if isinstance(a, BinaryExpr):
        return identical(a.left, b.left) and identical(a.right, b.right)
    if isinstance(a, UnaryExpr):
        return identical(a.operand, b.operand)
    return isinstance(a, (ConstInt, ConstFloat, ConstBool)) and a.value == b.value


def cost(e: Expr) -> int:
    """Nodes in the arithmetic of ``e``."""
    if isinstance(e, BinaryExpr):
        return 1 + cost(e.left) + cost(e.right)
    return 1 + cost(e.operand) if isinstance(e, UnaryExpr) else 1


class Sum:
    """``const`` plus each atom times its coefficient, in order of appearance. No coefficient is zero."""

    __slots__ = ("terms", "const")

    def __init__(self, const: int = 0) -> None:
        self.terms: dict[Hashable, tuple[Any, int]] = {}
        self.const = const

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return iter(self.terms.values())

    def __len__(self) -> int:
        return len(self.terms)

    def copy(self) -> Sum:
        made = Sum(self.const)
        made.terms = dict(self.terms)
        return made

    def add_term(self, atom: Expr, coefficient: int, key: Hashable | None = None) -> None:
        key = key_of(atom) if key is None else key
        found = self.terms.get(key)
        total = coefficient if found is None else found[1] + coefficient
        if total:
            self.terms[key] = (atom if found is None else found[0], total)
        elif found is not None:
            del self.terms[key]

    def add(self, other: Sum, scale: int = 1) -> Sum:
        """Add ``other`` times ``scale``; returns self."""
        self.const += other.const * scale
        for key, (atom, coefficient) in other.terms.items():
            self.add_term(atom, coefficient * scale, key)
        return self

    def coefficient(self, key: Hashable) -> int:
        found = self.terms.get(key)
        return found[1] if found is not None else 0

    def same_as(self, other: Sum) -> bool:
        if self.const != other.const or len(self.terms) != len(other.terms):
            return False
        return all(other.coefficient(k) == c for k, (_, c) in self.terms.items())

    def build(self, dtype: DataType, span: Span) -> Expr | None:
        """The expression, or None when a coefficient does not fit ``dtype``.

        Added terms come first, then subtracted ones, the constant last; a sum without added terms starts with its
        constant, or with a negation.
        """
        low, high = dtype.int_range()
        if not low <= self.const <= high or any(not low < c <= high for c in map(abs, (c for _, c in self))):
            return None
        positive = [(a, c) for a, c in self if c > 0]
        negative = [(a, -c) for a, c in self if c < 0]
        const, made = self.const, None
        for atom, c in positive:
            term = _times(atom, c, dtype, span)
            made = term if made is None else E.Add(made, term, dtype, span)
        if made is None:
            if const > 0 or not negative:
                made, const = ConstInt(const, dtype, span), 0
            else:
                made, negative = _negated(*negative[0], dtype, span), negative[1:]
                if low < 0 and const:
                    made, const = E.Add(made, ConstInt(const, dtype, span), dtype, span), 0
        for atom, c in negative:
            made = E.Sub(made, _times(atom, c, dtype, span), dtype, span)
        if const > 0:
            made = E.Add(made, ConstInt(const, dtype, span), dtype, span)
        elif const < 0:
            if -const > high:
                return None
            made = E.Sub(made, ConstInt(-const, dtype, span), dtype, span)
        return made


def _times(atom: Expr, coefficient: int, dtype: DataType, span: Span) -> Expr:
    return atom if coefficient == 1 else E.Mul(atom, ConstInt(coefficient, dtype, span), dtype, span)


def _negated(atom: Expr, coefficient: int, dtype: DataType, span: Span) -> Expr:
    if coefficient == 1:
        return E.Neg(atom, dtype, span)
    if dtype.is_signed_int():
        return _times(atom, -coefficient, dtype, span)
    return E.Neg(_times(atom, coefficient, dtype, span), dtype, span)


def linear(e: Expr, distribute: bool = True) -> Sum:
    """``e`` as a sum. Without ``distribute``, a multiplied sum stays one atom."""
    made = Sum()
    _collect(e, 1, made, distribute)
    return made


def _collect(e: Any, scale: int, into: Sum, distribute: bool) -> None:
    cls = e.__class__
    if cls is ConstInt:
        into.const += e.value * scale
    elif cls is E.Add or cls is E.Sub:
        _collect(e.left, scale, into, distribute)
        _collect(e.right, scale if cls is E.Add else -scale, into, distribute)
    elif cls is E.Neg:
        _collect(e.operand, -scale, into, distribute)
    elif cls is E.Mul and (e.right.__class__ is ConstInt or e.left.__class__ is ConstInt):
        factor, const = (e.left, e.right) if e.right.__class__ is ConstInt else (e.right, e.left)
        scale *= const.value
        if not scale and not discardable(factor):
            into.add_term(e, 1)
        elif distribute or factor.__class__ not in (E.Add, E.Sub):
            _collect(factor, scale, into, distribute)
        elif factor.__class__ is E.Sub and scale < 0:
            into.add_term(E.Sub(factor.right, factor.left, factor.dtype, factor.span), -scale)
        else:
            into.add_term(factor, scale)
    else:
        into.add_term(e, scale)
