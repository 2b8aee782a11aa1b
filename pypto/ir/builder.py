"""Building IR from Python, one statement after another, with ``with`` blocks for what nests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, TypeVar

from .enums import (
    CompactMode,
    ForKind,
    FunctionType,
    Level,
    MemorySpace,
    PadValue,
    ParamDirection,
    Role,
    TileLayout,
)
from .expr import Call, Expr, GlobalVar, IterArg, MakeTuple, Var, index_const
from .memref import MemRef
from .program import Function, Program
from .scalar import scalar_const
from .span import UNKNOWN_SPAN, Span
from .stmt import AssignStmt, BreakStmt, ContinueStmt, EvalStmt, ForStmt, IfStmt, ReturnStmt, SeqStmts, Stmt, WhileStmt
from .types import TensorType, TileType, TileView, TupleType, Type, UnknownType

S = TypeVar("S", bound=Stmt)


def as_expr(value: Expr | int | float | bool, span: Span = UNKNOWN_SPAN) -> Expr:
    """An expression as it is, a Python number as a constant (integers INDEX, floats FP32)."""
    return value if isinstance(value, Expr) else scalar_const(value, None, span)


def _block(stmts: list[Stmt], span: Span) -> Stmt:
    return stmts[0] if len(stmts) == 1 else SeqStmts(stmts, span)


class _Block:
    """A ``with`` block of the builder: statements emitted inside belong to it."""

    kind = ""
    _finish: Callable[[], None]
    """What the block becomes when it ends without an error."""

    def __init__(self, builder: IRBuilder, span: Span | None) -> None:
        self.builder, self.span = builder, span or Span.here(2)
        self.stmts: list[Stmt] = []

    def __enter__(self) -> Any:
        self.builder._open(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.builder._close(self)
        if error is None:
            self._finish()


class _Results(_Block):
    """A block whose values are seen after it."""

    def __init__(self, builder: IRBuilder, span: Span | None) -> None:
        super().__init__(builder, span)
        self.return_vars: list[Var] = []

    def output(self, index: int = 0) -> Var:
        """The variable that receives value ``index``. Raises IndexError when there are not so many."""
        if not 0 <= index < len(self.return_vars):
            raise IndexError(f"Return variable index {index} out of range: there are {len(self.return_vars)}")
        return self.return_vars[index]

    def outputs(self) -> list[Var]:
        return list(self.return_vars)


class FunctionBuilder(_Block):
    """The function under construction; `get_result` after the block."""

    kind = "function"

    def __init__(
        self,
        builder: IRBuilder,
        name: str,
        type: FunctionType,
        level: Level | None,
        role: Role | None,
        span: Span | None,
    ) -> None:
        super().__init__(builder, span)
        self.name, self.type, self.level, self.role = name, type, level, role
        self.params: list[tuple[Var, ParamDirection]] = []
        self.return_types: list[Type] = []
        self._result: Function | None = None

    def param(
        self, name: str, type: Type, *, span: Span | None = None, direction: ParamDirection = ParamDirection.In
    ) -> Var:
        """Add a parameter."""
        var = Var(name, type, span or Span.here())
        self.params.append((var, direction))
        return var

    def return_type(self, type: Type) -> None:
        """Add a return type."""
        self.return_types.append(type)

    def _finish(self) -> None:
        body = _block(self.stmts, self.span)
        self._result = Function(
            self.name, self.params, self.return_types, body, self.span, self.type, self.level, self.role
        )

    def get_result(self) -> Function:
        """The finished function. Raises RuntimeError before the block ends."""
        if self._result is None:
            raise RuntimeError(f"function {self.name!r} is not finished: its block has not ended")
        return self._result


class LoopBuilder(_Results):
    """A loop under construction: carried values are declared in pairs, `iter_arg` and `return_var`."""

    kind = "loop"

    def __init__(self, builder: IRBuilder, head: tuple[Any, ...], loop_kind: ForKind, span: Span | None) -> None:
        super().__init__(builder, span)
        self.head, self.loop_kind = head, loop_kind
        self.iter_args: list[IterArg] = []
        self._result: ForStmt | WhileStmt | None = None

    def iter_arg(
        self, name: str, init_value: Expr | int | float, *, type: Type | None = None, span: Span | None = None
    ) -> IterArg:
        """A carried value. Raises ValueError when ``type`` is not the initial value's."""
        at = span or Span.here()
        init = as_expr(init_value, at)
        _check_type(name, type, init.type)
        arg = IterArg(name, init.type, init, at)
        self.iter_args.append(arg)
        return arg

    def return_var(self, name: str, *, type: Type | None = None, span: Span | None = None) -> Var:
        """The variable that receives the next carried value. Raises ValueError for another type than that has."""
        carried = self.iter_args[len(self.return_vars)].type if len(self.return_vars) < len(self.iter_args) else type
        if carried is None:
            raise RuntimeError(f"return variable {name!r} has no iter_arg to receive")
        _check_type(name, type, carried)
        var = Var(name, carried, span or Span.here())
        self.return_vars.append(var)
        return var

    def _finish(self) -> None:
        args, results = len(self.iter_args), len(self.return_vars)
        if args != results:
            raise RuntimeError(f"a loop has as many return variables as iter_args, not {results} for {args}")
        body = _block(self.stmts, self.span)
        if len(self.head) == 1:
            made: ForStmt | WhileStmt = WhileStmt(self.head[0], self.iter_args, body, self.return_vars, self.span)
        else:
            loop_var, start, stop, step = self.head
            made = ForStmt(
                loop_var, start, stop, step, self.iter_args, body, self.return_vars, self.span, self.loop_kind
            )
        self._result = made
        self.builder.emit(made)

    def get_result(self) -> ForStmt | WhileStmt:
        """The finished loop. Raises RuntimeError before its block ends."""
        if self._result is None:
            raise RuntimeError("the loop is not finished: its block has not ended")
        return self._result


class IfBuilder(_Results):
    """A branch under construction: ``then`` first, `else_` starts the other side."""

    kind = "if"

    def __init__(self, builder: IRBuilder, condition: Expr, span: Span | None) -> None:
        super().__init__(builder, span)
        self.condition = condition
        self._then: list[Stmt] | None = None

    def return_var(self, name: str, type: Type, *, span: Span | None = None) -> Var:
        """A variable that receives what the taken side yields."""
        var = Var(name, type, span or Span.here())
        self.return_vars.append(var)
        return var

    def else_(self) -> None:
        """Statements from here on are the other side. Raises RuntimeError the second time."""
        if self._then is not None:
            raise RuntimeError("a branch has one else")
        self._then, self.stmts = self.stmts, []

    def _finish(self) -> None:
        then = self.stmts if self._then is None else self._then
        other = None if self._then is None else _block(self.stmts, self.span)
        if self.return_vars and other is None:
            raise RuntimeError("a branch with return variables needs an else")
        self.builder.emit(IfStmt(self.condition, _block(then, self.span), other, self.return_vars, self.span))


class ProgramBuilder(_Block):
    """The program under construction; `get_result` after the block."""

    kind = "program"

    def __init__(self, builder: IRBuilder, name: str, span: Span | None) -> None:
        super().__init__(builder, span)
        self.name = name
        self.globals: dict[str, GlobalVar] = {}
        self.functions: list[Function] = []
        self._result: Program | None = None

    def declare_function(self, name: str) -> GlobalVar:
        """Make ``name`` callable before it is built."""
        return self.globals.setdefault(name, GlobalVar(name))

    def get_global_var(self, name: str) -> GlobalVar:
        """The global variable of a declared function. Raises RuntimeError for another name."""
        if name not in self.globals:
            raise RuntimeError(f"function {name!r} is not declared")
        return self.globals[name]

    def result_type(self, name: str) -> Type | None:
        """The type of a call of the function ``name``; None when it is not built, or returns nothing."""
        types = next((f.return_types for f in self.functions if f.name == name), ())
        return TupleType(types) if len(types) > 1 else types[0] if types else None

    def add_function(self, function: Function) -> None:
        self.declare_function(function.name)
        self.functions.append(function)

    def _finish(self) -> None:
        self._result = Program({self.globals[f.name]: f for f in self.functions}, self.name, self.span)

    def get_result(self) -> Program:
        """The finished program. Raises RuntimeError before the block ends."""
        if self._result is None:
            raise RuntimeError(f"program {self.name!r} is not finished: its block has not ended")
        return self._result


def _check_type(name: str, given: Type | None, inferred: Type) -> None:
    if given is not None and given != inferred:
        raise ValueError(f"Type mismatch for {name!r}: stated {given}, the value has {inferred}")


class IRBuilder:
    """Builds functions and programs statement by statement."""

    def __init__(self) -> None:
        self._stack: list[_Block] = []

    def _open(self, block: _Block) -> None:
        if isinstance(block, FunctionBuilder) and self.in_function():
            raise RuntimeError(f"Cannot begin function {block.name!r} inside another function")
        if isinstance(block, (LoopBuilder, IfBuilder)) and not self._stack:
            raise RuntimeError(f"a {block.kind} belongs into a function")
        self._stack.append(block)

    def _close(self, block: _Block) -> None:
        self._stack.remove(block)

    def _inside(self, kind: str) -> bool:
        return any(b.kind == kind for b in self._stack)

    def in_function(self) -> bool:
        return self._inside("function")

    def in_loop(self) -> bool:
        return self._inside("loop")

    def in_if(self) -> bool:
        return self._inside("if")

    # Blocks

    def program(self, name: str, span: Span | None = None) -> ProgramBuilder:
        """The block of a program, in which functions are built."""
        return ProgramBuilder(self, name, span or Span.here())

    def function(
        self,
        name: str,
        span: Span | None = None,
        type: FunctionType = FunctionType.Opaque,
        level: Level | None = None,
        role: Role | None = None,
    ) -> FunctionBuilder:
        """The block of a function. Entering it raises RuntimeError inside another function."""
        return FunctionBuilder(self, name, type, level, role, span or Span.here())

    def for_loop(
        self,
        loop_var: Var,
        start: Expr | int,
        stop: Expr | int,
        step: Expr | int,
        span: Span | None = None,
        kind: ForKind = ForKind.Sequential,
    ) -> LoopBuilder:
        """The block of a loop, run for each ``loop_var`` from ``start`` below ``stop``; numbers are indices."""
        at = span or Span.here()
        return LoopBuilder(self, (loop_var, as_expr(start, at), as_expr(stop, at), as_expr(step, at)), kind, at)

    def while_loop(self, condition: Expr, span: Span | None = None) -> LoopBuilder:
        """The block of a loop, run as long as ``condition``, a BOOL scalar, holds."""
        return LoopBuilder(self, (condition,), ForKind.Sequential, span or Span.here())

    def if_stmt(self, condition: Expr | int | bool, span: Span | None = None) -> IfBuilder:
        """The block of a branch; `IfBuilder.else_` begins the other."""
        at = span or Span.here()
        return IfBuilder(self, as_expr(condition, at), at)

    # Statements

    def emit(self, stmt: Stmt) -> None:
        """Append a statement to the innermost block. Raises RuntimeError outside of one."""
        if not self._stack:
            raise RuntimeError("a statement belongs into a function")
        self._stack[-1].stmts.append(stmt)

    def _add(self, stmt: S) -> S:
        self.emit(stmt)
        return stmt

    def var(self, name: str, type: Type, span: Span | None = None) -> Var:
        """A variable, not yet assigned."""
        return Var(name, type, span or Span.here())

    def assign(self, var: Var, value: Expr | int | float, span: Span | None = None) -> AssignStmt:
        """Append ``var = value``; a Python number becomes a constant."""
        at = span or Span.here()
        return self._add(AssignStmt(var, as_expr(value, at), at))

    def let(self, name: str, value: Expr | int | float, *, type: Type | None = None, span: Span | None = None) -> Var:
        """A new variable that holds ``value``. Raises TypeError when ``type`` is of another kind than the value's."""
        at = span or Span.here()
        expr = self._typed(as_expr(value, at))
        if type is not None and type.__class__ is not expr.type.__class__:
            raise TypeError(f"type {type} of {name!r} is incompatible with the value's type {expr.type}")
        var = Var(name, type or expr.type, at)
        self.emit(AssignStmt(var, expr, at))
        return var

    def _typed(self, expr: Expr) -> Expr:
        """A call of a function of the program that is built already, with that function's result type."""
        if not isinstance(expr, Call) or not isinstance(expr.op, GlobalVar) or not isinstance(expr.type, UnknownType):
            return expr
        for block in self._stack:
            found = block.result_type(expr.op.name) if isinstance(block, ProgramBuilder) else None
            if found is not None:
                return expr.replace(type=found)
        return expr

    def make_tuple(self, elements: Iterable[Expr], span: Span | None = None) -> MakeTuple:
        """Several values as one."""
        return MakeTuple(elements, span or Span.here())

    def eval_stmt(self, expr: Expr, span: Span | None = None) -> EvalStmt:
        """Append ``expr``, computed for its effect."""
        return self._add(EvalStmt(self._typed(expr), span or Span.here()))

    def return_stmt(self, values: Expr | Iterable[Expr] | None = None, span: Span | None = None) -> ReturnStmt:
        """Append a return of one value, several or none."""
        items = [] if values is None else [values] if isinstance(values, Expr) else list(values)
        return self._add(ReturnStmt(items, span or Span.here()))

    def break_stmt(self, span: Span | None = None) -> BreakStmt:
        """Append the end of the innermost loop."""
        return self._add(BreakStmt(span or Span.here()))

    def continue_stmt(self, span: Span | None = None) -> ContinueStmt:
        """Append the end of this round of the innermost loop."""
        return self._add(ContinueStmt(span or Span.here()))

    # Types

    def memref(
        self, base: MemorySpace | Var | str, byte_offset: Expr | int, size: int, id: int | None = None
    ) -> MemRef:
        """A byte range of an allocation."""
        if not isinstance(base, (MemorySpace, Var, str)):
            raise TypeError(
                "memref accepts exactly three positional arguments: base (a memory, a variable or a name), byte_offset "
                f"and size; base is no {base.__class__.__name__}"
            )
        return MemRef(base, index_const(byte_offset) if isinstance(byte_offset, int) else byte_offset, size, id)

    def tile_view(
        self,
        valid_shape: Iterable[Expr | int],
        stride: Iterable[Expr | int] = (),
        start_offset: Expr | int | None = None,
        blayout: TileLayout = TileLayout.row_major,
        slayout: TileLayout = TileLayout.none_box,
        fractal: int = 512,
        pad: PadValue = PadValue.null,
        span: Span = UNKNOWN_SPAN,
        *,
        compact: CompactMode = CompactMode.null,
    ) -> TileView:
        """A view of a tile; ``span`` is where a ``start_offset`` given as a number comes from."""
        start = index_const(start_offset, span) if isinstance(start_offset, int) else start_offset
        return TileView(valid_shape, stride, start, blayout, slayout, fractal, pad, compact)

    tensor_type, tile_type = TensorType, TileType
