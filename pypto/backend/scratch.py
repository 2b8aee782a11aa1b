"""Bytes that the 910B's library works in for instructions whose scratch PTO text must name."""

from __future__ import annotations

from ..dtypes import DataType

_BLOCK = 32
_REPEAT = 256
_MOST_REPEATS = 255
_WORD = 4
_PER_REPEAT = _REPEAT // _WORD


def sequence_bytes(dtype: DataType) -> int:
    """Scratch of a sequence of integers."""
    return 768 if dtype.get_byte() == 4 else 1792


def narrowing_bytes(source: DataType, target: DataType, rows: int, cols: int | None, stride: int) -> int:
    """Scratch of a conversion that keeps the low bits of what does not fit, on rows ``stride`` elements apart.

    It goes through 32-bit integers. ``cols`` is None where only the run tells. 0: the conversion takes none.
    """
    if source is DataType.FP32 and target is DataType.INT16:
        return _whole_rows(rows, stride if cols is None else cols, cols is None, stride)
    if source is not DataType.FP16 or target not in (DataType.INT16, DataType.INT8, DataType.UINT8):
        return 0
    part = _PER_REPEAT if cols is None else max(1, min(cols, _PER_REPEAT))
    words = _BLOCK * _ceil(part * _WORD, _BLOCK)
    return words if target is DataType.INT16 else max(words, 128 + _BLOCK * _ceil(part * 2, _BLOCK))


def _whole_rows(rows: int, cols: int, ragged: bool, stride: int) -> int:
    """Full repeats of one row at a time, then what is left of many rows."""
    head = _REPEAT * min(cols // _PER_REPEAT, _MOST_REPEATS)
    left = min(cols, _PER_REPEAT - 1) if ragged else cols % _PER_REPEAT
    lines = max(0, min(rows, _MOST_REPEATS) - 1)
    tail = _BLOCK * (lines * stride * _WORD // _BLOCK + _ceil(left * _WORD, _BLOCK)) if left else 0
    return max(head, tail, _BLOCK)


def _ceil(value: int, unit: int) -> int:
    return -(-value // unit)
