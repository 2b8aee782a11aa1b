"""Tensors of an orchestration: allocation, windows, other shapes, single elements, FP4."""

import pytest
from orchestrations import COPY, T, statements

import pypto.language as pl
from pypto import backend, codegen, ir, passes
from pypto.dtypes import DataType
from pypto.errors import Diagnosed, InternalError
from pypto.ir import op as ops
from pypto.ir.builder import IRBuilder

X = "x: pl.Tensor[[64, 16], pl.FP32], i: pl.Scalar[pl.INDEX]"
WINDOW = "({0}_offsets[{1}] >= ext_x.shapes[{1}] ? 0u : std::min<uint32_t>({2}, ext_x.shapes[{1}] - {0}_offsets[{1}]))"


def test_allocations_of_a_block_are_made_together_at_its_head():
    body = """
        with pl.scope():
            a = pl.create_tensor([16, 16], dtype=pl.FP32)
            k = i + 1
            b = pl.create_tensor([4], dtype=pl.INT8, manual_dep=True)
            for j in pl.range(2):
                c = pl.create_tensor([k], dtype=pl.BF16)
    """
    assert statements(body, parameters=X) == [
        "PTO2_SCOPE() {",
        "uint32_t a_ci_shapes[2] = {16, 16};",
        "TensorCreateInfo a_ci(a_ci_shapes, 2, DataType::FLOAT32);",
        "uint32_t b_ci_shapes[1] = {4};",
        "TensorCreateInfo b_ci(b_ci_shapes, 1, DataType::INT8, /*manual_dep=*/true);",
        "TaskOutputTensors alloc_0 = alloc_tensors(a_ci, b_ci);",
        "const ChipTensor& a = alloc_0.get_ref(0);",
        "const ChipTensor& b = alloc_0.get_ref(1);",
        "int64_t k = (i + 1);",
        "for (int64_t j = 0; j < 2; j += 1) {",
        "uint32_t c_ci_shapes[1] = {static_cast<uint32_t>(k)};",
        "TensorCreateInfo c_ci(c_ci_shapes, 1, DataType::BFLOAT16);",
        "TaskOutputTensors alloc_1 = alloc_tensors(c_ci);",
        "const ChipTensor& c = alloc_1.get_ref(0);",
        "}",
        "}",
    ]


def test_an_allocation_waits_for_the_size_it_depends_on():
    body = """
        with pl.scope():
            k = i * 2
            a = pl.create_tensor([k], dtype=pl.FP32)
            b = pl.create_tensor([4], dtype=pl.FP32)
    """
    found = statements(body, parameters=X)
    assert found.index("const ChipTensor& b = alloc_1.get_ref(0);") < found.index("int64_t k = (i * 2);")
    assert found[-3:-1] == ["TaskOutputTensors alloc_0 = alloc_tensors(a_ci);",
                            "const ChipTensor& a = alloc_0.get_ref(0);"]  # fmt: skip


def test_one_allocation_makes_sixteen_tensors_at_most():
    body = "\n".join(f"t{k} = pl.create_tensor([8], dtype=pl.FP32)" for k in range(18))
    found = [x for x in statements(body) if "alloc_tensors(" in x]
    assert [x.count("_ci") for x in found] == [16, 2]


@pytest.mark.parametrize(
    "dtype, value, text",
    [
        ("FP32", "0", "0"), ("FP16", "0", "0"), ("FP32", "2.5", "static_cast<float>(2.500000f)"),
        ("INT32", "7", "static_cast<int32_t>(7)"), ("UINT8", "255", "static_cast<uint8_t>(255)"),
        ("INT64", "-3", "static_cast<int64_t>(-3)"),
    ],
)  # fmt: skip
def test_initial_values_have_the_element_type(dtype, value, text):
    found = statements(f"a = pl.create_tensor([8], dtype=pl.{dtype}, init_value={value})")
    assert f"a_ci.set_initial_value({text});" in found


@pytest.mark.parametrize(
    "dtype, value, message", [("INT32", "2.5", "cannot fill int32 elements"), ("FP16", "1.0", "non-zero")]
)
def test_initial_values_the_host_cannot_write_are_refused(dtype, value, message):
    with pytest.raises(Diagnosed, match=message):
        statements(f"a = pl.create_tensor([8], dtype=pl.{dtype}, init_value={value})")


def test_a_window_ends_where_its_tensor_does():
    assert statements("a = pl.slice(x, [16, 8], [i * 16, 0])", parameters=X)[-3:] == [
        "uint32_t a_offsets[2] = {static_cast<uint32_t>((i * 16)), 0};",
        f"uint32_t a_shapes[2] = {{{WINDOW.format('a', 0, 16)}, {WINDOW.format('a', 1, 8)}}};",
        "ChipTensor a = ext_x.view(a_shapes, a_offsets);",
    ]


def test_a_window_without_some_axes_is_empty_when_the_whole_one_is():
    found = statements("a = x[i]", parameters=X)
    assert "ChipTensor a_view = ext_x.view(a_shapes, a_offsets);" in found
    start = found.index("bool a_empty = a_view.numel() == 0;")
    assert found[start + 1 : start + 6] == [
        "ChipTensor a = a_view;",
        "a.ndims = 1;",
        "a.shapes[0] = a_view.shapes[1];",
        "a.strides[0] = a_view.strides[1];",
        "if (a_empty) a.shapes[0] = 0;",
    ]
    assert found[-1] == "a.is_contiguous = a_empty || a_contiguous;"


def test_other_shapes_are_views():
    body = """
        a = pl.reshape(x, [16, 64])
        b = pl.transpose(a, axis1=-1, axis2=0)
        c = pl.tensor.view(a, [4, 256])
    """
    assert statements(body, parameters=X)[-5:] == [
        "uint32_t a_shapes[2] = {16, 64};",
        "ChipTensor a = ext_x.reshape(a_shapes, 2);",
        "ChipTensor b = a.transpose(1, 0);",
        "uint32_t c_shapes[2] = {4, 256};",
        "ChipTensor c = a.reshape(c_shapes, 2);",
    ]


def viewed(source, shape=None, **kwargs):
    ib = IRBuilder()
    with ib.function("main", type=ir.FunctionType.Orchestration) as f:
        x = f.param("x", source)
        ib.let("v", ops.tensor.view(x, shape, **kwargs) if shape else ops.tensor.view(x, **kwargs))
    made = passes.materialize_runtime_scopes()(ir.Program([f.get_result()]))
    return codegen.generate_orchestration(made, made.get_function("main")).code


def test_a_change_of_layout_exchanges_the_last_two_axes():
    plain = ir.TensorType([3, 8, 4], DataType.FP16)
    assert "ChipTensor v = ext_x.transpose(1, 2);" in viewed(plain, layout=ir.TensorLayout.DN)
    assert "ChipTensor v = ext_x;" in viewed(plain, layout=ir.TensorLayout.ND)
    with pytest.raises(ValueError, match="cannot combine shape reinterpret"):
        viewed(ir.TensorType([8, 4], DataType.FP16), [4, 8], layout=ir.TensorLayout.DN)


def test_elements_are_read_and_written_through_the_runtime():
    body = """
        v = pl.tensor.read(x, [3, i])
        pl.tensor.write(x, [0, 1], v)
    """
    assert statements(body, parameters=X)[-4:] == [
        "uint32_t indices_v[2] = {3, static_cast<uint32_t>(i)};",
        "float v = get_tensor_data<float>(ext_x, 2, indices_v);",
        "uint32_t indices_x[2] = {0, 1};",
        "set_tensor_data<float>(ext_x, 2, indices_x, v);",
    ]


def test_a_half_precision_element_has_no_type_on_the_host():
    with pytest.raises(ValueError, match="no scalars of fp16"):
        statements("v = pl.tensor.read(x, [0])", parameters="x: pl.Tensor[[8], pl.FP16]")


def test_assembling_a_window_its_kernel_wrote_is_nothing_and_anything_else_is_refused():
    parameters = f"x: {T}, big: pl.Out[pl.Tensor[[64, 16], pl.FP32]]"
    body = f"""
        part = pl.slice(big, [16, 16], [16, 0])
        done = self.copy(x, part, attrs={COPY})
        whole = pl.assemble(big, done, [16, 0])
        again = pl.tensor.read(whole, [0, 0])
    """
    found = statements(body, parameters=parameters)
    assert "float again = get_tensor_data<float>(ext_big, 2, indices_again);" in found
    for wrong in (body.replace("done, [16, 0]", "done, [32, 0]"), body.replace("(big, done", "(big, x")):
        with pytest.raises(ValueError, match="an orchestration does not copy") as caught:
            statements(wrong, parameters=parameters)
        assert isinstance(caught.value, Diagnosed)


def test_operators_that_compute_are_misplaced():
    with pytest.raises(InternalError, match="Misplaced tensor op in an orchestration: tensor.add"):
        statements("a = pl.add(x, 1.0)", parameters=X)


# FP4: the runtime counts pairs.

P4 = "x: pl.Tensor[[8, 16], pl.FP4], i: pl.Scalar[pl.INDEX]"


def test_fp4_extents_and_offsets_are_counted_in_pairs():
    body = """
        a = pl.slice(x, [1, 8], [0, 8])
        b = pl.reshape(x, [4, 32])
        c = pl.create_tensor([2, 6], dtype=pl.FP4)
        d = pl.slice(x, [1, 8], [0, i])
    """
    found = statements(body, parameters=P4)
    assert "uint32_t a_offsets[2] = {0, 4};" in found
    assert "uint32_t b_shapes[2] = {4, 16};" in found
    assert "uint32_t c_ci_shapes[2] = {2, 3};" in found
    assert found[found.index("uint32_t d_logical_fp4_offset = static_cast<uint32_t>(i);") + 1 :][:2] == [
        "always_assert((d_logical_fp4_offset & 1u) == 0u);",
        "uint32_t d_offsets[2] = {0, (d_logical_fp4_offset / 2)};",
    ]


@pytest.mark.parametrize(
    "line, message",
    [
        ("a = pl.slice(x, [1, 8], [0, 7])", "packed FP4 last-axis offset must be byte-aligned"),
        ("a = pl.transpose(x, axis1=0, axis2=1)", "cannot move the packed FP4 last axis"),
        ("a = pl.tensor.read(x, [0, 0])", "share bytes"),
    ],
)
def test_fp4_elements_are_not_taken_out_of_their_pairs(line, message):
    with pytest.raises(ValueError, match=message) as caught:
        statements(line, parameters=P4)
    assert isinstance(caught.value, Diagnosed)


def test_a_dynamic_fp4_extent_is_twice_the_argument_s():
    k = pl.dynamic("K")

    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)
        def main(self, x: pl.Tensor[[8, k], pl.FP4]):
            with pl.scope():
                a = pl.create_tensor([8, pl.tensor.dim(x, 1)], dtype=pl.FP4)  # noqa: F841

    code = codegen.generate_orchestration(P, P.get_function("main")).code
    assert "const int64_t fp4_carrier_dim = (int64_t)orch_args.tensor(0).ref().shapes[1];" in code
    assert "always_assert(fp4_carrier_dim > 0);" in code
    assert "int64_t K = (fp4_carrier_dim * 2);" in code
    assert "always_assert(fp4_logical_dim > 0 && (fp4_logical_dim & 1u) == 0u);" in code
    assert "uint32_t a_ci_shapes[2] = {8, static_cast<uint32_t>(fp4_logical_dim / 2)};" in code


PIPES = """
    @pl.function(type=pl.FunctionType.AIV)
    def vector(self, __gm_pipe_buffer: pl.Out[pl.Tensor[[1], pl.FP32]]):
        ring = pl.reserve_buffer(name="ring", size=2048)
        pl.aiv_initialize_pipe(ring, dir_mask={mask}, slot_size=1024{slots})

    @pl.function(type=pl.FunctionType.Group)
    def both(self, __gm_pipe_buffer: pl.Out[pl.Tensor[[1], pl.FP32]]):
        self.vector(__gm_pipe_buffer, attrs={{"arg_directions": [pl.adir.output_existing]}})
"""


@pytest.mark.parametrize(
    ("mask", "slots", "blocks", "extent"),
    [
        (1, "", "", "2048"),
        (1, ", slot_num=2", "", "512"),
        (3, "", "", "2048"),
        (1, ", slot_num=2", ', "core_num": 4', "static_cast<uint32_t>((512) * (4))"),
        (1, ", slot_num=2", ', "core_num": i // 16', "static_cast<uint32_t>((512) * (floor_div(i, 16)))"),
    ],
)
def test_a_buffer_of_pipes_has_room_for_the_rings_of_every_block(mask, slots, blocks, extent):
    body = f"""
        with pl.scope():
            p = pl.create_tensor([1], dtype=pl.FP32, manual_dep=True)
            self.both(p, attrs={{"arg_directions": [pl.adir.output_existing]{blocks}}})
    """
    made = statements(body, parameters=X, kernels=PIPES.format(mask=mask, slots=slots))
    assert f"uint32_t p_ci_shapes[1] = {{{extent}}};" in made


def test_a_buffer_of_pipes_is_made_where_its_size_is_known():
    body = """
        with pl.scope():
            n = i + 1
            p = pl.create_tensor([1], dtype=pl.FP32, manual_dep=True)
            self.both(p, attrs={"arg_directions": [pl.adir.output_existing], "core_num": n})
    """
    made = statements(body, parameters=X, kernels=PIPES.format(mask=1, slots=""))
    assert made.index("int64_t n = (i + 1);") < made.index(
        "uint32_t p_ci_shapes[1] = {static_cast<uint32_t>((2048) * (n))};"
    )


@pytest.mark.parametrize(
    ("splits", "slots"), [("01", "{INVALID_KERNEL_ID, 0, 0}"), ("11", "{INVALID_KERNEL_ID, 0, 0}"), ("", None)]
)
def test_a_kernel_whose_pipes_divide_tiles_is_launched_on_both_vector_cores(splits, slots):
    backend.set_backend_type(backend.BackendType.Ascend950)
    pops = "".join(
        f"        t{i}: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split={split})\n"
        f"        pl.tfree_to_aic(t{i}, split={split})\n"
        for i, split in enumerate(splits)
    )
    kernels = f"""
    @pl.function(type=pl.FunctionType.AIV)
    def vector(self, x: {T}):
        ring = pl.reserve_buffer(name="ring", size=2048)
        pl.aiv_initialize_pipe(ring, dir_mask=1, slot_size=1024, slot_num=2)
{pops}"""
    made = statements(
        'self.vector(x, attrs={"arg_directions": [pl.adir.input]})', parameters=f"x: {T}", kernels=kernels
    )
    backend.reset_for_testing()
    found = [line.removeprefix("MixedKernels mixed_0 = ").removesuffix(";") for line in made if "MixedKernels" in line]
    assert found == ([slots] if slots else [])
    assert ("rt_submit_aiv_task(0, params_t0);" in made) is (slots is None)
