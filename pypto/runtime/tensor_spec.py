"""Descriptions of the arguments a script runs a program on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_Init = Callable[..., Any]


@dataclass
class TensorSpec:
    """A torch tensor by name, shape and torch dtype.

    ``init_value`` is a number it is filled with, a tensor, or a function that makes one, of no arguments or of the
    shape as `torch.randn` is; without, zeros. ``is_output`` says that the program only writes it.
    """

    name: str
    shape: Sequence[int]
    dtype: Any
    init_value: Any = None
    is_output: bool = False

    def create_tensor(self) -> Any:
        """A new tensor. Raises ValueError when what ``init_value`` gives has another shape."""
        import torch

        shape = list(self.shape)
        if self.init_value is None:
            return torch.zeros(shape, dtype=self.dtype)
        value: Any = self.init_value
        if not isinstance(value, torch.Tensor) and callable(value):
            value = value(shape) if _takes_shape(value) else value()
        if not isinstance(value, torch.Tensor):
            return torch.zeros(shape, dtype=self.dtype).fill_(value)
        if list(value.shape) != shape:
            raise ValueError(f"init_value of {self.name!r} gives shape {list(value.shape)}, the tensor has {shape}")
        return value.to(self.dtype).clone()


def _takes_shape(make: _Init) -> bool:
    """Whether a function needs an argument; those of torch do not say."""
    try:
        params = inspect.signature(make).parameters.values()
    except ValueError:
        return True
    return any(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in params)
