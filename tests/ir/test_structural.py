"""Structural equality and hash."""

from __future__ import annotations

import math

import pytest

from pypto import DataType, ir
from pypto.ir import assert_structural_equal, structural_equal, structural_hash

INT, IDX, FP, BOOL = DataType.INT64, DataType.INDEX, DataType.FP32, DataType.BOOL


def var(name: str = "x", dtype: DataType = INT) -> ir.Var:
    return ir.Var(name, ir.ScalarType(dtype))


def const(value: int, dtype: DataType = INT) -> ir.ConstInt:
    return ir.ConstInt(value, dtype)


def same(a, b, auto=False) -> bool:
    """Equality, with the promise of the hash checked along the way."""
    equal = structural_equal(a, b, auto)
    assert structural_equal(b, a, auto) == equal
    if equal:
        assert structural_hash(a, auto) == structural_hash(b, auto)
        assert_structural_equal(a, b, auto)
    else:
        with pytest.raises(ValueError):
            assert_structural_equal(a, b, auto)
    return equal


def function(params, *stmts, name="f", **kwargs) -> ir.Function:
    return ir.Function(name, params, [], ir.SeqStmts(list(stmts)), **kwargs)


def test_constants_compare_by_value_and_dtype():
    assert same(const(3), const(3))
    assert not same(const(3), const(4))
    assert not same(const(3), const(3, DataType.INT32))
    assert same(const(3), const(3, IDX)), "INDEX and INT64 are one representation"
    assert not same(ir.ConstBool(True), ir.ConstBool(False))


@pytest.mark.parametrize(
    "a, b, equal",
    [
        (1.0, 1.0, True),
        (math.nan, math.nan, True),
        (0.0, -0.0, False),
        (math.inf, -math.inf, False),
        (math.nan, 1.0, False),
    ],
)
def test_floats_compare_by_what_they_are(a, b, equal):
    assert same(ir.ConstFloat(a, FP), ir.ConstFloat(b, FP)) is equal


def test_spans_names_and_comments_do_not_count():
    x, here = var(), ir.Span("k.py", 3, 5)
    plain = ir.AssignStmt(var("a"), x + 1)
    commented = ir.AssignStmt(var("b"), x + 1, here, ["why"])
    assert same(plain, commented)


def test_free_variables_are_themselves_unless_auto_mapped():
    x, y = var("x"), var("x")
    assert same(x + x, x + x)
    assert not same(x + 1, y + 1)
    assert same(x + 1, y + 1, auto=True)
    assert not same(x + x, x + y, auto=True)
    assert not same(x + y, x + x, auto=True)
    assert not same(var(dtype=INT), var(dtype=FP), auto=True)


def test_definitions_correspond_and_uses_follow():
    def body(first, second, shown):
        return function([first], ir.AssignStmt(second, first + 1), ir.ReturnStmt([shown]))

    a, b, c, d = (var(n) for n in "abcd")
    assert same(body(a, b, b), body(c, d, d))
    assert not same(body(a, b, b), body(c, d, c))


def test_a_variable_defined_on_one_side_is_not_the_same_object_on_the_other():
    x, y = var("x"), var("y")
    use = ir.ReturnStmt([x])
    assert not same(function([x], use), function([y], use))


def test_reassignment_is_not_a_fresh_variable():
    a, b, c = var("a"), var("b"), var("c")
    twice = function([], ir.AssignStmt(a, const(1)), ir.AssignStmt(a, const(2)))
    apart = function([], ir.AssignStmt(b, const(1)), ir.AssignStmt(c, const(2)))
    assert not same(twice, apart)


def test_loop_carried_values_bring_their_initial_value():
    def loop(init):
        i, acc, out = var("i", IDX), ir.IterArg("acc", ir.ScalarType(INT), init), var("out")
        return ir.ForStmt(i, const(0), const(8), const(1), [acc], ir.YieldStmt([acc + 1]), [out])

    assert same(loop(const(0)), loop(const(0)))
    assert not same(loop(const(0)), loop(const(1)))


def test_dimensions_of_parameters_correspond():
    def kernel(dim_name, used):
        m = var(dim_name, IDX)
        other = var("other", IDX)
        x = ir.Var("x", ir.TensorType([m, 64], FP))
        return function([x], ir.AssignStmt(var("n", IDX), (m if used else other) + 0))

    assert same(kernel("M", True), kernel("N", True))
    assert not same(kernel("M", True), kernel("M", False))


def test_constant_dimensions_count_by_value():
    assert same(ir.TensorType([const(4, DataType.INT32)], FP), ir.TensorType([4], FP))
    assert not same(ir.TensorType([4], FP), ir.TensorType([4], DataType.FP16))
    assert not same(ir.TensorType([4], FP), ir.TensorType([4, 1], FP))
    assert not same(ir.TensorType([4], FP), ir.TileType([4], FP))
    assert hash(ir.TensorType([4, 8], FP)) == hash(ir.TensorType([4, 8], FP))
    assert ir.TensorType([4, 8], FP) in {ir.TensorType([4, 8], FP): 1}


def test_types_with_different_allocations_differ_but_functions_may_rename_them():
    def tile():
        return ir.TileType([16, 16], FP, ir.MemRef(ir.MemorySpace.Vec, 0, 1024), None, ir.MemorySpace.Vec)

    assert tile() != tile()

    def kernel(first, second):
        a, b = ir.Var("a", first), ir.Var("b", second)
        return function([a], ir.AssignStmt(b, a))

    shared, other = tile(), tile()
    assert same(kernel(tile(), tile()), kernel(tile(), tile()))
    assert same(kernel(shared, shared), kernel(other, other))
    assert not same(kernel(shared, shared), kernel(tile(), tile()))


def test_views_compare_field_by_field():
    def tile(**view):
        return ir.TileType([32, 32], FP, None, ir.TileView(**view), ir.MemorySpace.Vec)

    assert same(tile(valid_shape=[8, 32]), tile(valid_shape=[8, 32]))
    assert not same(tile(valid_shape=[8, 32]), tile(valid_shape=[9, 32]))
    assert not same(tile(pad=ir.PadValue.zero), tile(pad=ir.PadValue.max))
    assert not same(tile(valid_shape=[8, 32]), tile(valid_shape=[8, 32], start_offset=0))


def test_calls_compare_by_operator_name_and_keywords_in_any_order():
    x = var()
    a = ir.Call(ir.Op("t.op"), [x], {"p": 1, "q": [1, 2]}, {"note": x})
    assert same(a, ir.Call(ir.Op("t.op"), [x], {"q": (1, 2), "p": 1}, {"note": x}))
    assert not same(a, ir.Call(ir.Op("t.other"), [x], {"p": 1, "q": [1, 2]}, {"note": x}))
    assert not same(a, ir.Call(ir.Op("t.op"), [x], {"p": 2, "q": [1, 2]}, {"note": x}))
    assert not same(a, ir.Call(ir.Op("t.op"), [x], {"p": 1}, {"note": x}))
    assert not same(a, ir.Call(ir.Op("t.op"), [x], {"p": True, "q": [1, 2]}, {"note": x}))
    assert not same(a, ir.Call(ir.Op("t.op"), [x], {"p": 1, "q": [1, 2]}, {"note": var()}))


def test_programs_compare_functions_by_name():
    def program(*names, value=1):
        return ir.Program([function([], ir.AssignStmt(var(), const(value)), name=n) for n in names], "P")

    assert same(program("a", "b"), program("b", "a"))
    assert not same(program("a", "b"), program("a", "c"))
    assert not same(program("a"), program("a", value=2))
    assert same(function([], name="f"), function([], name="g")), "alone, a function's name is only where it is filed"


def test_what_a_variable_was_in_one_function_does_not_bind_the_next():
    m, n = var("M", IDX), var("N", IDX)

    def program(first, second):
        params = [ir.Var("x", ir.TensorType([d], FP)) for d in (first, second)]
        return ir.Program([function([p], ir.ReturnStmt([p]), name=f"f{i}") for i, p in enumerate(params)])

    assert same(program(m, m), program(m, n))


def test_windows_are_their_allocation():
    base = ir.Var("w", ir.PtrType())
    first, second = ir.WindowBuffer(base, const(64)), ir.WindowBuffer(base, const(64))
    assert not same(first, second)
    assert same(first, second, auto=True)
    assert not same(first, ir.WindowBuffer(base, const(65)), auto=True)


def _report(a, b, **kwargs) -> list[str]:
    with pytest.raises(ValueError) as caught:
        assert_structural_equal(a, b, **kwargs)
    return str(caught.value).split("\n")


def test_a_report_names_the_place_and_shows_both_sides():
    def program(value):
        x = var("x")
        loop = ir.ForStmt(var("i", IDX), const(0), const(4), const(1), [], ir.AssignStmt(x, const(value) + x), [])
        return ir.Program([function([var("n")], ir.AssignStmt(var(), const(0)), loop, name="main")])

    where, what, left, right = _report(program(7), program(8))
    assert where == "Structural equality assertion failed at: ['main'].body[1].body.value.left.value"
    assert what == "ConstInt value mismatch (7 != 8)"
    assert (left, right) == ("  left: 7", "  right: 8")


@pytest.mark.parametrize(
    "a, b, what",
    [
        (const(1), var(), "Node type mismatch (ConstInt != Var)"),
        (ir.ScalarType(INT), ir.ScalarType(FP), "ScalarType dtype mismatch (int64 != fp32)"),
        (ir.SeqStmts([]), ir.SeqStmts([ir.BreakStmt()]), "Vector size mismatch (0 items != 1 items)"),
        (ir.TensorType([4], FP), ir.TensorType([4, 4], FP), "TensorType shape rank mismatch (1 != 2)"),
        (
            ir.TileType([4], FP),
            ir.TileType([4], FP, memory_space=ir.MemorySpace.Vec),
            "mismatch (None != MemorySpace.Vec)",
        ),
        (ir.Call(ir.Op("o"), [], {"a": 1}), ir.Call(ir.Op("o"), [], {"b": 1}), "Keys mismatch (['a'] != ['b'])"),
    ],
)
def test_a_report_says_what_differs(a, b, what):
    assert what in _report(a, b)[1]


def test_a_missing_branch_is_a_presence_mismatch():
    cond, body = var("c", BOOL), ir.BreakStmt()
    assert "Optional field presence mismatch" in _report(ir.IfStmt(cond, body, body), ir.IfStmt(cond, body))[1]


def test_only_nodes_compare():
    with pytest.raises(TypeError, match="only IR nodes"):
        structural_equal(1, 2)


def test_an_assignment_that_reads_what_it_assigns_reads_that_variable():
    x, y, i = var("x"), var("y"), var("i")
    assert same(ir.AssignStmt(x, x + i), ir.AssignStmt(y, y + i))
    assert not same(ir.AssignStmt(x, x + i), ir.AssignStmt(y, x + i))
    assert not same(ir.AssignStmt(x, y + i), ir.AssignStmt(y, y + i))


def test_a_loop_variable_assigned_in_one_body_only_differs():
    i, j = var("i"), var("j")
    body = ir.AssignStmt(i, const(0))
    first, second = (ir.ForStmt(v, const(0), const(4), const(1), [], body, []) for v in (i, j))
    assert not same(first, second)
