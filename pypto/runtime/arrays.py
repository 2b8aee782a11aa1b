"""Arrays in and out: numpy arrays, torch tensors, anything with the array protocol, checked against parameter types."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..arith.inverse import solve
from ..codegen.pairs import PAIRED
from ..dtypes import DataType
from ..errors import user_error
from ..ir.enums import TensorLayout
from ..ir.expr import ConstInt, Expr, Var, tensor_type_of
from ..ir.naming import written_name
from ..ir.types import DistributedTensorType, TensorType
from ..passes.materialize_window_strides.analysis import stated_strides
from ..pto.numerics import pack_pairs, unpack_pairs
from ..simulator.window import Part, part_of, unwritten
from .host import Host


class ArrayArg:
    """One array argument: ``array`` is the memory kernels work on, ``source`` the caller's, ``given`` its object.

    ``strides`` are those the parameter states, in elements; without, elements follow each other.
    """

    __slots__ = ("given", "array", "source")

    def __init__(self, given: Any, array: np.ndarray, strides: Sequence[int] | None = None) -> None:
        self.given = given
        self.source = array
        if strides is None:
            self.array = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        else:
            self.array = _laid_out(array.shape, array.dtype, strides)
            self.array[...] = array

    def write_back(self) -> None:
        """After a run, bring results to the caller's memory when kernels worked on a copy."""
        if self.array is not self.source and self.writeable:
            self.source[...] = self.array

    @property
    def writeable(self) -> bool:
        """Whether the caller's memory may be written."""
        return self.source.flags.writeable


def _laid_out(shape: Sequence[int], dtype: np.dtype, strides: Sequence[int]) -> np.ndarray:
    """An array nothing was written to whose elements lie ``strides`` apart."""
    elements = unwritten([1 + sum((n - 1) * s for n, s in zip(shape, strides))], dtype)
    array = np.ndarray(shape, dtype, elements, 0, [s * dtype.itemsize for s in strides])
    return part_of(array, elements)


def _stated_strides(type: TensorType, dims: Mapping[Var, int]) -> list[int] | None:
    """The strides the memory of a parameter has to have; None where its elements follow each other."""
    strides = stated_strides(type) if type.layout is TensorLayout.ND else None
    values = [evaluate_dim(s, dims) for s in strides or ()]
    known = [v for v in values if v is not None]
    return known if strides is not None and len(known) == len(values) else None


class Pairs(Part):
    """The bytes of FP4 elements as kernels take them, two elements each, the first in the low half."""


class PackedArg(ArrayArg):
    """An array of FP4 elements, one each, of which kernels work on the bytes."""

    __slots__ = ()

    def __init__(self, given: Any, array: np.ndarray) -> None:
        super().__init__(given, array)
        pairs = pack_pairs(array)
        if array.flags.c_contiguous or not array.size:
            self.array = pairs.view(Pairs)
        else:
            bytes_apart = [*(s // (2 * array.itemsize) for s in array.strides[:-1]), 1]
            self.array = _laid_out(pairs.shape, pairs.dtype, bytes_apart).view(Pairs)
            self.array[...] = pairs

    def write_back(self) -> None:
        """After a run, bring what changed to the caller's memory."""
        made = unpack_pairs(np.ascontiguousarray(self.array), self.source.dtype)
        if (made.view(np.uint8) != np.ascontiguousarray(self.source).view(np.uint8)).any():
            self.source[...] = made


def needs_packing(param: Var, array: np.ndarray) -> bool:
    """Whether kernels take ``array`` packed: its elements are FP4, one each."""
    return tensor_type_of(param).dtype in PAIRED and not isinstance(array, Pairs)


def is_torch(value: Any) -> bool:
    """Whether ``value`` is a torch tensor; torch is never imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_numpy(value: Any) -> np.ndarray:
    """A numpy array over the memory of ``value``. Raises TypeError for anything that is no CPU array."""
    if isinstance(value, np.ndarray):
        return value
    if is_torch(value):
        return _torch_memory(value)
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    if hasattr(value, "__array_interface__"):
        return np.asarray(value)
    raise TypeError(f"expected an array, got {type(value).__name__}")


def _torch_memory(tensor: Any) -> np.ndarray:
    torch = sys.modules["torch"]
    tensor = tensor.detach()
    if tensor.device.type != "cpu":
        raise TypeError(f"expected a CPU tensor, got one on {tensor.device}: call .cpu() first")
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(DataType.BF16.numpy)
    return tensor.numpy()


def like_caller(array: np.ndarray, torch_like: bool) -> Any:
    """A result the program made, as a torch tensor when the caller works with torch."""
    array = np.asarray(array)
    if not torch_like:
        return array
    torch = sys.modules["torch"]
    if array.dtype == DataType.BF16.numpy:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def bind_array(param: Var, value: Any, dims: dict[Var, int]) -> ArrayArg:
    """Check an array against tensor parameter ``param``; symbolic dimensions take their values in ``dims``.

    Raises TypeError for something that is no array or has another dtype, ValueError for another shape.
    """
    try:
        array = as_numpy(value)
    except TypeError as error:
        raise user_error(TypeError, f"argument {written_name(param.name_hint)!r}: {error}", param.span) from None
    check_array(param, array, dims)
    return ArrayArg(value, array, _stated_strides(tensor_type_of(param), dims))


def check_array(param: Var, array: np.ndarray, dims: dict[Var, int], window: bool = False) -> None:
    """Check dtype and shape as `bind_array`. A ``window`` may be smaller: it is cut at the edge of its tensor."""
    type = tensor_type_of(param)
    expected = type.dtype.numpy
    pairs = isinstance(array, Pairs)
    if array.dtype != expected and not pairs:
        raise user_error(
            TypeError,
            f"argument {written_name(param.name_hint)!r} must be an array of {expected.name}, got {array.dtype.name}",
            param.span,
            hint=f"the parameter is pl.{type.dtype.name}: convert with .astype({expected.name!r})",
        )
    given = [*array.shape[:-1], 2 * array.shape[-1]] if pairs else list(array.shape)
    shape = [_extent(d, n, dims) for d, n in zip(type.shape, given)]
    fits = all(n == want or (window and want is not None and n < want) for n, want in zip(given, shape))
    if len(type.shape) != array.ndim or not fits:
        wanted = ", ".join(str(_shown(d, dims)) for d in type.shape)
        raise user_error(
            ValueError,
            f"argument {written_name(param.name_hint)!r} must have shape [{wanted}], got {given}",
            param.span,
            hint=_PACKED.get(type.layout),
        )
    if type.dtype in PAIRED and given[-1] % 2:
        raise user_error(
            ValueError,
            f"argument {written_name(param.name_hint)!r} has rows of {given[-1]} FP4 elements, and two share a byte",
            param.span,
            hint="give rows of an even number of elements",
        )
    if type.dtype in PAIRED and isinstance(type, DistributedTensorType):
        raise user_error(
            ValueError,
            f"{written_name(param.name_hint)!r} cannot be shared by ranks here: its FP4 elements share bytes",
            param.span,
            hint="share the elements as pl.FP8E4M3FN",
        )


def new_array(param: Var, dims: Mapping[Var, int]) -> np.ndarray:
    """An array nothing was written to, for ``param``. ValueError when ``dims`` does not give its shape."""
    type = tensor_type_of(param)
    shape = [n for d in type.shape if (n := evaluate_dim(d, dims)) is not None]
    if len(shape) != len(type.shape):
        wanted = ", ".join(str(_shown(d, dims)) for d in type.shape)
        name = written_name(param.name_hint)
        message = f"the shape [{wanted}] of {name!r} does not follow from the arguments: give the array"
        raise user_error(ValueError, message, param.span)
    strides = _stated_strides(type, dims)
    return unwritten(shape, type.dtype.numpy) if strides is None else _laid_out(shape, type.dtype.numpy, strides)


_PACKED = {
    TensorLayout.NZ: "its bytes are in NZ order: pack the array with pypto.layouts.to_nz",
    TensorLayout.MX_A_ZZ: "its scales lie in boxes: pack the array with pypto.layouts.to_mx_a",
    TensorLayout.MX_B_NN: "its scales lie in boxes: pack the array with pypto.layouts.to_mx_b",
}
"""How to make the array a parameter of that layout takes."""


def _extent(dim: Expr, actual: int, dims: dict[Var, int]) -> int | None:
    """What a dimension must be: a constant, or the value its symbol has or now gets."""
    known = evaluate_dim(dim, dims)
    if known is None:
        _learn(dim, actual, dims)
        known = evaluate_dim(dim, dims)
    return known


_BACK: dict[str, Callable[[int, int], int]] = {
    "less": lambda a, n: a - n, "plus": lambda a, n: a + n, "over": lambda a, n: a // n, "from": lambda a, n: n - a,
}  # fmt: skip


def _learn(dim: Expr, actual: int, dims: dict[Var, int]) -> None:
    """Give the one symbol of ``dim`` without a value the value that makes ``dim`` ``actual``, where just one does."""
    found = solve(dim, lambda e: evaluate_dim(e, dims))
    if found is None:
        return
    symbol, steps = found
    for step, number in steps:
        if step == "over" and actual % number:
            return
        actual = _BACK[step](actual, number)
    dims[symbol] = actual


def _shown(dim: Expr, dims: Mapping[Var, int]) -> Any:
    value = evaluate_dim(dim, dims)
    return value if value is not None else getattr(dim, "name_hint", dim)


def evaluate_dim(dim: Expr, dims: Mapping[Var, int]) -> int | None:
    """The value of a dimension expression, or None while it mentions a symbol without a value."""
    if isinstance(dim, ConstInt):
        return dim.value
    if isinstance(dim, Var):
        return dims.get(dim)
    try:
        return int(Host.scalar(dim, dims))
    except KeyError:
        return None


def bind_scalar(param: Var, value: Any) -> int | float | bool:
    """Check a number against scalar parameter ``param``. Raises TypeError, or ValueError when it does not fit."""
    dtype = param.dtype
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    kinds = (bool, int, float, np.generic) if dtype.is_float() else (bool, int, np.integer, np.bool_)
    if not isinstance(value, kinds):
        what = "a number" if dtype.is_float() else "an integer"
        message = f"argument {written_name(param.name_hint)!r} must be {what}, got {type(value).__name__}"
        raise user_error(TypeError, message, param.span)
    if dtype.is_float():
        return float(value)
    low, high = (0, 1) if dtype is DataType.BOOL else dtype.int_range()
    if not low <= int(value) <= high:
        message = f"argument {written_name(param.name_hint)!r} must fit {dtype}: {low} to {high}, got {value}"
        raise user_error(ValueError, message, param.span)
    return int(value)
