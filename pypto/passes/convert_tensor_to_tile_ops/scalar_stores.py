"""Element stores beside bulk stores to one tensor in global memory, made bulk stores where that changes nothing.

The two ways to memory are not ordered on the device. A loop that fills a contiguous run with constants becomes one
store of a filled tile. Elements written over a tensor that was filled whole are written to the filled tile instead,
which is stored last.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...ir import expr as E
from ...ir.enums import ForKind
from ...ir.expr import Call, ConstInt, Expr, Var, const_value, index_const
from ...ir.naming import written_name
from ...ir.node import NodeList
from ...ir.program import Function, summarize
from ...ir.stmt import AssignStmt, EvalStmt, ForStmt, ReturnStmt, Stmt, call_of, flatten_to_stmts, seq
from ...ir.types import TensorType
from ...ir.visitor import Rewriter, Visitor, walk
from ...ops.rules import all_same, value
from ..buffer_roots import BufferRoots
from ..emitting import build
from ..return_lineage import ReturnLineage

_WRITE, _ASSEMBLE, _FULL = "tensor.write", "tensor.assemble", "tensor.full"
_ROW_BYTES = 32
"""What a bulk store writes at least."""


def bulk_stores(function: Function) -> Function:
    """``function`` with element stores to tensors that it also stores to in bulk joined with those."""
    if not {_WRITE, _ASSEMBLE} <= summarize(function).ops:
        return function
    uses = _Uses(function)
    mixed = {root for root, use in uses.of_root.items() if use.writes and use.bulk}
    if not mixed:
        return function
    staged = {use.bulk[0]: use for root, use in uses.of_root.items() if root in mixed and uses.may_stage(use)}
    made = _Staging(staged).apply(function) if staged else function
    body = _Fills(uses, mixed).rewrite(made.body)
    return made if body is made.body else made.replace(body=body)


@dataclass
class _Use:
    """How a function uses one tensor in global memory."""

    writes: list[Call] = field(default_factory=list)
    bulk: list[AssignStmt] = field(default_factory=list)
    others: int = 0
    """Uses other than these and returning it."""


class _Uses(Visitor):
    """The uses of each tensor, by the variable that stands for its memory."""

    def __init__(self, function: Function) -> None:
        self._roots = BufferRoots(function, ReturnLineage({function.name: function}), views=True)
        self.of_root: dict[Var, _Use] = {}
        self.reads: dict[Var, int] = {}
        """How often a variable is read."""
        self._top = flatten_to_stmts(function.body)
        self._fills: dict[Var, Call] = {}
        self.visit(function.body)

    def root(self, tensor: Expr) -> Var | None:
        """The one tensor ``tensor`` lies in; None when there may be several."""
        found = self._roots.of(tensor)
        return next(iter(found)) if len(found) == 1 else None

    def _use(self, tensor: Expr) -> _Use | None:
        root = self.root(tensor)
        return None if root is None else self.of_root.setdefault(root, _Use())

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        call = op.value
        if isinstance(call, Call) and call.op.name == _FULL:
            self._fills[op.var] = call
        if isinstance(call, Call) and call.op.name == _ASSEMBLE and (use := self._use(call.args[0])) is not None:
            use.bulk.append(op)
            for arg in call.args[1:]:
                self.visit(arg)
            return
        self.visit(call)

    def visit_call(self, op: Call) -> None:
        use = self._use(op.args[0]) if op.op.name == _WRITE else None
        if use is None:
            self.generic(op)
            return
        use.writes.append(op)
        for arg in op.args[1:]:
            self.visit(arg)

    def visit_return_stmt(self, op: ReturnStmt) -> None:
        for result in op.value:
            if not isinstance(result, Var):
                self.visit(result)

    def visit_var(self, op: Var) -> None:
        self.reads[op] = self.reads.get(op, 0) + 1
        if isinstance(op.type, TensorType) and (use := self._use(op)) is not None:
            use.others += 1

    def may_stage(self, use: _Use) -> bool:
        """Whether a tensor is filled whole, once, before elements are written over it and nothing else is done."""
        if len(use.bulk) != 1 or use.others or use.bulk[0] not in self._top:
            return False
        call: Any = use.bulk[0].value
        target, source, offset = call.args[:3]
        first = self._top.index(use.bulk[0])
        before = {id(n) for stmt in self._top[:first] for n in walk(stmt)}
        return (
            not call.kwargs.get("atomic")
            and source in self._fills
            and self.reads.get(source) == 1
            and all_same(source.type.shape, target.type.shape)
            and all(value(o) == 0 for o in offset.elements)
            and not any(id(w) in before for w in use.writes)
        )


class _Staging(Rewriter):
    """Writes elements to the filled tile, and stores that at the end of the function."""

    def __init__(self, staged: dict[AssignStmt, _Use]) -> None:
        super().__init__()
        self._staged = staged
        self._tiles = {id(w): stmt.value.args[1] for stmt, use in staged.items() for w in use.writes}  # pyright: ignore[reportAttributeAccessIssue]

    def apply(self, function: Function) -> Function:
        stmts = flatten_to_stmts(self.rewrite(function.body))
        ends = bool(stmts) and isinstance(stmts[-1], ReturnStmt)
        body, last = (stmts[:-1], stmts[-1:]) if ends else (stmts, [])
        return function.replace(body=seq([*body, *self._staged, *last], function.body.span))

    def visit_assign_stmt(self, op: AssignStmt) -> Any:
        return [] if op in self._staged else self.generic(op)

    def visit_call(self, op: Call) -> Expr:
        tile = self._tiles.get(id(op))
        return self.generic(op) if tile is None else op.replace(args=NodeList((tile, *op.args[1:])))


class _Fills(Rewriter):
    """Replaces loops that fill contiguous elements with constants."""

    def __init__(self, uses: _Uses, mixed: set[Var]) -> None:
        super().__init__()
        self._uses, self._mixed = uses, mixed

    def visit_for_stmt(self, op: ForStmt) -> Any:
        stmts = flatten_to_stmts(op.body)
        writes = [w for s in stmts if isinstance(s, EvalStmt) and (w := call_of(s, _WRITE)) is not None]
        count = const_value(op.stop)
        plain = op.kind is ForKind.Sequential and not op.iter_args and not op.attrs
        plain = plain and value(op.start) == 0 and value(op.step) == 1 and isinstance(count, int) and count > 0
        if not plain or len(writes) != len(stmts):
            return self.generic(op)
        roots = [self._uses.root(w.args[0]) for w in writes]
        if None in roots or len(set(roots)) != len(roots) or self._mixed.isdisjoint(roots):
            return self.generic(op)
        stores = [_fill(w, op.loop_var, int(count or 0)) for w in writes]
        return self.generic(op) if None in stores else [s for store in stores for s in store or ()]


def _fill(write: Call, index: Var, count: int) -> list[Stmt] | None:
    """The statements that store what ``write`` does for ``count`` values of ``index``; None if it is no such fill."""
    target, place, element = write.args
    kind: Any = target.type
    start = [_at_zero(i, index) for i in place.elements]  # pyright: ignore[reportAttributeAccessIssue]
    moving = [axis for axis, (a, b) in enumerate(zip(start, place.elements)) if a is not b]  # pyright: ignore[reportAttributeAccessIssue]
    if None in start or len(moving) != 1 or const_value(element) is None:
        return None
    axis = moving[0]
    contiguous = all(value(d) == 1 for d in kind.shape[axis + 1 :])
    if not contiguous or count * kind.dtype.get_byte() % _ROW_BYTES:
        return None
    span, name = write.span, written_name(target.name_hint if isinstance(target, Var) else "fill")
    rank = len(kind.shape)
    run = [index_const(1)] * (rank - 1) + [index_const(count)]
    call = build(_FULL, run, dtype=kind.dtype, value=element, span=span)
    filled = Var(f"{name}__fill", call.type, span)
    stmts: list[Stmt] = [AssignStmt(filled, call, span)]
    if axis != rank - 1:
        shape = [index_const(count if i == axis else 1) for i in range(rank)]
        turned = build("tensor.reshape", filled, shape, span=span)
        filled = Var(f"{name}__run", turned.type, span)
        stmts.append(AssignStmt(filled, turned, span))
    stmts.append(EvalStmt(build(_ASSEMBLE, target, filled, start, span=span), span))
    return stmts


def _at_zero(place: Expr, index: Var) -> Expr | None:
    """``place`` where ``index`` is 0: ``place`` itself without it, None unless it grows by one with ``index``."""
    if place is index:
        return index_const(0)
    if not any(n is index for n in walk(place)):
        return place
    if isinstance(place, E.Add):
        left, right = _at_zero(place.left, index), _at_zero(place.right, index)
        if left is None or right is None:
            return None
        if left is place.left:
            return left if isinstance(right, ConstInt) and right.value == 0 else E.Add(left, right, place.dtype)
        if right is place.right:
            return right if isinstance(left, ConstInt) and left.value == 0 else E.Add(left, right, place.dtype)
    return None
