"""Tensors bound to a communication window, under their public import path."""

from __future__ import annotations

from ...annotations import DistributedTensor

__all__ = ["DistributedTensor"]
