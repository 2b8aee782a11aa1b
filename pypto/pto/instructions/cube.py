"""The cube: matrix products accumulated in f32, or in i32 for 8-bit integers.

Rows, depth and columns are the valid rows and columns of the left tile and the valid columns of
the right one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..checks import loc
from ..errors import PtoError
from ..runtime import Array, TileValue
from ..shapes import Tile
from ..spec import Run, Site, declare

_TYPES: dict[str, frozenset[tuple[str, str, str]]] = {
    "a2a3": frozenset({("i8", "i8", "i32"), ("f16", "f16", "f32"), ("f32", "f32", "f32"), ("bf16", "bf16", "f32")}),
}
_FP8 = ("f8E4M3FN", "f8E5M2")
_HIF8 = "!pto.hif8"
_TYPES["a5"] = _TYPES["a2a3"] | {(a, b, "f32") for a in _FP8 for b in _FP8} | {(_HIF8, _HIF8, "f32")}


def _operands(left: str, right: str) -> Callable[[Site], None]:
    def check(site: Site) -> None:
        a, b, c = site.tile(left), site.tile(right), site.tile("dst")
        name = site.spec.mnemonic
        if (a.dtype, b.dtype, c.dtype) not in _TYPES[site.arch]:
            options = "; ".join(f"{x} x {y} to {z}" for x, y, z in sorted(_TYPES[site.arch]))
            raise PtoError(f"'pto.{name}': no product of {a.dtype} x {b.dtype} to {c.dtype} (there are: {options})")
        # The accumulator of a single row is one box of 16.
        rows = c.rows if name.startswith("tgemv") and a.rows == 1 and c.rows == 16 else a.rows
        if rows != c.rows or a.cols != b.rows or b.cols != c.cols:
            raise PtoError(f"'pto.{name}': {_shape(a)} times {_shape(b)} does not give {_shape(c)}")
        for what, x, y in (("depth", a.v_col, b.v_row), ("rows", a.v_row, c.v_row), ("columns", b.v_col, c.v_col)):
            if x is not None and y is not None and x != y:
                raise PtoError(f"'pto.{name}': valid {what} differ: {x} and {y}")

    return check


def _shape(tile: Tile) -> str:
    return f"{tile.rows}x{tile.cols}"


_BLOCK = 64
"""Extent of a block whose product BLAS computes on one thread: above 64**3 it wakes its pool, which costs a
hundred times the product when other processes want the cores."""


LIMIT = 4095
"""The most rows, depth or columns of one product."""


def blocked(left: Array, right: Array) -> Array:
    """``left @ right``, block by block."""
    rows, depth = left.shape
    cols = right.shape[1]
    if rows * cols * depth <= _BLOCK**3:
        return left @ right
    out = np.empty((rows, cols), left.dtype)
    for i in range(0, rows, _BLOCK):
        for j in range(0, cols, _BLOCK):
            part = left[i : i + _BLOCK, :_BLOCK] @ right[:_BLOCK, j : j + _BLOCK]
            for k in range(_BLOCK, depth, _BLOCK):
                part += left[i : i + _BLOCK, k : k + _BLOCK] @ right[k : k + _BLOCK, j : j + _BLOCK]
            out[i : i + _BLOCK, j : j + _BLOCK] = part
    return out


def product(left: Array, right: Array, out: np.dtype) -> Array:
    """Matrix product in the accumulator's type; integer products are exact in f64 and then wrap."""
    if out == np.float32:
        return blocked(left.astype(np.float32), right.astype(np.float32))
    exact = blocked(left.astype(np.float64), right.astype(np.float64))
    return exact.astype(np.int64).astype(out)


def _limits(site: Site, left: TileValue, right: TileValue, dst: TileValue) -> None:
    rows, depth = left.valid
    if right.valid[0] != depth or dst.valid != (rows, right.valid[1]):
        raise PtoError(
            f"'pto.{site.spec.mnemonic}': valid elements {left.valid} times {right.valid} do not give {dst.valid}"
        )
    if not all(0 < extent <= LIMIT for extent in (rows, depth, right.valid[1])):
        raise PtoError(
            f"'pto.{site.spec.mnemonic}': rows, depth and columns must be 1..{LIMIT}, got "
            f"{rows}, {depth}, {right.valid[1]}"
        )


def _multiply(site: Site) -> Run:
    out = site.tile("dst").numpy

    def run(lhs: TileValue, rhs: TileValue, dst: TileValue) -> None:
        _limits(site, lhs, rhs, dst)
        left, lost = lhs.read_rows()
        dst.write(product(left, rhs.read(), out))
        dst.lose_rows(lost)

    return run


def _accumulate(site: Site) -> Run:
    out = site.tile("dst").numpy

    def run(acc: TileValue, lhs: TileValue, rhs: TileValue, dst: TileValue) -> None:
        _limits(site, lhs, rhs, dst)
        (before, gone), (left, lost) = acc.read_rows(), lhs.read_rows()
        dst.write(before + product(left, rhs.read(), out))
        for rows in (gone, lost):
            dst.lose_rows(rows)

    return run


def _with_bias(site: Site) -> Run:
    out = site.tile("dst").numpy

    def run(lhs: TileValue, rhs: TileValue, bias: TileValue, dst: TileValue) -> None:
        _limits(site, lhs, rhs, dst)
        if bias.valid != (1, dst.valid[1]):
            raise PtoError(f"'pto.{site.spec.mnemonic}': bias of {bias.valid} for {dst.valid[1]} columns")
        left, lost = lhs.read_rows()
        dst.write(bias.read() + product(left, rhs.read(), out))
        dst.lose_rows(lost)

    return run


def _cost(left: str) -> Callable[[Site, int, int], float]:
    def cost(site: Site, rows: int, cols: int) -> float:
        """One head a K block, then a pass for each fractal product (several for f32)."""
        tile, costs = site.tile(left), site.target.costs
        depth = tile.v_col if tile.v_col is not None else tile.cols
        passes = costs.mad_passes_f32 if tile.dtype == "f32" else 1
        return costs.mad_head_cycles + -(-rows // 16) * -(-cols // 16) * -(-depth * tile.item // 32) * passes

    return cost


def _acc_type(site: Site) -> None:
    acc, dst = site.tile("acc_in"), site.tile("dst")
    if (acc.dtype, acc.rows, acc.cols) != (dst.dtype, dst.rows, dst.cols):
        raise PtoError(f"'pto.{site.spec.mnemonic}': accumulates {acc} into {dst}")


def _one_row(site: Site) -> None:
    rows = site.tile("dst").v_row
    if rows not in (None, 1):
        raise PtoError(f"'pto.{site.spec.mnemonic}': a vector times a matrix has 1 valid row, got {rows}")


def _bias_type(site: Site) -> None:
    bias, dst = site.tile("bias"), site.tile("dst")
    if bias.dtype != dst.dtype or bias.rows != 1 or bias.cols != dst.cols:
        raise PtoError(f"'pto.{site.spec.mnemonic}': bias must be 1x{dst.cols}x{dst.dtype}, got {bias}")


_PHASE = "accPhase:acc_phase=unspecified"

for _name, _shape_rule in (("tmatmul", ()), ("tgemv", (_one_row,))):
    declare(
        _name,
        "lhs rhs -> dst",
        pipe="M",
        attrs=_PHASE,
        checks=(loc("lhs", "left"), loc("rhs", "right"), loc("dst", "acc"), _operands("lhs", "rhs"), *_shape_rule),
        bind=_multiply,
        cost=_cost("lhs"),
        doc="dst = lhs @ rhs.",
    )
    declare(
        f"{_name}.acc",
        "acc_in lhs rhs -> dst",
        pipe="M",
        attrs=_PHASE,
        checks=(
            loc("acc_in", "acc"),
            loc("lhs", "left"),
            loc("rhs", "right"),
            loc("dst", "acc"),
            _operands("lhs", "rhs"),
            _acc_type,
            *_shape_rule,
        ),
        bind=_accumulate,
        cost=_cost("lhs"),
        in_place="acc_in",
        doc="dst = acc_in + lhs @ rhs.",
    )
    declare(
        f"{_name}.bias",
        "a b bias -> dst",
        pipe="M",
        attrs=_PHASE,
        checks=(
            loc("a", "left"),
            loc("b", "right"),
            loc("bias", "bias"),
            loc("dst", "acc"),
            _operands("a", "b"),
            _bias_type,
            *_shape_rule,
        ),
        bind=_with_bias,
        cost=_cost("a"),
        doc="dst = a @ b + bias, the bias being one row.",
    )
