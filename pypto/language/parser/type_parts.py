"""What may follow shape and dtype in an annotation: layouts, views, memories, allocations."""

from __future__ import annotations

import ast
from collections.abc import Callable
from difflib import get_close_matches
from enum import Enum
from typing import Any, Final, NoReturn

from ...dtypes import DataType
from ...ir.enums import CompactMode, MemorySpace, PadValue, TensorLayout, TileLayout
from ...ir.expr import Expr, Var, index_const
from ...ir.memref import MemRef
from ...ir.types import PtrType, ScalarType, TensorView, TileView, dim_list, implicit_view
from ..memref import MemRef as MemRefDecl, MemRefSlot
from .expr_evaluator import MISSING, ExprEvaluator

_VIEW_ENUMS: Final[dict[str, type[Enum]]] = {
    "layout": TensorLayout,
    "pad": PadValue,
    "blayout": TileLayout,
    "slayout": TileLayout,
    "compact": CompactMode,
}
_VIEW_KEYS: Final = {
    "TensorView": ("valid_shape", "stride", "layout", "pad"),
    "TileView": ("valid_shape", "stride", "start_offset", "blayout", "slayout", "fractal", "pad", "compact"),
}
_SPACES: Final = {m.name: m for m in MemorySpace}
_LAYOUTS: Final = {m.name: m for m in TensorLayout}


class StatedTileView:
    """The fields a ``pl.TileView(..)`` annotation states, or a whole view; the rest follow from shape and memory."""

    def __init__(self, fields: dict[str, Any] | None = None, view: TileView | None = None) -> None:
        self._fields, self._view = fields or {}, view

    def of(self, shape: list[Any], space: MemorySpace | None) -> TileView:
        if self._view is not None:
            return self._view
        implied = implicit_view(dim_list(shape), space)
        layout = {name: getattr(implied, name) for name in ("blayout", "slayout", "fractal")}
        return TileView(**{**layout, **self._fields})


class PartsMixin:
    """The part of the type resolver that reads views, memories and allocations."""

    evaluator: ExprEvaluator
    parse_expression: Callable[[ast.expr], Any] | None
    scope_lookup: Callable[[str], Any | None] | None
    fail: Callable[..., NoReturn]
    span: Callable[[ast.AST], Any]

    bases: dict[str, Var]
    """Allocation base variables by name: one name is one allocation."""
    declarations: dict[str, MemRefDecl]

    def resolve_part(self, kind: str, node: ast.expr, shape: list[Any]) -> Any:
        """A layout (as a view), view, memory space or MemRef."""
        if isinstance(node, ast.Call):
            called = last_name(node.func)
            if called in _VIEW_KEYS:
                return self._view(kind, called, node, shape)
            if called == "MemRef":
                return self.resolve_memref(node)
        if isinstance(node, ast.Subscript):
            return self._slot(node)
        name = last_name(node)
        owner = last_name(node.value) if isinstance(node, ast.Attribute) else ""
        if owner in ("Mem", "MemorySpace"):
            return self._member(MemorySpace, node)
        if name in _LAYOUTS:
            return self._layout(kind, _LAYOUTS[name], node)
        value = self.evaluator.lookup(node.id) if isinstance(node, ast.Name) else MISSING
        if value is MISSING:
            close = get_close_matches(name, [n for n in _LAYOUTS if n != "DN"], 1)
            self.fail(
                f"Unknown layout '{ast.unparse(node)}'",
                node,
                f"did you mean pl.{close[0]}?" if close else "use pl.ND, pl.NZ, a pl.TensorView(..) or a pl.MemRef(..)",
            )
        return self._part_value(kind, value, node)

    def _part_value(self, kind: str, value: Any, node: ast.expr) -> Any:
        if isinstance(value, TensorLayout):
            return self._layout(kind, value, node)
        if isinstance(value, TileView):
            return StatedTileView(view=value)
        if isinstance(value, (TensorView, MemorySpace, MemRef)):
            return value
        if isinstance(value, (MemRefDecl, MemRefSlot)):
            return self._declared(value, node)
        self.fail(
            f"'{ast.unparse(node)}' must be a TensorLayout, view, memory space or MemRef, got {type(value).__name__}",
            node,
        )

    def _layout(self, kind: str, layout: TensorLayout, node: ast.expr) -> TensorView:
        if kind == "Tile":
            self.fail(
                "Tile does not accept layouts like pl.NZ",
                node,
                "a tile's layout follows from its memory; state another with pl.TileView(..)",
            )
        if layout is TensorLayout.DN:
            self.fail(
                f"pl.{kind}[..., {ast.unparse(node)}] is not supported",
                node,
                "annotate the source shape without a layout and transpose where it is used: pl.transpose(x, -2, -1)",
            )
        return TensorView(layout=layout)

    def _view(self, kind: str, called: str, node: ast.Call, shape: list[Any]) -> Any:
        if node.args:
            self.fail(
                f"{called} does not accept positional arguments", node.args[0], f"write {called}(stride=[..], ..)"
            )
        if (called == "TileView") != (kind == "Tile"):
            self.fail(f"a {kind} does not take a {called}", node)
        keys = _VIEW_KEYS[called]
        values: dict[str, Any] = {}
        for keyword in node.keywords:
            name = keyword.arg or "**"
            if name not in keys:
                self.fail(f"Unknown {called} keyword '{name}'", keyword, f"{called} takes {', '.join(keys)}")
            values[name] = self._view_field(name, keyword.value)
        return StatedTileView(values) if called == "TileView" else TensorView(**values)

    def _view_field(self, name: str, node: ast.expr) -> Any:
        if name in _VIEW_ENUMS:
            return self._member(_VIEW_ENUMS[name], node)
        if name in ("valid_shape", "stride"):
            if isinstance(node, (ast.List, ast.Tuple)):
                return [self._index(e) for e in node.elts]
            value = self.evaluator.eval_expr(node)
            if not isinstance(value, (list, tuple)):
                self.fail(f"{name} must be a list", node)
            return list(value)
        if name == "start_offset" and isinstance(node, ast.Constant) and node.value is None:
            return None
        return self._const(node, "a tile's fractal size") if name == "fractal" else self._index(node)

    def _member(self, enum: type[Enum], node: ast.expr) -> Any:
        name = last_name(node)
        members = enum.__members__
        if isinstance(node, ast.Attribute) or name in members:
            if name in members:
                return members[name]
            what = "layout" if enum is TensorLayout else enum.__name__
            self.fail(
                f"Unknown {what} '{name}'",
                node,
                f"use one of {', '.join(f'pl.{m}' if enum is TensorLayout else m for m in members)}",
            )
        value = self.evaluator.eval_expr(node)
        if not isinstance(value, enum):
            self.fail(f"'{ast.unparse(node)}' must be a {enum.__name__}, got {type(value).__name__}", node)
        return value

    def _index(self, node: ast.expr) -> Expr:
        """An INDEX expression: a constant, a name, or whatever the enclosing parser can read."""
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return index_const(node.value)
        for child in ast.walk(node):
            if isinstance(child, ast.Call) and last_name(child.func) == "yield_":
                self.fail("an annotation cannot contain pl.yield_", child)
        value = self._index_value(node)
        if isinstance(value, int) and not isinstance(value, bool):
            return index_const(value)
        value = getattr(value, "var", value)
        if isinstance(value, Expr) and isinstance(value.type, ScalarType) and value.type.dtype.is_int():
            return value
        self.fail(f"'{ast.unparse(node)}' must be an index expression", node)

    def _index_value(self, node: ast.expr) -> Any:
        if self.parse_expression is not None:
            return self.parse_expression(node)
        if isinstance(node, ast.Name):
            value = self.evaluator.lookup(node.id)
            if value is MISSING and self.scope_lookup is not None:
                value = self.scope_lookup(node.id) or MISSING
            return self._free_dim(node.id) if value is MISSING else value
        found, value = self.evaluator.try_eval_expr(node)
        if not found:
            self.fail(f"'{ast.unparse(node)}' is not an integer constant or bare variable", node)
        return value

    def _free_dim(self, name: str) -> Var:
        """A variable for a name that only the printed type knows."""
        return self.bases.setdefault(f"dim {name}", Var(name, ScalarType(DataType.INDEX)))

    # -- allocations

    def base(self, name: str) -> Var:
        return self.bases.setdefault(name, Var(name, PtrType()))

    def resolve_memref(self, node: ast.Call) -> MemRef:
        """``pl.MemRef(..)`` as a MemRef."""
        known = {k.arg: k.value for k in node.keywords}
        if len(node.args) <= 1 and not known.keys() - {"name", "slots"}:
            for given in [*node.args, *(v for k, v in known.items() if k == "name")]:
                if not (isinstance(given, ast.Constant) and isinstance(given.value, str)):
                    self.fail(
                        "the name of a declared allocation must be a string literal", given, 'write pl.MemRef("a")'
                    )
            plain = _plain_decl(node)
            return self._declared(self.evaluator.eval_expr(node) if plain is None else plain, node)
        args = list(node.args)
        if args and isinstance(args[0], ast.Attribute) and last_name(args[0].value) in ("Mem", "MemorySpace"):
            space = self._member(MemorySpace, args[0])
            ident = self._const(args[3], "a MemRef's number") if len(args) > 3 else 0
            base = self.base(f"mem_{space.name.lower()}_{ident}")
            return MemRef(base, self._index(args[1]), self._const(args[2]), self.span(node))
        if len(args) < 3:
            self.fail("MemRef takes a base, a byte offset and a size", node, 'write pl.MemRef("mem_vec_0", 0, 1024)')
        return self._described(args, node)

    def _described(self, args: list[ast.expr], node: ast.Call) -> MemRef:
        first = args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            base: Any = self.base(first.value)
        elif isinstance(first, ast.Name):
            found = self.scope_lookup(first.id) if self.scope_lookup is not None else None
            base = found if isinstance(found, Var) else self.base(first.id)
        else:
            ident = self._index(args[2])
            size = self._const(args[1])
            return MemRef(self.base(f"mem_{getattr(ident, 'value', 0)}"), self._index(first), size, self.span(node))
        slots = next((self._const(k.value) for k in node.keywords if k.arg == "slots"), 1)
        return MemRef(base, self._index(args[1]), self._const(args[2]), self.span(node), slot_count=slots)

    def _const(self, node: ast.expr, what: str = "a MemRef's size") -> int:
        value = getattr(self._index(node), "value", None)
        if value is None:
            self.fail(f"{what} is a constant", node)
        return value

    def _slot(self, node: ast.Subscript) -> MemRef:
        owner = node.value
        if isinstance(owner, ast.Call) and last_name(owner.func) == "MemRef":
            declared = self.resolve_memref(owner)
        else:
            value = self.evaluator.eval_expr(owner)
            if not isinstance(value, MemRefDecl):
                self.fail(f"'{ast.unparse(owner)}' is no declared allocation: only pl.MemRef(slots=..) has slots", node)
            declared = self._declared(value, owner)
        if declared.slot_count == 1:
            hint = "write pl.MemRef(slots=2) to declare more slots, or leave the index out"
            self.fail(f"'{ast.unparse(owner)}' has a single slot: it takes no index", node, hint)
        index = self._index(node.slice)
        known = getattr(index, "value", None)
        if known is not None and not 0 <= known < declared.slot_count:
            self.fail(f"slot {known} is out of range: the allocation has {declared.slot_count} slots", node.slice)
        return MemRef(
            declared.base,
            declared.byte_offset,
            declared.size,
            self.span(node),
            is_pinned=declared.is_pinned,
            slot_count=declared.slot_count,
            slot_index=index,
        )

    def _declared(self, value: Any, node: ast.expr) -> MemRef:
        slot = value if isinstance(value, MemRefSlot) else None
        decl: Any = slot.declaration if slot is not None else value
        name = decl.name or last_name(node)
        if not name:
            self.fail("a declared allocation needs a name", node, 'write pl.MemRef("name"), or bind it to a variable')
        self._check_one_to_one(decl, name, node)
        return MemRef(
            self.base(name),
            0,
            0,
            self.span(node),
            is_pinned=True,
            slot_count=decl.slots,
            slot_index=slot.index if slot is not None else None,
        )

    def _check_one_to_one(self, decl: MemRefDecl, name: str, node: ast.expr) -> None:
        """A declared allocation and its name belong to each other alone."""
        if isinstance(node, ast.Call):
            return
        known = self.declarations
        other = next((n for n, d in known.items() if d is decl and n != name), None)
        if other is not None:
            self.fail(f"one allocation is declared under two names, '{other}' and '{name}'", node)
        if known.setdefault(name, decl) is not decl:
            self.fail(f"two allocations are declared under the name '{name}'", node)


def _plain_decl(node: ast.Call) -> MemRefDecl | None:
    """The allocation a call with literal arguments declares; None when an argument has to be evaluated."""
    args: list[Any] = [a.value for a in node.args if isinstance(a, ast.Constant)]
    named = [(k.arg, k.value) for k in node.keywords]
    values: dict[str, Any] = {name: v.value for name, v in named if name and isinstance(v, ast.Constant)}
    literal = len(args) == len(node.args) and len(values) == len(node.keywords)
    return MemRefDecl(*args, **values) if literal else None


def last_name(node: ast.expr | None) -> str:
    """``Tensor`` of ``pl.Tensor`` and of ``Tensor``; empty for what is no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
