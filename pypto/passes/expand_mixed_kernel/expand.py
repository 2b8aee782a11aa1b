"""One kernel to its parts, and the functions that call it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ...backend.target import Target
from ...errors import InternalError, user_error
from ...ir.enums import FunctionType, SplitMode
from ...ir.expr import Call, Expr, GlobalVar, Submit, Var
from ...ir.functor import deep_clone
from ...ir.node import NodeList
from ...ir.program import Function, Program, summarize
from ...ir.stmt import AssignStmt, EvalStmt, ReturnStmt, Stmt, flatten_to_stmts, seq
from ...ir.types import TileType, TupleType, Type, UnknownType
from ...ir.visitor import Rewriter, find_all, find_calls
from ...ops.rules import value as known
from ..bodies import BodyRewriter
from ..core_affinity import PLACEMENT, Affinity, body_affinity
from ..deferred_waits import check_waiters
from ..return_lineage import returned_params
from .frees import with_frees
from .groups import normalize_groups
from .manual import arrange_pushes, dispatch_both
from .pipes import slots_within, with_pipe
from .side import Kernel, Side, SideBuilder

_TYPES: Final = {Affinity.CUBE: FunctionType.AIC, Affinity.VECTOR: FunctionType.AIV}
_VALIDATED: Final = "split_aiv_region_validated"
_BY_LANE: Final = "split_aiv"
_SPLIT_ATTRS: Final = ("split", "slot_num", _BY_LANE, _VALIDATED)


def expand(program: Program, target: Target) -> Program:
    """``program`` without InCore functions."""
    check_waiters(program)
    mixed: dict[str, tuple[Function, Function]] = {}
    made: list[Function] = []
    names = {f.name for f in program.functions.values()}
    for function in program.functions.values():
        if function.func_type is not FunctionType.InCore:
            made.append(function)
        elif body_affinity(function.body) is not Affinity.MIXED:
            made.append(_pure(function))
        else:
            parts = _split(function, target, names)
            mixed[function.name] = parts
            made.extend(parts)
            if _is_launched(function.name, program):
                made.append(_group(function, *parts))
    if mixed:
        made = [_calling_parts(f, mixed) if f.func_type is FunctionType.Group else f for f in made]
    made = normalize_groups(made)
    made = dispatch_both(made, target)
    return program.with_functions(sorted((arrange_pushes(f, target) for f in made), key=lambda f: f.name))


def _retyped(function: Function, kind: FunctionType, attrs: dict[str, Any], body: Stmt | None = None) -> Function:
    return Function(
        function.name, function.directed_params(), function.return_types, body or function.body, function.span, kind,
        attrs=attrs, requires_runtime_binding=function.requires_runtime_binding,
    )  # fmt: skip


def _pure(function: Function) -> Function:
    """A kernel of one core: nothing is divided, except what its author divided between the vector cores."""
    side = body_affinity(function.body) or Affinity.VECTOR
    attrs = {k: v for k, v in function.attrs.items() if k not in _SPLIT_ATTRS}
    if side is Affinity.VECTOR and function.attrs.get(_BY_LANE):
        attrs[_BY_LANE] = True
    return _without_placement(_retyped(function, _TYPES[side], attrs))


def _split(function: Function, target: Target, names: set[str]) -> tuple[Function, Function]:
    _check_transposes(function)
    kernel = Kernel(function)
    bodies: dict[Affinity, Stmt] = {}
    slots = slots_within(function)
    for side in _TYPES:
        bodies[side] = with_frees(SideBuilder(Side(kernel, side), target).build(), slots)
    bodies = with_pipe(function, bodies, target)
    attrs = {k: v for k, v in function.attrs.items() if k != _VALIDATED}
    cube = _part(function, "aic", names, [], bodies[Affinity.CUBE], attrs)
    if target.quirks.no_split_dual_aiv_dispatch and function.split is None and not attrs.get(_BY_LANE):
        attrs = {**attrs, "dual_aiv_dispatch": True}
    vector = _part(function, "aiv", names, function.return_types, bodies[Affinity.VECTOR], attrs)
    return _cloned(_without_placement(cube)), _cloned(_without_placement(vector))


def _part(
    function: Function, suffix: str, names: set[str], results: Iterable[Type], body: Stmt, attrs: dict[str, Any]
) -> Function:
    name = f"{function.name}_{suffix}"
    if name in names:
        raise user_error(
            ValueError,
            f"kernel {function.name!r} is split into {function.name}_aic and {function.name}_aiv, and there is a "
            f"function {name!r} already",
            function.span,
            "rename one of them",
        )
    kind = FunctionType.AIC if suffix == "aic" else FunctionType.AIV
    return Function(name, function.directed_params(), results, body, function.span, kind, attrs=attrs)


def _cloned(function: Function) -> Function:
    made, _ = deep_clone(function)
    if not isinstance(made, Function):
        raise InternalError("a clone of a function is none", function.span)
    return made.replace(summary_cell=[])


class _Unplaced(Rewriter):
    def visit_call(self, op: Call) -> Expr:
        made = self.generic(op)
        if PLACEMENT not in made.attrs:
            return made
        return made.replace(attrs={k: v for k, v in made.attrs.items() if k != PLACEMENT})


def _without_placement(function: Function) -> Function:
    """``function`` without the notes on calls of which core they were placed on: they have been followed."""
    placed = any(PLACEMENT in n.attrs for n in find_all(function.body, Call))
    return _Unplaced().rewrite(function) if placed else function


def _check_transposes(function: Function) -> None:
    """A transpose moves the parts of the lanes to the other axis."""
    mode = function.split
    if mode is None or function.attrs.get(_VALIDATED) or "tile.transpose" not in summarize(function).ops:
        return
    axis = 0 if mode is SplitMode.UP_DOWN else 1
    for call in find_calls(function.body, "tile.transpose"):
        source = call.args[0].type
        if isinstance(source, TileType) and known(source.shape[axis]) != 1:
            raise transposed(call, mode)


def transposed(call: Call, mode: SplitMode) -> Exception:
    """The error for a transpose that swaps the axis the lanes divide."""
    return user_error(
        ValueError,
        f"this transpose swaps the split axis: the kernel is split {mode.name}, and each lane's part would have to "
        "change axes",
        call.span,
        'leave the kernel whole (attrs={"split": pl.SplitMode.NONE}, or no pl.split), or do without the transpose: '
        "a transpose that is then indexed by row is a column slice, x[:, h:h+1]",
    )


def _is_launched(name: str, program: Program) -> bool:
    """Whether something needs a function of the kernel's name: not when only Groups call it."""
    callers = [f for f in program.functions.values() if name in summarize(f).callees]
    return not callers or any(f.func_type is not FunctionType.Group or _submits(f, name) for f in callers)


def _submits(function: Function, name: str) -> bool:
    return any(n.op.name == name for n in find_all(function.body, Submit))


def _result_type(types: Iterable[Type]) -> Type:
    found = list(types)
    if not found:
        return UnknownType()
    return found[0] if len(found) == 1 else TupleType(found)


def _returned_types(function: Function) -> list[Type]:
    """Types of what a function without annotated results returns."""
    last = flatten_to_stmts(function.body)[-1:]
    return [v.type for s in last if isinstance(s, ReturnStmt) for v in s.values]


def _group(function: Function, cube: Function, vector: Function) -> Function:
    """The function of the kernel's name that runs both parts."""
    span, params = function.span, function.params
    first = EvalStmt(Call(GlobalVar(cube.name), params, None, None, UnknownType(), span), span)
    types = function.return_types or _returned_types(function)
    call = Call(GlobalVar(vector.name), params, None, None, _result_type(types), span)
    stmts: list[Stmt] = [first]
    returned = returned_params(function)
    if all(index is not None for index in returned):
        stmts.append(EvalStmt(call, span))
        results: list[Expr] = [params[index] for index in returned if index is not None]
    else:
        result = Var("result", call.type, span)
        stmts.append(AssignStmt(result, call, span))
        results = [result]
    if types:
        stmts.append(ReturnStmt(results, span))
    made = Function(
        function.name, function.directed_params(), function.return_types, seq(stmts, span), span, FunctionType.Group,
        attrs={k: v for k, v in function.attrs.items() if k != _VALIDATED},
    )  # fmt: skip
    return _cloned(made)


def _calling_parts(group: Function, mixed: dict[str, tuple[Function, Function]]) -> Function:
    if summarize(group).callees.isdisjoint(mixed):
        return group
    return _PartCaller(mixed).rewrite(group)


class _PartCaller(BodyRewriter):
    """Calls of mixed kernels become calls of both parts."""

    def __init__(self, mixed: dict[str, tuple[Function, Function]]) -> None:
        super().__init__()
        self._mixed = mixed

    def _parts(self, value: Expr) -> tuple[Call, Call] | None:
        parts = self._mixed.get(value.op.name) if isinstance(value, Call) and isinstance(value.op, GlobalVar) else None
        if parts is None or not isinstance(value, Call):
            return None
        cube = value.replace(op=GlobalVar(parts[0].name), type=UnknownType())
        return cube, value.replace(op=GlobalVar(parts[1].name))

    def visit_assign_stmt(self, op: AssignStmt) -> Any:
        parts = self._parts(op.value)
        return op if parts is None else [EvalStmt(parts[0], op.span), op.replace(value=parts[1])]

    def visit_eval_stmt(self, op: EvalStmt) -> Any:
        parts = self._parts(op.expr)
        return op if parts is None else [EvalStmt(parts[0], op.span), op.replace(expr=parts[1])]

    def visit_return_stmt(self, op: ReturnStmt) -> Any:
        made: list[Stmt] = []
        values: list[Expr] = []
        for value in op.value:
            parts = self._parts(value)
            if parts is not None:
                made.append(EvalStmt(parts[0], op.span))
            values.append(value if parts is None else parts[1])
        return [*made, op.replace(value=NodeList(values))] if made else op


