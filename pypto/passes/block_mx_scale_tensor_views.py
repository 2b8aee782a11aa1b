"""BlockMxScaleTensorViews: tensors of MX scales take the shape of their bytes, and the loads that read them follow.

``pl.Tensor[[M, G], pl.FP8E8M0, pl.MX_A_ZZ]`` states that the scales of a left operand lie in global memory in boxes of
16 rows by 2 groups, as the cube reads them; ``pl.Tensor[[G, N], pl.FP8E8M0, pl.MX_B_NN]`` says so of a right operand's,
in boxes of 16 columns. Such a type becomes ``[1, M/16, G/2, 16, 2]`` or ``[1, N/16, G/2, 16, 2]``, whose row-major
strides are those of the boxes. A ``tile.load`` addresses boxes from then on, always whole ones; its tile stays as it
was, valid region included.

A target without scale memories has none of this: block-scaled products are refused there, and so are their scales. A
rewritten function is marked ``mx_tensor_views_blocked`` and left alone from then on.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..backend.target import Target
from ..backend.targets import TARGETS
from ..errors import InternalError, user_error
from ..ir.enums import MemorySpace, TensorLayout
from ..ir.expr import Call, ConstInt, Expr, index_const
from ..ir.node import NodeList
from ..ir.program import Function, Program, summarize
from ..ir.span import Span
from ..ir.tensor_view_semantics import FRACTAL_ROWS, MX_LAYOUTS, SCALE_PAIR
from ..ir.types import DistributedTensorType, TensorType, TensorView, TileType, Type, same_dims
from ..ir.visitor import find_all
from ..ops.rules import dims_text
from .base import P, Pass
from .context import PassContext
from .tensor_blocks.rewriting import BlockedLoad, Blocker

BLOCKED_MARK = "mx_tensor_views_blocked"
"""The attribute of a function whose tensors of scales are blocked."""

_PROPERTIES = frozenset({P.SSAForm, P.IncoreTileOps, P.TileOps2D, P.NormalizedStmtStructure})
_PRODUCTS = tuple(
    f"tile.{kind}_mx{form}" for kind in ("matmul", "gemv") for form in ("", "_acc", "_bias")
)


def block_mx_scale_tensor_views() -> Pass:
    """The pass; see the module. Raises KernelValueError for scales, or a use of them, that it cannot address."""
    looks_for = (TensorView, *_PRODUCTS)
    return Pass("BlockMxScaleTensorViews", _run, _PROPERTIES, _PROPERTIES, looks_for=looks_for)


def _run(program: Program, context: PassContext) -> Program:
    if context.has_target and MemorySpace.LeftScale not in context.target.memories:
        for function in program.functions.values():
            _refuse_on(context.target, function)
        return program
    return program.map_functions(block_function)


def block_function(function: Function) -> Function:
    """``function`` with its tensors of scales blocked; one without, or marked as done, is kept."""
    if function.attrs.get(BLOCKED_MARK) or TensorView not in summarize(function).kinds:
        return function
    made = _MxBlocker(function).rewrite(function)
    return made if made is function else made.replace(attrs={**made.attrs, BLOCKED_MARK: True})


def _refuse_on(target: Target, function: Function) -> None:
    """Raise KernelValueError for the first block-scaled product, or else the first load of scales."""
    calls = find_all(function, Call)
    products = [c for c in calls if c.op.name in _PRODUCTS]
    loads = [c for c in calls if c.op.name == "tile.load" and _is_scales(c.args[0].type)]
    for call in (*products, *loads):
        able = ", ".join(f"{t.name} ({t.module_arch})" for t in TARGETS if MemorySpace.LeftScale in t.memories)
        what = call.op.name if call.op.name in _PRODUCTS else "tile.load of MX scales"
        raise user_error(
            ValueError,
            f"{what} is only supported on {able}: {target.name} ({target.module_arch}) has no scale memories",
            call.span,
            "compile for the other target, or multiply the scales out: pl.matmul of FP16 or BF16 tiles",
        )


def _is_scales(type: Type) -> bool:
    return isinstance(type, TensorType) and type.layout in MX_LAYOUTS


def _axes(layout: TensorLayout) -> tuple[int, int]:
    """The dimension boxes have 16 of, and the one they have 2 of."""
    return (0, 1) if layout is TensorLayout.MX_A_ZZ else (1, 0)


class _Load(BlockedLoad):
    words = "MX"

    def blocked(self, tensor: TensorType) -> list[NodeList]:
        self._check()
        line, group = _axes(self._source.layout)
        offsets = [self.block(line, FRACTAL_ROWS, _LINES[line], 64), self.block(group, SCALE_PAIR, "groups", 2)]
        zero, one = index_const(0), index_const(1)
        boxes = [self.count(line, FRACTAL_ROWS), self.count(group, SCALE_PAIR)]
        window = NodeList([one, *boxes, *tensor.shape[3:]])
        whole = same_dims(self._asked, self._window)
        return [NodeList([zero, *offsets, zero, zero]), window, window if whole else NodeList(self._asked)]

    def _check(self) -> None:
        if self._space is not MemorySpace.Mat:
            raise InternalError("scales loaded elsewhere than into Mat", self._op.span)
        tile, shown = self._op.type, dims_text(self._window)
        if not isinstance(tile, TileType) or len(self._window) != 2 or len(self._offsets) != 2:
            raise InternalError("a load of scales that is not 2-D", self._op.span)
        line, group = _axes(self._source.layout)
        for axis, unit in ((line, FRACTAL_ROWS), (group, SCALE_PAIR)):
            extent = self._window[axis]
            if not isinstance(extent, ConstInt) or extent.value % unit:
                raise self.refuse(
                    f"a window of {shown} is not made of whole boxes, {unit} in dimension {axis}",
                    f"make the window a multiple of {unit} in dimension {axis}; valid_shape narrows what counts",
                )
        held = self._source.shape
        for axis, (start, extent) in enumerate(zip(self._offsets, self._window)):
            limit = held[axis]
            if isinstance(start, ConstInt) and isinstance(limit, ConstInt) and start.value + extent.value > limit.value:
                raise self.refuse(
                    f"a window of {shown} at {dims_text(self._offsets)} leaves {dims_text(held)}",
                    "load whole boxes that lie inside the tensor",
                )


_LINES = ("rows", "columns")


class _MxBlocker(Blocker):
    layouts = MX_LAYOUTS
    load = _Load
    elsewhere = "load a window of the scales with target_memory=pl.Mem.Mat, or annotate the tensor pl.ND"

    def block_shape(self, tensor: TensorType, name: str, span: Span) -> TensorType:
        fault = _fault(tensor)
        if fault is not None:
            raise user_error(ValueError, f"{tensor.layout.name} tensor {name}: {fault[0]}", span, fault[1])
        line, group = _axes(tensor.layout)
        lines, groups = (_constant(tensor.shape[axis]) for axis in (line, group))
        shape = [1, lines // FRACTAL_ROWS, groups // SCALE_PAIR, FRACTAL_ROWS, SCALE_PAIR]
        view = (tensor.tensor_view or TensorView()).replace(stride=NodeList(), valid_shape=NodeList())
        return tensor.replace(shape=NodeList(index_const(n) for n in shape), tensor_view=view)


def _constant(dim: Expr) -> int:
    assert isinstance(dim, ConstInt)
    return dim.value


def _fault(tensor: TensorType) -> tuple[str, str] | None:
    """Why ``tensor`` has no boxes, and what to write instead."""
    shape: Sequence[Expr] = tensor.shape
    view, shown = tensor.tensor_view, dims_text(tensor.shape)
    if isinstance(tensor, DistributedTensorType):
        return "a distributed tensor cannot hold scales in boxes: a remote load has none", "annotate it pl.ND"
    if len(shape) != 2:
        return f"scales have two dimensions, got {shown}", "one matrix of scales, [M, K/32] or [K/32, N]"
    if not all(isinstance(d, ConstInt) for d in shape):
        return f"dimensions must be constant, got {shown}: dynamic ones are not provably whole boxes", "constants"
    line, group = _axes(tensor.layout)
    for axis, unit in ((line, FRACTAL_ROWS), (group, SCALE_PAIR)):
        if _constant(shape[axis]) % unit:
            return f"{shown} is not made of whole boxes, {unit} in dimension {axis}", "pad the scales"
    if view is not None and view.valid_shape and not same_dims(view.valid_shape, shape):
        return f"valid in {dims_text(view.valid_shape)} only", "narrow a load with valid_shape instead"
    return None
