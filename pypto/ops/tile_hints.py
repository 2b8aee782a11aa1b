"""Operators that do not compute: bringing data near early, printing."""

from __future__ import annotations

from ..dtypes import DataType
from ..ir.enums import MemorySpace
from ..ir.types import Type
from .registry import Bound, Core, Pto, attr_kind, declare, no_result
from .rules import VEC, check_dtype
from .tile_memory import load_window

PRINT_FORMATS = ("width8_precision4", "width8_precision2", "width10_precision6")


@attr_kind("PrintFormat")
def _print_format(value: object) -> str:
    if value in PRINT_FORMATS:
        return str(value)
    raise ValueError(f"invalid format {value!r}: it must be one of {', '.join(PRINT_FORMATS)}")


declare(
    "tile.prefetch",
    "in tensor: tensor, in offsets: dims, in shapes: dims, in valid_shape: dims?, "
    "attr target_memory: MemorySpace! = MemorySpace.Vec, attr clamp: bool = False",
    load_window,
    "Start copying a window of ``tensor`` into a tile, as `load` does, without later operators waiting for it.\n\n"
    "A hint: load the window before computing with it.",
    core=Core.MOVE,
    result_space="target_memory",
    pure=False,
    pto=Pto("pto.tprefetch", form="load"),
)

_PRINTED = (DataType.INT8, DataType.INT16, DataType.INT32, DataType.FP16, DataType.FP32)


def _print(b: Bound) -> Type:
    check_dtype(b, "tile", _PRINTED)
    if b.type("tile").memory_space not in (None, MemorySpace.Vec):
        raise b.fail(f"prints tiles in Vec, not in {b.type('tile').memory_space.name}", "pl.move it to Vec first")
    return no_result(b)


declare(
    "tile.print",
    "in tile: tile, attr format: PrintFormat = 'width8_precision4'",
    _print,
    "Print a tile, its whole buffer, with what is outside the valid region behind a bar.\n\n"
    "``format`` is width8_precision4, width8_precision2 or width10_precision6. A device prints only where the kernel "
    "was built for it.",
    core=Core.VECTOR,
    spaces={"tile": VEC},
    pure=False,
    pto=Pto("pto.tprint", ("tile",), attrs={"printFormat": "format"}, form="print"),
)
