"""CtrlFlowTransform: the structured loop computes what the loop with exits does."""

from __future__ import annotations

import pytest
from checking import findings, unchanged

import pypto.language as pl
from pypto import ir, passes

P = passes.IRProperty


def evaluate(expr, env):
    """The value of a scalar expression."""
    if isinstance(expr, ir.Var):
        return env[expr]
    if isinstance(expr, (ir.ConstInt, ir.ConstBool)):
        return expr.value
    if isinstance(expr, ir.UnaryExpr):
        value = evaluate(expr.operand, env)
        return not value if isinstance(expr, ir.Not) else -value if isinstance(expr, ir.Neg) else value
    left, right = evaluate(expr.left, env), evaluate(expr.right, env)
    operators = {
        ir.Add: lambda: left + right, ir.Sub: lambda: left - right, ir.Mul: lambda: left * right,
        ir.FloorMod: lambda: left % right, ir.Lt: lambda: left < right, ir.Gt: lambda: left > right,
        ir.Eq: lambda: left == right, ir.Ne: lambda: left != right, ir.Le: lambda: left <= right,
        ir.Ge: lambda: left >= right, ir.And: lambda: left and right, ir.Or: lambda: left or right,
    }  # fmt: skip
    return operators[type(expr)]()


class Left(Exception):
    """A break or continue on its way to its loop."""


def execute(stmt, env):
    """Run scalar statements; what a body yields, or the function returns."""
    if isinstance(stmt, ir.SeqStmts):
        result = None
        for s in stmt.stmts:
            result = execute(s, env)
            if isinstance(s, ir.ReturnStmt):
                break
        return result
    if isinstance(stmt, ir.AssignStmt):
        env[stmt.var] = evaluate(stmt.value, env)
    elif isinstance(stmt, (ir.YieldStmt, ir.ReturnStmt)):
        return [evaluate(v, env) for v in stmt.values]
    elif isinstance(stmt, (ir.BreakStmt, ir.ContinueStmt)):
        raise Left(isinstance(stmt, ir.BreakStmt))
    elif isinstance(stmt, ir.IfStmt):
        body = stmt.then_body if evaluate(stmt.condition, env) else stmt.else_body
        made = execute(body, env) if body is not None else None
        env.update(zip(stmt.return_vars, made or ()))
    else:
        _loop(stmt, env)
    return None


def _loop(stmt, env):
    carried = [evaluate(a.init_value, env) for a in stmt.iter_args]
    counter = None
    if isinstance(stmt, ir.ForStmt):
        counter = iter(range(*(evaluate(e, env) for e in (stmt.start, stmt.stop, stmt.step))))
    while True:
        env.update(zip(stmt.iter_args, carried))
        if counter is None:
            if not evaluate(stmt.condition, env):
                break
        else:
            value = next(counter, None)
            if value is None:
                break
            env[stmt.loop_var] = value
        try:
            made = execute(stmt.body, env)
            carried = made if made is not None else carried
        except Left as left:
            if left.args[0]:
                break
    env.update(zip(stmt.return_vars, carried))


def outcome(program, *args):
    function = program.get_function("main")
    return execute(function.body, dict(zip(function.params, args)))


@pl.program
class Exits:
    """A loop nest that leaves iterations on some paths through nested branches only."""

    @pl.function
    def main(self, n: pl.Scalar[pl.INT64], m: pl.Scalar[pl.INT64]) -> pl.Scalar[pl.INT64]:
        total: pl.Scalar[pl.INT64] = 0
        for i in pl.range(0, 20, 2):
            total = total + 1
            if i > 4:
                if i % 3 == 0:
                    continue
                total = total + 10
                if total > n:
                    break
            else:
                if i == 2:
                    continue
            inner: pl.Scalar[pl.INT64] = 0
            while inner < 10:
                inner = inner + 1
                if inner == m:
                    break
                if inner % 2 == 0:
                    continue
                total = total + 100
            total = total + 1000
        return total


@pl.program
class Carried:
    """A loop with values of its own: an iteration left early carries on what it began with."""

    @pl.function
    def main(self, n: pl.Scalar[pl.INT64], m: pl.Scalar[pl.INT64]) -> pl.Scalar[pl.INT64]:
        zero: pl.Scalar[pl.INT64] = 0
        for i, (acc, last) in pl.range(9, 0, -1, init_values=(zero, n)):
            more = acc + 3
            if i == m:
                continue
            if more > n:
                if i < 4:
                    break
                more = more - 2
            grown = more + 1
            low = last - 1
            done, least = pl.yield_(grown, low)
        return done * 1000 + least


@pytest.mark.parametrize("program", [Exits, Carried])
@pytest.mark.parametrize("stage", ["structured", "ssa", "simplified"])
def test_structured_loops_compute_the_same(program, stage):
    after = passes.ctrl_flow_transform()(program)
    assert findings(after, P.StructuredCtrlFlow, P.UseAfterDef, P.TypeChecked, P.NoRedundantBlocks) == []
    if stage != "structured":
        after = passes.convert_to_ssa()(after)
        assert findings(after, P.SSAForm) == []
    if stage == "simplified":
        after = passes.simplify()(after)
    for n in (0, 7, 30, 5000):
        for m in (1, 4, 5, 11):
            assert outcome(after, n, m) == outcome(program, n, m), (n, m)


def test_loops_without_exits_and_orchestration_are_returned_as_they_are():
    @pl.program
    class Prog:
        @pl.function
        def plain(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            for _i in pl.range(3):
                x = pl.exp(x)
            return x

        @pl.function(type=pl.FunctionType.Orchestration)
        def host(self, x: pl.Tensor[[64], pl.FP32], n: pl.Scalar[pl.INDEX]) -> pl.Tensor[[64], pl.FP32]:
            for i in pl.range(3):
                if i > n:
                    break
                x = pl.exp(x)
            return x

    unchanged(Prog, passes.ctrl_flow_transform)


def test_exits_outside_loops_and_from_parallel_ones_are_found():
    program = ir.Program([ir.Function("main", [], [], ir.BreakStmt())])
    assert findings(program, P.BreakContinueValid) == ["'break' outside a loop"]
    i = ir.Var("i", ir.ScalarType(pl.INDEX))
    bounds = [ir.ConstInt(v, pl.INDEX) for v in (0, 4, 1)]
    loop = ir.ForStmt(i, *bounds, [], ir.ContinueStmt(), [], kind=ir.ForKind.Parallel)
    program = ir.Program([ir.Function("main", [], [], loop)])
    assert findings(program, P.BreakContinueValid) == [
        "'continue' in a Parallel loop: only sequential loops can be left"
    ]


def test_a_loop_with_break_needs_to_know_its_direction():
    @pl.program
    class Prog:
        @pl.function
        def main(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
            total: pl.Scalar[pl.INDEX] = 0
            for i in pl.range(0, 9, n):
                if i > 4:
                    break
                total = total + i
            return total

    with pytest.raises(NotImplementedError, match="a loop with break needs a constant step"):
        passes.ctrl_flow_transform()(Prog)
