"""``optimizations=[..]`` of a region."""

from __future__ import annotations

import ast
import warnings
from typing import Any

from ...errors import ParserSyntaxError
from ...ir.enums import SplitMode
from .. import forms
from .control_flow import ControlFlowMixin


class Optimizations:
    """What ``optimizations=`` asks of the kernel a region becomes. ``given`` when it holds any entry."""

    __slots__ = ("split", "slot_num", "given")

    def __init__(self) -> None:
        self.split = SplitMode.NONE
        self.slot_num: int | None = None
        self.given = False

    def attrs(self) -> dict[str, Any]:
        return {"slot_num": self.slot_num} if self.slot_num is not None else {}


class OptimizationsMixin(ControlFlowMixin):
    """Parses optimization entries."""

    def optimization_list(self, region: str, node: ast.expr | None) -> Optimizations:
        """The entries of ``optimizations=``, which is a list written at the call."""
        made = Optimizations()
        if node is None:
            return made
        if not isinstance(node, ast.List):
            self.fail(
                ParserSyntaxError,
                f"pl.{region}(optimizations=..) must be a list literal",
                node,
                "write optimizations=[pl.split(..)]",
            )
        seen: set[str] = set()
        for entry in node.elts:
            form = (
                self.callee(entry.func)
                if isinstance(entry, ast.Call) and isinstance(entry.func, (ast.Attribute, ast.Name))
                else None
            )
            if not isinstance(entry, ast.Call) or form not in (forms.split, forms.cross_core_slot):
                self.fail(
                    ParserSyntaxError,
                    f"Unsupported entry in pl.{region}(optimizations=..): {ast.unparse(entry)}",
                    entry,
                    "entries are pl.split(mode) and pl.cross_core_slot(slot_num=N)",
                )
            if form.name in seen:
                self.fail(ParserSyntaxError, f"Duplicate 'pl.{form.name}(..)' in optimizations", entry)
            seen.add(form.name)
            self._split(entry, made) if form is forms.split else self._slots(entry, made)
            made.given = True
        return made

    def _split(self, entry: ast.Call, made: Optimizations) -> None:
        named = self._entry_keywords(entry, ("mode", "slot_num"))
        mode = entry.args[0] if entry.args else named.get("mode")
        value = self.value(mode) if mode is not None else None
        if not isinstance(value, SplitMode) or len(entry.args) > 1:
            self.fail(ParserSyntaxError, "pl.split() takes a SplitMode", entry, "write pl.split(pl.SplitMode.UP_DOWN)")
        made.split = value
        if "slot_num" in named:
            self._set_slots(self._slot_count(named["slot_num"]), made, entry)
            warnings.warn(forms.SPLIT_SLOT_NUM, DeprecationWarning, stacklevel=2)

    def _slots(self, entry: ast.Call, made: Optimizations) -> None:
        if entry.args:
            self.fail(
                ParserSyntaxError,
                "pl.cross_core_slot() takes no positional arguments",
                entry.args[0],
                "write slot_num=N",
            )
        named = self._entry_keywords(entry, ("slot_num",))
        if "slot_num" not in named:
            self.fail(
                ParserSyntaxError,
                "pl.cross_core_slot() requires the slot_num= keyword",
                entry,
                "write pl.cross_core_slot(slot_num=4)",
            )
        self._set_slots(self._slot_count(named["slot_num"]), made, entry)

    def _set_slots(self, count: int, made: Optimizations, entry: ast.Call) -> None:
        if made.slot_num is not None:
            self.fail(
                ParserSyntaxError,
                "optimizations= sets the cross-core slot count twice",
                entry,
                "keep pl.cross_core_slot(slot_num=..)",
            )
        made.slot_num = count

    def _slot_count(self, node: ast.expr) -> int:
        if not isinstance(node, ast.Constant) or type(node.value) is not int:
            self.fail(ParserSyntaxError, "slot_num must be an integer literal", node)
        if node.value < 1:
            self.fail(ParserSyntaxError, f"slot_num must be positive, got {node.value}", node)
        return node.value

    def _entry_keywords(self, entry: ast.Call, allowed: tuple[str, ...]) -> dict[str, ast.expr]:
        for kw in entry.keywords:
            if kw.arg not in allowed:
                self.fail(
                    ParserSyntaxError,
                    f"Unknown keyword argument '{kw.arg}'",
                    kw.value,
                    f"it takes {', '.join(allowed)}",
                )
        return {k.arg: k.value for k in entry.keywords if k.arg}
