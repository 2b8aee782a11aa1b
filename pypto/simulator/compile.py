"""A parsed function compiled once to Python closures over a list of values.

Every SSA value has a slot in ``env``; every operation becomes one function of ``env``. Slot 0 holds
the core.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.scf import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from xdsl.ir import Block, Operation, SSAValue

from pypto.backend.target import Target
from pypto.errors import Location
from pypto.pto import ops as pto
from pypto.pto.dialect import InstructionOp
from pypto.pto.elements import numpy_type, scalar_name
from pypto.pto.errors import PtoError
from pypto.pto.parser import location_of
from pypto.pto.runtime import to_scalar
from pypto.pto.spec import Instruction, Site
from pypto.pto.types import LocalArrayType, Tile, TileBufType, View as ViewType
from pypto.pto.verify import site_of

from .cores import Core
from .sanitize import watch
from .scalars import constant_value, scalar_function
from .tile import SimTile
from .window import Pointer, View

Env = list[Any]
Step = Callable[[Env], None]
Invoke = Callable[[str, Core, Sequence[Any]], Sequence[Any]]
"""Runs another function of the module, by name, on the same core."""


def located(error: PtoError, loc: Location | None) -> PtoError:
    """The error with the place of the operation that raised it, unless it has one."""
    return error if error.span is not None or loc is None else PtoError(error.message, loc, error.hint, error.note)


def guard(step: Step, op: Operation) -> Step:
    """``step`` with errors naming the place of ``op``."""
    loc = location_of(op)

    def guarded(env: Env) -> None:
        try:
            step(env)
        except PtoError as error:
            raise located(error, loc) from None

    return guarded


class Compiler:
    """Compiles one function; `template` is the initial ``env``, constants filled in."""

    def __init__(self, target: Target, invoke: Invoke, sanitize: bool) -> None:
        self.target = target
        self.invoke = invoke
        self.sanitize = sanitize
        self.template: Env = [None]
        self.slots: dict[SSAValue, int] = {}

    def slot(self, value: SSAValue) -> int:
        found = self.slots.get(value)
        if found is None:
            found = self.slots[value] = len(self.template)
            self.template.append(None)
        return found

    def spare(self) -> int:
        """A slot for a step's own use."""
        self.template.append(None)
        return len(self.template) - 1

    def slots_of(self, values: Sequence[SSAValue]) -> tuple[int, ...]:
        return tuple(self.slot(value) for value in values)

    def block(self, block: Block) -> list[Step]:
        """Steps of a block, without its terminator."""
        steps: list[Step] = []
        for op in block.ops:
            step = self.step(op)
            if step is not None:
                steps.append(step)
        return steps

    def step(self, op: Operation) -> Step | None:
        if isinstance(op, InstructionOp):
            return self.instruction(op)
        build = _BUILDERS.get(type(op))
        if build is not None:
            return build(self, op)
        function = scalar_function(op)
        if function is None:
            raise PtoError(f"the simulator has no '{op.name}'", location_of(op))
        return guard(_apply(function, self.slots_of(op.operands), self.slot(op.results[0])), op)

    def instruction(self, op: InstructionOp) -> Step:
        spec = op.spec
        site = site_of(op, self.target)
        values = op.values()
        absent = tuple(name not in values for name in spec.uses)
        run = spec.bind(site)
        if any(absent):
            run = _without(run, absent)
        names = tuple(name for name in spec.uses if name in values)
        if self.sanitize:
            names = tuple(values)
            run = watch(site, names, run)
        slots = tuple(self.slot(values[name]) for name in names)
        return _instruction_step(run, slots, self.slot(_measured(spec, values)), site, location_of(op))


def _without(run: Callable[..., None], absent: tuple[bool, ...]) -> Callable[..., None]:
    """``run`` called with the operands present, None for the others."""

    def call(*given: Any) -> None:
        rest = iter(given)
        run(*(None if gone else next(rest) for gone in absent))

    return call


def _measured(spec: Instruction, values: dict[str, SSAValue]) -> SSAValue:
    """The tile whose valid extents say how much work an instruction does."""
    names = [operand.name for operand in (*spec.outs, *spec.ins)]
    return next(values[name] for name in names if name in values and isinstance(values[name].type, TileBufType))


def _instruction_step(
    run: Callable[..., None], slots: tuple[int, ...], measured: int, site: Site, loc: Location | None
) -> Step:
    if len(slots) == 2:
        first, second = slots

        def two(env: Env) -> None:
            try:
                run(env[first], env[second])
            except PtoError as error:
                raise located(error, loc) from None
            env[0].executed[site, env[measured].valid] += 1

        return two
    if len(slots) == 3:
        first, second, third = slots

        def three(env: Env) -> None:
            try:
                run(env[first], env[second], env[third])
            except PtoError as error:
                raise located(error, loc) from None
            env[0].executed[site, env[measured].valid] += 1

        return three

    def general(env: Env) -> None:
        try:
            run(*[env[slot] for slot in slots])
        except PtoError as error:
            raise located(error, loc) from None
        env[0].executed[site, env[measured].valid] += 1

    return general


def _apply(function: Callable[..., Any], slots: tuple[int, ...], out: int) -> Step:
    if len(slots) == 2:
        left, right = slots

        def binary(env: Env) -> None:
            env[out] = function(env[left], env[right])

        return binary
    if len(slots) == 1:
        (only,) = slots

        def unary(env: Env) -> None:
            env[out] = function(env[only])

        return unary

    def general(env: Env) -> None:
        env[out] = function(*[env[slot] for slot in slots])

    return general


def _constant(self: Compiler, op: ConstantOp) -> None:
    # The slot must exist before the template is indexed: `slot` appends to it.
    slot = self.slot(op.results[0])
    self.template[slot] = constant_value(op)


def _nothing(self: Compiler, op: Operation) -> None:
    return None


def _assign(sources: tuple[int, ...], targets: tuple[int, ...]) -> Step | None:
    """Copy slots to slots at once, as if all were read before any is written."""
    pairs = [(source, target) for source, target in zip(sources, targets, strict=True) if source != target]
    if not pairs:
        return None
    if len(pairs) == 1:
        ((source, target),) = pairs

        def one(env: Env) -> None:
            env[target] = env[source]

        return one
    froms, tos = [source for source, _ in pairs], [target for _, target in pairs]

    def many(env: Env) -> None:
        values = [env[source] for source in froms]
        for target, value in zip(tos, values, strict=True):
            env[target] = value

    return many


def _body(self: Compiler, block: Block, targets: tuple[int, ...]) -> list[Step]:
    """Steps of a block that ends by yielding into ``targets``."""
    steps = self.block(block)
    last = block.last_op
    if isinstance(last, YieldOp):
        copy = _assign(self.slots_of(last.operands), targets)
        if copy is not None:
            steps.append(copy)
    return steps


def _for(self: Compiler, op: ForOp) -> Step:
    block = op.body.block
    lower, upper, step = self.slots_of((op.lb, op.ub, op.step))
    induction, *carried = self.slots_of(block.args)
    enter = _assign(self.slots_of(op.iter_args), tuple(carried))
    leave = _assign(tuple(carried), self.slots_of(op.results))
    body = _body(self, block, tuple(carried))

    def loop(env: Env) -> None:
        stride = env[step]
        if stride <= 0:
            raise PtoError(f"scf.for needs a positive step, got {stride}")
        if enter is not None:
            enter(env)
        for index in range(env[lower], env[upper], stride):
            env[induction] = index
            for run in body:
                run(env)
        if leave is not None:
            leave(env)

    return guard(loop, op)


def _if(self: Compiler, op: IfOp) -> Step:
    condition = self.slot(op.cond)
    results = self.slots_of(op.results)
    then = _body(self, op.true_region.block, results)
    otherwise = _body(self, op.false_region.block, results) if op.false_region.blocks else []

    def branch(env: Env) -> None:
        for run in then if env[condition] else otherwise:
            run(env)

    return branch


def _while(self: Compiler, op: WhileOp) -> Step:
    before, after = op.before_region.block, op.after_region.block
    enter = _assign(self.slots_of(op.arguments), self.slots_of(before.args))
    test = self.block(before)
    decision = before.last_op
    if decision is None:
        raise PtoError("scf.while without scf.condition", location_of(op))
    condition, *passed = self.slots_of(decision.operands)
    forward = _assign(tuple(passed), self.slots_of(after.args))
    leave = _assign(tuple(passed), self.slots_of(op.results))
    body = _body(self, after, self.slots_of(before.args))

    def loop(env: Env) -> None:
        if enter is not None:
            enter(env)
        while True:
            for run in test:
                run(env)
            if not env[condition]:
                break
            if forward is not None:
                forward(env)
            for run in body:
                run(env)
        if leave is not None:
            leave(env)

    return loop


def _call(self: Compiler, op: CallOp) -> Step:
    name = op.callee.string_value()
    arguments = self.slots_of(op.operands)
    results = self.slots_of(op.results)
    invoke = self.invoke

    def call(env: Env) -> None:
        returned = invoke(name, env[0], [env[slot] for slot in arguments])
        for slot, value in zip(results, returned, strict=True):
            env[slot] = value

    return guard(call, op)


def _make_view(self: Compiler, op: pto.MakeTensorView) -> Step:
    pointer, out = self.slot(op.operands[0]), self.slot(op.results[0])
    shape, strides = self.slots_of(op.shape), self.slots_of(op.strides)
    layout = op.layout or "nd"

    def make(env: Env) -> None:
        extents = tuple([env[slot] for slot in shape])
        env[out] = View(env[pointer], extents, tuple([env[slot] for slot in strides]), layout)

    return make


def _partition(self: Compiler, op: pto.PartitionView) -> Step:
    source, out = self.slot(op.operands[0]), self.slot(op.results[0])
    offsets, sizes = self.slots_of(op.offsets), self.slots_of(op.sizes)
    stated = _view_type(op).shape

    def window(env: Env) -> None:
        extents = tuple([env[slot] for slot in sizes])
        if any(want is not None and want != got for want, got in zip(stated, extents, strict=True)):
            raise PtoError(f"window of {extents} where the type says {stated}")
        env[out] = env[source].window(tuple([env[slot] for slot in offsets]), extents)

    return guard(window, op)


def _view_type(op: pto.PartitionView) -> ViewType:
    data = getattr(op.results[0].type, "data", None)
    if not isinstance(data, ViewType):
        raise PtoError(f"expected a view, got {op.results[0].type}", location_of(op))
    return data


def _tile_type(value: SSAValue) -> Tile:
    if not isinstance(value.type, TileBufType):
        raise PtoError(f"expected a tile, got {value.type}")
    return value.type.data


def _alloc(self: Compiler, op: pto.AllocTile) -> Step:
    tile, out = _tile_type(op.results[0]), self.slot(op.results[0])
    addr = self.slot(op.addr) if op.addr is not None else None
    row, col = (self.slot(value) if value is not None else None for value in op.valid)
    v_row, v_col = tile.v_row, tile.v_col
    placed = self.spare() if addr is None else 0

    def allocate(env: Env) -> None:
        core = env[0]
        if addr is not None:
            start = env[addr]
        else:
            # A tile in a loop keeps its place: only the first time round takes new bytes.
            start = env[placed]
            if start is None:
                start = env[placed] = core.place(tile)
        rows = v_row if row is None else env[row]
        cols = v_col if col is None else env[col]
        env[out] = core.tile(tile, start, (rows, cols))

    return guard(allocate, op)


def _subview(self: Compiler, op: pto.Subview) -> Step:
    tile, out = _tile_type(op.results[0]), self.slot(op.results[0])
    source, row, col, *valid = self.slots_of(op.operands)

    def take(env: Env) -> None:
        if valid:
            extents = (min(env[valid[0]], tile.rows), min(env[valid[1]], tile.cols))
        else:
            extents = (tile.rows if tile.v_row is None else tile.v_row, tile.cols if tile.v_col is None else tile.v_col)
        env[out] = env[source].sub(tile, env[row], env[col], extents)

    return guard(take, op)


def _recast_valid(tile: Tile, source: SimTile) -> tuple[int, int]:
    """Valid extents of a reshaped tile: as its type says, an open one from the valid elements of the source."""
    rows, cols = source.valid
    if tile.v_row is not None and tile.v_col is not None:
        return tile.v_row, tile.v_col
    if tile.v_row is not None:
        return tile.v_row, rows * cols // max(1, tile.v_row)
    if tile.v_col is not None:
        return rows * cols // max(1, tile.v_col), tile.v_col
    if (tile.rows, tile.cols) == (source.type.rows, source.type.cols):
        return rows, cols
    if (tile.rows, tile.cols) == (source.type.cols, source.type.rows):
        return cols, rows
    return tile.rows, tile.cols


def _recast(self: Compiler, op: Operation) -> Step:
    tile, out = _tile_type(op.results[0]), self.slot(op.results[0])
    source = self.slot(op.operands[0])

    def recast(env: Env) -> None:
        env[out] = env[source].recast(tile, _recast_valid(tile, env[source]))

    return guard(recast, op)


def _set_valid(self: Compiler, op: pto.SetValidShape) -> Step:
    source, row, col = self.slots_of(op.operands)
    return guard(lambda env: env[source].set_valid(env[row], env[col]), op)


def _valid(pick: Callable[[tuple[int, int]], tuple[int, ...]]):
    def build(self: Compiler, op: Operation) -> Step:
        source, outs = self.slot(op.operands[0]), self.slots_of(op.results)

        def read(env: Env) -> None:
            for slot, value in zip(outs, pick(env[source].valid), strict=True):
                env[slot] = value

        return read

    return build


def _add_pointer(self: Compiler, op: pto.AddPtr) -> Step:
    return _apply(
        lambda pointer, offset: Pointer(pointer.buffer, pointer.offset + offset),
        self.slots_of(op.operands),
        self.slot(op.results[0]),
    )


def _python(value: Any) -> Any:
    """A numpy integer as a Python int; floats stay numpy scalars."""
    return int(value) if value.dtype.kind in "iub" else value


def _load_scalar(self: Compiler, op: pto.LoadScalar) -> Step:
    def load(pointer: Pointer, offset: int) -> Any:
        return _python(pointer.buffer.elements[pointer.at(offset)])

    return guard(_apply(load, self.slots_of(op.operands), self.slot(op.results[0])), op)


def _store_scalar(self: Compiler, op: pto.StoreScalar) -> Step:
    value, pointer, offset = self.slots_of(op.operands)

    def store(env: Env) -> None:
        buffer = env[pointer].buffer
        if not buffer.elements.flags.writeable:
            raise PtoError(f"{buffer.name} is read-only")
        buffer.elements[env[pointer].at(env[offset])] = to_scalar(env[value], buffer.dtype)

    return guard(store, op)


def _position(tile: Tile, offset: int) -> tuple[int, int]:
    if not 0 <= offset < tile.rows * tile.cols:
        raise PtoError(f"element {offset} of a tile of {tile.rows * tile.cols}")
    if tile.blayout == "row_major":
        return divmod(offset, tile.cols)
    col, row = divmod(offset, tile.rows)
    return row, col


def _get_value(self: Compiler, op: pto.GetValue) -> Step:
    def get(tile: SimTile, offset: int) -> Any:
        row, col = _position(tile.type, offset)
        return _python(tile.read_at(row, col, 1, 1)[0, 0])

    return guard(_apply(get, self.slots_of(op.operands), self.slot(op.results[0])), op)


def _set_value(self: Compiler, op: pto.SetValue) -> Step:
    tile, offset, value = self.slots_of(op.operands)
    dtype = numpy_type(scalar_name(op.operands[2].type))

    def put(env: Env) -> None:
        row, col = _position(env[tile].type, env[offset])
        scalar = to_scalar(env[value], env[tile].type.numpy if dtype.kind in "iu" else dtype)
        env[tile].write_at(row, col, _single(scalar, env[tile].type.numpy))

    return guard(put, op)


def _single(scalar: Any, dtype: np.dtype) -> np.ndarray:
    return np.full((1, 1), scalar, dtype)


def _declare_array(self: Compiler, op: pto.DeclareLocalArray) -> Step:
    shape, out = _array_type(op.results[0]), self.slot(op.results[0])
    size = math.prod(extent or 0 for extent in shape.shape) * shape.numpy.itemsize

    def declare(env: Env) -> None:
        env[out] = np.full(size, env[0].poison, np.uint8).view(shape.numpy).reshape([n or 0 for n in shape.shape])

    return declare


def _array_type(value: SSAValue) -> ViewType:
    if not isinstance(value.type, LocalArrayType):
        raise PtoError(f"expected a local array, got {value.type}")
    return value.type.data


def _checked_index(array: np.ndarray, indices: Sequence[int]) -> tuple[int, ...]:
    if not all(0 <= index < extent for index, extent in zip(indices, array.shape, strict=True)):
        raise PtoError(f"element {list(indices)} is outside an array of {list(array.shape)}")
    return tuple(indices)


def _array_get(self: Compiler, op: pto.LocalArrayGet) -> Step:
    def get(array: np.ndarray, *indices: int) -> Any:
        return _python(array[_checked_index(array, indices)])

    return guard(_apply(get, self.slots_of(op.operands), self.slot(op.results[0])), op)


def _array_set(self: Compiler, op: pto.LocalArraySet) -> Step:
    array, *indices, value = self.slots_of(op.operands)

    def put(env: Env) -> None:
        target = env[array]
        target[_checked_index(target, [env[slot] for slot in indices])] = to_scalar(env[value], target.dtype)

    return guard(put, op)


def _query(name: str):
    def build(self: Compiler, op: Operation) -> Step:
        out = self.slot(op.results[0])

        def read(env: Env) -> None:
            env[out] = getattr(env[0], name)

        return read

    return build


def _view_figure(what: str):
    def build(self: Compiler, op: Operation) -> Step:
        def read(view: View, axis: int) -> int:
            figures = getattr(view, what)
            if not 0 <= axis < len(figures):
                raise PtoError(f"axis {axis} of a view of rank {len(figures)}")
            return figures[axis]

        return guard(_apply(read, self.slots_of(op.operands), self.slot(op.results[0])), op)

    return build


_BUILDERS: dict[type[Operation], Callable[[Compiler, Any], Step | None]] = {
    ConstantOp: _constant,
    YieldOp: _nothing,
    ConditionOp: _nothing,
    ReturnOp: _nothing,
    ForOp: _for,
    IfOp: _if,
    WhileOp: _while,
    CallOp: _call,
    pto.MakeTensorView: _make_view,
    pto.PartitionView: _partition,
    pto.AllocTile: _alloc,
    pto.Subview: _subview,
    pto.Reshape: _recast,
    pto.Bitcast: _recast,
    pto.SetValidShape: _set_valid,
    pto.GetValidShape: _valid(lambda valid: valid),
    pto.TileValidRows: _valid(lambda valid: valid[:1]),
    pto.TileValidCols: _valid(lambda valid: valid[1:]),
    pto.AddPtr: _add_pointer,
    pto.LoadScalar: _load_scalar,
    pto.StoreScalar: _store_scalar,
    pto.GetValue: _get_value,
    pto.SetValue: _set_value,
    pto.DeclareLocalArray: _declare_array,
    pto.LocalArrayGet: _array_get,
    pto.LocalArraySet: _array_set,
    pto.GetBlockIdx: _query("block_idx"),
    pto.GetBlockNum: _query("block_num"),
    pto.GetSubblockIdx: _query("subblock_idx"),
    pto.GetSubblockNum: _query("subblock_num"),
    pto.ViewDim: _view_figure("shape"),
    pto.ViewStride: _view_figure("strides"),
}


class Function:
    """A function compiled for a target: run it with the values of its parameters."""

    def __init__(self, op: FuncOp, target: Target, invoke: Invoke, sanitize: bool = False) -> None:
        compiler = Compiler(target, invoke, sanitize)
        block = op.body.block
        self.arguments = compiler.slots_of(block.args)
        self.steps = compiler.block(block)
        last = block.last_op
        self.returns = compiler.slots_of(last.operands) if isinstance(last, ReturnOp) else ()
        self.template = compiler.template

    def call(self, core: Core, values: Sequence[Any]) -> list[Any]:
        """Run on ``core``; gives the values returned."""
        env = self.template.copy()
        env[0] = core
        for slot, value in zip(self.arguments, values, strict=True):
            env[slot] = value
        for step in self.steps:
            step(env)
        return [env[slot] for slot in self.returns]
