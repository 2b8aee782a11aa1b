"""One InCore function to its PTO context. A transliteration: one IR construct, one output construct."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from ..backend.target import Target
from ..dtypes import DataType
from ..errors import InternalError, user_error
from ..ir.expr import Call, ConstInt, Expr, IterArg, MakeTuple, TupleGetItemExpr, Var
from ..ir.naming import written_name
from ..ir.node import IRNode
from ..ir.program import Function, summarize
from ..ir.span import Span
from ..ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)  # fmt: skip
from ..ir.types import CommCtxType, DistributedTensorType, ScalarType, TensorType, TileType, TupleType
from ..ir.visitor import Visitor, find_calls, walk
from ..ops.registry import decl_of, rebind
from ..passes.acc_windows import AccWindow, acc_windows
from ..passes.core_affinity import FREES
from .buffers import Buffers
from .context import FunctionContext, Location, Op, Value
from .legality import check_parameter
from .names import Names
from .scalars import ScalarEmitter
from .tensors import tensor_view_op
from .types import ptr_text, scalar_text, tile_text

LANES = {
    "tile.get_block_idx": "__pypto_spmd_block_idx",
    "tile.get_block_num": "__pypto_spmd_block_num",
    "tile.get_subblock_idx": "__pypto_spmd_subblock_idx",
}
"""What the parameters are called in which a kernel is told its place."""
PREFETCH_WORKSPACE = "__pypto_sdma_workspace"
"""What the launch calls the workspace of asynchronous prefetches."""


def lane_parameters(function: Function) -> list[str]:
    """The operators whose values a kernel is launched with, in the order of its parameters.

    Index and count of the blocks come together; each is there when the kernel asks for either.
    """
    used = summarize(function).ops
    block, lane = ("tile.get_block_idx", "tile.get_block_num"), "tile.get_subblock_idx"
    return [*(block if not used.isdisjoint(block) else ()), *((lane,) if lane in used else ())]


class Options(NamedTuple):
    """What the text carries: the user's lines, the tiles' addresses, constant valid extents in the tiles' types."""

    locations: bool = True
    addresses: bool = True
    constant_extents: bool = True


class KernelBuilder:
    """Builds the `FunctionContext` of one kernel."""

    def __init__(self, function: Function, target: Target, kind: str, options: Options) -> None:
        self.function, self.target, self.options = function, target, options
        self.context = FunctionContext(function.name, kind)
        self.names = Names()
        self.scalars = ScalarEmitter(self)
        self.block = self.context.body
        self.values: dict[Var, Value] = {}
        self.pointers: dict[Var, tuple[Value, TensorType]] = {}
        self.contexts: dict[Value, Value] = {}
        """The communication context of each distributed tensor's pointer."""
        self.slices: dict[Var, Call] = {}
        self.splits: dict[Var, int] = {}
        self.buffers = Buffers(self)
        self._loc: Location | None = None
        self._call: Call | None = None

    def build(self) -> FunctionContext:
        self._declare_arguments()
        self.statement(self.function.body)
        return self.context

    # Arguments

    def _declare_arguments(self) -> None:
        params: Sequence[Var] = self.function.params
        tensors = [p for p in params if isinstance(p.type, TensorType)]
        scalars = [p for p in params if isinstance(p.type, ScalarType)]
        contexts = [p for p in params if isinstance(p.type, CommCtxType)]
        if len(tensors) + len(scalars) + len(contexts) != len(params):
            odd = next(p for p in params if not isinstance(p.type, (TensorType, ScalarType, CommCtxType)))
            raise self.unsupported(odd, f"a kernel parameter of type {odd.type}")
        for p in tensors:
            check_parameter(p, self.target)
            self.pointers[p] = (self._argument(ptr_text(p.type)), p.type)  # pyright: ignore[reportArgumentType]
        for p in scalars:
            self.values[p] = self._argument(scalar_text(p.dtype))
        self._declare_contexts(contexts)
        for dim in dynamic_dims(self.function):
            self.values[dim] = self._argument("index")
        if self.uses("prefetch.make_context"):
            self._prefetch_workspace = self._argument("!pto.ptr<i8>")
        self._declare_lanes()
        bare = self._bare_pointers()
        for p in tensors:
            if p not in bare:
                self._view(p)

    def _declare_contexts(self, declared: Sequence[Var]) -> None:
        """A context for each distributed tensor, in order: the function's own parameters as far as it has them."""
        for i, tensor in enumerate(distributed_params(self.function)):
            context = self._argument("!pto.ptr<i64>")
            self.contexts[self.pointers[tensor][0]] = context
            if i < len(declared):
                self.values[declared[i]] = context

    def context_of(self, tensor: Var) -> Value:
        """The communication context of a distributed tensor."""
        found = self.contexts.get(self.pointers[tensor][0]) if tensor in self.pointers else None
        if found is None:
            raise self.unsupported(tensor, f"a communication with {tensor.name_hint!r}, which has no context")
        return found

    def _argument(self, type_text: str) -> Value:
        value = Value(f"%arg{len(self.context.args)}", type_text)
        self.context.args.append(value)
        return value

    def is_argument(self, expr: Expr) -> bool:
        """Whether the kernel is launched with this value."""
        return isinstance(expr, Var) and self.values.get(expr) in self.context.args

    def _declare_lanes(self) -> None:
        self.lanes: dict[str, Value] = {}
        for op in lane_parameters(self.function):
            value = self.lanes[op] = Value(f"%{LANES[op]}", "i32")
            self.context.args.append(value)

    def prefetch_workspace(self) -> Value:
        """The workspace of asynchronous prefetches, which the launch provides."""
        if self._prefetch_workspace is None:
            raise self.unsupported(self.function, "a prefetch without a workspace")
        return self._prefetch_workspace

    def _bare_pointers(self) -> set[Expr]:
        """Parameters that only their address matters of."""
        if not self.uses("system.set_ffts"):
            return set()
        calls = [n for n in walk(self.function) if isinstance(n, Call)]
        workspaces = {c.args[0] for c in calls if c.op.name == "system.set_ffts"}
        return workspaces - {a for c in calls if c.op.name != "system.set_ffts" for a in c.args if isinstance(a, Var)}

    def uses(self, op: str) -> bool:
        """Whether the kernel calls operator ``op``."""
        return op in summarize(self.function).ops

    def _view(self, tensor: Var) -> None:
        pointer, type = self.pointers[tensor]
        self.at(tensor.span)
        outer, self.block = self.block, self.context.prologue
        op = tensor_view_op(self, tensor.name_hint, pointer, type)
        self.add(op)
        self.block = outer
        self.values[tensor] = op.result

    # Emission

    def add(self, op: Op) -> None:
        """Append ``op``, at the current user line, to the block being built."""
        if op.loc is None:
            op.loc = self._loc
        op.call = self._call
        self.block.append(op)

    def fresh(self, hint: str, type_text: str, known: str = "") -> Value:
        return Value(self.names.take(hint), type_text, known)

    @property
    def span(self) -> Span:
        """The user's code that is being written."""
        return self.function.span if self._call is None else self._call.span

    def at(self, span: Span) -> None:
        """Operations from here on stand for the code at ``span``."""
        if self.options.locations and span.is_valid():
            self._loc = Location(_quoted(span.filename), span.begin_line, span.begin_column)

    def unsupported(self, node: IRNode, what: str) -> InternalError:
        return InternalError(f"codegen met {what}, which an earlier pass should have lowered or refused", node.span)

    # Values

    def value(self, expr: Expr) -> Value:
        """The SSA value of any expression."""
        if isinstance(expr, Var) and not isinstance(expr.type, ScalarType):
            return self.handle(expr)
        if isinstance(expr, Call) and not isinstance(expr.type, ScalarType):
            raise self.unsupported(expr, f"a nested call of {expr.op.name}")
        return self.scalars.emit(expr)

    def scalar_var(self, var: Var) -> Value:
        found = self.values.get(var)
        if found is None:
            raise self.unsupported(var, f"{var.name_hint!r} before it has a value")
        return found

    def handle(self, var: Var) -> Value:
        """The handle of a tile, array or tensor view."""
        found = self.values.get(var)
        if found is None:
            if not isinstance(var.type, TileType):
                raise self.unsupported(var, f"{var.name_hint!r} before it has a value")
            window = self.windows.get(var)
            made = self.buffers.of(var) if window is None else self._product(var, var.type, window)
            found = self.values[var] = made
        return found

    @cached_property
    def windows(self) -> dict[Var, AccWindow]:
        """The windows of accumulators that products are made in."""
        return acc_windows(self.function)

    def _product(self, var: Var, type: TileType, window: AccWindow) -> Value:
        """A product in its window of an accumulator."""
        made = self.fresh(var.name_hint, tile_text(type, self.target))
        offsets = [self.scalars.index(o) for o in rebind(window.call).dims("offset")]
        sizes = [str(getattr(d, "value", d)) for d in type.shape]
        source = self.handle(window.target)
        self.add(Op("subview", result=made, source=source, offsets=offsets, sizes=sizes, valid=[]))
        return made

    def parts(self, call: Call, result: Var | None) -> list[Value]:
        """The handles of all tiles an operator gives: those of the variables its tuple is taken apart into."""
        assert isinstance(call.type, TupleType)
        handles = []
        for i in range(len(call.type.types)):
            taken = self._taken.get((result, i), ())
            if len(taken) != 1:
                raise user_error(
                    ValueError,
                    f"result {i} of {call.op.name} is taken {'more than once' if taken else 'nowhere'}",
                    call.span,
                    f"take all results where they are made, each once: a, b = pl.{call.op.name}(..)",
                )
            handles.append(self.handle(taken[0]))
        return handles

    @cached_property
    def _taken(self) -> dict[tuple[Expr | None, int], list[Var]]:
        """The variables that elements of tuples are assigned to."""
        found: dict[tuple[Expr | None, int], list[Var]] = {}
        for stmt in walk(self.function):
            if isinstance(stmt, AssignStmt) and isinstance(stmt.value, TupleGetItemExpr):
                found.setdefault((stmt.value.tuple, stmt.value.index), []).append(stmt.var)
        return found

    @cached_property
    def narrowed(self) -> frozenset[Var]:
        """Tiles of which only the ``set_validshape`` of a smaller region is used, once: their own handle may be set.

        None where types state extents: a type says one region.
        """
        if not self.options.addresses or self.options.constant_extents or not self.uses("tile.set_validshape"):
            return frozenset()
        calls = [s.value for s in _run_once(self.function.body) if isinstance(s, AssignStmt)]
        calls = [c for c in calls if isinstance(c, Call) and c.op.name == "tile.set_validshape"]
        uses = Counter(node for node in walk(self.function.body) if type(node) is Var)
        return frozenset(c.args[0] for c in calls if isinstance(c.args[0], Var) and uses[c.args[0]] == 1)

    @cached_property
    def reshown(self) -> frozenset[Var]:
        """Tiles of which only one ``set_validshape`` is used, of a region known at run time, beside what frees them."""
        if not self.uses("tile.set_validshape"):
            return frozenset()
        calls = find_calls(self.function.body, "tile.set_validshape")
        freed = {c.args[0] for c in find_calls(self.function.body, *FREES.values())}
        uses = Counter(node for node in walk(self.function.body) if type(node) is Var)
        seen = (c.args[0] for c in calls if not all(isinstance(d, ConstInt) and d.value for d in c.args[1:]))
        return frozenset(v for v in seen if isinstance(v, Var) and uses[v] == (2 if v in freed else 1))

    def scalar_call(self, call: Call) -> Value:
        """A call whose value is a scalar."""
        result = self.emit_call(call, None)
        if result is None:
            raise self.unsupported(call, f"{call.op.name} without a value")
        return result

    # Statements

    def statement(self, stmt: Stmt) -> None:
        for s in flatten_to_stmts(stmt):
            self.at(s.span)
            handler = _STATEMENTS.get(type(s))
            if handler is None:
                raise self.unsupported(s, f"a {type(s).__name__}")
            handler(self, s)

    def assign(self, stmt: AssignStmt) -> None:
        var, value = stmt.var, stmt.value
        if isinstance(value, Call) and value.op.name in ("tile.alloc", "tensor.alloc"):
            return
        if isinstance(value, Call):
            made = self.emit_call(value, var)
            if made is not None and isinstance(var.type, ScalarType):
                made = self.scalars.convert(made, value.dtype, var.dtype)
        elif isinstance(value, Var) and not isinstance(value.type, ScalarType):
            made = self.handle(value)
            if value in self.pointers:
                self.pointers[var] = self.pointers[value]
            if value in self.slices:
                self.slices[var] = self.slices[value]
        elif isinstance(value, TupleGetItemExpr) and var in self.values:
            return  # written where the tuple was made
        elif isinstance(value, (MakeTuple, TupleGetItemExpr)):
            raise self.unsupported(value, f"a tuple in {var.name_hint!r}")
        else:
            made = self.scalars.typed(value, var.dtype)
        if made is not None:
            self.values[var] = made

    def evaluate(self, stmt: EvalStmt) -> None:
        if not isinstance(stmt.expr, Call):
            raise self.unsupported(stmt, f"a bare {type(stmt.expr).__name__}")
        self.emit_call(stmt.expr, None)

    def emit_call(self, call: Call, result: Var | None) -> Value | None:
        """Emit an operator; its value becomes ``result``'s."""
        from .forms import emit_form

        if call.op.name in self.lanes:
            lane = self.lanes[call.op.name]
            target = call.dtype
            return self.scalars.convert(lane, DataType.INT32, target)
        decl = decl_of(call)
        if decl is None:
            raise self.unsupported(call, f"{call.op.name}")
        if decl.pto is None:
            raise user_error(
                ValueError, f"{call.op.name} is accepted by the language, but has no PTO form yet", call.span
            )
        self._call = call
        made = emit_form(self, decl.pto, call, result)
        self._call = None
        return made

    def returns(self, stmt: ReturnStmt) -> None:
        """A kernel's results are its Out parameters; there is nothing to write."""

    # Control flow: tiles and tensors are carried by their buffers, scalars as SSA values.

    def bind_carried(self, var: Var, source: Value | None, init: Expr | None) -> None:
        """A carried or merged variable that is not a scalar: the buffer it shares with what flows into it."""
        if isinstance(var.type, TileType):
            self.buffers.shared.add(var)
            self.values[var] = self.buffers.of(var, shared=True)
        elif init is not None:
            self.values[var] = self.value(init)
            if isinstance(init, Var) and init in self.pointers:
                self.pointers[var] = self.pointers[init]
        elif source is not None:
            self.values[var] = source

    def for_loop(self, stmt: ForStmt) -> None:
        start, stop, step = (self.scalars.index(e) for e in (stmt.start, stmt.stop, stmt.step))
        scalar = [i for i, a in enumerate(stmt.iter_args) if isinstance(a.type, ScalarType)]
        inits = self._inits(stmt, scalar)
        if isinstance(stmt.step, ConstInt) and stmt.step.value <= 0:
            raise user_error(
                ValueError,
                f"a loop in a kernel must have a positive step, got {stmt.step.value}",
                stmt.span,
                hint="count up, and compute the index: for k in pl.range(0, n): i = last - k",
            )
        if scalar_text(stmt.loop_var.dtype) != "index":
            raise self.unsupported(stmt, f"a loop variable of {stmt.loop_var.dtype}")
        index = self.fresh(stmt.loop_var.name_hint, "index")
        self.values[stmt.loop_var] = index
        carried = self._bind_iter_args(stmt.iter_args, inits)

        def finish(y: YieldStmt | None) -> None:
            self._check_carried(stmt, y)
            self._yield(y, stmt.return_vars, scalar, bool(carried))

        body = self._nested(stmt.body, finish)
        results = self._bind_results(stmt, scalar)
        self.at(stmt.span)
        bounds = dict(index=index, start=start, stop=stop, step=step)
        self.add(Op("loop_for", None, carried=carried, body=body, results=results, **bounds))

    def _check_carried(self, loop: ForStmt | WhileStmt, end: YieldStmt | None) -> None:
        """Raise where an iteration hands on another tensor than it began with, and something reads it."""
        for arg, result, value in zip(loop.iter_args, loop.return_vars, end.values if end is not None else ()):
            if isinstance(arg.type, (ScalarType, TileType)) or self.value(value) == self.values.get(arg):
                continue
            if any(node is arg or node is result for node in walk(self.function)):
                raise user_error(
                    NotImplementedError,
                    f"{written_name(arg.name_hint)!r} is another tensor after each iteration, and a kernel's tensors "
                    "are fixed",
                    loop.span,
                    "write to one tensor in every iteration, or exchange the contents through tiles",
                )

    def _inits(self, stmt: ForStmt | WhileStmt, scalar: list[int]) -> list[Value]:
        """The scalars a loop starts from."""
        return [self.scalars.typed(a.init_value, a.dtype) for a in (stmt.iter_args[i] for i in scalar)]

    def _bind_iter_args(self, iter_args: Sequence[IterArg], inits: list[Value]) -> list[tuple[Value, Value]]:
        carried, remaining = [], iter(inits)
        for arg in iter_args:
            if isinstance(arg.type, ScalarType):
                init = next(remaining)
                value = self.values[arg] = self.fresh(arg.name_hint, init.type)
                carried.append((value, init))
            else:
                self.bind_carried(arg, None, arg.init_value)
        return carried

    def _bind_results(self, stmt: ForStmt | WhileStmt, scalar: list[int]) -> list[Value]:
        results = []
        for i, var in enumerate(stmt.return_vars):
            if i in scalar:
                value = self.values[var] = self.fresh(var.name_hint, scalar_text(var.dtype))
                results.append(value)
            else:
                self.bind_carried(var, None, stmt.iter_args[i])
        return results

    def _nested(self, body: Stmt | None, finish: Any) -> list[Op]:
        """The operations of a region; ``finish`` receives its final yield, or None."""
        outer, self.block = self.block, []
        stmts = flatten_to_stmts(body)
        last = stmts[-1] if stmts and isinstance(stmts[-1], YieldStmt) else None
        for s in stmts[: len(stmts) - 1] if last else stmts:
            self.statement(s)
        finish(last)
        made, self.block = self.block, outer
        return made

    def region(self, emit: Any) -> list[Op]:
        """The operations ``emit`` writes, as a region."""
        outer, self.block = self.block, []
        emit()
        made, self.block = self.block, outer
        return made

    def _yield(self, stmt: YieldStmt | None, results: Sequence[Var], scalar: list[int], needed: bool) -> None:
        if not needed:
            return
        if stmt is None:
            raise self.unsupported(self.function, "a loop or branch that yields no value")
        operands = [self.scalars.typed(stmt.values[i], results[i].dtype) for i in scalar]
        self.add(Op("yields", operands=operands))

    def branch(self, stmt: IfStmt) -> None:
        condition = self.scalars.emit(stmt.condition)
        scalar = [i for i, v in enumerate(stmt.return_vars) if isinstance(v.type, ScalarType)]
        yields: list[YieldStmt] = []

        merged: list[list[Value | None]] = []

        def finish(y: YieldStmt | None) -> None:
            if y is not None:
                yields.append(y)
                merged.append([None if i in scalar else self.value(v) for i, v in enumerate(y.values)])
            self._yield(y, stmt.return_vars, scalar, bool(scalar))

        then_body = self._nested(stmt.then_body, finish)
        else_body = self._nested(stmt.else_body, finish) if stmt.else_body is not None else None
        results = []
        for i, var in enumerate(stmt.return_vars):
            if i in scalar:
                value = self.values[var] = self.fresh(var.name_hint, scalar_text(var.dtype))
                results.append(value)
            else:
                self._merge(var, [m[i] for m in merged], [y.values[i] for y in yields])
        self.at(stmt.span)
        self.add(Op("branch", condition=condition, then_body=then_body, else_body=else_body, results=results))

    def _merge(self, var: Var, handles: list[Value | None], sources: list[Expr]) -> None:
        """A tile or tensor that both branches yield."""
        if not isinstance(var.type, TileType) and len(set(handles)) != 1:
            if isinstance(var.type, DistributedTensorType):
                raise user_error(
                    ValueError,
                    "Assigning a different DistributedTensor in each branch of an `if` is not supported: "
                    f"{written_name(var.name_hint)!r} would have another communication context in each",
                    var.span,
                    "communicate inside the branches, each with its own window",
                )
            raise user_error(
                NotImplementedError,
                f"{written_name(var.name_hint)!r} is a different tensor in each branch, and a kernel's tensors "
                "are fixed",
                var.span,
                "write to one tensor in both branches (pl.assemble), or choose between tiles",
            )
        self.bind_carried(var, handles[0] if handles else None, sources[0] if sources else None)

    def while_loop(self, stmt: WhileStmt) -> None:
        scalar = [i for i, a in enumerate(stmt.iter_args) if isinstance(a.type, ScalarType)]
        carried = self._bind_iter_args(stmt.iter_args, self._inits(stmt, scalar))
        before_args = [value for value, _ in carried]
        outer, self.block = self.block, []
        condition = self.scalars.emit(stmt.condition)
        self.add(Op("condition", operands=[condition, *before_args]))
        before, self.block = self.block, outer
        after = [self.fresh(v.name[1:], v.type) for v in before_args]
        for i, value in zip(scalar, after):
            self.values[stmt.iter_args[i]] = value

        def finish(y: YieldStmt | None) -> None:
            self._check_carried(stmt, y)
            self._yield_while(y, stmt.return_vars, scalar)

        body = self._nested(stmt.body, finish)
        results = self._bind_results(stmt, scalar)
        self.at(stmt.span)
        self.add(Op("loop_while", carried=carried, before=before, after_args=after, body=body, results=results))

    def _yield_while(self, stmt: YieldStmt | None, results: Sequence[Var], scalar: list[int]) -> None:
        if scalar:
            self._yield(stmt, results, scalar, True)
        else:
            self.add(Op("yields", operands=[]))


@lru_cache(maxsize=64)
def _quoted(path: str) -> str:
    """``path`` inside an MLIR string: quotes, backslashes and control characters escaped."""
    return "".join(_ESCAPES.get(c) or (f"\\{ord(c):02X}" if ord(c) < 32 else c) for c in path)


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def _run_once(body: Stmt | None) -> Iterator[Stmt]:
    """The statements of a body that no loop repeats."""
    for stmt in flatten_to_stmts(body):
        if isinstance(stmt, IfStmt):
            yield from _run_once(stmt.then_body)
            yield from _run_once(stmt.else_body)
        else:
            yield stmt


def _sequence(builder: KernelBuilder, stmt: SeqStmts) -> None:
    builder.statement(stmt)


_STATEMENTS: dict[type, Any] = {
    AssignStmt: KernelBuilder.assign,
    EvalStmt: KernelBuilder.evaluate,
    ForStmt: KernelBuilder.for_loop,
    IfStmt: KernelBuilder.branch,
    WhileStmt: KernelBuilder.while_loop,
    ReturnStmt: KernelBuilder.returns,
    SeqStmts: _sequence,
}


def distributed_params(function: Function) -> list[Var]:
    """The parameters of a kernel that are slices of communication windows."""
    return [p for p in function.params if isinstance(p.type, DistributedTensorType)]


class _Symbols(Visitor):
    """Collects the variables of tensor types, in order of appearance."""

    def __init__(self) -> None:
        self.found: dict[Var, None] = {}

    def visit_var(self, op: Var) -> None:
        self.found[op] = None

    def visit_type(self, type: Any) -> None:
        if type.symbolic:
            for dim in type.shape:
                self.visit(dim)
            if type.tensor_view is not None:
                type.tensor_view._visit_children(self)


def dynamic_dims(function: Function) -> list[Var]:
    """Symbols of a kernel's tensor shapes that are not parameters, in order of appearance."""
    open_types = [p.type for p in function.params if isinstance(p.type, TensorType) and p.type.symbolic]
    if not open_types:
        return []
    symbols = _Symbols()
    for open_type in open_types:
        symbols.visit_type(open_type)
    params = set(function.params)
    return [v for v in symbols.found if v not in params]
