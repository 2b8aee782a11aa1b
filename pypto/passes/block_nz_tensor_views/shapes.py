"""The blocked shape of an NZ tensor, and what has none."""

from __future__ import annotations

from ...errors import user_error
from ...ir.expr import ConstInt, index_const
from ...ir.node import NodeList
from ...ir.span import Span
from ...ir.tensor_view_semantics import FRACTAL_ROWS, nz_c0
from ...ir.types import DistributedTensorType, TensorType
from ...ops.rules import dims_text

_ND = "annotate the tensor pl.ND and keep its bytes in row-major order"


def block_shape(tensor: TensorType, name: str, span: Span) -> TensorType:
    """``[R, C]`` or ``[B, R, C]`` as ``[B, C/c0, R/16, 16, c0]``, everything else as it is.

    Raises KernelValueError at ``span``, calling the tensor ``name``, when the tensor has no blocked form.
    """
    fault = _fault(tensor)
    if fault is not None:
        raise user_error(ValueError, f"NZ tensor {name}: {fault[0]}", span, fault[1])
    *batch, rows, columns = tensor.shape
    c0 = nz_c0(tensor.dtype)
    blocks = [columns.value // c0, rows.value // FRACTAL_ROWS, FRACTAL_ROWS, c0]
    shape = [batch[0] if batch else index_const(1), *(index_const(b) for b in blocks)]
    return tensor.replace(shape=NodeList(shape))


def _fault(tensor: TensorType) -> tuple[str, str] | None:
    """Why ``tensor`` has no blocked form, and what to write instead."""
    shape, view, dtype = tensor.shape, tensor.tensor_view, tensor.dtype
    shown = dims_text(shape)
    if isinstance(tensor, DistributedTensorType):
        return "a distributed tensor cannot be in NZ: a remote load has no blocks", _ND
    if dtype.bits < 8:
        return f"elements of {dtype}, narrower than a byte, are not supported in NZ", f"unpack to pl.INT8, or {_ND}"
    if len(shape) < 2:
        return f"rank {len(shape)} has no fractals: the last two dimensions are their plane, got {shown}", _ND
    if len(shape) > 3:
        return (
            f"rank {len(shape)} has more than one leading dimension, and NZ has one batch: got {shown}",
            f"reshape to [B, R, C] before the annotation, or {_ND}",
        )
    rows, columns = shape[-2:]
    if not (isinstance(rows, ConstInt) and isinstance(columns, ConstInt)):
        return (
            f"the last two dimensions must be constant, got {shown}: a dynamic one is not provably whole fractals",
            "make them constant; only the batch may be dynamic",
        )
    c0 = nz_c0(dtype)
    if rows.value % FRACTAL_ROWS:
        return f"{rows.value} rows are not whole fractals of {FRACTAL_ROWS}, got {shown}", f"pad the rows, or {_ND}"
    if columns.value % c0:
        line = f"{columns.value} columns are not whole C0 lines of {c0} {dtype} elements (32 bytes), got {shown}"
        return line, f"pad the columns, or {_ND}"
    if view is not None and view.stride:
        return "explicit strides: the strides of NZ follow from its blocks", "leave stride out of the pl.TensorView"
    if view is not None and view.valid_shape:
        return f"valid in {dims_text(view.valid_shape)} only: NZ is whole", "leave valid_shape out of the pl.TensorView"
    return None
