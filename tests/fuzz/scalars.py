"""Scalar expressions of every operator and dtype, in kernels and on the host, against what Python computes.

Where a value leaves its dtype, or Python raises, an expression has no meaning to compare with and is left out.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from harness import Outcome, compile_text

from pypto.pto.errors import PtoError

Pick = Callable[[Sequence[Any]], Any]
PARAMS = {
    "a": "INT8", "b": "INT16", "c": "INT32", "d": "INT64", "e": "INDEX", "f": "UINT8", "g": "UINT16", "h": "UINT32",
    "p": "BOOL", "q": "BOOL", "x": "FP32", "y": "FP32",
}  # fmt: skip
ARGUMENTS = (
    {"a": 3, "b": -7, "c": 5, "d": 2, "e": 4, "f": 9, "g": 1, "h": 6, "p": True, "q": False, "x": 2.5, "y": -0.5},
    {"a": -2, "b": 6, "c": 0, "d": -9, "e": 1, "f": 0, "g": 12, "h": 3, "p": False, "q": False, "x": 0.0, "y": 3.25},
    {"a": 0, "b": 1, "c": -4, "d": 7, "e": 0, "f": 2, "g": 0, "h": 0, "p": True, "q": True, "x": -1.75, "y": 0.0},
)
NAMES = {
    "int": [n for n, d in PARAMS.items() if "INT" in d or d == "INDEX"],
    "bool": ["p", "q"],
    "float": ["x", "y"],
}
COUNT = 12
BITS = {"BOOL": 1, "INT8": 8, "INT16": 16, "INT32": 32, "INT64": 64, "INDEX": 64, "UINT8": 8, "UINT16": 16,
        "UINT32": 32}  # fmt: skip


class Undefined(Exception):
    """No meaning to compare with."""


class Expressions:
    """Texts of expressions of a kind, by ``pick``."""

    def __init__(self, pick: Pick) -> None:
        self.pick = pick
        # A choice between an INT64 and an INDEX is refused, which most programs should not be.
        self.left_out = pick("ddde")

    def of(self, kind: str, depth: int) -> str:
        if depth == 0 or self.pick((1, 2, 3, 4)) == 4:
            return self.leaf(kind)
        make = self.pick({"int": _INTS, "bool": _BOOLS, "float": _FLOATS}[kind])
        return make(self, depth - 1)

    def leaf(self, kind: str) -> str:
        literals = {"int": ("0", "1", "2", "5"), "bool": ("True", "False"), "float": ("0.5", "2.0", "-1.25")}
        names = [n for n in NAMES[kind] if n != self.left_out]
        return self.pick((*names, *names, *literals[kind]))

    def number(self, depth: int) -> str:
        """An integer, or a truth value in its place."""
        return f"({self.of(self.pick(('int', 'int', 'bool')), depth)})"

    def any(self, depth: int) -> str:
        return f"({self.of(self.pick(('int', 'bool', 'float')), depth)})"


def _infix(symbols: Sequence[str], operands: str) -> Callable[[Expressions, int], str]:
    def make(e: Expressions, depth: int) -> str:
        read = {"number": e.number, "any": e.any, "float": lambda d: f"({e.of('float', d)})"}[operands]
        return f"{read(depth)} {e.pick(symbols)} {read(depth)}"

    return make


def _choice(kind: str) -> Callable[[Expressions, int], str]:
    return lambda e, d: f"({e.of(kind, d)}) if ({e.of('bool', d)}) else ({e.of(kind, d)})"


def _either(kind: str) -> Callable[[Expressions, int], str]:
    return lambda e, d: f"({e.of(kind, d)}) {e.pick(('and', 'or'))} ({e.of(kind, d)})"


_INTS = (
    _infix(("+", "-", "*"), "number"),
    _infix(("//", "%"), "number"),
    _infix(("<<", ">>", "&", "|", "^"), "number"),
    lambda e, d: f"{e.pick(('-', '~', '+'))}{e.number(d)}",
    lambda e, d: f"{e.number(d)} ** {e.pick((0, 1, 2, 3))}",
    lambda e, d: f"{e.pick(('min', 'max'))}({e.number(d)}, {e.number(d)})",
    lambda e, d: f"abs({e.number(d)})",
    _choice("int"),
    _either("int"),
)
_FLOATS = (
    _infix(("+", "-", "*", "/"), "float"),
    lambda e, d: f"({e.of('float', d)}) {e.pick('+-*/')} {e.number(d)}",
    lambda e, d: f"{e.number(d)} / {e.number(d)}",
    lambda e, d: f"-({e.of('float', d)})",
    lambda e, d: f"({e.of('float', d)}) ** {e.pick((0, 1, 2, -1))}",
    lambda e, d: f"{e.pick(('min', 'max'))}(({e.of('float', d)}), ({e.of('float', d)}))",
    lambda e, d: f"abs({e.of('float', d)})",
    _choice("float"),
    _either("float"),
)
_BOOLS = (
    _infix(("<", "<=", ">", ">=", "==", "!="), "any"),
    lambda e, d: f"{e.number(d)} {e.pick(('<', '<='))} {e.number(d)} {e.pick(('<', '!='))} {e.number(d)}",
    _infix(("and", "or"), "any"),
    lambda e, d: f"not {e.any(d)}",
    lambda e, d: f"({e.of('bool', d)}) {e.pick('&|^')} ({e.of('bool', d)})",
)


@dataclass
class Number:
    """A value and its dtype, None for a literal."""

    value: Any
    dtype: str | None


def _meet(a: str | None, b: str | None) -> str | None:
    if a is None or b is None or a == b:
        return a or b
    if "FP32" in (a, b):
        return "FP32"
    if "BOOL" in (a, b) or a.startswith("U") == b.startswith("U"):
        return "INDEX" if {a, b} == {"INT64", "INDEX"} else max(a, b, key=BITS.__getitem__)
    unsigned, signed = (a, b) if a.startswith("U") else (b, a)
    return signed if BITS[signed] > BITS[unsigned] else f"INT{2 * BITS[unsigned]}"


def _held(value: Any, dtype: str | None) -> Number:
    """``value`` in ``dtype``. Raises Undefined where it does not fit."""
    if dtype is None:
        return Number(value, None)
    if isinstance(value, (bool, np.bool_)):
        return Number(bool(value), "BOOL")
    if dtype == "FP32" or isinstance(value, (float, np.floating)):
        with np.errstate(all="ignore"):
            value = np.float32(value)
        if not np.isfinite(value) or (value and abs(value) < 1e-30):
            raise Undefined
        return Number(value, "FP32")
    dtype = "INDEX" if dtype == "BOOL" else dtype
    low, high = (0, 2 ** BITS[dtype]) if dtype[0] == "U" else (-(2 ** (BITS[dtype] - 1)), 2 ** (BITS[dtype] - 1))
    if not low <= value < high or abs(value) >= 2**20:
        raise Undefined
    return Number(value, dtype)


_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.Div: operator.truediv,
}  # fmt: skip
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip


def meaning(node: ast.expr, env: dict[str, Number]) -> Number:
    """What Python computes, in the dtypes of the language."""
    if isinstance(node, ast.Name):
        return Number(env[node.id].value, env[node.id].dtype)
    if isinstance(node, ast.Constant):
        return Number(node.value, None)
    if isinstance(node, ast.IfExp):
        test = meaning(node.test, env)
        taken, other = (node.body, node.orelse) if test.value else (node.orelse, node.body)
        return _one_of(meaning(taken, env), other, env) if test.dtype else meaning(taken, env)
    if isinstance(node, ast.BoolOp):
        left = meaning(node.values[0], env)
        decided = bool(left.value) is isinstance(node.op, ast.Or)
        if left.dtype is None:
            return left if decided else meaning(node.values[1], env)
        return _one_of(left, node.values[1], env) if decided else _one_of(meaning(node.values[1], env), left, env)
    if isinstance(node, ast.Compare):
        left = meaning(node.left, env)
        literal = left.dtype is None
        for op, right_node in zip(node.ops, node.comparators):
            right = meaning(right_node, env)
            literal = literal and right.dtype is None
            if not _COMPARE[type(op)](*_both(left, right)):
                return Number(False, None if literal else "BOOL")
            left = right
        return Number(True, None if literal else "BOOL")
    if isinstance(node, ast.UnaryOp):
        operand = meaning(node.operand, env)
        if isinstance(node.op, ast.Not):
            return Number(not operand.value, operand.dtype and "BOOL")
        value = int(operand.value) if operand.dtype == "BOOL" else operand.value
        made = {ast.USub: operator.neg, ast.Invert: operator.invert, ast.UAdd: operator.pos}[type(node.op)](value)
        return operand if isinstance(node.op, ast.UAdd) else _held(made, operand.dtype)
    if isinstance(node, ast.BinOp):
        left, right = meaning(node.left, env), meaning(node.right, env)
        met = _meet(left.dtype, right.dtype)
        if isinstance(node.op, ast.Pow):
            if not left.value and right.value < 0:
                raise Undefined
            return _held(left.value**right.value, left.dtype)
        whole = isinstance(node.op, (ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor))
        if whole and (met == "FP32" or isinstance(left.value, float) or isinstance(right.value, float)):
            raise Undefined
        if isinstance(node.op, (ast.LShift, ast.RShift)) and right.value >= BITS[met or "INT64"]:
            raise Undefined
        if isinstance(node.op, ast.Div) and not right.value:
            raise Undefined
        with np.errstate(all="ignore"):
            made = _BINARY[type(node.op)](*_both(left, right))
        return _held(made, "FP32" if met and isinstance(node.op, ast.Div) else met)
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    values = [meaning(a, env) for a in node.args]
    for value in values:
        value.value = int(value.value) if value.dtype == "BOOL" else value.value
    if node.func.id == "abs":
        return _held(abs(values[0].value), values[0].dtype)
    chosen = {"min": min, "max": max}[node.func.id](*_both(*values))
    return _held(chosen, _meet(values[0].dtype, values[1].dtype))


def _both(left: Number, right: Number) -> tuple[Any, Any]:
    """Two values in the dtype they meet in."""
    met = _meet(left.dtype, right.dtype)
    if isinstance(left.value, float) or isinstance(right.value, float):
        met = met and "FP32"
    for side in (left, right):
        if side.dtype is None and met not in (None, "BOOL"):
            _held(side.value, met)
    return (np.float32(left.value), np.float32(right.value)) if met == "FP32" else (left.value, right.value)


def _one_of(taken: Number, other: ast.expr | Number, env: dict[str, Number]) -> Number:
    """The value of a choice, in the dtype it meets that of the other in."""
    if isinstance(other, ast.expr):
        try:
            other = meaning(other, env)
        except ZeroDivisionError:
            return taken
    return _held(taken.value, _meet(taken.dtype, other.dtype)) if taken.dtype or other.dtype else taken


def defined(text: str) -> list[float] | None:
    """The values of an expression for all arguments; None when one has none."""
    node = ast.parse(text, mode="eval").body
    try:
        found = []
        for values in ARGUMENTS:
            env = {n: Number(np.float32(v) if PARAMS[n] == "FP32" else v, PARAMS[n]) for n, v in values.items()}
            found.append(float(meaning(node, env).value))
        return found
    except (Undefined, ArithmeticError, ValueError, TypeError):
        return None


def kernel_text(expressions: Sequence[str]) -> str:
    """A kernel that writes each value."""
    params = ", ".join(f"{n}: pl.Scalar[pl.{d}]" for n, d in PARAMS.items())
    lines = [f"    pl.write(out, [0, {i}], pl.cast({e}, pl.FP32))" for i, e in enumerate(expressions)]
    return (
        f"@pl.function(type=pl.FunctionType.InCore)\ndef k({params}, out: pl.InOut[pl.Tensor[[1, 16], pl.FP32]]):\n"
        + "\n".join(lines) + "\n"
    )  # fmt: skip


def host_text(expressions: Sequence[str]) -> str:
    """A program whose host computes each value and hands it to a kernel."""
    params = ", ".join(f"{n}: pl.Scalar[pl.{d}]" for n, d in PARAMS.items())
    out = "out: pl.InOut[pl.Tensor[[1, 16], pl.FP32]]"
    lines = [f"        out = self.put(pl.cast({e}, pl.FP32), {i}, out)" for i, e in enumerate(expressions)]
    return "\n".join((
        "@pl.program\nclass Host:",
        "    @pl.function(type=pl.FunctionType.InCore)",
        f"    def put(self, v: pl.Scalar[pl.FP32], i: pl.Scalar[pl.INDEX], {out}) -> pl.Tensor[[1, 16], pl.FP32]:",
        "        pl.write(out, [0, i], v)\n        return out\n",
        "    @pl.function(type=pl.FunctionType.Orchestration)",
        f"    def main(self, {params}, {out}) -> pl.Tensor[[1, 16], pl.FP32]:", *lines, "        return out\n",
    ))  # fmt: skip


def expressions(pick: Pick, depth: int = 3) -> list[str]:
    """Expressions that have a meaning for all arguments."""
    made = Expressions(pick)
    texts = [made.of(pick(("int", "bool", "float")), depth) for _ in range(2 * COUNT)]
    return [t for t in texts if defined(t) is not None][:COUNT]


def check_scalars(texts: Sequence[str], source: str, target: str = "Ascend910B") -> Outcome:
    """The values of ``texts``, which ``source`` writes to its output."""
    compiled = compile_text(source, target)
    if isinstance(compiled, Outcome):
        return compiled
    wanted = [defined(t) or [] for t in texts]
    for number, values in enumerate(ARGUMENTS):
        out = np.zeros((1, 16), np.float32)
        try:
            compiled(*values.values(), out)
        except (PtoError, ValueError) as error:
            return Outcome("run", f"arguments {number}: {error}")
        for text, got, want in zip(texts, out[0], wanted):
            if abs(got - want[number]) > 1e-5 * max(1, abs(want[number])):
                return Outcome("wrong", f"{text} of {values}: {got} instead of {want[number]}")
    return Outcome("ok")
