"""Gathers from and scatters to global memory by index: whole rows, or single elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import ContractError, dtypes, no_box, vec
from ..errors import PtoError
from ..runtime import Array, TileValue, WindowValue
from ..shapes import Tile, View
from ..spec import Run, Site, declare

_A2A3 = "i8 i16 i32 ui8 ui16 ui32 f16 bf16 f32"
_A5 = f"{_A2A3} f8E4M3FN f8E5M2 !pto.hif8"
_SIGNED = "i8 i16 i32 f16 bf16 f32"
_SIGNED_A5 = f"{_SIGNED} f8E4M3FN f8E5M2 !pto.hif8"


def _places(site: Site, index: Array, limit: int, outside: str) -> tuple[Array, Array]:
    """Positions to use, and which of them are inside."""
    inside = (index >= 0) & (index < limit)
    if outside == "undefined" and not inside.all():
        raise PtoError(
            f"'pto.{site.spec.mnemonic}': index {int(index[~inside][0])} is outside 'mem', which has {limit}, "
            "and the outcome undefined"
        )
    if outside == "clamp":
        return np.clip(index, 0, limit - 1), np.ones_like(inside)
    if outside == "wrap":
        return index % limit, np.ones_like(inside)
    return np.where(inside, index, 0), inside


def _indices(value: TileValue | WindowValue) -> Array:
    return value.read().astype(np.int64)


def _count(mem: WindowValue, by_rows: bool) -> int:
    """How many rows, or elements, there are."""
    rows, cols = mem.matrix_shape()
    return rows if by_rows else rows * cols


def _gather(site: Site) -> Run:
    by_rows, outside = site.attrs["coalesce"] == "row", site.attrs["gatherOob"]

    def run(mem: WindowValue, idx: TileValue | WindowValue, scratch: WindowValue | None, dst: TileValue) -> None:
        rows, cols = dst.valid
        index = _indices(idx).ravel()[:rows] if by_rows else _indices(idx)[:rows, :cols]
        if index.size < (rows if by_rows else rows * cols):
            raise PtoError(f"'pto.mgather': {index.size} indices for {dst.valid} valid elements of 'dst'")
        places, inside = _places(site, index.ravel(), _count(mem, by_rows), outside)
        read = mem.lines(places[inside], by_rows)
        taken = np.zeros((len(places), read.shape[1]), read.dtype)
        taken[inside] = read
        dst.write(taken[:, :cols] if by_rows else taken.reshape(rows, cols))

    return run


def _check_gather(site: Site) -> None:
    mem, dst = site.view("mem"), site.tile("dst")
    if mem.dtype != dst.dtype:
        raise PtoError(f"'pto.mgather': 'mem' has {mem.dtype} and 'dst' {dst.dtype}")
    index = site.types["idx"]
    if dst.loc == "vec":
        no_box("dst")(site)
        if not isinstance(index, Tile):
            raise PtoError("'pto.mgather' into vec takes a tile of indices")
        if site.arch == "a2a3" and site.attrs["coalesce"] == "row" and index.rows != 1:
            raise ContractError(
                f"'pto.mgather' requires idx shape [1, R] to gather rows, got [{index.rows}, {index.cols}]"
            )
        if site.arch == "a2a3" and dst.cols * dst.item % 32:
            found = f"{dst.cols} {dst.dtype}"
            raise ContractError(f"'pto.mgather' requires rows of 'dst' to be 32-byte aligned, got {found}")
    elif dst.loc == "mat":
        if not isinstance(index, View):
            raise PtoError("'pto.mgather' into mat takes indices in global memory: the cube core does not see vec")
        if (site.attrs["coalesce"] == "elem") != site.has("scratch"):
            raise PtoError("'pto.mgather' into mat takes scratch in global memory for elements, and none for rows")
    else:
        raise PtoError(f"'pto.mgather' writes vec or mat, not {dst.loc}")
    if isinstance(index, (Tile, View)) and index.dtype != "i32":
        raise PtoError(f"'pto.mgather': indices are i32, not {index.dtype}")


def _moved(site: Site, rows: int, cols: int) -> float:
    return rows * cols / 2


declare(
    "mgather",
    "mem:view idx:block scratch?:view -> dst",
    pipe="MTE2",
    attrs="coalesce:coalesce gatherOob:gather_oob=undefined",
    checks=(dtypes("dst", _A2A3, _A5), _check_gather),
    bind=_gather,
    cost=_moved,
    doc="Rows of mem (coalesce row) or its elements in order (elem) at given positions.",
)

_ATOMIC: dict[str, Any] = {"none": None, "add": np.add, "max": np.maximum, "min": np.minimum}


def _scatter(site: Site) -> Run:
    by_rows, outside = site.attrs["coalesce"] == "row", site.attrs["scatterOob"]
    combine = _ATOMIC[site.attrs["scatterAtomicOp"]]

    def run(src: TileValue, idx: TileValue, mem: WindowValue) -> None:
        data = src.read()
        index = _indices(idx).ravel()
        data = data if by_rows else data.reshape(-1, 1)
        if len(index) != len(data):
            raise PtoError(f"'pto.mscatter': {len(index)} indices for {len(data)} {'rows' if by_rows else 'elements'}")
        places, inside = _places(site, index, _count(mem, by_rows), outside)
        mem.put_lines(places[inside], data[inside], by_rows, combine)

    return run


def _check_scatter(site: Site) -> None:
    if site.view("mem").dtype != site.tile("src").dtype:
        raise PtoError(f"'pto.mscatter': 'src' has {site.tile('src').dtype} and 'mem' {site.view('mem').dtype}")
    atomic = {"add": "i32 f16 f32", "max": "i32 f32", "min": "i32 f32"}.get(site.attrs["scatterAtomicOp"])
    if atomic is not None:
        dtypes("src", atomic)(site)


declare(
    "mscatter",
    "src idx -> mem:view",
    pipe="MTE3",
    attrs="coalesce:coalesce=row scatterAtomicOp:scatter_atomic_op=none scatterOob:scatter_oob=undefined "
    "scatterConflict?:scatter_conflict",
    checks=(
        vec("src", "idx"),
        no_box("src", "idx"),
        dtypes("src", _SIGNED, _SIGNED_A5),
        dtypes("idx", "i32"),
        _check_scatter,
    ),
    bind=_scatter,
    cost=_moved,
    doc="Rows of a tile (coalesce row) or its elements (elem) to given positions of global memory, last writer wins.",
)
