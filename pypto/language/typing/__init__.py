"""Annotation classes under their public import path."""

from __future__ import annotations

from ..annotations import Array, DistributedTensor, InOut, Out, Scalar, Tensor, Tile, Tuple
from ..dynamic import DynVar, dynamic

__all__ = ["Array", "DistributedTensor", "DynVar", "InOut", "Out", "Scalar", "Tensor", "Tile", "Tuple", "dynamic"]
