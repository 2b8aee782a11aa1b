"""When tile variables hold something needed."""

from __future__ import annotations

from pypto import ir
from pypto.dtypes import DataType
from pypto.ops import registry
from pypto.passes.memory_lifetimes import Lifetimes, hazards

TILE = ir.TileType([8, 64], DataType.FP32, memory_space=ir.MemorySpace.Vec)
INDEX = ir.ScalarType(DataType.INDEX)
ANY = ir.Op("tile.any")


def tile(name, type=TILE):
    return ir.Var(name, type)


def assign(var, *operands, type=None):
    return ir.AssignStmt(var, ir.Call(ANY, operands, type or var.type))


def use(*operands):
    return ir.EvalStmt(ir.Call(ANY, operands))


def lifetimes(*stmts, params=()):
    return Lifetimes(ir.Function("f", params, [], ir.seq([*stmts, ir.ReturnStmt([])]), type=ir.FunctionType.InCore))


def meet(found, a, b):
    return found.of(a).meets(found.of(b))


def test_a_result_may_follow_an_operand_that_dies():
    a, b, c = tile("a"), tile("b"), tile("c")
    found = lifetimes(assign(a), assign(b, a), assign(c, b, a))
    assert meet(found, a, b)
    assert not meet(found, b, c)
    assert not meet(found, a, c)
    assert [v.name_hint for v in found.order] == ["a", "b", "c"]


def test_a_result_nobody_reads_still_needs_room_while_it_is_written():
    a, unused = tile("a"), tile("unused")
    found = lifetimes(assign(a), assign(unused), use(a))
    assert meet(found, a, unused)


def test_the_elements_of_a_tuple_are_written_together():
    source, pair = tile("source"), tile("pair", ir.TupleType([TILE, TILE]))
    first, second = tile("first"), tile("second")
    found = lifetimes(
        assign(source),
        assign(pair, source),
        ir.AssignStmt(first, ir.TupleGetItemExpr(pair, 0)),
        use(first),
        ir.AssignStmt(second, ir.TupleGetItemExpr(pair, 1)),
        use(second),
    )
    assert meet(found, first, second)
    assert not meet(found, source, first)
    assert pair not in found.ranges


def test_branches_exclude_one_another():
    a, b, c, after, phi = (tile(n) for n in ("a", "b", "c", "after", "phi"))
    condition = ir.Var("condition", ir.ScalarType(DataType.BOOL))
    branch = ir.IfStmt(
        condition,
        ir.seq([assign(b, a), ir.YieldStmt([b])]),
        ir.seq([assign(c), use(c), ir.YieldStmt([c])]),
        [phi],
    )
    found = lifetimes(assign(a), assign(after), branch, use(phi), use(after))
    assert not meet(found, b, c)
    assert not meet(found, a, c)
    assert meet(found, after, b)
    assert meet(found, after, c)
    assert not meet(found, b, phi)


def test_an_operand_from_outside_lives_through_the_loop():
    a, inside, late = tile("a"), tile("inside"), tile("late")
    loop = ir.ForStmt(
        ir.Var("i", INDEX), ir.index_const(0), ir.index_const(4), ir.index_const(1), [],
        ir.seq([use(a), assign(inside), use(inside)]), [],
    )  # fmt: skip
    found = lifetimes(assign(a), loop, assign(late), use(late))
    assert meet(found, a, inside)
    assert not meet(found, a, late)
    assert not meet(found, inside, late)


def test_a_branch_in_a_loop_keeps_an_outside_operand_for_the_next_round():
    a, c = tile("a"), tile("c")
    condition = ir.Var("condition", ir.ScalarType(DataType.BOOL))
    body = ir.IfStmt(condition, use(a), ir.seq([assign(c), use(c)]), [])
    loop = ir.WhileStmt(condition, [], body, [])
    found = lifetimes(assign(a), loop)
    assert meet(found, a, c)


def test_a_carried_value_is_dead_between_its_last_use_and_the_next():
    start, carried, scratch, following, result = (tile(n) for n in ("start", "c", "scratch", "following", "result"))
    carried = ir.IterArg("c", TILE, start)
    body = ir.seq([use(carried), assign(scratch), assign(following, scratch), ir.YieldStmt([following])])
    loop = ir.ForStmt(
        ir.Var("i", INDEX), ir.index_const(0), ir.index_const(4), ir.index_const(1), [carried], body, [result]
    )
    found = lifetimes(assign(start), loop, use(result))
    assert not meet(found, carried, scratch)
    assert not meet(found, start, carried)
    assert not meet(found, carried, following)
    assert not meet(found, following, result)


def test_regions_without_results_are_passed_through():
    a, b = tile("a"), tile("b")
    scope = ir.SpmdScopeStmt(ir.index_const(2), body=ir.seq([assign(b, a), use(b)]))
    found = lifetimes(assign(a), scope, use(a))
    assert meet(found, a, b)


def test_a_parameter_lives_from_the_start():
    p, a = tile("p"), tile("a")
    found = lifetimes(assign(a), use(a), use(p), params=[p])
    assert meet(found, p, a)


def test_what_an_operator_reads_while_it_writes():
    x, tmp = tile("x"), tile("tmp")
    column = tile("column", ir.TileType([8, 1], DataType.FP32, memory_space=ir.MemorySpace.Vec))
    half = tile("half", ir.TileType([8, 64], DataType.FP16, memory_space=ir.MemorySpace.Vec))
    part = tile("part", ir.TileType([1, 64], DataType.FP32, memory_space=ir.MemorySpace.Vec))

    def of(name, *args, **kwargs):
        call = registry.call(f"tile.{name}", *args, **kwargs)
        return hazards(call, ir.Var("result", call.type))

    assert of("add", x, x) == frozenset()
    assert of("recip", x) == {0}
    assert of("row_sum", x, tmp) >= {0, 1}
    assert of("row_expand_mul", x, column) == {1}
    assert 0 in of("cast", half, target_type=DataType.FP32)
    mask = tile("mask", ir.TileType([8, 64], DataType.INT32, memory_space=ir.MemorySpace.Vec))
    assert of("sels", mask, x, tmp, 1.0) == {0, 1}
    assert of("prelu", x, x, tmp) == {0, 1, 2}
    assert of("assemble", x, part, [0, 0]) == {1}
    assert of("slice", x, [1, 64], [0, 0]) == frozenset()
    out = ir.Var("out", ir.TensorType([8, 64], DataType.FP32))
    assert of("store", x, [0, 0], out) == frozenset()
