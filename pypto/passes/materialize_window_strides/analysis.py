"""How far apart the elements of each tensor of a host function are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...errors import user_error
from ...ir.enums import TensorLayout
from ...ir.expr import Call, Expr, GlobalVar, Submit, Var, const_value, tensor_type_of
from ...ir.naming import written_name
from ...ir.program import Function
from ...ir.stmt import AssignStmt
from ...ir.structural import structural_equal
from ...ir.tensor_view_semantics import build_logical_strides_from_layout
from ...ir.types import TensorType
from ...ops.registry import rebind
from ..bodies import FlowVisitor
from ..buffer_roots import ValueSources
from ..return_lineage import ReturnLineage

Strides = tuple[Expr, ...]
"""Elements between neighbours along each dimension."""


def packed_strides(type: TensorType) -> Strides:
    """The strides of a tensor without gaps."""
    return tuple(build_logical_strides_from_layout(type.shape, type.layout))


def stated_strides(type: TensorType) -> Strides | None:
    """The strides a type states; None for packed ones."""
    view = type.tensor_view
    return gaps(type, tuple(view.stride)) if view is not None and view.stride else None


def gaps(type: TensorType, strides: Strides) -> Strides | None:
    """``strides``, or None where they are those of a tensor without gaps. Along one element any stride is right."""
    same = all(
        const_value(extent) == 1 or equal(a, b) for extent, a, b in zip(type.shape, strides, packed_strides(type))
    )
    return None if same else strides


def equal(a: Expr, b: Expr) -> bool:
    """Whether two strides are known to be one number."""
    return a is b or structural_equal(a, b)


class CallStrides(FlowVisitor):
    """Tells ``found`` of every call of a function and of the strides of its arguments, None for packed ones.

    ``given`` are the strides of the function's parameters.
    """

    def __init__(
        self,
        function: Function,
        given: Mapping[Var, Strides | None],
        lineage: ReturnLineage,
        found: Callable[[Call | Submit, list[Strides | None]], None],
    ) -> None:
        super().__init__()
        self._sources = ValueSources(lineage)
        self._known: dict[Var, Strides | None] = dict(given)
        self._found = found
        self.visit(function.body)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self._sources.note(op)
        self.visit(op.value)
        self.flow(op.value, op.var)

    def visit_call(self, op: Call | Submit) -> None:
        self.generic(op)
        if isinstance(op.op, GlobalVar):
            self._found(op, [self._of(a) if isinstance(a.type, TensorType) else None for a in op.args])

    visit_submit = visit_call

    def flow(self, value: Expr, var: Var) -> None:
        if not isinstance(var.type, TensorType):
            return
        strides = self._of(value)
        known = self._known.setdefault(var, strides)
        if not _alike(known, strides):
            raise user_error(
                ValueError,
                f"{written_name(var.name_hint)!r} may be windows whose rows are {_shown(known)} and "
                f"{_shown(strides)} apart, and a kernel knows one distance",
                var.span,
                "launch the kernels in each branch, with the window it has there",
            )

    def _of(self, value: Expr) -> Strides | None:
        source = self._sources.of(value)
        if source is not None:
            return self._known.get(source)
        rule = _RULES.get(value.op.name) if isinstance(value, Call) else None
        if rule is None or not isinstance(value, Call):
            return None
        return rule(value, self._of(value.args[0]))


def _alike(a: Strides | None, b: Strides | None) -> bool:
    if a is None or b is None:
        return a is b
    return len(a) == len(b) and all(map(equal, a, b))


def _shown(strides: Strides | None) -> str:
    if strides is None:
        return "without gaps"
    from ...ir.printer import python_print

    return " and ".join(python_print(s) for s in strides[:-1]) or "1"


def _slice(call: Call, source: Strides | None) -> Strides | None:
    parent, made = tensor_type_of(call.args[0]), tensor_type_of(call)
    bound = rebind(call)
    rank, shape = len(parent.shape), bound.dims("shape")
    strides = (source or packed_strides(parent))[rank - len(shape) :]
    dropped = {int(const_value(d) or 0) for d in bound.dims("drop_dims") or ()}
    if parent.layout is TensorLayout.DN and not _is_whole(shape, parent.shape):
        raise user_error(
            ValueError,
            "a window of a tensor in DN is cut row by row, but its memory lies column by column",
            call.span,
            "take the window of the tensor in its own order, or load the part inside the kernel",
        )
    return gaps(made, tuple(s for axis, s in enumerate(strides) if axis not in dropped))


def _is_whole(window: Sequence[Expr], shape: Sequence[Expr]) -> bool:
    return len(window) == len(shape) and all(map(equal, window, shape))


def _reshape(call: Call, source: Strides | None) -> Strides | None:
    """Only ones may come and go where there are gaps."""
    if source is None:
        return None
    before, made = tensor_type_of(call.args[0]), tensor_type_of(call)
    kept = [(e, s) for e, s in zip(before.shape, source) if const_value(e) != 1]
    wanted = [e for e in made.shape if const_value(e) != 1]
    if len(kept) != len(wanted) or not all(equal(e, w) for (e, _), w in zip(kept, wanted)):
        raise user_error(
            ValueError,
            f"{call.op.name} of a window whose rows do not follow each other: no strides describe the result",
            call.span,
            "reshape the whole tensor and take the window of that, or reshape inside the kernel",
        )
    left = iter(kept)
    last = source[-1]
    return gaps(made, tuple(next(left)[1] if const_value(e) != 1 else last for e in made.shape))


def _transpose(call: Call, source: Strides | None) -> Strides | None:
    if source is None:
        return stated_strides(tensor_type_of(call))
    made = list(source)
    first, second = (int(const_value(a) or 0) for a in call.args[1:3])
    made[first], made[second] = made[second], made[first]
    return gaps(tensor_type_of(call), tuple(made))


def _view(call: Call, source: Strides | None) -> Strides | None:
    if source is None:
        return None
    if tensor_type_of(call).layout is not tensor_type_of(call.args[0]).layout:
        return _refuse_view(call, source)
    return _reshape(call, source)


def _refuse_view(call: Call, source: Strides | None) -> Strides | None:
    if source is None:
        return None
    raise user_error(
        ValueError,
        f"{call.op.name} of a window whose rows do not follow each other",
        call.span,
        "take the view of the whole tensor and the window of that, or take it inside the kernel",
    )


_RULES: dict[str, Callable[[Call, Strides | None], Strides | None]] = {
    "tensor.slice": _slice,
    "tensor.reshape": _reshape,
    "tensor.transpose": _transpose,
    "tensor.view": _view,
    "tensor.reinterpret_view": _refuse_view,
}
