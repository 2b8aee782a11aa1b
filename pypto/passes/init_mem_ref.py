"""InitMemRef: every tile and tensor is given a place.

A tile that an operator makes anew gets an allocation of its own, declared by a ``tile.alloc`` at the head of the
function. A view, an in-place result and a plain alias lie in the buffer of what they come from. Loop-carried
variables lie where their initial values do, loop and branch results where what is yielded does; where those
differ, `MaterializeSemanticAliases` reconciles them. A window of a tile that is carried or yielded is copied out of
it first. Tensors get a reference into global memory, without a statement.

Tiles popped from a cross-core pipe live in the pipe's slot: they, and views of them, have no place.
"""

from __future__ import annotations

from typing import Any

from ..backend.target import Target
from ..errors import InternalError, KernelValueError, Location, user_error
from ..ir.enums import FunctionType, MemorySpace
from ..ir.expr import Call, ConstInt, Expr, IterArg, Var, tile_type_of
from ..ir.memref import MemRef
from ..ir.naming import written_name
from ..ir.node import NodeList, updated
from ..ir.program import Function, Program
from ..ir.stmt import AssignStmt, ForStmt, IfStmt, Stmt, WhileStmt, YieldStmt, seq
from ..ir.tensor_view_semantics import index_mul
from ..ir.types import TensorType, TileType
from ..ir.visitor import Rewriter
from ..ops.registry import OpDecl, decl_of
from ..ops.rules import dims_text
from .acc_windows import AccWindow, acc_windows
from .base import P, Pass
from .context import PassContext
from .memory_model import (
    Allocation,
    Steps,
    allocations,
    check_copy,
    copy_of,
    fills_buffer,
    index_add,
    offset_const,
    shown,
    steps_of,
    tensor_bytes,
    tile_bytes,
    tile_definitions,
    value_at,
    view_place,
    with_allocations,
    with_memref,
    yielded,
)
from .normalize_stmt_structure import normalize

_POP = "tile.tpop"
_INT64_MAX = (1 << 63) - 1


def init_mem_ref() -> Pass:
    """The pass; see the module.

    Raises InternalError for a tile whose shape is not constant, and KernelValueError for a declared allocation that
    cannot hold what is bound to it.
    """
    return Pass(
        "InitMemRef",
        _run,
        requires={P.SSAForm, P.SplitIncoreOrch, P.IncoreTileOps, P.TileOps2D, P.TileMemoryInferred},
        produces={P.HasMemRefs, P.NormalizedStmtStructure},
        invalidates={P.SSAForm},
    )


def _run(program: Program, context: PassContext) -> Program:
    return program.map_functions(lambda f: _place(f, context.target) if _runs_on_core(f) else f)


def _runs_on_core(function: Function) -> bool:
    return function.is_incore or (function.func_type is FunctionType.Opaque and function.level is None)


def _place(function: Function, target: Target) -> Function:
    function = normalize(function)
    placer = _Placer(function, target)
    made = placer.rewrite(function)
    return made.replace(body=with_allocations(made.body, placer.allocations))


class _Placer(Rewriter):
    def __init__(self, function: Function, target: Target) -> None:
        super().__init__()
        self._target = target
        self._count = 0
        self._steps: dict[Var, Steps] = {}
        self.allocations = allocations(function.body)
        self._declared = _Declarations(function, target)
        self._windows = acc_windows(function)

    def _fresh(self, var: Var, space: MemorySpace, size: int) -> MemRef:
        base = MemRef(space, offset_const(0), size, self._count, var.span)
        self._count += 1
        if space is not MemorySpace.DDR:
            self.allocations[base.base] = Allocation(space, size)
        return base

    def _own(self, var: Any) -> Any:
        """``var`` in a place of its own."""
        type = var.type
        if isinstance(type, TileType):
            return self._own_tile(var, type)
        if isinstance(type, TensorType) and type.memref is None:
            return _moved(var, self._fresh(var, MemorySpace.DDR, tensor_bytes(type)))
        return var

    def _own_tile(self, var: Any, type: TileType) -> Any:
        size = tile_bytes(type, self._target)
        if size is None:
            if Location.of(var.span) is None:
                raise InternalError(f"InitMemRef requires static shape, tile '{var.name_hint}' has {type}", var.span)
            raise user_error(
                ValueError,
                f"the extents of a tile are constants, '{written_name(var.name_hint)}' has {dims_text(type.shape)}",
                var.span,
                hint="give it the largest extents and say how much holds data: valid_shape=[rows, columns]",
            )
        if type.memref is not None:
            declared = self._declared.resolve(type.memref, self)
            return var if declared is None else _moved(var, declared)
        if type.memory_space is None:
            raise InternalError(f"tile '{var.name_hint}' has no memory space", var.span)
        return _moved(var, self._fresh(var, type.memory_space, size))

    def declare(self, base: Var, allocation: Allocation) -> None:
        self.allocations.setdefault(base, allocation)

    def define(self, var: Any) -> Any:
        """Parameters and whatever no statement below places otherwise."""
        if var in self.vars:
            return self.vars[var]
        made = self.rebuild_var(var)
        if not isinstance(made, MemRef):
            made = self._own(made)
        if made is not var:
            self.vars[var] = made
        return made

    def visit_call(self, op: Call) -> Expr:
        """A call whose value is used where it stands lies where the operand it overwrites does."""
        made = self.generic(op)
        source, decl = _source(made)
        return made if source is None or decl is None or decl.reuses is None else value_at(made, source)

    def visit_assign_stmt(self, op: AssignStmt) -> AssignStmt:
        value = self.rewrite(op.value)
        var: Any = self.vars.get(op.var) or self.rebuild_var(op.var)
        if _placed(var.type):
            made = var
        elif op.var in self._windows:
            made = self._product(var, self._windows[op.var])
        elif isinstance(var.type, TileType):
            made = self._tile(var, value)
        elif isinstance(var.type, TensorType):
            made = self._tensor(var, value)
        else:
            made = var
        if made is not op.var:
            self.vars[op.var] = made
        return op.replace(value=value_at(value, made, op.var.type), var=made)

    def _product(self, var: Var, window: AccWindow) -> Var:
        """``var`` in its window of the accumulator."""
        whole = self.define(window.created)
        steps, memref = self._steps_of(whole), whole.type.memref
        place = view_place(whole.type, steps, tile_type_of(var), window.call) if steps is not None else None
        if place is None:
            raise InternalError(f"'{var.name_hint}' has no place in '{whole.name_hint}'", var.span)
        return _moved(var, MemRef(memref.base, index_add(memref.byte_offset, place.offset), place.span, span=var.span))

    def _tile(self, var: Var, value: Expr) -> Var:
        source, decl = _source(value)
        if source is None:
            popped = isinstance(value, Call) and value.op.name.startswith(_POP)
            if popped and tile_bytes(tile_type_of(var), self._target) is not None:
                return var
            return self._own(var)
        if not isinstance(source.type, TileType):
            return self._own(var)
        self._declared.refuse_view(var)
        made = _shared(var, source.type)
        steps = self._steps_of(source)
        whole = source.type.memref
        if isinstance(value, Call) and decl is not None and decl.inherits is not None and whole is not None:
            place = view_place(source.type, steps, tile_type_of(var), value) if steps is not None else None
            if place is None:
                return made
            offset = index_add(whole.byte_offset, place.offset)
            made = _moved(var, MemRef(whole.base, offset, place.span, span=var.span))
        if steps is not None:
            self._steps[made] = steps
        return made

    def _steps_of(self, var: Var) -> Steps | None:
        """How the tile is laid out: a window, and what is written in place of one, as the tile it is a window of."""
        known = self._steps.get(var)
        return steps_of(tile_type_of(var), self._target) if known is None else known

    def _whole(self, value: Expr, stmt: Stmt, copies: list[Stmt]) -> Expr:
        """``value``, or if it is a window of a tile, a copy of it: what is carried or yielded has its own buffer."""
        if not isinstance(value, Var) or not isinstance(value.type, TileType) or value.type.memref is None:
            return value
        at_start = getattr(value.type.memref.byte_offset, "value", None) == 0
        if at_start and fills_buffer(value.type, self._target):
            return value
        check_copy(value, stmt, self._target)
        type = with_memref(value.type, None)
        var = self._own(Var(f"{value.name_hint}_mv", type, stmt.span))
        copies.append(AssignStmt(var, value_at(copy_of(value, stmt), var, type), stmt.span))
        return var

    def visit_yield_stmt(self, op: YieldStmt) -> Stmt:
        copies: list[Stmt] = []
        values = self.rewrite_list(op.values, lambda v: self._whole(self.rewrite(v), op, copies))
        made = op.replace(values=values)
        return seq([*copies, made], op.span) if copies else made

    def _carried(self, loop: ForStmt | WhileStmt, copies: list[Stmt]) -> NodeList:
        def carry(arg: IterArg) -> IterArg:
            init, type = self._whole(self.rewrite(arg.init_value), loop, copies), self.rewrite_type(arg.type)
            made = arg
            if init is not arg.init_value or type is not arg.type:
                made = IterArg(arg.name_hint, type, init, arg.span)
            made = made if _placed(type) else _shared(made, init.type)
            if made is not arg:
                self.vars[arg] = made
            return made

        return self.rewrite_list(loop.iter_args, carry)

    def _tensor(self, var: Var, value: Expr) -> Var:
        source, _ = _source(value)
        if source is None or not isinstance(source.type, TensorType):
            return self._own(var)
        return _shared(var, source.type)

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        copies: list[Stmt] = []
        start, stop, step = (self.rewrite(e) for e in (op.start, op.stop, op.step))
        args = self._carried(op, copies)
        loop_var = self.define(op.loop_var)
        body = self.rewrite(op.body)
        results = self._results(op.return_vars, body)
        made = op.replace(
            start=start, stop=stop, step=step, iter_args=args, loop_var=loop_var, body=body, return_vars=results,
            attrs=self.rewrite_mapping(op.attrs),
        )  # fmt: skip
        return seq([*copies, made], op.span) if copies else made

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        copies: list[Stmt] = []
        args = self._carried(op, copies)
        condition, body = self.rewrite(op.condition), self.rewrite(op.body)
        results = self._results(op.return_vars, body)
        made = op.replace(iter_args=args, condition=condition, body=body, return_vars=results)
        return seq([*copies, made], op.span) if copies else made

    def visit_if_stmt(self, op: IfStmt) -> IfStmt:
        condition = self.rewrite(op.condition)
        then_body = self.rewrite(op.then_body)
        else_body = self.rewrite(op.else_body) if op.else_body is not None else None
        results = self._results(op.return_vars, then_body, else_body)
        return op.replace(condition=condition, then_body=then_body, else_body=else_body, return_vars=results)

    def _results(self, variables: NodeList, *bodies: Any) -> NodeList:
        """Loop or branch results, each where the first body that yields something with a place has it."""
        ends = [end for end in map(yielded, bodies) if end is not None]

        def place(var: Var, i: int) -> Var:
            made = self.rebuild_var(var)
            types = [end.values[i].type for end in ends if i < len(end.values)]
            source = next((t for t in types if getattr(t, "memref", None) is not None), None)
            if source is not None and not _placed(made.type):
                made = _shared(made, source)
            if made is not var:
                self.vars[var] = made
            return made

        placed = [place(v, i) for i, v in enumerate(variables)]
        return updated(variables, placed)


def _placed(type: Any) -> bool:
    """Whether a type has a place already, from an earlier run of the pass."""
    memref = getattr(type, "memref", None)
    return memref is not None and not memref.is_pinned


def _source(value: Expr) -> tuple[Var | None, OpDecl | None]:
    """The variable whose buffer ``value`` lies in, if it makes no buffer of its own."""
    if isinstance(value, Var):
        return value, None
    decl = decl_of(value)
    if decl is None or not isinstance(value, Call):
        return None, None
    name = decl.inherits or decl.reuses
    argument = value.args[decl.arg_index(name)] if name is not None else None
    return (argument, decl) if isinstance(argument, Var) else (None, None)


def _moved(var: Any, memref: MemRef) -> Any:
    return _retyped(var, with_memref(var.type, memref))


def _shared(var: Any, source: Any) -> Any:
    """``var`` where a value of type ``source`` lies; without a place when that has none."""
    memref = getattr(source, "memref", None)
    if not isinstance(var.type, (TensorType, TileType)) or var.type.memref is memref:
        return var
    return _retyped(var, with_memref(var.type, memref))


def _retyped(var: Any, type: Any) -> Any:
    if isinstance(var, IterArg):
        return IterArg(var.name_hint, type, var.init_value, var.span)
    return Var(var.name_hint, type, var.span)


class _Declarations:
    """Allocations the author declared. Each is as large as the largest tile bound to it, times its slots."""

    def __init__(self, function: Function, target: Target) -> None:
        self._slots: dict[Var, Allocation] = {}
        self._counts: dict[Var, int] = {}
        for var in tile_definitions(function):
            type = tile_type_of(var)
            if type.memref is not None and type.memref.is_pinned:
                self._bind(var, type, type.memref, target)

    def _bind(self, var: Var, type: TileType, memref: MemRef, target: Target) -> None:
        size = tile_bytes(type, target)
        if type.memory_space is None:
            raise InternalError(f"tile '{var.name_hint}' has no memory space", var.span)
        known = self._slots.get(memref.base)
        slots = self._counts.setdefault(memref.base, memref.slot_count)
        fault = _binding_fault(var, type, memref, size, known, slots)
        if fault is not None:
            raise KernelValueError(fault[0], var.span, fault[1])
        slot = max(size or 0, known.size if known else 0)
        self._slots[memref.base] = Allocation(type.memory_space, slot, True)

    def resolve(self, memref: MemRef, placer: _Placer) -> MemRef | None:
        """The sized form of a declared reference; None for any other."""
        slot = self._slots.get(memref.base) if memref.is_pinned else None
        if slot is None:
            return None
        placer.declare(memref.base, slot._replace(size=slot.size * memref.slot_count))
        offset: Expr = offset_const(0)
        if memref.slot_index is not None:
            offset = index_mul(placer.rewrite(memref.slot_index), offset_const(slot.size))
            known = getattr(offset, "value", None)
            offset = offset if known is None else offset_const(known)
        return MemRef(
            memref.base, offset, slot.size, span=memref.span, slot_count=memref.slot_count, slot_index=memref.slot_index
        )

    def refuse_view(self, var: Var) -> None:
        memref = tile_type_of(var).memref
        if memref is not None and memref.is_pinned:
            raise KernelValueError(
                f"tile '{shown(var)}' lands in its source tile's allocation and cannot be bound to "
                f"'{memref.base.name_hint}'",
                var.span,
                "bind the tile it is a view or an in-place result of",
            )


def _binding_fault(
    var: Var, type: TileType, memref: MemRef, size: int | None, known: Allocation | None, slots: int
) -> tuple[str, str | None] | None:
    """Why ``var`` cannot be bound to the declared allocation of ``memref``, and what to do instead."""
    name, index, space = memref.base.name_hint, memref.slot_index, type.memory_space
    if size is None:
        return (
            f"tile '{shown(var)}' has a dynamic shape and cannot be bound to allocation '{name}'",
            "a declared allocation is sized at compile time: give the tile a constant shape",
        )
    if known is not None and space is not None and known.space is not space:
        return (
            f"tiles bound to one allocation must be in the same memory space: '{name}' holds a tile in "
            f"{known.space.name} and '{shown(var)}' in {space.name}",
            "declare another pl.MemRef for it",
        )
    if slots != memref.slot_count:
        return f"uses of allocation '{name}' disagree on how many slots it has: {slots} and {memref.slot_count}", None
    if isinstance(index, ConstInt) and not 0 <= index.value < slots:
        return f"slot {index.value} of allocation '{name}', which has {slots}", None
    if size * slots > _INT64_MAX:
        return f"{slots} slots of {size} bytes in allocation '{name}' overflows a 64-bit size", None
    return None
