"""Sine and cosine (FP32) from arithmetic.

The argument is reduced to ``t`` in [-pi/2, pi/2], an integer multiple ``k`` of pi away, and the result is
``(-1)**k * t * P(t * t)``. The multiple is subtracted in parts of pi that each fit an FP32 product, so that the
difference loses no more than the last of them; ``P`` is a minimax polynomial of degree 4. The error stays below 1e-5
for arguments up to 2 * pi * 1024 and grows with the spacing of FP32 beyond; infinities have no defined result, nan
stays nan.
"""

from __future__ import annotations

from ...dtypes import DataType
from ...ir.expr import Call, Expr, Var
from .parts import Parts

_INVERSE_PI = 0.31830987334251404
_PI_HEAD = 3.140625
_PI_PARTS = (0.0009670257568359375, 6.2771141529083252e-07, 1.2164491636212915e-10, -1.0290622927356871e-13)
"""pi minus the head, in parts of 24 bits."""
_HALF_PI, _HALF_PI_TAIL = 1.5707963705062866, -4.3711388286737929e-08
_POLYNOMIAL = (2.6049265215988271e-06, -0.00019808944489341229, 0.0083330497145652771, -0.16666658222675323)
"""Coefficients of P from the highest; the constant term is 1."""


def sine(parts: Parts) -> Call:
    x = parts.argument(0)
    scaled = parts.bind("pi_inv_x", "muls", x, _INVERSE_PI)
    k = _integral(parts, "k", scaled, "round")
    t = _minus_multiple(parts, "t0", "pi_v2", x, k, _PI_HEAD)
    for i, part in enumerate(_PI_PARTS, 1):
        t = _minus_multiple(parts, f"t{i}", f"pi_c{i}", t, k, part)
    return _reduced(parts, t, k)


def cosine(parts: Parts) -> Call:
    x = parts.argument(0)
    scaled = parts.bind("pi_inv_x", "muls", x, _INVERSE_PI)
    k = _integral(parts, "k", parts.bind("k_pre", "adds", scaled, 0.5), "rint")
    t = _minus_multiple(parts, "t0", "pi_v2", x, k, _PI_HEAD)
    for i, part in enumerate(_PI_PARTS, 1):
        t = _minus_multiple(parts, f"t{i}", f"pi_c{i}", t, k, part)
        if i == 1:
            t = parts.bind("t1h", "adds", t, _HALF_PI)
    return _reduced(parts, parts.bind("t4t", "adds", t, _HALF_PI_TAIL), k)


def _minus_multiple(parts: Parts, role: str, part: str, value: Expr, k: Expr, factor: float) -> Var:
    return parts.bind(role, "sub", value, parts.bind(f"k_{part}", "muls", k, factor))


def _integral(parts: Parts, role: str, value: Expr, mode: str) -> Var:
    """``value`` rounded to an integer, as FP32."""
    whole = parts.bind(f"{role}_i", "cast", value, target_type=DataType.INT32, mode=mode)
    return parts.bind(f"{role}_f", "cast", whole, target_type=DataType.FP32, mode="none")


def _reduced(parts: Parts, t: Expr, k: Expr) -> Call:
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
