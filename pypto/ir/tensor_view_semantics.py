"""What shape, strides and layout of a tensor mean together.

Strides are in elements, one for each dimension. The packed strides of a layout:

- ND: row major, the last dimension contiguous.
- DN, rank 2 or more: as ND with the last two dimensions exchanged.
- NZ: only of the blocked shape ``[B, C/c0, R/16, 16, c0]``, where row major is the order of the bytes.
- MX_A_ZZ, MX_B_NN: of the blocked shapes ``[1, M/16, G/2, 16, 2]`` and ``[1, N/16, G/2, 16, 2]``, row major likewise.
  The logical shapes ``[M, G]`` and ``[G, N]`` have row-major strides too, until `BlockMxScaleTensorViews` blocks them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ..dtypes import DataType
from ..errors import Diagnostic
from . import expr as E
from .enums import TensorLayout
from .expr import Call, ConstInt, Expr, Submit, Var, index_const
from .node import EMPTY
from .program import Function, Program
from .scalar import binary
from .types import TensorType, TensorView, TupleType, Type
from .visitor import Visitor

FRACTAL_ROWS: Final = 16
FRACTAL_ROW_BYTES: Final = 32
_INT64_MAX: Final = (1 << 63) - 1
SCALE_PAIR: Final = 2
"""Scales along the depth in one box of 16 by 2."""
MX_LAYOUTS: Final = (TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN)
_NZ_SHAPE: Final = "[B, C/c0, R/16, 16, c0]"


def _const(expr: Expr) -> int | None:
    return expr.value if isinstance(expr, ConstInt) else None


def index_mul(a: Expr, b: Expr) -> Expr:
    """``a * b`` with constants folded and factors of 1 left out.

    A constant product beyond int64 stays an expression: it would wrap where strides are computed.
    """
    x, y = _const(a), _const(b)
    if x == 1:
        return b
    if y == 1:
        return a
    if x is not None and y is not None and -_INT64_MAX - 1 <= x * y <= _INT64_MAX:
        return index_const(x * y)
    return binary(E.Mul, a, b)


def compute_shape_product(shape: Sequence[Expr]) -> int:
    """The number of elements; -1 when a dimension is not constant or the product leaves int64."""
    product = 1
    for dim in shape:
        value = _const(dim)
        if value is None:
            return -1
        product *= value
    return product if product <= _INT64_MAX else -1


def nz_c0(dtype: DataType) -> int:
    """Elements of ``dtype`` in one 32-byte line of a fractal."""
    return FRACTAL_ROW_BYTES * 8 // dtype.bits


def nz_window_shape(window: Sequence[Expr]) -> list[Expr]:
    """Rows and columns of a window ``[1, c, r, 16, c0]`` of a blocked NZ tensor: ``[16 * r, c0 * c]``."""
    return [index_mul(window[2], window[3]), index_mul(window[1], window[4])]


def is_blocked_nz_shape(shape: Sequence[Expr], dtype: DataType | None = None) -> bool:
    """Whether ``shape`` is ``[B, C/c0, R/16, 16, c0]`` with c0 the elements in 32 bytes of ``dtype``.

    Without ``dtype``, c0 may be that of any element width.
    """
    if len(shape) != 5 or _const(shape[3]) != FRACTAL_ROWS:
        return False
    c0 = _const(shape[4])
    if dtype is None:
        return c0 in (64, 32, 16, 8, 4)
    return c0 == nz_c0(dtype)


def is_blocked_mx_shape(shape: Sequence[Expr]) -> bool:
    """Whether ``shape`` is that of scales in boxes of 16 by 2, ``[1, M/16, G/2, 16, 2]``."""
    return len(shape) == 5 and _const(shape[3]) == FRACTAL_ROWS and _const(shape[4]) == SCALE_PAIR


def mx_window_shape(window: Sequence[Expr], layout: TensorLayout) -> list[Expr]:
    """Rows and columns of a window ``[1, r, g, 16, 2]`` of blocked scales: ``[16 * r, 2 * g]``, in B the other way."""
    lines, groups = index_mul(window[1], window[3]), index_mul(window[2], window[4])
    return [lines, groups] if layout is TensorLayout.MX_A_ZZ else [groups, lines]


def _blocking_fault(shape: Sequence[Expr], layout: TensorLayout, dtype: DataType | None) -> str | None:
    """Why ``layout`` cannot be the order of a tensor of this shape, or None."""
    if layout is TensorLayout.NZ and not is_blocked_nz_shape(shape, dtype):
        return f"NZ is a tile-only order unless the tensor's shape is blocked as {_NZ_SHAPE}"
    if layout in MX_LAYOUTS and len(shape) != 2 and not is_blocked_mx_shape(shape):
        return f"{layout.name} needs a 2-D shape, or one blocked as [1, .., .., {FRACTAL_ROWS}, {SCALE_PAIR}]"
    return None


def build_logical_strides_from_layout(shape: Sequence[Expr], layout: TensorLayout) -> list[Expr]:
    """The packed strides of ``layout``, constants folded.

    Raises ValueError for DN below rank 2, for NZ of a shape that is not blocked and for MX of one that is neither 2-D
    nor blocked.
    """
    if not shape:
        return []
    fault = _blocking_fault(shape, layout, None)
    if fault is not None:
        raise ValueError(fault)
    if layout is not TensorLayout.DN:
        return _row_major(shape)
    if len(shape) < 2:
        raise ValueError(f"DN needs rank >= 2, got rank {len(shape)}")
    *outer, columns, rows = _row_major([*shape[:-2], shape[-1], shape[-2]])
    return [*outer, rows, columns]


def _row_major(shape: Sequence[Expr]) -> list[Expr]:
    strides: list[Expr] = [index_const(1)]
    for dim in reversed(shape[1:]):
        strides.append(index_mul(dim, strides[-1]))
    return strides[::-1]


def canonicalize_view(shape: Sequence[Expr], layout: TensorLayout) -> TensorView:
    """The view of a whole packed tensor. Raises as `build_logical_strides_from_layout`."""
    return TensorView(build_logical_strides_from_layout(shape, layout), layout)


def derive_layout_from_strides(shape: Sequence[Expr], stride: Sequence[Expr]) -> TensorLayout | None:
    """ND or DN by which of the last two strides is the constant 1; None when neither is, or the ranks differ."""
    if not stride or len(shape) != len(stride):
        return None
    if _const(stride[-1]) == 1:
        return TensorLayout.ND
    if len(stride) >= 2 and _const(stride[-2]) == 1:
        return TensorLayout.DN
    return None


def check_canonical_view(
    shape: Sequence[Expr],
    stride: Sequence[Expr],
    layout: TensorLayout,
    relaxed_symbolic: bool = True,
    dtype: DataType | None = None,
) -> tuple[bool, str]:
    """Whether ``stride`` is one ``layout`` allows: contiguous where it must be, elsewhere at least packed.

    Returns the answer and, when it is no, the reason. A comparison with a value that is not constant counts as
    true, or with ``relaxed_symbolic=False`` as false.
    """
    reason = _fault_of(shape, stride, layout, relaxed_symbolic, dtype)
    return reason is None, reason or ""


def _fault_of(
    shape: Sequence[Expr], stride: Sequence[Expr], layout: TensorLayout, relaxed: bool, dtype: DataType | None
) -> str | None:
    fault = _blocking_fault(shape, layout, dtype)
    if fault is not None or not shape:
        return fault
    if not stride:
        return "stride is empty: MaterializeTensorStrides writes it"
    if len(stride) != len(shape):
        return f"stride has rank {len(stride)}, the shape has rank {len(shape)}"
    if layout is TensorLayout.DN:
        return _dn_fault(shape, stride, relaxed)
    return _unit_fault(stride[-1], relaxed, f"{layout.name} needs an innermost stride of 1") or _outer_fault(
        shape, stride, len(shape) - 1, relaxed
    )


def _dn_fault(shape: Sequence[Expr], stride: Sequence[Expr], relaxed: bool) -> str | None:
    if len(shape) < 2:
        return "DN needs rank >= 2"
    fault = _unit_fault(stride[-2], relaxed, "DN needs stride[-2] of 1")
    if fault is not None:
        return fault
    fault = _below(stride[-1], shape[-2], relaxed, f"DN stride[-1] = {_text(stride[-1])}")
    if fault is not None:
        return f"{fault}, shape[-2]"
    exchanged = [*stride[:-2], stride[-1]], [*shape[:-2], shape[-1]]
    return _outer_fault(exchanged[1], exchanged[0], len(shape) - 2, relaxed)


def _outer_fault(shape: Sequence[Expr], stride: Sequence[Expr], last: int, relaxed: bool) -> str | None:
    for k in range(last - 1, -1, -1):
        packed = index_mul(shape[k + 1], stride[k + 1])
        fault = _below(stride[k], packed, relaxed, f"stride[{k}] = {_text(stride[k])}")
        if fault is not None:
            return fault
    return None


def _unit_fault(stride: Expr, relaxed: bool, need: str) -> str | None:
    value = _const(stride)
    if value == 1 or (value is None and relaxed):
        return None
    return f"{need}, got {value}" if value is not None else f"{need}, got a symbolic one"


def _below(stride: Expr, least: Expr, relaxed: bool, what: str) -> str | None:
    have, need = _const(stride), _const(least)
    if have is None or need is None:
        return None if relaxed else f"{what} is not provably packed: symbolic"
    return f"{what} is smaller than packed, {need}" if have < need else None


def _text(expr: Expr) -> str:
    value = _const(expr)
    return "?" if value is None else str(value)


def materialized(view: TensorView, shape: Sequence[Expr]) -> TensorView:
    """``view`` with packed strides where it had none. Raises as `build_logical_strides_from_layout`."""
    if view.stride:
        return view
    return view.replace(stride=type(EMPTY)(build_logical_strides_from_layout(shape, view.layout)))


RULE_NAME: Final = "TensorViewCanonical"


def view_diagnostics(
    tensor: TensorType, function: str, span: object, require_materialized: bool
) -> Iterable[Diagnostic]:
    """What is wrong with the view of one tensor type; empty strides are only wrong once they must be explicit."""
    view = tensor.tensor_view
    if view is None:
        return
    if not view.stride and not require_materialized:
        reason = _blocking_fault(tensor.shape, view.layout, tensor.dtype)
    else:
        reason = _fault_of(tensor.shape, view.stride, view.layout, True, tensor.dtype)
    if reason is not None:
        yield Diagnostic(f"tensor view in function '{function}': {reason}", span, rule_name=RULE_NAME)


def check_function_views(function: Function, require_materialized: bool) -> list[Diagnostic]:
    """What is wrong with the tensor views of a function's parameters, results, variables and calls."""
    checker = _ViewChecker(function.name, require_materialized)
    checker.visit(function)
    return checker.found


def check_program_views(program: Program, require_materialized: bool = False) -> list[Diagnostic]:
    """What is wrong with the tensor views of ``program``; each type is reported once for each function."""
    if not program.contains(TensorView):
        return []
    return [d for f in program.functions.values() for d in check_function_views(f, require_materialized)]


class _ViewChecker(Visitor):
    def __init__(self, function: str, strict: bool) -> None:
        self._function, self._strict = function, strict
        self._seen: set[int] = set()
        self.found: list[Diagnostic] = []

    def check(self, type: Type, span: object) -> None:
        if isinstance(type, TupleType):
            for member in type.types:
                self.check(member, span)
        elif isinstance(type, TensorType) and type.tensor_view is not None and id(type) not in self._seen:
            self._seen.add(id(type))
            self.found.extend(view_diagnostics(type, self._function, span, self._strict))

    def define(self, var: Var) -> None:
        self.check(var.type, var.span)
        super().define(var)

    def visit_function(self, op: Function) -> None:
        self.generic(op)
        for type in op.return_types:
            self.check(type, op.span)

    def visit_call(self, op: Call | Submit) -> None:
        self.check(op.type, op.span)
        self.generic(op)

    visit_submit = visit_call
