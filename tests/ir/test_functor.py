"""Traversal for user code, substitution and cloning."""

import pypto.language as pl
from pypto import DataType, ir


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[32, 16], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[32, 16], pl.FP32]]):
    for i in pl.range(0, n):
        t = pl.load(x, [i * 8, 0], [8, 16])
        pl.store(pl.add(t, 1.0), [i * 8, 0], y)


def index(name):
    return ir.Var(name, ir.ScalarType(DataType.INDEX), ir.Span.unknown())


def test_a_visitor_sees_every_node_of_its_kind_and_descends_through_super():
    class Seen(ir.IRVisitor):
        def __init__(self):
            self.calls, self.sums = [], 0

        def visit_call(self, op):
            self.calls.append(op.op.name)
            super().visit_call(op)

        def visit_binary_expr(self, op):
            self.sums += 1
            super().visit_binary_expr(op)

    seen = Seen()
    seen.visit_program(ir.Program([kernel], "p", ir.Span.unknown()))
    assert sorted(seen.calls) == ["tile.adds", "tile.load", "tile.store"]
    assert seen.sums == 2


def test_a_visitor_that_does_not_call_super_stops_there():
    class Loops(ir.IRVisitor):
        calls = 0

        def visit_for_stmt(self, op):
            pass

        def visit_call(self, op):
            self.calls += 1

    loops = Loops()
    loops.visit_stmt(kernel.body)
    assert loops.calls == 0


def test_a_mutator_that_changes_nothing_returns_the_same_object():
    program = ir.Program([kernel], "p", ir.Span.unknown())
    assert ir.IRMutator().visit_program(program) is program


def test_a_mutator_rebuilds_only_what_changed():
    class Bigger(ir.IRMutator):
        def visit_const_float(self, op):
            return ir.ConstFloat(op.value + 1, op.dtype, op.span)

    made = Bigger().visit_stmt(kernel.body)
    assert made is not kernel.body
    assert "2.0" in str(made) and "1.0" in str(kernel.body)


def test_substitution_reaches_types():
    rows, fewer = index("rows"), index("fewer")
    tile = ir.Var("t", ir.TileType([8, 16], DataType.FP32, tile_view=ir.TileView([rows, 16])), ir.Span.unknown())
    made = ir.substitute_stmt(ir.AssignStmt(tile, rows, ir.Span.unknown()), [(rows, fewer)])
    assert made.var is not tile and made.var.type.valid_shape[0] is fewer and made.value is fewer


def test_a_clone_has_variables_of_its_own():
    made, pairs = ir.deep_clone(kernel.body)
    ir.assert_structural_equal(made, kernel.body)
    assert pairs and all(old is not new for old, new in pairs)
    assert {v.unique_id for v in ir.collect_def_vars(made)}.isdisjoint(
        v.unique_id for v in ir.collect_def_vars(kernel.body)
    )


def test_parents_of_statements():
    analysis = ir.ParentStmtAnalysis()
    analysis.build_map(kernel)
    loop = ir.flatten_to_stmts(kernel.body)[0]
    inner = ir.flatten_to_stmts(loop.body)[0]
    assert analysis.get_parent(inner) in (loop, loop.body)
    assert not analysis.has_parent(kernel.body)
    analysis.clear()
    assert not analysis.has_parent(inner)
