"""Pipes, events and meetings between cores as steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from pypto.backend.target import Target
from pypto.ir.enums import CoreType
from pypto.pto import cross_ops as pto
from pypto.pto.cross_rules import BOTH_WAYS, C2V, MASKS, V2C, reserved_by, slot_count
from pypto.pto.errors import PtoError
from pypto.pto.parser import location_of
from pypto.pto.types import TileBufType

from .cores import Core
from .grid import CUBE, VECTOR, Meeting
from .rings import End, Place, Ring
from .scheduler import Steps, Wait
from .steps import BUILDERS, AnyStep, Compiler, Env, Step, guard, guard_resuming
from .window import Pointer, View, Window

_CONSUMERS = {C2V: (VECTOR, "vec"), V2C: (CUBE, "mat")}
_MEETING = {"aiv_only": (VECTOR,), "aic_only": (CUBE,), "mix": (CUBE, VECTOR)}
_CORE_TYPES = {CUBE: CoreType.CUBE, VECTOR: CoreType.VECTOR}
_DEFAULT_MODE = 2


def _reserve(self: Compiler, op: pto.ReserveBuffer) -> Step:
    out, base, loc, size = self.slot(op.results[0]), op.get("base"), op.get("location"), op.get("size")

    def reserve(env: Env) -> None:
        env[out] = env[0].place(loc, size) if base is None else base

    return reserve


def _import(self: Compiler, op: pto.ImportReservedBuffer) -> Step:
    """Where the other core has its slots is its own business here: the number is only passed on."""
    out, peer = self.slot(op.results[0]), reserved_by(op)
    base = peer.get("base", 0) if peer is not None else 0

    def take(env: Env) -> None:
        env[out] = base

    return take


def _initialize(self: Compiler, op: pto.InitializePipe) -> Step:
    number, mask, size, slots = op.get("id", 0), op.get("dir_mask"), op.get("slot_size"), slot_count(op)
    end, local = End(size, slots), op.get("local_slot_num") or slots
    through_gm = self.target.quirks.gm_pipe_buffer
    named = {role: self.slot(value) for role in op.buffers if (value := op.buffer(role)) is not None}
    if through_gm and "gm_slot_buffer" not in named:
        raise PtoError(
            f"'{op.name}': the pipes of {self.target.module_arch} go through global memory, and pipe {number} names no "
            "gm_slot_buffer",
            location_of(op),
        )

    def initialize(env: Env) -> None:
        core: Core = env[0]
        for position, direction in enumerate(d for d in MASKS if mask & MASKS[d]):
            ring = core.group.ring(number, direction, end)
            ring.sides.add(core.kind)
            if through_gm:
                skip = position * slots * size if mask == BOTH_WAYS else 0
                _bind(ring, env[named["gm_slot_buffer"]], skip)
            kind, loc = _CONSUMERS[direction]
            if core.kind == kind:
                role = f"{direction}_consumer_buf"
                if role not in named:
                    raise PtoError(f"the core that pops from {ring.name} needs {role}")
                lane = core.subblock_idx if len(ring.popped) > 1 else 0
                ring.places[lane] = Place(core.memory(loc), env[named[role]], local)

    return guard(initialize, op)


def _bind(ring: Ring, pointer: Pointer, skip: int) -> None:
    """Give a ring its bytes in global memory. Raises PtoError when the other end gave it others."""
    item = pointer.buffer.dtype.itemsize
    moved = Pointer(pointer.buffer, pointer.offset + skip // item)
    if ring.gm is not None and _address(ring.gm) != _address(moved):
        raise PtoError(f"the two ends of {ring.name} name different slots in global memory")
    ring.gm = moved


def _address(pointer: Pointer) -> int:
    return pointer.buffer.bytes.__array_interface__["data"][0] + pointer.offset * pointer.buffer.dtype.itemsize


def _ring(core: Core, op: pto.Transfer) -> Ring:
    found = core.group.rings.get((op.pipe, op.direction))
    if found is None:
        raise PtoError(f"pipe {op.pipe} is used before it is set up")
    return found


def _push(self: Compiler, op: pto.Push) -> AnyStep:
    entry, split, loc = self.slot(op.operands[0]), op.split, location_of(op)

    def push(env: Env) -> Steps:
        return _ring(env[0], op).push(env[0], env[entry], split, loc)

    return guard_resuming(push, op)


def _pop(self: Compiler, op: pto.Pop) -> AnyStep:
    type = op.results[0].type
    if not isinstance(type, TileBufType):
        raise PtoError(f"'{op.name}' gives a tile, not {type}", location_of(op))
    tile, out, split, loc = type.data, self.slot(op.results[0]), op.split, location_of(op)
    left = list(self.slots_of(op.operands))
    row = left.pop(0) if tile.v_row is None else 0
    col = left.pop(0) if tile.v_col is None else 0

    def pop(env: Env) -> Steps:
        valid = tile.v_row if tile.v_row is not None else env[row], tile.v_col if tile.v_col is not None else env[col]
        env[out] = yield from _ring(env[0], op).pop(env[0], tile, valid, split, loc)

    return guard_resuming(pop, op)


def _free(self: Compiler, op: pto.Free) -> Step:
    return guard(lambda env: _ring(env[0], op).free(env[0]), op)


def _syncall(self: Compiler, op: pto.SyncAll) -> AnyStep:
    kinds, soft, loc = _MEETING[op.core_type], op.mode == "soft", location_of(op)
    workspace, count = (*self.slots_of(op.operands), None, None)[:2]
    name = f"{op.mode} {op.core_type}"

    def meet(env: Env) -> Steps:
        core: Core = env[0]
        if core.kind not in kinds:
            raise PtoError(f"a syncall of {op.core_type} on {core.name}")
        meeting = core.group.grid.meeting(name)
        present = sum(len(core.group.grid.keys(kind)) for kind in kinds)
        if soft and workspace is not None:
            _check_workspace(env[workspace], meeting)
            present = (env[count] if count is not None else 0) or present
        elif not soft:
            _check_full(self.target, core, kinds)
        turn = meeting.rounds
        meeting.arrive(core, present)
        while meeting.rounds == turn:
            missing = present - len(meeting.arrived)
            yield Wait(meeting.event, f"{missing} of the {present} cores of a syncall of {op.core_type}", loc)
        core.after(meeting.points[turn])

    return guard_resuming(meet, op)


def _check_workspace(workspace: Pointer | View | Window, meeting: Meeting) -> None:
    """The workspace of a soft meeting holds zeros before the first."""
    if isinstance(workspace, Pointer):
        first: np.ndarray[Any, Any] = workspace.buffer.elements[workspace.offset :][:16]
    elif isinstance(workspace, View):
        first = workspace.pointer.buffer.elements[workspace.pointer.offset :][:16]
    else:
        first = workspace.array.reshape(-1)[:16]
    if first.size < 16:
        raise PtoError(f"the workspace of a syncall has 16 elements, this one {first.size}")
    if not meeting.rounds and not meeting.arrived and first.any():
        raise PtoError("the workspace of a syncall must hold zeros before the first one")


def _check_full(target: Target, core: Core, kinds: tuple[str, ...]) -> None:
    """A hard meeting waits for every core of the chip, so every one must run a block."""
    for kind in kinds:
        here, there = len(core.group.grid.keys(kind)), target.core_count(_CORE_TYPES[kind])
        if here != there:
            raise PtoError(
                f"a hard syncall waits for all {there} {kind} cores of {target.name}, and this launch has {here}",
                hint="launch a block on every core, or use mode='soft' with a workspace",
            )


def _event(self: Compiler, op: pto.SyncSet | pto.SyncWait):
    """What gives the number of an event when it runs."""
    if not op.operands:
        number = op.get("event_id")
        return lambda env: number
    slot = self.slot(op.operands[0])
    return lambda env: env[slot]


def _check_events(core: Core, event: int) -> None:
    if not core.event_workspace:
        raise PtoError("events between cores need pto.set_ffts before them", hint="pl.system.set_ffts(workspace)")
    if not 0 <= event <= 13:
        raise PtoError(f"events between cores are 0 to 13, got {event}")


def _sync_set(self: Compiler, op: pto.SyncSet) -> Step:
    number, mode = _event(self, op), op.get("ffts_mode", _DEFAULT_MODE)

    def raise_it(env: Env) -> None:
        _check_events(env[0], number(env))
        env[0].group.grid.raise_event(env[0], number(env), mode)

    return guard(raise_it, op)


def _sync_wait(self: Compiler, op: pto.SyncWait) -> AnyStep:
    number, loc = _event(self, op), location_of(op)

    def wait(env: Env) -> Steps:
        _check_events(env[0], number(env))
        return env[0].group.grid.await_event(env[0], number(env), loc)

    return guard_resuming(wait, op)


def _set_ffts(self: Compiler, op: pto.SetFfts) -> Step:
    def set_ffts(env: Env) -> None:
        env[0].event_workspace = True

    return set_ffts


def check_end(core: Core) -> None:
    """After a sanitized run: every tile popped was freed. Raises PtoError."""
    for ring in core.group.rings.values():
        if core.kind == _CONSUMERS[ring.direction][0]:
            held = ring.held[core.subblock_idx if len(ring.held) > 1 else 0]
            if held:
                raise PtoError(f"pops a tile from {ring.name} that it never frees", held[0][1])


BUILDERS.update(
    {
        pto.ReserveBuffer: _reserve,
        pto.ImportReservedBuffer: _import,
        pto.AicInitializePipe: _initialize,
        pto.AivInitializePipe: _initialize,
        pto.PushToAiv: _push,
        pto.PushToAic: _push,
        pto.PopFromAic: _pop,
        pto.PopFromAiv: _pop,
        pto.FreeFromAic: _free,
        pto.FreeFromAiv: _free,
        pto.SyncAll: _syncall,
        pto.SyncSet: _sync_set,
        pto.SyncWait: _sync_wait,
        pto.SetFfts: _set_ffts,
    }
)
