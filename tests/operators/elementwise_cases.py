"""Numeric cases of the operators that work element by element."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from operator_harness import Case, Script, Vector, instruction_dtypes
from operator_values import Array, arithmetic, in_double, is_float, mixed, rounded

from pypto.backend import ASCEND950, Target
from pypto.dtypes import DataType

D = DataType


def divided(left: Any, right: Any) -> Any:
    """Integers toward zero, all ones for a zero divisor."""

    def one(a: int, b: int) -> int:
        if b == 0:
            return -1
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient

    return np.vectorize(one, otypes=[object])(left, right)


def truncated_remainder(left: Any, right: Any) -> Any:
    return np.vectorize(lambda a, b: a - b * divided(a, b).item() if b else 0, otypes=[object])(left, right)


def floored_remainder(left: Any, right: Any) -> Any:
    return np.vectorize(lambda a, b: a % b if b else -1, otypes=[object])(left, right)


def _float_fmod(a: Array, b: Array) -> Array:
    return np.fmod(a.astype(np.float64), b.astype(np.float64))


def _float_rem(a: Array, b: Array) -> Array:
    """a - floor(a / b) * b."""
    wide, by = a.astype(np.float64), np.asarray(b, np.float64)
    return np.where(by == 0, np.nan, wide - np.floor(wide / by) * by)


ADD = arithmetic(lambda a, b: a + b)
SUB = arithmetic(lambda a, b: a - b)
MUL = arithmetic(lambda a, b: a * b)
DIV = arithmetic(divided, lambda a, b: a / b)
MAX = arithmetic(lambda a, b: np.where(a >= b, a, b), lambda a, b: np.where(np.isnan(a) | (a > b), a, b))
MIN = arithmetic(lambda a, b: np.where(a <= b, a, b), lambda a, b: np.where(np.isnan(a) | (a < b), a, b))
FMOD = arithmetic(truncated_remainder, _float_fmod)
REM = arithmetic(floored_remainder, _float_rem)

BINARY = {"add": ADD, "sub": SUB, "mul": MUL, "div": DIV, "maximum": MAX, "minimum": MIN, "fmod": FMOD}


def scalar_values(dtype: DataType) -> list[Any]:
    """Scalars as Python numbers: an ordinary one first."""
    if dtype.is_float():
        return [-1.5, 0.0, float("inf"), float("nan"), 0.25]
    low, high = dtype.int_range()
    return [3, high, low, 1] + ([-7] if low < 0 else [])


def exact_in_f32(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
    """`mixed`, 32-bit integers up to 2**24 only: the 910B computes their remainders in f32."""
    made = mixed(dtype, shape, rng, along)
    return np.clip(made, -(1 << 24), 1 << 24) if dtype == np.int32 else made


def _clipped(dtype: DataType, scalar: Any) -> Any:
    return max(-(1 << 24), min(scalar, 1 << 24)) if dtype is D.INT32 else scalar


def with_scalar(function: Any) -> Any:
    """``function`` of a tile and a scalar that first becomes an element."""
    return lambda a, s: function(a, np.full(a.shape, s, np.float64 if is_float(a.dtype) else object).astype(a.dtype))


NEG = arithmetic(lambda a: 0 - a, lambda a: -a)
UNARY = {
    "neg": (NEG, 0), "abs": (arithmetic(abs, np.abs), 0), "exp": (in_double(np.exp), 2), "log": (in_double(np.log), 2),
    "sqrt": (in_double(np.sqrt), 0), "recip": (in_double(lambda x: 1 / x), 0),
    "relu": (arithmetic(lambda a: np.where(a > 0, a, 0), lambda a: np.where(np.isnan(a) | (a > 0), a, 0)), 0.5),
}  # fmt: skip


def elementwise() -> list[Case]:
    cases = []
    for name, function in BINARY.items():
        # The sign of a zero that is the greater or smaller of two zeros is not specified.
        ulp = 0.5 if name in ("maximum", "minimum") else 0
        cases.append(Vector(f"tile.{name}", f"pl.tile.{name}(a, b)", "mn mn", function, ulp=ulp).case())
        cases.append(
            Vector(
                f"tile.{name}s",
                f"pl.tile.{name}s(a, {{s}})",
                "mn",
                with_scalar(function),
                scalars=scalar_values,
                ulp=ulp,
            ).case()
        )
    for name, (function, ulp) in UNARY.items():
        cases.append(Vector(f"tile.{name}", f"pl.tile.{name}(a)", "mn", function, ulp=ulp).case())
    tmp = "tmp = pl.create_tile([{R}, {C}], dtype={T})"
    rsqrt = in_double(lambda x: 1 / np.sqrt(x))
    rem = Vector("tile.rem", "pl.tile.rem(a, b, tmp)", "mn mn", REM, setup=tmp)
    rems = Vector("tile.rems", "pl.tile.rems(a, {s}, tmp)", "mn", with_scalar(REM), setup=tmp, scalars=scalar_values)

    def wide(target: Target) -> list[DataType]:
        return [D.INT32] if target is ASCEND950 else []

    cases += [
        Vector("tile.rsqrt", "pl.tile.rsqrt(a)", "mn", rsqrt, ulp=2).case(),
        Vector("tile.rsqrt", "pl.tile.rsqrt(a, tmp)", "mn", rsqrt, ulp=2, setup=tmp).case(name="precise"),
        replace(rem, make=exact_in_f32).case(),
        rem.case(wide, "wide"),
        replace(rems, make=exact_in_f32, scalars=lambda d: [_clipped(d, s) for s in scalar_values(d)]).case(),
        rems.case(wide, "wide"),
        Vector("tile.prelu", "pl.tile.prelu(a, b, tmp)", "mn mn", LEAKY,
               setup="tmp = pl.create_tile([{R} + 1, {C}], dtype=pl.UINT8)").case(),
        Vector("tile.lrelu", "pl.tile.lrelu(a, {s})", "mn", with_scalar(LEAKY), scalars=[0.1, -2.0, 0.0],
               scalar_type=D.FP32).case(),
    ]  # fmt: skip
    for name in ("addc", "subc"):
        sign = 1 if name == "addc" else -1
        cases.append(Vector(f"tile.{name}", f"pl.tile.{name}(a, b, c)", "mn mn mn", _three(sign)).case())
        function = _three_scalar(sign)
        scalar = Vector(f"tile.{name[:3]}sc", f"pl.tile.{name[:3]}sc(a, {{s}}, b)", "mn mn", function,
                        scalars=scalar_values)  # fmt: skip
        cases.append(scalar.case())
    return cases


def LEAKY(a: Array, slope: Array) -> Array:
    product = rounded(a.astype(np.float32) * slope.astype(np.float32), a.dtype)
    return np.where(a > 0, a, product)


def _three(sign: int) -> Any:
    return lambda a, b, c: ADD((ADD if sign > 0 else SUB)(a, b), c)


def _three_scalar(sign: int) -> Any:
    return lambda a, b, s: ADD(with_scalar(ADD if sign > 0 else SUB)(a, s), b)


def bits() -> list[Case]:
    tmp = "tmp = pl.create_tile([{R}, {C}], dtype={T})"
    functions = {
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "shl": _shift_left, "shr": _shift_right,
    }  # fmt: skip
    cases = [Vector("tile.not", "pl.tile.not_(a)", "mn", np.invert).case()]
    for name, function in functions.items():
        python, extra = name + ("_" if name in ("and", "or") else ""), ", tmp" if name == "xor" else ""
        setup = tmp if extra else ""
        cases.append(Vector(f"tile.{name}", f"pl.tile.{python}(a, b{extra})", "mn mn", function, setup=setup).case())
        scalars = _shift_counts if name.startswith("sh") else scalar_values
        cases.append(
            Vector(f"tile.{name}s", f"pl.tile.{name}s(a, {{s}}{extra})", "mn", with_scalar(function), setup=setup,
                   scalars=scalars).case()
        )  # fmt: skip
    return cases


def _shift_counts(dtype: DataType) -> list[int]:
    return [3, 0, 1, dtype.bits - 1, dtype.bits, dtype.bits + 5]


def _shift_left(a: Array, count: Array) -> Array:
    width = a.dtype.itemsize * 8
    return np.vectorize(lambda x, n: (int(x) << int(n)) % 2**width if 0 <= n < width else 0, otypes=[object])(
        a, count
    ).astype(np.uint64).astype(a.dtype)  # fmt: skip


def _shift_right(a: Array, count: Array) -> Array:
    width = a.dtype.itemsize * 8

    def one(x: int, n: int) -> int:
        if 0 <= n < width:
            return int(x) >> int(n)
        return -1 if x < 0 else 0

    return np.vectorize(one, otypes=[object])(a, count).astype(np.int64).astype(a.dtype)


COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
_COMPARE = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


def selection() -> list[Case]:
    """Comparisons are seen through a selection by their mask."""
    cases = []
    tmp, own = (f"tmp = pl.create_tile([{{R}}, {{C}}], dtype={t})" for t in ("pl.UINT8", "{T}"))
    for code, name in enumerate(COMPARE):
        function = _COMPARE[code]
        both = Vector("tile.cmp", f"pl.tile.sel(pl.tile.cmp(a, b, cmp_type={code}), a, b, tmp)", "mn mn",
                      lambda a, b, f=function: np.where(f(a, b), a, b), setup=tmp)  # fmt: skip
        scalar = Vector("tile.cmps", f"pl.tile.sel(pl.tile.cmps(a, {{s}}, cmp_type={code}), a, b, tmp)", "mn mn",
                        lambda a, b, s, f=function: np.where(f(a, np.array(s).astype(a.dtype)), a, b),
                        setup=tmp, scalars=scalar_values)  # fmt: skip
        cases += [both.case(_comparable("tile.cmp", code), name), scalar.case(_comparable("tile.cmps", code), name)]
    pick = Vector("tile.sel", "pl.tile.sel(pl.tile.cmp(a, b, cmp_type=0), a, c, tmp)", "mn mn mn",
                  lambda a, b, c: np.where(a == b, a, c), setup=tmp)  # fmt: skip
    cases.append(pick.case(_comparable("tile.cmp", 0)))
    sels = Vector("tile.sels", "pl.tile.sels(pl.tile.cmp(a, b, cmp_type=0), a, tmp, {s})", "mn mn",
                  lambda a, b, s: np.where(a == b, a, np.array(s).astype(a.dtype)), setup=own,
                  scalars=scalar_values)  # fmt: skip
    cases.append(sels.case(lambda target: [d for d in _comparable("tile.cmp", 0)(target) if d is not D.BF16]))
    return cases


def _masked() -> list[Case]:
    """A mask of f32 comparisons over tiles of every dtype a selection takes."""
    body = """
a = pl.load(x0, [0, 0], [16, 64], valid_shape=[i0, i1])
b = pl.load(x1, [0, 0], [16, 64], valid_shape=[i0, i1])
p = pl.load(x2, [0, 0], [16, 64], valid_shape=[i0, i1])
q = pl.load(x3, [0, 0], [16, 64], valid_shape=[i0, i1])
tmp = pl.create_tile([16, 64], dtype={T})
mask = pl.tile.cmp(p, q, cmp_type=2)
"""

    def picked(a: Array, b: Array, p: Array, q: Array, m: int, n: int, y: Array) -> None:
        y[:m, :n] = np.where(p < q, a, b)[:m, :n]

    floats = ((16, 64), D.FP32)
    sel = Script("tile.sel", body + "pl.store(pl.tile.sel(mask, a, b, tmp), [0, 0], y0)",
                 [(16, 64), (16, 64), floats, floats], [(16, 64)], picked, ((16, 64), (5, 19), (0, 64)))  # fmt: skip
    one = Script("tile.sels", body + "pl.store(pl.tile.sels(mask, a, tmp, 3), [0, 0], y0)",
                 [(16, 64), (16, 64), floats, floats], [(16, 64)],
                 lambda a, b, p, q, m, n, y: picked(a, np.full_like(a, 3), p, q, m, n, y),
                 ((16, 64), (5, 19), (0, 64)))  # fmt: skip
    return [
        sel.case(lambda target: instruction_dtypes("tile.sel", target), "masked"),
        one.case(lambda target: [d for d in instruction_dtypes("tile.sels", target) if d is not D.BF16], "masked"),
    ]


def _comparable(op: str, code: int) -> Any:
    def dtypes(target: Any) -> list[DataType]:
        found = instruction_dtypes(op, target, "src0" if op == "tile.cmp" else "src")
        selectable = instruction_dtypes("tile.sel", target)
        return [d for d in found if d in selectable and not (target.name == "Ascend910B" and d is D.INT32 and code)]

    return dtypes


CASES = [*elementwise(), *bits(), *selection(), *_masked()]
