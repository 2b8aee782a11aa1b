"""What PTO types describe, as plain Python values: tiles and windows of global memory.

A dimension written ``?`` is None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from .elements import is_element, item_bytes, numpy_type

LOCATIONS = ("vec", "mat", "left", "right", "acc", "bias", "scaling")
LAYOUTS = ("none_box", "row_major", "col_major")
PADS = ("null", "zero", "max", "min")


@dataclass(frozen=True)
class Tile:
    """A tile buffer: its memory, element type, extents in elements and physical layout.

    ``v_row`` and ``v_col`` are None when known only at run time. ``fractal`` is the bytes of one
    inner box; ``pad`` indexes `PADS`; ``compact`` packs boxes by the valid extents.
    """

    loc: str
    dtype: str
    rows: int
    cols: int
    v_row: int | None
    v_col: int | None
    blayout: str = "row_major"
    slayout: str = "none_box"
    fractal: int = 512
    pad: int = 0
    compact: int = 0

    @cached_property
    def item(self) -> int:
        return item_bytes(self.dtype)

    @cached_property
    def nbytes(self) -> int:
        """Bytes the whole buffer occupies."""
        return self.rows * self.cols * self.item

    @property
    def place(self) -> str:
        """The memory it is in. Three go under the name scaling: of MX scales of either operand, and of the fix pipe."""
        if self.loc != "scaling":
            return self.loc
        return "scaling_right" if self.blayout == "col_major" else "scaling" if self.boxed else "scaling_fix_pipe"

    @property
    def boxed(self) -> bool:
        return self.slayout != "none_box"

    @cached_property
    def box(self) -> tuple[int, int]:
        """Rows and columns of one inner box, (1, 1) when the layout has none.

        512-byte boxes are 16 rows by 32 bytes (hardware.md, layouts); 1024-byte ones, of the
        accumulator, 16 by 16 four-byte elements; 32-byte ones, of scales, 16 lines by 2.
        """
        if not self.boxed:
            return (1, 1)
        # A single row, the vector of a matrix-vector product, has boxes of one row.
        single = self.rows == 1 and self.slayout == "row_major"
        if self.fractal == 1024:
            return (1 if single else 16, 16)
        if self.fractal == 32:
            lines = 1 if single else 16
            return (lines, 2) if self.slayout == "row_major" else (2, lines)
        c0 = max(1, 32 // self.item)
        lines = 1 if single else self.fractal // 32
        return (lines, c0) if self.slayout == "row_major" else (c0, lines)

    @cached_property
    def numpy(self):
        return numpy_type(self.dtype)

    @property
    def nd(self) -> bool:
        """Plain row-major rows, no boxes."""
        return self.blayout == "row_major" and not self.boxed

    @cached_property
    def text(self) -> str:
        def dim(value: int | None) -> str:
            return "?" if value is None else str(value)

        compact = f", compact={self.compact}" if self.compact else ""
        return (
            f"loc={self.loc}, dtype={self.dtype}, rows={self.rows}, cols={self.cols}, v_row={dim(self.v_row)}, "
            f"v_col={dim(self.v_col)}, blayout={self.blayout}, slayout={self.slayout}, fractal={self.fractal}, "
            f"pad={self.pad}{compact}"
        )

    def __str__(self) -> str:
        return f"!pto.tile_buf<{self.text}>"


@dataclass(frozen=True)
class View:
    """Shape of a global tensor view or window; a None extent is known only at run time."""

    shape: tuple[int | None, ...]
    dtype: str

    @cached_property
    def numpy(self):
        return numpy_type(self.dtype)

    @cached_property
    def text(self) -> str:
        return "x".join(["?" if extent is None else str(extent) for extent in self.shape] + [self.dtype])


def _extent(text: str, what: str) -> int | None:
    if text == "?":
        return None
    if not text.isdigit():
        raise ValueError(f"{what} must be a number or '?', got '{text}'")
    return int(text)


def element(text: str) -> str:
    if not is_element(text):
        raise ValueError(f"'{text}' is not an element type")
    return text


_SHAPE = re.compile(r"((?:(?:\d+|\?)\s*x\s*)*)(\S+)")


def parse_view(body: str) -> View:
    """``?x64xf32`` as a `View`. Raises ValueError."""
    match = _SHAPE.fullmatch(body.strip())
    if match is None:
        raise ValueError(f"'{body}' is not a shape and element type")
    dims = [part.strip() for part in match.group(1).split("x")[:-1]]
    return View(tuple(_extent(dim, "extent") for dim in dims), element(match.group(2)))


def _choice(value: str, allowed: tuple[str, ...], what: str) -> str:
    if value not in allowed:
        raise ValueError(f"{what} must be one of {', '.join(allowed)}, got '{value}'")
    return value


def _pad(value: str) -> int:
    if value in PADS:
        return PADS.index(value)
    if value.isdigit() and int(value) < len(PADS):
        return int(value)
    raise ValueError(f"pad must be 0..3 or one of {', '.join(PADS)}, got '{value}'")


def _compact(value: str) -> int:
    if value not in ("0", "1", "null", "normal"):
        raise ValueError(f"compact must be 0 or 1, got '{value}'")
    return int(value in ("1", "normal"))


def parse_tile(body: str) -> Tile:
    """Body of a ``!pto.tile_buf<..>`` in either form as a `Tile`. Raises ValueError."""
    fields: dict[str, str] = {}
    for position, part in enumerate(body.split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            if position == 0:
                key, value = "loc", key
            elif position == 1:
                shape = parse_view(key)
                rows, cols = shape.shape if len(shape.shape) == 2 else (None, None)
                if rows is None or cols is None:
                    raise ValueError(f"a tile has two static extents, got '{key}'")
                fields |= {"rows": str(rows), "cols": str(cols)}
                key, value = "dtype", shape.dtype
            else:
                raise ValueError(f"expected key=value, got '{part.strip()}'")
        if key in fields:
            raise ValueError(f"'{key}' is given twice")
        fields[key] = value
    return _tile_of(fields)


def _tile_of(fields: dict[str, str]) -> Tile:
    if "valid" in fields:
        fields["v_row"], _, fields["v_col"] = fields.pop("valid").partition("x")
    missing = [key for key in ("loc", "dtype", "rows", "cols") if key not in fields]
    if missing:
        raise ValueError(f"tile_buf has no {', '.join(missing)}")
    rows, cols = _extent(fields.pop("rows"), "rows"), _extent(fields.pop("cols"), "cols")
    if not rows or not cols:
        raise ValueError("rows and cols must be positive numbers")
    tile = Tile(
        loc=_choice(fields.pop("loc"), LOCATIONS, "loc"),
        dtype=element(fields.pop("dtype")),
        rows=rows,
        cols=cols,
        v_row=_extent(fields.pop("v_row", str(rows)), "v_row"),
        v_col=_extent(fields.pop("v_col", str(cols)), "v_col"),
        blayout=_choice(fields.pop("blayout", "row_major"), LAYOUTS[1:], "blayout"),
        slayout=_choice(fields.pop("slayout", "none_box"), LAYOUTS, "slayout"),
        fractal=int(fields.pop("fractal", "512")),
        pad=_pad(fields.pop("pad", "0")),
        compact=_compact(fields.pop("compact", "0")),
    )
    if fields:
        raise ValueError(f"tile_buf has no field '{next(iter(fields))}'")
    return tile


@lru_cache(maxsize=4096)
def operand_of(text: str) -> Tile | View | str:
    """A type as written in an instruction: a tile, a window, or the name of a scalar type. Raises ValueError."""
    name, _, body = text.partition("<")
    if name == "!pto.tile_buf":
        return parse_tile(body[:-1])
    return parse_view(body[:-1]) if name in ("!pto.partition_tensor_view", "!pto.tensor_view") else text
