"""What a compilation writes for the device runtime: the orchestration's C++, its kernels and their table."""

import numpy as np
import pytest

import pypto.language as pl
from pypto.passes import PassContext, RuntimeKind, VerificationLevel
from pypto.runtime import CompiledProgram
from pypto.runtime.files import write_kernels

T = pl.Tensor[[16, 16], pl.FP32]
CPP = '#include "pto/pto-inst.hpp"\nusing namespace pto;\n\n__global__ AICORE void {}(__gm__ float* v1) {{}}\n'


@pl.program
class Doubled:
    @pl.function(type=pl.FunctionType.InCore)
    def double(self, x: T, y: pl.Out[T]) -> T:
        return pl.store(pl.mul(pl.load(x, [0, 0], [16, 16]), 2.0), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: T, y: pl.Out[T]) -> T:
        return self.double(x, y)


@pl.program
class Copied:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: T, y: pl.Out[pl.Tensor[[32, 16], pl.FP32]]) -> pl.Tensor[[32, 16], pl.FP32]:
        y = pl.assemble(y, x, [0, 0])
        return y


def table(folder) -> dict:
    """What the table says, the device runtime's enum replaced by its names."""
    text = (folder / "kernel_config.py").read_text()
    text = text.replace("from simpler.task_interface import ArgDirection as _D", "class _D: IN, OUT = 'IN', 'OUT'")
    found: dict = {"__file__": str(folder / "kernel_config.py")}
    exec(text, found)
    return found


def test_the_folder_has_the_orchestration_and_the_table(tmp_path):
    compiled = pl.compile(Doubled, output_dir=tmp_path / "made", skip_ptoas=True)
    text = (tmp_path / "made" / "orchestration" / "main.cpp").read_text()
    assert "params_t0.add_input(ext_x);" in text and "rt_submit_aiv_task" in text
    made = table(tmp_path / "made")
    assert [k["name"] for k in made["KERNELS"]] == ["double"]
    assert made["RUNTIME_CONFIG"]["runtime"] == "tensormap_and_ringbuffer"
    again = CompiledProgram.from_dir(compiled.output_dir)
    x = np.arange(256, dtype=np.float32).reshape(16, 16)
    np.testing.assert_array_equal(again(x), 2 * x)


def test_kernels_are_written_once_there_is_cpp(tmp_path):
    compiled = pl.compile(Doubled, output_dir=tmp_path / "made", skip_ptoas=True)
    assert not (tmp_path / "made" / "kernels").exists()
    compiled.cpp["double"] = CPP.format("double")
    write_kernels(compiled, compiled.output_dir)
    (kernel,) = table(tmp_path / "made")["KERNELS"]
    text = (tmp_path / "made" / "kernels" / "aiv" / "double.cpp").read_text()
    assert kernel["source"] == str(tmp_path / "made" / "kernels" / "aiv" / "double.cpp")
    assert "kernel_entry" in text and "static __aicore__ void double(" in text


def test_a_folder_written_later_is_for_the_runtime_and_target_of_the_compilation(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path))
    with PassContext([], runtime=RuntimeKind.HOST_BUILD_GRAPH):
        compiled = pl.compile(Doubled, target="Ascend950", skip_ptoas=True)
    assert not list(tmp_path.iterdir())
    assert table(compiled.output_dir)["RUNTIME_CONFIG"]["runtime"] == "host_build_graph"


def test_what_the_device_runtime_cannot_do_is_reported_and_still_runs(tmp_path):
    compiled = pl.compile(Copied, output_dir=tmp_path / "made", skip_ptoas=True)
    report = (tmp_path / "made" / "report" / "compile.txt").read_text()
    assert "not written for a device" in report and "main: an orchestration does not copy" in report
    assert not (tmp_path / "made" / "orchestration").exists()
    x, y = np.ones((16, 16), np.float32), np.zeros((32, 16), np.float32)
    compiled(x, y)
    assert (y[:16] == 1).all() and (y[16:] == 0).all()


@pytest.mark.parametrize("runtime", list(RuntimeKind))
def test_every_runtime_has_its_name_in_the_table(tmp_path, runtime):
    with PassContext([], runtime=runtime):
        pl.compile(Doubled, output_dir=tmp_path / "made", skip_ptoas=True)
    assert f'"runtime": "{runtime.name.lower()}"' in (tmp_path / "made" / "kernel_config.py").read_text()


@pl.program
class Counted:
    @pl.function(type=pl.FunctionType.InCore)
    def double(self, x: T, y: pl.Out[T]):
        y = pl.store(pl.mul(pl.load(x, [0, 0], [16, 16]), 2.0), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: T, y: pl.Out[T]) -> T:
        for _, (n,) in pl.range(8, init_values=(4,)):
            y = self.double(x, y)
            last: pl.Scalar[pl.INT64] = pl.yield_(n)
        for _ in pl.range(last):
            y = self.double(x, y)
        return y


def test_kernels_without_annotated_results_and_indices_annotated_int64_read_back_after_every_pass(tmp_path):
    with PassContext(verification_level=VerificationLevel.ROUNDTRIP):
        compiled = pl.compile(Counted, output_dir=tmp_path / "made", skip_ptoas=True)
    text = (tmp_path / "made" / "orchestration" / "main.cpp").read_text()
    assert "_ < 8" in text and "< 4; " in text
    x = np.ones((16, 16), np.float32)
    np.testing.assert_array_equal(compiled(x), 2 * x)
