"""What operators make of whole arrays, for cases of tile and of tensor operators alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from elementwise_cases import ADD
from operator_values import Array, is_float


def same(x: Array, y: Array) -> None:
    y[...] = x


def reshaped(x: Array, y: Array) -> None:
    y[...] = x.reshape(y.shape)


def same_bytes(x: Array, y: Array) -> None:
    y[...] = x.view(y.dtype)


def doubled(x: Array, m: int, n: int, y: Array) -> None:
    y[:m, :n] = ADD(x[:m, :n], x[:m, :n])


def pad_of(dtype: np.dtype, mode: str) -> Any:
    if mode == "zero":
        return 0
    if is_float(dtype):
        return np.inf if mode == "max" else -np.inf
    return np.iinfo(dtype).max if mode == "max" else np.iinfo(dtype).min


def padded(mode: str) -> Callable[..., None]:
    def reference(x: Array, m: int, n: int, y: Array) -> None:
        y[...] = pad_of(y.dtype, mode)
        y[:m, :n] = x[:m, :n]

    return reference


def combined(function: Callable[[Array, Array], Array]) -> Callable[..., None]:
    """The second operand counts where it is valid; elsewhere the first is taken as it is."""

    def reference(a: Array, b: Array, m: int, n: int, y: Array) -> None:
        y[...] = a
        wide = np.float32 if is_float(a.dtype) else np.int64
        y[:m, :n] = function(a[:m, :n].astype(wide), b[:m, :n].astype(wide)).astype(a.dtype)

    return reference
