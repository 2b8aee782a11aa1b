"""`ir.compile`, reading a compiled program back, and leaving outputs out."""

import json
import os

import numpy as np
import pytest

import pypto.language as pl
from pypto import backend, ir, passes
from pypto.compile_profiling import CompileProfiler
from pypto.runtime import CompiledProgram
from pypto.runtime.ir_compile import run_pass_pipeline

T = pl.Tensor[[16, 64], pl.FP32]


@pl.program
class Double:
    @pl.function
    def main(self, x: T, k: pl.Scalar[pl.FP32], out: pl.Out[T]) -> T:
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), k), [0, 0], out)
        return out


ROWS = pl.dynamic("ROWS")
SOME = pl.dynamic("SOME")


@pl.function(type=pl.FunctionType.InCore)
def rows(
    x: pl.Tensor[[ROWS, 64], pl.FP32], out: pl.Out[pl.Tensor[[SOME, 64], pl.FP32]]
) -> pl.Tensor[[SOME, 64], pl.FP32]:
    return pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], out)


@pytest.fixture
def x():
    return np.random.default_rng(3).standard_normal((16, 64), dtype=np.float32)


def test_the_public_form_compiles_and_runs(x, tmp_path):
    compiled = ir.compile(Double, str(tmp_path / "made"), platform="a5sim", skip_ptoas=True)
    assert isinstance(compiled, CompiledProgram) and compiled.platform == "a5sim"
    np.testing.assert_array_equal(compiled(x, 3.0, np.zeros_like(x)), x * np.float32(3))
    assert os.fspath(compiled) == str(tmp_path / "made")
    dumps = sorted(p.name for p in (tmp_path / "made" / "passes_dump").iterdir())
    assert dumps[0] == "00_frontend.py" and dumps[1].startswith("01_after_")


def test_outputs_may_be_left_out_and_are_made(x):
    compiled = ir.compile(Double, skip_ptoas=True)
    assert compiled.output_indices == [2]
    np.testing.assert_array_equal(compiled(x, -1.5), x * np.float32(-1.5))
    with pytest.raises(TypeError, match=r"takes 3 arguments \(x, k, out\) or 2 without out, got 1"):
        compiled(x)


def test_an_output_of_unknown_size_must_be_given(x):
    compiled = pl.compile(rows, skip_ptoas=True)
    with pytest.raises(ValueError, match=r"the shape \[SOME, 64\] of 'out' does not follow"):
        compiled(x)
    np.testing.assert_array_equal(compiled(x, np.zeros_like(x)), x)


def test_torch_in_torch_out(x):
    import torch

    made = ir.compile(Double, skip_ptoas=True)(torch.from_numpy(x), 2.0)
    assert isinstance(made, torch.Tensor) and torch.equal(made, torch.from_numpy(x) * 2)


def test_parameters():
    x, k, out = ir.compile(Double, skip_ptoas=True).params
    assert (x.name, x.direction, x.dtype, x.shape, x.is_tensor) == ("x", pl.ParamDirection.In, pl.FP32, [16, 64], True)
    assert (k.name, k.shape, k.is_tensor) == ("k", None, False)
    assert out.direction is pl.ParamDirection.Out
    assert pl.compile(rows, skip_ptoas=True).params[0].shape == [None, 64]


def test_a_program_is_read_back_from_its_folder(x, tmp_path):
    compiled = ir.compile(Double, tmp_path / "made", backend_type=backend.BackendType.Ascend950, skip_ptoas=True)
    again = CompiledProgram.from_dir(tmp_path / "made")
    assert again.pto == compiled.pto and again.target is compiled.target and again.output_dir == tmp_path / "made"
    ir.assert_structural_equal(again.program, Double)
    ir.assert_structural_equal(again.lowered, compiled.lowered)
    np.testing.assert_array_equal(again(x, 2.0), x * np.float32(2))


def test_a_folder_that_is_none_and_one_that_is_damaged(tmp_path):
    with pytest.raises(FileNotFoundError, match="compiled.json"):
        CompiledProgram.from_dir(tmp_path)
    ir.compile(Double, tmp_path, skip_ptoas=True)
    about = (tmp_path / "compiled.json").read_text()
    for text in ("[]", "{}", "not json", about.replace("Ascend910B", "Ascend1")):
        (tmp_path / "compiled.json").write_text(text)
        with pytest.raises(ValueError, match="is damaged, compile it again"):
            CompiledProgram.from_dir(tmp_path)
    (tmp_path / "compiled.json").write_text(about)
    (tmp_path / "lowered.ir").write_bytes(b"\xff\x00")
    with pytest.raises(ValueError, match="is damaged, compile it again"):
        CompiledProgram.from_dir(tmp_path)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"platform": "a9"}, ValueError, "Invalid platform 'a9'"),
        ({"platform": "a5", "backend_type": backend.BackendType.Ascend910B}, ValueError, "is of Ascend950, back"),
        ({"strategy": "Default"}, ValueError, "Unsupported optimization strategy"),
        ({"distributed_config": object()}, TypeError, "must be a DistributedConfig, got object"),
        ({"dump_ptoas_passes": True, "skip_ptoas": False}, NotImplementedError, "dump_ptoas_passes"),
    ],
)
def test_what_is_refused(tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        ir.compile(Double, tmp_path / "no", **{"skip_ptoas": True, **options})
    assert not (tmp_path / "no").exists()


def test_settings_come_from_the_context_or_from_the_call_but_not_from_both():
    with passes.PassContext([], memory_planner=passes.MemoryPlanner.DSA_RP):
        assert ir.compile(Double, skip_ptoas=True).pto
        with pytest.raises(RuntimeError, match=r"compile\(\) was given memory_planner while a PassContext is already"):
            ir.compile(Double, skip_ptoas=True, memory_planner=passes.MemoryPlanner.PYPTO)
    assert ir.compile(Double, skip_ptoas=True, memory_planner=passes.MemoryPlanner.DSA_RP).pto


def test_lowering_runs_instruments_in_order():
    seen = []
    outer, extra = (
        passes.CallbackInstrument(before_pass=lambda p, _, who=who: seen.append((who, p.name)))
        for who in ("outer", "extra")
    )
    with passes.PassContext([outer]):
        lowered = run_pass_pipeline(Double, extra_instruments=[extra]).transformed_program
    assert isinstance(lowered, ir.Program) and seen
    assert [who for who, _ in seen] == ["outer", "extra"] * (len(seen) // 2)


def test_profiles(tmp_path):
    ir.compile(Double, tmp_path / "own", profiling=True, skip_ptoas=True)
    stored = json.loads((tmp_path / "own" / "report" / "pipeline_profile.json").read_text())
    assert [s["name"] for s in stored["stages"]] == ["passes", "codegen"]
    assert "AllocateMemoryAddr" in [s["name"] for s in stored["stages"][0]["children"]]
    with CompileProfiler() as profiler:
        ir.compile(Double, tmp_path / "theirs", profiling=True, skip_ptoas=True)
    assert [s.name for s in profiler.stages] == ["passes", "codegen"]
    assert not (tmp_path / "theirs" / "report" / "pipeline_profile.json").exists()


def test_the_environment_profiles_every_compilation(tmp_path, monkeypatch):
    from pypto import compile_profiling

    monkeypatch.setenv("PYPTO_COMPILE_PROFILING", "1")
    monkeypatch.setattr(compile_profiling, "_env_profiler", None)
    try:
        ir.compile(Double, tmp_path, skip_ptoas=True)
    finally:
        CompileProfiler._local.__dict__.clear()
    assert (tmp_path / "report" / "pipeline_profile.txt").exists()


def test_dumps_spell_out_layouts_when_asked(tmp_path):
    for level in ir.PassDumpLevel:
        ir.compile(Double, tmp_path / level.name, dump_passes=level, skip_ptoas=True)
    assert not (tmp_path / "NONE" / "passes_dump").exists()
    texts = [
        "".join(p.read_text() for p in sorted((tmp_path / name / "passes_dump").iterdir()))
        for name in ("CONCISE", "EXPLICIT")
    ]
    assert "fractal=512" not in texts[0] and "fractal=512" in texts[1]


def test_the_import_paths_of_existing_tools():
    from pypto.ir.compile import compile as by_path
    from pypto.ir.compiled_program import CompiledProgram as known

    assert by_path is ir.compile and known is CompiledProgram


@pl.program
class TwoTasks:
    @pl.function(type=pl.FunctionType.InCore)
    def add(self, x: T, k: pl.Scalar[pl.FP32], out: pl.Out[T]) -> T:
        return pl.store(pl.add(pl.load(x, [0, 0], [16, 64]), k), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: T, out: pl.Out[T]) -> T:
        mid = pl.create_tensor([16, 64], dtype=pl.FP32)
        mid = self.add(x, 1.0, mid)
        out = self.add(mid, 2.0, out)
        return out


@pytest.mark.parametrize("asked", [False, True])
def test_dependencies_of_tasks_are_derived_on_request(x, asked):
    compiled = ir.compile(TwoTasks, skip_ptoas=True, analyze_auto_scopes_for_deps=asked)
    main = str(compiled.lowered.get_function("main"))
    assert ("compiler_manual_dep_edges" in main) is asked
    np.testing.assert_array_equal(compiled(x), x + np.float32(1) + np.float32(2))
