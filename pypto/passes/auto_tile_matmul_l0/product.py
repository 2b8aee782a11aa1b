"""What is known of a matrix product before it is tiled, and the tile it gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm

from ...backend.formats import round_up
from ...backend.target import Target, TileFormat
from ...dtypes import DataType
from ...errors import CapacityError
from ...ir.enums import MemorySpace, TileLayout
from ...ir.expr import Call, Expr, Var, tile_type_of
from ...ir.naming import written_name
from ...ir.stmt import AssignStmt, Stmt
from ...ir.types import TileType, same_dims, static_dims
from ...ops.registry import python_name, rebind
from ..context import MemoryPlanner, PassContext
from ..memory_model import box_of, tile_bytes
from .chooser import L0TileConfig, L0TileResult, choose_l0_tile

MATMULS = ("tile.matmul", "tile.matmul_acc", "tile.matmul_bias")
_L0 = {"lhs": (MemorySpace.Left, "left", "L0A"), "rhs": (MemorySpace.Right, "right", "L0B")}


@dataclass(frozen=True, slots=True)
class Product:
    """``var = lhs @ rhs``, plus ``acc`` or ``bias``: all of M, N and K, tiles in Mat or, for ``lhs``, Vec."""

    stmt: AssignStmt
    call: Call
    lhs: Var
    rhs: Var
    acc: Var | None
    bias: Var | None
    init_cond: Expr | None
    m: int
    n: int
    k: int

    @property
    def var(self) -> Var:
        return self.stmt.var

    @property
    def name(self) -> str:
        return self.var.name_hint

    @property
    def valid(self) -> Sequence[Expr]:
        """The valid rows and columns of the result."""
        return tile_type_of(self.lhs).valid_shape[0], tile_type_of(self.rhs).valid_shape[1]

    @property
    def is_full(self) -> bool:
        """Whether all of the result is valid."""
        return same_dims(self.valid, (tile_type_of(self.lhs).shape[0], tile_type_of(self.rhs).shape[1]))


def matmul_of(stmt: Stmt) -> Call | None:
    """The matrix product a statement computes, if it does."""
    if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call) and stmt.value.op.name in MATMULS:
        return stmt.value
    return None


def product_of(stmt: AssignStmt, call: Call) -> Product | None:
    """The product of operands that can be tiled: whole tiles of constant extents outside L0, all of K valid."""
    bound = rebind(call)
    lhs, rhs, acc, bias = (bound.values.get(n) for n in ("lhs", "rhs", "acc", "bias"))
    if not isinstance(lhs, Var) or not isinstance(rhs, Var):
        return None
    if any(v is not None and not isinstance(v, Var) for v in (acc, bias)):
        return None
    left, right = tile_type_of(lhs), tile_type_of(rhs)
    shapes = static_dims(left.shape), static_dims(right.shape)
    if shapes[0] is None or shapes[1] is None or right.memory_space is not MemorySpace.Mat:
        return None
    staged = (MemorySpace.Vec,) if bias is None else ()
    if left.memory_space not in (MemorySpace.Mat, *staged) or not same_dims(left.valid_shape[1:], left.shape[1:]):
        return None
    (m, k), n = shapes[0], shapes[1][1]
    return Product(stmt, call, lhs, rhs, acc, bias, bound.values.get("init_cond"), m, n, k)


def check_operands(call: Call, target: Target) -> None:
    """Raises CapacityError for an operand its author placed in Left or Right that is larger than that memory."""
    bound = rebind(call)
    for name, (space, side, memory) in _L0.items():
        operand = bound[name]
        type = operand.type
        if not isinstance(type, TileType) or type.memory_space is not space:
            continue
        size, room = tile_bytes(type, target), target.capacity(space)
        if size is not None and size > room:
            dims = list(static_dims(type.shape) or ())
            shown = f" '{written_name(operand.name_hint)}'" if isinstance(operand, Var) else ""
            raise CapacityError(
                f"{call.op.name} {side} operand{shown} does not fit {space.name} ({memory}): it has physical shape "
                f"{dims} of {type.dtype}, requiring {size} bytes, and {target.name} provides {room} bytes. "
                f"AutoTileMatmulL0 does not retile operands already placed in Left or Right",
                call.span,
                f"Keep this operand in Mat and pass it to pl.{python_name(call.op.name)} as it is, so that it is tiled "
                f"for you, or manually extract a smaller {space.name} tile",
            )


def _box(format: TileFormat, target: Target, dtype: DataType) -> tuple[int, int]:
    """Rows and columns of the boxes of a layout."""
    if format.slayout is TileLayout.none_box:
        return 1, 1
    lines, c0 = target.fractal_rows, target.cube_c0(dtype)
    return (lines, c0) if format.slayout is TileLayout.row_major else (c0, lines)


def mat_box(tile: Var, target: Target) -> tuple[int, int]:
    """Boxes of an operand as it is, or will be, in Mat."""
    type = tile_type_of(tile)
    if type.memory_space is MemorySpace.Mat:
        return box_of(type, target, padded=False)
    return _box(target.memories[MemorySpace.Mat].format, target, type.dtype)


def units(product: Product, target: Target) -> tuple[int, int, int]:
    """What the extents of a tile are multiples of, so that every window starts at a box, in Mat and in L0."""
    dtype = tile_type_of(product.lhs).dtype
    (left_m, left_k), (right_k, right_n) = mat_box(product.lhs, target), mat_box(product.rhs, target)
    (l0a_m, l0a_k), (l0b_k, l0b_n) = (
        _box(target.memories[s].format, target, dtype) for s in (MemorySpace.Left, MemorySpace.Right)
    )
    rows = target.fractal_rows
    return lcm(rows, left_m, l0a_m), lcm(rows, right_n, l0b_n), lcm(rows, left_k, right_k, l0a_k, l0b_k)


def configuration(product: Product, context: PassContext) -> L0TileConfig:
    """The chooser's question about a product. Extents are those of whole boxes."""
    target = context.target
    left, made = tile_type_of(product.lhs), tile_type_of(product.call)
    unit_m, unit_n, unit_k = units(product, target)
    costs = target.costs
    room = target.capacity(MemorySpace.Bias) // made.dtype.get_byte() if product.bias is not None else 0
    windows = product.bias is not None and tile_type_of(product.bias).memory_space is MemorySpace.Mat
    return L0TileConfig(
        M=round_up(product.m, unit_m),
        N=round_up(product.n, unit_n),
        K=product.k,
        l0a_bytes=target.capacity(MemorySpace.Left),
        l0b_bytes=target.capacity(MemorySpace.Right),
        l0c_bytes=target.capacity(MemorySpace.Acc),
        bytes_a=left.dtype.get_byte(),
        bytes_b=tile_type_of(product.rhs).dtype.get_byte(),
        bytes_c=made.dtype.get_byte(),
        min_m=unit_m,
        min_n=unit_n,
        min_k=unit_k,
        align_m=unit_m,
        align_n=unit_n,
        align_k=unit_k,
        l0c_align_m=target.acc_rows(made.dtype),
        max_n=room,
        max_n_pipelined=room // 2 if windows else 0,
        max_n_nested_pipelined=room // 4 if windows else 0,
        allow_a_stationary=True,
        allow_b_stationary=True,
        allow_double_buffer_c=doubles_accumulators(context),
        allow_k_boundary=True,
        c_read=product.acc is not None,
        bw_a=costs.l0a_bytes_per_cycle,
        bw_b=costs.l0b_bytes_per_cycle,
        bw_drain=costs.drain_bytes_per_cycle,
        drain_fixed_cycles=costs.drain_cycles,
        drain_row_cycles=costs.drain_row_cycles,
        drain_penalty_cycles=costs.drain_odd_fractal_cycles,
        drain_c0_bytes=target.fractal_row_bytes,
        mad_head=costs.mad_head_cycles,
        mad_k_fractal_bytes=target.fractal_row_bytes,
        mad_fp32_passes=costs.mad_passes_f32,
    )


def doubles_accumulators(context: PassContext) -> bool:
    """Whether the planner finds room for two accumulators in flight."""
    return context.memory_planner is not MemoryPlanner.PYPTO or context.enable_pypto_l0c_double_buffer


def chosen(config: L0TileConfig) -> L0TileResult | None:
    """The best tile; None where there is none."""
    try:
        return choose_l0_tile(config)
    except ValueError:
        return None


def whole_output(config: L0TileConfig) -> L0TileConfig:
    """The same question, but only for tiles that are all of the output."""
    closed = dict.fromkeys(("allow_a_stationary", "allow_b_stationary", "allow_double_buffer_c"), False)
    return replace(config, **closed, min_m=config.M, min_n=config.N)
