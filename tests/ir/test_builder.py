"""Building IR with `with` blocks."""

import pytest

from pypto import DataType, ir
from pypto.ir import IRBuilder

INT = ir.ScalarType(DataType.INT64)


def test_a_function_with_a_loop_that_carries_a_sum():
    ib = IRBuilder()
    with ib.function("total", type=ir.FunctionType.Orchestration) as f:
        n = f.param("n", INT)
        f.return_type(INT)
        i = ib.var("i", INT)
        with ib.for_loop(i, 0, n, 1) as loop:
            carried = loop.iter_arg("sum", ir.ConstInt(0, DataType.INT64))
            result = loop.return_var("sum_final")
            assert ib.in_loop() and ib.in_function() and not ib.in_if()
            ib.emit(ir.YieldStmt([carried + i]))
        ib.return_stmt(result)
    made = f.get_result()
    assert made.func_type is ir.FunctionType.Orchestration and [p.name_hint for p in made.params] == ["n"]
    for_stmt, return_stmt = ir.flatten_to_stmts(made.body)
    assert isinstance(for_stmt, ir.ForStmt) and for_stmt.iter_args[0] is carried
    assert return_stmt.values[0] is result is loop.output()
    assert made.span.filename == __file__


def test_a_branch_has_two_sides():
    ib = IRBuilder()
    with ib.function("larger") as f:
        x, y = f.param("x", INT), f.param("y", INT)
        f.return_type(INT)
        with ib.if_stmt(x > y) as branch:
            branch.return_var("m", INT)
            ib.emit(ir.YieldStmt([x]))
            branch.else_()
            ib.emit(ir.YieldStmt([y]))
        ib.return_stmt(branch.output())
    branch_stmt = ir.flatten_to_stmts(f.get_result().body)[0]
    assert branch_stmt.then_body.values[0] is x and branch_stmt.else_body.values[0] is y


def test_a_program_of_functions_that_call_each_other():
    ib = IRBuilder()
    with ib.program("p") as p:
        square = p.declare_function("square")
        with ib.function("square") as f:
            x = f.param("x", INT)
            f.return_type(INT)
            ib.return_stmt(ib.let("y", x * x))
        p.add_function(f.get_result())
        with ib.function("main") as g:
            a = g.param("a", INT)
            ib.return_stmt(ib.let("b", ir.Call(p.get_global_var("square"), [a], INT, ir.Span.unknown())))
        p.add_function(g.get_result())
        with ib.function("typed") as h:
            c = h.param("c", INT)
            called = ib.let("d", ir.Call(square, [c], ir.Span.unknown()))
            assert called.type is INT, "a built function's call has its result type"
            ib.return_stmt(called + c)
        p.add_function(h.get_result())
        with pytest.raises(RuntimeError, match="'cube' is not declared"):
            p.get_global_var("cube")
    made = p.get_result()
    assert made.get_global_var("square") is square and made.get_function("main") is g.get_result()


def test_wrong_nesting_and_unfinished_work_is_refused():
    ib = IRBuilder()
    with pytest.raises(RuntimeError, match="belongs into a function"):
        ib.emit(ir.ReturnStmt())
    with pytest.raises(RuntimeError, match="Cannot begin function 'inner'"), ib.function("outer"), ib.function("inner"):
        pass
    assert not ib.in_function()
    with ib.function("f") as f:
        with pytest.raises(RuntimeError, match="not finished"):
            f.get_result()
        with (
            pytest.raises(RuntimeError, match="as many return variables"),
            ib.for_loop(ib.var("i", INT), 0, 3, 1) as loop,
        ):
            loop.iter_arg("x", 0)
        with ib.while_loop(ir.ConstBool(False)) as empty:
            pass
        with pytest.raises(IndexError, match="index 0 out of range"):
            empty.output()


def test_types_that_do_not_fit_are_refused():
    ib = IRBuilder()
    with ib.function("f"):
        with pytest.raises(TypeError, match="incompatible"):
            ib.let("x", 1, type=ir.TensorType([4], DataType.FP32))
        mismatch = pytest.raises(ValueError, match="Type mismatch for 'x'")
        with ib.for_loop(ib.var("i", INT), 0, 3, 1) as loop, mismatch:
            loop.iter_arg("x", 1.0, type=INT)


def test_types_made_by_the_builder():
    ib = IRBuilder()
    at = ir.Span("old.py", 3, 4, 3, 12)
    flat = (ir.TileLayout.row_major, ir.TileLayout.none_box, 512, ir.PadValue.zero)
    view = ib.tile_view([16, 16], [1, 16], 0, *flat, at, compact=ir.CompactMode.normal)
    assert view.compact is ir.CompactMode.normal and view.pad is ir.PadValue.zero
    assert view.start_offset.span is at and view.stride == [1, 16]
    assert ib.tile_view([4, 4]) == ir.TileView([4, 4])
    assert ib.memref("base", 64, 128).size == 128
    with pytest.raises(TypeError, match="exactly three positional arguments"):
        ib.memref(0x1000, 1024, 0, 7)


def test_a_call_for_its_effect_is_a_statement():
    ib = IRBuilder()
    with ib.function("tell", type=ir.FunctionType.InCore) as f:
        call = ir.create_op_call("system.bar_all", [], {}, ir.Span.unknown())
        made = ib.eval_stmt(call)
        ib.return_stmt()
    body = ir.flatten_to_stmts(f.get_result().body)
    assert body[0] is made and made.expr is call and made.span.is_valid()
