"""Numeric cases of reductions and of operators that repeat a row, a column or a scalar."""

from __future__ import annotations

from typing import Any

import numpy as np
from elementwise_cases import ADD, DIV, MAX, MIN, MUL, SUB, scalar_values
from operator_harness import COLS, FILLED, ROWS, Case, Script, Vector, fixed, instruction_dtypes
from operator_values import Array, factors, in_double, is_float, mixed, ordinary, rounded, small, wrap

from pypto.dtypes import DataType

D = DataType
ROW_TMP = "tmp = pl.create_tile([{R}, {C}], dtype={T})"


def reduced(function: Any, axis: int) -> Any:
    """Floats reduced exactly and rounded once, integers exactly and wrapped."""

    def evaluate(a: Array) -> Array:
        if is_float(a.dtype):
            return rounded(function(a.astype(np.float64), axis=axis, keepdims=True).astype(np.float32), a.dtype)
        exact = function(a.astype(object), axis=axis, keepdims=True)
        return wrap(exact, a.dtype)

    return evaluate


def _first(function: Any, axis: int) -> Any:
    """Index of the first extreme, found by looking at one element after the other."""

    def one(line: Array) -> int:
        best = 0
        for i in range(1, len(line)):
            if function(float(line[i]), float(line[best])):
                best = i
        return best

    def evaluate(a: Array) -> Array:
        lines = a if axis == 1 else a.T
        found = np.array([one(line) for line in lines], np.int32)
        return found[:, None] if axis == 1 else found[None, :]

    return evaluate


def repeated(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
    """Few distinct values, so that extremes are tied."""
    return rng.integers(0, 4, shape).astype(dtype)


def reductions() -> list[Case]:
    cases: list[Case] = []
    makes = {"sum": small, "prod": factors, "max": mixed, "min": mixed}
    functions: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
    for axis, word, code in ((1, "row", "m1"), (0, "col", "1n")):
        regions = (*FILLED, (0, COLS) if axis else (ROWS, 0))
        for name, function in functions.items():
            expr, setup = f"pl.tile.{word}_{name}(a{', tmp' if axis else ''})", ROW_TMP if axis else ""
            vector = Vector(f"tile.{word}_{name}", expr, "mn", reduced(function, axis), out=code, setup=setup,
                            make=makes[name], regions=regions, ulp=0.5)  # fmt: skip
            cases.append(vector.case(of="src"))
        for name, better in (("argmax", lambda x, y: x > y), ("argmin", lambda x, y: x < y)):
            for make, suffix in ((repeated, "ties"), (ordinary, "")):
                vector = Vector(f"tile.{word}_{name}", f"pl.tile.{word}_{name}(a, tmp)", "mn", _first(better, axis),
                                out=code, setup=ROW_TMP, out_dtype=D.INT32, make=make, regions=regions)  # fmt: skip
                dtypes = fixed(D.FP32, D.FP16) if suffix else None
                cases.append(vector.case(dtypes, suffix, of="src"))
    tree = Vector("tile.col_sum", "pl.tile.col_sum(a, tmp)", "mn", reduced(np.sum, 0), out="1n", setup=ROW_TMP,
                  make=small, regions=FILLED, ulp=0.5)  # fmt: skip
    cases.append(tree.case(name="tree", of="src"))
    for name in ("row", "col"):
        of_specials = Vector(f"tile.{name}_sum", f"pl.tile.{name}_sum(a{', tmp' if name == 'row' else ''})", "mn",
                             reduced(np.sum, 1 if name == "row" else 0), out="m1" if name == "row" else "1n",
                             setup=ROW_TMP if name == "row" else "", make=_one_special, regions=FILLED)  # fmt: skip
        cases.append(of_specials.case(fixed(D.FP16, D.FP32), "specials"))
    return cases


def _one_special(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
    """Zeros, and infinities and NaN each alone in its row and column, or opposite ones meeting."""
    out = np.zeros(shape, dtype)
    out[0, 0], out[1, 1], out[2, 2], out[3, 3], out[3, 4] = np.inf, -np.inf, np.nan, np.inf, -np.inf
    out[4, 3] = -np.inf
    return out


def _expdif(a: Array, b: Array) -> Array:
    return in_double(np.exp)(SUB(a, np.broadcast_to(b, a.shape)))


def _spread(function: Any) -> Any:
    return lambda a, b: function(a, np.broadcast_to(b, a.shape))


def expansions() -> list[Case]:
    cases: list[Case] = []
    functions = {"add": ADD, "sub": SUB, "mul": MUL, "div": DIV, "max": MAX, "min": MIN}
    for word, code in (("row", "m1"), ("col", "1n")):
        for name, function in functions.items():
            op = f"tile.{word}_expand_{name}"
            vector = Vector(op, f"pl.{op}(a, b)", f"mn {code}", _spread(function),
                            ulp=0.5 if name in ("max", "min") else 0)  # fmt: skip
            cases.append(vector.case(_as_front_end(op)))
        op = f"tile.{word}_expand_expdif"
        cases.append(Vector(op, f"pl.{op}(a, b)", f"mn {code}", _expdif, ulp=2, make=ordinary).case())
        op = f"tile.{word}_expand"
        alone = Vector(op, f"pl.{op}(a, b)", f"mn {code}", lambda a, b: np.broadcast_to(b, a.shape))
        cases.append(alone.case(_four_bytes_at_least if word == "row" else None))
    cases += _bytes_by_row()
    with_tmp = Vector("tile.row_expand_sub", "pl.tile.row_expand_sub(a, b, tmp)", "mn m1", _spread(SUB), setup=ROW_TMP)
    cases.append(with_tmp.case(fixed(D.FP32, D.FP16), "tmp"))
    expands = Vector("tile.expands", "pl.tile.expands(a, {s})", "mn", lambda a, s: np.full(a.shape, s).astype(a.dtype),
                     scalars=scalar_values)  # fmt: skip
    cases.append(expands.case())
    return cases


def _bytes_by_row() -> list[Case]:
    """Columns of one-byte elements: 32 rows of them are a block."""
    body = """
a = pl.load(x0, [0, 0], [32, 64], valid_shape=[i0, i1])
b = pl.load(x1, [0, 0], [32, 1], valid_shape=[i0, 1])
pl.store(pl.OP(a, b), [0, 0], y0)
"""
    functions = {"": lambda a, b: b, "_add": ADD, "_sub": SUB, "_mul": MUL, "_max": MAX, "_min": MIN}
    cases = []
    for name, function in functions.items():
        op = f"tile.row_expand{name}"

        def spread(a: Array, b: Array, m: int, n: int, y: Array, function: Any = function) -> None:
            y[:m, :n] = function(a[:m, :n], np.broadcast_to(b[:m], (m, n)))

        def taken(target: Any, op: str = op) -> list[DataType]:
            return [d for d in instruction_dtypes(op, target) if d.bits == 8]

        script = Script(op, body.replace("OP", op), [(32, 64), (32, 1)], [(32, 64)], spread,
                        ((32, 64), (5, 19), (0, 64)))  # fmt: skip
        cases.append(script.case(taken, "bytes"))
    return cases


def _as_front_end(op: str) -> Any:
    """A column of one-byte elements in 16 rows is not whole 32-byte blocks, so no tile holds it."""
    return lambda target: [d for d in instruction_dtypes(op, target) if d.bits > 8 or "col" in op]


def _four_bytes_at_least(target: Any) -> list[DataType]:
    return [D.INT16, D.INT32, D.UINT16, D.UINT32, D.FP16, D.BF16, D.FP32]


CASES = [*reductions(), *expansions()]
