"""Packing arrays into the orders of ``pl.NZ`` tensors and of MX scales, and back.

A ``pl.NZ`` tensor ``[R, C]`` or ``[B, R, C]`` lies in memory as an array ``[B, C/c0, R/16, 16, c0]`` in row-major
order (B is 1 for ``[R, C]``), where c0 is the number of elements in 32 bytes: 32 for one-byte elements, 16 for f16 and
bf16, 8 for f32 and int32, 4 for int64. So 16 rows of 32 bytes make a fractal of 512 bytes, the fractals of a column
block follow each other down the rows, and the column blocks follow each other. That is the array a compiled program
takes for such a parameter.

The scales of a block-scaled (MX) product lie in boxes of 16 by 2: those of the left operand, ``pl.MX_A_ZZ`` ``[M, G]``,
as ``[1, M/16, G/2, 16, 2]``, those of the right one, ``pl.MX_B_NN`` ``[G, N]``, as ``[1, N/16, G/2, 16, 2]``.

The quantization of a column on its way out of the accumulator (``pl.tile.store_fp``) is packed in 64 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .dtypes import from_numpy
from .ir.tensor_view_semantics import FRACTAL_ROWS, SCALE_PAIR, nz_c0

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, DTypeLike


def c0_of(dtype: DTypeLike) -> int:
    """Elements of a numpy or ml_dtypes ``dtype`` in a C0 line of 32 bytes.

    Raises TypeError for elements PyPTO does not have, ValueError for those narrower than a byte (bool is one bit).
    """
    kind = from_numpy(dtype)
    if kind.bits < 8:
        raise ValueError(f"{kind} has no NZ layout: its elements are narrower than a byte")
    return nz_c0(kind)


def to_nz(array: ArrayLike) -> np.ndarray:
    """``array``, ``[R, C]`` or ``[B, R, C]``, as a new contiguous array ``[B, C/c0, R/16, 16, c0]``.

    Element ``[b, r, c]`` goes to ``[b, c // c0, r // 16, r % 16, c % c0]``. Raises ValueError when R is not a multiple
    of 16 or C not one of c0, for another rank, and for an element type of less than a byte.
    """
    import numpy as np

    source = np.asarray(array)
    if source.ndim not in (2, 3):
        raise ValueError(f"an NZ tensor has rank 2 or 3, got rank {source.ndim} {list(source.shape)}")
    c0 = c0_of(source.dtype)
    *batch, rows, columns = source.shape
    if rows % FRACTAL_ROWS:
        raise ValueError(f"{rows} rows are not a multiple of {FRACTAL_ROWS}, got {list(source.shape)}: pad the rows")
    if columns % c0:
        raise ValueError(
            f"{columns} columns are not a multiple of c0 = {c0} {source.dtype.name} elements, got "
            f"{list(source.shape)}: pad the columns"
        )
    count = batch[0] if batch else 1
    blocks = source.reshape(count, rows // FRACTAL_ROWS, FRACTAL_ROWS, columns // c0, c0)
    return np.array(blocks.transpose(0, 3, 1, 2, 4), order="C")


def from_nz(array: ArrayLike, shape: Sequence[int] | None = None) -> np.ndarray:
    """The array that `to_nz` packed, as a new contiguous one.

    ``array`` is ``[B, C/c0, R/16, 16, c0]``. The result is ``shape``, by default ``[R, C]`` when B is 1, else
    ``[B, R, C]``. With ``shape``, ``array`` may also be the same elements in any shape. Raises ValueError when
    the shapes do not fit.
    """
    import numpy as np

    packed = np.asarray(array)
    c0 = c0_of(packed.dtype)
    if shape is not None:
        packed = _as_blocks(packed, tuple(shape), c0)
    if packed.ndim != 5 or packed.shape[3:] != (FRACTAL_ROWS, c0):
        raise ValueError(
            f"an NZ array of {packed.dtype.name} has shape [B, C/{c0}, R/{FRACTAL_ROWS}, {FRACTAL_ROWS}, {c0}], got "
            f"{list(packed.shape)}"
        )
    count, columns, rows = packed.shape[:3]
    if shape is None:
        shape = (*((count,) if count != 1 else ()), rows * FRACTAL_ROWS, columns * c0)
    return np.array(packed.transpose(0, 2, 3, 1, 4), order="C").reshape(shape)


def _as_blocks(packed: np.ndarray, shape: tuple[int, ...], c0: int) -> np.ndarray:
    """``packed`` in the blocked shape of an NZ tensor ``shape``."""
    if len(shape) not in (2, 3) or shape[-2] % FRACTAL_ROWS or shape[-1] % c0:
        raise ValueError(
            f"no NZ tensor of {packed.dtype.name} has shape {list(shape)}: [.., {FRACTAL_ROWS} * n, {c0} * m]"
        )
    batch = shape[0] if len(shape) == 3 else 1
    blocked = (batch, shape[-1] // c0, shape[-2] // FRACTAL_ROWS, FRACTAL_ROWS, c0)
    size = batch * shape[-1] * shape[-2]
    if packed.size != size:
        raise ValueError(f"{list(packed.shape)} has {packed.size} elements, not the {size} of {list(shape)}")
    if packed.ndim == 5 and packed.shape != blocked:
        raise ValueError(f"{list(packed.shape)} is not the NZ form {list(blocked)} of {list(shape)}")
    return packed.reshape(blocked)


def to_mx_a(scales: ArrayLike) -> np.ndarray:
    """``scales`` ``[M, G]`` of a left operand as a new contiguous array ``[1, M/16, G/2, 16, 2]``.

    Element ``[m, g]`` goes to ``[0, m // 16, g // 2, m % 16, g % 2]``. Raises ValueError when M is not a multiple of 16
    or G not one of 2, and for another rank.
    """
    import numpy as np

    source = np.asarray(scales)
    if source.ndim != 2 or source.shape[0] % FRACTAL_ROWS or source.shape[1] % SCALE_PAIR:
        raise ValueError(
            f"scales lie in boxes of {FRACTAL_ROWS} by {SCALE_PAIR}, got {list(source.shape)}: pad them to whole boxes"
        )
    lines, groups = source.shape[0] // FRACTAL_ROWS, source.shape[1] // SCALE_PAIR
    boxes = source.reshape(1, lines, FRACTAL_ROWS, groups, SCALE_PAIR)
    return np.array(boxes.transpose(0, 1, 3, 2, 4), order="C")


def to_mx_b(scales: ArrayLike) -> np.ndarray:
    """``scales`` ``[G, N]`` of a right operand as a new contiguous array ``[1, N/16, G/2, 16, 2]``.

    Element ``[g, n]`` goes to ``[0, n // 16, g // 2, n % 16, g % 2]``. Raises as `to_mx_a`, of N and G.
    """
    import numpy as np

    return to_mx_a(np.asarray(scales).T)


def from_mx_a(boxes: ArrayLike) -> np.ndarray:
    """The scales ``[M, G]`` that `to_mx_a` packed, as a new contiguous array. Raises ValueError for other shapes."""
    import numpy as np

    packed = np.asarray(boxes)
    if packed.ndim != 5 or packed.shape[0] != 1 or packed.shape[3:] != (FRACTAL_ROWS, SCALE_PAIR):
        raise ValueError(
            f"an array of scales in boxes has shape [1, .., .., {FRACTAL_ROWS}, {SCALE_PAIR}], got {list(packed.shape)}"
        )
    lines, groups = packed.shape[1:3]
    shape = (lines * FRACTAL_ROWS, groups * SCALE_PAIR)
    return np.array(packed.transpose(0, 1, 3, 2, 4), order="C").reshape(shape)


def from_mx_b(boxes: ArrayLike) -> np.ndarray:
    """The scales ``[G, N]`` that `to_mx_b` packed, as a new contiguous array. Raises as `from_mx_a`."""
    import numpy as np

    return np.ascontiguousarray(from_mx_a(boxes).T)


def fix_pipe_words(scale: ArrayLike, offset: ArrayLike = 0, *, signed: bool = True) -> np.ndarray:
    """The words ``[1, N]``, uint64, that tell the fix pipe a factor and an offset for each of N columns.

    A column's elements are multiplied by its ``scale``, of which the fix pipe takes the first ten bits after the point;
    integer results are rounded, get ``offset``, -256 to 255, and are clamped to int8, or to uint8 when not ``signed``.
    Raises ValueError for a scale that loses bits or an offset out of range.
    """
    import numpy as np

    factors = np.atleast_1d(np.asarray(scale, np.float32)).reshape(1, -1)
    raw = factors.view(np.uint32)
    if (raw & 0x1FFF).any():
        lost = factors[(raw & 0x1FFF) != 0][0]
        kept = (raw & 0xFFFFE000).view(np.float32)[(raw & 0x1FFF) != 0][0]
        raise ValueError(f"the fix pipe takes scales of 11 significant bits, of {lost} it would take {kept}")
    offsets = np.broadcast_to(np.asarray(offset, np.int64), factors.shape)
    if (offsets < -256).any() or (offsets > 255).any():
        raise ValueError(f"an offset of the fix pipe is within -256 to 255, got {offsets.min()} to {offsets.max()}")
    words = raw.astype(np.uint64) | (offsets & 0x1FF).astype(np.uint64) << np.uint64(37)
    return words | np.uint64(signed << 46)
