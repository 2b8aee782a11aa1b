"""Names for variables: one each, unique within a function, close to the hint."""

from __future__ import annotations

import keyword
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..expr import ConstBool, ConstFloat, ConstInt, IterArg, Var
from ..memref import MemRef, WindowBuffer
from ..node import IRNode, mapping_items
from ..program import Function
from ..types import PtrType, Type

_LEAVES = frozenset({Var, IterArg, ConstInt, ConstFloat, ConstBool})


def collect(roots: Iterable[IRNode]) -> tuple[set[Var], dict[Var, None]]:
    """The variables ``roots`` define, and those their types mention without a definition, in order."""
    found = _Collector()
    for root in roots:
        found.visit(root)
    return found.defined, {v: None for v in found.in_types if v not in found.defined}


class _Collector:
    def __init__(self) -> None:
        self.defined: set[Var] = set()
        self.in_types: dict[Var, None] = {}
        self._seen: set[int] = set()
        self._types = _TypeCollector(self)

    def visit(self, item: Any) -> None:
        if item.__class__ not in _LEAVES:
            item._visit_children(self)

    def define(self, var: Any) -> None:
        self.defined.add(var)
        self.visit_type(var.type)
        if var.__class__ is IterArg:
            self.visit(var.init_value)

    def visit_mapping(self, mapping: Mapping[str, Any]) -> None:
        task_id = mapping.get("task_id_var")
        if task_id is not None:
            self.define(task_id)
        for item in mapping_items(mapping):
            self.visit(item)

    def visit_type(self, type: Type) -> None:
        if type.symbolic and id(type) not in self._seen:
            self._seen.add(id(type))
            type._visit_children(self._types)


class _TypeCollector:
    """Walks a type for the variables in its dimensions; allocations are no dimensions."""

    def __init__(self, outer: _Collector) -> None:
        self.outer = outer
        self.visit_type = outer.visit_type

    def visit(self, item: Any) -> None:
        if item.__class__ is Var:
            if not isinstance(item.type, PtrType):
                self.outer.in_types[item] = None
        elif isinstance(item, MemRef) or not isinstance(item, (Var, WindowBuffer, ConstInt)):
            item._visit_children(self)

    define = visit

    def visit_mapping(self, mapping: Mapping[str, Any]) -> None:
        for item in mapping_items(mapping):
            self.visit(item)


def clean(hint: str) -> str:
    """``hint`` as an identifier."""
    if not hint.isidentifier():
        hint = "".join(c if c.isalnum() or c == "_" else "_" for c in hint) or "_v"
        hint = hint if hint.isidentifier() else f"_{hint}"
    return f"{hint}_" if keyword.iskeyword(hint) else hint


class Names:
    """The names of one function's variables. ``closed``: a variable neither defined nor a dimension is an error."""

    __slots__ = ("names", "used", "counts", "defined", "closed")

    def __init__(
        self,
        prefix: str,
        defined: Collection[Var],
        closed: bool = True,
        dims: Mapping[Var, str] | None = None,
    ) -> None:
        self.names: dict[Var, str] = dict(dims or {})
        self.used: set[str] = {prefix, "pld", "self", *self.names.values()}
        self.counts: dict[str, int] = {}
        self.defined = defined
        self.closed = closed

    def __getitem__(self, var: Var) -> str:
        return self.names.get(var) or self._assign(var)

    def _assign(self, var: Var) -> str:
        name = self.fresh(var.name_hint)
        if self.closed and var not in self.defined and not isinstance(var.type, PtrType):
            name += "__FREE_VAR"
        self.names[var] = name
        return name

    def fresh(self, hint: str) -> str:
        """A name like ``hint`` that nothing else has."""
        base = name = clean(hint)
        count = self.counts.get(base, 0)
        while name in self.used:
            count += 1
            name = f"{base}_{count}"
        self.counts[base] = count
        self.used.add(name)
        return name


def name_dimensions(prefix: str, functions: Iterable[Function], dims: Iterable[Var]) -> dict[Var, str]:
    """Module-level names of dynamic dimensions, clear of every parameter's name."""
    wanted = list(dims)
    if not wanted:
        return {}
    names = Names(prefix, frozenset(), closed=False)
    names.used.update(clean(p.name_hint) for f in functions for p in f.params)
    return {var: names[var] for var in wanted}
