"""The import path of the round-trip instrument that existing tools use."""

from __future__ import annotations

from ..passes.pipeline import make_roundtrip_instrument

__all__ = ["make_roundtrip_instrument"]
