"""Where the tensors of a host function lie: in which buffers, and in which part of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TypeAlias

from ...ir.enums import PadValue, TensorLayout
from ...ir.expr import Call, Expr, GlobalVar, MakeTuple, TupleGetItemExpr, Var, const_value
from ...ir.memref import MemRef
from ...ir.program import Function
from ...ir.stmt import AssignStmt, ForStmt, IfStmt, WhileStmt
from ...ir.types import TensorType
from ..bodies import FlowVisitor
from ..buffer_roots import BufferRoots, ValueSources
from ..return_lineage import ReturnLineage

MOST_ROOTS = 4
"""A tensor that may be one of more buffers counts as unknown."""


class Part(Enum):
    """A part of a buffer other than a known box."""

    Whole = "whole"
    Somewhere = "somewhere"
    Moving = "moving"
    """Somewhere that depends on values known only at run time."""


Box: TypeAlias = tuple[tuple[int, int], ...]
"""Offset and extent along each axis of the buffer."""

Region: TypeAlias = "Part | Box"

Storage: TypeAlias = Mapping[Var, Region]
"""The part of each buffer that a tensor may be; empty for one whose buffer is unknown."""


_FRESH = frozenset({"tensor.create", "tensor.full"})
"""Operators whose result is a buffer of its own."""

_VIEWS = frozenset({"tensor.reshape", "tensor.view", "tensor.reinterpret_view", "tensor.transpose"})


def overlap(a: Storage, b: Storage) -> bool:
    """Whether two tensors may share an element."""
    for root, part in a.items():
        for other, there in b.items():
            if root is other:
                if not isinstance(part, tuple) or not isinstance(there, tuple) or _boxes_meet(part, there):
                    return True
            elif _may_alias(root, other):
                return True
    return False


def _boxes_meet(a: Box, b: Box) -> bool:
    return len(a) != len(b) or all(x < y + m and y < x + n for (x, n), (y, m) in zip(a, b))


def _may_alias(a: Var, b: Var) -> bool:
    here, there = getattr(a.type, "memref", None), getattr(b.type, "memref", None)
    return isinstance(here, MemRef) and isinstance(there, MemRef) and MemRef.may_alias(here, there)


class Storages(FlowVisitor):
    """The storage of every tensor variable of a function; `of` answers."""

    def __init__(self, function: Function, lineage: ReturnLineage) -> None:
        super().__init__()
        self._roots = BufferRoots(function, lineage)
        self._sources = ValueSources(lineage)
        self._joins: dict[Var, list[Storage]] = {}
        tensors = [p for p in function.params if isinstance(p.type, TensorType)]
        self._known: dict[Var, Storage] = {p: {p: Part.Whole} for p in tensors}
        self.visit(function.body)

    def of(self, value: Expr) -> Storage:
        """The storage of a tensor."""
        source = self._sources.of(value)
        return self._known.get(source, {}) if source is not None else {}

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self._sources.note(op)
        if isinstance(op.var.type, TensorType):
            self._known[op.var] = self._storage(op.var, op.value)

    def _storage(self, var: Var, value: Expr) -> Storage:
        if self._sources.of(value) is not None:
            return self.of(value)
        if isinstance(value, Call) and not isinstance(value.op, GlobalVar):
            if value.op.name == "tensor.slice":
                return self._window(value)
            if value.op.name in _VIEWS:
                return dict.fromkeys(self.of(value.args[0]), Part.Somewhere)
            return {var: Part.Whole} if value.op.name in _FRESH else {}
        made = isinstance(value, (Call, TupleGetItemExpr))
        return {var: Part.Whole} if made else {}

    def _window(self, call: Call) -> Storage:
        source = self.of(call.args[0])
        _, shape, offset = call.args[:3]
        sizes, starts = _numbers(shape), _numbers(offset)
        if starts is None or sizes is None:
            return dict.fromkeys(source, Part.Moving)
        simple = _is_plain(call.args[0].type) and _is_plain(call.type) and len(call.args) == 3
        made: dict[Var, Region] = {}
        for root, part in source.items():
            if not simple or part is Part.Somewhere or part is Part.Moving:
                made[root] = part if part is Part.Moving else Part.Somewhere
            else:
                base = [start for start, _ in part] if isinstance(part, tuple) else [0] * len(starts)
                same_rank = len(base) == len(starts)
                box = tuple((b + s, n) for b, s, n in zip(base, starts, sizes))
                made[root] = box if same_rank else Part.Somewhere
        return made

    # What loops and branches hand on

    def visit_for_stmt(self, op: ForStmt | WhileStmt) -> None:
        carried = [var for var in (*op.iter_args, *op.return_vars) if isinstance(var.type, TensorType)]
        self._known.update((var, self._merged(var)) for var in carried)
        super().visit_for_stmt(op)
        self._known.update((var, self._merged(var)) for var in carried)

    visit_while_stmt = visit_for_stmt

    def _merged(self, var: Var) -> Storage:
        """Somewhere in what a carried variable may be; the iteration decides."""
        roots = self._roots.of(var)
        known = all(self._is_known(root) for root in roots)
        return dict.fromkeys(roots, Part.Somewhere) if known and len(roots) <= MOST_ROOTS else {}

    def _is_known(self, root: Var) -> bool:
        """Whether ``root`` is a buffer rather than, say, a gathered value."""
        return self._known.get(root, {}).get(root) is Part.Whole

    def visit_if_stmt(self, op: IfStmt) -> None:
        tensors = [var for var in op.return_vars if isinstance(var.type, TensorType)]
        self._joins.update((var, []) for var in tensors)
        super().visit_if_stmt(op)
        for var in tensors:
            self._known[var] = _joined(self._joins.pop(var))

    def flow(self, value: Expr, var: Var) -> None:
        if var in self._joins:
            self._joins[var].append(self.of(value))


def _joined(parts: list[Storage]) -> Storage:
    """One of several; unknown when any is, or when they are too many."""
    made: dict[Var, Region] = {}
    for storage in parts:
        if not storage:
            return {}
        for root, part in storage.items():
            made[root] = part if made.get(root, part) == part else Part.Somewhere
    return made if len(made) <= MOST_ROOTS else {}


def _numbers(value: Expr) -> list[int] | None:
    if not isinstance(value, MakeTuple):
        return None
    found = [n for n in map(const_value, value.elements) if isinstance(n, int)]
    return found if len(found) == len(value.elements) else None


def _is_plain(type: object) -> bool:
    """Whether a tensor is packed in row order and all valid."""
    if not isinstance(type, TensorType):
        return False
    view = type.tensor_view
    if view is None:
        return True
    if view.layout is not TensorLayout.ND or view.valid_shape or view.pad is not PadValue.null:
        return False
    return not view.stride or _packed(view.stride, type.shape)


def _packed(strides: Sequence[Expr], shape: Sequence[Expr]) -> bool:
    expected = 1
    for stride, extent in zip(reversed(strides), reversed(shape)):
        if const_value(stride) != expected:
            return False
        size = const_value(extent)
        if not isinstance(size, int):
            return False
        expected *= size
    return True
