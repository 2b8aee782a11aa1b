"""How nodes behave: construction, immutability, copies, traversal."""

from __future__ import annotations

import pytest

from pypto import DataType, InternalError, ir
from pypto.ir.visitor import Rewriter, Visitor, substitute, walk

INT, IDX, FP = DataType.INT64, DataType.INDEX, DataType.FP32


def var(name: str = "x", dtype: DataType = INT) -> ir.Var:
    return ir.Var(name, ir.ScalarType(dtype))


def test_nodes_refuse_assignment():
    x = var()
    for change in (lambda: setattr(x, "name_hint", "y"), lambda: delattr(x, "name_hint"), lambda: setattr(x, "new", 1)):
        with pytest.raises(AttributeError):
            change()
    with pytest.raises(AttributeError, match="read-only"):
        ir.Op("a.b").name = "c"


def test_replace_copies_and_keeps_the_object_when_nothing_changes():
    stmt = ir.AssignStmt(var(), var())
    assert stmt.replace(value=stmt.value) is stmt
    other = var("y")
    made = stmt.replace(value=other)
    assert made.value is other and made.var is stmt.var and stmt.value is not other
    with pytest.raises(TypeError, match="no field"):
        stmt.replace(nonsense=1)


def test_lists_of_nodes_equal_lists_and_cannot_change():
    seq = ir.SeqStmts([ir.BreakStmt(), ir.ContinueStmt()])
    assert seq.stmts == list(seq.stmts) and seq.stmts[0] is seq[0]
    assert isinstance(seq[-1], ir.ContinueStmt)
    with pytest.raises(TypeError):
        seq.stmts[0] = ir.BreakStmt()


def test_a_loop_knows_its_kind():
    loop = ir.ForStmt(var("i", IDX), ir.index_const(0), ir.index_const(4), ir.index_const(1), [], ir.BreakStmt(), [])
    assert loop.kind is ir.ForKind.Sequential
    assert loop.replace(kind=ir.ForKind.Parallel).kind is ir.ForKind.Parallel
    assert type(loop).node_kind == "for_stmt"


def test_statements_without_values_take_a_span_alone():
    here = ir.Span("k.py", 1, 1)
    for cls in (ir.YieldStmt, ir.ReturnStmt):
        assert cls(here).span is here and cls(here).value == []
        assert cls([var()], here).span is here


def test_calls_sort_their_arguments_by_what_they_are():
    x, here = var(), ir.Span("k.py", 2, 1)
    call = ir.Call(ir.Op("a.b"), [x], {"k": 1}, {"note": 2}, x.type, here)
    assert (call.kwargs, call.attrs, call.type, call.span) == ({"k": 1}, {"note": 2}, x.type, here)
    task = ir.Submit(ir.GlobalVar("f"), [x], [], ir.TupleType([x.type]), here)
    assert task.type == ir.TupleType([x.type]) and task.span is here and task.kwargs == {}
    with pytest.raises(TypeError, match="needs an Op"):
        ir.Call("a.b", [x])
    with pytest.raises(TypeError, match="arg_directions"):
        ir.Call(ir.Op("a"), [x], {}, {"arg_directions": [ir.ArgDirection.Input] * 2})
    with pytest.raises(ValueError, match="core_num"):
        ir.Submit(ir.GlobalVar("f"), [], [], sync_start=True)


def test_tuple_elements_are_checked():
    pair = ir.MakeTuple([var(), var(dtype=FP)])
    assert ir.TupleGetItemExpr(pair, 1).type == ir.ScalarType(FP)
    for index in (-1, 2):
        with pytest.raises(ValueError, match="out of range"):
            ir.TupleGetItemExpr(pair, index)
    with pytest.raises(ValueError, match="only a tuple"):
        ir.TupleGetItemExpr(var(), 0)


def test_operators_build_expressions():
    x = var(dtype=IDX)
    made = (x + 1) * 2 // x - 3 % x
    assert str(made) == "(x + 1) * 2 // x - 3 % x"
    assert isinstance(x == 1, ir.Eq) and (x == 1).dtype is DataType.BOOL
    assert ((var(dtype=DataType.INT32) + var(dtype=FP)).dtype) is FP


def test_derived_levels_are_checked():
    f = ir.Function("k", [], [], ir.BreakStmt(), type=ir.FunctionType.InCore)
    assert (f.level, f.role, f.is_incore) == (ir.Level.CHIP_DIE, ir.Role.SubWorker, True)
    with pytest.raises(ValueError, match="level"):
        ir.Function("k", [], [], ir.BreakStmt(), type=ir.FunctionType.InCore, level=ir.Level.HOST)


def test_a_function_tells_how_it_is_split():
    body = ir.BreakStmt()
    assert ir.Function("k", [], [], body).split is None
    assert ir.Function("k", [], [], body, attrs={"split": 0}).split is None
    assert ir.Function("k", [], [], body, attrs={"split": 2}).split is ir.SplitMode.LEFT_RIGHT


def test_programs_file_functions_by_name():
    f, g = (ir.Function(n, [], [], ir.BreakStmt()) for n in ("f", "g"))
    program = ir.Program([g, f], "P")
    assert [v.name for v in program.functions] == ["f", "g"]
    assert program["g"] is g and program["h"] is None
    with pytest.raises(ValueError, match="'f'"):
        ir.Program([f, ir.Function("f", [], [], ir.BreakStmt())])
    assert program.map_functions(lambda x: x) is program


def test_scopes_check_their_numbers():
    assert ir.SpmdScopeStmt(4, body=ir.BreakStmt()).core_num.value == 4
    with pytest.raises(InternalError, match="2 vector lanes"):
        ir.SplitAivScopeStmt(ir.SplitMode.UP_DOWN, 4, body=ir.BreakStmt())


def test_substitution_reaches_types_and_shares_the_rest():
    m, n = var("M", IDX), var("N", IDX)
    x = ir.Var("x", ir.TensorType([m, 4], FP))
    other = ir.AssignStmt(var(), ir.index_const(1))
    body = ir.SeqStmts([other, ir.AssignStmt(x, ir.Call(ir.Op("o"), [m], x.type)), ir.ReturnStmt([x])])
    made = substitute(body, {m: n})
    assert made[0] is other
    assert made[1].var.type.shape[0] is n and made[1].value.args[0] is n
    assert made[2].value[0] is made[1].var, "uses follow a definition whose type changed"
    assert substitute(body, {var(): n}) is body


def test_visitors_dispatch_by_class_and_rewriters_share():
    x = var()
    body = ir.SeqStmts([ir.AssignStmt(var("a"), x + 1), ir.EvalStmt(x + 2)])
    seen = []

    class Constants(Visitor):
        def visit_const_int(self, op):
            seen.append(op.value)

    Constants().visit(body)
    assert seen == [1, 2]

    class Drop(Rewriter):
        def visit_eval_stmt(self, op):
            return None

    assert Drop().rewrite(body) is body[0], "one statement left stands for itself"
    assert sum(isinstance(n, ir.ConstInt) for n in walk(body)) == 2
