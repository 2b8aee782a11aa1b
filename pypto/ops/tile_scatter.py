"""Tile operators that write elements and rows where indices or a mask say."""

from __future__ import annotations

from typing import Any

from ..dtypes import DataType
from ..ir.enums import MemorySpace
from ..ir.expr import index_const
from ..ir.types import Type
from .registry import Bound, Core, Pto, WriteChannel, declare
from .rules import (
    all_same,
    check_dtype,
    dtype_names,
    same,
    shaped,
    times,
)
from .tile_elementwise import vec
from .tile_gather import mask_pattern, written

_M = MemorySpace
_D = DataType
_VECTOR: dict[str, Any] = {"core": Core.VECTOR, "result_space": _M.Vec}

# Scatters.

_SCATTER = (_D.INT8, _D.INT16, _D.INT32, _D.FP16, _D.FP32, _D.BF16)


def check_scatter(b: Bound, dst: str, src: str, index: str) -> None:
    """Raise OpError unless dtypes fit: one payload dtype, indices INT32 for 4-byte elements, INT16 for narrower."""
    target, source, at = b.type(dst), b.type(src), b.type(index)
    if target.dtype not in _SCATTER:
        raise b.fail(f"requires {dst} dtype in {{{dtype_names(_SCATTER)}}}, got {target.dtype}")
    if source.dtype is not target.dtype:
        raise b.fail(f"requires one dtype: {dst} dtype {target.dtype}, {src} dtype {source.dtype}")
    wanted = _D.INT32 if target.dtype.get_byte() == 4 else _D.INT16
    if at.dtype is not wanted:
        raise b.fail(f"requires {index} dtype {wanted} for {target.dtype} elements, got {at.dtype}")
    for axis in range(min(2, len(source.shape), len(at.shape))):
        if not same(at.shape[axis], source.shape[axis]):
            raise b.fail(
                f"requires {index}.shape[{axis}] == {src}.shape[{axis}], got {shaped(at)} and {shaped(source)}"
            )


def _scatter(b: Bound) -> Type:
    check_scatter(b, "dst", "src", "indexes")
    return written(b.type("dst"))


declare(
    "tile.scatter",
    "inout dst: tile, in src: tile, in indexes: tile",
    _scatter,
    "Write the elements of ``src`` into ``dst`` at flat ``indexes``, zeros elsewhere; the value is ``dst`` as written. "
    "`scatter_update` and `tensor.scatter` keep the other elements.",
    spaces=vec("dst", "src", "indexes"),
    reuses="dst",
    pto=Pto("pto.tscatter", ("src", "indexes"), out="dst", form="scatter"),
    **_VECTOR,
)


def check_scatter_mask(b: Bound, dst: str, src: str) -> None:
    target, source, stride = b.type(dst), b.type(src), mask_pattern(b).stride
    if target.dtype is not source.dtype:
        raise b.fail(f"requires the same dtype for {src} and {dst}, got {shaped(source)} and {shaped(target)}")
    expanded = times(source.shape[-1], index_const(stride))
    if not same(target.shape[-1], expanded) or not all_same(target.shape[:-1], source.shape[:-1]):
        raise b.fail(
            f"requires {dst} columns = {src} columns * {stride} for mask_pattern={b['mask_pattern']}, got "
            f"{shaped(target)} and {shaped(source)}"
        )


def _scatter_mask(b: Bound) -> Type:
    check_scatter_mask(b, "dst", "src")
    return written(b.type("dst"))


declare(
    "tile.scatter_mask",
    "inout dst: tile, in src: tile, attr mask_pattern: MaskPattern!",
    _scatter_mask,
    "Write the columns of ``src`` into those of ``dst`` that `MaskPattern` marks; the others become zero.",
    spaces=vec("dst", "src"),
    reuses="dst",
    pto=Pto("pto.tscatter", ("src",), out="dst", attrs={"maskPattern": "mask_pattern"}, form="scatter_mask"),
    **_VECTOR,
)


def check_scatter_update(b: Bound) -> None:
    target, source, index = b.type("input"), b.type("src"), b.type("index")
    if b["dim"] not in (-2,):
        raise b.fail(f"supports dim=-2 only, got {b['dim']}")
    if source.dtype is not target.dtype:
        raise b.fail(f"requires src dtype {target.dtype}, got {source.dtype}")
    if not index.dtype.is_int():
        raise b.fail(f"requires an integer index, got {shaped(index)}")
    if len(target.shape) not in (2, 4) or len(source.shape) != len(target.shape):
        raise b.fail(f"requires 2D or 4D input and src of one rank, got {shaped(target)} and {shaped(source)}")
    if not same(source.shape[-1], target.shape[-1]):
        raise b.fail(f"requires rows of one length, got {shaped(target)} and {shaped(source)}")


def _scatter_update(b: Bound) -> Type:
    check_scatter_update(b)
    return written(b.type("input"))


declare(
    "tile.scatter_update",
    "inout input: tile, attr dim: int!, in index: tile, in src: tile",
    _scatter_update,
    "Replace the rows of ``input`` that ``index`` names by the rows of ``src``, ``dim`` -2.",
    spaces=vec("input", "index", "src"),
    reuses="input",
    pto=Pto(form="composite"),
    **_VECTOR,
)


def _mscatter(b: Bound) -> Type:
    src, idx, out = b.type("src"), b.type("idx"), b.type("output_tensor")
    check_dtype(b, "src", (*_SCATTER, _D.FP8E4M3FN, _D.FP8E5M2, _D.HF8), "src")
    if idx.dtype is not _D.INT32:
        raise b.fail(f"requires idx dtype INT32, got {idx.dtype}")
    if len(idx.shape) != len(src.shape):
        raise b.fail(f"requires idx rank {len(src.shape)}, got {shaped(idx)}")
    if not all_same(idx.shape, src.shape):
        raise b.fail(f"requires idx shape to match src shape, got {shaped(idx)} and {shaped(src)}")
    if len(out.shape) < 1:
        raise b.fail("requires output_tensor to have at least 1 dimension")
    if out.dtype is not src.dtype:
        raise b.fail(f"requires output_tensor dtype {src.dtype}, got {out.dtype}")
    return out


declare(
    "tile.mscatter",
    "in src: tile, in idx: tile, out output_tensor: tensor",
    _mscatter,
    "Write the elements of ``src`` into ``output_tensor`` at flat indices ``idx`` (INT32).",
    core=Core.VECTOR,
    row_major=True,
    spaces=vec("src", "idx"),
    reuses="output_tensor",
    channel=WriteChannel.Dma,
    pto=Pto("pto.mscatter", ("src", "idx"), out="output_tensor", form="mscatter"),
)


