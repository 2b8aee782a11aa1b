"""Integer arithmetic with floor semantics, on Python integers that stand for 64-bit ones."""

from __future__ import annotations

import math

from ..errors import InternalError

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


def floordiv(a: int, b: int) -> int:
    """``a / b`` rounded towards minus infinity. Raises InternalError for a zero divisor or a 64-bit overflow."""
    if b == 0:
        raise InternalError(f"{a} // 0 has no value")
    if a == INT64_MIN and b == -1:
        raise InternalError(f"{a} // -1 does not fit in 64 bits")
    return a // b


def floormod(a: int, b: int) -> int:
    """The remainder of `floordiv`, with the divisor's sign. Raises InternalError for a zero divisor."""
    if b == 0:
        raise InternalError(f"{a} % 0 has no value")
    return a % b


def gcd(a: int, b: int) -> int:
    """Greatest common divisor, not negative; of two zeros, 0."""
    return math.gcd(a, b)


def lcm(a: int, b: int) -> int:
    """Least common multiple, not negative."""
    return math.lcm(a, b)


def extended_euclidean(a: int, b: int) -> tuple[int, int, int]:
    """``(g, x, y)`` with ``g = gcd(a, b) = a * x + b * y``."""
    r0, r1, x0, x1, y0, y1 = a, b, 1, 0, 0, 1
    while r1:
        q = r0 // r1
        r0, r1 = r1, r0 - q * r1
        x0, x1 = x1, x0 - q * x1
        y0, y1 = y1, y0 - q * y1
    return (-r0, -x0, -y0) if r0 < 0 else (r0, x0, y0)
