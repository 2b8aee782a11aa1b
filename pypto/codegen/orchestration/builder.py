"""One Orchestration function to C++. A transliteration: one IR construct, one output construct."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import Any

from ...backend.target import Target
from ...dtypes import DataType
from ...errors import Diagnosed, InternalError, user_error
from ...ir.expr import Call, Expr, GlobalVar, MakeTuple, Submit, TupleGetItemExpr, Var
from ...ir.naming import written_name
from ...ir.node import IRNode
from ...ir.program import Function, Program
from ...ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    RuntimeScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)  # fmt: skip
from ...ir.types import CommCtxType, ScalarType, TensorType, TupleType
from ...ir.visitor import walk
from ...passes.auto_derive_task_dependencies import EDGES
from ..context import Op
from . import arrays, control_flow, packed, tasks, tensors
from .blocks import Allocation, Block, Handle
from .cpp import Unit, cpp, scalar_type
from .expressions import ExpressionWriter
from .fan_in import FanIns
from .kernels import Kernels
from .names import Identifiers, written
from .tasks import TaskWriter

_CONTEXT_WORD = "uint64_t"


class OrchestrationBuilder:
    """Builds the `Unit` of one Orchestration function."""

    def __init__(self, program: Program, function: Function, target: Target) -> None:
        self.function, self.target = function, target
        self.unit = Unit(len(function.params))
        self.names = Identifiers()
        self.kernels = Kernels(program)
        self.scalars = ExpressionWriter(self)
        self.tasks = TaskWriter(self)
        self.root = self.block = Block(None)
        self.values: dict[Var, Handle] = {}
        self.tuples: dict[Var, list[Handle]] = {}
        self.contents = arrays.Contents()
        self.carries: set[str] = set()
        self.frozen: list[set[Var]] = []
        self.loops: list[control_flow.Carrying] = []
        self._dims: dict[Var, tuple[int, int]] = {}
        self._tensor_types: list[TensorType] = []
        self._allocations = 0
        self._line = function.span
        nodes = walk(function.body)
        self.used = {n for n in nodes if isinstance(n, Var)}
        self.workspaces = self.kernels.workspaces(nodes)
        self.fan_ins = FanIns(self, nodes)
        self.awaited = self._declare_awaited(nodes)
        self.fan_ins.declare()

    def build(self) -> Unit:
        self._declare_parameters()
        self.statements(self.function.body)
        self.unit.body = self.root.finish()
        return self.unit

    # Parameters

    def _declare_parameters(self) -> None:
        tensor_count = scalar_count = 0
        for p in self.function.params:
            if isinstance(p.type, TensorType):
                for axis, dim in enumerate(p.type.shape):
                    if isinstance(dim, Var):
                        self._dims.setdefault(dim, (tensor_count, axis))
                self._tensor_types.append(p.type)
                name = self.names.take(f"ext_{p.name_hint}")
                self.unit.tensors.append(Op("reference", name=name, value=cpp("argument", tensor_count)))
                self.values[p] = Handle(name, self.root)
                tensor_count += 1
            else:
                self.values[p] = self._scalar_parameter(p, scalar_count)
                scalar_count += 1

    def _scalar_parameter(self, p: Var, index: int) -> Handle:
        name = self.names.take(p.name_hint)
        if isinstance(p.type, CommCtxType):
            kind, value = _CONTEXT_WORD, cpp("scalar_word", index)
        elif isinstance(p.type, ScalarType):
            kind = scalar_type(p.dtype, p.span)
            value = cpp("scalar_argument", kind, index)
        else:
            raise self.refused(f"an orchestration takes tensors and scalars, not {p.type}", p)
        self.unit.scalars.append(Op("declare", type=kind, name=name, value=value))
        return Handle(name, self.root, guarded=True, assignable=True)

    def _dimension(self, symbol: Var) -> Handle | None:
        """A symbol of the parameters' shapes: read from the first argument that has it."""
        place = self._dims.get(symbol)
        if place is None:
            return None
        index, axis = place
        name = self.names.take(symbol.name_hint)
        self.unit.extents.extend(packed.argument_extent(self, name, self._tensor_types[index], index, axis))
        made = self.values[symbol] = Handle(name, self.root, natural=True)
        return made

    def _declare_awaited(self, nodes: Iterable[IRNode]) -> dict[Var, Handle]:
        """Ids of tasks that passes let others wait for: variables of the function, for those may be in any scope."""
        calls = [n for n in nodes if isinstance(n, (Call, Submit))]
        edges = dict.fromkeys(d for c in calls for d in c.attrs.get(EDGES, ()))
        edges.update(dict.fromkeys(self.fan_ins.awaited()))
        kind, ids = scalar_type(DataType.TASK_ID, self.function.span), {}
        made_here = {s.var for s in nodes if isinstance(s, AssignStmt) and _makes_id(s)}
        for var in edges:
            if var in made_here:
                name = self.names.take(f"{written(var.name_hint)}_tid")
                self.emit(Op("declare", type=kind, name=name, value=cpp("invalid_task")))
                ids[var] = Handle(name, self.root, guarded=True)
        return ids

    # Values

    def handle(self, var: Var, at: IRNode) -> Handle:
        """What ``var`` stands for. Raises the user's error when it is out of reach at ``at``."""
        found = self.values.get(var) or self._dimension(var)
        if found is None:
            raise InternalError(f"codegen met {var.name_hint!r} before it has a value", at.span)
        if not found.block.open:
            raise self.refused(
                f"{written_name(var.name_hint)!r} is made in a scope that has ended",
                at,
                "make it before the scope, or use it inside",
            )
        if found.extent and self.contents.of(found.text) != found.version:
            raise self.refused(
                f"{written_name(var.name_hint)!r} is an array as it was before it was written to",
                at,
                "read the elements that are needed before the array is written to",
            )
        return found

    def is_known(self, var: Var) -> bool:
        """Whether ``var`` has a value, or is a symbol of the parameters' shapes."""
        return var in self.values or var in self._dims

    def bind(self, var: Var, handle: Handle) -> None:
        """Let ``var`` stand for ``handle`` from here on."""
        old = self.values.get(var)
        if old is not None and old.text != handle.text and self.control_depth(old.block) < len(self.loops):
            raise InternalError(
                f"{written_name(var.name_hint)!r} changes inside a loop or branch, not in SSA form", var.span
            )
        self.values[var] = handle

    def control_depth(self, block: Block) -> int:
        """How many loops and branches are around ``block``."""
        return sum(1 for c in self.loops if c.outside.depth < block.depth)

    def declare(self, var: Var, type: str, value: str, **facts: Any) -> Handle:
        """A C++ variable for ``var``, which stands for it."""
        name = self.names.take(var.name_hint)
        self.emit(Op("declare", type=type, name=name, value=value))
        made = Handle(name, self.block, **facts)
        self.bind(var, made)
        return made

    def tensor(self, expr: Expr) -> Handle:
        """The tensor an operand stands for."""
        if not isinstance(expr, Var):
            raise InternalError(f"codegen met a nested {type(expr).__name__}", expr.span)
        return self.handle(expr, expr)

    def refused(self, message: str, at: IRNode, hint: str | None = None) -> Diagnosed:
        """The user's error for what an orchestration cannot do, at the user's line: that of the use of a variable."""
        return user_error(ValueError, message, self._line if isinstance(at, Var) else at.span, hint)

    # Emission

    def emit(self, op: Op) -> None:
        self.block.ops.append(op)

    @contextmanager
    def inside(self, transparent: bool = False) -> Any:
        """A C++ block: what is emitted goes into it. Yields it; its statements are ``finish()``."""
        outer = self.block
        self.block = Block(outer, transparent)
        yield self.block
        self.block.open = False
        self.block = outer

    def allocation(self, block: Block) -> Allocation:
        """The allocation at the head of ``block`` that has room."""
        if not block.allocations or block.allocations[-1].full:
            block.allocations.append(self.new_allocation(block))
        return block.allocations[-1]

    def new_allocation(self, block: Block) -> Allocation:
        self._allocations += 1
        return Allocation(self.names.take(f"alloc_{self._allocations - 1}"), block)

    # Statements

    def statements(self, body: Stmt | None) -> None:
        for s in flatten_to_stmts(body):
            handler = _STATEMENTS.get(type(s))
            self._line = s.span
            if handler is None:
                raise InternalError(f"codegen met a {type(s).__name__} in an orchestration", s.span)
            handler(self, s)

    def assign(self, stmt: AssignStmt) -> None:
        var, value = stmt.var, stmt.value
        if isinstance(value, (Call, Submit)):
            self._assign_call(var, value)
        elif isinstance(value, MakeTuple):
            self.tuples[var] = [self._element(e) for e in value.elements]
        elif isinstance(value, TupleGetItemExpr):
            self._assign_element(var, self.element(value))
        elif isinstance(value, Var) and isinstance(value.type, TupleType):
            self.tuples[var] = self.tuples[value]
        elif isinstance(value, Var) and not self._is_copied(value):
            self.bind(var, self.handle(value, stmt))
        elif isinstance(value, Var) and isinstance(value.type, TensorType):
            self.declare(var, "ChipTensor", self.handle(value, stmt).text)
        else:
            self.assign_scalar(var, self.scalars.text(value), self.scalars.natural(value))

    def _is_copied(self, value: Var) -> bool:
        """Whether a copy is needed, because what ``value`` stands for changes."""
        handle = self.handle(value, value)
        return handle.assignable or handle.text in self.carries

    def assign_scalar(self, var: Var, text: str, natural: bool = False) -> None:
        """Give a scalar its value: a variable of its own, or an assignment to the one it has."""
        if var in self.values and self.values[var].assignable and self.values[var].block.open:
            if any(var in bounds for bounds in self.frozen):
                raise InternalError(f"{var.name_hint!r} changes in a loop it bounds, not in SSA form", var.span)
            self.emit(Op("set", target=self.values[var].text, value=text))
            self.values[var] = self.values[var]._replace(natural=False)
            return
        kind = scalar_type(var.dtype, var.span)
        self.declare(var, kind, text, assignable=True, natural=natural, guarded=True)

    def _element(self, expr: Expr) -> Handle:
        if isinstance(expr, Var):
            return self.handle(expr, expr)
        return Handle(self.scalars.text(expr), self.root)

    def element(self, expr: TupleGetItemExpr) -> Handle:
        """What an element of a tuple stands for."""
        source = expr.tuple
        parts = self.tuples.get(source) if isinstance(source, Var) else None
        if parts is None:
            raise InternalError("codegen met an element of an unknown tuple", expr.span)
        return parts[expr.index]

    def _assign_element(self, var: Var, handle: Handle) -> None:
        if not handle.fresh:
            self.bind(var, handle)
        elif isinstance(var.type, TensorType):
            self.declare(var, "const ChipTensor&", handle.text)
        elif var in self.awaited:
            self.emit(Op("set", target=self.awaited[var].text, value=handle.text))
            self.bind(var, self.awaited[var])
        elif var in self.used:
            self.declare(var, scalar_type(DataType.TASK_ID, var.span), handle.text)

    def _assign_call(self, var: Var, call: Call | Submit) -> None:
        if isinstance(call.op, GlobalVar):
            results = self.tasks.launch(call, self.awaited.get(var) if isinstance(call, Call) else None)
            if isinstance(var.type, TupleType):
                self.tuples[var] = results
            else:
                self._assign_element(var, results[0])
            return
        self._operator(call)(self, call, var)

    def _operator(self, call: Call | Submit) -> Callable[[OrchestrationBuilder, Call | Submit, Var], None]:
        found = _OPERATORS.get(call.op.name)
        if found is None:
            raise InternalError(f"Misplaced tensor op in an orchestration: {call.op.name} runs on a core", call.span)
        return found

    def evaluate(self, stmt: EvalStmt) -> None:
        if isinstance(stmt.expr, (Call, Submit)):
            self._evaluate_call(stmt.expr)

    def _evaluate_call(self, call: Call | Submit) -> None:
        if isinstance(call.op, GlobalVar):
            self.tasks.launch(call)
        elif call.op.name in _EFFECTS:
            _EFFECTS[call.op.name](self, call)
        else:
            self._operator(call)(self, call, Var("unused", call.type, call.span))

    def returns(self, stmt: ReturnStmt) -> None:
        """Results are written through parameters: only launches still have to be made."""
        if self.loops:
            raise InternalError("codegen met a return inside a loop or branch", stmt.span)
        for value in stmt.values:
            if isinstance(value, (Call, Submit)):
                self._evaluate_call(value)

    def scope(self, stmt: RuntimeScopeStmt) -> None:
        with self.inside(transparent=stmt.manual) as block:
            self.statements(stmt.body)
        self.emit(Op("scope", manual=stmt.manual, body=block.finish()))

    def yields(self, stmt: YieldStmt) -> None:
        if not self.loops:
            raise InternalError("codegen met a yield outside of a loop or branch", stmt.span)
        self.loops[-1].finish(self, stmt)

    def scalar_call(self, call: Call) -> str:
        """A call inside a scalar expression."""
        writer = _SCALAR_CALLS.get(call.op.name)
        if writer is None:
            raise InternalError(f"codegen met a nested call of {call.op.name}", call.span)
        return writer(self, call)


def _makes_id(stmt: AssignStmt) -> bool:
    """Whether a statement is a launch, or takes the id out of one's results."""
    value = stmt.value
    if isinstance(value, Call):
        return isinstance(value.op, GlobalVar)
    return isinstance(value, TupleGetItemExpr) and isinstance(value.type, ScalarType)


Writer = Callable[[OrchestrationBuilder, Any], None]
_STATEMENTS: dict[type, Writer] = {
    AssignStmt: OrchestrationBuilder.assign,
    EvalStmt: OrchestrationBuilder.evaluate,
    ForStmt: control_flow.loop_for,
    WhileStmt: control_flow.loop_while,
    IfStmt: control_flow.branch,
    ReturnStmt: OrchestrationBuilder.returns,
    RuntimeScopeStmt: OrchestrationBuilder.scope,
    YieldStmt: OrchestrationBuilder.yields,
}
_OPERATORS: dict[str, Any] = {
    **tensors.OPERATORS,
    **arrays.OPERATORS,
    **tasks.OPERATORS,
    "system.task_dummy": lambda builder, call, var: builder.tasks.barrier(call, var),
}
_EFFECTS: dict[str, Any] = tensors.EFFECTS
_SCALAR_CALLS: dict[str, Any] = {**tensors.SCALARS, **arrays.SCALARS, **tasks.SCALARS}


