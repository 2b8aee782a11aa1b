"""InlineFunctions: every inline function is spliced into its call sites and goes.

A call site gets the function's body with its own copies of the local variables, named ``<name>_inline<n>``.
Parameters become the arguments. A tensor parameter the body writes into is the argument itself; an In parameter that
the body assigns another value is copied first.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

from ..errors import user_error
from ..ir.enums import FunctionType, ParamDirection
from ..ir.expr import Call, Expr, GlobalVar, IterArg, MakeTuple, Submit, TupleGetItemExpr, Var
from ..ir.node import updated
from ..ir.program import Function, Program, summarize
from ..ir.stmt import AssignStmt, EvalStmt, ReturnStmt, SeqStmts, Stmt, WhileStmt, flatten_to_stmts, seq
from ..ir.types import ShapedType
from ..ir.visitor import Rewriter, Visitor, find_all, walk
from .base import P, Pass, program_pass
from .hoisting import Hoister
from .rebinding import rebind
from .return_lineage import written_arg


def inline_functions() -> Pass:
    """The pass; see the module. Raises ValueError for inline functions that call each other in a cycle."""
    return program_pass("InlineFunctions", _inline, produces={P.InlineFunctionsEliminated})


def _inline(program: Program) -> Program:
    inline = {f.name: f for f in program.functions.values() if f.func_type is FunctionType.Inline}
    if not inline:
        return program
    inliner = _Inliner(inline)
    for name in inline:
        inliner.expanded(name, ())
    return program.with_functions(
        rebind(inliner.rewrite(f)) if not summarize(f).callees.isdisjoint(inline) else f
        for f in program.functions.values()
        if f.func_type is not FunctionType.Inline
    )


class _Inliner(Hoister):
    """Splices calls of inline functions wherever they stand."""

    def __init__(self, functions: dict[str, Function]) -> None:
        super().__init__()
        self._functions = functions
        self._expanded: dict[str, Function] = {}
        self._count = 0

    def expanded(self, name: str, callers: tuple[str, ...]) -> Function:
        """An inline function with the inline functions it calls spliced in."""
        known = self._expanded.get(name)
        if known is not None:
            return known
        function = self._functions[name]
        if name in callers:
            path = " -> ".join((*callers[callers.index(name) :], name))
            raise user_error(
                ValueError, f"Cycle detected among Inline functions: {path}", function.span,
                "an inline function cannot call itself, directly or through others",
            )  # fmt: skip
        for callee in sorted(summarize(function).callees & self._functions.keys()):
            self.expanded(callee, (*callers, name))
        self._expanded[name] = self.rewrite(function)
        return self._expanded[name]

    def visit_call(self, op: Call) -> Any:
        if not isinstance(op.op, GlobalVar) or op.op.name not in self._functions:
            return self.generic(op)
        values = self._splice(_with_args(self, op))
        return values[0] if len(values) == 1 else MakeTuple(values, op.span)

    def visit_submit(self, op: Submit) -> Any:
        if op.op.name in self._functions:
            raise user_error(ValueError, f"inline function '{op.op.name}' cannot be submitted as a task", op.span)
        return self.generic(op)

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        made = super().visit_seq_stmts(op)
        if made is op or not isinstance(made, SeqStmts):
            return made
        return seq(_without_tuples(list(made.stmts)), made.span)

    def visit_eval_stmt(self, op: EvalStmt) -> Any:
        call = op.expr
        if isinstance(call, Call) and isinstance(call.op, GlobalVar) and call.op.name in self._functions:
            self._splice(_with_args(self, call))
            spliced, self.pending = self.pending, []
            return spliced
        return super().visit_eval_stmt(op)

    def visit_return_stmt(self, op: ReturnStmt) -> Any:
        values = [self.rewrite(v) for v in op.value]
        if len(values) == 1 and isinstance(values[0], MakeTuple) and not isinstance(op.value[0], MakeTuple):
            values = list(values[0].elements)
        return self.after_pending(op.replace(value=updated(op.value, values)))

    def visit_assign_stmt(self, op: AssignStmt) -> Any:
        made = super().visit_assign_stmt(op)
        last = made[-1] if isinstance(made, list) else made
        if last.value is last.var and last is not op:
            return made[:-1] if isinstance(made, list) else []
        return made

    def _splice(self, call: Call) -> list[Expr]:
        """Put the callee's body into ``pending``; what it returns."""
        function = self.expanded(call.op.name, ())
        copy = _Copy(self._count)
        self._count += 1
        copy.bind(function, call)
        self.pending.extend(copy.prologue)
        stmts, returned = _body_and_results(function)
        _check_no_return(stmts, function)
        for stmt in stmts:
            made = copy.rewrite(stmt)
            self.pending.extend(made if isinstance(made, list) else [made])
        return [copy.rewrite(v) for v in returned]

    def hoisted_from_condition(self, loop: WhileStmt, hoisted: list[Stmt]) -> None:
        raise user_error(
            NotImplementedError, "a loop's condition cannot call an inline function", loop.span,
            "compute the condition into a variable before the loop and again at the end of its body",
        )  # fmt: skip


def _body_and_results(function: Function) -> tuple[list[Stmt], Sequence[Expr]]:
    """The statements before a function's final return, and what it returns; a tuple made only to return goes."""
    stmts = flatten_to_stmts(function.body)
    last = stmts[-1] if stmts else None
    if not isinstance(last, ReturnStmt):
        return stmts, ()
    values = last.value
    stmts.pop()
    made = stmts[-1] if stmts else None
    if len(values) != 1 or not isinstance(made, AssignStmt) or made.var is not values[0]:
        return stmts, values
    return (stmts[:-1], made.value.elements) if isinstance(made.value, MakeTuple) else (stmts, values)


def _without_tuples(stmts: list[Stmt]) -> list[Stmt]:
    """Results that are made a tuple and taken apart at once, assigned one by one."""
    if not any(isinstance(s, AssignStmt) and isinstance(s.value, MakeTuple) for s in stmts):
        return stmts
    uses = Counter(node for s in stmts for node in walk(s) if type(node) is Var)
    made: list[Stmt] = []
    pending = deque(stmts)
    while pending:
        stmt = pending.popleft()
        made.append(stmt)
        if not isinstance(stmt, AssignStmt) or not isinstance(stmt.value, MakeTuple):
            continue
        parts: list[tuple[AssignStmt, Expr]] = []
        for part in pending:
            if not isinstance(part, AssignStmt):
                break
            value = part.value
            if not isinstance(value, TupleGetItemExpr) or value.tuple is not stmt.var:
                break
            parts.append((part, stmt.value.elements[value.index]))
        clobbered = any(p.var is v for n, (p, _) in enumerate(parts) for _, v in parts[n + 1 :])
        if not clobbered and uses[stmt.var] == len(parts):
            made.pop()
            for part, element in parts:
                pending.popleft()
                made.append(part.replace(value=element))
    return made


def _with_args(rewriter: Rewriter, call: Call) -> Call:
    return call.replace(args=rewriter.rewrite_list(call.args, rewriter.rewrite))


def _check_no_return(stmts: list[Stmt], function: Function) -> None:
    for stmt in stmts:
        for node in find_all(stmt, ReturnStmt):
            raise user_error(
                NotImplementedError, f"inline function '{function.name}' returns before its end", node.span,
                "an inline function has one return, its last statement",
            )  # fmt: skip


class _Copy(Rewriter):
    """Copies a body: parameters become arguments, definitions new variables."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._suffix = f"_inline{number}"
        self.prologue: list[Stmt] = []

    def bind(self, function: Function, call: Call) -> None:
        """Map parameters and the dynamic extents of their types to what the call passes."""
        found = _Assigned(function.body)
        for (param, direction), arg in zip(function.directed_params(), call.args):
            own = param in found.rebound and direction is ParamDirection.In
            if own or (param in found.assigned and not isinstance(arg, Var)):
                local = Var(param.name_hint + self._suffix, arg.type, param.span)
                self.prologue.append(AssignStmt(local, arg, call.span))
                self.vars[param] = local
            else:
                self.vars[param] = arg
            if isinstance(param.type, ShapedType) and isinstance(arg.type, ShapedType):
                for mine, given in zip(param.type.shape, arg.type.shape):
                    if isinstance(mine, Var):
                        self.vars.setdefault(mine, given)

    def define(self, var: Any) -> Any:
        known = self.vars.get(var)
        if known is not None:
            return known
        name, type = var.name_hint + self._suffix, self.rewrite_type(var.type)
        if isinstance(var, IterArg):
            made: Var = IterArg(name, type, self.rewrite(var.init_value), var.span)
        elif isinstance(var, Var) and var.__class__ is Var:
            made = Var(name, type, var.span)
        else:
            made = self.generic(var)
        self.vars[var] = made
        return made


class _Assigned(Visitor):
    """Variables a body assigns, and those it assigns something else than themselves with a part overwritten."""

    def __init__(self, body: Stmt) -> None:
        self.assigned: set[Var] = set()
        self.rebound: set[Var] = set()
        self.visit(body)

    def define(self, var: Any) -> None:
        super().define(var)
        self.assigned.add(var)
        self.rebound.add(var)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self.assigned.add(op.var)
        if written_arg(op.value) is not op.var:
            self.rebound.add(op.var)
