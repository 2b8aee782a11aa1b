"""LowerCompositeOps: operators no instruction computes become arithmetic that instructions do.

Sine and cosine (FP32) reduce their argument to ``t`` in [-pi/2, pi/2], an integer multiple ``k`` of pi away, and give
``(-1)**k * t * P(t * t)``. The multiple is subtracted in parts of pi that each fit an FP32 product, so that the
difference loses no more than the last of them; ``P`` is a minimax polynomial of degree 4. The error stays below 1e-5
for arguments up to 2 * pi * 1024 and grows with the spacing of FP32 beyond; infinities have no defined result, nan
stays nan.

Rows replaced in a tile (``tile.scatter_update``) are scattered by position, as those of a tensor are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dtypes import DataType
from ..ir.expr import Call, Expr, Var
from ..ir.naming import written_name
from ..ir.program import Function
from ..ir.stmt import AssignStmt, EvalStmt, ReturnStmt, Stmt
from ..ops.registry import rebind
from .base import Pass, function_pass
from .convert_tensor_to_tile_ops.rules_index import Steps, replace_rows
from .emitting import EmittingRewriter, build

_INVERSE_PI = 0.31830987334251404
_PI_HEAD = 3.140625
_PI_PARTS = (0.0009670257568359375, 6.2771141529083252e-07, 1.2164491636212915e-10, -1.0290622927356871e-13)
"""pi minus the head, in parts of 24 bits."""
_HALF_PI, _HALF_PI_TAIL = 1.5707963705062866, -4.3711388286737929e-08
_POLYNOMIAL = (2.6049265215988271e-06, -0.00019808944489341229, 0.0083330497145652771, -0.16666658222675323)
"""Coefficients of P from the highest; the constant term is 1."""


def lower_composite_ops() -> Pass:
    """The pass."""
    return function_pass("LowerCompositeOps", _lower, looks_for=tuple(_RULES))


def _lower(function: Function) -> Function:
    return _Lowering().rewrite(function)


class _Parts:
    """Emits the steps of one operator, named after its result."""

    def __init__(self, rewriter: EmittingRewriter, name: str, call: Call) -> None:
        self.rewriter, self.name, self.call = rewriter, name, call
        self._count = 0

    def bind(self, role: str, op: str, *args: Any, **kwargs: Any) -> Var:
        """The value of one step."""
        value = build(f"tile.{op}", *args, span=self.call.span, **kwargs)
        name = f"{self.name}__{role}_tmp_v{self._count}"
        self._count += 1
        return self.rewriter.emit(name, value)

    def last(self, op: str, *args: Any) -> Call:
        """The call whose value is the result."""
        return build(f"tile.{op}", *args, span=self.call.span)

    def minus_multiple(self, role: str, part: str, value: Expr, k: Expr, factor: float) -> Var:
        return self.bind(role, "sub", value, self.bind(f"k_{part}", "muls", k, factor))


def _sine(parts: _Parts, x: Expr) -> Call:
    scaled = parts.bind("pi_inv_x", "muls", x, _INVERSE_PI)
    k = _integral(parts, "k", scaled, "round")
    t = parts.minus_multiple("t0", "pi_v2", x, k, _PI_HEAD)
    for i, part in enumerate(_PI_PARTS, 1):
        t = parts.minus_multiple(f"t{i}", f"pi_c{i}", t, k, part)
    return _reduced(parts, t, k)


def _cosine(parts: _Parts, x: Expr) -> Call:
    scaled = parts.bind("pi_inv_x", "muls", x, _INVERSE_PI)
    k = _integral(parts, "k", parts.bind("k_pre", "adds", scaled, 0.5), "rint")
    t = parts.minus_multiple("t0", "pi_v2", x, k, _PI_HEAD)
    for i, part in enumerate(_PI_PARTS, 1):
        t = parts.minus_multiple(f"t{i}", f"pi_c{i}", t, k, part)
        if i == 1:
            t = parts.bind("t1h", "adds", t, _HALF_PI)
    return _reduced(parts, parts.bind("t4t", "adds", t, _HALF_PI_TAIL), k)


def _integral(parts: _Parts, role: str, value: Expr, mode: str) -> Var:
    """``value`` rounded to an integer, as FP32."""
    whole = parts.bind(f"{role}_i", "cast", value, target_type=DataType.INT32, mode=mode)
    return parts.bind(f"{role}_f", "cast", whole, target_type=DataType.FP32, mode="none")


def _reduced(parts: _Parts, t: Expr, k: Expr) -> Call:
    """``(-1)**k * t * P(t * t)``; the sign is ``4 * floor(k / 2) - 2 * k + 1``."""
    floor = _integral(parts, "floor_hk", parts.bind("half_k", "muls", k, 0.5), "floor")
    even = parts.bind("floor_x4", "muls", floor, 4.0)
    sign = parts.bind("sign_pre", "add", even, parts.bind("neg2_k", "muls", k, -2.0))
    sign = parts.bind("sign", "adds", sign, 1.0)
    square = parts.bind("t2sq", "mul", t, t)
    value = parts.bind("p_r0", "muls", square, _POLYNOMIAL[0])
    for i, coefficient in enumerate(_POLYNOMIAL[1:], 1):
        value = parts.bind(f"p_r{i}", "adds", value, coefficient)
        value = parts.bind(f"p_t2_r{i}", "mul", value, square)
    value = parts.bind("p_one", "adds", value, 1.0)
    return parts.last("mul", sign, parts.bind("t_p", "mul", t, value))


def _rows_replaced(parts: _Parts, target: Expr) -> Call:
    rewriter, call = parts.rewriter, parts.call
    bound = rebind(call)
    index, source = (rewriter.rewrite(bound[n]) for n in ("index", "src"))
    return replace_rows(Steps(rewriter, call, parts.name), target, source, index)


_RULES: dict[str, Callable[[_Parts, Expr], Call]] = {
    "tile.sin": _sine, "tile.cos": _cosine, "tile.scatter_update": _rows_replaced,
}  # fmt: skip
"""How an operator is written out, from its first argument."""


class _Lowering(EmittingRewriter):
    def rewrite_assign(self, op: AssignStmt) -> Stmt:
        call = op.value
        rule = _RULES.get(call.op.name) if isinstance(call, Call) else None
        if rule is None or not isinstance(call, Call):
            return self.generic(op)
        parts = _Parts(self, written_name(op.var.name_hint), call)
        made = rule(parts, self.rewrite(call.args[0]))
        return op.replace(value=made, var=self.define(op.var))

    def rewrite_eval(self, op: EvalStmt) -> Stmt | None:
        call = op.expr
        return None if isinstance(call, Call) and call.op.name in _RULES else self.generic(op)

    def rewrite_return(self, op: ReturnStmt) -> Stmt:
        return op.replace(value=[self._value(v) for v in op.value])

    def _value(self, value: Expr) -> Expr:
        """A returned value, a composite one bound to a name first."""
        if isinstance(value, Call) and value.op.name in _RULES:
            parts = _Parts(self, "result", value)
            return self.emit("result", _RULES[value.op.name](parts, self.rewrite(value.args[0])))
        return self.rewrite(value)
