"""Members of a Group take the Group's own parameters: the cores of one task share one list of arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ...errors import InternalError, user_error
from ...ir.enums import FunctionType
from ...ir.expr import Call, Expr, GlobalVar, Submit
from ...ir.functor import deep_clone
from ...ir.node import NodeList, same_objects
from ...ir.program import Function, summarize
from ...ir.visitor import Rewriter, find_all, substitute

_MEMBERS: Final = {FunctionType.AIC: "aic", FunctionType.AIV: "aiv"}
_OVERRIDES: Final = "arg_direction_overrides"
Invocation = Call | Submit


def normalize_groups(functions: Iterable[Function]) -> list[Function]:
    """``functions`` with the parts of every Group on its parameters.

    A part that others call too keeps its own; the Group gets a copy of it. Raises KernelValueError for a part whose
    body is not ours to change.
    """
    by_name = {f.name: f for f in functions}
    groups = [f for f in by_name.values() if f.func_type is FunctionType.Group]
    uses: Counter[str] | None = None
    for group in groups:
        calls = _member_calls(group, by_name)
        kinds = {by_name[c.op.name].func_type for c in calls}
        if len(kinds) < 2 or all(same_objects(c.args, group.params) for c in calls):
            continue
        if not all(_forwards(c, group) for c in calls):
            continue
        if uses is None:
            uses = Counter(c.op.name for f in by_name.values() for c in _calls(f))
        _normalize(group, calls, by_name, uses)
    return list(by_name.values())


def _calls(function: Function) -> list[Invocation]:
    return [n for n in find_all(function.body, (Call, Submit)) if isinstance(n.op, GlobalVar)]


def _member_calls(group: Function, by_name: Mapping[str, Function]) -> list[Invocation]:
    if not summarize(group).callees:
        return []
    return [c for c in _calls(group) if (f := by_name.get(c.op.name)) is not None and f.func_type in _MEMBERS]


def _forwards(call: Invocation, group: Function) -> bool:
    return all(any(a is p for p in group.params) for a in call.args)


def _normalize(group: Function, calls: list[Invocation], by_name: dict[str, Function], uses: Counter[str]) -> None:
    inside = Counter(c.op.name for c in calls)
    shared = any(uses[name] > count for name, count in inside.items())
    renamed: dict[str, str] = {}
    for call in calls:
        member = by_name[call.op.name]
        if member.requires_runtime_binding or member.attrs.get("external_source"):
            raise user_error(
                ValueError,
                f"{member.name!r} is defined elsewhere and does not take the parameters of the Group {group.name!r}: "
                "both cores of a Group share one list of arguments",
                call.span,
                f"declare it with ({', '.join(p.name_hint for p in group.params)})",
            )
        renamed[member.name] = f"{group.name}_{_MEMBERS[member.func_type]}_adapter" if shared else member.name
    for call in calls:
        member = by_name[call.op.name]
        by_name[renamed[member.name]] = _adapted(member, call, group, renamed)
    by_name[group.name] = _WholeCalls(group, renamed).rewrite(group)


def _adapted(member: Function, call: Invocation, group: Function, renamed: Mapping[str, str]) -> Function:
    """``member`` on the parameters of ``group``, of which ``call`` gives it some."""
    body = substitute(member.body, dict(zip(member.params, call.args)))
    body = _Peers(renamed).rewrite(body)
    made, _ = deep_clone(
        Function(
            renamed[member.name], group.directed_params(), member.return_types, body, member.span, member.func_type,
            attrs=member.attrs,
        )
    )  # fmt: skip
    if not isinstance(made, Function):
        raise InternalError("a clone of a function is none", member.span)
    return made.replace(summary_cell=[])


class _Peers(Rewriter):
    """Imports name the peer by its new name."""

    def __init__(self, renamed: Mapping[str, str]) -> None:
        super().__init__()
        self._renamed = renamed

    def visit_call(self, op: Call) -> Expr:
        made = self.generic(op)
        peer = made.kwargs.get("peer_func")
        if peer is None or self._renamed.get(peer, peer) == peer:
            return made
        return made.replace(kwargs={**made.kwargs, "peer_func": self._renamed[peer]})


class _WholeCalls(Rewriter):
    """Calls of the parts hand on every parameter."""

    def __init__(self, group: Function, renamed: Mapping[str, str]) -> None:
        super().__init__()
        self._params, self._renamed = group.params, renamed

    def visit_call(self, op: Any) -> Expr:
        if not isinstance(op.op, GlobalVar) or op.op.name not in self._renamed:
            return self.generic(op)
        position = {i: self._position(arg) for i, arg in enumerate(op.args)}
        attrs = {k: v for k, v in op.attrs.items() if k != "arg_directions"}
        if _OVERRIDES in attrs:
            attrs[_OVERRIDES] = [position[i] for i in attrs[_OVERRIDES]]
        name = self._renamed[op.op.name]
        gvar = op.op if op.op.name == name else GlobalVar(name)
        return op.replace(op=gvar, args=NodeList(self._params), attrs=attrs)

    visit_submit = visit_call

    def _position(self, arg: Expr) -> int:
        return next(i for i, p in enumerate(self._params) if p is arg)


