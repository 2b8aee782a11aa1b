"""BlockNzTensorViews: what is refused, and how it is said."""

from __future__ import annotations

import pytest
from nz_programs import WEIGHT, kernel, load, loads, refused, run_to_flat, with_load

import pypto.language as pl
from pypto import ir, passes
from pypto.dtypes import DataType
from pypto.errors import InvalidOperationError


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        ("pl.Tensor[[40, 64], pl.INT8, pl.NZ]", r"NZ tensor 'w': 40 rows are not whole fractals of 16, got \[40, 64\]"),
        ("pl.Tensor[[2, 8, 64], pl.INT8, pl.NZ]", "8 rows are not whole fractals of 16"),
        ("pl.Tensor[[32, 48], pl.INT8, pl.NZ]", r"48 columns are not whole C0 lines of 32 int8 elements \(32 bytes\)"),
        ("pl.Tensor[[32, 24], pl.FP16, pl.NZ]", "24 columns are not whole C0 lines of 16 fp16"),
        ("pl.Tensor[[32, 4], pl.FP32, pl.NZ]", "4 columns are not whole C0 lines of 8 fp32"),
        ('pl.Tensor[[pl.dynamic("R"), 64], pl.INT8, pl.NZ]', "the last two dimensions must be constant"),
        ('pl.Tensor[[32, pl.dynamic("C")], pl.INT8, pl.NZ]', "the last two dimensions must be constant"),
        ("pl.Tensor[[64], pl.INT8, pl.NZ]", r"rank 1 has no fractals: the last two dimensions are their plane"),
        ("pl.Tensor[[2, 4, 64, 128], pl.INT8, pl.NZ]", "rank 4 has more than one leading dimension"),
        ("pl.Tensor[[1, 2, 2, 16, 32], pl.INT8, pl.NZ]", "rank 5 has more than one leading dimension"),
        ("pl.Tensor[[32, 64], pl.INT4, pl.NZ]", "elements of int4, narrower than a byte"),
        ("pl.Tensor[[32, 64], pl.UINT4, pl.NZ]", "elements of uint4, narrower than a byte"),
        ("pl.Tensor[[32, 64], pl.FP4, pl.NZ]", "elements of fp4, narrower than a byte"),
        ("pl.Tensor[[32, 64], pl.HF4, pl.NZ]", "elements of hf4, narrower than a byte"),
        ("pl.Tensor[[32, 256], pl.BOOL, pl.NZ]", "elements of bool, narrower than a byte"),
        ("pl.Tensor[[32, 64], pl.INT8, pl.TensorView(stride=[64, 1], layout=pl.TensorLayout.NZ)]", "explicit strides"),
        ("pl.Tensor[[32, 64], pl.INT8, pl.TensorView(valid_shape=[16, 64], layout=pl.TensorLayout.NZ)]",
         r"valid in \[16, 64\] only"),
    ],
)  # fmt: skip
def test_refused_tensors(tensor, message):
    error = refused(kernel("pl.const(0, pl.INT32)", tensor), message)
    assert error.message.startswith("NZ tensor 'w'")


def test_a_distributed_tensor_is_refused():
    kind = ir.DistributedTensorType([32, 64], DataType.INT8, None, ir.TensorView((), ir.TensorLayout.NZ))
    w = ir.Var("w", kind, ir.Span("kernel.py", 3, 5))
    program = ir.Program([ir.Function("f", [w], [], ir.ReturnStmt([]), type=ir.FunctionType.InCore)])
    with pytest.raises(ValueError, match="a distributed tensor cannot be in NZ") as caught:
        passes.block_nz_tensor_views()(program)
    assert caught.value.span.begin_line == 3  # pyright: ignore[reportAttributeAccessIssue]


BATCHED = "pl.Tensor[[4, 64, 128], pl.INT8, pl.NZ]"


@pytest.mark.parametrize(
    ("body", "tensor", "message"),
    [
        (load("[8, 0]"), WEIGHT, "the offset 8 of its rows is not a multiple of 16: no block starts there"),
        (load("[0, 16]"), WEIGHT, "the offset 16 of its columns is not a multiple of 32"),
        (load("[1, 0, 8]", "[1, 16, 32]"), BATCHED, "the offset 8 of its columns is not a multiple of 32"),
        (load("[0, 0]", memory="pl.Mem.Vec"), WEIGHT, "it goes to Vec, but NZ bytes are an operand of the cube"),
        ("wt = pl.tile.load(w, [0, 0], [16, 32])", WEIGHT, "it goes to Vec"),
        (load("[0, 0]", "[8, 32]"), WEIGHT, r"a window of \[8, 32\] does not hold rows in whole blocks of 16"),
        (load("[0, 0]", "[16, 48]"), WEIGHT, r"a window of \[16, 48\] does not hold columns in whole blocks of 32"),
        (load("[0, 0, 0]", "[2, 16, 32]"), BATCHED, r"a window of \[2, 16, 32\] spans several batches"),
        ("wt = pl.tile.load(w, [0, 0], [16, 32], valid_shape=[8, 32], target_memory=pl.Mem.Mat)", WEIGHT,
         r"it is valid in \[8, 32\] of \[16, 32\] only"),
        ("wt = pl.tile.load(w, [0, 0], [16, 32], valid_shape=[n, 32], target_memory=pl.Mem.Mat)", WEIGHT,
         r"of \[16, 32\] only"),
        (["n0 = pl.tile.get_block_idx() * 16",
          "wt = pl.tile.load(w, [n0, 0], [16, 32], target_memory=pl.Mem.Mat, clamp=True)"], WEIGHT,
         "cut at the tensor's edge"),
        (load("[n, 0, 0]", "[16, 32]"), BATCHED, "must have one entry for each dimension"),
    ],
)  # fmt: skip
def test_refused_loads(body, tensor, message):
    error = refused(kernel(body, tensor), message)
    assert error.message.startswith("tile.load of NZ tensor 'w': ")


def test_a_negative_constant_offset_is_refused():
    program = run_to_flat(kernel(load("[0, 0]")))
    (call,) = loads(program)
    offsets = ir.MakeTuple([ir.index_const(-16), ir.index_const(0)])
    back = call.replace(args=type(call.args)([call.args[0], offsets, *call.args[2:]]))
    with pytest.raises(ValueError, match="the offset -16 of its rows is negative"):
        passes.block_nz_tensor_views()(with_load(program, back))


def test_a_tile_in_another_layout_is_refused():
    program = run_to_flat(kernel(load("[0, 0]", "[32, 32]")))
    (call,) = loads(program)
    view = ir.TileView((), (), None, ir.TileLayout.row_major, ir.TileLayout.col_major, 512)
    other = call.replace(type=ir.TileType([32, 32], DataType.INT8, None, view, ir.MemorySpace.Mat))
    with pytest.raises(ValueError, match="the tile is not in NZ"):
        passes.block_nz_tensor_views()(with_load(program, other))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("t = pl.tile.load(out, [0, 0], [16, 32])\npl.tile.store(t, [0, 0], w)", "tile.store uses NZ tensor 'w'"),
        ("e = pl.tensor.read(w, [0, 0])", "tensor.read uses NZ tensor 'w'"),
        ("d = pl.tensor.dim(w, 0)", "tensor.dim uses NZ tensor 'w'"),
        ("s = pl.tensor.slice(w, [16, 32], [0, 0])", "tensor.slice uses NZ tensor 'w'"),
    ],
)
def test_other_uses(body, message):
    error = refused(kernel(body), message)
    assert error.message.endswith("here NZ is read-only, and only tile.load reads it")


def test_making_an_nz_tensor_is_refused():
    kind = ir.TensorType([32, 64], DataType.INT8, None, ir.TensorView((), ir.TensorLayout.NZ))
    call = ir.Call(ir.Op("tensor.create"), [], None, None, kind, ir.Span("kernel.py", 4, 9))
    body = ir.AssignStmt(ir.Var("w", kind), call, ir.Span("kernel.py", 4, 5))
    program = ir.Program([ir.Function("f", [], [], body, type=ir.FunctionType.Orchestration)])
    with pytest.raises(ValueError, match="tensor.create makes a tensor in NZ: here NZ is read-only"):
        passes.block_nz_tensor_views()(program)


@pytest.mark.parametrize(
    "body",
    [
        "v = pl.tensor.view(w, [512, 256])",
        "v = pl.tensor.view(w, layout=pl.TensorLayout.ND)",
        "v = pl.tensor.view(out, layout=pl.TensorLayout.NZ)",
        "v = pl.tensor.reinterpret_view(w, dtype=pl.UINT8)",
    ],
)
def test_views_are_refused_at_construction(body):
    with pytest.raises(InvalidOperationError, match="NZ layout is not allowed for a tensor view"):
        kernel(body)


def test_errors_point_at_the_user():
    @pl.program
    class Kernel:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, w: pl.Tensor[[256, 512], pl.INT8, pl.NZ], n: pl.Scalar[pl.INDEX]):
            n0 = n * 16
            wt = pl.tile.load(w, [n0, 0], [16, 32], target_memory=pl.Mem.Mat)  # noqa: F841

    error = refused(Kernel, "'n0' of its rows is a multiple of 16, but not provably non-negative")
    text = str(error)
    assert f"{__file__}:" in text and "wt = pl.tile.load(w, [n0, 0]" in text and "^^^" in text and "= hint:" in text
