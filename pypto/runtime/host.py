"""Runs the host side of a program: control flow, scalars, tensors in memory, and launches of kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import numpy as np

    from ..simulator.scheduler import Steps
    from ..simulator.trace import Strand

from ..backend import Target
from ..dtypes import DataType
from ..errors import InternalError, Location, user_error
from ..ir import expr as E
from ..ir.enums import CoreType, ForKind, TensorLayout
from ..ir.expr import (
    BinaryExpr,
    Call,
    Cast,
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    GlobalVar,
    MakeTuple,
    Submit,
    TupleGetItemExpr,
    UnaryExpr,
    Var,
    tensor_type_of,
)
from ..ir.program import Function
from ..ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    RuntimeScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)  # fmt: skip
from ..ops.registry import Bound, rebind

Launch = Callable[[Function, Sequence[Any], "int | None", "Strand | None"], "Steps"]
"""Runs a function on arguments, as part of this block, or as so many blocks of its own; gives its results.

The last is what launches it, in a sanitized run."""

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    E.Add: lambda a, b: a + b, E.Sub: lambda a, b: a - b, E.Mul: lambda a, b: a * b,
    E.FloorDiv: lambda a, b: a // b, E.FloorMod: lambda a, b: a % b, E.FloatDiv: lambda a, b: a / b,
    E.Min: min, E.Max: max, E.Pow: lambda a, b: a**b, E.Eq: lambda a, b: a == b, E.Ne: lambda a, b: a != b,
    E.Lt: lambda a, b: a < b, E.Le: lambda a, b: a <= b, E.Gt: lambda a, b: a > b, E.Ge: lambda a, b: a >= b,
    E.Xor: lambda a, b: bool(a) != bool(b),
    E.BitAnd: lambda a, b: a & b, E.BitOr: lambda a, b: a | b, E.BitXor: lambda a, b: a ^ b,
    E.BitShiftLeft: lambda a, b: a << b, E.BitShiftRight: lambda a, b: a >> b,
}  # fmt: skip
_UNARY: dict[type, Callable[[Any], Any]] = {
    E.Abs: abs, E.Neg: lambda a: -a, E.Not: lambda a: not a, E.BitNot: lambda a: ~a,
}  # fmt: skip


class Host:
    """One run of a program's host function. ``launch(function, arguments, blocks, strand)`` runs a called function.

    ``strand`` is what the function does, in a sanitized run; each iteration of a parallel loop has one of its own.
    Tasks run one after the other, in the order of their launches, so that their dependencies hold.
    """

    handlers: ClassVar[dict[type, Callable[[Any, Any], Steps]]]
    """What runs each kind of statement."""
    ops: ClassVar[dict[str, Callable[[Any, Bound, Call], Any]]]
    """What computes each operator."""

    def __init__(
        self,
        functions: Mapping[str, Function],
        launch: Launch,
        dims: Mapping[Var, int],
        target: Target,
        strand: Strand | None = None,
    ) -> None:
        self.functions, self.launch, self.target, self.strand = functions, launch, target, strand
        self.env: dict[Var, Any] = dict(dims)

    def run(self, function: Function, args: Sequence[Any]) -> Steps:
        """Run ``function``; gives its returned values. It waits where a launch does."""
        self.env.update(zip(function.params, args))
        return (yield from self._block(function.body)) or []

    @staticmethod
    def scalar(expr: Expr, env: Mapping[Var, Any]) -> Any:
        """The value of a scalar expression; KeyError when a variable has none."""
        if isinstance(expr, Var):
            return env[expr]
        if isinstance(expr, (E.And, E.Or)):
            left = bool(Host.scalar(expr.left, env))
            return left if left is isinstance(expr, E.Or) else bool(Host.scalar(expr.right, env))
        if isinstance(expr, BinaryExpr):
            return _computed(_BINARY[type(expr)], (Host.scalar(expr.left, env), Host.scalar(expr.right, env)), expr)
        if isinstance(expr, Cast):
            return _computed(_CONVERT[_kind(expr.dtype)], (Host.scalar(expr.operand, env),), expr)
        if isinstance(expr, UnaryExpr):
            return _computed(_UNARY[type(expr)], (Host.scalar(expr.operand, env),), expr)
        if isinstance(expr, (ConstInt, ConstFloat, ConstBool)):
            return expr.value
        raise InternalError(f"the host has no value for a {type(expr).__name__}", expr.span)

    # Statements: a block gives what it returned or yielded, None when it ran to its end.

    def _block(self, stmt: Stmt | None) -> Steps:
        if stmt is None:
            return None
        handler = self.handlers.get(type(stmt))
        if handler is None:
            raise InternalError(f"the host cannot run a {type(stmt).__name__}", stmt.span)
        return (yield from handler(self, stmt))

    def _seq(self, stmt: SeqStmts) -> Steps:
        for s in stmt.stmts:
            done = yield from self._block(s)
            if done is not None:
                return done
        return None

    def _assign(self, stmt: AssignStmt) -> Steps:
        self.env[stmt.var] = yield from self._result(stmt.value)

    def _eval(self, stmt: EvalStmt) -> Steps:
        yield from self._result(stmt.expr)

    def _leave(self, stmt: ReturnStmt | YieldStmt) -> Steps:
        values = []
        for v in stmt.values:
            values.append((yield from self._result(v)))
        return values

    def _scope(self, stmt: RuntimeScopeStmt) -> Steps:
        return (yield from self._block(stmt.body))

    def _if(self, stmt: IfStmt) -> Steps:
        taken = stmt.then_body if self._value(stmt.condition) else stmt.else_body
        done = yield from self._block(taken)
        if not stmt.return_vars:
            return done
        self.env.update(zip(stmt.return_vars, done or []))
        return None

    def _for(self, stmt: ForStmt) -> Steps:
        start, stop, step = (self._value(e) for e in (stmt.start, stmt.stop, stmt.step))
        if step == 0:
            raise user_error(ValueError, "a loop's step is 0", stmt.span)
        carried = [self._value(a.init_value) for a in stmt.iter_args]
        outer, iterations = self.strand, []
        for i in range(start, stop, step):
            if outer is not None and stmt.kind is ForKind.Parallel:
                self.strand = outer.fork(f"iteration {i} of the loop at {Location.of(stmt.span)}")
                iterations.append(self.strand)
            self.env[stmt.loop_var] = i
            self.env.update(zip(stmt.iter_args, carried))
            done = yield from self._block(stmt.body)
            if done is not None and not stmt.iter_args:
                return done
            carried = done if done is not None else carried
        self.strand = outer
        if outer is not None:
            outer.join(iterations)
        self.env.update(zip(stmt.return_vars, carried))
        return None

    def _while(self, stmt: WhileStmt) -> Steps:
        carried = [self._value(a.init_value) for a in stmt.iter_args]
        while True:
            self.env.update(zip(stmt.iter_args, carried))
            if not self._value(stmt.condition):
                break
            done = yield from self._block(stmt.body)
            if done is not None and not stmt.iter_args:
                return done
            carried = done if done is not None else carried
        self.env.update(zip(stmt.return_vars, carried))
        return None

    # Values

    def _result(self, expr: Expr) -> Steps:
        """The value of what a statement holds: a launch, a tuple of them, or any expression."""
        if isinstance(expr, Submit):
            retired = expr.predicate is not None and not self._value(expr.predicate)
            # The last value is the task's id, which only other launches read.
            return (*(yield from self._invoke(expr, expr.core_num, retired)), _A_TASK)
        if isinstance(expr, Call) and isinstance(expr.op, GlobalVar):
            results = yield from self._invoke(expr, expr.attrs.get("core_num"))
            return results[0] if len(results) == 1 else tuple(results)
        if isinstance(expr, TupleGetItemExpr):
            return (yield from self._result(expr.tuple))[expr.index]
        return self._value(expr)

    def _value(self, expr: Expr) -> Any:
        if isinstance(expr, Call):
            return self._call(expr)
        if isinstance(expr, MakeTuple):
            return tuple(self._value(e) for e in expr.elements)
        if isinstance(expr, TupleGetItemExpr):
            return self._value(expr.tuple)[expr.index]
        return Host.scalar(expr, self.env)

    def _call(self, call: Call) -> Any:
        handler = self.ops.get(call.op.name)
        if handler is not None:
            return handler(self, rebind(call), call)
        if isinstance(call.op, GlobalVar):
            raise InternalError(f"the launch of {call.op.name!r} stands inside an expression", call.span)
        raise user_error(
            ValueError,
            f"{call.op.name} runs on a core, not on the host",
            call.span,
            hint="put it inside `with pl.at(level=pl.Level.CORE_GROUP):`",
        )

    def reads(self, array: np.ndarray, call: Call) -> None:
        """Note a read of the host's own. Raises the user's error for elements that nothing has written."""
        if self.strand is not None:
            self.strand.loc = Location.of(call.span)
            self.strand.read(array, "a tensor")

    def writes(self, array: np.ndarray, call: Call) -> None:
        """Note a write of the host's own."""
        if self.strand is not None:
            self.strand.loc = Location.of(call.span)
            self.strand.write(array, "a tensor")

    def _invoke(self, call: Call | Submit, core_num: Expr | None, retired: bool = False) -> Steps:
        function = self.functions[call.op.name]
        blocks = 0 if retired else self._blocks(function, call, core_num)
        return (yield from self.launch(function, [self._value(a) for a in call.args], blocks, self.strand))

    def _blocks(self, function: Function, call: Call | Submit, core_num: Expr | None) -> int | None:
        """How many blocks a launch has; None when it is part of the block it stands in."""
        blocks = self._value(core_num) if core_num is not None else function.attrs.get("core_num")
        if blocks is not None and blocks < 1:
            raise user_error(ValueError, f"{function.name} is launched on {blocks} blocks", call.span)
        return blocks

    def _ints(self, dims: Iterable[Expr]) -> list[int]:
        return [int(self._value(d)) for d in dims]


_CONVERT: dict[str, Callable[[Any], Any]] = {"float": float, "bool": bool, "int": math.trunc}


def _kind(dtype: DataType) -> str:
    return "float" if dtype.is_float() else "bool" if dtype is DataType.BOOL else "int"


def _computed(function: Callable[..., Any], operands: Sequence[Any], expr: BinaryExpr | UnaryExpr) -> Any:
    """What ``function`` makes of ``operands``, as ``expr`` holds it. Raises KernelValueError where nothing."""
    try:
        return _held(function(*operands), expr)
    except (ArithmeticError, ValueError) as error:
        shown = " and ".join(map(str, operands))
        raise user_error(ValueError, f"'{type(expr).symbol}' of {shown} has no value: {error}", expr.span) from error


def _held(value: Any, expr: Expr) -> Any:
    """``value`` rounded to a floating-point dtype, or in the two's complement range of an integer one."""
    dtype = expr.dtype
    if dtype.is_float():
        return float(dtype.numpy.type(value))
    if dtype is DataType.BOOL:
        return bool(value)
    low, high = dtype.int_range()
    value = int(value)
    return value if low <= value <= high else (value - low) % (high - low + 1) + low


def _create(host: Host, bound: Bound, call: Call) -> np.ndarray:
    import numpy as np

    from ..simulator.window import unwritten

    type = tensor_type_of(call)
    if bound["init_value"] is not None:
        return np.full(host._ints(type.shape), bound["init_value"], type.dtype.numpy)
    made = unwritten(host._ints(type.shape), type.dtype.numpy)
    if host.strand is not None:
        host.strand.trace.add_fresh(made, f"the tensor made at {Location.of(call.span)}")
    return made


def _slice(host: Host, bound: Bound, call: Call) -> np.ndarray:
    """The part of a tensor, as it lies there; cut at the tensor's edge."""
    from ..simulator.window import part_of

    operand = bound[bound.decl.args[0].name]
    source, type = host._value(operand), tensor_type_of(operand)
    shape, offset = host._ints(bound.dims("shape")), host._ints(bound.dims("offset"))
    leading = len(offset) - len(shape)
    dropped = (*range(leading), *(axis + leading for axis in host._ints(bound.dims("drop_dims") or ())))
    shape = [1] * leading + shape
    for axis, (o, n, extent) in enumerate(zip(offset, shape, source.shape)):
        if o < 0 or o > extent or (o == extent and n and axis in dropped):
            raise user_error(
                ValueError, f"a slice of {shape} at {offset} is outside a tensor of {list(source.shape)}", call.span
            )
    if type.layout is TensorLayout.DN and shape != list(source.shape):
        raise user_error(ValueError, "the host takes no windows of a tensor that lies column by column", call.span)
    window = part_of(source)[tuple(slice(o, o + n) for o, n in zip(offset, shape))]
    return window.squeeze(dropped) if dropped else window


def _assemble(host: Host, bound: Bound, call: Call) -> np.ndarray:
    target, source = host._value(bound["target"]), host._value(bound["source"])
    offset = host._ints(bound.dims("offset"))
    part = target[tuple(slice(o, o + n) for o, n in zip(offset, source.shape))]
    host.reads(source, call)
    host.writes(part, call)
    part[...] = source
    return target


def _reshape(host: Host, bound: Bound, call: Call) -> np.ndarray:
    import numpy as np

    source = host._value(bound[bound.decl.args[0].name])
    shape = host._ints(tensor_type_of(call).shape)
    made = source.reshape(shape) if math.prod(shape) == source.size else None
    if made is None or not (made.size == 0 or np.shares_memory(made, source)):
        raise user_error(
            ValueError, f"{call.op.name} of a window of {list(source.shape)} to {shape} would move elements", call.span
        )
    return made


def _view(host: Host, bound: Bound, call: Call) -> np.ndarray:
    made, source = tensor_type_of(call), tensor_type_of(bound["input"])
    if made.layout is not source.layout:
        raise user_error(
            ValueError,
            f"the host reads a tensor in its own layout {source.layout.name}, not as {made.layout.name}",
            call.span,
            hint="take the view inside `with pl.at(level=pl.Level.CORE_GROUP):`, where the load follows its layout",
        )
    return _reshape(host, bound, call)


def _reinterpret(host: Host, bound: Bound, call: Call) -> np.ndarray:
    made = tensor_type_of(call)
    return host._value(bound["data"]).view(made.dtype.numpy).reshape(host._ints(made.shape))


def _read(host: Host, bound: Bound, call: Call) -> Any:
    first, second = (bound[p.name] for p in bound.decl.args[:2])
    index, source = host._value(second), host._value(first)
    value = source[index].item()
    host.reads(_element(source, index), call)
    return value


def _write(host: Host, bound: Bound, call: Call) -> Any:
    target, index, value = (host._value(bound[p.name]) for p in bound.decl.args[:3])
    target[index] = value
    host.writes(_element(target, index), call)
    return target


def _element(array: np.ndarray, index: int | Sequence[int]) -> np.ndarray:
    return array[tuple(slice(i, i + 1) for i in ([index] if isinstance(index, int) else index))]


def _dim(host: Host, bound: Bound, call: Call) -> int:
    first, second = (bound[p.name] for p in bound.decl.params[:2])
    axis = host._value(second) if isinstance(second, Expr) else second
    return host._value(first).shape[axis]


def _array(host: Host, bound: Bound, call: Call) -> list[int]:
    return [0] * host._value(bound["extent"])


def _element_at(host: Host, bound: Bound, call: Call) -> int:
    array, index = host._value(bound["array"]), _index_in(host, bound, call)
    return array[index]


def _updated(host: Host, bound: Bound, call: Call) -> list[int]:
    array, index = list(host._value(bound["array"])), _index_in(host, bound, call)
    array[index] = host._value(bound["value"])
    return array


def _index_in(host: Host, bound: Bound, call: Call) -> int:
    index, extent = host._value(bound["index"]), len(host._value(bound["array"]))
    if not 0 <= index < extent:
        raise user_error(ValueError, f"element {index} is outside an array of {extent}", call.span)
    return index


_NO_TASK, _A_TASK = -1, 0

Host.ops = {
    "array.create": _array,
    "array.get_element": _element_at,
    "array.update_element": _updated,
    "system.task_invalid": lambda host, bound, call: _NO_TASK,
    "system.task_dummy": lambda host, bound, call: _A_TASK,
    "system.task_is_valid": lambda host, bound, call: host._value(bound["task"]) != _NO_TASK,
    "system.available_aiv_count": lambda host, bound, call: host.target.core_count(CoreType.VECTOR),
    "system.available_cluster_count": lambda host, bound, call: host.target.dies * host.target.groups_per_die,
    "tensor.create": _create,
    "tensor.slice": _slice,
    "tensor.assemble": _assemble,
    "tensor.reshape": _reshape,
    "tensor.view": _view,
    "tensor.reinterpret_view": _reinterpret,
    "tensor.read": _read,
    "tensor.write": _write,
    "tensor.dim": _dim,
}

HOST_OPS = frozenset(Host.ops)
"""Operators the host runs; all others need a core."""

Host.handlers = {
    SeqStmts: Host._seq,
    AssignStmt: Host._assign,
    EvalStmt: Host._eval,
    ReturnStmt: Host._leave,
    YieldStmt: Host._leave,
    IfStmt: Host._if,
    ForStmt: Host._for,
    WhileStmt: Host._while,
    RuntimeScopeStmt: Host._scope,
}
