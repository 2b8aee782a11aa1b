"""`RunConfig` and `run`."""

import dataclasses

import numpy as np
import pytest

import pypto.language as pl
from pypto.backend import BackendType
from pypto.passes import MemoryPlanner
from pypto.runtime import RunConfig, run


@pl.function(type=pl.FunctionType.InCore)
def double(
    x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
) -> pl.Tensor[[16, 64], pl.FP32]:
    t = pl.load(x, [0, 0], [16, 64])
    return pl.store(pl.add(t, t), [0, 0], out)


@pytest.mark.parametrize(
    ("platform", "chip"),
    [("a2a3", BackendType.Ascend910B), ("a2a3sim", BackendType.Ascend910B), ("a5", BackendType.Ascend950)],
)
def test_the_platform_names_the_chip(platform, chip):
    config = RunConfig(platform=platform)
    assert config.backend_type is chip and config.target is chip.target
    assert RunConfig(platform=platform, backend_type=chip) == config


@pytest.mark.parametrize(
    "given",
    [
        {"platform": "a9"},
        {"platform": "a5", "backend_type": BackendType.Ascend910B},
        {"enable_chip_swimlane": 5},
        {"enable_chip_swimlane": -1},
        {"ring_task_window": 6},
        {"ring_heap": 512},
        {"ring_dep_pool": 3},
        {"ring_dep_pool": 2**31},
        {"ring_heap": 1024.0},
        {"ring_dep_pool": True},
        {"ring_task_window": [4, 4, 4]},
        {"ring_task_window": [4, 4, 4, 5]},
        {"ring_dep_pool": [False, 4, 4, 4]},
    ],
)
def test_values_out_of_range(given):
    with pytest.raises(ValueError, match=next(k for k in reversed(given)).removeprefix("enable_")):
        RunConfig(**given)


def test_a_level_is_a_number():
    assert [RunConfig(enable_chip_swimlane=v).enable_chip_swimlane for v in (True, False, 2)] == [4, 0, 2]
    with pytest.raises(TypeError, match="enable_chip_swimlane must be a bool or an int, got str"):
        RunConfig(enable_chip_swimlane="full")


@pytest.mark.parametrize(
    "given", [{"enable_pmu": 2}, {"enable_dep_gen": True}, {"enable_dump_args": True}, {"enable_scope_stats": True}]
)
def test_what_is_recorded_is_kept(given):
    assert RunConfig(**given).save_kernels and RunConfig(**given).any_dfx_enabled()
    assert not RunConfig().save_kernels


def test_rings_are_sized_together_or_one_by_one():
    assert RunConfig(ring_heap=(1024, 0, 4096, 1024)).ring_heap == [1024, 0, 4096, 1024]
    assert RunConfig(ring_dep_pool=100).ring_dep_pool == 100


def test_only_settings_that_were_made_go_to_the_compiler():
    plain = RunConfig().compile_settings()
    assert {"output_dir", "memory_planner", "distributed_config"}.isdisjoint(plain)
    changed = dataclasses.replace(RunConfig(), memory_planner=MemoryPlanner.PTOAS, save_kernels_dir="folder")
    assert changed.compile_settings() == plain | {"memory_planner": MemoryPlanner.PTOAS, "output_dir": "folder"}


def test_run_compiles_and_runs():
    x, out = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
    compiled = run(pl.parse(double.as_python()), x, out, config=RunConfig(platform="a5sim"))
    assert (out == 2).all() and compiled.target.name == "Ascend950"
    with pytest.raises(ValueError, match="compiled for Ascend950, but config.platform is 'a2a3sim'"):
        compiled(x, out, config=RunConfig())
