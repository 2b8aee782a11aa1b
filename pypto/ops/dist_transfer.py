"""Bulk transfers between global memories of two ranks: put writes a peer's slice, get reads it.

A transfer of any size moves through a staging tile in Vec, chunk by chunk. The tensor operators state the chunk, the
tile operators the staging tile itself, and a second one where chunks overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..errors import InternalError
from ..ir.enums import AtomicType, MemorySpace
from ..ir.expr import Expr
from ..ir.types import TileType, Type
from .dist_rules import (
    ATOMIC_DTYPES,
    check_coordinates,
    check_not_negative,
    check_peer,
    check_same_elements,
    may_equal,
)
from .registry import Bound, Core, OpError, OpTypeError, Pto, WriteChannel, declare, no_result
from .rules import all_same, dim_text, dims_text, dtype_names, exceeds, plus, product, shaped, value
from .tile_memory import atomic_effect

_VEC = MemorySpace.Vec
_PARTS: Final = ("dst_offsets", "src_offsets", "shape")


def check_chunk(rows: Any, cols: Any, what: str) -> None:
    """Raise TypeError or ValueError unless a chunk's extents are integers of at least 0; 0 is the whole extent."""
    for name, extent in (("chunk_rows", rows), ("chunk_cols", cols)):
        if type(extent) is not int:
            raise OpTypeError(f"{what}: {name} must be a static integer, got {extent!r}")
        if extent < 0:
            raise OpError(f"{what}: {name} must be non-negative, got {extent}")


def check_pipeline(pipeline: bool, rows: int, cols: int, what: str) -> None:
    """Raise ValueError for overlapping chunks whose extents are not both stated."""
    if pipeline and not (rows > 0 and cols > 0):
        raise OpError(
            f"{what}: pipeline=True requires both chunk_rows>0 and chunk_cols>0, got {rows} and {cols}"
            "\n  hint: one chunk has nothing to overlap with"
        )


def _transfer_shape(b: Bound) -> Sequence[Expr]:
    """The extents moved, once both sides fit."""
    dst, src = b.type("dst"), b.type("src")
    check_peer(b)
    check_same_elements(b, "dst", "src")
    if len(dst.shape) != len(src.shape) or not dst.shape:
        raise b.fail(f"dst and src must have the same rank, at least 1, got {shaped(dst)} and {shaped(src)}")
    for name in ("dst", "src"):
        _check_positive(b, name, b.type(name).shape)
    given = [name for name in _PARTS if b[name] is not None]
    if given and len(given) < len(_PARTS):
        raise b.fail(f"takes {', '.join(_PARTS)} together, got only {', '.join(given)}")
    if given:
        _check_subregion(b)
        return b.dims("shape")
    if not all_same(dst.shape, src.shape):
        static = not all(map(may_equal, dst.shape, src.shape))
        raise b.fail(
            f"dst and src must have the same {'static ' if static else ''}shape, got {shaped(dst)} and {shaped(src)}",
            "move part of them with dst_offsets, src_offsets and shape",
        )
    return dst.shape


def _check_positive(b: Bound, name: str, dims: Sequence[Expr]) -> None:
    for i, dim in enumerate(dims):
        known = value(dim)
        if known is not None and known <= 0:
            raise b.fail(f"{name} dimension {i} must be positive, got {dims_text(dims)}")


def _check_subregion(b: Bound) -> None:
    for name in _PARTS:
        check_coordinates(b, name, "dst")
    _check_positive(b, "shape", b.dims("shape"))
    for side in ("dst", "src"):
        check_not_negative(b, f"{side}_offsets")
        for i, (size, offset, extent) in enumerate(zip(b.type(side).shape, b.dims(f"{side}_offsets"), b.dims("shape"))):
            known = value(offset) is not None and value(extent) is not None
            if exceeds(extent, size) or (known and exceeds(plus(offset, extent), size)):
                raise b.fail(
                    f"{side} subregion dimension {i} exceeds {side} shape: offset {dim_text(offset)} + "
                    f"{dim_text(extent)} of {dim_text(size)}"
                )


def _check_chunks(b: Bound, shape: Sequence[Expr]) -> None:
    """The staging tile's extents are known: those of the transfer, or a chunk's."""
    rows, cols = b["chunk_rows"], b["chunk_cols"]
    check_chunk(rows, cols, b.decl.name)
    check_pipeline(b["pipeline"], rows, cols, b.decl.name)
    if value(shape[-1]) is None and not cols:
        raise b.fail(f"dynamic innermost transfer dim needs a static chunk_cols, got {dims_text(shape)}")
    if any(value(d) is None for d in shape[:-1]) and not rows:
        raise b.fail(f"dynamic leading transfer dim needs a static chunk_rows, got {dims_text(shape)}")


def _check_atomic(b: Bound) -> None:
    dtype = b.type("dst").dtype
    if b["atomic"] is AtomicType.Add and dtype not in ATOMIC_DTYPES:
        raise b.fail(f"with atomic=Add requires one of the hardware atomic-add dtypes {dtype_names(ATOMIC_DTYPES)}, "
                     f"got {dtype}")  # fmt: skip


def _check_stages(b: Bound, shape: Sequence[Expr]) -> None:
    for name in ("stage", "stage2"):
        if b[name] is None:
            continue
        t: TileType = b.type(name)
        if len(t.shape) != 2 or t.memory_space not in (None, _VEC):
            raise b.fail(f"{name} must be a 2D VEC staging tile, got {t}")
        if t.dtype is not b.type("dst").dtype:
            raise b.fail(f"{name} dtype must match dst dtype, got {t.dtype} and {b.type('dst').dtype}")
        if exceeds(t.shape[0], product(shape[:-1])) or exceeds(t.shape[1], shape[-1]):
            raise InternalError(f"{b.decl.name}: {name} {shaped(t)} must fit within the transfer {dims_text(shape)}")
    if b["stage2"] is not None and not all_same(b.type("stage").shape, b.type("stage2").shape):
        raise b.fail(
            f"ping/pong staging tiles must have identical shape, got {shaped(b.type('stage'))} and "
            f"{shaped(b.type('stage2'))}"
        )


def _tensor_transfer(b: Bound) -> Type:
    shape = _transfer_shape(b)
    _check_chunks(b, shape)
    if "atomic" in b.values:
        _check_atomic(b)
    return no_result(b)


def _tile_transfer(b: Bound) -> Type:
    shape = _transfer_shape(b)
    _check_stages(b, shape)
    if "atomic" in b.values:
        _check_atomic(b)
    return no_result(b)


_REGION = "in dst_offsets: dims?, in src_offsets: dims?, in shape: dims?"
_CHUNK = "key chunk_rows: int = 0, key chunk_cols: int = 0, key pipeline: bool = False"
_STAGES = "out stage: tile, out stage2: tile?"
_ATOMIC = "key atomic: RemoteAtomic+ = AtomicType.None_"
_PUT, _GET = "out dst: dist, in peer: scalar, in src: tensor", "out dst: tensor, in peer: scalar, in src: dist"
_PUT_DOC = (
    "Write local ``src`` into rank ``peer``'s slice of ``dst``; ``atomic=pld.AtomicType.Add`` adds instead.\n\n"
    "``dst_offsets``, ``src_offsets`` and ``shape``, given together, move a part. "
)
_GET_DOC = (
    "Read rank ``peer``'s slice of ``src`` into local ``dst``.\n\n"
    "``dst_offsets``, ``src_offsets`` and ``shape``, given together, move a part. "
)
_CHUNK_DOC = (
    "``chunk_rows`` and ``chunk_cols`` bound the staging tile (0: the whole extent), ``pipeline`` overlaps chunks in "
    "two of them."
)
_STAGE_DOC = "The transfer moves through ``stage``, or through ``stage`` and ``stage2`` in turn."

for _name, _args, _extra, _doc in (("put", _PUT, f", {_ATOMIC}", _PUT_DOC), ("get", _GET, "", _GET_DOC)):
    _facts: dict[str, Any] = {"core": Core.VECTOR, "pure": False, "channel": WriteChannel.Dma}
    if _name == "put":
        _facts["effects"] = {"dst": atomic_effect}
    declare(
        f"pld.tensor.{_name}",
        f"{_args}, {_REGION}{_extra}, {_CHUNK}",
        _tensor_transfer,
        _doc + _CHUNK_DOC,
        **_facts,
    )
    declare(
        f"pld.tile.{_name}",
        f"{_args}, {_STAGES}, {_REGION}{_extra}",
        _tile_transfer,
        _doc + _STAGE_DOC,
        spaces={"stage": (_VEC,), "stage2": (_VEC,)},
        elided="stage2",
        pto=Pto(f"pto.comm.t{_name}", form="transfer"),
        **_facts,
    )
