"""The target tables: internal consistency, and the figures that kernels are planned with."""

from __future__ import annotations

import dataclasses
import pickle

import pytest

from pypto.backend import ASCEND910B, ASCEND950, TARGETS, get_target
from pypto.dtypes import DataType
from pypto.ir.enums import CoreType, MemorySpace, TileLayout

KIB = 1024
BOTH = pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)


@pytest.mark.parametrize("name", ["Ascend910B", "910B", "910C", "a2a3", "a3", "A2A3SIM", "ascend910b"])
def test_names_of_the_910b(name):
    assert get_target(name) is ASCEND910B


@pytest.mark.parametrize("name", ["Ascend950", "950", "a5", "a5sim", ASCEND950])
def test_names_of_the_950(name):
    assert get_target(name) is ASCEND950


@pytest.mark.parametrize("name", ["", "a4", "910"])
def test_unknown_name_lists_the_known_ones(name):
    with pytest.raises(ValueError, match=r"unknown target '.*'; known targets: Ascend910B \(910B, 910C"):
        get_target(name)


def test_capacities():
    names = ("Vec", "Mat", "Left", "Right", "Acc", "Bias", "LeftScale", "RightScale", "DDR")
    spaces = [MemorySpace[n] for n in names]
    assert [ASCEND910B.capacity(s) // KIB for s in spaces] == [184, 512, 64, 64, 128, 1, 0, 0, 0]
    assert [ASCEND950.capacity(s) // KIB for s in spaces] == [240, 512, 64, 64, 256, 4, 4, 4, 0]
    assert [t.memories[MemorySpace.Vec].physical // KIB for t in TARGETS] == [192, 248]


def test_core_counts():
    assert [(t.core_count(CoreType.CUBE), t.core_count(CoreType.VECTOR)) for t in TARGETS] == [(24, 48), (36, 72)]


@BOTH
def test_memories_are_aligned_and_reachable_ones_exist(target):
    for space, memory in target.memories.items():
        assert memory.space is space
        assert 0 < memory.usable <= memory.physical
        assert memory.usable % memory.alignment == 0
        assert memory.alignment % target.vector_address_alignment == 0
        assert target.mem_path(MemorySpace.DDR, space) or space is MemorySpace.Acc
    for source, ends in target.moves.items():
        assert {source, *ends} <= {*target.memories, MemorySpace.DDR}


@BOTH
def test_paths(target):
    ddr, mat, left, acc, vec = (MemorySpace[n] for n in ("DDR", "Mat", "Left", "Acc", "Vec"))
    assert target.mem_path(ddr, left) == [ddr, mat, left]
    assert target.mem_path(acc, ddr) == [acc, ddr]
    assert target.mem_path(mat, mat) == [mat]
    assert target.mem_path(left, ddr) == []
    direct = target is ASCEND950
    assert target.mem_path(vec, mat) == ([vec, mat] if direct else [vec, ddr, mat])
    assert target.can_move(acc, vec) == target.can_move(vec, mat) == direct


@BOTH
def test_formats(target):
    def order(space):
        form = target.memories[space].format
        return form.blayout.name, form.slayout.name, form.fractal

    assert order(MemorySpace.Vec) == order(MemorySpace.Bias) == ("row_major", "none_box", 512)
    assert order(MemorySpace.Mat) == ("col_major", "row_major", 512)
    assert order(MemorySpace.Right) == ("row_major", "col_major", 512)
    assert order(MemorySpace.Acc) == ("col_major", "row_major", 1024)
    left = TileLayout.row_major if target is ASCEND910B else TileLayout.col_major
    assert target.memories[MemorySpace.Left].format.blayout is left


def test_casts():
    f32, f16, bf16, i32, i4, fp4 = (DataType[n] for n in ("FP32", "FP16", "BF16", "INT32", "INT4", "FP4"))
    assert ASCEND910B.can_cast(i32, f16) and not ASCEND950.can_cast(i32, f16)
    assert ASCEND950.can_cast(bf16, f16) and not ASCEND910B.can_cast(bf16, f16)
    assert ASCEND910B.can_cast(f16, i4) and not ASCEND950.can_cast(f16, i4)
    assert ASCEND950.can_cast(fp4, bf16) and not ASCEND910B.can_cast(fp4, bf16)
    for target in TARGETS:
        assert target.can_cast(f32, bf16) and target.can_cast(bf16, f32)
        assert not any(source in ends for source, ends in target.casts.items())
        assert set().union(*target.casts.values()) - {DataType.INT64} <= {*target.casts, DataType.UINT16}


def test_cube_geometry():
    sizes = [ASCEND910B.cube_c0(DataType[n]) for n in ("FP32", "FP16", "INT8", "INT4")]
    assert sizes == [8, 16, 32, 64]
    assert (ASCEND910B.acc_rows(DataType.INT32), ASCEND910B.acc_rows(DataType.FP32)) == (32, 16)
    assert ASCEND950.acc_rows(DataType.INT32) == 16


def test_stores_and_atomics():
    assert DataType.BF16 in ASCEND910B.atomic_add_dtypes
    assert DataType.BF16 not in ASCEND950.atomic_add_dtypes
    for target in TARGETS:
        assert {d.name for d in target.acc_store_dtypes} == {"INT32", "FP32", "FP16", "BF16"}
        assert DataType.FP32 in target.atomic_add_dtypes


@BOTH
def test_targets_are_frozen_singletons(target):
    assert pickle.loads(pickle.dumps(target)) is target
    with pytest.raises(dataclasses.FrozenInstanceError):
        target.dies = 3
    with pytest.raises(TypeError):
        target.moves[MemorySpace.Left] = ()
