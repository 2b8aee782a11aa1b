"""Cube operators on block-scaled (MX) operands of Ascend950: FP8 data with one FP8E8M0 scale for each 32 along K."""

from __future__ import annotations

from typing import Any

from ..dtypes import DataType
from ..ir.enums import MemorySpace
from ..ir.expr import Expr, index_const
from ..ir.types import TileType, Type, implicit_layout
from .registry import Bound, Core, Pto, declare
from .rules import dim_text, same, shaped, tile_type, valid_of, value
from .tile_matmul import acc_tile, as_accumulator

_M = MemorySpace
_D = DataType
_GROUP = 32
_SPACES = {
    "lhs": (_M.Left,),
    "lhs_scale": (_M.LeftScale,),
    "rhs": (_M.Right,),
    "rhs_scale": (_M.RightScale,),
}
_OPERANDS = "in lhs: tile, in lhs_scale: tile, in rhs: tile, in rhs_scale: tile"
_NAMES = ("lhs", "lhs_scale", "rhs", "rhs_scale")
_CUBE: dict[str, Any] = {"core": Core.CUBE, "result_space": _M.Acc}


def _groups(extent: Expr) -> int | None:
    """How many scales a constant extent of K has."""
    known = value(extent)
    return None if known is None else -(-known // _GROUP)


def _check_data(b: Bound, name: str) -> None:
    dtype = b.type(name).dtype
    if dtype is not _D.FP8E4M3FN:
        native = "; native FP4 products are not supported" if dtype is _D.FP4 else ""
        raise b.fail(
            f"requires {name} dtype FP8E4M3FN, got {dtype}{native}; convert it with pl.cast({name}, pl.FP8E4M3FN)"
        )


def _check_extent(b: Bound, what: str, extent: Expr, unit: int) -> None:
    known = value(extent)
    if known is not None and (known <= 0 or known % unit):
        raise b.fail(f"requires {what} divisible by {unit} for fp8e4m3fn and positive, got {known}")


def _check_scale(b: Bound, name: str, data: str, axis: int) -> None:
    """Raise OpError unless the scales have one element for each 32 of ``data`` along K, physically and validly."""
    scale, t = b.type(name), b.type(data)
    if scale.dtype is not _D.FP8E8M0:
        raise b.fail(f"requires {name} dtype FP8E8M0, got {shaped(scale)}")
    words = ("rows", "cols")
    wanted = _groups(t.shape[axis])
    have = value(scale.shape[axis])
    if wanted is not None and have is not None and have != wanted:
        raise b.fail(f"requires {name} physical {words[axis]}={wanted} for {shaped(t)}, got {shaped(scale)}")
    if not same(scale.shape[1 - axis], t.shape[1 - axis]):
        raise b.fail(f"requires {name} physical {words[1 - axis]} of {shaped(t)}, got {shaped(scale)}")
    wanted, have = _groups(valid_of(b, data)[axis]), value(valid_of(b, name)[axis])
    if wanted is not None and have is not None and have != wanted:
        raise b.fail(f"requires {name} valid {words[axis]}={wanted} for {shaped(t)}, got {shaped(scale)}")


def _product(b: Bound) -> TileType:
    """The product of `matmul_mx`, or of `gemv_mx`, whose left operand has one row."""
    vector = "gemv" in b.decl.name
    for name in _NAMES:
        if len(b.type(name).shape) != 2:
            raise b.fail(f"requires a 2D {name}, got {shaped(b.type(name))}")
        valid_of(b, name)
    _check_data(b, "lhs")
    _check_data(b, "rhs")
    (m, k), (rhs_k, n) = b.type("lhs").shape, b.type("rhs").shape
    if not vector:
        _check_extent(b, "physical M", m, 16)
    elif value(m) not in (1, 16) or value(valid_of(b, "lhs")[0]) != 1:
        raise b.fail(
            f"requires a one-row lhs, got {shaped(b.type('lhs'))}",
            "load it [16, K] with valid_shape=[1, K], and its scales [16, K // 32] with valid_shape=[1, K // 32]",
        )
    _check_extent(b, "lhs K", k, 64)
    _check_extent(b, "rhs K", rhs_k, 64)
    _check_extent(b, "physical N", n, 32)
    both = value(k) is not None and value(rhs_k) is not None
    if both and not same(k, rhs_k):
        raise b.fail(f"requires matching physical K, got {dim_text(k)} and {dim_text(rhs_k)}")
    _check_valid_k(b, k)
    _check_scale(b, "lhs_scale", "lhs", 1)
    _check_scale(b, "rhs_scale", "rhs", 0)
    valid = [valid_of(b, "lhs")[0], valid_of(b, "rhs")[1]]
    if vector:
        shape = [index_const(16), n]
        return tile_type(shape, _D.FP32, valid, _M.Acc, implicit_layout(shape, _M.Acc))
    return acc_tile([m, n], _D.FP32, valid)


def _check_valid_k(b: Bound, k: Expr) -> None:
    left, right = valid_of(b, "lhs")[1], valid_of(b, "rhs")[0]
    for extent in (left, right):
        if value(extent) == 0:
            raise b.fail("requires a positive valid K, got 0")
    if value(left) is not None and value(right) is not None and not same(left, right):
        raise b.fail(f"requires matching valid K, got {dim_text(left)} and {dim_text(right)}")
    valid, physical = _groups(left), _groups(k)
    if valid is not None and physical is not None and valid != physical:
        raise b.fail(f"requires the scale-group count of valid K={dim_text(left)} to be that of K={dim_text(k)}, "
                     f"{valid} is not {physical}")  # fmt: skip


for _kind in ("matmul", "gemv"):
    declare(
        f"tile.{_kind}_mx",
        _OPERANDS,
        _product,
        "(lhs * lhs_scale) @ (rhs * rhs_scale) in FP32, one FP8E8M0 scale for each 32 of K. "
        + ("M is a multiple of 16, " if _kind == "matmul" else "lhs has one valid row, of one or of sixteen; ")
        + "K is a multiple of 64, N of 32.",
        spaces=_SPACES,
        pto=Pto(f"pto.t{_kind}.mx", _NAMES),
        **_CUBE,
    )


def _check_region(b: Bound, name: str, product: TileType, axes: tuple[int, ...]) -> None:
    """Raise OpError unless ``name`` is valid exactly where the product is."""
    for axis in axes:
        have, want = valid_of(b, name)[axis], product.valid_shape[axis]
        if not same(have, want):
            raise b.fail(f"requires {name} valid {('rows', 'cols')[axis]}={dim_text(want)}, got {dim_text(have)}")


def _accumulate(b: Bound) -> Type:
    product, acc = _product(b), b.type("acc")
    valid_of(b, "acc")
    if acc.dtype is not _D.FP32 or not all(same(x, y) for x, y in zip(acc.shape, product.shape)):
        raise b.fail(f"requires acc {shaped(product)}, got {shaped(acc)}")
    _check_region(b, "acc", product, (0, 1))
    return as_accumulator(acc)


for _kind in ("matmul", "gemv"):
    declare(
        f"tile.{_kind}_mx_acc",
        "inout acc: tile, " + _OPERANDS,
        _accumulate,
        f"acc += the product of `{_kind}_mx`, in place.",
        spaces={"acc": (_M.Acc,), **_SPACES},
        reuses="acc",
        pto=Pto(f"pto.t{_kind}.mx.acc", ("acc", *_NAMES), out="acc"),
        **_CUBE,
    )


def _biased(b: Bound) -> Type:
    product, bias = _product(b), b.type("bias")
    valid_of(b, "bias")
    if bias.dtype is not _D.FP32 or value(bias.shape[0]) != 1 or not same(bias.shape[1], product.shape[1]):
        raise b.fail(f"requires bias [1, {dim_text(product.shape[1])}] fp32, got {shaped(bias)}")
    _check_region(b, "bias", product, (1,))
    return product


for _kind in ("matmul", "gemv"):
    declare(
        f"tile.{_kind}_mx_bias",
        _OPERANDS + ", in bias: tile",
        _biased,
        f"The product of `{_kind}_mx` plus a ``[1, N]`` FP32 row in Bias.",
        spaces={**_SPACES, "bias": (_M.Bias,)},
        pto=Pto(f"pto.t{_kind}.mx.bias", (*_NAMES, "bias")),
        **_CUBE,
    )


def _scale_address(b: Bound) -> Type:
    scale, data = b.type("dst_scale"), b.type("src")
    if scale.memory_space is None or data.memory_space is None:
        raise b.fail("requires resolved dst_scale and src memory spaces")
    if (scale.memory_space, data.memory_space) not in ((_M.LeftScale, _M.Left), (_M.RightScale, _M.Right)):
        raise b.fail(
            f"binds LeftScale↔Left or RightScale↔Right, not {scale.memory_space.name} and {data.memory_space.name}"
        )
    valid_of(b, "dst_scale")
    valid_of(b, "src")
    _check_data(b, "src")
    _check_scale(b, "dst_scale", "src", 1 if data.memory_space is _M.Left else 0)
    return scale


declare(
    "tile.tget_scale_addr",
    "in dst_scale: tile, in src: tile",
    _scale_address,
    "Bind a scale tile to the address the hardware reads for ``src``. `InsertMxScaleAddr` writes these.",
    core=Core.CUBE,
    result_space="dst_scale",
    inherits="dst_scale",
    pure=False,
    pto=Pto("pto.tget_scale_addr", ("src",), out="dst_scale"),
)
