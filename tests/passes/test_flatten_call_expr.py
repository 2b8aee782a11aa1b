"""FlattenCallExpr and NormalizeStmtStructure."""

from __future__ import annotations

import pytest
from checking import check, findings, run, unchanged

import pypto.language as pl
from pypto import ir, passes
from pypto.dtypes import DataType

P = passes.IRProperty


def test_calls_leave_expressions_in_order_of_evaluation():
    @pl.program
    class Before:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            y = pl.add(pl.exp(pl.mul(x, 2.0)), pl.sub(x, 1.0))
            return pl.exp(y)

    @pl.program
    class Expected:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            a = pl.mul(x, 2.0)
            b = pl.exp(a)
            c = pl.sub(x, 1.0)
            y = pl.add(b, c)
            d = pl.exp(y)
            return d

    after = check(Before, Expected, passes.flatten_call_expr)
    assert findings(Before, P.NoNestedCalls)
    assert findings(after, P.NoNestedCalls) == []
    names = [s.var.name_hint for s in ir.flatten_to_stmts(after.get_function("main").body)[:-1]]
    assert names == ["t__tmp_v0", "t__tmp_v1", "t__tmp_v2", "y", "t__tmp_v3"]


def test_calls_in_conditions_and_ranges_go_before_the_statement():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def main(self, x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]) -> pl.Tensor[[64], pl.FP32]:
            for i in pl.range(pl.tile.get_block_idx(), 8, pl.tile.get_block_num()):
                if pl.tile.get_block_idx() + 1 < i:
                    _kept = pl.store(pl.exp(pl.load(x, [0], [64])), [0], out)
            return out

    @pl.program
    class Expected:
        @pl.function(type=pl.FunctionType.InCore)
        def main(self, x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]) -> pl.Tensor[[64], pl.FP32]:
            a = pl.tile.get_block_idx()
            b = pl.tile.get_block_num()
            for i in pl.range(a, 8, b):
                c = pl.tile.get_block_idx()
                if c + 1 < i:
                    d = pl.load(x, [0], [64])
                    e = pl.exp(d)
                    _kept = pl.store(e, [0], out)
            return out

    check(Before, Expected, passes.flatten_call_expr)


def test_what_a_region_evaluates_stays_in_it():
    @pl.program
    class Before:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.add(pl.exp(x), 1.0)
            return y

    after = run(Before, passes.flatten_call_expr)
    region = ir.flatten_to_stmts(after.get_function("main").body)[0]
    assert isinstance(region, ir.InCoreScopeStmt) and len(region.body.stmts) == 2


def test_a_program_without_nested_calls_is_returned_as_it_is():
    @pl.program
    class Prog:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            for _i in pl.range(4):
                x = pl.exp(x)
            return x

    unchanged(Prog, passes.flatten_call_expr)


def counting_loop(reads):
    """A while loop whose condition calls an operator on what it carries, or on the parameter."""
    i64 = ir.ScalarType(DataType.INT64)
    n = ir.Var("n", i64)
    carried = ir.IterArg("c", i64, n)
    call = ir.Call(ir.Op("query.size"), [carried if reads == "carried" else n], i64, ir.Span("k.py", 4, 9, 4, 20))
    condition = ir.Lt(carried, call, DataType.BOOL)
    loop = ir.WhileStmt(condition, [carried], ir.YieldStmt([ir.Add(carried, n, DataType.INT64)]), [ir.Var("r", i64)])
    return ir.Program([ir.Function("main", [n], [i64], ir.seq([loop, ir.ReturnStmt(loop.return_vars)]))])


def test_a_loop_condition_keeps_meaning_what_it_says():
    after = passes.flatten_call_expr()(counting_loop("parameter"))
    hoisted, loop, _ = ir.flatten_to_stmts(after.get_function("main").body)
    assert loop.condition.right is hoisted.var
    with pytest.raises(NotImplementedError, match="condition calls an operation on 'c', which the loop changes") as e:
        passes.flatten_call_expr()(counting_loop("carried"))
    assert e.value.span.begin_line == 4


def test_normal_form_has_no_sequence_in_a_sequence_and_none_of_one():
    a = ir.Var("a", ir.ScalarType(DataType.INT64))
    set_a = ir.AssignStmt(a, a)
    inner = ir.SeqStmts([ir.SeqStmts([set_a]), ir.SeqStmts([set_a, set_a])])
    loop = ir.IfStmt(ir.ConstBool(True), ir.SeqStmts([set_a]), inner)
    program = ir.Program([ir.Function("main", [a], [], ir.SeqStmts([loop]))])
    assert len(findings(program, P.NormalizedStmtStructure)) == 5
    after = passes.normalize_stmt_structure()(program)
    assert findings(after, P.NormalizedStmtStructure, P.NoRedundantBlocks) == []
    body = after.get_function("main").body
    assert body.then_body is set_a and len(body.else_body.stmts) == 3
    unchanged(after, passes.normalize_stmt_structure)
