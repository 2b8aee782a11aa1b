"""NormalizeStmtStructure: no sequence inside a sequence, none of one statement."""

from __future__ import annotations

from ..ir.program import Function
from ..ir.stmt import SeqStmts, Stmt, seq
from ..ir.visitor import Rewriter, splice
from .base import P, Pass, function_pass


def normalize_stmt_structure() -> Pass:
    """The pass; see the module."""
    return function_pass("NormalizeStmtStructure", normalize, produces={P.NormalizedStmtStructure})


def normalize(function: Function) -> Function:
    """``function`` with its body in normal form."""
    return _Normalizer().rewrite(function)


class _Normalizer(Rewriter):
    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        made = [self.rewrite(s) for s in op.stmts]
        if len(made) != 1 and all(a is b and not isinstance(a, SeqStmts) for a, b in zip(made, op.stmts)):
            return op
        return seq(splice(made), op.span)

    def visit_assign_stmt(self, op: Stmt) -> Stmt:
        """Holds no statements."""
        return op

    visit_eval_stmt = visit_yield_stmt = visit_return_stmt = visit_assign_stmt

    def visit_function(self, op: Function) -> Function:
        return op.replace(body=self.rewrite(op.body))
