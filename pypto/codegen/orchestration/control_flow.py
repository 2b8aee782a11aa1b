"""Loops and branches: values they carry or merge are C++ variables, or names of one and the same tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...dtypes import DataType
from ...errors import InternalError
from ...ir.enums import ForKind
from ...ir.expr import ConstInt, Expr, IterArg, Var
from ...ir.naming import written_name
from ...ir.stmt import ForStmt, IfStmt, Stmt, WhileStmt, YieldStmt
from ...ir.types import ArrayType, ScalarType, TensorType
from ...ir.visitor import find_all
from ..context import Op
from . import arrays
from .blocks import Block, Handle
from .cpp import cpp, float_text, scalar_type

if TYPE_CHECKING:
    from .builder import OrchestrationBuilder


class Slot(NamedTuple):
    """A carried or merged value: ``handle`` receives it, ``seen`` is what the body reads.

    ``assigned`` says that each yield is an assignment; ``index`` is the element of a fence that this iteration's task
    id goes to. A slot without ``handle`` is an array that both sides of a branch write in place.
    """

    handle: Handle | None
    seen: Handle | None
    assigned: bool
    index: str | None = None


class Carrying:
    """A loop or branch being written: where its yields go, and what they were."""

    def __init__(self, slots: Sequence[Slot], outside: Block, loop: ForStmt | None = None, place: str = "") -> None:
        self.slots, self.outside = slots, outside
        self.loop, self.place = loop, place
        self.yielded: list[list[Handle | None]] = []

    def finish(self, builder: OrchestrationBuilder, stmt: YieldStmt) -> None:
        """Hand the yielded values to the slots."""
        self.yielded.append([None if isinstance(v.type, ScalarType) else builder.tensor(v) for v in stmt.values])
        self._refuse_exchange(builder, stmt)
        if self.loop is not None:
            builder.fan_ins.collect(self.loop, self.place)
        pairs = list(zip(self.slots, stmt.values))
        assigned = [(s, v) for s, v in pairs if s.assigned]
        texts = [_text(builder, v) for _, v in assigned]
        targets = [s.handle.text for s, _ in assigned if s.handle is not None]
        if any(target in text for i, text in enumerate(texts) for target in targets[:i]):
            texts = [_snapshot(builder, v, target, text) for (_, v), target, text in zip(assigned, targets, texts)]
        for target, text in zip(targets, texts):
            if target != text:
                builder.emit(Op("set", target=target, value=text))
        for slot, value in pairs:
            if not slot.assigned and slot.handle is not None:
                _keep(builder, slot, slot.handle, value)

    def _refuse_exchange(self, builder: OrchestrationBuilder, stmt: YieldStmt) -> None:
        """Arrays are carried in place: one cannot become another that is carried, too."""
        carried = [s.handle.text for s in self.slots if s.handle is not None and s.handle.extent]
        for slot, value, found in zip(self.slots, stmt.values, self.yielded[-1]):
            if slot.handle is None or found is None or found.text == slot.handle.text:
                continue
            if found.extent and found.text in carried:
                raise builder.refused(
                    "arrays are exchanged between iterations", value, "copy the elements that are needed one by one"
                )


def _text(builder: OrchestrationBuilder, value: Expr) -> str:
    return builder.scalars.text(value) if isinstance(value.type, ScalarType) else builder.tensor(value).text


def _snapshot(builder: OrchestrationBuilder, value: Expr, target: str, text: str) -> str:
    """A copy of a value that is read after a variable in it was assigned."""
    name = builder.names.take(f"{target}_next")
    builder.emit(Op("declare", type=_kind(value), name=name, value=text))
    return name


def _kind(value: Expr) -> str:
    return "ChipTensor" if isinstance(value.type, TensorType) else scalar_type(value.dtype, value.span)


def _keep(builder: OrchestrationBuilder, slot: Slot, handle: Handle, value: Expr) -> None:
    """A value that stays where it is: nothing to write, unless it is an array of its own, or goes into one."""
    source = builder.handle(value, value) if isinstance(value, Var) else None
    if slot.index is not None and (source is None or not source.extent):
        builder.emit(Op("set", target=cpp("element", handle.text, slot.index), value=_text(builder, value)))
    elif handle.extent:
        arrays.hand_on(builder, handle, value)
    elif _text(builder, value) != handle.text:
        raise InternalError("codegen met a carried value that changes, but is not classified so", value.span)


# Loops


def loop_for(builder: OrchestrationBuilder, stmt: ForStmt) -> None:
    start, stop, step = (builder.scalars.text(e) for e in (stmt.start, stmt.stop, stmt.step))
    name = builder.names.take(stmt.loop_var.name_hint)
    slots = [_carried(builder, stmt, i, cpp("slot", name, start, step)) for i in range(len(stmt.iter_args))]
    counts_up = isinstance(stmt.step, ConstInt) and stmt.step.value > 0
    natural = counts_up and builder.scalars.natural(stmt.start)
    builder.frozen.append({n for e in (stmt.stop, stmt.step) for n in find_all(e, Var)})
    builder.values[stmt.loop_var] = Handle(name, builder.block, natural=natural)
    builder.fan_ins.begin(stmt)
    body = _body(builder, stmt, slots, cpp("slot", name, start, step))
    builder.frozen.pop()
    condition = _condition(stmt, name, stop, step)
    builder.emit(Op("loop_for", var=name, start=start, condition=condition, step=step, body=body))
    builder.fan_ins.end(stmt)
    _results(builder, stmt.return_vars, slots)


def _condition(stmt: ForStmt, name: str, stop: str, step: str) -> str:
    """When the loop goes on; a step of zero never lets it start."""
    up, down = cpp("compare", name, "<", stop), cpp("compare", name, ">", stop)
    if isinstance(stmt.step, ConstInt):
        return "false" if stmt.step.value == 0 else up if stmt.step.value > 0 else down
    falling = cpp("binary", "&&", cpp("binary", "<", step, "0"), down)
    return cpp("choose", cpp("binary", ">", step, "0"), up, falling)


def loop_while(builder: OrchestrationBuilder, stmt: WhileStmt) -> None:
    slots = [_variable(builder, arg, result) for arg, result in zip(stmt.iter_args, stmt.return_vars)]
    for arg, slot in zip(stmt.iter_args, slots):
        _bind(builder, arg, slot.seen)
    condition = builder.scalars.text(stmt.condition)
    body = _body(builder, stmt, slots)
    builder.emit(Op("loop_while", condition=condition, body=body))
    _results(builder, stmt.return_vars, slots)


def _body(
    builder: OrchestrationBuilder, stmt: ForStmt | WhileStmt, slots: Sequence[Slot], place: str = ""
) -> list[Op]:
    """The statements of an iteration, which has its ids of tasks at ``place``."""
    carried = {s.handle.text for s in slots if s.handle is not None}
    mutable = {s.handle.text for s in slots if s.handle is not None and s.assigned} - builder.carries
    builder.carries |= mutable
    builder.loops.append(Carrying(slots, builder.block, stmt if isinstance(stmt, ForStmt) else None, place))
    before = builder.contents.state()
    with builder.inside() as block:
        for arg, slot in zip(stmt.iter_args, slots):
            _bind(builder, arg, slot.seen)
        builder.statements(stmt.body)
    builder.loops.pop()
    builder.carries -= mutable
    for name in builder.contents.changed(before):
        if name not in carried and not builder.contents.is_known(name, before, builder.values):
            raise InternalError(f"array {name!r} is written to in a loop that does not carry it", stmt.span)
    return block.finish()


def _bind(builder: OrchestrationBuilder, var: Var, handle: Handle | None) -> None:
    if handle is None:
        raise InternalError(f"{var.name_hint!r} has no value", var.span)
    if handle.extent:
        arrays.bind(builder, var, handle)
    else:
        builder.bind(var, handle)


def _carried(builder: OrchestrationBuilder, stmt: ForStmt, index: int, place: str) -> Slot:
    arg, result = stmt.iter_args[index], stmt.return_vars[index]
    size = stmt.attrs.get(f"iter_arg_array_size_{index}", 0)
    if size:
        return _fence(builder, stmt, index, int(size), place)
    if isinstance(arg.type, ArrayType):
        return _in_place(builder, arg)
    rebind = stmt.attrs.get(f"iter_arg_rebind_{index}")
    if rebind is None:
        raise InternalError(f"carried value {written_name(arg.name_hint)!r} is not classified", stmt.span)
    if rebind:
        return _variable(builder, arg, result)
    same = _initial(builder, arg)
    return Slot(same, same, False)


def _in_place(builder: OrchestrationBuilder, arg: IterArg) -> Slot:
    array = builder.tensor(arg.init_value)
    return Slot(array, array, False)


def _initial(builder: OrchestrationBuilder, arg: IterArg) -> Handle:
    init = arg.init_value
    if isinstance(init, Var):
        return builder.handle(init, arg)
    return Handle(builder.scalars.text(init), builder.root, natural=builder.scalars.natural(init))


def _variable(builder: OrchestrationBuilder, arg: IterArg, result: Var) -> Slot:
    """A C++ variable that carries a value, declared ahead of the loop with its initial value."""
    if isinstance(arg.type, ArrayType):
        return _in_place(builder, arg)
    init = _initial(builder, arg)
    made = _declare(builder, result, init, "declare", type=_kind(result), value=init.text)
    return Slot(made, made, True)


def _declare(builder: OrchestrationBuilder, var: Var, init: Handle, construct: str, **parts: Any) -> Handle:
    """Declare, as ``construct`` of ``parts``, a variable that a loop assigns.

    In a manual scope it goes ahead of the scope, because what comes after the scope may read it; a variable that may
    have changed by then gets its initial value in the scope again.
    """
    name = builder.names.take(var.name_hint, versioned=True)
    home, here = builder.block.home, builder.block
    if init.block.depth > home.depth:
        home = here
    home.ops.append(Op(construct, name=name, **parts))
    if home is not here and init.guarded:
        here.ops.append(Op("set", target=name, value=init.text))
    return Handle(name, home, guarded=True)


def _fence(builder: OrchestrationBuilder, stmt: ForStmt, index: int, size: int, place: str) -> Slot:
    """The ids of one task an iteration. Iterations that run in parallel see those from before the loop."""
    init = _initial(builder, stmt.iter_args[index])
    source = cpp("element", init.text, "__init_i") if init.extent else init.text
    result = stmt.return_vars[index]
    made = _declare(builder, result, init, "array", type="PTO2TaskId", extent=size, fill=source)._replace(extent=size)
    made = made._replace(version=builder.contents.change(made.text))
    return Slot(made, init if stmt.kind is ForKind.Parallel else made, False, place)


def _results(builder: OrchestrationBuilder, results: Sequence[Var], slots: Sequence[Slot]) -> None:
    for var, slot in zip(results, slots):
        _bind(builder, var, slot.handle)


# Branches


def branch(builder: OrchestrationBuilder, stmt: IfStmt) -> None:
    condition = builder.scalars.text(stmt.condition)
    carrying = Carrying([_phi(builder, var) for var in stmt.return_vars], builder.block)
    home = builder.block.home
    place = len(home.ops)
    before = builder.contents.state()
    then_body = _side(builder, stmt.then_body, carrying)
    after_then = builder.contents.state()
    builder.contents.restore(before)
    else_body = _side(builder, stmt.else_body, carrying)
    builder.contents.join(builder.values, before, after_then, builder.contents.state())
    builder.emit(Op("branch", condition=condition, then_body=then_body, else_body=else_body))
    declarations = []
    for i, (var, slot) in enumerate(zip(stmt.return_vars, carrying.slots)):
        sides = [y[i] for y in carrying.yielded]
        if slot.handle is not None:
            value = _first_value(builder, var, slot.handle, sides)
            declarations.append(Op("declare", type=_kind(var), name=slot.handle.text, value=value))
        _bind(builder, var, slot.handle or _same_array(builder, var, sides))
    home.ops[place:place] = declarations


def _side(builder: OrchestrationBuilder, body: Stmt | None, carrying: Carrying) -> list[Op]:
    builder.loops.append(carrying)
    with builder.inside() as block:
        builder.statements(body)
    builder.loops.pop()
    return block.finish()


def _phi(builder: OrchestrationBuilder, var: Var) -> Slot:
    """The variable both sides assign, declared once they are written; an array has none."""
    if isinstance(var.type, ArrayType):
        return Slot(None, None, False)
    name = builder.names.take(var.name_hint, versioned=True)
    return Slot(Handle(name, builder.block.home, guarded=True), None, True)


def _first_value(builder: OrchestrationBuilder, var: Var, made: Handle, sides: Sequence[Handle | None]) -> str:
    """What to declare a merged variable with: zero, or a tensor that either side, or else anyone, has."""
    if not isinstance(var.type, TensorType):
        return _zero(var.dtype)
    for known in (*sides, *(Handle(op.name, builder.root) for op in builder.unit.tensors)):
        if known is not None and known.block.open and known.block.depth <= made.block.depth:
            return known.text
    raise builder.refused(
        f"{written_name(var.name_hint)!r} is another tensor on each side, and there is none before the branch",
        var,
        "create it before the branch and write to it on both sides",
    )


def _zero(dtype: DataType) -> str:
    if dtype is DataType.TASK_ID:
        return cpp("invalid_task")
    if dtype is DataType.BOOL:
        return "false"
    return float_text(0.0) if dtype.is_float() else "0"


def _same_array(builder: OrchestrationBuilder, var: Var, sides: Sequence[Handle | None]) -> Handle:
    """The array both sides wrote in place."""
    found = sides[0]
    if found is None or any(s is None or s.text != found.text for s in sides):
        raise builder.refused(
            f"{written_name(var.name_hint)!r} is another array on each side of the branch",
            var,
            "write to one array on both sides",
        )
    return found
