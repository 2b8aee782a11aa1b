"""The PTO a kernel becomes: parsed back, verified, and looked at line by line."""

import re

import numpy as np
import pytest
from texts import lines

import pypto.language as pl
from pypto import backend, ir, passes
from pypto.codegen import PTOCodegen, kernel_kind
from pypto.errors import InternalError
from pypto.pto import parse_module, verify_module


def pto_of(kernel, **options):
    compiled = pl.compile(kernel, skip_ptoas=True, **options)
    (text,) = compiled.pto.values()
    verify_module(parse_module(text))
    return text


def test_a_kernel_becomes_one_module_with_its_parameters_in_order():
    @pl.function(type=pl.FunctionType.InCore)
    def scale(
        factor: pl.Scalar[pl.FP32],
        x: pl.Tensor[[16, 32], pl.FP32],
        count: pl.Scalar[pl.INT32],
        y: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        t = pl.mul(pl.load(x, [0, 0], [16, 32]), factor)
        for _ in pl.range(0, count):
            t = pl.add(t, 1.0)
        y = pl.store(t, [0, 0], y)
        return y

    text = pto_of(scale)
    assert text.startswith('module attributes {pto.target_arch = "a2a3"} {\n')
    (head,) = lines(text, "func.func")
    assert head.startswith("func.func @scale(%arg0: !pto.ptr<f32>, %arg1: !pto.ptr<f32>, %arg2: f32, %arg3: i32)")
    assert "pto.kernel_kind = #pto.kernel_kind<vector>" in head
    assert "arith.index_cast %arg3 : i32 to index" in text


def test_every_instruction_carries_the_users_line_unless_switched_off():
    @pl.function(type=pl.FunctionType.InCore)
    def double(x: pl.Tensor[[8, 8], pl.FP32], y: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        t = pl.load(x, [0, 0], [8, 8])
        pl.store(pl.add(t, t), [0, 0], y)

    text = pto_of(double)
    first = double.span.begin_line
    numbers = {}
    for line in (line for line in lines(text, "pto.t") if line.startswith("pto.")):
        found = re.search(r"pto\.(t\w+) .* loc\(\"(.*)\":(\d+):(\d+)\)$", line)
        assert found, line
        assert found[2] == __file__
        numbers[found[1]] = int(found[3]) - first
    assert numbers["tload"] + 1 == numbers["tadd"] == numbers["tstore"]
    assert "loc(" not in pto_of(double, emit_source_loc=False)


def test_dynamic_dimensions_are_index_parameters_and_valid_sizes_operands():
    rows = pl.dynamic("ROWS")

    @pl.function(type=pl.FunctionType.InCore)
    def copy(x: pl.Tensor[[rows, 64], pl.FP16], y: pl.Out[pl.Tensor[[rows, 64], pl.FP16]]):
        for r in pl.range(0, rows, 16):
            n = pl.min(16, rows - r)
            pl.store(pl.load(x, [r, 0], [16, 64], valid_shape=[n, 64]), [r, 0], y)

    text = pto_of(copy)
    assert "%arg2: index" in lines(text, "func.func")[0]
    (alloc,) = lines(text, "pto.alloc_tile")
    assert re.search(r"valid_row = %\w+ : .*v_row=\?, v_col=64", alloc)
    assert all("partition_tensor_view<?x64xf16>" in line for line in lines(text, "pto.partition_view"))
    assert lines(text, "arith.minsi")


def test_a_scalar_carried_by_a_loop_is_an_iter_arg_and_by_a_branch_a_result():
    @pl.function(type=pl.FunctionType.InCore)
    def walk(x: pl.Tensor[[64, 16], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        start: pl.Scalar[pl.INDEX] = n * 0
        for i in pl.range(0, 3):
            if i < n:
                step = i * 2
            else:
                step = i
            start = start + step
        pl.store(pl.load(x, [start, 0], [16, 16]), [0, 0], y)

    text = pto_of(walk)
    assert re.search(r"= scf\.for %i = .* iter_args\(%\w+ = %\w+\) -> \(index\) \{", text)
    assert re.search(r"= scf\.if %\w+ -> \(index\) \{", text)
    assert len(lines(text, "scf.yield")) == 3


def test_each_tile_has_a_handle_at_the_address_it_was_given():
    @pl.function(type=pl.FunctionType.InCore)
    def chain(x: pl.Tensor[[8, 64], pl.FP32], y: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
        t = pl.load(x, [0, 0], [8, 64])
        t = pl.exp(t)
        t = pl.sqrt(t)
        pl.store(t, [0, 0], y)

    made = lines(pto_of(chain), "pto.alloc_tile")
    assert [line.split(" = ")[0] for line in made] == ["%t", "%t_1", "%t_2"]
    assert all("addr = %c0_i64" in line for line in made)


def test_another_shape_of_a_tile_is_a_handle_at_its_address():
    @pl.function(type=pl.FunctionType.InCore)
    def fold(x: pl.Tensor[[8, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        pl.store(pl.reshape(pl.load(x, [0, 0], [8, 64]), [16, 32]), [0, 0], y)

    planned = lines(pto_of(fold), "pto.alloc_tile")
    assert [("rows=8" in line, "rows=16" in line) for line in planned] == [(True, False), (False, True)]
    assert all("addr = %c0_i64" in line for line in planned)


def test_column_vectors_are_column_major_tiles_over_dn_views():
    @pl.function(type=pl.FunctionType.InCore)
    def columns(
        x: pl.Tensor[[32, 64], pl.FP32], bias: pl.Tensor[[32, 1], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]
    ):
        pl.store(pl.row_expand_add(pl.load(x, [0, 0], [32, 64]), pl.load(bias, [0, 0], [32, 1])), [0, 0], y)

    text = pto_of(columns)
    (view,) = lines(text, "%bias_view = ")
    assert "shape = [%c32_index, %c1_index], strides = [%c1_index, %c32_index] {layout = #pto.layout<dn>}" in view
    assert "rows=32, cols=1, v_row=32, v_col=1, blayout=col_major" in text


def test_the_cube_works_in_the_layouts_of_its_memories():
    @pl.function(type=pl.FunctionType.InCore)
    def product(
        a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[64, 48], pl.FP16], c: pl.Out[pl.Tensor[[32, 48], pl.FP32]]
    ):
        left = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
        right = pl.load(b, [0, 0], [64, 48], target_memory=pl.Mem.Mat)
        pl.store(pl.matmul(left, right), [0, 0], c)

    text = pto_of(product)
    assert "#pto.kernel_kind<cube>" in text
    layouts = dict(re.findall(r"loc=(\w+), .*?(blayout=\w+, slayout=\w+, fractal=\d+)", text))
    assert layouts == {
        "mat": "blayout=col_major, slayout=row_major, fractal=512",
        "left": "blayout=row_major, slayout=row_major, fractal=512",
        "right": "blayout=row_major, slayout=col_major, fractal=512",
        "acc": "blayout=col_major, slayout=row_major, fractal=1024",
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.00000000000000000e+00"),
        (1e-5, "1.00000000000000008e-05"),
        (-2.5, "-2.50000000000000000e+00"),
        (float("inf"), "0x7F800000"),
        (float("-inf"), "0xFF800000"),
    ],  # fmt: skip
)
def test_float_constants_read_back_exactly(value, text):
    @pl.function(type=pl.FunctionType.InCore)
    def shift(x: pl.Tensor[[8, 8], pl.FP32], y: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        pl.store(pl.add(pl.load(x, [0, 0], [8, 8]), value), [0, 0], y)

    assert f"arith.constant {text} : f32" in pto_of(shift)


def test_a_scalar_operand_takes_the_tiles_element_type():
    @pl.function(type=pl.FunctionType.InCore)
    def shift(x: pl.Tensor[[8, 16], pl.FP16], y: pl.Out[pl.Tensor[[8, 16], pl.FP16]]):
        pl.store(pl.add(pl.load(x, [0, 0], [8, 16]), 2), [0, 0], y)

    assert "arith.constant 2.00000000000000000e+00 : f16" in pto_of(shift)


def test_a_function_typed_for_a_core_states_that_core():
    @pl.function(type=pl.FunctionType.AIC)
    def cube(x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], y)

    assert "#pto.kernel_kind<cube>" in pto_of(cube)


def test_codegen_does_not_split_a_mixed_kernel():
    @pl.function(type=pl.FunctionType.InCore)
    def mixed(x: pl.Tensor[[16, 16], pl.FP16], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        left = pl.load(x, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
        pl.store(pl.exp(pl.matmul(left, left)), [0, 0], y)

    with pytest.raises(InternalError, match="mixes cube and vector"):
        kernel_kind(mixed)


def test_a_tile_is_allocated_before_the_body_when_its_extents_are_what_the_kernel_is_launched_with():
    @pl.function(type=pl.FunctionType.InCore)
    def copy(
        x: pl.Tensor[[64, 64], pl.FP16], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[64, 64], pl.FP16]]
    ) -> pl.Tensor[[64, 64], pl.FP16]:
        for r in pl.range(0, 64, 16):
            y = pl.store(pl.load(x, [r, 0], [16, 64], valid_shape=[n, 64]), [r, 0], y)
        return y

    text = pto_of(copy)
    (alloc,) = lines(text, "pto.alloc_tile")
    assert "valid_row = %arg2 : " in alloc and "v_row=?, v_col=64" in alloc
    assert text.index("pto.alloc_tile") < text.index("scf.for")


def test_a_value_the_author_did_not_name_is_numbered():
    @pl.function(type=pl.FunctionType.InCore)
    def shifted(
        x: pl.Tensor[[64, 64], pl.FP16], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[16, 64], pl.FP16]]
    ) -> pl.Tensor[[16, 64], pl.FP16]:
        return pl.store(pl.load(x, [n * 2 + 16, 0], [16, 64]), [0, 0], y)

    text = pto_of(shifted)
    assert "%0 = arith.muli %arg2, %c2_index : index" in text
    assert "%1 = arith.addi %0, %c16_index : index" in text


def test_a_slice_without_valid_elements_is_an_empty_tile_and_no_view():
    @pl.function(type=pl.FunctionType.InCore)
    def kept(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 8], pl.FP32]]) -> pl.Tensor[[16, 8], pl.FP32]:
        whole = pl.load(x, [0, 0], [16, 32])
        part = pl.tile.slice(pl.tile.set_validshape(whole, 0, 32), [16, 8], [0, 8])
        return pl.store(part, [0, 0], y)

    compiled = pl.compile(kept, skip_ptoas=True)
    (text,) = compiled.pto.values()
    assert not lines(text, "pto.subview")
    assert "valid_row = %c0_index" in lines(text, "%part = pto.alloc_tile")[0]
    y = np.full((16, 8), 3, np.float32)
    compiled(np.ones((16, 32), np.float32), y)
    np.testing.assert_array_equal(y, 3)


@pl.function(type=pl.FunctionType.InCore)
def ragged(
    x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[16, 64], pl.FP32]]
) -> pl.Tensor[[16, 64], pl.FP32]:
    t = pl.load(x, [0, 0], [16, 64], valid_shape=[5, n])
    y = pl.store(pl.exp(t), [0, 0], y)
    return y


def test_constant_valid_extents_are_in_the_type_and_others_are_operands():
    text = pto_of(ragged)
    allocations = lines(text, "pto.alloc_tile")
    assert allocations
    for alloc in allocations:
        assert "v_row=5, v_col=?" in alloc and " valid_col = %arg2 : " in alloc and "valid_row" not in alloc
    y = np.full((16, 64), 7, np.float32)
    want = y.copy()
    want[:5, :9] = 1
    pl.compile(ragged, skip_ptoas=True)(np.zeros((16, 64), np.float32), 9, y)
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("constant", [False, True])
def test_an_option_says_whether_types_state_constant_extents(constant):
    with passes.PassContext(target=backend.ASCEND910B):
        lowered = passes.run_pipeline(ir.Program([ragged], "ragged"))
    written = PTOCodegen(backend.ASCEND910B)
    text = written.generate(lowered, **({"constant_extents": True} if constant else {}))
    alloc = lines(text, "pto.alloc_tile")[0]
    assert ("v_row=5, v_col=?" if constant else "v_row=?, v_col=?") in alloc
    assert ("valid_row = %c5_index" in alloc) is not constant


@pytest.mark.parametrize("rows, cols", [(8, 16), (8, "n"), ("n", 16), ("n", "n"), (0, 16)])
def test_a_narrowed_tile_states_what_is_constant_of_its_region(rows, cols):
    program = pl.parse(f"""
import pypto.language as pl

@pl.program
class Narrow:
    @pl.function(type=pl.FunctionType.InCore)
    def narrow(self, x: pl.Tensor[[16, 32], pl.FP32], n: pl.Scalar[pl.INDEX],
               y: pl.InOut[pl.Tensor[[16, 32], pl.FP32]]) -> pl.Tensor[[16, 32], pl.FP32]:
        t = pl.load(x, [0, 0], [16, 32])
        y = pl.store(pl.tile.set_validshape(t, {rows}, {cols}), [0, 0], y)
        return y
""")
    text = pto_of(program)
    assert not lines(text, "pto.set_validshape")
    stated = [d if isinstance(d, int) and d > 0 else "?" for d in (rows, cols)]
    assert f"v_row={stated[0]}, v_col={stated[1]}," in lines(text, "pto.alloc_tile")[1]
    y = np.zeros((16, 32), np.float32)
    pl.compile(program, skip_ptoas=True)(np.ones((16, 32), np.float32), 4, y)
    height, width = (4 if d == "n" else d for d in (rows, cols))
    assert np.array_equal(np.argwhere(y), np.argwhere(np.ones((height, width))))


def test_a_carried_tile_has_the_extents_of_its_own_type():
    @pl.function(type=pl.FunctionType.InCore)
    def grown(
        x: pl.Tensor[[16, 32], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[16, 32], pl.FP32]]
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        t = pl.load(x, [0, 0], [16, 32], valid_shape=[8, 32])
        for _ in pl.range(n):
            if n > 2:
                t = pl.mul(t, 2.0)
            else:
                t = pl.add(t, 1.0)
        y = pl.store(t, [0, 0], y)
        return y

    assert all("v_row=8, v_col=32" in line for line in lines(pto_of(grown), "pto.alloc_tile"))
    for n, value in ((0, 1), (2, 3), (3, 8)):
        y = np.zeros((16, 32), np.float32)
        pl.compile(grown, skip_ptoas=True)(np.ones((16, 32), np.float32), n, y)
        assert np.all(y[:8] == value) and not y[8:].any()


def picked(*body):
    """A kernel that stores the row of ``x`` that ``body`` leaves in ``s``, of scalars of all integer dtypes."""
    text = "\n        ".join(body)
    return pl.parse(f"""
import pypto.language as pl

@pl.program
class Picked:
    @pl.function(type=pl.FunctionType.InCore)
    def pick(self, c: pl.Tensor[[16], pl.INT32], x: pl.Tensor[[64, 16], pl.FP32], n: pl.Scalar[pl.INDEX],
             i32: pl.Scalar[pl.INT32], i64: pl.Scalar[pl.INT64], u32: pl.Scalar[pl.UINT32], b: pl.Scalar[pl.BOOL],
             y: pl.InOut[pl.Tensor[[1, 16], pl.FP32]]) -> pl.Tensor[[1, 16], pl.FP32]:
        {text}
        y = pl.store(pl.load(x, [s, 0], [1, 16]), [0, 0], y)
        return y
""")


PICKED = {
    "an unsigned position": (["s = u32"], 6),
    "a BOOL as a position": (["s = pl.cast(b, pl.INDEX)"], 1),
    "an INT64 or, in a branch, an INDEX": (["s = i64", "if n > 2:", "    s = n"], 3),
    "an INDEX or, in a branch, an INT64": (["s = n", "if n > 2:", "    s = i64"], 5),
    "an INT64 in one branch, an INDEX in the other": (["if n > 3:", "    s = i64", "else:", "    s = n"], 3),
    "an INDEX in one branch, an INT64 in the other": (["if n > 3:", "    s = n", "else:", "    s = i64"], 5),
    "an INT64 that a loop adds an INDEX to": (["s = i64", "for i in pl.range(2):", "    s = s + i"], 6),
    "an INDEX that a loop adds an INT64 to": (["s = n", "for i in pl.range(2):", "    s = s + i64"], 13),
    "an INDEX annotated INT64, carried": (
        ["s: pl.Scalar[pl.INT64] = n", "for i in pl.range(2):", "    s = s + i"], 4,
    ),
    "an INDEX annotated INT64 beside an INT32": (["q: pl.Scalar[pl.INT64] = n + 1", "s = pl.max(q, i32)"], 4),
    "an INT64 that a while loop adds an INDEX to": (["s = i64", "while s < n * 4:", "    s = s + n"], 14),
    "an INDEX that a while loop adds an INT64 to": (["s = n", "while s < i64:", "    s = s + i64"], 8),
    "literals beside an INT64": (["s = 3 + i64 * 2 - 1"], 12),
    "an INT64 compared with an INDEX": (["s = pl.min(n, i64)", "if i64 > n:", "    s = s + i64"], 8),
    "bounds of three dtypes": (["s = n * 0", "for i in pl.range(i32, u32 + 3, n):", "    s = s + i"], 11),
    "an INT32 rebound as an INDEX between loops": (
        ["s = pl.read(c, [2])", "for i in pl.range(2):", "    s = s + pl.read(c, [i])", "s = n * 2",
         "for i in pl.range(3):", "    s = s + i"],
        9,
    ),
    "elements of an INT64 array": (
        ["a = pl.array.create(2, pl.INT64)", "a[0] = n", "a[1] = i64 + n", "s = a[0] + a[1]"], 11,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PICKED)
def test_integers_of_several_dtypes_meet_in_one_type(case):
    body, row = PICKED[case]
    compiled = pl.compile(picked(*body), skip_ptoas=True)
    verify_module(parse_module(compiled.pto["pick"]))
    x, y = np.arange(64 * 16, dtype=np.float32).reshape(64, 16), np.zeros((1, 16), np.float32)
    compiled(np.arange(16, dtype=np.int32), x, 3, 4, 5, 6, True, y)
    assert y[0, 0] == row * 16


def test_an_unsigned_position_above_the_signed_ones_is_itself():
    compiled = pl.compile(picked("s = u32 - 4294967290"), skip_ptoas=True)
    assert "index_castui" not in compiled.pto["pick"]
    x, y = np.arange(64 * 16, dtype=np.float32).reshape(64, 16), np.zeros((1, 16), np.float32)
    compiled(np.arange(16, dtype=np.int32), x, 3, 4, 5, 4294967295, True, y)
    assert y[0, 0] == 5 * 16
