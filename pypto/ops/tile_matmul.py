"""Cube operators on tiles: products of Left and Right tiles into an accumulator in Acc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtypes import DataType
from ..ir.enums import CompactMode, MemorySpace, PadValue
from ..ir.expr import Expr, index_const
from ..ir.types import TileType, Type, implicit_layout
from .registry import Bound, Core, Pto, declare
from .rules import dim_text, dims_text, exceeds, same, shaped, tile_type, valid_of, value

_M = MemorySpace
_D = DataType
_CUBE: dict[str, Any] = {"core": Core.CUBE, "result_space": _M.Acc}
_OPERANDS = {"lhs": (_M.Left,), "rhs": (_M.Right,)}
_ACC = {"acc": (_M.Acc,), **_OPERANDS}
_BIAS = {**_OPERANDS, "bias": (_M.Bias,)}


def accumulator_dtype(dtype: DataType) -> DataType:
    """The dtype a product of ``dtype`` operands accumulates in: INT32 for integers, FP32 for floating point."""
    return _D.INT32 if dtype.is_int() else _D.FP32


def check_operands(b: Bound) -> DataType:
    """The accumulator dtype of ``lhs`` and ``rhs``. Raises OpError unless they have one dtype."""
    left, right = b.type("lhs"), b.type("rhs")
    if left.dtype is not right.dtype:
        raise b.fail(
            f"requires identical lhs and rhs data types, got {shaped(left)} and {shaped(right)}",
            f"cast one: pl.cast(rhs, pl.{left.dtype.name})",
        )
    return accumulator_dtype(left.dtype)


def check_rank2(b: Bound, *names: str) -> None:
    for name in names:
        if len(b.type(name).shape) != 2:
            raise b.fail(f"requires 2D tiles, got {shaped(b.type(name))} for {name!r}", "pl.batch_matmul takes more")


def check_inner(b: Bound) -> None:
    """Raise OpError unless the contracted dimensions fit: physically equal, the rhs valid where the lhs is."""
    left, right = b.type("lhs"), b.type("rhs")
    if not same(left.shape[-1], right.shape[-2]):
        raise b.fail(
            f"requires matching physical inner dimensions (physical K), got {dims_text(left.shape)} @ "
            f"{dims_text(right.shape)}"
        )
    if exceeds(valid_of(b, "lhs")[-1], valid_of(b, "rhs")[-2]):
        raise b.fail(
            f"requires rhs valid K to cover lhs valid K={dim_text(valid_of(b, 'lhs')[-1])}, got "
            f"{dim_text(valid_of(b, 'rhs')[-2])}",
            "narrow lhs: pl.set_validshape(lhs, rows, k)",
        )


def acc_tile(shape: Sequence[Expr], dtype: DataType, valid: Sequence[Expr]) -> TileType:
    """An accumulator tile. The cube packs rows to the valid ones, so a tile with fewer is compact."""
    full_rows = same(valid[-2], shape[-2])
    compact = CompactMode.null if full_rows else CompactMode.normal
    return tile_type(shape, dtype, valid, _M.Acc, implicit_layout(shape, _M.Acc), PadValue.null, compact)


def _product(b: Bound) -> Type:
    check_rank2(b, "lhs", "rhs")
    dtype = check_operands(b)
    check_inner(b)
    shape = [b.type("lhs").shape[0], b.type("rhs").shape[1]]
    return acc_tile(shape, dtype, [valid_of(b, "lhs")[0], valid_of(b, "rhs")[1]])


declare(
    "tile.matmul",
    "in lhs: tile, in rhs: tile",
    _product,
    "lhs @ rhs of a Left ``[M, K]`` and a Right ``[K, N]`` tile: FP32 for floating point, INT32 for integers.",
    spaces=_OPERANDS,
    pto=Pto("pto.tmatmul", ("lhs", "rhs")),
    **_CUBE,
)


def check_init_cond(b: Bound) -> None:
    cond = b["init_cond"]
    if cond is not None and cond.type.dtype is not _D.BOOL:
        raise b.fail(f"requires init_cond to have dtype BOOL, got {cond.type.dtype}", "write a comparison, k == 0")


def as_accumulator(t: TileType) -> TileType:
    """The type of an accumulator written in place: as it was, in Acc."""
    if t.memory_space is _M.Acc:
        return t if t.memref is None else t.replace(memref=None)
    view = t.tile_view
    compact = view.compact if view is not None else CompactMode.null
    return tile_type(t.shape, t.dtype, t.valid_shape, _M.Acc, implicit_layout(t.shape, _M.Acc), PadValue.null, compact)


def check_accumulator_dtype(b: Bound, dtype: DataType) -> None:
    acc = b.type("acc")
    if acc.dtype is not dtype:
        raise b.fail(f"requires accumulator dtype {dtype} for {b.type('lhs').dtype} operands, got {shaped(acc)}")


def _accumulate(b: Bound) -> Type:
    acc, left, right = b.type("acc"), b.type("lhs"), b.type("rhs")
    check_rank2(b, "acc", "lhs", "rhs")
    dtype = check_operands(b)
    check_inner(b)
    for axis, (name, size) in enumerate((("M", left.shape[0]), ("N", right.shape[1]))):
        if not same(acc.shape[axis], size):
            raise b.fail(
                f"requires acc's physical {name} to match: {dims_text(acc.shape)} += {dims_text(left.shape)} @ "
                f"{dims_text(right.shape)}"
            )
    for axis, (name, extent) in enumerate((("M", valid_of(b, "lhs")[0]), ("N", valid_of(b, "rhs")[1]))):
        have = valid_of(b, "acc")[axis]
        if exceeds(extent, have):
            raise b.fail(f"requires acc valid {name} to cover the product's {dim_text(extent)}, got {dim_text(have)}")
    check_accumulator_dtype(b, dtype)
    check_init_cond(b)
    return as_accumulator(acc)


declare(
    "tile.matmul_acc",
    "inout acc: tile, in lhs: tile, in rhs: tile, in init_cond: scalar?",
    _accumulate,
    "acc += lhs @ rhs in place. Where ``init_cond`` (a BOOL scalar) holds, acc is overwritten instead.",
    spaces=_ACC,
    reuses="acc",
    pto=Pto("pto.tmatmul.acc", ("acc", "lhs", "rhs"), out="acc", form="matmul_acc"),
    **_CUBE,
)


def check_bias(b: Bound, dtype: DataType, columns: Expr, valid_columns: Expr) -> None:
    """Raise OpError unless ``bias`` is a ``[1, N]`` row of the accumulator's dtype that covers the product."""
    bias = b.type("bias")
    if bias.dtype is not dtype:
        raise b.fail(f"requires bias dtype {dtype}, got {shaped(bias)}", f"pl.cast(bias, pl.{dtype.name})")
    if len(bias.shape) != 2 or value(bias.shape[0]) not in (1, None) or not same(bias.shape[1], columns):
        raise b.fail(f"requires bias of shape [1, {dim_text(columns)}], got {shaped(bias)}")
    rows, have = valid_of(b, "bias")
    if value(rows) == 0:
        raise b.fail(f"requires bias valid rows to cover one broadcast row, got {dims_text(valid_of(b, 'bias'))}")
    if exceeds(valid_columns, have):
        raise b.fail(
            f"requires bias valid N to cover output valid N={dim_text(valid_columns)}, got {dim_text(have)}"
        )


def _biased(b: Bound) -> Type:
    made: Any = _product(b)
    check_bias(b, made.dtype, made.shape[1], made.valid_shape[1])
    return made


declare(
    "tile.matmul_bias",
    "in lhs: tile, in rhs: tile, in bias: tile",
    _biased,
    "lhs @ rhs + bias, where ``bias`` is a ``[1, N]`` row of the accumulator's dtype in Bias.",
    spaces=_BIAS,
    pto=Pto("pto.tmatmul.bias", ("lhs", "rhs", "bias")),
    **_CUBE,
)

# A vector times a matrix.

_GEMV = (_D.INT8, _D.FP16, _D.BF16, _D.FP32)
_PHASE = ", attr acc_phase: str = 'unspecified'"
_PHASES = ("unspecified", "partial", "final")


def _vector_product(b: Bound) -> Type:
    check_rank2(b, "lhs", "rhs")
    left, right = b.type("lhs"), b.type("rhs")
    dtype = check_operands(b)
    if left.dtype not in _GEMV:
        raise b.fail(f"supports only INT8, FP16, BF16 and FP32 operands, got {left.dtype}")
    if b["acc_phase"] not in _PHASES:
        raise b.fail(f"requires acc_phase to be one of {', '.join(_PHASES)}, got {b['acc_phase']!r}")
    if value(left.shape[0]) != 1:
        raise b.fail(f"requires lhs's physical row extent to be exactly 1, got {shaped(left)}")
    if value(valid_of(b, "lhs")[0]) != 1:
        raise b.fail(f"requires lhs's logical row extent to be exactly 1, got {shaped(left)}")
    check_inner(b)
    shape = [index_const(16), right.shape[1]]
    valid = [index_const(1), valid_of(b, "rhs")[1]]
    return tile_type(shape, dtype, valid, _M.Acc, implicit_layout(shape, _M.Acc))


def _vector_accumulate(b: Bound) -> Type:
    product: Any = _vector_product(b)
    acc = b.type("acc")
    check_accumulator_dtype(b, product.dtype)
    if not all(same(x, y) for x, y in zip(acc.shape[1:], product.shape[1:])):
        raise b.fail(f"requires acc of shape {dims_text(product.shape)}, got {shaped(acc)}")
    if not all(same(x, y) for x, y in zip(valid_of(b, "acc"), product.valid_shape)):
        raise b.fail(f"requires the accumulator valid_shape {dims_text(product.valid_shape)}, got {shaped(acc)}")
    return as_accumulator(acc)


def _vector_biased(b: Bound) -> Type:
    made: Any = _vector_product(b)
    check_bias(b, made.dtype, made.shape[1], made.valid_shape[1])
    return made


declare(
    "tile.gemv",
    "in lhs: tile, in rhs: tile" + _PHASE,
    _vector_product,
    "lhs @ rhs of a one-row Left ``[1, K]`` and a Right ``[K, N]`` tile: one valid row of a 16-row accumulator.\n\n"
    "``acc_phase`` is partial while more of K follows, final for the last part.",
    spaces=_OPERANDS,
    pto=Pto("pto.tgemv", ("lhs", "rhs"), attrs={"accPhase": "acc_phase"}),
    **_CUBE,
)
declare(
    "tile.gemv_acc",
    "inout acc: tile, in lhs: tile, in rhs: tile" + _PHASE,
    _vector_accumulate,
    "acc += lhs @ rhs in place, operands as `gemv`.",
    spaces=_ACC,
    reuses="acc",
    pto=Pto("pto.tgemv.acc", ("acc", "lhs", "rhs"), out="acc", attrs={"accPhase": "acc_phase"}),
    **_CUBE,
)
declare(
    "tile.gemv_bias",
    "in lhs: tile, in rhs: tile, in bias: tile" + _PHASE,
    _vector_biased,
    "lhs @ rhs + bias, operands as `gemv` and `matmul_bias`.",
    spaces=_BIAS,
    pto=Pto("pto.tgemv.bias", ("lhs", "rhs", "bias"), attrs={"accPhase": "acc_phase"}),
    **_CUBE,
)

# Batches.


def batch_dims(b: Bound, left: Sequence[Expr], right: Sequence[Expr]) -> list[Expr]:
    """The batch dimensions two batches broadcast to. Raises OpError when they do not."""
    rank = max(len(left), len(right))
    one = index_const(1)
    result = []
    for x, y in zip([one] * (rank - len(left)) + list(left), [one] * (rank - len(right)) + list(right)):
        if not (same(x, y) or value(x) == 1 or value(y) == 1):
            raise b.fail(f"cannot broadcast batch dimensions {dims_text(left)} with {dims_text(right)}")
        result.append(y if value(x) == 1 else x)
    return result


def _check_batch(b: Bound) -> tuple[list[Expr], DataType]:
    left, right = b.type("lhs"), b.type("rhs")
    for t in (left, right):
        if len(t.shape) < 2:
            raise b.fail(f"requires tiles of at least 2 dimensions, got {shaped(t)}")
    dtype = check_operands(b)
    if not same(left.shape[-1], right.shape[-2]):
        raise b.fail(f"requires matching inner dimensions, got {dims_text(left.shape)} @ {dims_text(right.shape)}")
    check_inner(b)
    return [*batch_dims(b, left.shape[:-2], right.shape[:-2]), left.shape[-2], right.shape[-1]], dtype


def _batch(b: Bound) -> Type:
    shape, dtype = _check_batch(b)
    batch = batch_dims(b, valid_of(b, "lhs")[:-2], valid_of(b, "rhs")[:-2])
    valid = [*batch, valid_of(b, "lhs")[-2], valid_of(b, "rhs")[-1]]
    return acc_tile(shape, dtype, valid)


def _batch_accumulate(b: Bound) -> Type:
    shape, dtype = _check_batch(b)
    acc = b.type("acc")
    if len(acc.shape) != len(shape) or not all(same(x, y) for x, y in zip(acc.shape[:-2], shape[:-2])):
        raise b.fail(f"requires each acc batch dim to match the product's {dims_text(shape)}, got {shaped(acc)}")
    if not all(same(x, y) for x, y in zip(acc.shape[-2:], shape[-2:])):
        raise b.fail(f"requires acc of shape {dims_text(shape)}, got {shaped(acc)}")
    check_accumulator_dtype(b, dtype)
    check_init_cond(b)
    return as_accumulator(acc)


declare(
    "tile.batch_matmul",
    "in lhs: tile, in rhs: tile",
    _batch,
    "lhs @ rhs over broadcast leading batch dimensions. `FlattenTileNdTo2D` writes one `matmul` a batch.",
    spaces=_OPERANDS,
    pto=Pto(form="composite"),
    **_CUBE,
)
declare(
    "tile.batch_matmul_acc",
    "inout acc: tile, in lhs: tile, in rhs: tile, in init_cond: scalar?",
    _batch_accumulate,
    "acc += lhs @ rhs over broadcast leading batch dimensions, which acc must have. Where ``init_cond`` (a BOOL "
    "scalar) holds, acc is overwritten instead.",
    spaces=_ACC,
    reuses="acc",
    pto=Pto(form="composite"),
    **_CUBE,
)

