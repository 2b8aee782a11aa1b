"""Quantization on the way out of the accumulator: the fix pipe takes one 64-bit word for each column of the source.

Bits 13 to 31 of a word are those of the factor, an f32 without its last thirteen, 37 to 45 a signed offset, 46 says
whether 8-bit results are signed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..checks import dtypes
from ..elements import data_type
from ..errors import PtoError
from ..numerics import convert, is_floating
from ..runtime import Array, TileValue
from ..spec import Site

_FACTOR = 0xFFFFE000
_LINE = 128
"""The fix pipe's memory is filled in lines of so many bytes."""


def check_words(site: Site, name: str) -> None:
    """Operand ``name`` is a row of words in the fix pipe's memory, in whole lines."""
    dtypes(name, "ui64 i64")(site)
    tile = site.tile(name)
    if tile.loc != "scaling" or tile.boxed or tile.rows != 1 or tile.cols * tile.item % _LINE:
        raise PtoError(
            f"'pto.{site.spec.mnemonic}': '{name}' must be a row of 64-bit words in scaling, a multiple of "
            f"{_LINE // 8} of them, got {tile.rows}x{tile.cols} in {tile.loc}"
        )


def check_quantized(site: Site, dtype: str) -> None:
    """``fp`` has a word a column, and the target quantizes the accumulator to elements ``dtype``."""
    src, fp = site.tile("src"), site.tile("fp")
    if src.loc != "acc":
        raise PtoError(f"'pto.{site.spec.mnemonic}': fp needs a source in acc, got {src.loc}")
    check_words(site, "fp")
    if fp.cols < src.cols:
        raise PtoError(f"'pto.{site.spec.mnemonic}': {fp.cols} words in 'fp' for the {src.cols} columns of 'src'")
    drains = site.target.quantized_drains
    source, target = data_type(src.dtype), data_type(dtype)
    if source is None or target not in drains.get(source, ()):
        pairs = " or ".join(f"{s.mlir} to {', '.join(d.mlir for d in to)}" for s, to in drains.items())
        raise PtoError(
            f"'pto.{site.spec.mnemonic}': {site.arch} quantizes accumulators of {pairs}, not {src.dtype} to {dtype}"
        )


def quantizer(site: Site, dtype: np.dtype) -> Callable[[Array, TileValue | None, int], Array]:
    """Quantizes elements of the source that start at a column of it, with the words of that and the next columns."""
    relu = site.attrs["reluPreMode"] == "normal_relu"

    def run(data: Array, fp: TileValue | None, column: int) -> Array:
        assert fp is not None
        columns = data.shape[1]
        if column + columns > fp.valid[1]:
            raise PtoError(
                f"'pto.{site.spec.mnemonic}': 'fp' has {fp.valid[1]} valid words for columns {column} to "
                f"{column + columns - 1}"
            )
        words = fp.read_at(0, column, 1, columns).astype(np.uint64)
        made = _floats(data, words, dtype) if is_floating(dtype) else _bytes(data, words).view(dtype)
        return np.maximum(made, made.dtype.type(0)) if relu else made

    return run


def _scaled(data: Array, words: Array) -> Array:
    with np.errstate(all="ignore"):
        return data.astype(np.float32) * (words & np.uint64(_FACTOR)).astype(np.uint32).view(np.float32)


def _bytes(data: Array, words: Array) -> Array:
    """Rounded to nine bits, ties to even, plus the offset, clamped to eight bits, signed or not; NaN counts as 0."""
    scaled = _scaled(data, words)
    whole = np.rint(np.clip(np.where(np.isnan(scaled), np.float32(0), scaled), -256, 255)).astype(np.int32)
    offset = ((words >> np.uint64(37)) & np.uint64(0x1FF)).astype(np.int32)
    signed = (words >> np.uint64(46)) & np.uint64(1) == 1
    moved = whole + np.where(offset > 255, offset - 512, offset)
    return np.clip(moved, np.where(signed, -128, 0), np.where(signed, 127, 255)).astype(np.uint8)


def _floats(data: Array, words: Array, dtype: np.dtype) -> Array:
    """Rounded to nearest even; what is out of range, infinities included, gives the largest value. NaN stays."""
    import ml_dtypes

    most = np.float32(ml_dtypes.finfo(dtype).max)
    return convert(np.clip(_scaled(data, words), -most, most), dtype)
