"""Accumulators written out through the fix pipe with a quantization of their own for each column."""

from __future__ import annotations

from typing import Any

from ..dtypes import DataType
from ..ir.enums import MemorySpace, PadValue
from ..ir.expr import Expr, index_const
from ..ir.types import Type, implicit_layout
from .regions import read_region, write_region
from .registry import Bound, Core, Pto, WriteChannel, declare
from .rules import check_rank, dims_text, exceeds, shaped, static_shape, tile_type, valid_of, value
from .tile_memory import INSERT_NOTE, narrowed, stored_tensor

_M = MemorySpace
_D = DataType
_WORDS = (_D.UINT64, _D.INT64)
_QUANTIZED = (_D.INT8, _D.UINT8, _D.FP16, _D.BF16, _D.FP8E4M3FN)
_PACK = "pypto.layouts.fix_pipe_words packs them"
_SCALE_DOC = (
    "``scale`` is ``[1, N]`` in Scaling, one 64-bit word a column of the accumulator, which says factor, offset and "
    "sign: `pypto.layouts.fix_pipe_words` packs them."
)


def _check_source(b: Bound, name: str) -> None:
    """Raise OpError unless argument ``name`` is an accumulator and ``scale`` has a word for each of its columns."""
    source, scale = b.type(name), b.type("scale")
    check_rank(b, name, 2)
    if source.memory_space not in (None, _M.Acc):
        raise b.fail(f"takes {name} in Acc, got {source.memory_space.name}", "pl.quant quantizes a tile in Vec")
    if source.dtype not in (_D.FP32, _D.INT32):
        raise b.fail(f"requires {name} FP32 or INT32, got {shaped(source)}")
    if scale.dtype not in _WORDS:
        raise b.fail(f"requires scale UINT64 words, got {shaped(scale)}", _PACK)
    if len(scale.shape) != 2 or value(scale.shape[0]) != 1 or exceeds(source.shape[1], scale.shape[1]):
        raise b.fail(f"requires scale [1, N], a word for each column of {shaped(source)}, got {shaped(scale)}")
    columns, words = valid_of(b, name)[1], valid_of(b, "scale")[1]
    if exceeds(columns, words):
        raise b.fail(f"requires a valid word for each column of {shaped(source)}, got {shaped(scale)}")


def _check_quantized(b: Bound, dtype: DataType) -> None:
    if dtype not in _QUANTIZED:
        raise b.fail(f"gives {', '.join(d.name for d in _QUANTIZED)}, not {dtype.name}")


def _in_mat(shape: tuple[Expr, ...], dtype: DataType, region: Any) -> Type:
    return tile_type(shape, dtype, region, _M.Mat, implicit_layout(shape, _M.Mat), PadValue.null)


_FACTS: dict[str, Any] = {"core": Core.MOVE}
_SPACES = {"src": (_M.Acc,), "scale": (_M.Scaling,)}


def _move(b: Bound) -> Type:
    _check_source(b, "src")
    _check_quantized(b, b["dtype"])
    return _in_mat(b.type("src").shape, b["dtype"], valid_of(b, "src"))


declare(
    "tile.move_fp",
    "in src: tile, in scale: tile, attr dtype: DataType!",
    _move,
    f"Quantize an accumulator to ``dtype`` on its way to Mat.\n\n{_SCALE_DOC}",
    spaces=_SPACES,
    result_space=_M.Mat,
    pto=Pto("pto.tmov", ("src", "scale"), form="quantize"),
    **_FACTS,
)


def _extract(b: Bound) -> Type:
    _check_source(b, "src")
    _check_quantized(b, b["dtype"])
    source, shape = b.type("src"), b.dims("shape")
    static_shape(b, "shape")
    if len(shape) != 2:
        raise b.fail(f"requires a 2D shape, got {dims_text(shape)}")
    offsets = (b["index_row"], b["index_col"])
    region = read_region(b, source.shape, valid_of(b, "src"), offsets, shape, shape)
    return _in_mat(tuple(shape), b["dtype"], region)


declare(
    "tile.extract_fp",
    "in src: tile, in scale: tile, in index_row: index, in index_col: index, in shape: dims, attr dtype: DataType!",
    _extract,
    "Quantize the ``shape`` window of an accumulator at (``index_row``, ``index_col``) to ``dtype`` on its way to "
    f"Mat.\n\n{_SCALE_DOC}",
    spaces=_SPACES,
    result_space=_M.Mat,
    pto=Pto("pto.textract", ("src", "index_row", "index_col", "scale"), form="quantize"),
    **_FACTS,
)


def _assemble(b: Bound) -> Type:
    _check_source(b, "source")
    target, source, offsets = b.type("target"), b.type("source"), b.dims("offset")
    check_rank(b, "target", 2)
    _check_quantized(b, target.dtype)
    if len(offsets) != 2:
        raise b.fail(f"requires an offset [row, column], got {dims_text(offsets)}")
    moved, held = valid_of(b, "source"), valid_of(b, "target")
    return narrowed(target, write_region(b, target.shape, held, offsets, moved, source.shape, INSERT_NOTE))


declare(
    "tile.assemble_fp",
    "inout target: tile, in source: tile, in scale: tile, in offset: dims",
    _assemble,
    "Quantize an accumulator to the dtype of ``target``, a tile in Mat, and write it there at ``offset``; the value is "
    f"the target as written.\n\n{_SCALE_DOC}",
    spaces={"target": (_M.Mat,), "source": (_M.Acc,), "scale": (_M.Scaling,)},
    result_space="target",
    reuses="target",
    pto=Pto("pto.tinsert", ("source", "offset", "scale"), out="target", form="quantize"),
    core=Core.CUBE,
)


def _store(b: Bound) -> Type:
    _check_source(b, "tile")
    out, offsets = b.type("output_tensor"), b.dims("offsets")
    _check_quantized(b, out.dtype)
    if len(offsets) != len(out.shape) or len(out.shape) < 2:
        raise b.fail(f"requires one offset for each dimension of the tensor {shaped(out)}, got {dims_text(offsets)}")
    ones = [index_const(1)] * (len(out.shape) - 2)
    return stored_tensor(b, out, [*ones, *valid_of(b, "tile")])


declare(
    "tile.store_fp",
    "in tile: tile, in scale: tile, in offsets: dims, out output_tensor: tensor",
    _store,
    "Quantize an accumulator to the dtype of ``output_tensor`` and write it there at ``offsets``; the value is the "
    f"tensor as written.\n\n{_SCALE_DOC}",
    spaces={"tile": (_M.Acc,), "scale": (_M.Scaling,)},
    reuses="output_tensor",
    channel=WriteChannel.Dma,
    pure=False,
    core=Core.CUBE,
    pto=Pto("pto.tstore", out="output_tensor", form="store_quantized"),
)
