"""The functions users call, derived from the declarations."""

import inspect
import warnings

import pytest
from operands import scalar, tensor, tile

from pypto.dtypes import DataType
from pypto.ir.enums import MemorySpace, PadValue
from pypto.ir.expr import Add, BitAnd, Cast, FloatDiv, Max, Min, Neg
from pypto.ir.span import Span
from pypto.ops import catalog, functions
from pypto.ops.functions import exported, tensor as on_tensor, tile as on_tile, unified

FP32, FP16, INT32 = DataType.FP32, DataType.FP16, DataType.INT32


# One operator.


def test_a_call_is_at_the_callers_line():
    line = inspect.currentframe().f_lineno + 1
    made = on_tile.exp(tile(8, 8))
    assert made.span.filename == __file__ and made.span.begin_line == line
    line = inspect.currentframe().f_lineno + 1
    assert unified["exp"](tensor(8)).span.begin_line == line


def test_a_span_may_be_given_by_keyword_or_last():
    span = Span("other.py", 3, 1)
    assert on_tile.exp(tile(8, 8), span=span).span is span
    assert on_tile.div(tile(8, 8), tile(8, 8), span).span is span
    assert on_tile.row_expand_add(tile(8, 8), tile(8, 1), span, tmp=tile(8, 8)).span is span


def test_a_function_documents_itself():
    assert on_tile.load.__name__ == "load"
    assert on_tile.load.__doc__.startswith("load(tensor, offsets, shapes, valid_shape=None")
    parameters = inspect.signature(on_tile.load).parameters
    assert list(parameters)[:3] == ["tensor", "offsets", "shapes"]
    assert parameters["valid_shape"].default is None and parameters["shapes"].default is inspect.Parameter.empty
    assert "Element by element, lhs + rhs" in unified["add"].__doc__


def test_functions_are_made_once_and_listed():
    assert on_tile.add is on_tile.add
    assert on_tile.arange is on_tile.ci
    assert {"add", "load", "arange", "not_", "mrgsort"} <= set(on_tile.__all__)
    assert "not" not in on_tile.__all__


def test_an_unknown_function_suggests_a_known_one():
    with pytest.raises(AttributeError, match="no operator pl.tile.lod; did you mean pl.tile.load?"):
        _ = on_tile.lod
    with pytest.raises(AttributeError, match="no operator pl.tile.not;"):
        getattr(on_tile, "not")


def test_build_takes_arguments_as_a_parser_has_them():
    span = Span("kernel.py", 4, 9)
    made = on_tile.load.build([tensor(64, 64), [0, 0], [16, 16]], {"target_memory": MemorySpace.Mat}, span)
    assert made.op.name == "tile.load" and made.span is span
    assert unified["add"].build([tile(8, 8), 2.0], {}, span).op.name == "tile.adds"


# By the first argument.


@pytest.mark.parametrize("name", sorted(catalog.UNIFIED))
def test_every_unified_operator_exists_on_both_levels(name):
    function = unified[name]
    if isinstance(function, functions.Unified):
        assert function.tile is not None and function.tensor is not None
    else:
        assert name in ("mrgsort",)


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        (tile(8, 8), tile(8, 8), "tile.add"),
        (tile(8, 8), 2, "tile.adds"),
        (tensor(8, 8), tensor(8), "tensor.add"),
        (tensor(8, 8), 2.5, "tensor.adds"),
        (tensor(8, 8), scalar(), "tensor.adds"),
    ],
)
def test_the_first_argument_decides(first, second, name):
    assert unified["add"](first, second).op.name == name
    assert unified["add"](lhs=first, rhs=second).op.name == name


def test_scalars_make_scalar_expressions():
    assert isinstance(unified["add"](scalar(), 1), Add)
    assert isinstance(unified["div"](scalar(INT32), 2), FloatDiv)
    assert isinstance(unified["maximum"](scalar(), scalar()), Max)
    assert isinstance(unified["min"](2, 3), Min)
    assert isinstance(unified["neg"](scalar()), Neg)
    assert isinstance(unified["and_"](scalar(INT32), 3), BitAnd)
    cast = unified["cast"](scalar(), INT32)
    assert isinstance(cast, Cast) and cast.type.dtype is INT32


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("add", ("text", 1), "pl.add: expected Tensor or Tile operands, got str"),
        ("exp", ("text",), "pl.exp: expected Tensor or Tile operand"),
        ("matmul", (1, 2), "pl.matmul: expected Tensor or Tile operands"),
        ("batch_matmul", (tensor(2, 8, 8), tensor(2, 8, 8)), "expected Tensor or Tile operands"),
        ("add", (2.0, tile(8, 8)), "hint: put the tile or tensor first"),
        ("add", (tensor(8), tile(8, 8)), "cannot mix Tensor and Tile"),
        ("add", (tile(8, 8), tensor(8)), "cannot mix Tensor and Tile"),
        ("min", (tile(8, 8), tile(8, 8)), "pl.minimum compares tiles"),
        ("row_max", (tile(8, 8),), "Tile inputs require tmp_tile"),
        ("row_max", (tensor(8, 8), tile(8, 8)), "Tensor inputs must not pass tmp_tile"),
        ("xor", (tile(8, 8, dtype=INT32), 1), "Tile inputs require an explicit scratch tile"),
        ("row_expand_add", (tensor(8, 8), tensor(8, 1), tile(8, 8)), "Tensor inputs must not pass tmp"),
    ],
)
def test_what_fits_no_form_is_refused(name, args, message):
    with pytest.raises(TypeError, match=message):
        unified[name](*args)


@pytest.mark.parametrize(
    ("name", "args", "keyword", "message"),
    [
        ("matmul", (tile(16, 16), tile(16, 16)), {"b_trans": True}, "'b_trans'.*for Tile.*transpose_view"),
        ("matmul_acc", (tile(16, 16), tile(16, 16), tile(16, 16)), {"a_trans": True}, "'a_trans'.*transpose_view"),
        ("matmul", (tile(16, 16), tile(16, 16)), {"out_dtype": FP16}, "out_dtype.*fp32"),
        ("matmul", (tile(16, 16), tile(16, 16)), {"out_dtype": 51}, "out_dtype"),
        ("rsqrt", (tile(8, 8),), {"high_precision": True}, "'high_precision'.*pl.tile.rsqrt"),
        ("slice", (tile(8, 8), [4, 8], [0, 0]), {"clamp": True}, "clamp=True is not supported for a Tile"),
        ("div", (scalar(), scalar()), {"high_precision": True}, "'high_precision' is not supported for Scalar"),
        ("cast", (scalar(), INT32), {"mode": "floor"}, "Scalar inputs do not support non-default mode 'floor'"),
        ("add", (tile(8, 8), 1), {"rsh": 2}, "unexpected keyword argument 'rsh'; did you mean 'rhs'?"),
    ],
)  # fmt: skip
def test_a_keyword_one_form_cannot_honour_names_the_alternative(name, args, keyword, message):
    with pytest.raises(TypeError, match=message):
        unified[name](*args, **keyword)


def test_such_a_keyword_at_its_default_is_no_refusal():
    made = unified["matmul"](tile(16, 16), tile(16, 16), a_trans=False, b_trans=False, c_matrix_nz=False)
    assert made.kwargs == {} and unified["matmul"](tile(16, 16), tile(16, 16), out_dtype=FP32).type.dtype is FP32
    assert unified["row_sum"](tensor(8, 8), None).op.name == "tensor.row_sum"
    assert unified["slice"](tensor(8, 8), [4, 8], [6, 0], clamp=True).type.valid_shape[0].value == 2


# By what is given.


def test_gather_and_mrgsort_choose_among_operators():
    index = tensor(4, 3, dtype=INT32)
    assert on_tensor.gather(tensor(4, 16), dim=-1, index=index).op.name == "tensor.gather"
    assert on_tensor.gather(tensor(4, 16), mask_pattern=1).op.name == "tensor.gather_mask"
    assert unified["mrgsort"](tile(1, 128), block_len=64).op.name == "tile.mrgsort_format1"
    assert unified["mrgsort"](tensor(1, 128), tensor(1, 128)).op.name == "tensor.mrgsort_format2"
    with pytest.raises(ValueError, match="mutually exclusive"):
        on_tensor.gather(tensor(4, 16), index=index, mask_pattern=1)
    with pytest.raises(TypeError, match="must not pass tmp"):
        unified["mrgsort"](tensor(1, 128), tensor(1, 128), tmp=tensor(1, 128))


# Names in pl.


def test_promoted_names_are_the_operators_themselves():
    assert exported["load"] is on_tile.load and exported["create_tile"] is on_tile.create
    assert exported["arange"] is on_tensor.ci and exported["create_tensor"] is on_tensor.create
    assert exported["add"] is unified["add"]


def test_no_name_is_exported_twice():
    assert not set(catalog.PROMOTED) & set(unified)


# Wrapped values and warnings.


class Wrapped:
    def __init__(self, expr):
        self.expr = expr

    def unwrap(self):
        return self.expr


def test_calls_on_wrapped_values_wrap_their_result():
    functions.set_wrapper(Wrapped)
    try:
        made = unified["add"](Wrapped(tile(8, 8)), Wrapped(tile(8, 8)))
        assert isinstance(made, Wrapped) and made.unwrap().op.name == "tile.add"
        assert not isinstance(on_tile.exp(tile(8, 8)), Wrapped)
        assert isinstance(on_tile.slice(Wrapped(tile(8, 8)), [4, 8], [Wrapped(scalar(DataType.INDEX)), 0]), Wrapped)
    finally:
        functions.set_wrapper(None)


def test_a_padding_mode_without_effect_is_told_at_the_users_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1
        unified["slice"](tensor(8, 8), [4, 8], [0, 0], pad_value=PadValue.min)
        unified["slice"](tensor(8, 8), [4, 8], [0, 0], valid_shape=[2, 8], pad_value=PadValue.min)
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, line)]
    assert "pad_value has no effect" in str(caught[0].message)
