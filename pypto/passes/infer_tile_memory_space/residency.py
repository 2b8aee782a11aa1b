"""Matmul operands that every iteration of a loop loads alike are loaded once, before it.

Only loads that ConvertTensorToTileOps put into the loop move: where an author wrote a load, it stays. Such a load moves
with the move to Left or Right that alone uses it, or by itself when all that comes of it goes to matmuls. Nothing may
write to the tensor meanwhile, so every caller has to have allocated it and pass it for reading only; nothing in the
loop may wait for another core or task; and the memories have to hold all tiles of the kernel side by side, because a
tile that lives longer can share less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ...backend.target import Target
from ...errors import InternalError
from ...ir.enums import ForKind, FunctionType, MemorySpace, ParamDirection
from ...ir.expr import Call, ConstInt, Expr, GlobalVar, Submit, Var
from ...ir.program import Function, Program, summarize
from ...ir.stmt import AssignStmt, ForStmt, Stmt, flatten_to_stmts, seq
from ...ir.types import TensorType, TileType
from ...ir.visitor import Rewriter, Visitor, walk
from ...ops.registry import ArgEffect, arg_effect, decl_of
from ..bodies import defined_in
from ..buffer_roots import BufferRoots, written_buffers
from ..convert_tensor_to_tile_ops.rewrite import MAT_BRIDGE
from ..core_affinity import Affinity, call_affinity, space_of
from ..memory_model import tile_bytes
from ..return_lineage import ReturnLineage

_OPERANDS: Final = (MemorySpace.Left, MemorySpace.Right)
_STAGING: Final = ("tile.move", "tile.extract")
_VIEW: Final = "tile.transpose_view"


class CallSites:
    """What callers pass to the kernels of a program."""

    def __init__(self, program: Program) -> None:
        self._functions = list(program.functions.values())
        self._lineage = ReturnLineage(program)

    def unwritten(self, kernel: Function) -> frozenset[Var]:
        """Parameters that the kernel reads and nothing writes while it runs, by all that is known of its callers."""
        callers = [f for f in self._functions if kernel.name in summarize(f).callees]
        if not callers or not all(self._is_root(f) for f in callers):
            return frozenset()
        found: frozenset[int] | None = None
        for positions in (p for f in callers for p in self._positions(f, kernel)):
            found = positions if found is None else found & positions
        params = frozenset(kernel.params[i] for i in found or ())
        return params - _written_in(kernel) if params else params

    def _is_root(self, function: Function) -> bool:
        if function.func_type is not FunctionType.Orchestration:
            return False
        return not any(function.name in summarize(f).callees for f in self._functions)

    def _positions(self, caller: Function, kernel: Function) -> Iterator[frozenset[int]]:
        """For each call of ``kernel``, the arguments it only reads, of tensors that nothing else of the call shows."""
        roots = BufferRoots(caller, self._lineage, views=True)
        made = {
            s.var
            for s in walk(caller.body)
            if isinstance(s, AssignStmt) and isinstance(s.value, Call) and s.value.op.name == "tensor.create"
        }
        for call in walk(caller.body):
            if isinstance(call, (Call, Submit)) and isinstance(call.op, GlobalVar) and call.op.name == kernel.name:
                yield _unshared(call, kernel, roots, made, {*made, *caller.params})


def _unshared(
    call: Call | Submit, kernel: Function, roots: BufferRoots, made: set[Var], known: set[Var]
) -> frozenset[int]:
    if isinstance(call, Submit):
        return frozenset()
    passed = [roots.of(arg) for arg in call.args[: len(kernel.params)]]
    tensors = [i for i, arg in enumerate(call.args[: len(passed)]) if isinstance(arg.type, TensorType)]
    reads = [i for i in tensors if kernel.param_directions[i] is ParamDirection.In]
    written = [passed[i] for i in tensors if i not in reads]
    if not all(r and r <= known for r in written):
        return frozenset()
    own = (i for i in reads if passed[i] and passed[i] <= made)
    return frozenset(i for i in own if all(passed[i].isdisjoint(w) for w in written))


def _written_in(function: Function) -> frozenset[Var]:
    roots = BufferRoots(function, ReturnLineage({function.name: function}), views=True)
    return written_buffers(function.body, roots)


class _Facts(Visitor):
    """Who uses each variable of a kernel, and what its tiles take of each memory."""

    def __init__(self, function: Function, target: Target) -> None:
        self.uses: dict[Var, list[tuple[Call | None, int]]] = {}
        """The calls a variable is an argument of, and which one; no call for any other use."""
        self.assigned: dict[Call, AssignStmt] = {}
        self._taken: dict[MemorySpace, int] = {}
        self._unknown: set[MemorySpace] = set()
        """Memories of which more may be taken than is written here."""
        self._target, self._pipelines = target, 0
        self.visit(function.body)
        self._reserves = "system.reserve_buffer" in summarize(function).ops

    def holds_all(self, space: MemorySpace) -> bool:
        """Whether all tiles of the kernel in ``space`` fit there side by side."""
        if space in self._unknown or self._reserves:
            return False
        return self._taken.get(space, 0) <= self._target.capacity(space)

    def visit_for_stmt(self, op: ForStmt) -> None:
        self._pipelines += op.kind is ForKind.Pipeline
        self.generic(op)
        self._pipelines -= op.kind is ForKind.Pipeline

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        if isinstance(op.value, Call):
            self.assigned[op.value] = op
            self._allocate(op.var, op.value)
        self.visit(op.value)

    def _allocate(self, var: Var, call: Call) -> None:
        kind, decl = var.type, decl_of(call)
        if not isinstance(kind, TileType) or decl is None or decl.inherits or decl.reuses:
            return
        space = kind.memory_space or MemorySpace.Vec
        size, memory = tile_bytes(kind, self._target), self._target.memories.get(space)
        if size is None or memory is None or self._pipelines:
            self._unknown.add(space)
        else:
            self._taken[space] = self._taken.get(space, 0) + -(-size // memory.alignment) * memory.alignment

    def visit_call(self, op: Call) -> None:
        for i, arg in enumerate(op.args):
            if isinstance(arg, Var):
                self.uses.setdefault(arg, []).append((op, i))
            else:
                self.visit(arg)
        self.visit_mapping(op.attrs)

    def visit_var(self, op: Var) -> None:
        self.uses.setdefault(op, []).append((None, 0))


class Residency(Rewriter):
    """Moves loads out of the loops of one kernel, and takes the marks off those it leaves."""

    def __init__(self, function: Function, unwritten: frozenset[Var], target: Target | None) -> None:
        super().__init__()
        self._unwritten = unwritten if target is not None else frozenset()
        self._facts = _Facts(function, target) if self._unwritten and target is not None else None
        self._moved: set[Stmt] = set()

    def visit_call(self, op: Call) -> Expr:
        made = self.generic(op)
        if MAT_BRIDGE not in made.attrs:
            return made
        return made.replace(attrs={k: v for k, v in made.attrs.items() if k != MAT_BRIDGE})

    def visit_assign_stmt(self, op: AssignStmt) -> Any:
        return None if op in self._moved else self.generic(op)

    def visit_for_stmt(self, op: ForStmt) -> Any:
        moved = self._leaving(op)
        before = [self.rewrite(s) for s in moved]
        self._moved.update(moved)
        made = self.generic(op)
        return seq([*before, made], op.span) if before else made

    def _leaving(self, loop: ForStmt) -> list[Stmt]:
        """The statements of ``loop`` that can go before it."""
        if self._facts is None or not _surely_runs(loop):
            return []
        first = list(_first_assigns(loop))
        loads = [s for s in first if isinstance(s.value, Call) and MAT_BRIDGE in s.value.attrs]
        if not any(self._is_steady(s) for s in loads) or any(_is_boundary(n) for n in walk(loop)):
            return []
        local = defined_in(loop)
        found: set[Stmt] = set()
        for load in loads:
            if self._is_steady(load) and not _reads_any(load.value, local):
                found.update(self._chain(load, first, local) or self._panel(load))
        return [s for s in first if s in found]

    def _is_steady(self, load: AssignStmt) -> bool:
        return isinstance(load.value, Call) and load.value.args[0] in self._unwritten

    def _chain(self, load: AssignStmt, first: list[AssignStmt], local: set[Var]) -> list[AssignStmt]:
        """``load`` and what takes it to the one matmul that uses it; nothing when that is not so, or does not fit."""
        chain = [load]
        while True:
            uses = self._uses(chain[-1].var)
            stmt = self._assigned(uses[0][0]) if len(uses) == 1 else None
            if stmt is None or stmt not in first or _reads_any(stmt.value, local - {chain[-1].var}):
                return []
            chain.append(stmt)
            if _name(stmt) != _VIEW:
                break
        ends = self._uses(stmt.var)
        fits = self._fits(MemorySpace.Mat) and self._fits(space_of(stmt.var))
        staged = _name(stmt) in _STAGING and len(ends) == 1 and _feeds_matmul(stmt.var, *ends[0])
        return chain if staged and fits else []

    def _panel(self, load: AssignStmt) -> list[AssignStmt]:
        """``load``, when all that comes of it goes to matmuls and it fits."""
        return [load] if self._fits(MemorySpace.Mat) and self._only_operands(load.var) else []

    def _only_operands(self, var: Var) -> bool:
        uses = self._uses(var)
        for call, _ in uses:
            stmt = self._assigned(call)
            if stmt is None:
                return False
            if _name(stmt) == _VIEW:
                if not self._only_operands(stmt.var):
                    return False
            elif _name(stmt) not in _STAGING or not all(_feeds_matmul(stmt.var, *u) for u in self._uses(stmt.var)):
                return False
        return bool(uses)

    def _known(self) -> _Facts:
        if self._facts is None:
            raise InternalError("facts of a kernel in which nothing moves")
        return self._facts

    def _uses(self, var: Var) -> list[tuple[Call | None, int]]:
        return self._known().uses.get(var, [])

    def _assigned(self, call: Call | None) -> AssignStmt | None:
        return None if call is None else self._known().assigned.get(call)

    def _fits(self, space: MemorySpace | None) -> bool:
        return space is not None and self._known().holds_all(space)


def _surely_runs(loop: ForStmt) -> bool:
    bounds = [b.value for b in (loop.start, loop.stop, loop.step) if isinstance(b, ConstInt)]
    return loop.kind is ForKind.Sequential and len(bounds) == 3 and bounds[2] > 0 and bounds[0] < bounds[1]


def _first_assigns(loop: ForStmt) -> Iterator[AssignStmt]:
    """The statements at the beginning of a loop's body that only compute."""
    for stmt in flatten_to_stmts(loop.body):
        if not isinstance(stmt, AssignStmt):
            return
        if isinstance(stmt.value, Call):
            decl = decl_of(stmt.value)
            if decl is None or not decl.pure:
                return
        yield stmt


def _is_boundary(node: Any) -> bool:
    """Whether ``node`` may wait for, or hand something to, another core or task."""
    if isinstance(node, Submit):
        return True
    if not isinstance(node, Call):
        return False
    decl = decl_of(node)
    if decl is None or decl.name.startswith(("system.", "pld.")):
        return True
    if call_affinity(node) is Affinity.MIXED and decl.name != "tile.move":
        return True
    return not decl.pure and all(arg_effect(node, i) is ArgEffect.Read for i in range(len(node.args)))


def _reads_any(value: Expr, variables: Iterable[Var]) -> bool:
    return any(isinstance(n, Var) and n in variables for n in walk(value))


def _name(stmt: AssignStmt) -> str:
    return stmt.value.op.name if isinstance(stmt.value, Call) else ""



def _feeds_matmul(tile: Var, call: Call | None, index: int) -> bool:
    """Whether argument ``index`` of ``call`` is the operand of a matmul that is taken from the memory of ``tile``."""
    decl = decl_of(call) if call is not None else None
    if decl is None or call is None or space_of(tile) not in _OPERANDS or index >= len(decl.args):
        return False
    return call_affinity(call) is Affinity.CUBE and space_of(tile) in decl.spaces.get(decl.args[index].name, ())
