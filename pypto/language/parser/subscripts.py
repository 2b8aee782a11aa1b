"""``x[..]`` and ``x[..] = v`` on tensors, tiles and arrays."""

from __future__ import annotations

import ast
import warnings
from typing import Any

from ...errors import ParserTypeError, UnsupportedFeatureError
from ...ir import scalar as S
from ...ir.expr import ConstInt, Expr, Max, Min
from ...ir.types import ArrayType, ScalarType, ShapedType, TensorType, TileType
from .base import dim_text, type_text
from .statements import StatementsMixin

Index = int | Expr


class Axis:
    """One dimension of a subscript. ``shape`` is the static extent a tile keeps, ``extent`` what is valid of it."""

    __slots__ = ("offset", "shape", "extent", "dropped", "whole")

    def __init__(
        self, offset: Index, shape: Index, extent: Index | None = None, dropped: bool = False, whole: bool = False
    ) -> None:
        self.offset, self.shape, self.dropped, self.whole = offset, shape, dropped, whole
        self.extent = extent


class SubscriptsMixin(StatementsMixin):
    """Parses subscripts."""

    def read_subscript(self, owner: Expr, node: ast.Subscript) -> Any:
        """The element or window ``owner[..]``."""
        t = owner.type
        if isinstance(t, ArrayType):
            index = self._index(node.slice)
            self._check_bounds(index, t.shape[0], node.slice)
            return self.operator("array.get_element", [owner, index], node)
        if not isinstance(t, (TensorType, TileType)):
            self.fail(ParserTypeError, f"Subscript requires Tuple, Tensor, Tile, or Array, got {type_text(t)}", node)
        level = "tile" if isinstance(t, TileType) else "tensor"
        axes = self._axes(t, node, level)
        if all(a.dropped for a in axes):
            return self.operator(f"{level}.read", [owner, [a.offset for a in axes]], node)
        return self._slice(owner, t, axes, level, node)

    def _slice(self, owner: Expr, t: Any, axes: list[Axis], level: str, node: ast.Subscript) -> Expr:
        shape, offsets = [a.shape for a in axes], [a.offset for a in axes]
        drop = [i for i, a in enumerate(axes) if a.dropped]
        valid = self._valid(t, axes, node) if level == "tile" else None
        if level == "tile" and drop and len(axes) - len(drop) < 2:
            warnings.warn(
                f"{self.span(node)}: the result is below two dimensions; auto-promoting to 2D shape, as tiles are 2D",
                UserWarning,
                stacklevel=2,
            )
        args: list[Any] = [owner, shape, offsets]
        if valid is not None or drop:
            args.append(valid if valid is not None else [])
        if drop:
            args.append(drop)
        return self.operator(f"{level}.slice", args, node)

    def _valid(self, t: TileType, axes: list[Axis], node: ast.AST) -> list[Index] | None:
        """The valid part of a window of a tile; None when it is all of it."""
        source = list(t.valid_shape)
        partial = t.tile_view is not None and bool(t.tile_view.valid_shape)
        if not partial and all(a.extent is None for a in axes):
            return None
        made = []
        for axis, known, full in zip(axes, source, t.shape):
            narrowed = not (isinstance(known, ConstInt) and isinstance(full, ConstInt) and known.value == full.value)
            if axis.dropped:
                made.append(1)
            elif axis.whole or not narrowed:
                made.append(self._at_most(axis.extent, axis.shape, node) if not axis.whole else known)
            else:
                left = self._positive(self._minus(known, axis.offset, node), node)
                made.append(self._at_most(left, axis.shape if axis.extent is None else axis.extent, node))
        return made

    def _at_most(self, value: Index | None, limit: Index, node: ast.AST) -> Index:
        if value is None:
            return limit
        if isinstance(value, int) and isinstance(limit, int):
            return min(value, limit)
        return S.binary(Min, self.as_expr(value, node), self.as_expr(limit, node), self.span(node))

    def _positive(self, value: Index, node: ast.AST) -> Index:
        if isinstance(value, int):
            return max(value, 0)
        if not isinstance(value, (ConstInt,)) and getattr(value, "kind", "") == "sub":
            return S.binary(Max, value, self.as_expr(0, node), self.span(node))
        return value

    def _axes(self, t: ShapedType, node: ast.Subscript, level: str) -> list[Axis]:
        parts = _parts(node)
        rank = len(t.shape)
        if len(parts) > rank:
            self.fail(ParserTypeError, f"{len(parts)} indices but the {level} is {rank}D", node)
        axes = [self._axis(p, t.shape[i], level) for i, p in enumerate(parts)]
        for dim in t.shape[len(parts) :]:
            axes.append(Axis(0, self._plain(dim), whole=True))
        return axes

    def _axis(self, part: ast.expr, dim: Expr, level: str) -> Axis:
        if not isinstance(part, ast.Slice):
            index = self._index(part)
            self._check_bounds(index, dim, part)
            return Axis(index, 1, dropped=True)
        if part.step is not None:
            self.fail(
                UnsupportedFeatureError, "a slice cannot have a step", part.step, "slices are contiguous: write x[a:b]"
            )
        full = self._plain(dim)
        lower = 0 if part.lower is None else self._index(part.lower)
        if part.upper is None and lower == 0 and isinstance(lower, int):
            return Axis(0, full, whole=True)
        upper = full if part.upper is None else self._index(part.upper)
        if level == "tile":
            return self._tile_axis(part, lower, upper, full)
        extent = self._minus(upper, lower, part)
        if isinstance(extent, int) and extent <= 0:
            self.fail(
                ParserTypeError,
                f"the slice {ast.unparse(part)} is empty",
                part,
                "the upper bound must exceed the lower one",
            )
        if isinstance(upper, int) and isinstance(full, int) and upper > full:
            self.fail(ParserTypeError, f"the slice {ast.unparse(part)} runs past the dimension's extent {full}", part)
        return Axis(lower, extent)

    def _tile_axis(self, part: ast.Slice, lower: Index, upper: Index, full: Index) -> Axis:
        if not isinstance(lower, int):
            self.fail(
                UnsupportedFeatureError,
                "Dynamic lower bounds of tile slices are not supported",
                part,
                "write pl.tile.slice(t, shape, offsets) with a static shape",
            )
        if not isinstance(full, int):
            extent = self._minus(upper, lower, part)
            return Axis(lower, extent)
        if isinstance(upper, int):
            extent = min(upper, full) - lower
            if extent <= 0:
                self.fail(
                    UnsupportedFeatureError,
                    "a tile slice needs a positive static extent",
                    part,
                    f"the dimension has extent {full}",
                )
            return Axis(lower, extent)
        return Axis(lower, full - lower, self._minus(upper, lower, part))

    def _index(self, node: ast.expr) -> Index:
        if isinstance(node, ast.Constant) and node.value is None:
            self.fail(UnsupportedFeatureError, "None is not an index", node, "add dimensions with pl.reshape(..)")
        value = self.value(node)
        if isinstance(value, ConstInt):
            value = value.value
        if isinstance(value, bool) or not isinstance(value, (int, Expr)):
            self.fail(ParserTypeError, f"an index must be an integer, got {type(value).__name__}", node)
        if isinstance(value, int) and value < 0:
            hint = "count from the start: x.shape[i] - 1"
            self.fail(ParserTypeError, f"an index must be non-negative, got {value}", node, hint)
        if isinstance(value, Expr) and not (isinstance(value.type, ScalarType) and value.type.dtype.is_int()):
            self.fail(ParserTypeError, f"an index must be an integer scalar, got {type_text(value.type)}", node)
        return value

    def _check_bounds(self, index: Index, dim: Expr, node: ast.AST) -> None:
        extent = self._plain(dim)
        if isinstance(index, int) and isinstance(extent, int) and index >= extent:
            self.fail(ParserTypeError, f"index {index} is out of range: the dimension has extent {dim_text(dim)}", node)

    def _plain(self, dim: Expr) -> Index:
        return dim.value if isinstance(dim, ConstInt) else dim

    def _minus(self, upper: Index, lower: Index, node: ast.AST) -> Index:
        """``upper - lower``, simplified."""
        if isinstance(lower, int) and lower == 0:
            return upper
        if isinstance(upper, int) and isinstance(lower, int):
            return upper - lower
        from ...arith import Analyzer

        made = Analyzer().simplify(S.build_scalar("Sub", (upper, lower), self.span(node)))
        return made.value if isinstance(made, ConstInt) else made

    def operator(self, name: str, args: list[Any], node: ast.AST, **keywords: Any) -> Any:
        """The call of an operator by its full name."""
        from ...ops.functions import function_of

        return self._build(function_of(name), args, keywords, node, f"pl.{name.replace('.', ' operation ', 1)}")

    # -- writes

    def subscript_write(self, target: ast.Subscript, value: Any, node: ast.stmt) -> None:
        """``owner[..] = value`` rebinds ``owner`` to the tensor, tile or array with the part replaced."""
        owner_node = target.value
        if not isinstance(owner_node, ast.Name):
            self.fail(
                UnsupportedFeatureError,
                "only a named tensor, tile or array can be written",
                target,
                "bind the inner value to a name first",
            )
        owner = self.value(owner_node)
        if not isinstance(owner, Expr):
            self.fail(
                ParserTypeError,
                f"'{owner_node.id}' is a Python {type(owner).__name__}, which a kernel cannot change",
                target,
            )
        if self.strict_ssa:
            self.fail(
                UnsupportedFeatureError,
                "a subscript can be assigned only before SSA conversion: it rebinds the name",
                target,
                "write y = pl.assemble(x, value, offsets)",
            )
        made = self._written(owner, target, value, node)
        self.emit(self.bound(owner_node.id, made, owner_node, node))

    def _written(self, owner: Expr, target: ast.Subscript, value: Any, node: ast.stmt) -> Expr:
        t = owner.type
        source = getattr(node, "value", target)
        if isinstance(t, ArrayType):
            index = self._index(target.slice)
            self._check_bounds(index, t.shape[0], target.slice)
            item = self.retype_constant(self.as_expr(value, source), t.dtype)
            return self.operator("array.update_element", [owner, index, item], node)
        if not isinstance(t, (TensorType, TileType)):
            self.fail(ParserTypeError, f"Subscript requires Tensor, Tile, or Array, got {type_text(t)}", target)
        level = "tile" if isinstance(t, TileType) else "tensor"
        axes = self._axes(t, target, level)
        offsets = [a.offset for a in axes]
        item = self.as_expr(value, source)
        if isinstance(item.type, ScalarType):
            if not all(a.dropped for a in axes):
                self.fail(
                    ParserTypeError,
                    "a scalar cannot be assigned to a window",
                    node,
                    "fill a tensor or tile with pl.full(..) first",
                )
            name = ast.unparse(target.value)
            hint = f"write pl.write({name}, [{', '.join(ast.unparse(p) for p in _parts(target))}], value)"
            self.fail(UnsupportedFeatureError, "Element-write by subscript is not part of the language", target, hint)
        item = self._window_rank(item, axes, level, target)
        return self._assemble(level, owner, item, offsets, node)

    def _assemble(self, level: str, owner: Expr, item: Expr, offsets: list[Index], node: ast.stmt) -> Expr:
        if level == "tensor" and isinstance(item.type, TileType):
            return self.operator("tile.store", [item, offsets, owner], node)
        return self.operator(f"{level}.assemble", [owner, item, offsets], node)

    def _window_rank(self, item: Expr, axes: list[Axis], level: str, target: ast.Subscript) -> Expr:
        """The value in the full rank of the window, its extents checked."""
        t = item.type
        if not isinstance(t, ShapedType):
            self.fail(ParserTypeError, f"a {type_text(t)} cannot be assigned to a window", target)
        kept = [a for a in axes if not a.dropped]
        have = [self._plain(d) for d in t.shape]
        valid = [self._plain(d) for d in getattr(t, "valid_shape", t.shape)]
        lead = self._leading_ones(have, kept, level)
        if len(have) - lead != len(kept):
            self.fail(
                ParserTypeError,
                f"the value must be {len(kept)}D to match the window, got {len(have)}D {_text(have)}",
                target,
            )
        for i, axis in enumerate(kept):
            self._check_extent(i + lead, axis, have[i + lead], valid[i + lead], target)
        if len(have) == len(axes):
            return item
        return self._lifted(item, axes, have[lead:], valid[lead:], level, target)

    def _leading_ones(self, have: list[Index], kept: list[Axis], level: str) -> int:
        """Leading unit dimensions a tile has only because tiles are at least 2D."""
        lead = 0
        while level == "tile" and len(have) - lead > len(kept) and have[lead] == 1:
            lead += 1
        return lead

    def _check_extent(self, i: int, axis: Axis, have: Index, valid: Index, target: ast.Subscript) -> None:
        wanted = axis.shape if axis.extent is None else axis.extent
        if not isinstance(wanted, int) or not isinstance(have, int) or have == wanted:
            return
        if not isinstance(valid, int) or valid == wanted:
            return
        self.fail(
            ParserTypeError,
            f"shape mismatch on source axis {i}: the window has extent {wanted}, the value {have}"
            + (f" (valid {valid})" if valid != have else ""),
            target,
            "make the slice and the value the same size",
        )

    def _lifted(
        self, item: Expr, axes: list[Axis], have: list[Index], valid: list[Index], level: str, target: ast.Subscript
    ) -> Expr:
        """The value with a unit dimension for each index of the window."""
        extents, valids = iter(have), iter(valid)
        shape = [1 if a.dropped else next(extents) for a in axes]
        valid_shape = [1 if a.dropped else next(valids) for a in axes]
        narrowed = level == "tensor" and any(a is not b for a, b in zip(have, valid))
        args: list[Any] = [item, shape, valid_shape] if narrowed else [item, shape]
        return self.operator(f"{level}.reshape", args, target)


def _parts(node: ast.Subscript) -> list[ast.expr]:
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _text(shape: list[Index]) -> str:
    return f"[{', '.join(dim_text(d) if isinstance(d, Expr) else str(d) for d in shape)}]"
