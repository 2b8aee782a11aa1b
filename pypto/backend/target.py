"""What a target is: the one description that passes, codegen, simulator and reports read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..dtypes import DataType
from ..ir.enums import CoreType, MemorySpace, TileLayout


@dataclass(frozen=True)
class TileFormat:
    """Order of the elements of a tile buffer, as ``!pto.tile_buf`` states it; ``fractal`` in bytes a box."""

    blayout: TileLayout
    slayout: TileLayout
    fractal: int


@dataclass(frozen=True)
class Memory:
    """One on-chip memory of one core. Sizes and alignment in bytes.

    ``usable`` is what kernels may allocate; the rest of ``physical``, at its top, is reserved.
    ``format`` is the layout the core's instructions expect there; ``pto_name`` is its ``loc=``.
    """

    space: MemorySpace
    core: CoreType
    physical: int
    usable: int
    alignment: int
    format: TileFormat
    pto_name: str


@dataclass(frozen=True)
class L0Costs:
    """Cycle costs of feeding the cube, used to choose tile sizes and to draw timelines.

    Bandwidths in bytes a cycle: L1 to L0A, L1 to L0B, and FIXPIPE out of L0C. ``drain_cycles`` is
    paid once a drain and ``drain_row_cycles`` is its floor for each row; a row of n * 2**i fractals, n odd, pays
    ``drain_odd_fractal_cycles`` n - 1 times more. A multiply pays
    ``mad_head_cycles`` for every K block, then one pass, or ``mad_passes_f32`` for f32 operands,
    for every 32-byte K fractal.
    """

    l0a_bytes_per_cycle: float
    l0b_bytes_per_cycle: float
    drain_bytes_per_cycle: float
    drain_cycles: float
    drain_row_cycles: float
    drain_odd_fractal_cycles: float
    mad_head_cycles: float
    mad_passes_f32: int


@dataclass(frozen=True)
class Quirks:
    """Where the hardware, or the PTO library for it, wants something other targets do not."""

    gm_pipe_buffer: bool
    """Cross-core pipes go through a buffer in global memory."""
    split_load_tpop_workaround: bool
    """A load may not reuse the buffer of a tile popped from the cube in a split vector function."""
    vector_to_cube_fractal: bool
    """A vector core arranges a tile in fractals before it pushes it to the cube."""
    runtime_subblock_bridge: bool
    """Split vector kernels take their sub-block index from the runtime."""
    no_split_dual_aiv_dispatch: bool
    """A mixed kernel without a split still runs on both vector cores."""
    event_workspace: bool
    """Events between cores need a workspace named before the first one (``pto.set_ffts``)."""
    tinsert_f32_destination: bool
    """``pto.tinsert`` from Acc may write f32 to Mat; otherwise only f16 and bf16."""
    gather_behind_scratch: bool
    """``pto.tgather`` that compares works in the bytes behind its scratch tile, too."""
    moves_whole: bool
    """``pto.tmov`` within Vec takes no view of part of a tile's columns together with a whole tile."""
    mask_as_wide: bool
    """``pto.tcmp`` wants a mask of as many elements as it compares, though it packs a bit for each."""
    explicit_scratch: bool
    """PTOAS wants the scratch of sequences and of narrowing conversions named where addresses are."""


@dataclass(frozen=True, eq=False)
class Target:
    """An Ascend chip family. Instances are singletons and compare by identity.

    ``pto_arch`` is the value of PTOAS's ``--pto-arch``, ``module_arch`` the one of the module attribute
    ``pto.target_arch``. ``moves`` maps a memory to those one instruction can copy it to, ``casts`` an
    element type to those one ``pto.tcvt`` converts it to, ``bias_moves`` the (Mat, Bias) pairs of types a
    move may have; ``packed_dtypes`` are the 4-bit types kernels take and give. Sizes in bytes.
    """

    name: str
    type_name: str
    aliases: tuple[str, ...]
    pto_arch: str
    module_arch: str
    core_count_method: str
    dies: int
    groups_per_die: int
    cubes_per_group: int
    vectors_per_group: int
    memories: Mapping[MemorySpace, Memory]
    moves: Mapping[MemorySpace, tuple[MemorySpace, ...]]
    casts: Mapping[DataType, tuple[DataType, ...]]
    bias_moves: frozenset[tuple[DataType, DataType]]
    packed_dtypes: frozenset[DataType]
    acc_store_dtypes: frozenset[DataType]
    quantized_drains: Mapping[DataType, tuple[DataType, ...]]
    """What an accumulator of each dtype becomes with a quantization of its own for each column."""
    atomic_add_dtypes: frozenset[DataType]
    acc_row_alignment: Mapping[DataType, int]
    gm_granularity: int
    l2_line: int
    costs: L0Costs
    quirks: Quirks
    fractal_rows: int = 16
    fractal_row_bytes: int = 32
    vector_address_alignment: int = 32

    def __repr__(self) -> str:
        return f"Target({self.name})"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        from .targets import get_target

        return get_target, (self.name,)

    @property
    def platform(self) -> str:
        """Platform of a device of this target."""
        return self.module_arch

    @property
    def sim_platform(self) -> str:
        """Platform of the simulator of this target."""
        return f"{self.module_arch}sim"

    def capacity(self, space: MemorySpace) -> int:
        """Bytes a kernel may allocate in ``space`` of one core; 0 when the core has no such memory."""
        memory = self.memories.get(space)
        return 0 if memory is None else memory.usable

    def core_count(self, core: CoreType) -> int:
        """Cores of that type on the whole chip."""
        per_group = self.cubes_per_group if core is CoreType.CUBE else self.vectors_per_group
        return self.dies * self.groups_per_die * per_group

    def can_move(self, source: MemorySpace, destination: MemorySpace) -> bool:
        return destination in self.moves.get(source, ())

    def can_cast(self, source: DataType, destination: DataType) -> bool:
        """Whether one instruction converts ``source`` to ``destination``."""
        return destination in self.casts.get(source, ())

    def mem_path(self, source: MemorySpace, destination: MemorySpace) -> list[MemorySpace]:
        """Shortest chain of moves, both ends included; empty when there is none."""
        paths = [[source]]
        seen = {source}
        for path in paths:
            if path[-1] is destination:
                return path
            for space in self.moves.get(path[-1], ()):
                if space not in seen:
                    seen.add(space)
                    paths.append([*path, space])
        return []

    def cube_c0(self, dtype: DataType) -> int:
        """Elements in one 32-byte row of a cube fractal."""
        return self.fractal_row_bytes * 8 // dtype.bits

    def acc_rows(self, dtype: DataType) -> int:
        """Multiple to which the rows of an accumulator of ``dtype`` are padded."""
        return self.acc_row_alignment.get(dtype, self.fractal_rows)
