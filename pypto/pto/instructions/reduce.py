"""Reductions along rows or columns. Floats are accumulated in f32 and rounded once; integers wrap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..checks import column_result, constant_extents, dtypes, row_major, same_dtype, valid_axis, valid_extent, vec
from ..errors import PtoError
from ..numerics import is_floating
from ..runtime import Array, TileValue, vector_cost
from ..scratch import column_places, extents, like, on_a2a3, row_places
from ..spec import Check, Run, Site, declare

_USUAL = "i16 i32 f16 f32"


def _sum(data: Array, axis: int) -> Array:
    if is_floating(data.dtype):
        return data.sum(axis=axis, dtype=np.float32, keepdims=True).astype(data.dtype)
    return data.sum(axis=axis, dtype=data.dtype, keepdims=True)


def _product(data: Array, axis: int) -> Array:
    if is_floating(data.dtype):
        return data.prod(axis=axis, dtype=np.float32, keepdims=True).astype(data.dtype)
    return data.prod(axis=axis, dtype=data.dtype, keepdims=True)


def _max(data: Array, axis: int) -> Array:
    return data.max(axis=axis, keepdims=True)


def _min(data: Array, axis: int) -> Array:
    return data.min(axis=axis, keepdims=True)


def _argmax(data: Array, axis: int) -> Array:
    return np.argmax(data, axis=axis, keepdims=True)


def _argmin(data: Array, axis: int) -> Array:
    return np.argmin(data, axis=axis, keepdims=True)


def _reduce(function: Callable[[Array, int], Array], axis: int) -> Callable[[Site], Run]:
    """``axis`` 1 reduces each row to a column of results, 0 each column to a row of them."""

    def bind(site: Site) -> Run:
        mnemonic, out = site.spec.mnemonic, site.tile("dst").numpy

        def run(src: TileValue, dst: TileValue) -> None:
            rows, cols = src.valid
            want = (rows, 1) if axis == 1 else (1, cols)
            if dst.valid != want:
                raise PtoError(
                    f"'pto.{mnemonic}': {rows}x{cols} valid elements reduce to {want[0]}x{want[1]}, "
                    f"but 'dst' has {dst.valid[0]}x{dst.valid[1]}"
                )
            if 0 in want:
                return
            if not rows or not cols:
                raise PtoError(f"'pto.{mnemonic}': nothing to reduce in {rows}x{cols} valid elements")
            result = function(src.read(), axis)
            dst.write(result if result.dtype == out else result.astype(out))

        return run

    return bind


def _declare(
    name: str,
    function: Callable[[Array, int], Array],
    axis: int,
    checks: Sequence[Check],
    attrs: str = "",
    passes: float = 1,
    scratch: bool = True,
    constant: Callable[[Site], str] | None = None,
) -> None:
    declare(
        name,
        "src ~tmp? -> dst" if scratch else "src -> dst",
        pipe="V",
        attrs=attrs,
        checks=checks,
        bind=_reduce(function, axis),
        cost=_reduction_cost(passes),
        constant=constant,
    )


def _reduction_cost(passes: float) -> Callable[[Site, int, int], float]:
    cost = vector_cost(passes, of="src")

    def reduction(site: Site, rows: int, cols: int) -> float:
        """Every element of the source is read; extents the type leaves open count as whole."""
        src = site.tile("src")
        return cost(site, max(rows, src.v_row or src.rows), max(cols, src.v_col or src.cols))

    return reduction


def _row_checks(*types: Check) -> tuple[Check, ...]:
    return (vec("src", "tmp", "dst"), row_major("src"), column_result("dst"), valid_axis("src", "dst", 0), *types)


def _col_checks(*types: Check) -> tuple[Check, ...]:
    return (
        vec("src", "tmp", "dst"),
        row_major("src", "dst"),
        valid_extent("dst", 0, 1),
        valid_axis("src", "dst", 1),
        *types,
    )


def _tree_has_scratch(site: Site) -> None:
    if site.attrs["isBinary"] != site.has("tmp"):
        raise PtoError("'pto.tcolsum': tmp and isBinary = true go together")
    if site.has("tmp") and site.tile("tmp").cols < (site.tile("src").v_col or 0):
        raise PtoError("'pto.tcolsum': 'tmp' has fewer columns than 'src' has valid ones")
    if site.has("tmp"):
        like("src")(site)
        rows = -(-extents(site.tile("src"))[0] // 2)
        if site.tile("tmp").rows < rows:
            raise PtoError(f"'pto.tcolsum': 'tmp' needs {rows} rows, half those of 'src', got {site.tile('tmp').rows}")


_SAME = same_dtype("src", "dst")
_TMP = on_a2a3(same_dtype("src", "tmp"))
_INDEX = dtypes("dst", "i32 ui32")

_COLUMN_TYPES = dtypes("src", _USUAL, "i8 i16 i32 f16 bf16 f32")
_PRODUCT_TYPES = dtypes("src", _USUAL, "i16 i32 f16 bf16 f32")

for _name, _function in (("sum", _sum), ("max", _max), ("min", _min), ("prod", _product)):
    _declare(f"trow{_name}", _function, 1, _row_checks(_SAME, dtypes("src", _USUAL), _TMP), passes=2)
    _tree = (_tree_has_scratch, constant_extents) if _name == "sum" else ()
    _declare(
        f"tcol{_name}",
        _function,
        0,
        _col_checks(_SAME, _COLUMN_TYPES if _name != "prod" else _PRODUCT_TYPES, *_tree),
        attrs="isBinary:bool=false" if _name == "sum" else "",
        scratch=_name == "sum",
        constant=(lambda site: "src" if site.has("tmp") else "") if _name == "sum" else None,
    )

for _name, _function in (("argmax", _argmax), ("argmin", _argmin)):
    _rules = _row_checks(_INDEX, dtypes("src", _USUAL), _TMP, on_a2a3(row_places))
    _declare(f"trow{_name}", _function, 1, _rules, passes=3)
    _types = dtypes("src", "f16 f32", "i8 i16 i32 f16 f32")
    _declare(f"tcol{_name}", _function, 0, _col_checks(_INDEX, _types, on_a2a3(like("src"), column_places)), passes=2)


def _partial(name: str, function: Callable[[Array, Array], Array]) -> None:
    """Combine two tiles of different extents: where only one has an element, that one is the result."""

    def bind(site: Site) -> Run:
        def run(src0: TileValue, src1: TileValue, dst: TileValue) -> None:
            rows, cols = dst.valid
            for label, tile in (("src0", src0), ("src1", src1)):
                if tile.valid[0] > rows or tile.valid[1] > cols:
                    raise PtoError(f"'pto.{name}': '{label}' has {tile.valid} valid elements, 'dst' only {dst.valid}")
            whole = src0 if src0.valid == dst.valid else src1
            part = src1 if whole is src0 else src0
            if whole.valid != dst.valid:
                raise PtoError(f"'pto.{name}': one source must have the {rows}x{cols} valid elements of 'dst'")
            result = np.array(whole.read())
            region = result[: part.valid[0], : part.valid[1]]
            region[...] = function(region, part.read())
            dst.write(result)

        return run

    declare(
        name,
        "src0 src1 -> dst",
        pipe="V",
        checks=(
            vec("src0", "src1", "dst"),
            same_dtype("dst", "src0", "src1"),
            dtypes("dst", _USUAL, "i8 i16 i32 f16 bf16 f32"),
            row_major("src0", "src1", "dst"),
        ),
        bind=bind,
        cost=vector_cost(),
        in_place=True,
    )


_PARTIAL: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
for _name, _function in _PARTIAL.items():
    _partial(f"tpart{_name}", _function)
