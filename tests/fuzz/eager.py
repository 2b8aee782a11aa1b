"""A `pl` that computes at once, on numpy: the same kernel text, run by Python itself, says what a kernel means.

A `Tile` holds its valid elements only. A `Number` is a scalar of the kernel's dtypes with their wrap-around; Python
numbers are literals, which take the dtype of what they meet. Nothing here comes from pypto.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
F32, F16, I32 = np.float32, np.float16, np.int32
BITS = {"INT32": 32, "INDEX": 64, "INT64": 64}
NUMPY = {"FP32": np.float32, "FP16": np.float16, "INT32": np.int32}


class Undefined(Exception):
    """The kernel has no meaning here: a window outside its tensor, operands that do not fit."""


def wrap(value: int, dtype: str) -> int:
    bits = BITS[dtype]
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _meeting(function: Callable[[int, int], Any], swap: bool = False) -> Callable[[Number, Any], Any]:
    """The operator of `Number` that ``function`` is on integers."""
    return lambda number, other: number.meet(other, function, swap)


class Number:
    """An integer scalar of a dtype."""

    def __init__(self, value: int, dtype: str) -> None:
        self.value, self.dtype = wrap(int(value), dtype), dtype

    def meet(self, other: Number | int, function: Callable[[int, int], Any], swap: bool = False) -> Any:
        right = other if isinstance(other, Number) else Number(other, self.dtype)
        dtype = max(self.dtype, right.dtype, key=lambda d: (BITS[d], d == "INDEX"))
        a, b = (right.value, self.value) if swap else (self.value, right.value)
        result = function(a, b)
        return result if isinstance(result, bool) else Number(result, dtype)

    __add__ = _meeting(operator.add)
    __radd__ = _meeting(operator.add, swap=True)
    __sub__ = _meeting(operator.sub)
    __rsub__ = _meeting(operator.sub, swap=True)
    __mul__ = _meeting(operator.mul)
    __rmul__ = _meeting(operator.mul, swap=True)
    __floordiv__ = _meeting(operator.floordiv)
    __mod__ = _meeting(operator.mod)
    __and__ = _meeting(operator.and_)
    __or__ = _meeting(operator.or_)
    __xor__ = _meeting(operator.xor)
    __lshift__ = _meeting(operator.lshift)
    __rshift__ = _meeting(operator.rshift)
    __lt__ = _meeting(operator.lt)
    __le__ = _meeting(operator.le)
    __gt__ = _meeting(operator.gt)
    __ge__ = _meeting(operator.ge)

    def __eq__(self, other: Any) -> bool:
        return self.meet(other, operator.eq)

    def __neg__(self) -> Number:
        return Number(-self.value, self.dtype)

    def __invert__(self) -> Number:
        return Number(~self.value, self.dtype)

    def __abs__(self) -> Number:
        return Number(abs(self.value), self.dtype)

    def __index__(self) -> int:
        return self.value


class Tile:
    """Shape and valid elements."""

    def __init__(self, shape: Sequence[int], valid: Array) -> None:
        self.shape, self.valid = tuple(shape), valid


class Tensor(np.ndarray[Any, Any]):
    """An array whose windows are copies: a window is the value it has where it is written."""

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key).copy()

    def __setitem__(self, key: Any, value: Any) -> None:
        self.view(np.ndarray)[key] = value


def _scalar(value: Any, dtype: Any) -> Any:
    return np.asarray(value.value if isinstance(value, Number) else value).astype(dtype)


def _same(a: Tile, b: Tile) -> None:
    if a.shape != b.shape or a.valid.shape != b.valid.shape or a.valid.dtype != b.valid.dtype:
        raise Undefined(f"{a.shape} {a.valid.shape} with {b.shape} {b.valid.shape}")


def _binary(function: Callable[[Array, Any], Array]) -> Callable[[Tile, Any], Tile]:
    def apply(a: Tile, b: Any) -> Tile:
        if isinstance(b, Tile):
            _same(a, b)
        right = b.valid if isinstance(b, Tile) else _scalar(b, a.valid.dtype)
        return Tile(a.shape, function(a.valid, right).astype(a.valid.dtype))

    return apply


def _unary(function: Callable[[Array], Array]) -> Callable[[Tile], Tile]:
    return lambda a: Tile(a.shape, function(a.valid).astype(a.valid.dtype))


def _wide(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda x: function(x.astype(np.float32))


def _reduce(function: Callable[..., Array], axis: int) -> Callable[..., Tile]:
    def apply(a: Tile, tmp: Tile | None = None) -> Tile:
        if 0 in a.valid.shape:
            raise Undefined("nothing to reduce")
        x = a.valid.astype(np.float32) if a.valid.dtype == F16 else a.valid
        value = function(x, axis=axis, keepdims=True).astype(a.valid.dtype)
        return Tile([a.shape[0], 1] if axis else [1, a.shape[1]], value)

    return apply


def _expand(function: Callable[[Array, Array], Array]) -> Callable[[Tile, Tile], Tile]:
    def apply(a: Tile, vector: Tile) -> Tile:
        if any(v not in (1, e) for v, e in zip(vector.valid.shape, a.valid.shape)):
            raise Undefined("vector does not fit")
        return Tile(a.shape, function(a.valid, vector.valid).astype(a.valid.dtype))

    return apply


def _ints(values: Sequence[Any]) -> list[int]:
    return [operator.index(v) for v in values]


def _window(x: Array, offsets: Sequence[Any], sizes: Sequence[int]) -> tuple[slice, ...]:
    starts = _ints(offsets)
    if any(o < 0 or s < 0 or o + s > n for o, s, n in zip(starts, sizes, x.shape)):
        raise Undefined(f"window {starts} {sizes} of {x.shape}")
    return tuple(slice(o, o + s) for o, s in zip(starts, sizes))


def load(x: Array, offsets: Any, shapes: Any, valid_shape: Any = None, target_memory: Any = None) -> Tile:
    shape = _ints(shapes)
    sizes = _ints(valid_shape) if valid_shape is not None else shape
    if any(v > s for v, s in zip(sizes, shape)):
        raise Undefined("more valid than there is")
    return Tile(shape, x[_window(x, offsets, sizes)].copy())


def store(tile: Tile, offsets: Any, out: Array) -> Array:
    out[_window(out, offsets, tile.valid.shape)] = tile.valid.astype(out.dtype)
    return out


def _whole(a: Tile) -> Array:
    if a.valid.shape != a.shape:
        raise Undefined("needs a whole tile")
    return a.valid


def tile_slice(a: Tile, shape: Any, offset: Any, valid_shape: Any = None) -> Tile:
    return Tile(_ints(shape), _whole(a)[_window(_whole(a), offset, _ints(shape))].copy())


def assemble(target: Tile, source: Tile, offset: Any) -> Tile:
    value = _whole(target).copy()
    value[_window(value, offset, _whole(source).shape)] = _whole(source)
    return Tile(target.shape, value)


def reshape(a: Tile, shape: Any) -> Tile:
    return Tile(_ints(shape), _whole(a).reshape(_ints(shape)))


def full(shape: Any, dtype: Any, value: Any) -> Tile:
    return Tile(_ints(shape), np.full(_ints(shape), value, NUMPY[dtype]))


def create_tile(shape: Any, dtype: Any) -> Tile:
    return Tile(_ints(shape), np.zeros(_ints(shape), NUMPY[dtype]))


def cast(a: Any, target_type: str, mode: str = "round") -> Any:
    if not isinstance(a, Tile):
        return NUMPY[target_type](a.value) if target_type in ("FP32", "FP16") else Number(a.value, target_type)
    x, to = a.valid, NUMPY[target_type]
    if to == I32 and x.dtype != I32:
        rounded = {"rint": np.rint, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}[mode](x.astype(np.float64))
        x = np.clip(np.nan_to_num(rounded, nan=0.0), -(2.0**31), 2.0**31 - 1)
    return Tile(a.shape, x.astype(to))


def transpose(a: Tile, axis1: int, axis2: int) -> Tile:
    return Tile(a.shape[::-1], _whole(a).T.copy())


def matmul(a: Tile, b: Tile) -> Tile:
    wide = np.int32 if a.valid.dtype == np.int8 else np.float32
    return Tile([a.shape[0], b.shape[1]], _whole(a).astype(wide) @ _whole(b).astype(wide))


def matmul_acc(acc: Tile, a: Tile, b: Tile) -> Tile:
    return Tile(acc.shape, acc.valid + matmul(a, b).valid)


def numbers(*bounds: Any, stage: int = 0) -> Iterator[Number]:
    return (Number(i, "INDEX") for i in range(*_ints(bounds)))


def on_tensors(function: Callable[..., Tile]) -> Callable[..., Any]:
    """An operator on tiles that takes tensors too, and then gives one."""

    def apply(*args: Any) -> Any:
        if not any(isinstance(a, np.ndarray) for a in args):
            return function(*args)
        return function(*(Tile(a.shape, a) if isinstance(a, np.ndarray) else a for a in args)).valid

    return apply


class Region:
    """A `with` region that runs at once."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass


def assemble_any(target: Any, source: Any, offset: Any) -> Any:
    if isinstance(target, Tile):
        return assemble(target, source, offset)
    value = target.copy()
    value[_window(value, offset, source.shape)] = source
    return value


def slice_any(a: Any, shape: Any, offset: Any) -> Any:
    return tile_slice(a, shape, offset) if isinstance(a, Tile) else a[_window(a, offset, _ints(shape))].copy()


_ELEMENTWISE = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "div": np.divide,
}  # fmt: skip
_UNARY = {
    "exp": _wide(np.exp), "sqrt": _wide(np.sqrt), "neg": np.negative, "abs": np.abs,
    "relu": lambda x: np.maximum(x, 0), "recip": _wide(np.reciprocal),
}  # fmt: skip
_MEMBERS: dict[str, Any] = {
    **{name: on_tensors(_binary(f)) for name, f in _ELEMENTWISE.items()},
    **{name: on_tensors(_unary(f)) for name, f in _UNARY.items()},
    **{f"row_{n}": on_tensors(_reduce(f, 1)) for n, f in (("max", np.max), ("min", np.min), ("sum", np.sum))},
    **{f"col_{n}": on_tensors(_reduce(f, 0)) for n, f in (("max", np.max), ("min", np.min), ("sum", np.sum))},
    **{f"{way}_expand_{n}": on_tensors(_expand(f)) for way in ("row", "col")
       for n, f in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide))},
    **{d: d for d in ("FP32", "FP16", "INT32", "INDEX", "INT64")},
    "load": load, "store": store, "slice": slice_any, "assemble": assemble_any, "reshape": reshape, "full": full,
    "create_tile": create_tile, "cast": cast, "transpose": transpose, "matmul": matmul, "matmul_acc": matmul_acc,
    "range": numbers, "unroll": numbers, "pipeline": numbers, "parallel": numbers,
    "min": lambda a, b: _pick(a, b, min), "max": lambda a, b: _pick(a, b, max),
    "const": lambda value, dtype: Number(value, dtype),
    "move": lambda a, target_memory: a, "Mem": SimpleNamespace(Mat=None, Vec=None),
    "FunctionType": SimpleNamespace(InCore=None, Orchestration=None, Inline=None),
    "Level": SimpleNamespace(CORE_GROUP=None), "at": Region, "manual_scope": Region,
    "spmd": numbers,
    "create_tensor": lambda shape, dtype: np.zeros(_ints(shape), NUMPY[dtype]).view(Tensor),
    "function": lambda f=None, **_: f if f is not None else lambda g: g, "program": lambda cls: cls().main,
}  # fmt: skip


def _pick(a: Any, b: Any, function: Callable[[int, int], int]) -> Any:
    left = a if isinstance(a, Number) else Number(a, b.dtype)
    return left.meet(b, function)


PL = SimpleNamespace(**_MEMBERS, tile=SimpleNamespace(full=full, assemble=assemble, slice=tile_slice))


def run(source: str, args: Sequence[Any], name: str = "k") -> Any:
    """Run kernel ``name`` of DSL text on arrays, which it fills in place; `Undefined` where it has no meaning."""
    args = [a.view(Tensor) if isinstance(a, np.ndarray) else a for a in args]
    space: dict[str, Any] = {"pl": PL}
    exec(compile("from __future__ import annotations\n" + source, "<kernel>", "exec"), space)
    with np.errstate(all="ignore"):
        return space[name](*args)
