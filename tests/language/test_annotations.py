"""Annotations to types, and annotations against values."""

from __future__ import annotations

import ast

import pytest

import pypto.language as pl
from pypto import ir
from pypto.errors import ParserTypeError
from pypto.ir.stmt import flatten_to_stmts
from pypto.language.parser.expr_evaluator import ExprEvaluator
from pypto.language.parser.type_resolver import TypeResolver


def resolve(text: str, **names: object) -> ir.Type:
    return TypeResolver(ExprEvaluator(names)).resolve_type(ast.parse(text, mode="eval").body)


def test_tensors():
    t = resolve("pl.Tensor[[rows, 8], dtype, pl.NZ]", rows=4, dtype=pl.BF16)
    assert ([d.value for d in t.shape], t.dtype, t.layout) == ([4, 8], pl.BF16, ir.TensorLayout.NZ)
    view = "pl.TensorView(stride=[16, 1], layout=pl.TensorLayout.ND, valid_shape=[4, n])"
    n = pl.dynamic("n")
    t = resolve(f"pl.Tensor[[4, 8], pl.FP32, {view}]", n=n)
    assert [d.value for d in t.tensor_view.stride] == [16, 1]
    assert t.tensor_view.valid_shape[1] is n.var
    assert resolve("pl.Tensor[[4], pl.FP32, pl.TensorView()]").tensor_view is None


def test_tiles():
    t = resolve("pl.Tile[[16, 16], pl.FP16, pl.Mem.Left, pl.TileView(valid_shape=[8, 16], fractal=512)]")
    assert t.memory_space is ir.MemorySpace.Left
    assert [d.value for d in t.valid_shape] == [8, 16]
    t = resolve('pl.Tile[[16, 16], pl.FP16, pl.MemRef("mem_vec_0", 64, 512), pl.Mem.Vec]')
    assert (t.memref.name_hint, t.memref.byte_offset.value, t.memref.size) == ("mem_vec_0", 64, 512)


def test_declared_allocations():
    shared, pair = pl.MemRef(), pl.MemRef(slots=2)
    resolver = TypeResolver(ExprEvaluator({"shared": shared, "pair": pair}))

    def memref(text: str) -> ir.MemRef:
        node = ast.parse(f"pl.Tile[[16, 16], pl.FP16, {text}, pl.Mem.Vec]", mode="eval").body
        return resolver.resolve_type(node).memref

    first = memref("shared")
    assert first.is_pinned and first.name_hint == "shared"
    assert ir.MemRef.same_allocation(first, memref("shared"))
    slot = memref("pair[1]")
    assert (slot.slot_count, slot.slot_index.value) == (2, 1)
    with pytest.raises(ParserTypeError, match="slot 2 is out of range"):
        memref("pair[2]")


def test_other_annotations():
    assert resolve("pl.INT32").dtype is pl.INT32
    assert resolve("pl.Array[4, pl.INT32]").extent.value == 4
    assert resolve("pl.TaskId").dtype is pl.TASK_ID
    assert isinstance(resolve("pl.Ptr"), ir.PtrType)
    assert [t.dtype for t in resolve("tuple[pl.FP32, pl.INT8]")] == [pl.FP32, pl.INT8]
    assert isinstance(resolve("pl.Tuple[pl.FP32]"), ir.TupleType)
    assert resolve("Row", Row=pl.Tensor[[8], pl.FP32]) == ir.TensorType([8], pl.FP32)
    assert resolve("'pl.Scalar[pl.FP16]'").dtype is pl.FP16


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pl.Tensor", "Incomplete type annotation"),
        ("pl.Tensor[[8]]", "requires a shape and a dtype"),
        ("pl.Tensor[[8], pl.FP33]", "Unknown dtype 'FP33'"),
        ("pl.Tensor[8, pl.FP32]", "must be a list or tuple"),
        ("pl.Tensor[[m], pl.FP32]", "Unknown shape variable 'm'"),
        ("pl.Tensor[[f], pl.FP32]", "must be int or pl.dynamic"),
        ("pl.Tensor[[-8], pl.FP32]", "extents are not negative"),
        ("pl.Tensor[[8], pl.FP32, pl.DN]", r"pl\.DN\] is not supported"),
        ("pl.Tensor[[8], pl.FP32, pl.NZ, pl.NZ]", "two TensorView parts"),
        ("pl.Tensor[[8], pl.FP32, pl.TensorView([1])]", "positional arguments"),
        ("pl.Tensor[[8], pl.FP32, pl.TensorView(strides=[1])]", "Unknown TensorView keyword 'strides'"),
        ("pl.Tile[[8, 8], pl.FP32, pl.NZ]", "does not accept layouts"),
        ("pl.Tile[[8, 8], pl.FP32, pl.Mem.Moon]", "Unknown MemorySpace 'Moon'"),
        ('pl.Tile[[8, 8], pl.FP32, pl.MemRef("a", 0, 64)]', "requires a memory space"),
        ("pl.Array[0, pl.INT32]", "positive extent"),
        ("tuple[tuple[pl.FP32], pl.FP32]", "Nested tuple types"),
        ("list[int]", "Unknown type annotation"),
    ],
)
def test_mistakes(text: str, message: str):
    with pytest.raises(ParserTypeError, match=message):
        resolve(text, f=1.5)


def annotated(annotation: str, value: str) -> ir.AssignStmt:
    source = f"@pl.function\ndef f(x: pl.Tensor[[64, 64], pl.FP32]):\n    y: {annotation} = {value}\n    return y\n"
    return flatten_to_stmts(pl.parse(source).body)[0]


def test_annotations_refine_the_inferred_type():
    stmt = annotated("pl.Tile[[64, 64], pl.FP32, pl.MemRef('m', 0, 16384), pl.Mem.Vec]", "pl.load(x, [0, 0], [64, 64])")
    assert stmt.var.type.memref.name_hint == "m"
    assert stmt.value.type == stmt.var.type
    stmt = annotated("pl.Scalar[pl.INT32]", "3")
    assert (stmt.value.value, stmt.value.dtype) == (3, pl.INT32)


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("pl.Tensor[[64, 32], pl.FP32]", "shape dimension 1 = 32, the value 64"),
        ("pl.Tensor[[64, 64], pl.FP16]", "dtype fp16, the value fp32"),
        ("pl.Tensor[[64], pl.FP32]", "rank 1, the value rank 2"),
        ("pl.Tile[[64, 64], pl.FP32]", "the annotation is a Tile, the value a Tensor"),
    ],
)
def test_annotations_that_contradict_the_value(annotation: str, message: str):
    with pytest.raises(ParserTypeError, match=message):
        annotated(annotation, "pl.exp(x)")


def test_annotation_objects():
    tensor = pl.Tensor((64, 128), pl.FP16)
    assert (tensor.shape, tensor.dtype) == ((64, 128), pl.FP16)
    with pytest.raises(ValueError, match="annotation-only Tensor"):
        tensor.unwrap()
    with pytest.raises(TypeError, match="multiple values for argument 'dtype'"):
        pl.Scalar(pl.FP32, dtype=pl.FP16)
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        pl.Tensor([1], pl.FP32, foo=1)
    with pytest.raises(ValueError, match="identifier"):
        pl.dynamic("2n")
    with pytest.raises(ValueError, match="slots must be a positive integer"):
        pl.MemRef(slots=0)


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("pl.MemRef(NAME)", "string literal"),
        ("ONE[0]", "single slot"),
    ],
)
def test_declared_allocations_are_checked(annotation: str, message: str):
    with pytest.raises(ParserTypeError, match=message):
        pl.parse(f"""
NAME, ONE = "a", pl.MemRef()
@pl.function
def f(x: pl.Tensor[[64], pl.FP32]):
    t: pl.Tile[[64], pl.FP32, {annotation}, pl.Mem.Vec] = pl.load(x, [0], [64])
""")
