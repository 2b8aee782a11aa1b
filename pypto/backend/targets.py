"""The targets. Figures are those of the public Ascend and PTO documentation; see docs for each."""

from __future__ import annotations

from types import MappingProxyType

from ..dtypes import DataType
from ..ir.enums import CoreType, MemorySpace, TileLayout
from .target import L0Costs, Memory, Quirks, Target, TileFormat

_KIB = 1024
_DDR, _VEC, _MAT = MemorySpace.DDR, MemorySpace.Vec, MemorySpace.Mat
_LEFT, _RIGHT, _ACC, _BIAS = MemorySpace.Left, MemorySpace.Right, MemorySpace.Acc, MemorySpace.Bias
_LEFT_SCALE, _RIGHT_SCALE, _SCALING = MemorySpace.LeftScale, MemorySpace.RightScale, MemorySpace.Scaling

_ROW, _COL = TileLayout.row_major, TileLayout.col_major
_ND = TileFormat(_ROW, TileLayout.none_box, 512)
_NZ = TileFormat(_COL, _ROW, 512)
_ZN = TileFormat(_ROW, _COL, 512)
_ZZ = TileFormat(_ROW, _ROW, 512)
_ACC_NZ = TileFormat(_COL, _ROW, 1024)
_SCALE_ZZ = TileFormat(_ROW, _ROW, 32)
_SCALE_NN = TileFormat(_COL, _COL, 32)

_I4, _I8, _I16, _I32, _I64 = (
    DataType.INT4,
    DataType.INT8,
    DataType.INT16,
    DataType.INT32,
    DataType.INT64,
)
_U8, _U16, _U32 = DataType.UINT8, DataType.UINT16, DataType.UINT32
_F16, _BF16, _F32 = DataType.FP16, DataType.BF16, DataType.FP32
_F8E4, _F8E5, _HF8, _F4 = DataType.FP8E4M3FN, DataType.FP8E5M2, DataType.HF8, DataType.FP4


def _memories(*memories: Memory) -> MappingProxyType[MemorySpace, Memory]:
    return MappingProxyType({memory.space: memory for memory in memories})


def _vec(physical: int) -> Memory:
    # The top 8 KiB of UB belong to the PTO library.
    return Memory(_VEC, CoreType.VECTOR, physical, physical - 8 * _KIB, 128, _ND, "vec")


def _cube(space: MemorySpace, size: int, alignment: int, form: TileFormat, pto_name: str) -> Memory:
    return Memory(space, CoreType.CUBE, size, size, alignment, form, pto_name)


ASCEND910B = Target(
    name="Ascend910B",
    type_name="910B",
    aliases=("910B", "910C", "Ascend910C", "a2a3", "a3", "a2"),
    pto_arch="a3",
    module_arch="a2a3",
    core_count_method="set_block_num",
    dies=1,
    groups_per_die=24,
    cubes_per_group=1,
    vectors_per_group=2,
    memories=_memories(
        _vec(192 * _KIB),
        _cube(_MAT, 512 * _KIB, 128, _NZ, "mat"),
        _cube(_LEFT, 64 * _KIB, 64, _ZZ, "left"),
        _cube(_RIGHT, 64 * _KIB, 64, _ZN, "right"),
        _cube(_ACC, 128 * _KIB, 128, _ACC_NZ, "acc"),
        _cube(_BIAS, 1 * _KIB, 64, _ND, "bias"),
        _cube(_SCALING, 2 * _KIB, 128, _ND, "scaling"),
    ),
    moves=MappingProxyType(
        {
            _DDR: (_VEC, _MAT),
            _VEC: (_DDR,),
            _MAT: (_LEFT, _RIGHT, _BIAS, _SCALING),
            _ACC: (_MAT, _DDR),
        }
    ),
    casts=MappingProxyType(
        {
            _F32: (_F16, _BF16, _I16, _I32, _I64),
            _F16: (_F32, _I32, _I16, _I8, _U8, _I4),
            _BF16: (_F32, _I32),
            _I16: (_F16, _F32),
            _I32: (_F32, _I16, _I64, _F16),
            _I64: (_F32, _I32),
            _U8: (_F16,),
            _I8: (_F16,),
            _I4: (_F16,),
        }
    ),
    bias_moves=frozenset({(_I32, _I32), (_F32, _F32), (_F16, _F32)}),
    packed_dtypes=frozenset(),
    acc_store_dtypes=frozenset({_I32, _F32, _F16, _BF16}),
    quantized_drains=MappingProxyType({_F32: (_I8, _U8), _I32: (_I8, _U8, _F16)}),
    atomic_add_dtypes=frozenset({_F32, _F16, _BF16, _I32, _I16, _I8}),
    acc_row_alignment=MappingProxyType({_I32: 32}),
    gm_granularity=512,
    l2_line=512,
    costs=L0Costs(
        l0a_bytes_per_cycle=129.7,
        l0b_bytes_per_cycle=85.4,
        drain_bytes_per_cycle=118.0,
        drain_cycles=164.0,
        drain_row_cycles=4.45,
        drain_odd_fractal_cycles=2.0,
        mad_head_cycles=21.0,
        mad_passes_f32=2,
    ),
    quirks=Quirks(
        gm_pipe_buffer=True,
        split_load_tpop_workaround=True,
        vector_to_cube_fractal=False,
        runtime_subblock_bridge=True,
        no_split_dual_aiv_dispatch=True,
        event_workspace=True,
        tinsert_f32_destination=False,
        gather_behind_scratch=True,
        moves_whole=True,
        mask_as_wide=False,
        explicit_scratch=True,
    ),
)

ASCEND950 = Target(
    name="Ascend950",
    type_name="950",
    aliases=("950", "a5"),
    pto_arch="a5",
    module_arch="a5",
    core_count_method="set_core_num",
    dies=2,
    groups_per_die=18,
    cubes_per_group=1,
    vectors_per_group=2,
    memories=_memories(
        _vec(248 * _KIB),
        _cube(_MAT, 512 * _KIB, 128, _NZ, "mat"),
        _cube(_LEFT, 64 * _KIB, 64, _NZ, "left"),
        _cube(_RIGHT, 64 * _KIB, 64, _ZN, "right"),
        _cube(_ACC, 256 * _KIB, 128, _ACC_NZ, "acc"),
        _cube(_BIAS, 4 * _KIB, 64, _ND, "bias"),
        _cube(_LEFT_SCALE, 4 * _KIB, 32, _SCALE_ZZ, "scaling"),
        _cube(_RIGHT_SCALE, 4 * _KIB, 32, _SCALE_NN, "scaling"),
        _cube(_SCALING, 4 * _KIB, 128, _ND, "scaling"),
    ),
    moves=MappingProxyType(
        {
            _DDR: (_VEC, _MAT),
            _VEC: (_DDR, _MAT),
            _MAT: (_LEFT, _RIGHT, _BIAS, _LEFT_SCALE, _RIGHT_SCALE, _SCALING),
            _ACC: (_VEC, _MAT, _DDR),
        }
    ),
    casts=MappingProxyType(
        {
            _F32: (_F16, _BF16, _I16, _I32, _I64, _F8E4, _F8E5, _HF8),
            _F16: (_F32, _I32, _I16, _I8, _U8, _HF8),
            _BF16: (_F32, _I32, _F16, _F4),
            _I16: (_U8, _F16, _F32, _U32, _I32),
            _I32: (_F32, _I16, _U16, _I64, _U8),
            _I64: (_F32, _I32),
            _U8: (_F16, _U16),
            _I8: (_F16, _I16, _I32),
            _U32: (_U8, _U16, _I16),
            _F8E4: (_F32,),
            _F8E5: (_F32,),
            _HF8: (_F32,),
            _F4: (_BF16,),
        }
    ),
    bias_moves=frozenset({(_I32, _I32), (_F32, _F32), (_F16, _F32), (_BF16, _F32)}),
    packed_dtypes=frozenset({_F4}),
    acc_store_dtypes=frozenset({_I32, _F32, _F16, _BF16}),
    quantized_drains=MappingProxyType({_F32: (_I8, _U8, _F16, _BF16, _F8E4), _I32: (_I8, _U8, _F16, _BF16)}),
    atomic_add_dtypes=frozenset({_F32, _F16, _I32, _I16, _I8}),
    acc_row_alignment=MappingProxyType({}),
    gm_granularity=128,
    l2_line=512,
    # Of this chip only the f32 pass count is published. Its loads are taken to be faster, the rest is the 910B's.
    costs=L0Costs(
        l0a_bytes_per_cycle=200.0,
        l0b_bytes_per_cycle=132.0,
        drain_bytes_per_cycle=118.0,
        drain_cycles=164.0,
        drain_row_cycles=4.45,
        drain_odd_fractal_cycles=2.0,
        mad_head_cycles=21.0,
        mad_passes_f32=8,
    ),
    quirks=Quirks(
        gm_pipe_buffer=False,
        split_load_tpop_workaround=False,
        vector_to_cube_fractal=True,
        runtime_subblock_bridge=False,
        no_split_dual_aiv_dispatch=False,
        event_workspace=False,
        tinsert_f32_destination=True,
        gather_behind_scratch=False,
        moves_whole=False,
        mask_as_wide=True,
        explicit_scratch=False,
    ),
)

TARGETS = (ASCEND910B, ASCEND950)

_BY_NAME = {
    name.lower(): target
    for target in TARGETS
    for name in (target.name, *target.aliases, target.platform, target.sim_platform)
}


def get_target(name: str | Target) -> Target:
    """Target called ``name``: its own name, an alias such as ``910C`` or ``a5``, or a platform such as ``a2a3sim``.

    Case does not matter. Raises ValueError for a name that is none of these.
    """
    if isinstance(name, Target):
        return name
    target = _BY_NAME.get(name.lower())
    if target is None:
        known = "; ".join(f"{t.name} ({', '.join(t.aliases)})" for t in TARGETS)
        raise ValueError(f"unknown target {name!r}; known targets: {known}")
    return target
