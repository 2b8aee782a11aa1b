"""Running programs of scalars, and making them at random."""

from __future__ import annotations

from hypothesis import strategies as st

from pypto import ir
from pypto.dtypes import DataType


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


I64, INDEX = ir.ScalarType(DataType.INT64), ir.ScalarType(DataType.INDEX)
NAMES = ("a", "b", "c")


def number(value, dtype=DataType.INT64):
    return ir.ConstInt(value, dtype)


class Maker:
    """Draws a function of three scalars: assignments, branches, loops, exits from them."""

    def __init__(self, draw):
        self.draw = draw
        self.vars = {n: ir.Var(n, I64) for n in NAMES}
        self.counters = []

    def program(self):
        params = list(self.vars.values())
        body = ir.seq([*self.block(3), ir.ReturnStmt(params)])
        return ir.Program([ir.Function("main", params, [I64] * len(params), body)])

    def operand(self):
        choices = [number(self.draw(st.integers(-3, 3))), *self.vars.values(), *self.counters]
        return self.draw(st.sampled_from(choices))

    def expr(self):
        op = self.draw(st.sampled_from([ir.Add, ir.Sub, ir.Mul, ir.FloorMod]))
        right = number(self.draw(st.integers(1, 5))) if op is ir.FloorMod else self.operand()
        return op(self.operand(), right, DataType.INT64)

    def condition(self):
        op = self.draw(st.sampled_from([ir.Lt, ir.Gt, ir.Eq, ir.Ne, ir.Le, ir.Ge]))
        return op(self.operand(), self.operand(), DataType.BOOL)

    def block(self, depth):
        return [self.stmt(depth) for _ in range(self.draw(st.integers(1, 4)))]

    def stmt(self, depth):
        kinds = ["assign"] * 3 + (["if", "for"] if depth else []) + (["exit"] if depth and self.counters else [])
        kind = self.draw(st.sampled_from(kinds))
        if kind == "assign":
            # Small values keep products far from the limits of 64 bits.
            value = ir.FloorMod(self.expr(), number(97), DataType.INT64)
            return ir.AssignStmt(self.vars[self.draw(st.sampled_from(NAMES))], value)
        if kind == "if":
            other = ir.seq(self.block(depth - 1)) if self.draw(st.booleans()) else None
            return ir.IfStmt(self.condition(), ir.seq(self.block(depth - 1)), other)
        if kind == "exit":
            leave = self.draw(st.sampled_from([ir.BreakStmt, ir.ContinueStmt]))()
            return ir.IfStmt(self.condition(), leave)
        return self.loop(depth)

    def loop(self, depth):
        start, stop = (number(self.draw(st.integers(0, 4)), DataType.INDEX) for _ in range(2))
        step = number(self.draw(st.sampled_from([1, 2, -1])), DataType.INDEX)
        counter = ir.Var("i", INDEX)
        self.counters.append(counter)
        body = ir.seq(self.block(depth - 1))
        self.counters.pop()
        return ir.ForStmt(counter, start, stop, step, [], body, [])


@st.composite
def programs(draw):
    return Maker(draw).program()
