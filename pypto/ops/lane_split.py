"""Operators that name where a value crosses between the cube and the two vector lanes of a core group.

``aiv_shard`` hands each lane its share of a value the cube made, ``aic_gather`` joins the lanes' shares for the cube.
``split`` is the mode of the `pl.split_aiv` region they stand in: 0 not at all, 1 by rows, 2 by columns. ``lane_stride``
is how much lane 0 gets, where that is not half the tile, rounded up.
"""

from __future__ import annotations

from typing import Any

from ..ir import expr as E
from ..ir.enums import MemorySpace
from ..ir.expr import Expr, index_const
from ..ir.scalar import binary
from ..ir.types import DistributedTensorType, TensorType, TensorView, TileType, Type
from .registry import Bound, Core, declare
from .rules import dim_text, index, plus, same, tile_type, times, valid_of, value

_TWO = index_const(2)


def _half(dim: Expr) -> Expr:
    """A lane's share of an extent: half, rounded up, as both lanes have a buffer of one size."""
    known = value(dim)
    if known is not None:
        return index_const((known + 1) // 2)
    return binary(E.FloorDiv, plus(index(dim), index_const(1)), _TWO)


def _double(dim: Expr) -> Expr:
    return times(index(dim), _TWO)


def _crossing(level: str, shard: bool) -> Any:
    """The type rule of a crossing at ``level``."""
    name = "tile" if level == "tile" else "tensor"
    resize = _half if shard else _double
    space = MemorySpace.Vec if shard else MemorySpace.Mat

    def rule(b: Bound) -> Type:
        t = b.type("input")
        if isinstance(t, DistributedTensorType):
            raise b.fail(f"requires a non-distributed TensorType, got {t}")
        split, valid = b["split"], valid_of(b, "input")
        if split not in (0, 1, 2):
            raise b.fail(f"split must be 0 (not at all), 1 (by rows) or 2 (by columns), got {split}")
        shape = t.shape
        if split:
            if len(shape) != 2:
                message = f"requires a 2D {name} to divide by rows or columns, got rank {len(shape)}"
                raise b.fail(message, "Reshape the operand to 2D first")
            if shard:
                _check_region(b, valid, shape, split)
            axis = split - 1
            shape, valid = ([resize(d) if i == axis else d for i, d in enumerate(dims)] for dims in (shape, valid))
        if isinstance(t, TileType):
            return tile_type(shape, t.dtype, valid, space)
        return TensorType(shape, t.dtype, None, TensorView(valid_shape=valid))

    return rule


def _check_region(b: Bound, valid: Any, shape: Any, split: int) -> None:
    """What the pipe carries beside the data is one run-time row count: refuse regions that need more."""
    rows_whole, columns_whole = same(valid[0], shape[0]), same(valid[1], shape[1])
    if split == 2 and not columns_whole:
        text = f"valid columns {dim_text(valid[1])} of {dim_text(shape[1])}"
        message = f"LEFT_RIGHT splits the column axis, whose valid extent would differ by lane: {text}"
        raise b.fail(message, "split by rows, or make the columns whole with fillpad")
    if split == 1 and not columns_whole and value(valid[1]) is None:
        extent = dim_text(valid[1])
        message = f"column extent {extent} is a runtime value narrower than the physical box {dim_text(shape[1])}"
        raise b.fail(message, "fill the columns with fillpad first")
    if split == 1 and not rows_whole and not columns_whole:
        message = "a per-lane row extent and narrowed columns cannot both cross"
        raise b.fail(message, "fill the columns with fillpad first")


for _level in ("tile", "tensor"):
    for _name, _shard, _doc in (
        ("aiv_shard", True, "This lane's share of a value the cube made, half of it where the region splits."),
        ("aic_gather", False, "The lanes' shares of a value joined for the cube, twice the size where it is split."),
    ):
        _facts: dict[str, Any] = {"tile_form": f"tile.{_name}"}
        if _level == "tile":
            _facts = {"result_space": MemorySpace.Vec if _shard else MemorySpace.Mat}
        declare(
            f"{_level}.{_name}",
            f"in input: {_level}, attr split: int!, attr lane_stride: int? = None",
            _crossing(_level, _shard),
            _doc,
            core=Core.MOVE,
            inplace_safe=False,
            **_facts,
        )
