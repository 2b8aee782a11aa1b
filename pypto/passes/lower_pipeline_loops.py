"""LowerPipelineLoops: the body of a ``pl.pipeline(.., stage=F)`` loop is written out F times an iteration.

The copies have variables of their own, so that each stage can have its own buffers and loads of the next can run ahead.
What F does not divide follows the loop: as copies when the bounds are constant, else chosen at run time by how many
iterations are left. The loop stays a pipeline, of one stage, for CanonicalizeIOOrder to find.

Every tile a copy makes says to which pipeline and stage it belongs, ``pipeline_membership`` as ``group:stage``, one for
each pipeline around it. The accumulator of a matrix product does not: the cube is one, and finishes one product before
the next. It does where the loop asks for two accumulators (``pipeline_double_buffer_c``), for that loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import user_error
from ..ir import expr as E
from ..ir.enums import ForKind, MemorySpace
from ..ir.expr import Call, ConstInt, Expr, IterArg, Var, const_value
from ..ir.functor import deep_clone
from ..ir.scalar import binary, cast_scalar
from ..ir.span import Span
from ..ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    Stmt,
    YieldStmt,
    flatten_to_stmts,
    seq,
)
from ..ir.types import ScalarType, TileType
from ..ir.visitor import Rewriter
from ..ops.registry import Core
from .base import P, Pass, function_pass
from .bodies import BodyRewriter

MEMBERSHIP = "pipeline_membership"
OVERLAP_STORES = "pipeline_overlap_stores"
"""On a loop: False where the stages must not have results of their own to store."""
DOUBLE_BUFFER_C = "pipeline_double_buffer_c"
"""On a loop: True where two stages have an accumulator each, one to drain while the other fills."""
_PROPERTIES = frozenset(
    {P.SSAForm, P.SplitIncoreOrch, P.IncoreTileOps, P.TileOps2D, P.TileMemoryInferred, P.NormalizedStmtStructure}
)


def lower_pipeline_loops() -> Pass:
    """The pass; see the module. Raises KernelValueError for a step that is no constant, or runs down to a bound that
    is none."""
    return function_pass(
        "LowerPipelineLoops",
        lambda function: _Lowerer().rewrite(function),
        requires=_PROPERTIES,
        produces=_PROPERTIES,
        looks_for=(ForStmt,),
    )


class _Lowerer(BodyRewriter):
    """Lowers inner loops first: an outer pipeline copies them as they have become."""

    def __init__(self) -> None:
        super().__init__()
        self._groups = 0

    def visit_for_stmt(self, op: ForStmt) -> Any:
        op = op.replace(body=self.body(op.body))
        stages = op.attrs.get("pipeline_stages", 1)
        if op.kind is not ForKind.Pipeline or stages <= 1:
            return op
        step = const_value(op.step)
        if not isinstance(step, int) or step == 0:
            raise user_error(
                ValueError,
                "a pipelined loop needs a constant step other than 0",
                op.span,
                "write the step as a number, or use pl.range",
            )
        group, self._groups = self._groups, self._groups + 1
        return _Pipeline(op, stages, step, group).lower()


class _Pipeline:
    """One loop and what becomes of it."""

    def __init__(self, loop: ForStmt, stages: int, step: int, group: int) -> None:
        self._loop, self._stages, self._step, self._group = loop, stages, step, group
        self._dtype = loop.loop_var.dtype
        self._span: Span = loop.span

    def lower(self) -> Stmt | list[Stmt]:
        start, stop = const_value(self._loop.start), const_value(self._loop.stop)
        if isinstance(start, int) and isinstance(stop, int):
            return self._static(start, len(range(start, stop, self._step)))
        if self._step < 0:
            raise user_error(
                ValueError,
                "a pipelined loop that counts down needs constant bounds",
                self._span,
                "count up and compute the index, or use pl.range",
            )
        return self._dynamic()

    # Copies

    def _const(self, value: int) -> ConstInt:
        return ConstInt(value, self._dtype, self._span)

    def _offset(self, base: Expr, iterations: int) -> Expr:
        """The index ``iterations`` after ``base``."""
        if isinstance(base, ConstInt):
            return self._const(base.value + iterations * self._step)
        return base if iterations == 0 else binary(E.Add, base, self._const(iterations * self._step), self._span)

    def _copies(self, count: int, base: Expr, carried: Sequence[Expr]) -> tuple[list[Stmt], Sequence[Expr]]:
        """``count`` copies of the body from index ``base`` on, and what the last hands on."""
        stmts: list[Stmt] = []
        for stage in range(count):
            given = [(self._loop.loop_var, self._offset(base, stage)), *zip(self._loop.iter_args, carried)]
            body, _ = deep_clone(self._loop.body, given)
            place = f"{self._group}:{stage}"
            made = flatten_to_stmts(_Tagger(place, bool(self._loop.attrs.get(DOUBLE_BUFFER_C))).rewrite(body))
            last = made[-1] if made else None
            if isinstance(last, YieldStmt):
                carried = list(last.values)
                made.pop()
            stmts += made
        return stmts, carried

    def _main(self, stop: Expr, results: Sequence[Var]) -> ForStmt:
        """The loop over whole groups of iterations."""
        loop = self._loop
        index = Var(loop.loop_var.name_hint, loop.loop_var.type, loop.loop_var.span)
        carried = [IterArg(a.name_hint, a.type, a.init_value, a.span) for a in loop.iter_args]
        body, handed_on = self._copies(self._stages, index, carried)
        if carried:
            body.append(YieldStmt(handed_on, self._span))
        return loop.replace(
            loop_var=index,
            stop=stop,
            step=self._const(self._stages * self._step),
            iter_args=type(loop.iter_args)(carried),
            body=seq(body, self._span),
            return_vars=type(loop.return_vars)(results),
            attrs={**loop.attrs, "pipeline_stages": 1},
        )

    def _fresh_results(self, suffix: str) -> list[Var]:
        return [Var(f"{v.name_hint}_{suffix}", v.type, v.span) for v in self._loop.return_vars]

    # Constant bounds

    def _static(self, start: int, trips: int) -> Stmt | list[Stmt]:
        loop = self._loop
        if trips == 0:
            attrs = {k: v for k, v in loop.attrs.items() if k != "pipeline_stages"}
            return loop.replace(kind=ForKind.Sequential, attrs=attrs)
        whole, left = divmod(trips, self._stages)
        end = start + whole * self._stages * self._step
        stmts: list[Stmt] = []
        carried: Sequence[Expr] = [a.init_value for a in loop.iter_args]
        if whole:
            results = self._fresh_results("main") if left else list(loop.return_vars)
            stmts.append(self._main(self._const(end), results))
            carried = results
        if left:
            tail, carried = self._copies(left, self._const(end), carried)
            stmts += tail
            stmts += [AssignStmt(v, value, self._span) for v, value in zip(loop.return_vars, carried)]
        return stmts

    # Bounds known at run time

    def _dynamic(self) -> list[Stmt]:
        loop = self._loop
        end, end_value, left_value = self._extent()
        results = self._fresh_results("main")
        left = Var("unroll_rem", ScalarType(self._dtype), self._span)
        return [
            AssignStmt(end, end_value, self._span),
            self._main(end, results),
            AssignStmt(left, left_value, self._span),
            *self._tail(end, left, results, list(loop.return_vars)),
        ]

    def _extent(self) -> tuple[Var, Expr, Expr]:
        """Where whole groups end, as a variable and its value, and the number of iterations left after them."""
        loop, span = self._loop, self._span

        def build(cls: type[E.BinaryExpr], left: Expr, right: Expr | int) -> Expr:
            return binary(cls, left, self._const(right) if isinstance(right, int) else right, span)

        # A stop below the start is no iterations; divided, it would round away from them.
        trips = build(E.Max, build(E.Sub, loop.stop, loop.start), 0)
        if self._step != 1:
            trips = build(E.FloorDiv, build(E.Add, trips, self._step - 1), self._step)
        groups = build(E.FloorDiv, trips, self._stages)
        end = Var("unroll_main_end", ScalarType(self._dtype), span)
        return (
            end,
            build(E.Add, loop.start, build(E.Mul, groups, self._stages * self._step)),
            build(E.Sub, trips, build(E.Mul, groups, self._stages)),
        )

    def _tail(self, end: Var, left: Var, carried: Sequence[Var], results: Sequence[Var]) -> list[Stmt]:
        """A choice among the possible numbers of iterations left; none left hands on what was carried."""
        inner: list[Stmt] = []
        handed: Sequence[Expr] = carried
        for count in range(self._stages - 1, 0, -1):
            body, values = self._copies(count, end, carried)
            bound = list(results) if count == 1 else self._fresh_results(f"rem{count}")
            otherwise = inner
            if bound:
                body.append(YieldStmt(values, self._span))
                otherwise = [*inner, YieldStmt(handed, self._span)]
            condition = binary(E.Eq, left, self._const(count), self._span)
            else_body = seq(otherwise, self._span) if otherwise else None
            inner = [IfStmt(condition, seq(body, self._span), else_body, bound, self._span)]
            handed = bound
        return inner


class _Tagger(Rewriter):
    """Adds a pipeline and stage to the calls that make tiles, and converts the constants an index has become."""

    def __init__(self, place: str, accumulators: bool) -> None:
        super().__init__()
        self._place, self._accumulators = place, accumulators

    def visit_cast(self, op: Any) -> Expr:
        made = self.generic(op)
        return cast_scalar(made.operand, made.dtype, made.span) if isinstance(made.operand, ConstInt) else made

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        op = self.generic(op)
        call = op.value
        if not isinstance(call, Call) or not isinstance(call.type, TileType):
            return op
        if is_accumulator(call) and not self._accumulators:
            return op
        known = call.attrs.get(MEMBERSHIP)
        place = f"{known},{self._place}" if known else self._place
        return op.replace(value=call.replace(attrs={**call.attrs, MEMBERSHIP: place}))


def is_accumulator(call: Call) -> bool:
    """Whether a call is a matrix product, which leaves its result in Acc."""
    on_cube = call.op.decl is not None and call.op.decl.core is Core.CUBE
    return on_cube and isinstance(call.type, TileType) and call.type.memory_space is MemorySpace.Acc
