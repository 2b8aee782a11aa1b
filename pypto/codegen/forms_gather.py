"""Forms of gathers, scatters and merges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..dtypes import DataType
from ..ir.enums import TensorLayout, TileLayout
from ..ir.expr import Call, ConstInt, Expr, Var, index_const
from ..ir.types import TensorType, TensorView, TileType
from ..ops.registry import Bound, OpDecl
from ..ops.tile_gather import MaskPattern
from .context import Op, Value
from .instructions import attributes, destination, dps, instruction, operand
from .tensors import strides_of, tensor_view_op, window
from .types import tile_text

if TYPE_CHECKING:
    from .kernel import KernelBuilder


def masked(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Columns by a repeating pattern."""
    assert decl.pto is not None
    out = destination(kernel, decl, bound, result)
    source, pattern = kernel.value(bound[decl.pto.operands[0]]), MaskPattern(bound["mask_pattern"]).name
    attrs = [("maskPattern", f"#pto.mask_pattern<{pattern}>"), ("axis", '"row"')]
    kernel.add(Op("dps_masked", mnemonic=decl.pto.mnemonic, ins=[source], outs=[out], attrs=attrs))
    return out


def whole(kernel: KernelBuilder, tensor: Var, name: str = "") -> Value:
    """The window over all of a tensor."""
    assert isinstance(tensor.type, TensorType)
    shape = tensor.type.shape
    return window(kernel, tensor, [index_const(0)] * len(shape), shape, name or tensor.name_hint)


def memory_operand(kernel: KernelBuilder, value: Expr) -> Value:
    """A tile, or the window over all of a tensor."""
    is_tensor = isinstance(value, Var) and isinstance(value.type, TensorType)
    return whole(kernel, value) if is_tensor else kernel.value(value)


def mgather(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Rows or elements of global memory at given positions, into a tile."""
    if result is None:
        return None
    ins = [memory_operand(kernel, bound[n]) for n in ("mem", "idx", "scratch") if bound[n] is not None]
    out = kernel.handle(result)
    attrs = [(key, text) for key, text in attributes(decl, bound) if "undefined" not in text]
    instruction(kernel, "pto.mgather", ins, out, attrs)
    return out


def mscatter(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Elements of a tile to given positions of a tensor; the value is the tensor."""
    tensor = bound["output_tensor"]
    ins = [kernel.value(bound[n]) for n in ("src", "idx")]
    instruction(kernel, "pto.mscatter", ins, whole(kernel, tensor), [("coalesce", "#pto<coalesce elem>")])
    if result is not None:
        kernel.pointers[result] = kernel.pointers[tensor]
    return kernel.handle(tensor)


def merge(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Sorted runs of one tile merged by four, ``block_len`` elements each."""
    if result is None:
        return None
    length = operand(kernel, bound["block_len"], DataType.INT32)
    out = kernel.handle(result)
    instruction(kernel, "pto.tmrgsort", [kernel.value(bound["src"]), length], out)
    return out


def merge_lists(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Two to four sorted tiles merged. How much of each was used is written to a vector nobody reads."""
    if result is None:
        return None
    names = [n for n in ("src0", "src1", "src2", "src3") if bound[n] is not None]
    ins = [kernel.value(bound[n]) for n in names]
    if bound["tmp"] is not None:
        ins.append(kernel.value(bound["tmp"]))
    out = kernel.handle(result)
    executed = kernel.fresh("executed", "vector<4xi16>")
    kernel.add(Op("zero_vector", result=executed))
    attrs = [("exhausted", "true" if bound["exhausted"] else "false")]
    scratch = bound["tmp"] is not None
    kernel.add(Op("merge_lists", mnemonic="pto.tmrgsort", ins=ins, outs=[out, executed], attrs=attrs, scratch=scratch))
    return out


def mrgsort(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    return (merge if "block_len" in decl.by_name else merge_lists)(kernel, decl, bound, call, result)


def gather_row(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A window of a tensor loaded into a window of the accumulator tile."""
    out = destination(kernel, decl, bound, result)
    acc, source, transposed = bound["acc"].type, bound["src"], bound["transpose"]
    shapes, extents = bound.dims("shapes"), bound.dims("valid_shape") or bound.dims("shapes")
    sizes, offsets = [_extent(d) for d in shapes[-2:]], bound.dims("src_offset")
    valid: Sequence[Expr] = extents[-2:]
    if transposed:
        sizes, valid, offsets, extents = sizes[::-1], valid[::-1], _swapped(offsets), _swapped(extents)
    part = _part(acc, sizes, valid)
    view = kernel.fresh("gather_row_view", tile_text(part, kernel.target))
    at = [kernel.scalars.index(o) for o in bound.dims("dst_offset")]
    texts = [str(getattr(d, "value", d)) for d in part.shape]
    marked = [kernel.scalars.index(d) for d in valid]
    kernel.add(Op("subview", result=view, source=out, offsets=at, sizes=texts, valid=marked))
    turned = _transposed_view(kernel, source) if transposed else None
    instruction(kernel, "pto.tload", [window(kernel, source, offsets, extents, source.name_hint, turned)], view)
    return out


def _extent(dim: Expr) -> int:
    assert isinstance(dim, ConstInt)
    return int(dim.value)


def _swapped(dims: Sequence[Expr]) -> Sequence[Expr]:
    return [*dims[:-2], dims[-1], dims[-2]]


def _part(acc: TileType, sizes: list[int], valid: Sequence[Expr]) -> TileType:
    """The type of the accumulator's window: whole boxes of a boxed tile, of which ``valid`` is written."""
    view = acc.get_effective_tile_view()
    rows, cols = sizes
    if view.slayout is not TileLayout.none_box:
        box = view.fractal // 16 * 8 // acc.dtype.bits
        rows, cols = -(-rows // 16) * 16, -(-cols // box) * box
    shape = [index_const(rows), index_const(cols)]
    return TileType(shape, acc.dtype, None, view.replace(valid_shape=list(valid)), acc.memory_space)


def _transposed_view(kernel: KernelBuilder, tensor: Var) -> Value:
    """``tensor`` with its last two dimensions exchanged: a view of the same bytes, made where it is needed."""
    pointer, type = kernel.pointers[tensor]
    strides, _ = strides_of(type)
    view = TensorView(_swapped(strides), TensorLayout.DN)
    turned = TensorType(_swapped(type.shape), type.dtype, None, view)
    op = tensor_view_op(kernel, f"{tensor.name_hint}_t", pointer, turned)
    kernel.add(op)
    return op.result


Form = Callable[["KernelBuilder", OpDecl, Bound, Call, "Var | None"], Any]
GATHER_FORMS: dict[str, Form] = {
    "gather": dps,
    "scatter": dps,
    "gather_mask": masked,
    "scatter_mask": masked,
    "mgather": mgather,
    "mscatter": mscatter,
    "mrgsort": mrgsort,
    "gather_row": gather_row,
}
