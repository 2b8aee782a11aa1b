"""MaterializeTensorStrides: explicit strides for every tensor view."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir, passes
from pypto.dtypes import DataType
from pypto.errors import InternalError, VerificationError
from pypto.ops import registry

Layout = ir.TensorLayout
DN = pl.TensorLayout.DN
INDEX = ir.ScalarType(DataType.INDEX)
SPAN = ir.Span("kernel.py", 7, 3)


def tensor(shape, layout=Layout.DN, stride=(), dtype=DataType.FP32, **view):
    return ir.TensorType(shape, dtype, None, ir.TensorView(stride, layout, **view))


def strides(type):
    return [s.value for s in type.tensor_view.stride]


def run(program):
    return passes.materialize_tensor_strides()(program)


def program(*functions):
    return ir.Program(list(functions))


def function(params, returns, *stmts, name="f", kind=ir.FunctionType.InCore):
    return ir.Function(name, params, returns, ir.seq(stmts or [ir.ReturnStmt(params)]), type=kind)


def only(lowered, name="f"):
    return lowered.get_function(name)


def strict(lowered):
    return passes.verify_tensor_view_canonical(lowered, require_materialized=True)


def test_parameters_and_returns():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self,
            b: pl.Tensor[[2, 4, 8], pl.FP32, pl.TensorView(stride=[], layout=DN)],
            plain: pl.Tensor[[2, 4, 8], pl.FP32],
        ) -> pl.Tensor[[2, 4, 8], pl.FP32, pl.TensorView(stride=[], layout=DN)]:
            return b

    @pl.program
    class Expected:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self,
            b: pl.Tensor[[2, 4, 8], pl.FP32, pl.TensorView(stride=[32, 1, 4], layout=DN)],
            plain: pl.Tensor[[2, 4, 8], pl.FP32],
        ) -> pl.Tensor[[2, 4, 8], pl.FP32, pl.TensorView(stride=[32, 1, 4], layout=DN)]:
            return b

    after = run(Before)
    ir.assert_structural_equal(after, Expected)
    assert only(after, "kernel").params[1] is only(Before, "kernel").params[1]
    assert run(after) is after
    assert strict(after) == []


def test_names_and_spans_survive():
    x = ir.Var("x", tensor([4, 8]), SPAN)
    made = only(run(program(function([x], [x.type])))).params[0]
    assert (made.name_hint, made.span) == ("x", SPAN)


def test_symbolic_dimensions():
    rows, cols = pl.dynamic("rows"), pl.dynamic("cols")

    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self,
            x: pl.Tensor[[rows, cols], pl.FP32, pl.TensorView(stride=[], layout=DN)],
            y: pl.Tensor[[3, rows, cols], pl.FP32, pl.TensorView(stride=[], pad=pl.PadValue.zero)],
        ):
            pl.const(0, pl.INT64)

    x, y = only(run(Before), "kernel").params
    assert x.type.tensor_view.stride[0].value == 1
    assert x.type.tensor_view.stride[1] is x.type.shape[0]
    outer, inner, last = y.type.tensor_view.stride
    assert isinstance(outer, ir.Mul)
    assert inner is y.type.shape[2]
    assert last.value == 1


@pytest.mark.parametrize(
    "view",
    [
        None,
        ir.TensorView((16, 1), Layout.ND, pad=ir.PadValue.zero),
        ir.TensorView((1, 8), Layout.DN),
        ir.TensorView((1, 99), Layout.DN),
    ],
)
def test_nothing_to_do_is_the_same_program(view):
    x = ir.Var("x", ir.TensorType([8, 16], DataType.FP32, None, view))
    before = program(function([x], [x.type]))
    assert run(before) is before


def test_blocked_nz_is_row_major():
    x = ir.Var("x", tensor([1, 4, 3, 16, 16], Layout.NZ, dtype=DataType.FP16))
    after = run(program(function([x], [x.type])))
    assert strides(only(after).params[0].type) == [3072, 768, 256, 16, 1]
    assert strict(after) == []
    assert run(after) is after


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ([8, 16], DataType.FP32),
        ([1, 4, 3, 16, 16], DataType.FP32),
        ([1, 4, 3, 8, 16], DataType.FP16),
        ([4, 3, 16, 16], DataType.FP16),
    ],
)
@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("distributed", [False, True])
@pytest.mark.parametrize("level", list(passes.VerificationLevel))
def test_unblocked_nz_is_an_internal_error_at_its_slot(shape, dtype, explicit, distributed, level):
    packed = ir.tensor_view_semantics.canonicalize_view([ir.index_const(d) for d in shape], Layout.ND)
    stride = packed.stride if explicit else ()
    cls = ir.DistributedTensorType if distributed else ir.TensorType
    x = ir.Var("x", cls(shape, dtype, None, ir.TensorView(stride, Layout.NZ)), SPAN)
    before = program(function([x], []))
    with passes.PassContext([], level), pytest.raises(InternalError, match=r"NZ layout.*kernel\.py:7"):
        run(before)


def test_unblocked_nz_is_found_in_every_kind_of_slot():
    bad, good = tensor([8, 16], Layout.NZ), ir.TensorType([8, 16], DataType.FP32)
    x = ir.Var("x", good)
    op = ir.Op("tensor.anything")
    call = ir.Call(op, [x], bad, SPAN)
    pair = ir.TupleType([good, bad])
    task = ir.Submit(ir.GlobalVar("f"), [x], type=pair, span=SPAN)
    carried = ir.IterArg("c", bad, x, SPAN)
    loop = ir.ForStmt(
        ir.Var("i", INDEX), ir.index_const(0), ir.index_const(2), ir.index_const(1), [carried],
        ir.YieldStmt([carried]), [ir.Var("r", good)],
    )  # fmt: skip
    slots = {
        "call": function([x], [], ir.EvalStmt(call)),
        "submit": function([x], [], ir.EvalStmt(task)),
        "tuple": function([ir.Var("t", pair, SPAN)], []),
        "loop": function([x], [], loop),
        "return": ir.Function("f", [x], [bad], ir.ReturnStmt([x]), SPAN, type=ir.FunctionType.InCore),
        "local": function([x], [], ir.AssignStmt(ir.Var("y", bad, SPAN), x)),
    }
    for kind, body in slots.items():
        with pytest.raises(InternalError, match=r"NZ layout") as caught:
            run(program(body))
        assert caught.value.span is SPAN, kind


def test_a_layout_a_shape_cannot_have_is_an_internal_error():
    x = ir.Var("x", tensor([8], Layout.DN), SPAN)
    with pytest.raises(InternalError, match="rank >= 2"):
        run(program(function([x], [])))


def test_distributed_tensors_keep_what_is_not_strides():
    window = ir.WindowBuffer(ir.Var("buf", ir.PtrType()), ir.index_const(128))
    memref = ir.MemRef(ir.Var("base", ir.PtrType()), 0, 128)
    view = ir.TensorView((), Layout.DN, (2, 8), ir.PadValue.zero)
    x = ir.Var("x", ir.DistributedTensorType([4, 8], DataType.FP32, memref, view, window))
    made = only(run(program(function([x], [x.type])))).params[0].type
    assert isinstance(made, ir.DistributedTensorType)
    assert made.memref is memref
    assert made.window_buffer is window
    assert strides(made) == [1, 4]
    assert (made.tensor_view.pad, [d.value for d in made.tensor_view.valid_shape]) == (ir.PadValue.zero, [2, 8])


def test_tuple_types():
    pair = ir.TupleType([tensor([4, 8]), ir.TupleType([tensor([2, 4, 8]), INDEX])])
    x = ir.Var("x", pair)
    made = only(run(program(function([x], [pair]))))
    for type in (made.params[0].type, made.return_types[0]):
        assert strides(type.types[0]) == [1, 4]
        assert strides(type.types[1].types[0]) == [32, 1, 4]
        assert type.types[1].types[1] is INDEX


def test_loop_carried_variables_and_their_initial_values():
    x = ir.Var("x", tensor([4, 8]))
    carried = ir.IterArg("c", tensor([4, 8]), x)
    result = ir.Var("r", tensor([4, 8]))
    loop = ir.ForStmt(
        ir.Var("i", INDEX), ir.index_const(0), ir.index_const(4), ir.index_const(1), [carried],
        ir.YieldStmt([carried]), [result],
    )  # fmt: skip
    made = only(run(program(function([x], [x.type], loop, ir.ReturnStmt([result])))))
    stmt, end = made.body.stmts
    assert strides(stmt.iter_args[0].type) == [1, 4]
    assert stmt.iter_args[0].init_value is made.params[0]
    assert stmt.body.values[0] is stmt.iter_args[0]
    assert end.value[0] is stmt.return_vars[0]
    assert strides(stmt.return_vars[0].type) == [1, 4]


def test_while_loops():
    x = ir.Var("x", tensor([4, 8]))
    carried = ir.IterArg("c", tensor([4, 8]), x)
    result = ir.Var("r", tensor([4, 8]))
    loop = ir.WhileStmt(ir.ConstBool(False), [carried], ir.YieldStmt([carried]), [result])
    made = only(run(program(function([x], [x.type], loop, ir.ReturnStmt([result])))))
    assert strides(made.body.stmts[0].iter_args[0].type) == strides(made.body.stmts[0].return_vars[0].type) == [1, 4]


def test_calls_of_functions_and_task_launches():
    kernel_in = ir.Var("x", tensor([4, 8]))
    kernel = function([kernel_in], [kernel_in.type], name="kernel")
    a = ir.Var("a", tensor([4, 8]))
    launched = ir.TupleType([tensor([4, 8]), ir.ScalarType(DataType.TASK_ID)])
    called, task = ir.Var("called", tensor([4, 8])), ir.Var("task", launched)
    caller = function(
        [a],
        [launched],
        ir.AssignStmt(called, ir.Call(ir.GlobalVar("kernel"), [a], tensor([4, 8]))),
        ir.AssignStmt(task, ir.Submit(ir.GlobalVar("kernel"), [called], type=launched)),
        ir.ReturnStmt([task]),
        name="caller",
        kind=ir.FunctionType.Orchestration,
    )
    made = only(run(program(kernel, caller)), "caller")
    first, second, end = made.body.stmts
    assert strides(first.var.type) == strides(first.value.type) == [1, 4]
    assert strides(second.var.type.types[0]) == strides(second.value.type.types[0]) == [1, 4]
    assert second.value.args[0] is first.var
    assert end.value[0] is second.var


def test_a_view_of_a_strided_tensor_inherits_its_strides():
    """A slice of a packed [4, 8] DN tensor steps through it by 4, not by its own 2 rows."""
    x = ir.Var("x", tensor([4, 8]))
    sliced = registry.call("tensor.slice", x, [2, 8], [0, 0])
    implicit = sliced.replace(type=tensor([2, 8]))
    part = ir.Var("part", tensor([2, 8]))
    made = only(run(program(function([x], [x.type], ir.AssignStmt(part, implicit), ir.ReturnStmt([x])))))
    stmt = made.body.stmts[0]
    assert strides(stmt.value.type) == strides(stmt.var.type) == [1, 4]


def test_strides_an_author_wrote_are_not_replaced_by_the_value_s():
    x = ir.Var("x", tensor([4, 8]))
    wide = ir.Var("wide", tensor([4, 8], stride=(1, 64)))
    made = only(run(program(function([x], [], ir.AssignStmt(wide, x)))))
    assert strides(made.body.var.type) == [1, 64]


def test_the_verifier_tells_what_is_missing_and_where():
    x = ir.Var("x", tensor([4, 8]), SPAN)
    before = program(function([x], [x.type]))
    assert passes.verify_tensor_view_canonical(before) == []
    first, *_ = strict(before)
    assert "in function 'f'" in first.message
    assert "stride is empty" in first.message
    assert "MaterializeTensorStrides" in first.message
    assert first.rule_name == "TensorViewCanonical"
    assert first.span is SPAN
    props = passes.IRPropertySet([passes.IRProperty.TensorViewCanonical])
    with pytest.raises(VerificationError, match="stride is empty"):
        passes.PropertyVerifierRegistry.verify_or_throw(props, before)
    passes.PropertyVerifierRegistry.verify_or_throw(props, run(before))


@pytest.mark.parametrize(
    ("type", "reason"),
    [
        (tensor([8, 16], Layout.NZ), "tile-only"),
        (tensor([4, 8], Layout.ND, (1, 4)), "innermost"),
        (tensor([4, 8], Layout.ND, (4, 1)), "smaller than packed"),
        (tensor([1, 4, 3, 16, 16], Layout.NZ), "tile-only"),
    ],
)
def test_the_verifier_finds_views_no_pass_would_write(type, reason):
    found = passes.verify_tensor_view_canonical(program(function([ir.Var("x", type)], [])))
    assert [reason in d.message for d in found] == [True]
