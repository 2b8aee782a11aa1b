"""The public backend objects."""

from __future__ import annotations

import json

import pytest

from pypto import backend
from pypto.backend import Backend910B, Backend950, BackendType, Cluster, Core, Die, Mem, SoC
from pypto.dtypes import DataType
from pypto.ir.enums import CoreType, MemorySpace


def test_instances_are_single_and_distinct():
    assert Backend910B.instance() is Backend910B.instance() is backend.get_backend_instance(BackendType.Ascend910B)
    assert Backend950.instance() is not Backend910B.instance()
    assert (Backend910B.instance().get_type_name(), Backend950.instance().get_type_name()) == ("910B", "950")


@pytest.mark.parametrize("backend_type, dies, clusters, cores", [("Ascend910B", 1, 24, 72), ("Ascend950", 2, 36, 108)])
def test_soc_counts(backend_type, dies, clusters, cores):
    soc = backend.get_backend_instance(BackendType[backend_type]).soc
    assert (soc.total_die_count(), soc.total_cluster_count(), soc.total_core_count()) == (dies, clusters, cores)


def test_soc_built_by_hand():
    core = Core(CoreType.CUBE, [Mem(MemorySpace.Left, 256 * 1024, 64)])
    other = Core(CoreType.VECTOR, [])
    die = Die(Cluster({core: 1, other: 2}), 3)
    assert (die.total_cluster_count(), SoC(die, 2).total_core_count()) == (3, 18)
    assert core.mems[0] == Mem(MemorySpace.Left, 256 * 1024, 64)


def test_default_backend_must_be_set_first():
    with pytest.raises(ValueError, match="Backend type not configured"):
        backend.get_handler()
    with pytest.raises(TypeError, match="BackendType"):
        backend.set_backend_type("910B")  # pyright: ignore[reportArgumentType]
    backend.set_backend_type(BackendType.Ascend950)
    assert backend.get_backend() is Backend950.instance()
    assert backend.get_handler().get_pto_target_arch() == "a5"
    assert backend.backend_type_of(backend.ASCEND950) is BackendType.Ascend950
    assert BackendType.Ascend910B.target is backend.ASCEND910B


@pytest.mark.parametrize(
    "instance, arch, count_method, platform, pto_arch, gm_pipe, fractal",
    [
        (Backend910B, "a2a3", "set_block_num", "a2a3sim", "a3", True, False),
        (Backend950, "a5", "set_core_num", "a5sim", "a5", False, True),
    ],
)
def test_handler_behaviour(instance, arch, count_method, platform, pto_arch, gm_pipe, fractal):
    handler = instance.instance().get_handler()
    assert handler.get_pto_target_arch() == arch
    assert handler.get_launch_spec_core_count_method() == count_method
    assert handler.get_default_sim_platform() == platform
    assert handler.get_extra_ptoas_flags() == ["--pto-arch", pto_arch]
    assert handler.requires_gm_pipe_buffer() is gm_pipe
    assert handler.requires_split_load_tpop_workaround() is gm_pipe
    assert handler.requires_runtime_subblock_bridge() is gm_pipe
    assert handler.requires_no_split_dual_aiv_dispatch() is gm_pipe
    assert handler.requires_vto_c_fractal_adapt() is fractal


def test_handler_figures():
    handler = Backend910B.instance().get_handler()
    assert handler.get_l0a_capacity_bytes() == handler.get_l0b_capacity_bytes() == 65536
    assert (handler.get_l0c_capacity_bytes(), handler.get_bias_capacity_bytes()) == (131072, 1024)
    assert handler.get_mat_capacity_bytes() == 524288
    assert handler.get_l0_fractal_alignment() == handler.get_min_l0_tile_dim() == 16
    assert handler.get_l0c_m_alignment(DataType.INT32) == 32
    assert handler.get_l0_cost_model().mad_passes_f32 == 2
    assert (handler.get_gm_access_granularity_bytes(), handler.get_l2_cache_line_bytes()) == (512, 512)
    assert handler.get_recommended_innermost_dim_bytes() == 512
    assert DataType.FP16 in handler.get_tcvt_adjacency()[DataType.FP32]
    assert handler.supports_bf16_atomic_add() and not handler.supports_acc_to_gm_dtype(DataType.INT8)


def test_bias_moves():
    old, new = Backend910B.instance().get_handler(), Backend950.instance().get_handler()
    for handler in (old, new):
        assert handler.supports_mat_to_bias_move(DataType.FP16, DataType.FP32)
        assert not handler.supports_mat_to_bias_move(DataType.FP16, DataType.FP16)
    assert new.supports_mat_to_bias_move(DataType.BF16, DataType.FP32)
    assert not old.supports_mat_to_bias_move(DataType.BF16, DataType.FP32)


def test_export(tmp_path):
    Backend950.instance().export_to_file(tmp_path / "950.json")
    described = json.loads((tmp_path / "950.json").read_text())
    assert described["type"] == "950" and described["cores"] == {"VECTOR": 72, "CUBE": 36}
    assert described["memories"]["Vec"] == {"physical": 253952, "usable": 245760, "alignment": 128}
    assert "Vec" in described["moves"]["Acc"]
