"""Every PTO instruction, one file for each family. Importing this package fills `INSTRUCTIONS`."""

from __future__ import annotations

from ..spec import INSTRUCTIONS
from . import (
    convert,
    counting,
    cube,
    debug,
    elementwise,
    expand,
    gather,
    memory_gather,
    move,
    mx,
    partial,
    permute,
    power,
    quantize,
    reduce,
    select,
)

__all__ = [
    "INSTRUCTIONS",
    "convert",
    "counting",
    "cube",
    "debug",
    "elementwise",
    "expand",
    "gather",
    "memory_gather",
    "move",
    "mx",
    "partial",
    "permute",
    "power",
    "quantize",
    "reduce",
    "select",
]
