"""Annotation classes under their public import path."""

from __future__ import annotations

from ...annotations import CommCtx, DistributedTensor

__all__ = ["CommCtx", "DistributedTensor"]
