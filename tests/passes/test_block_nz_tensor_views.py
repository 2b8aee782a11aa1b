"""BlockNzTensorViews: NZ tensors and their loads in blocks, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from nz_programs import becomes, kernel, load, loads, offsets_of, refused, run, run_to_flat, values, with_load

import pypto.language as pl
from pypto import ir, passes
from pypto.dtypes import DataType
from pypto.errors import InternalError
from pypto.ir.tensor_view_semantics import build_logical_strides_from_layout
from pypto.passes.pipeline import PIPELINE
from pypto.passes.tensor_blocks.proofs import Facts

REFUSALS = "passes/test_block_nz_tensor_views_refusals.py"
NUMERIC = "passes/test_block_nz_tensor_views_numeric.py"
SPECIFICATION = {
    # Shape and strides
    "rank is 5, batch kept": ["test_rank_three_and_its_load"],
    "rank is 5, batch made": ["test_rank_two_and_its_load"],
    "c0 is 32 bytes of elements": ["test_the_block_of_every_width"],
    "row-major strides of the blocks are the NZ strides": ["test_strides_of_a_blocked_shape"],
    # Place
    "after FlattenTileNdTo2D, before MaterializeTensorStrides": ["test_place_in_the_pipeline"],
    "FlattenTileNdTo2D keeps NZ windows": ["test_flattening_leaves_nz_windows_alone"],
    "a tile that is still n-D breaks an invariant": ["test_a_tile_that_is_not_flat_is_a_defect_of_the_pipeline"],
    # Phase 1: every type
    "parameters, returns, variables": ["test_parameters_returns_and_aliases"],
    "loop-carried variables, tuples, calls": ["test_loops_calls_and_tuples"],
    "task launches": ["test_launched_tasks"],
    # Phase 2: offsets
    "constant offsets": ["test_rank_three_and_its_load", "test_rank_two_and_its_load"],
    "AssignStmt, a factor is a multiple": ["test_provable_offsets"],
    "ForStmt, start and step": ["test_provable_offsets"],
    "block index and count": ["test_provable_offsets"],
    "sums and products": ["test_provable_offsets"],
    "the offset is divided as a whole, in its dtype": ["test_the_offset_is_divided_and_not_rearranged"],
    "arithmetic wraps, rearranged it would not": ["test_rearranging_would_be_wrong_where_arithmetic_wraps"],
    "divisors are powers of two": ["test_a_divisor_that_is_no_power_of_two_is_a_defect"],
    "loop-carried values are not resolved": ["test_a_loop_carried_offset_proves_nothing"],
    "divisible but of unknown sign": ["test_offsets_of_unknown_sign"],
    "a difference is divisible, not non-negative": ["test_offsets_of_unknown_sign"],
    "the tile type is kept": ["test_the_tile_and_attributes_of_a_load_are_kept"],
    # Scope
    "shape[-2] % 16": [f"{REFUSALS}:test_refused_tensors"],
    "shape[-1] % c0": [f"{REFUSALS}:test_refused_tensors"],
    "dynamic shape[-2], shape[-1]": [f"{REFUSALS}:test_refused_tensors", "test_a_dynamic_batch_is_fine"],
    "misaligned slice offset": [
        f"{REFUSALS}:test_refused_loads",
        f"{REFUSALS}:test_a_negative_constant_offset_is_refused",
    ],
    "symbolic offset, provable": ["test_provable_offsets"],
    "symbolic offset, alignment not provable": ["test_unprovable_offsets"],
    "symbolic offset, sign not provable": ["test_offsets_of_unknown_sign"],
    "rank 2": ["test_rank_two_and_its_load"],
    "rank 3": ["test_rank_three_and_its_load"],
    "rank < 2": [f"{REFUSALS}:test_refused_tensors"],
    "rank > 3": [f"{REFUSALS}:test_refused_tensors"],
    "target_memory": [f"{REFUSALS}:test_refused_loads"],
    "other consumers": [f"{REFUSALS}:test_other_uses", f"{REFUSALS}:test_making_an_nz_tensor_is_refused"],
    "explicit stride or partial valid_shape": [f"{REFUSALS}:test_refused_tensors", f"{REFUSALS}:test_refused_loads"],
    "distributed": [f"{REFUSALS}:test_a_distributed_tensor_is_refused"],
    "views at construction": [f"{REFUSALS}:test_views_are_refused_at_construction"],
    "elements below a byte": [f"{REFUSALS}:test_refused_tensors"],
    "errors are the user's, at the user's line": [f"{REFUSALS}:test_errors_point_at_the_user"],
    # Idempotence
    "rewritten functions are marked": ["test_only_rewritten_functions_are_marked"],
    "a marked function is left alone": ["test_running_twice_is_running_once"],
    # Downstream
    "TensorViewCanonical accepts blocks": ["test_verifiers_accept_blocks_only"],
    "generated text": [f"{NUMERIC}:test_the_text_of_the_specification"],
    "grouped matmul, by expert, row and K": [f"{NUMERIC}:test_grouped_matmul_text", f"{NUMERIC}:test_grouped_matmul"],
    "rank-2 weight": [f"{NUMERIC}:test_rank_two_weight"],
    "without the pass": [f"{NUMERIC}:test_without_the_pass_nothing_runs",
                         f"{NUMERIC}:test_bytes_in_nz_order_read_as_rows_give_wrong_numbers",
                         f"{NUMERIC}:test_a_guessed_block_reads_the_wrong_fractal"],
    "old assemblers are refused": ["toolchain/test_ptoas.py:test_old_version_is_refused_with_the_reason"],
}  # fmt: skip
"""Each statement of the specification, and the tests that hold it."""


def test_every_statement_has_its_tests():
    for tests in SPECIFICATION.values():
        for name in tests:
            file, _, test = name.rpartition(":")
            source = Path(__file__).parents[1] / file if file else Path(__file__)
            assert f"\ndef {test}(" in source.read_text(encoding="utf-8"), name


# What becomes of tensors and loads.


def test_rank_three_and_its_load():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, w: pl.Tensor[[32, 2048, 4096], pl.INT8, pl.NZ]):
            wt: pl.Tile[[256, 512], pl.INT8, pl.Mem.Mat] = pl.tile.load(  # noqa: F841
                w, [1, 256, 512], [1, 256, 512], target_memory=pl.Mem.Mat
            )

    @pl.program
    class Expected:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, w: pl.Tensor[[32, 128, 128, 16, 32], pl.INT8, pl.NZ]):
            pl.func_attr({"nz_tensor_views_blocked": True})
            wt: pl.Tile[[256, 512], pl.INT8, pl.Mem.Mat] = pl.tile.load(  # noqa: F841
                w, [1, 16, 16, 0, 0], [1, 16, 16, 16, 32], target_memory=pl.Mem.Mat
            )

    becomes(Before, Expected)


def test_rank_two_and_its_load():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, w: pl.Tensor[[256, 512], pl.INT8, pl.NZ]):
            wt: pl.Tile[[64, 128], pl.INT8, pl.Mem.Mat] = pl.tile.load(  # noqa: F841
                w, [128, 384], [64, 128], target_memory=pl.Mem.Mat
            )

    @pl.program
    class Expected:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, w: pl.Tensor[[1, 16, 16, 16, 32], pl.INT8, pl.NZ]):
            pl.func_attr({"nz_tensor_views_blocked": True})
            wt: pl.Tile[[64, 128], pl.INT8, pl.Mem.Mat] = pl.tile.load(  # noqa: F841
                w, [0, 12, 8, 0, 0], [1, 4, 4, 16, 32], target_memory=pl.Mem.Mat
            )

    becomes(Before, Expected)


@pytest.mark.parametrize(
    ("dtype", "c0"),
    [("INT8", 32), ("UINT8", 32), ("FP8E4M3FN", 32), ("HF8", 32), ("FP16", 16), ("BF16", 16), ("INT16", 16),
     ("FP32", 8), ("INT32", 8), ("INT64", 4)],
)  # fmt: skip
def test_the_block_of_every_width(dtype, c0):
    tensor = f"pl.Tensor[[3, 32, {6 * c0}], pl.{dtype}, pl.NZ]"
    made = run(kernel(load(f"[2, 16, {4 * c0}]", f"[1, 16, {2 * c0}]"), tensor))
    (call,) = loads(made)
    assert values(made.get_function("kernel").params[0].type.shape) == [3, 6, 2, 16, c0]
    assert values(call.args[1].elements) == [2, 4, 1, 0, 0]
    assert values(call.args[2].elements) == values(call.args[3].elements) == [1, 2, 1, 16, c0]
    assert values(call.type.shape) == [16, 2 * c0]


def test_strides_of_a_blocked_shape():
    # The strides the instruction set gives an NZ view of rows x cols: [cols*rows, rows*c0, 16*c0, c0, 1].
    for batch, rows, cols, c0 in ((1, 256, 512, 32), (32, 2048, 4096, 32), (5, 48, 96, 16), (2, 16, 8, 8)):
        shape = [ir.index_const(d) for d in (batch, cols // c0, rows // 16, 16, c0)]
        made = build_logical_strides_from_layout(shape, ir.TensorLayout.NZ)
        assert values(made) == [cols * rows, rows * c0, 16 * c0, c0, 1]


def test_parameters_returns_and_aliases():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, w: pl.Tensor[[32, 64], pl.INT8, pl.NZ], x: pl.Tensor[[32, 64], pl.INT8]
        ) -> tuple[pl.Tensor[[32, 64], pl.INT8, pl.NZ], pl.Tensor[[32, 64], pl.INT8]]:
            v = w
            return v, x

    before = passes.convert_to_ssa()(Before)
    after = run(before).get_function("main")
    blocked = ir.TensorType([1, 2, 2, 16, 32], DataType.INT8, None, ir.TensorView((), ir.TensorLayout.NZ))
    assert after.params[0].type == after.return_types[0] == blocked
    alias = after.body.stmts[0]
    assert alias.value is after.params[0] and alias.var.type == blocked and after.body.stmts[1].values[0] is alias.var
    assert after.params[1] is before.get_function("main").params[1]
    assert (after.params[0].name_hint, after.params[0].span) == (
        before.get_function("main").params[0].name_hint, before.get_function("main").params[0].span,
    )  # fmt: skip


def test_loops_calls_and_tuples():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.Orchestration)
        def pick(
            self, w: pl.Tensor[[32, 64], pl.INT8, pl.NZ], x: pl.Tensor[[4], pl.FP32]
        ) -> tuple[pl.Tensor[[32, 64], pl.INT8, pl.NZ], pl.Tensor[[4], pl.FP32]]:
            return w, x

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, w: pl.Tensor[[32, 64], pl.INT8, pl.NZ], x: pl.Tensor[[4], pl.FP32]
        ) -> pl.Tensor[[32, 64], pl.INT8, pl.NZ]:
            for _, (carried, y) in pl.range(0, 4, init_values=(w, x)):
                a, b = self.pick(carried, y)
                w_out, x_out = pl.yield_(a, b)
            return w_out

    after = run(Before)
    assert not [t for f in after.functions.values() for t in types_in(f) if ir_nz(t) and len(t.shape) != 5]
    main = after.get_function("main")
    loop = next(s for s in main.body.stmts if isinstance(s, ir.ForStmt))
    kinds = [loop.iter_args[0].type, loop.return_vars[0].type, loop.iter_args[0].init_value.type, main.return_types[0]]
    call = next(n for n in ir.visitor.walk(loop.body) if isinstance(n, ir.Call))
    kinds += [call.type.types[0], call.args[0].type]
    assert all(values(k.shape) == [1, 2, 2, 16, 32] for k in kinds)
    assert values(call.type.types[1].shape) == [4] and values(loop.iter_args[1].type.shape) == [4]


def ir_nz(type):
    return isinstance(type, ir.TensorType) and type.layout is ir.TensorLayout.NZ


def types_in(function):
    """Every type a function mentions, members of tuples too."""
    found = [*function.return_types]

    class Collector(ir.visitor.Visitor):
        def visit(self, op):
            if isinstance(op, ir.Expr):
                found.append(op.type)
            super().visit(op)

        def define(self, var):
            found.append(var.type)
            super().define(var)

    Collector().visit(function)
    return [t for k in found for t in ([*k.types, k] if isinstance(k, ir.TupleType) else [k])]


def test_launched_tasks():
    nz = ir.TensorType([32, 64], DataType.INT8, None, ir.TensorView((), ir.TensorLayout.NZ))
    w, task = ir.Var("w", nz), ir.TupleType([nz, ir.ScalarType(DataType.TASK_ID)])
    launch = ir.Submit(ir.GlobalVar("other"), [w], None, None, None, task)
    body = ir.AssignStmt(ir.Var("ret", task), launch, ir.Span.unknown())
    before = ir.Program([ir.Function("main", [w], [], body, type=ir.FunctionType.Orchestration)])
    after = passes.block_nz_tensor_views()(before).get_function("main")
    made = after.body.value
    assert isinstance(made, ir.Submit) and made.args[0] is after.params[0]
    for kind in (made.type, after.body.var.type):
        assert values(kind.types[0].shape) == [1, 2, 2, 16, 32]


def test_a_dynamic_batch_is_fine():
    program = kernel(load("[n, 16, 32]", "[1, 16, 32]"), 'pl.Tensor[[pl.dynamic("E"), 64, 128], pl.INT8, pl.NZ]')
    made = run(program)
    batch, *rest = made.get_function("kernel").params[0].type.shape
    assert isinstance(batch, ir.Var) and values(rest) == [4, 4, 16, 32]
    assert offsets_of(made)[0] is made.get_function("kernel").params[1]


def test_the_tile_and_attributes_of_a_load_are_kept():
    before = passes.flatten_tile_nd_to_2d()(passes.convert_to_ssa()(kernel(load("[16, 32]"))))
    (old,) = loads(before)
    (new,) = loads(passes.block_nz_tensor_views()(with_load(before, old.replace(attrs={"noted": True}))))
    assert new.type is old.type and new.kwargs == old.kwargs and new.attrs == {"noted": True} and new.span == old.span


def test_programs_without_nz_are_returned_as_they_are():
    for view in ("", ", pl.TensorView(stride=[], layout=pl.TensorLayout.DN)"):
        before = passes.convert_to_ssa()(kernel("pl.const(0, pl.INT32)", f"pl.Tensor[[16, 32], pl.INT8{view}]"))
        assert passes.block_nz_tensor_views()(before) is before


def test_only_rewritten_functions_are_marked():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.Orchestration)
        def plain(self, x: pl.Tensor[[16], pl.FP32]) -> pl.Tensor[[16], pl.FP32]:
            return x

        @pl.function(type=pl.FunctionType.Orchestration)
        def with_nz(self, w: pl.Tensor[[16, 32], pl.INT8, pl.NZ]) -> pl.Tensor[[16, 32], pl.INT8, pl.NZ]:
            return w

    after = run(Before)
    assert after.get_function("plain").attrs == {}
    assert after.get_function("with_nz").attrs == {"nz_tensor_views_blocked": True}


def test_running_twice_is_running_once():
    once = run(kernel(load("[16, 32]")))
    assert passes.block_nz_tensor_views()(once) is once
    # A logical shape can end in [16, c0]: only the mark tells it from a blocked one.
    tall = run(kernel("pl.const(0, pl.INT32)", "pl.Tensor[[4, 16, 32], pl.INT8, pl.NZ]"))
    assert values(tall.get_function("kernel").params[0].type.shape) == [4, 1, 1, 16, 32]
    assert passes.block_nz_tensor_views()(tall) is tall


def test_place_in_the_pipeline():
    at = PIPELINE.index("block_nz_tensor_views")
    assert PIPELINE[at - 1] == "flatten_tile_nd_to_2d"
    assert PIPELINE.index("convert_tensor_to_tile_ops") < at < PIPELINE.index("materialize_tensor_strides")
    made = passes.block_nz_tensor_views()
    same = {"SSAForm", "IncoreTileOps", "TileOps2D", "NormalizedStmtStructure"}
    assert {p.name for p in made.requires} == {p.name for p in made.produces} == same
    assert made.name == "BlockNzTensorViews" and not made.invalidates


def test_flattening_leaves_nz_windows_alone():
    tensor = "pl.Tensor[[4, 64, 128], pl.INT8{}]"
    for layout, kept in ((", pl.NZ", True), ("", False)):
        body = load("[1, 16, 32]", "[1, 16, 64]")
        flat = passes.flatten_tile_nd_to_2d()(passes.convert_to_ssa()(kernel(body, tensor.format(layout))))
        (call,) = loads(flat)
        assert (values(call.args[2].elements) == [1, 16, 64]) is kept
        assert values(call.type.shape) == [16, 64]


def test_a_tile_that_is_not_flat_is_a_defect_of_the_pipeline():
    program = passes.convert_to_ssa()(
        kernel(load("[1, 16, 32]", "[1, 16, 64]"), "pl.Tensor[[4, 64, 128], pl.INT8, pl.NZ]")
    )
    with pytest.raises(InternalError, match="FlattenTileNdTo2D has not run"):
        passes.block_nz_tensor_views()(program)


def test_verifiers_accept_blocks_only():
    blocked = run(kernel(load("[16, 32]")))
    assert passes.verify_tensor_view_canonical(blocked, require_materialized=False) == []
    logical = passes.convert_to_ssa()(kernel(load("[16, 32]")))
    assert passes.verify_tensor_view_canonical(logical, require_materialized=False)
    with pytest.raises(InternalError, match="BlockNzTensorViews has not run"):
        passes.materialize_tensor_strides()(logical)
    done = passes.materialize_tensor_strides()(blocked)
    assert passes.verify_tensor_view_canonical(done, require_materialized=True) == []
    assert values(done.get_function("kernel").params[0].type.tensor_view.stride) == [131072, 8192, 512, 32, 1]


# Symbolic offsets.

ROWS_FROM = {
    "an assigned product": ("n0 = pl.tile.get_block_idx() * 16",),
    "the other factor": ("n0 = 48 * pl.tile.get_block_num()",),
    "a chain of names": ("b = pl.tile.get_block_idx()", "t = b * 32", "n0 = t"),
    "a product of names": ("b = pl.tile.get_block_idx()", "c = 32 + 0 * b", "n0 = b * c * 16"),
    "a sum": ("b = pl.tile.get_block_idx()", "n0 = b * 16 + 32"),
    "a sum of products": ("b = pl.tile.get_block_idx()", "n0 = b * 64 + pl.tile.get_block_num() * 16"),
    "more than the divisor": ("n0 = pl.tile.get_block_idx() * 256",),
    "zero, whatever it is multiplied with": ("n0 = pl.tile.get_block_idx() * 0",),
    "a loop in a loop": ("for i in pl.range(0, 64, 16):", "    for j in pl.range(i, 256, 32):", "        n0 = i + j"),
    "a loop over blocks, scaled": ("for i in pl.range(4):", "    n0 = i * 16"),
    "a pipelined loop": ("for n0 in pl.pipeline(16, 256, 48, stage=2):",),
    "a loop from a product": ("b = pl.tile.get_block_idx()", "for n0 in pl.range(b * 32, 256, 16):"),
    "a loop with a step from a name": ("b = pl.tile.get_block_num()", "for n0 in pl.range(0, 256, b * 16):"),
}


def ending(lines, last):
    """``last`` as the innermost statement after ``lines``."""
    depth = len(lines[-1]) - len(lines[-1].lstrip()) + (4 if lines[-1].endswith(":") else 0)
    return [*lines, " " * depth + last]


@pytest.mark.parametrize("lines", ROWS_FROM.values(), ids=ROWS_FROM)
def test_provable_offsets(lines):
    body = ending(lines, load("[n0, 0]"))
    before = passes.convert_to_ssa()(kernel(body))
    (call,) = loads(before)
    batch, columns, rows, *rest = offsets_of(run(before))
    assert values([batch, columns, *rest]) == [0, 0, 0, 0]
    assert isinstance(rows, ir.FloorDiv) and rows.left is call.args[1].elements[0] and rows.right.value == 16
    # The same on the other axis, in lines of c0.
    if all("16" not in line and "48" not in line for line in lines):
        columns = offsets_of(run(kernel(ending(lines, load("[0, n0]")))))[1]
        assert isinstance(columns, ir.FloorDiv) and columns.right.value == 32


def test_an_offset_written_in_the_load_itself():
    rows = offsets_of(run(kernel(load("[pl.tile.get_block_idx() * 16 + 32, 0]"))))[2]
    assert isinstance(rows, ir.FloorDiv) and isinstance(rows.left, ir.Add)


UNPROVABLE = {
    "a parameter": ("n0 = n",),
    "a parameter in a sum": ("n0 = pl.tile.get_block_idx() * 16 + n",),
    "a factor that is no multiple": ("n0 = pl.tile.get_block_idx() * 8",),
    "two factors that only together are": ("b = pl.tile.get_block_idx()", "n0 = (b * 4) * (b * 4)"),
    "a block index": ("n0 = pl.tile.get_block_idx()",),
    "a loop step": ("for n0 in pl.range(0, 256, 8):",),
    "a loop start": ("for n0 in pl.range(8, 256, 16):",),
    "a quotient by three": ("n0 = pl.tile.get_block_idx() * 256 // 3",),
    "a quotient with too little left": ("n0 = pl.tile.get_block_idx() * 256 // 32",),
    "a remainder": ("n0 = pl.tile.get_block_idx() * 256 % 64",),
    "a minimum": ("n0 = pl.min(pl.tile.get_block_idx() * 16, 64)",),
    "a cast": ("n0 = pl.cast(pl.tile.get_block_idx() * 16, pl.INT32)",),
    "a sub-block": ("n0 = pl.tile.get_subblock_idx() + 0",),
}


@pytest.mark.parametrize("lines", UNPROVABLE.values(), ids=UNPROVABLE)
def test_unprovable_offsets(lines):
    error = refused(
        kernel(ending(lines, load("[n0, 0]"))), "the offset 'n0' of its rows is not provably a multiple of 16"
    )
    assert "pl.tile.get_block_idx()" in error.hint and "pl.range" in error.hint


def test_a_loop_carried_offset_proves_nothing():
    body = ["at = pl.tile.get_block_idx() * 16",
            "for _, (at,) in pl.range(0, 4, init_values=(at,)):",
            "    " + load("[at, 0]"),
            "    at = pl.yield_(at + 16)"]  # fmt: skip
    refused(kernel(body), "the offset 'at' of its rows is not provably a multiple of 16")
    # Nor does what the loop leaves behind, or a branch.
    after = [*body[:2], "    at = pl.yield_(at + 16)", load("[at, 0]")]
    refused(kernel(after), "not provably a multiple")
    branch = ["if n > 0:", "    n0 = pl.yield_(16)", "else:", "    n0 = pl.yield_(32)", load("[n0, 0]")]
    refused(kernel(branch), "not provably a multiple")


SIGN_UNKNOWN = {
    "a negative constant": ("n0 = pl.tile.get_block_idx() * -16",),
    "a negative factor of a name": ("b = -16", "n0 = pl.tile.get_block_idx() * b"),
    "a parameter scaled": ("n0 = n * 16",),
    "a difference": ("n0 = pl.tile.get_block_idx() * 256 - 16",),
    "a difference that is none": ("b = pl.tile.get_block_idx() * 16", "n0 = b - 0 * b"),
    "a sum with a negative": ("n0 = pl.tile.get_block_idx() * 16 + -16",),
    "a loop from below": ("for n0 in pl.range(-32, 64, 16):",),
    "a loop downwards": ("for n0 in pl.range(64, -64, -16):",),
    "two negatives": ("a = n * 16", "n0 = a * a"),
}


@pytest.mark.parametrize("lines", SIGN_UNKNOWN.values(), ids=SIGN_UNKNOWN)
def test_offsets_of_unknown_sign(lines):
    error = refused(
        kernel(ending(lines, load("[n0, 0]"))),
        "the offset 'n0' of its rows is a multiple of 16, but not provably non-negative",
    )
    assert "read as block 0" in error.note


def test_the_offset_is_divided_and_not_rearranged():
    made = run(kernel(["for i in pl.range(4):", "    n0 = i * 256", "    " + load("[n0, n0]")]))
    columns, rows = offsets_of(made)[1:3]
    (loop,) = (s for s in ir.flatten_to_stmts(made.get_function("kernel").body) if isinstance(s, ir.ForStmt))
    assign = ir.flatten_to_stmts(loop.body)[0]
    assert isinstance(assign.value, ir.Mul) and assign.value.right.value == 256
    assert rows.left is columns.left is assign.var and (rows.right.value, columns.right.value) == (16, 32)


def test_offsets_keep_their_dtype():
    start, step = ir.ConstInt(0, DataType.INT32), ir.ConstInt(32, DataType.INT32)
    program = passes.convert_to_ssa()(kernel(["for i in pl.range(0, 64, 32):", "    " + load("[i, i]")]))
    function = program.get_function("kernel")
    (loop,) = (s for s in ir.flatten_to_stmts(function.body) if isinstance(s, ir.ForStmt))
    index = ir.Var("i", ir.ScalarType(DataType.INT32))
    body = ir.visitor.substitute(loop.body, {loop.loop_var: index})
    narrow = ir.ForStmt(index, start, ir.ConstInt(64, DataType.INT32), step, [], body, [], loop.span)
    made = passes.block_nz_tensor_views()(program.with_functions([function.replace(body=narrow)]))
    _, columns, rows, *_ = offsets_of(made)
    assert {rows.dtype, rows.right.dtype, columns.dtype, columns.right.dtype} == {DataType.INT32}


def test_rearranging_would_be_wrong_where_arithmetic_wraps():
    from pypto.runtime.host import Host

    x = ir.Var("x", ir.ScalarType(DataType.INT32))
    const = [ir.ConstInt(v, DataType.INT32) for v in (256, 16)]
    whole = ir.FloorDiv(ir.Mul(x, const[0], DataType.INT32), const[1], DataType.INT32)
    rearranged = ir.Mul(x, const[1], DataType.INT32)
    assert Host.scalar(whole, {x: 3}) == Host.scalar(rearranged, {x: 3}) == 48
    assert (Host.scalar(whole, {x: 1 << 24}), Host.scalar(rearranged, {x: 1 << 24})) == (0, 268435456)


@pytest.mark.parametrize("divisor", [0, -16, 12, 48])
def test_a_divisor_that_is_no_power_of_two_is_a_defect(divisor):
    function = passes.convert_to_ssa()(kernel("pl.const(0, pl.INT32)")).get_function("kernel")
    with pytest.raises(InternalError, match="must be a power of two"):
        Facts(function).is_multiple(ir.index_const(48), divisor, function.span)


def test_facts_are_collected_in_linear_time():
    body = ["x0 = pl.tile.get_block_idx() * 16", *(f"x{i + 1} = x{i} + x{i}" for i in range(2000)), load("[x2000, 0]")]
    made = passes.block_nz_tensor_views()(run_to_flat(kernel(body)))
    assert isinstance(offsets_of(made)[2], ir.FloorDiv)
