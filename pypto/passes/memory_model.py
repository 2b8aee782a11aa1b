"""What the memory passes share: how many bytes a tile takes, where a view lies, and allocation statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..backend.formats import round_up, tile_format
from ..backend.target import Target
from ..dtypes import DataType
from ..errors import InternalError, KernelValueError, UnsupportedError
from ..ir import expr as E
from ..ir.enums import MemorySpace, TileLayout
from ..ir.expr import Call, ConstInt, Expr, Var, tile_type_of
from ..ir.memref import MemRef
from ..ir.program import Function
from ..ir.scalar import binary
from ..ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    ScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
    seq,
)
from ..ir.tensor_view_semantics import index_mul
from ..ir.types import ShapedType, TensorType, TileType, Type, static_dims
from ..ir.visitor import Rewriter
from ..ops.registry import OpDecl, call, rebind

ALLOC = "tile.alloc"
_ACC_FRACTAL = 1024


class Allocation(NamedTuple):
    """An on-chip allocation: its bytes, and whether the author declared it."""

    space: MemorySpace
    size: int
    pinned: bool = False


_VERSION = re.compile(r"__(?:ssa|iter|rv|phi|idx|tile)(?:_v\d+)?(?:_mv)*$")


def shown(var: Var) -> str:
    """A variable's name as its author wrote it, without what passes append."""
    name, count = var.name_hint, 1
    while count:
        name, count = _VERSION.subn("", name)
    return name


def offset_const(value: int) -> ConstInt:
    """A byte offset as memory references hold it."""
    return ConstInt(value, DataType.INT64)


def index_add(a: Expr, b: Expr) -> Expr:
    """``a + b`` with constants folded and zeros left out."""
    x, y = getattr(a, "value", None), getattr(b, "value", None)
    if x == 0:
        return b
    if y == 0:
        return a
    return offset_const(x + y) if x is not None and y is not None else binary(E.Add, a, b)


def with_memref(type: Any, memref: MemRef | None) -> Any:
    """The tensor or tile type ``type`` in another place."""
    return type.replace(memref=memref)


def value_at(value: Any, var: Var, before: Type | None = None) -> Any:
    """``value`` with its type in the place of the variable it is assigned to, whose type was ``before``."""
    memref = getattr(var.type, "memref", None)
    type = value.type
    if isinstance(value, Var) or not isinstance(type, (TileType, TensorType)) or type.memref is memref:
        return value
    same = type is before or (isinstance(type, TileType) and type.memory_space is None)
    return value.replace(type=var.type if same else with_memref(type, memref))


def on_chip(type: Type) -> MemRef | None:
    """The place of a tile in a core's memory; None for what has none."""
    return type.memref if isinstance(type, TileType) and type.memory_space is not MemorySpace.DDR else None


def place_of(var: Var) -> MemRef:
    """The place of what is known to be a tile in a core's memory. Raises InternalError for anything else."""
    memref = on_chip(var.type)
    if memref is None:
        raise InternalError(f"'{var.name_hint}' has no place in a core's memory", var.span)
    return memref


def placed_in(tile: Expr) -> MemorySpace:
    """The memory of a tile. Raises InternalError where none is decided yet."""
    space = tile_type_of(tile).memory_space
    if space is None:
        raise InternalError("a tile without a memory: InferTileMemorySpace has not run", tile.span)
    return space


def box_of(type: TileType, target: Target, padded: bool) -> tuple[int, int]:
    """Rows and columns of a box of the tile's layout; (1, 1) when it has none.

    ``padded``: what physical extents are multiples of, which for accumulators can be more than a box.
    """
    order = tile_format(type, target)
    slayout, fractal = order.slayout, order.fractal
    if slayout is TileLayout.none_box:
        return 1, 1
    if fractal == _ACC_FRACTAL:
        in_acc = padded and type.memory_space is MemorySpace.Acc
        return target.acc_rows(type.dtype) if in_acc else target.fractal_rows, target.fractal_rows
    lines, c0 = fractal // target.fractal_row_bytes, target.cube_c0(type.dtype)
    return (lines, c0) if slayout is TileLayout.row_major else (c0, lines)


def tile_bytes(type: TileType, target: Target) -> int | None:
    """Bytes of the physical buffer of a tile, whole boxes counted; None when the shape is not constant."""
    dims = static_dims(type.shape)
    if dims is None:
        return None
    count = 1
    for dim in dims[:-2]:
        count *= dim
    if len(dims) == 1:
        count *= dims[0]
    elif dims:
        rows, cols = box_of(type, target, padded=True)
        count *= round_up(dims[-2], rows) * round_up(dims[-1], cols)
    return type.dtype.storage_bytes(count)


def tensor_bytes(type: TensorType) -> int:
    """Bytes of a packed tensor; 0 when the shape is not constant."""
    dims = static_dims(type.shape)
    if dims is None:
        return 0
    count = 1
    for dim in dims:
        count *= dim
    return type.dtype.storage_bytes(count)


class Steps(NamedTuple):
    """How a buffer's elements stand: elements between neighbouring units of each dimension, and the units.

    A unit is one element, or, of boxed layouts, a box's extent in that dimension.
    """

    steps: tuple[int, ...]
    units: tuple[int, ...]


class Place(NamedTuple):
    """Where a view lies in the buffer it is a view of: byte offset, and bytes from its first element to its last."""

    offset: Expr
    span: int


def view_place(source: TileType, steps: Steps, view: ShapedType, made: Call) -> Place | None:
    """Where a window of ``source`` lies; None for a view that is no window, but the whole buffer.

    Raises KernelValueError for a view of 4-bit elements that starts inside a byte.
    """
    decl: OpDecl = made.op.decl
    name = next((n for n in ("offset", "offsets") if n in decl.by_name), None)
    offsets = rebind(made).dims(name) if name is not None else ()
    window = static_dims(view.shape)
    if not offsets or window is None or not len(offsets) == len(window) == len(steps.steps):
        return None
    start: Expr = offset_const(0)
    for offset, step, unit in zip(offsets, steps.steps, steps.units):
        position = offset if unit == 1 else _floor_div(offset, unit)
        start = index_add(start, index_mul(position, offset_const(step)))
    span = _span(window, steps)
    return Place(_to_bytes(start, source.dtype, made), source.dtype.storage_bytes(span))


def _span(window: tuple[int, ...], steps: Steps) -> int:
    span = 1
    for unit in steps.units:
        span *= unit
    for extent, step, unit in zip(window, steps.steps, steps.units):
        span += (-(-extent // unit) - 1) * step
    return span


def _floor_div(value: Expr, by: int) -> Expr:
    known = getattr(value, "value", None)
    return offset_const(known // by) if known is not None else binary(E.FloorDiv, value, offset_const(by))


def steps_of(tile: TileType, target: Target) -> Steps | None:
    """How a whole buffer of this type is laid out; None when its shape is not constant."""
    dims = static_dims(tile.shape)
    if dims is None:
        return None
    box = box_of(tile, target, padded=False) if len(dims) >= 2 else (1, 1)
    padding = box_of(tile, target, padded=True) if len(dims) >= 2 else (1, 1)
    units = (*[1] * max(len(dims) - 2, 0), *box[-len(dims) :]) if dims else ()
    extents = list(dims)
    if len(dims) >= 2:
        extents[-2:] = [round_up(dims[-2], padding[0]), round_up(dims[-1], padding[1])]
    order = list(range(len(dims)))
    if tile_format(tile, target).blayout is TileLayout.col_major and len(dims) >= 2:
        order[-2:] = [order[-1], order[-2]]
    step, steps = box[0] * box[1], [0] * len(dims)
    for axis in reversed(order):
        steps[axis] = step
        step *= -(-extents[axis] // units[axis])
    return Steps(tuple(steps), units)


def _to_bytes(elements: Expr, dtype: DataType, made: Call) -> Expr:
    known = getattr(elements, "value", None)
    if dtype.bits != 4:
        size = dtype.get_byte()
        return index_mul(elements, offset_const(size)) if known is None else offset_const(known * size)
    if known is None or known % 2:
        raise KernelValueError(
            "Packed 4-bit slice origins must be byte-aligned: two elements share a byte",
            made.span,
            "start the slice at an even element",
        )
    return offset_const(known // 2)


def alloc_stmt(base: Var, allocation: Allocation) -> AssignStmt:
    """The statement that declares an allocation."""
    made = call(ALLOC, allocation.space, allocation.size, pinned=allocation.pinned, span=base.span)
    return AssignStmt(base, made, base.span)


def allocated_by(stmt: Stmt) -> tuple[Var, Allocation] | None:
    """The address variable and allocation a statement declares; None for any other statement."""
    if not isinstance(stmt, AssignStmt) or not isinstance(stmt.value, Call) or stmt.value.op.name != ALLOC:
        return None
    facts = stmt.value.kwargs
    return stmt.var, Allocation(facts["memory_space"], facts["size"], facts.get("pinned", False))


def allocations(body: Stmt) -> dict[Var, Allocation]:
    """What the statements at the head of a function body allocate, by address variable, in order."""
    found: dict[Var, Allocation] = {}
    for stmt in flatten_to_stmts(body):
        made = allocated_by(stmt)
        if made is None:
            break
        found[made[0]] = made[1]
    return found


def with_allocations(body: Stmt, wanted: Mapping[Var, Allocation]) -> Stmt:
    """``body`` declaring just the allocations ``wanted``, in that order; itself when it does already."""
    known = allocations(body)
    if list(known.items()) == list(wanted.items()):
        return body
    rest = flatten_to_stmts(body)[len(known) :]
    return seq([*(alloc_stmt(base, allocation) for base, allocation in wanted.items()), *rest], body.span)


def fills_buffer(type: Type, target: Target) -> bool:
    """Whether a placed tile's rows follow one another as in a buffer of its own: it is no window with gaps."""
    memref = on_chip(type)
    return memref is not None and isinstance(type, TileType) and memref.size == tile_bytes(type, target)


def copy_of(tile: Expr, stmt: Stmt) -> Call:
    """The call that copies ``tile`` within its memory, for use before ``stmt``."""
    return call("tile.move", tile, target_memory=tile_type_of(tile).memory_space, span=stmt.span)


_NAMES = {MemorySpace.Acc: "L0C accumulator"}


def check_copy(tile: Var, stmt: Stmt, target: Target) -> None:
    """Raises UnsupportedError where no instruction copies ``tile`` within its memory."""
    space = placed_in(tile)
    if space is MemorySpace.Vec or target.can_move(space, space):
        return
    name = _NAMES.get(space, space.name)
    raise UnsupportedError(
        f"cannot reconcile divergent {name} buffers: '{shown(tile)}' is needed in two of them at once, and a tile "
        f"in {space.name} cannot be copied to another one there",
        stmt.span,
        "make the value anew on each path that overwrites it, or move it to pl.Mem.Vec or store it first",
    )


def yielded(body: Stmt | None) -> YieldStmt | None:
    """The statement a loop body or branch ends with, when it hands values out."""
    stmts = flatten_to_stmts(body)
    return stmts[-1] if stmts and isinstance(stmts[-1], YieldStmt) else None


def tile_vars(expr: Any) -> list[Var]:
    """Tile variables an expression reads, in order, in calls and tuples too."""
    if isinstance(expr, Var):
        return [expr] if isinstance(expr.type, TileType) else []
    parts = _PARTS.get(expr.__class__)
    return [var for part in parts(expr) for var in tile_vars(part)] if parts is not None else []


_PARTS: dict[type, Callable[[Any], Iterable[Any]]] = {
    Call: lambda e: e.args,
    E.MakeTuple: lambda e: e.elements,
    E.Submit: lambda e: (*e.args, *e.deps),
    E.TupleGetItemExpr: lambda e: (e.tuple,),
}


def tile_definitions(function: Function) -> Iterator[Var]:
    """Every tile variable a function defines, parameters and loop and branch variables included."""
    pending: list[Any] = [*reversed(flatten_to_stmts(function.body)), *function.params]
    while pending:
        item = pending.pop()
        if isinstance(item, Var):
            if isinstance(item.type, TileType):
                yield item
        elif isinstance(item, AssignStmt):
            pending.append(item.var)
        elif isinstance(item, IfStmt):
            parts = (item.then_body, item.else_body)
            pending += [*item.return_vars, *(s for part in parts for s in reversed(flatten_to_stmts(part)))]
        elif isinstance(item, (ForStmt, WhileStmt)):
            pending += [*item.return_vars, *reversed(flatten_to_stmts(item.body)), *item.iter_args]
        elif isinstance(item, ScopeStmt):
            pending += reversed(flatten_to_stmts(item.body))


class Relocation(Rewriter):
    """Rewrites the places of tiles: ``move`` gives the new reference for each old one, or the same object.

    Types mention no variable of a type that changes, so each type object is rewritten once.
    """

    def __init__(self, move: Callable[[MemRef], MemRef]) -> None:
        super().__init__()
        self._move = move
        self._moved: dict[MemRef, MemRef] = {}
        self._types: dict[int, Any] = {}

    def rewrite_type(self, type: Type) -> Type:
        made = self._types.get(id(type))
        if made is None:
            # Holding the old type keeps its id taken.
            made = self._types[id(type)] = (self._relocated(type), type)
        return made[0]

    def _relocated(self, type: Type) -> Type:
        memref = on_chip(type)
        if memref is None:
            return type
        moved = self._moved.get(memref)
        if moved is None:
            moved = self._moved[memref] = self._move(memref)
        return type if moved is memref else with_memref(type, moved)
