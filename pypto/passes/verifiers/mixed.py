"""MixedKernelExpanded: no kernel needs both cores, and what goes through pipes is set up, received and given back."""

from __future__ import annotations

from typing import Final

from ...ir.enums import FunctionType, MemorySpace
from ...ir.expr import Call, Var
from ...ir.program import Function, summarize
from ...ir.stmt import AssignStmt
from ...ir.types import TileType
from ...ir.visitor import walk
from ...ops.rules import value as known
from ..core_affinity import FREES, POPS, PUSHES, SETUPS, Affinity, body_affinity
from .driver import Rule

_SIDES: Final = {FunctionType.AIC: Affinity.CUBE, FunctionType.AIV: Affinity.VECTOR}
_LANDS: Final = {Affinity.CUBE: MemorySpace.Mat, Affinity.VECTOR: MemorySpace.Vec}
_RECEIVES: Final = {Affinity.CUBE: 2, Affinity.VECTOR: 1}
"""The bit of ``dir_mask`` by which each core receives."""


class MixedKernelExpanded(Rule):
    """Kernels are for one core; pops land in the core's own memory and are freed once; pipes are set up first."""

    name = "MixedKernelExpanded"

    def enter_function(self, function: Function) -> bool:
        kind = function.func_type
        if kind is FunctionType.InCore:
            if body_affinity(function.body) is Affinity.MIXED:
                self.report(f"Function '{function.name}' contains both cube and vector tile ops", function.span)
        elif kind in _SIDES and not summarize(function).ops.isdisjoint(
            names[_SIDES[kind]] for names in (PUSHES, POPS, FREES)
        ):
            _PipeCheck(self, function).run()
        return False


class _PipeCheck:
    """Checks one function's use of pipes, in program order."""

    def __init__(self, rule: Rule, function: Function) -> None:
        self._rule, self._function, self._side = rule, function, _SIDES[function.func_type]
        self._is_set_up = False
        self._outstanding: dict[Var, Call] = {}
        self._counts = {"system.reserve_buffer": 0, "system.import_peer_buffer": 0}
        self._directions = {"system.reserve_buffer": 0, "system.import_peer_buffer": 0}

    def run(self) -> None:
        for node in walk(self._function.body):
            if isinstance(node, AssignStmt):
                if isinstance(node.value, Call) and node.value.op.name == POPS[self._side]:
                    self._popped(node.var, node.value)
            elif isinstance(node, Call):
                self._call(node)
        for call in self._outstanding.values():
            self._report(f"uses {POPS[self._side]} but has no matching '{FREES[self._side]}' call", call)
        for name, wanted in self._directions.items():
            if self._counts[name] < wanted:
                text = f"has fewer '{name}' calls than initialized pipe directions require"
                self._report(text, None)

    def _report(self, text: str, call: Call | None) -> None:
        span = call.span if call is not None else self._function.span
        self._rule.report(f"Function '{self._function.name}' {text}", span)

    def _call(self, call: Call) -> None:
        name = call.op.name
        if name == SETUPS[self._side]:
            self._is_set_up = True
            mask, own = call.kwargs["dir_mask"], _RECEIVES[self._side]
            self._directions["system.reserve_buffer"] += bool(mask & own)
            self._directions["system.import_peer_buffer"] += bool(mask & ~own & 3)
        elif name in self._counts:
            self._counts[name] += 1
        elif name in (PUSHES[self._side], POPS[self._side]):
            if not self._is_set_up:
                self._report(f"uses cross-core tile ops but has no '{SETUPS[self._side]}' call before them", call)
                self._is_set_up = True
            if name == PUSHES[self._side]:
                self._check_shape(call.args[0].type, call)
        elif name == FREES[self._side]:
            tile = call.args[0]
            if not isinstance(tile, Var) or self._outstanding.pop(tile, None) is None:
                self._report(f"has '{name}' without a matching outstanding tpop on the same tile value", call)

    def _popped(self, var: Var, call: Call) -> None:
        self._outstanding[var] = call
        wanted = _LANDS[self._side]
        kind = var.type
        if isinstance(kind, TileType) and kind.memory_space not in (wanted, None):
            self._report(f"needs the {call.op.name} result in MemorySpace::{wanted.name}", call)
        self._check_shape(kind, call)

    def _check_shape(self, kind: object, call: Call) -> None:
        if isinstance(kind, TileType) and any(known(d) is None for d in kind.shape):
            self._report(f"uses {call.op.name} on a tile whose shape is not constant, {kind}", call)
