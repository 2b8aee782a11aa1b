"""Tasks: their arguments, kernels, order and launch settings in the orchestration's C++."""

import pytest
from orchestrations import COPY, KERNELS, UPDATE, T, entry, generate, program, statements

import pypto.language as pl
from pypto import backend, codegen, passes
from pypto.errors import Diagnosed, VerificationError
from pypto.ir import CoreType, FunctionType
from pypto.ir.pass_manager import PassManager
from pypto.runtime import device_files


def test_the_unit_asks_for_its_arguments_and_runs_the_tasks():
    code = generate(program(f"with pl.scope():\n    self.copy(x, out, attrs={COPY})")).code
    assert code == (
        """#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pto_orchestration_api.h"

extern "C" {

__attribute__((visibility("default")))
PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs& orch_args) {
    (void)orch_args;
    return PTO2OrchestrationConfig{
        .expected_arg_count = 2,
    };
}

__attribute__((visibility("default")))
void aicpu_orchestration_entry(const ChipTaskArgs& orch_args) {
    // External tensors
    const ChipTensor& ext_x = orch_args.tensor(0).ref();
    const ChipTensor& ext_out = orch_args.tensor(1).ref();

    PTO2_SCOPE() {

        // Task 0: copy
        CoreTaskArgs params_t0;
        params_t0.add_input(ext_x);
        params_t0.add_output(ext_out);
        rt_submit_aiv_task(0, params_t0);
    }
}

}  // extern "C"
"""
    )


def test_the_result_numbers_kernels_by_first_launch_and_tells_cores_and_tensor_arguments():
    body = f"""
        with pl.scope():
            self.cube(x, out, attrs={UPDATE})
            self.scale(x, 1.5, 3, out, attrs={{"arg_directions": [pl.adir.input, pl.adir.scalar, pl.adir.scalar,
                       pl.adir.inout]}})
            self.cube(x, out, attrs={UPDATE})
    """
    made = generate(program(body))
    assert made.func_name_to_id == {"cube": 0, "scale": 1}
    assert made.func_name_to_core_type == {"cube": CoreType.CUBE, "scale": CoreType.VECTOR}
    assert made.func_name_to_signature == {"cube": ["IN", "OUT"], "scale": ["IN", "OUT"]}
    assert made.orchestration_signature == ["IN", "OUT"]
    assert "rt_submit_aic_task(0, params_t2);" in made.code


def test_scalars_follow_tensors_in_64_bits():
    directions = '{"arg_directions": [pl.adir.input, pl.adir.scalar, pl.adir.scalar, pl.adir.output_existing]}'
    parameters = f"x: {T}, f: pl.Scalar[pl.FP32], n: pl.Scalar[pl.INT32], out: pl.Out[{T}]"
    made = program(f"self.scale(x, f, n + 1, out, attrs={directions})", parameters)
    code = generate(made).code
    assert "float f = from_u64<float>(orch_args.scalar(0));" in code
    assert "int32_t n = from_u64<int32_t>(orch_args.scalar(1));" in code
    assert ".expected_arg_count = 4," in code
    assert entry(code)[1:5] == [
        "params_t0.add_input(ext_x);",
        "params_t0.add_output(ext_out);",
        "params_t0.add_scalar(to_u64(f));",
        "params_t0.add_scalar((uint64_t)(n + 1));",
    ]


@pytest.mark.parametrize(
    "value, text",
    [("2.0", "2.000000f"), ("0.1", "0.100000f"), ("1e-9", "1.0e-09f"), ("0.08838834764", "0.08838834764f"),
     ("-3.25", "-3.250000f"), ("1e30", "1.0e+30f")],
)  # fmt: skip
def test_float_literals_read_back_as_the_number_written(value, text):
    directions = '{"arg_directions": [pl.adir.input, pl.adir.scalar, pl.adir.scalar, pl.adir.output_existing]}'
    found = statements(f"self.scale(x, {value}, 1, out, attrs={directions})")
    assert f"params_t0.add_scalar(to_u64({text}));" in found


def test_results_are_the_tensors_the_task_wrote():
    body = f"""
        low, high = self.split(x, a, b, attrs={{"arg_directions": [pl.adir.input, pl.adir.output_existing,
                               pl.adir.output_existing]}})
        first = self.copy(high, low, attrs={UPDATE})
        self.copy(first, out, attrs={COPY})
    """
    found = statements(body, parameters=f"x: {T}, a: pl.Out[{T}], b: pl.Out[{T}], out: pl.Out[{T}]")
    assert [x for x in found if "params_t1." in x] == ["params_t1.add_input(ext_b);", "params_t1.add_inout(ext_a);"]
    assert "params_t2.add_input(ext_a);" in found
    assert not any(x.startswith(("ChipTensor", "const ChipTensor&")) for x in found)


@pytest.mark.parametrize(
    "direction, method",
    [("output", "output"), ("output_existing", "output"), ("inout", "inout"), ("no_dep", "no_dep")],
)
def test_directions_of_the_call_decide_how_an_argument_is_added(direction, method):
    found = statements(f'self.copy(x, out, attrs={{"arg_directions": [pl.adir.input, pl.adir.{direction}]}})')
    assert f"params_t0.add_{method}(ext_out);" in found


def test_an_omitted_output_is_made_by_the_runtime():
    body = f"""
        with pl.scope():
            made, tid = pl.submit(self.copy, x, attrs={{"arg_directions": [pl.adir.input]}})
            self.copy(made, out, attrs={COPY})
    """
    found = statements(body)
    assert "TensorCreateInfo params_t0_synth_out_1(params_t0_synth_out_1_shapes, 2, DataType::FLOAT32);" in found
    assert "params_t0.add_output(params_t0_synth_out_1);" in found
    assert "const ChipTensor& made = task_0_outs.get_ref(0);" in found
    assert "params_t1.add_input(made);" in found


def test_dependencies_are_counted_and_only_ids_that_may_be_invalid_are_guarded():
    body = f"""
        with pl.scope(mode=pl.ScopeMode.MANUAL):
            none = pl.system.task_invalid()
            a, first = pl.submit(self.copy, x, out, attrs={COPY})
            b, last = pl.submit(self.copy, x, out, deps=[first, none, first], attrs={COPY})
    """
    found = statements(body)
    at = found.index("PTO2TaskId params_t1_deps[2];")
    assert found[at : at + 5] == [
        "PTO2TaskId params_t1_deps[2];",
        "uint32_t params_t1_deps_count = 0;",
        "params_t1_deps[params_t1_deps_count++] = first;",
        "if (none.is_valid()) params_t1_deps[params_t1_deps_count++] = none;",
        "params_t1.set_dependencies(params_t1_deps, params_t1_deps_count);",
    ]
    assert "PTO2TaskId first = task_0_outs.task_id();" in found


def test_a_dependency_out_of_reach_is_refused_at_the_launch():
    body = f"""
        with pl.scope():
            a, first = pl.submit(self.copy, x, out, attrs={COPY})
        b, last = pl.submit(self.update, x, out, deps=[first], attrs={UPDATE})
    """
    with pytest.raises(ValueError, match="'first' cannot be honored") as caught:
        statements(body)
    assert isinstance(caught.value, Diagnosed)
    assert "inside the scope that produces it" in str(caught.value)
    assert "b, last = pl.submit" in str(caught.value)


def test_a_barrier_waits_for_every_task_of_an_array_and_is_left_out_when_there_is_none():
    body = """
        with pl.scope(mode=pl.ScopeMode.MANUAL):
            ids = pl.array.create(2, pl.TASK_ID)
            fence = pl.system.task_dummy(deps=[ids])
            free = pl.system.task_dummy(deps=[])
    """
    found = statements(body)
    name = "params_phase_fence_barrier_0"
    assert f"if (ids[1].is_valid()) {name}_deps[{name}_deps_count++] = ids[1];" in found
    assert found[found.index(f"if ({name}_deps_count > 0) {{") + 1 :][:2] == [
        f"TaskOutputTensors phase_fence_barrier_0_outs = rt_submit_dummy_task({name});",
        "fence = phase_fence_barrier_0_outs.task_id();",
    ]
    assert "PTO2TaskId free = phase_fence_barrier_1_outs.task_id();" in found


def test_launch_settings_precede_the_submission():
    body = f"""
        a, tid = pl.spmd_submit(self.copy, x, out, core_num=n, sync_start=True, allow_early_resolve=True, dumps=[x],
                                predicate=(rc[1, 2] <= -3), attrs={COPY})
    """
    found = statements(
        body, parameters=f"x: {T}, n: pl.Scalar[pl.INDEX], rc: pl.Tensor[[4, 4], pl.INT32], out: pl.Out[{T}]"
    )
    assert found[3:] == [
        "params_t0.dump(ext_x);",
        "params_t0.launch_spec.set_block_num(n);",
        "params_t0.launch_spec.set_require_sync_start(true);",
        "params_t0.set_allow_early_resolve(true);",
        "CoreTaskPredicate params_t0_predicate;",
        "params_t0_predicate.operand.tensor = &ext_rc;",
        "params_t0_predicate.operand.ndims = 2;",
        "params_t0_predicate.operand.indices[0] = 1;",
        "params_t0_predicate.operand.indices[1] = 2;",
        "params_t0_predicate.op = PredicateOp::LE;",
        "params_t0_predicate.target = -3;",
        "params_t0.set_predicate(params_t0_predicate);",
        "TaskOutputTensors task_0_outs = rt_submit_aiv_task(0, params_t0);",
    ]


@pytest.mark.parametrize("written, op", [("3 < rc[0, 0]", "GT"), ("3 >= rc[0, 0]", "LE"), ("rc[0, 0] != 3", "NE")])
def test_a_mirrored_predicate_has_the_element_first(written, op):
    found = statements(
        f"a, tid = pl.submit(self.copy, x, out, predicate=({written}), attrs={COPY})",
        parameters=f"x: {T}, rc: pl.Tensor[[4, 4], pl.INT32], out: pl.Out[{T}]",
    )
    assert f"params_t0_predicate.op = PredicateOp::{op};" in found
    assert "params_t0_predicate.target = 3;" in found


PREDICATED = f"""
import pypto.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, src: {T}, dst: pl.Out[{T}]) -> {T}:
        return pl.store(pl.load(src, [0, 0], [16, 16]), [0, 0], dst)
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: {T}, rc: pl.Tensor[[4, 4], pl.INT32], out: pl.Out[{T}]) -> {T}:
        LAUNCH
        return out
"""


@pytest.mark.parametrize(
    "launch",
    [
        "out, _ = pl.submit(self.copy, x, out, predicate=(rc[0, 1] > 2))",
        "with pl.spmd(2, predicate=(rc[0, 1] > 2)):\n            out = self.copy(x, out)",
        "with pl.spmd(2, predicate=(rc[0, 1] > 2)) as tid:\n            out = self.copy(x, out)",
    ],
)
def test_a_predicate_reaches_its_task_unevaluated(launch):
    made = PassManager.get_strategy().run_passes(pl.parse_program(PREDICATED.replace("LAUNCH", launch)))
    found = entry(generate(made).code)
    assert "params_t0_predicate.operand.tensor = &ext_rc;" in found
    assert found.index("params_t0.set_predicate(params_t0_predicate);") < len(found) - 2
    assert not any("get_tensor_data" in x for x in found)


def test_an_id_that_a_pass_waits_for_is_kept_where_every_scope_sees_it():
    directions = '"arg_directions": [pl.adir.input, pl.adir.output_existing]'
    body = f"""
        with pl.scope():
            a, first = pl.submit(self.copy, x, out, attrs={COPY})
            b = self.update(x, out, attrs={UPDATE})
        with pl.scope():
            self.copy(x, out, attrs={{{directions}, "compiler_manual_dep_edges": [first, b]}})
    """
    found = statements(body)
    assert found[:2] == [
        "PTO2TaskId first_tid = PTO2TaskId::invalid();", "PTO2TaskId b_tid = PTO2TaskId::invalid();",
    ]  # fmt: skip
    assert "first_tid = task_0_outs.task_id();" in found
    submitted = found.index("TaskOutputTensors task_1_outs = rt_submit_aiv_task(1, params_t1);")
    assert found[submitted + 1] == "b_tid = task_1_outs.task_id();"
    assert "PTO2TaskId params_t2_deps[2];" in found
    assert "if (b_tid.is_valid()) params_t2_deps[params_t2_deps_count++] = b_tid;" in found


def test_a_launch_may_be_as_wide_as_the_chip():
    body = f"""
        a, tid = pl.spmd_submit(self.copy, x, out, core_num=pl.system.available_cluster_count(), attrs={COPY})
        n = pl.system.available_aiv_count()
        b, last = pl.spmd_submit(self.copy, x, out, core_num=n // 2, attrs={COPY})
    """
    found = statements(body)
    assert "params_t0.launch_spec.set_block_num(rt_available_cluster_count());" in found
    assert any(x.endswith(" n = rt_available_aiv_count();") for x in found)
    assert "params_t1.launch_spec.set_block_num((n / 2));" in found


def test_blocks_are_cores_on_the_950():
    backend.set_backend_type(backend.BackendType.Ascend950)
    found = statements(f"a, tid = pl.spmd_submit(self.copy, x, out, core_num=4, attrs={COPY})")
    assert "params_t0.launch_spec.set_core_num(4);" in found


GROUP = f"""
    @pl.function(type=pl.FunctionType.Group)
    def both(self, src: {T}, dst: pl.Out[{T}]) -> {T}:
        self.copy(src, dst, attrs={COPY})
        self.cube(src, dst, attrs={COPY})
        return dst
    @pl.function(type=pl.FunctionType.Spmd)
    def blocks(self, dst: pl.InOut[{T}]) -> {T}:
        done = self.both(dst, dst, attrs={UPDATE})
        return dst
"""


def test_a_group_is_one_task_of_a_cube_and_a_vector_kernel():
    made = generate(program(f"self.both(x, out, attrs={COPY})", kernels=KERNELS + GROUP))
    assert made.func_name_to_id == {"cube": 0, "copy": 1}
    assert "// Group both: cube + copy" in made.code
    assert entry(made.code)[1:] == [
        "params_t0.add_input(ext_x);",
        "params_t0.add_output(ext_out);",
        "MixedKernels mixed_0 = {0, 1, INVALID_KERNEL_ID};",
        "rt_submit_task(mixed_0, params_t0);",
    ]


def test_a_group_may_submit_its_kernels_and_pass_on_what_they_return():
    group = f"""
    @pl.function(type=pl.FunctionType.Group)
    def both(self, src: {T}, dst: pl.InOut[{T}]) -> {T}:
        first, task = pl.submit(self.update, src, dst, attrs={UPDATE})
        again, late = pl.submit(self.accumulate, src, first, attrs={UPDATE})
        return dst
    @pl.function(type=pl.FunctionType.AIC)
    def accumulate(self, src: {T}, dst: pl.InOut[{T}]) -> {T}:
        return dst
"""
    made = generate(program(f"self.both(x, out, attrs={UPDATE})", kernels=KERNELS + group))
    assert entry(made.code)[1:] == [
        "params_t0.add_input(ext_x);",
        "params_t0.add_inout(ext_out);",
        "MixedKernels mixed_0 = {0, 1, INVALID_KERNEL_ID};",
        "rt_submit_task(mixed_0, params_t0);",
    ]
    assert made.func_name_to_id == {"accumulate": 0, "update": 1}


def test_a_wrapper_that_passes_one_tensor_twice_reads_and_writes_it():
    attrs = '{"arg_directions": [pl.adir.inout], "core_num": 4}'
    found = statements(f"self.blocks(out, attrs={attrs})", kernels=KERNELS + GROUP)
    assert found[1:3] == ["params_t0.add_input(ext_out);", "params_t0.add_inout(ext_out);"]


def test_both_lanes_run_a_kernel_that_asks_for_it():
    attribute = '        pl.func_attr({"dual_aiv_dispatch": True})\n'
    kernels = KERNELS.replace("        return dst\n", f"{attribute}        return dst\n", 1)
    found = statements(f"self.copy(x, out, attrs={COPY})", kernels=kernels)
    assert "MixedKernels mixed_0 = {INVALID_KERNEL_ID, 0, 0};" in found
    assert "rt_submit_task(mixed_0, params_t0);" in found


def test_kernels_of_a_group_that_take_different_arguments_are_refused():
    group = f"""
    @pl.function(type=pl.FunctionType.Group)
    def both(self, src: {T}, dst: pl.Out[{T}]) -> {T}:
        self.copy(dst, dst, attrs={UPDATE})
        self.cube(src, dst, attrs={COPY})
        return dst
"""
    with pytest.raises(ValueError, match="take different arguments") as caught:
        statements(f"self.both(x, out, attrs={COPY})", kernels=KERNELS + group)
    assert isinstance(caught.value, Diagnosed)


def test_a_task_that_returns_a_scalar_is_refused():
    kernel = f"""
    @pl.function(type=pl.FunctionType.AIV)
    def count(self, src: {T}, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
        return n
"""
    body = 'k = self.count(x, 4, attrs={"arg_directions": [pl.adir.input, pl.adir.scalar]})'
    with pytest.raises(ValueError, match="'count' returns a scalar") as caught:
        statements(body, kernels=kernel)
    assert isinstance(caught.value, Diagnosed)


def test_the_files_of_a_program_have_its_orchestration_and_the_table_of_its_kernels(tmp_path):
    launch = "out, _ = pl.submit(self.copy, x, out)"
    text = PREDICATED.replace("LAUNCH", launch)
    made = PassManager.get_strategy().run_passes(pl.parse_program(text))
    files = device_files.generate(made, str(tmp_path), skip_ptoas=True)
    assert files["orchestration/main.cpp"] == generate(made).code
    table = files["kernel_config.py"]
    assert '"func_id": 0,' in table and '"name": "copy",' in table and '"core_type": "aiv",' in table
    assert '"signature": [_D.IN, _D.IN, _D.OUT],' in table and '"orchestration" / "main.cpp"' in table
    assert '"runtime": "tensormap_and_ringbuffer"' in table and "enable_sdma" not in table
    with passes.PassContext(runtime=passes.RuntimeKind.HOST_BUILD_GRAPH):
        table = device_files.generate(made, str(tmp_path), skip_ptoas=True)["kernel_config.py"]
    assert '"runtime": "host_build_graph"' in table
    second = text.replace("return out\n", f"return out\n{text[text.rindex('    @pl'):].replace('main', 'other')}", 1)
    both = device_files.generate(
        PassManager.get_strategy().run_passes(pl.parse_program(second)), str(tmp_path), skip_ptoas=True
    )
    assert {"orchestration/main.cpp", "orchestration/other.cpp"} <= both.keys()
    assert "kernel_config.py" not in both


def test_only_an_orchestration_of_the_program_is_written():
    made = program(f"self.copy(x, out, attrs={COPY})")
    kernel = made.get_function("copy")
    other = program(f"self.copy(x, out, attrs={COPY})").get_function("main")
    with pytest.raises(ValueError, match="type AIV, not an orchestration"):
        codegen.generate_orchestration(made, kernel)
    with pytest.raises(VerificationError, match="stale function handle"):
        codegen.generate_orchestration(made, other)
    foreign = other.replace(name="elsewhere")
    with pytest.raises(ValueError, match="not present in the supplied program"):
        codegen.generate_orchestration(made, foreign)
    assert other.func_type is FunctionType.Orchestration
