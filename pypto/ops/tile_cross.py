"""Tile operators that hand tiles from one core of a group to the other through a pipe."""

from __future__ import annotations

from typing import Any

from ..ir.enums import MemorySpace
from ..ir.types import TileType, Type, UnknownType
from .registry import Bound, Core, Pto, declare, no_result
from .rules import static_shape

_SIDES = (
    ("aiv", "cube", "vector", Core.CUBE, (MemorySpace.Acc, MemorySpace.Mat), "aic", MemorySpace.Vec, Core.VECTOR),
    ("aic", "vector", "cube", Core.VECTOR, (MemorySpace.Vec,), "aiv", MemorySpace.Mat, Core.CUBE),
)


def _check_split(b: Bound) -> None:
    if b["split"] < 0 or (b["id"] or 0) < 0:
        raise b.fail(f"requires split and id to be >= 0, got {b['split']} and {b['id']}")


def _push(b: Bound) -> Type:
    _check_split(b)
    return no_result(b)


def _pop(space: MemorySpace) -> Any:
    def rule(b: Bound) -> Type:
        """The type of the tile pushed; without ``shape`` and ``dtype`` the assignment's annotation states it.

        The call does not keep them: its type says all.
        """
        _check_split(b)
        if not b.dims("shape") or b["dtype"] is None:
            return UnknownType()
        static_shape(b, "shape")
        kind = TileType(b.dims("shape"), b["dtype"], None, None, space)
        b.values.update(shape=None, dtype=None)
        return kind

    return rule


for _to, _producer, _consumer, _core, _sources, _origin, _space, _popper in _SIDES:
    declare(
        f"tile.tpush_to_{_to}",
        "in tile: tile, attr split: int! = 0, attr id: int? = None, attr lane_stride: int? = None",
        _push,
        f"Push a tile from the {_producer} core to the {_consumer} core through pipe ``id``; ``split`` says how the "
        "lanes divide it: 0 not at all, 1 by rows, 2 by columns.",
        core=_core,
        spaces={"tile": _sources},
        pure=False,
        pto=Pto(f"pto.tpush_to_{_to}", ("tile",), form="tpush"),
    )
    declare(
        f"tile.tpop_from_{_origin}",
        "in shape: dims?, attr dtype: DataType? = None, attr split: int! = 0, attr id: int? = None, "
        "attr lane_stride: int? = None",
        _pop(_space),
        f"Pop the next tile the {_producer} core pushed, into {_space.name}; give its slot back with "
        f"pl.system.tfree_to_{_origin}.",
        core=_popper,
        result_space=_space,
        pure=False,
        pto=Pto(f"pto.tpop_from_{_origin}", form="tpop"),
    )
