"""Forms of gathers, scatters and merges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ..dtypes import DataType
from ..errors import user_error
from ..ir.enums import TensorLayout, TileLayout
from ..ir.expr import Call, ConstInt, Expr, Var, index_const
from ..ir.naming import written_name
from ..ir.types import TensorType, TensorView, TileType
from ..ops.registry import Bound, Pto, rebind
from ..ops.rules import dims_text
from ..ops.tile_gather import MaskPattern, compare_scratch
from .context import Op, Value
from .instructions import attributes, destination, dps, instruction, operand, refuse_fraction, refuse_gaps
from .tensors import flat_offset, is_empty, strides_of, tensor_view_op, window
from .types import tile_text

if TYPE_CHECKING:
    from .kernel import KernelBuilder


def gather(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Elements by position, which counts through the buffer: in a view whose rows lie apart it would count others."""
    source = bound["src"]
    if isinstance(source, Var) and source in kernel.slices and not _is_dense(kernel, source):
        name = written_name(source.name_hint)
        raise user_error(
            ValueError,
            f"tile.gather counts positions in the buffer of src, and the rows of slice {name!r} lie apart in its own",
            call.span,
            f"copy it first: pl.tile.assemble(pl.tile.create(shape, dtype), {name}, [0, 0])",
        )
    return dps(kernel, pto, bound, call, result)


def _is_dense(kernel: KernelBuilder, tile: Var) -> bool:
    """Whether the rows of a slice follow each other in memory."""
    rows, cols = (getattr(d, "value", None) for d in tile.type.shape)  # pyright: ignore[reportAttributeAccessIssue]
    source: Any = tile
    while source in kernel.slices:
        source = rebind(kernel.slices[source])["tile"]
        if rows != 1 and getattr(source.type.shape[-1], "value", None) != cols:
            return False
    return True


def masked(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Columns by a repeating pattern."""
    out = destination(kernel, bound, result)
    source, pattern = kernel.value(bound[pto.operands[0]]), MaskPattern(bound["mask_pattern"]).name
    attrs = [("maskPattern", f"#pto.mask_pattern<{pattern}>"), ("axis", '"row"')]
    kernel.add(Op("dps_masked", mnemonic=pto.mnemonic, ins=[source], outs=[out], attrs=attrs))
    return out


def gather_compare(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> None:
    """Positions by a comparison, and how many: two tiles."""
    outs = kernel.parts(call, result)
    refuse_fraction(bound, "kvalue", bound.type("src").dtype)
    ins = [
        kernel.value(bound["src"]),
        operand(kernel, bound["kvalue"], bound.type("src").dtype),
        _compare_room(kernel, bound, call),
    ]
    attrs = attributes(pto, bound)
    kernel.add(Op("dps", mnemonic=pto.mnemonic, ins=ins, outs=outs, attrs=attrs, inline_attrs=False))


def _compare_room(kernel: KernelBuilder, bound: Bound, call: Call) -> Value:
    """The scratch of a comparing gather. Where it works behind its tile, that tile is the head of the scratch given."""
    tmp, source = bound.type("tmp"), bound.type("src")
    if not kernel.target.quirks.gather_behind_scratch:
        return kernel.value(bound["tmp"])
    refuse_gaps(kernel, bound.decl, bound["tmp"])
    rows, columns = (_extent(d) for d in source.shape)
    mask, needed = compare_scratch(rows, columns, source.dtype)
    given = tmp.dtype.storage_bytes(prod(_extent(d) for d in tmp.shape))
    if given < needed:
        raise user_error(
            ValueError,
            f"{call.op.name} on {kernel.target.name} keeps masks, positions and values in tmp: {needed} bytes, and tmp "
            f"has {given}",
            call.span,
            f"tmp = pl.create_tile([1, {needed}], dtype=pl.UINT8)",
        )
    if tmp.memref is None or not kernel.options.addresses:
        raise user_error(
            ValueError,
            f"{call.op.name} on {kernel.target.name} works behind its scratch tile, which PTOAS knows nothing of",
            call.span,
            "let pypto plan memory: memory_planner=passes.MemoryPlanner.PYPTO",
        )
    head = TileType([rows, mask], DataType.UINT8, None, None, tmp.memory_space)
    return kernel.buffers.at(head, tmp.memref.byte_offset, index_const(0), "gather_room")


def whole(kernel: KernelBuilder, tensor: Var, name: str = "") -> Value:
    """The window over all of a tensor."""
    assert isinstance(tensor.type, TensorType)
    shape = tensor.type.shape
    return window(kernel, tensor, [index_const(0)] * len(shape), shape, name or tensor.name_hint)


def memory_operand(kernel: KernelBuilder, value: Expr) -> Value:
    """A tile, or the window over all of a tensor."""
    if isinstance(value, Var) and isinstance(value.type, TensorType):
        return whole(kernel, value)
    return kernel.value(value)


def mgather(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Rows or elements of global memory at given positions, into a tile."""
    if result is None:
        return None
    _check_memory(kernel, bound)
    ins = [memory_operand(kernel, bound[n]) for n in ("mem", "idx", "scratch") if bound[n] is not None]
    out = kernel.handle(result)
    attrs = [(key, text) for key, text in attributes(pto, bound) if "undefined" not in text]
    instruction(kernel, "pto.mgather", ins, out, attrs)
    return out


def _check_memory(kernel: KernelBuilder, bound: Bound) -> None:
    """Raise KernelValueError for a table not in ND order, and for scratch in the memory of table or indices."""
    mem, scratch = bound["mem"], bound["scratch"]
    if kernel.pointers[mem][1].layout is not TensorLayout.ND:
        name = written_name(mem.name_hint)
        raise user_error(ValueError, f"tile.mgather requires an ND source tensor, which {name!r} is not", bound.span)
    if scratch is None:
        return
    for name in ("mem", "idx"):
        found = kernel.pointers.get(bound[name])
        if found is not None and found[0] is kernel.pointers[scratch][0]:
            raise user_error(ValueError, f"tile.mgather: scratch must not overlap {name}", bound.span)


def mscatter(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Elements of a tile to given positions of a tensor; the value is the tensor."""
    tensor = bound["output_tensor"]
    ins = [kernel.value(bound[n]) for n in ("src", "idx")]
    instruction(kernel, "pto.mscatter", ins, whole(kernel, tensor), [("coalesce", "#pto<coalesce elem>")])
    if result is not None:
        kernel.pointers[result] = kernel.pointers[tensor]
    return kernel.handle(tensor)


def merge(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Sorted runs of one tile merged by four, ``block_len`` elements each."""
    if result is None:
        return None
    length = operand(kernel, bound["block_len"], DataType.INT32)
    out = kernel.handle(result)
    instruction(kernel, "pto.tmrgsort", [kernel.value(bound["src"]), length], out)
    return out


def merge_lists(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Two to four sorted tiles merged. How much of each was used is written to a vector nobody reads."""
    if result is None:
        return None
    if bound["tmp"] is None and isinstance(call.type, TileType):
        raise user_error(
            ValueError,
            f"{bound.decl.name} needs scratch tmp, a row as long as its result",
            call.span,
            hint=f"tmp = pl.create_tile({dims_text(call.type.shape)}, dtype=pl.{call.dtype.name})",
        )
    names = [n for n in ("src0", "src1", "src2", "src3", "tmp") if bound[n] is not None]
    ins = [kernel.value(bound[n]) for n in names]
    out = kernel.handle(result)
    executed = kernel.fresh("executed", "vector<4xi16>")
    kernel.add(Op("zero_vector", result=executed))
    attrs = [("exhausted", "true" if bound["exhausted"] else "false")]
    kernel.add(Op("merge_lists", mnemonic="pto.tmrgsort", ins=ins, outs=[out, executed], attrs=attrs))
    return out


def mrgsort(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    return (merge if "block_len" in bound.decl.by_name else merge_lists)(kernel, pto, bound, call, result)


def gather_row(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A window of a tensor loaded into a window of the accumulator tile."""
    out = destination(kernel, bound, result)
    source, transposed, offsets = bound["src"], bound["transpose"], bound.dims("src_offset")
    extents = bound.dims("valid_shape") or bound.dims("shapes")
    if is_empty(extents):
        return out
    sizes, valid = [_extent(d) for d in bound.dims("shapes")[-2:]], extents[-2:]
    if transposed:
        sizes, valid, offsets, extents = sizes[::-1], valid[::-1], _swapped(offsets), _swapped(extents)
    owner, at = result if result is not None else bound["acc"], bound.dims("dst_offset")
    moved = _lines(kernel, owner, at, sizes)
    if moved is not None:
        at, sizes = _ORIGIN, [_extent(d) for d in bound.type("acc").shape]
    view = _window(kernel, bound["acc"].type, moved or out, at, sizes, valid)
    turned = _transposed_view(kernel, source) if transposed else None
    instruction(kernel, "pto.tload", [window(kernel, source, offsets, extents, source.name_hint, turned)], view)
    return out


def _window(
    kernel: KernelBuilder, acc: TileType, out: Value, at: Sequence[Expr], sizes: list[int], valid: Sequence[Expr]
) -> Value:
    """A view of part of the accumulator."""
    part = _part(acc, sizes, valid)
    view = kernel.fresh("gather_row_view", tile_text(part, kernel.target))
    kernel.add(
        Op(
            "subview",
            result=view,
            source=out,
            offsets=[kernel.scalars.index(o) for o in at],
            sizes=[str(getattr(d, "value", d)) for d in part.shape],
            valid=[kernel.scalars.index(d) for d in valid],
        )
    )
    return view


def _lines(kernel: KernelBuilder, owner: Var, at: Sequence[Expr], sizes: list[int]) -> Value | None:
    """Rows of a boxed tile (columns of one transposed) that start anywhere: the tile again, further on in memory.

    No view of a boxed tile starts inside a box. But the lines of its boxes follow each other at 32 bytes through all
    boxes of a block column, so the tile's own type, moved by as many lines, has the wanted one first. None where a
    view will do, where the window lies otherwise, or without an address.
    """
    type = owner.type
    assert isinstance(type, TileType)
    view, extents = type.get_effective_tile_view(), [getattr(d, "value", 0) for d in type.shape]
    if view.slayout is TileLayout.none_box or type.memref is None or not kernel.options.addresses:
        return None
    line, across = (0, 1) if view.blayout is TileLayout.col_major else (1, 0)
    first, beside = at[line], at[across]
    columns = 256 // type.dtype.bits
    if isinstance(first, ConstInt) and first.value == 0 and sizes[line] >= extents[line]:
        return None
    if not isinstance(beside, ConstInt) or beside.value % columns or view.fractal != 512:
        return None
    block = int(beside.value) // columns * extents[line] * _LINE
    offset = flat_offset([first, index_const(block)], [index_const(_LINE), index_const(1)])
    return kernel.buffers.at(type.replace(memref=None), type.memref.byte_offset, offset, owner.name_hint)


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


_LINE = 32
"""Bytes of a line of a box."""
_ORIGIN = (index_const(0), index_const(0))

Form = Callable[["KernelBuilder", Pto, Bound, Call, "Var | None"], Any]
GATHER_FORMS: dict[str, Form] = {
    "gather": gather,
    "scatter": dps,
    "gather_mask": masked,
    "gather_compare": gather_compare,
    "scatter_mask": masked,
    "mgather": mgather,
    "mscatter": mscatter,
    "mrgsort": mrgsort,
    "gather_row": gather_row,
}
