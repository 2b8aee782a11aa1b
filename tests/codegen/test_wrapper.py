"""The C++ around a kernel: what its entry point unpacks and passes on, what is changed in what PTOAS wrote."""

import re
import subprocess
import sys

import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import backend, ir, passes
from pypto.backend import pto_backend
from pypto.codegen.wrapper import arguments_of, as_static, kernel_config, kernel_wrapper
from pypto.runtime.device_files import PartialCodegenError, generate

N, M = pl.dynamic("N"), pl.dynamic("M")
CPP = (
    '#include "pto/pto-inst.hpp"\nusing namespace pto;\n\n'
    "__global__ AICORE void scale(__gm__ float* v1) {\n  return;\n}\n"
)


@pl.function(type=pl.FunctionType.InCore)
def scale(x: pl.Tensor[[N, 64], pl.FP32], by: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor[[N, M], pl.FP32]]):
    pl.store(pl.mul(pl.load(x, [0, 0], [1, 64]), by), [0, 0], out)


def test_words_are_tensors_then_scalars_and_extents_are_read_from_shapes():
    wrapper = kernel_wrapper(scale, CPP, backend.ASCEND910B)
    entry = wrapper[wrapper.index("void kernel_entry(__gm__ int64_t* args)") :]
    assert re.findall(r"args\[(\d)\]", entry) == ["0", "1", "2"]
    assert "by_conv.u64 = args[2];" in entry and "float by = by_conv.val;" in entry
    assert "reinterpret_cast<__gm__ float*>(out_tensor->buffer.addr) + out_tensor->start_offset;" in entry
    assert "int64_t N = static_cast<int64_t>(x_tensor->shapes[0]);" in entry
    assert "int64_t M = static_cast<int64_t>(out_tensor->shapes[1]);" in entry
    assert "scale(x, out, by, N, M);" in entry
    assert "intrinsic.h" not in wrapper and entry.index("set_atomic_none();") < entry.index("// Unpack")


def extents(*dims):
    params = [ir.Var(f"t{i}", ir.TensorType([d, 64], pl.FP16)) for i, d in enumerate(dims)]
    function = ir.Function("f", params, [], ir.SeqStmts([]), type=ir.FunctionType.InCore)
    return {a.name: a.text for a in arguments_of(function) if a.kind == "extent"}


def test_extents_follow_from_expressions_with_one_solution():
    n = ir.Var("n", ir.ScalarType(pl.INDEX))
    shape = "static_cast<int64_t>(t0_tensor->shapes[0])"
    assert extents(n) == {"n": shape}
    assert extents(n * 128) == extents(128 * n) == {"n": f"({shape} / 128)"}
    assert extents(n + 3) == {"n": f"({shape} - 3)"} and extents(n - 3) == {"n": f"({shape} + 3)"}
    assert extents(9 - n) == {"n": f"(9 - {shape})"}
    assert extents(n * 4 + 1) == {"n": f"(({shape} - 1) / 4)"}
    assert extents(n * n, n) == {"n": shape.replace("t0", "t1")}


@pytest.mark.parametrize("make", [lambda n: n * n, lambda n: -n, lambda n: n // 5, lambda n: n * 0, lambda n: n % 4])
def test_an_extent_that_shapes_do_not_determine_is_refused(make):
    n = ir.Var("n", ir.ScalarType(pl.INDEX))
    with pytest.raises(ValueError, match="'n' has non-invertible uses only[\\s\\S]*n: pl.Scalar"):
        extents(make(n))


def test_four_bit_elements_are_counted_in_pairs():
    n = ir.Var("n", ir.ScalarType(pl.INDEX))
    param = ir.Var("x", ir.TensorType([16, n], pl.FP4))
    function = ir.Function("f", [param], [], ir.SeqStmts([]), type=ir.FunctionType.InCore)
    assert arguments_of(function)[-1].text == "(static_cast<int64_t>(x_tensor->shapes[1]) * 2)"


def test_names_of_parameters_do_not_clash_with_the_language_or_each_other():
    params = [ir.Var(name, ir.ScalarType(pl.INT32)) for name in ("args", "float", "a", "a")]
    function = ir.Function("f", params, [], ir.SeqStmts([]), type=ir.FunctionType.InCore)
    names = [a.name for a in arguments_of(function)]
    assert len(set(names)) == 4 and not {"args", "float"} & set(names)


def test_each_window_has_its_communication_context():
    @pl.function(type=pl.FunctionType.InCore)
    def tell(
        a: pld.DistributedTensor[[4], pl.INT32], peer: pl.Scalar[pl.INT32], b: pld.DistributedTensor[[4], pl.INT32]
    ):
        pld.system.notify(a, peer, [0], 1)
        pld.system.notify(b, peer, [0], 1)

    wrapper = kernel_wrapper(tell, CPP, backend.ASCEND910B)
    assert "tell(a, b, peer, a_ctx, b_ctx);" in wrapper
    assert "__gm__ int64_t* b_ctx = reinterpret_cast<__gm__ int64_t*>(args[4]);" in wrapper


def test_what_the_launch_knows_is_asked_of_the_runtime():
    @pl.function(type=pl.FunctionType.InCore)
    def fetch(x: pl.Tensor[[1, 4096], pl.FP32], out: pl.Out[pl.Tensor[[8, 128], pl.FP32]]):
        context = pl.prefetch.make_context()
        pl.prefetch.wait(pl.prefetch.async_prefetch(x, context), pl.prefetch.session(context))
        row = pl.tile.get_block_idx()
        pl.store(pl.load(x, [0, 0], [1, 128]), [row, 0], out)

    wrapper = kernel_wrapper(fetch, CPP, backend.ASCEND910B)
    assert '#include "intrinsic.h"' in wrapper and "get_dma_workspace(args, DMA_WORKSPACE_SDMA)" in wrapper
    assert "int32_t __pypto_spmd_block_idx = get_block_idx(args);" in wrapper
    call = next(line for line in wrapper.splitlines() if line.strip().startswith("fetch("))
    assert call.strip() == "fetch(x, out, __pypto_sdma_workspace, __pypto_spmd_block_idx, __pypto_spmd_block_num);"


@pytest.mark.parametrize("target, bridged", [(backend.ASCEND910B, True), (backend.ASCEND950, False)])
def test_a_lane_of_a_split_kernel_is_told_apart(target, bridged):
    @pl.function(type=pl.FunctionType.AIV, attrs={"split": pl.SplitMode.UP_DOWN})
    def lane(out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        pl.store(pl.tile.full([16, 16], pl.FP32, 0.0), [0, 0], out)

    wrapper = kernel_wrapper(lane, CPP, target)
    assert ("#define get_subblockid() pypto_runtime_subblock_id" in wrapper) is bridged
    assert ("pypto_runtime_subblock_id = get_sub_block_id(args);" in wrapper) is bridged


def test_blocks_of_a_group_are_known_to_all_its_kernels():
    wrapper = kernel_wrapper(scale, CPP, backend.ASCEND910B, blocks_of_group=True)
    assert "int32_t __pypto_spmd_block_num = get_block_num(args);" in wrapper
    assert "scale(x, out, by, N, M);" in wrapper


def test_what_ptoas_wrote_becomes_a_static_function_of_the_unit():
    text = as_static(CPP + "Tensor t; TensorView v;\n  set_ffts_base_addr(base);\n")
    assert "#include" not in text and "using namespace" not in text and "set_ffts_base_addr" not in text
    assert "static __aicore__ void scale(__gm__ float* v1)" in text and "ChipTensor t; TensorView v;" in text
    assert "extern" not in as_static('extern "C" __global__ AICORE void k() {}\n')


def test_gathers_take_the_tiles_their_pointers_were_made_of():
    body = (
        "  __ubuf__ float* v1 = {0}_dst.data();\n  __gm__ float* v2 = (__gm__ float*) {0}_table;\n"
        "  __ubuf__ int32_t* v3 = {0}_idx.data();\n"
    )
    unit = "AICORE void {0}() {{\n" + body + "  MGATHER<pto::Coalesce::Row>(v1, v2, v3);\n}}\n"
    text = as_static(unit.format("first") + unit.format("second"))
    assert "MGATHER<pto::Coalesce::Row>(first_dst, first_table, first_idx);" in text
    assert "MGATHER<pto::Coalesce::Row>(second_dst, second_table, second_idx);" in text and "v2" not in text
    used = as_static("AICORE void k() {\n" + body.format("k") + "  use(v1);\n  MGATHER(v1, v2, v3);\n}\n")
    assert "MGATHER(v1, v2, v3);" in used and "v2 = (__gm__ float*) k_table" in used


def test_the_table_of_kernels_is_python():
    text = kernel_config(
        "main", {"b": 1, "a": 0}, {"a": ir.CoreType.CUBE, "b": ir.CoreType.VECTOR}, {"a": ["IN", "OUT"]}, ["IN"],
        passes.RuntimeKind.HOST_BUILD_GRAPH, enable_sdma=True,
    )  # fmt: skip
    namespace = {"__file__": "/out/kernel_config.py"}
    exec(text.replace("from simpler.task_interface import ArgDirection as _D", "class _D: IN, OUT = 1, 2"), namespace)
    assert namespace["RUNTIME_CONFIG"]["runtime"] == "host_build_graph" and namespace["RUNTIME_CONFIG"]["enable_sdma"]
    first, second = namespace["KERNELS"]
    assert (first["func_id"], first["name"], first["core_type"], first["signature"]) == (0, "a", "aic", [1, 2])
    assert second["source"] == "/out/kernels/aiv/b.cpp" and "signature" not in second
    assert namespace["ORCHESTRATION"]["source"] == "/out/orchestration/main.cpp"
    assert "simpler" not in kernel_config("main", {}, {})


def lowered(*functions):
    with passes.PassContext(target=backend.ASCEND910B):
        return passes.run_pipeline(ir.Program(list(functions), "p"))


@pl.function(type=pl.FunctionType.InCore)
def double(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), 2.0), [0, 0], out)


def test_a_program_is_pto_text_or_wrapped_kernels(tmp_path, monkeypatch):
    program = lowered(double)
    files = generate(program, str(tmp_path), skip_ptoas=True)
    assert list(files) == ["kernels/aiv/double.pto"] and "pto.tmuls" in files["kernels/aiv/double.pto"]
    monkeypatch.setattr(pto_backend, "_compile_pto_module", lambda text, name, folder, planner=None: CPP)
    files = pto_backend.generate(program, str(tmp_path))
    assert list(files) == ["kernels/aiv/double.cpp"] and "double(x" in files["kernels/aiv/double.cpp"]


def test_the_table_says_which_runtime_and_that_kernels_prefetch(tmp_path, monkeypatch):
    @pl.program
    class Fetched:
        @pl.function(type=pl.FunctionType.InCore)
        def copy(
            self, x: pl.Tensor[[1, 128], pl.FP32], out: pl.Out[pl.Tensor[[1, 128], pl.FP32]]
        ) -> pl.Tensor[[1, 128], pl.FP32]:
            context = pl.prefetch.make_context()
            event = pl.prefetch.async_prefetch(x, context)
            pl.prefetch.wait(event, pl.prefetch.session(context))
            return pl.store(pl.load(x, [0, 0], [1, 128]), [0, 0], out)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[1, 128], pl.FP32]) -> pl.Tensor[[1, 128], pl.FP32]:
            out = pl.create_tensor([1, 128], dtype=pl.FP32)
            return self.copy(x, out)

    monkeypatch.setattr(pto_backend, "_compile_pto_module", lambda text, name, folder, planner=None: CPP)
    with passes.PassContext(target=backend.ASCEND910B, runtime=passes.RuntimeKind.HOST_BUILD_GRAPH):
        table = pto_backend.generate(passes.run_pipeline(Fetched), str(tmp_path))["kernel_config.py"]
    assert '"enable_sdma": True' in table and '"runtime": "host_build_graph"' in table


def test_kernels_that_cannot_be_written_are_reported_with_those_that_can(tmp_path):
    def emit(files, name, kernels, text, folder, skip):
        if name == "triple":
            raise ValueError("triple: no such tile")
        files[name] = text

    triple = ir.Function("triple", double.params, [], double.body, type=ir.FunctionType.InCore)
    with pytest.raises(PartialCodegenError, match=r"1 function\(s\) failed[\s\S]*triple +\| no such tile") as caught:
        generate(lowered(double, triple), str(tmp_path), skip_ptoas=True, emit=emit)
    assert list(caught.value.files) == ["double"]


def test_the_import_path_loads_nothing_above_it():
    code = (
        "import sys, pypto.backend.pto_backend\n"
        "print(sorted(m for m in sys.modules if m.startswith(('pypto.codegen', 'pypto.runtime', 'jinja2'))))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
