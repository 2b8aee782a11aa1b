"""Operators on the machine: barriers, events, tasks, cross-core pipes and their buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..dtypes import DataType
from ..ir.expr import Var
from ..ir.types import AsyncEventType, AsyncSessionType, PrefetchAsyncContextType, ScalarType, TensorType, Type
from .registry import ArgEffect, Bound, Core, Pto, attr_kind, declare, no_result
from .rules import dims_text, scalar_result, shaped, value

D = DataType
_EFFECT: dict[str, Any] = {"pure": False}

# Barriers and flags.

for _name, _which in (("bar_all", "ALL"), ("bar_v", "V"), ("bar_m", "M")):
    declare(
        f"system.{_name}",
        "",
        no_result,
        f"Wait for {'every pipe' if _which == 'ALL' else f'pipe {_which}'} of the core.",
        pto=Pto("pto.barrier", form=_name),
        **_EFFECT,
    )

declare(
    "system.fence",
    "",
    no_result,
    "Order this core's accesses to global memory.",
    pto=Pto("pto.fence.barrier_all", form="fence"),
    **_EFFECT,
)


def _cacheinvalid(b: Bound) -> Type:
    if b["tensor"] is None:
        if b["shapes"] is not None or b["offsets"] is not None:
            raise b.fail("without a tensor, the whole-GM form takes no shapes/offsets", "name the tensor of the region")
        return no_result(b)
    t = b.type("tensor")
    for name in ("shapes", "offsets"):
        if len(b.dims(name)) != len(t.shape):
            raise b.fail(f"{name} must match tensor rank {len(t.shape)} of {shaped(t)}, got {dims_text(b.dims(name))}")
    return no_result(b)


declare(
    "system.cacheinvalid",
    "in tensor: tensor?, in shapes: dims?, in offsets: dims?",
    _cacheinvalid,
    "Invalidate the cache line at the start of a region of ``tensor``, or, without one, all global memory's lines.",
    pto=Pto("pto.cmo.cacheinvalid", form="cacheinvalid"),
    **_EFFECT,
)

_CORE_TYPES = ("aiv_only", "aic_only", "mix")


def _soft_workspace(kwargs: Mapping[str, Any]) -> ArgEffect:
    return ArgEffect.ReadWrite if kwargs.get("mode") == "soft" else ArgEffect.Read


def _syncall(b: Bound) -> Type:
    if b["core_type"] not in _CORE_TYPES:
        raise b.fail(f"requires core_type to be one of {', '.join(_CORE_TYPES)}, got {b['core_type']!r}")
    if b["mode"] not in ("hard", "soft"):
        raise b.fail(f"requires mode to be hard or soft, got {b['mode']!r}")
    soft = b["mode"] == "soft"
    if soft != (b["gm_workspace"] is not None):
        raise b.fail(f"mode {b['mode']} {'needs' if soft else 'takes no'} gm_workspace")
    if soft:
        t = b.type("gm_workspace")
        if t.dtype is not D.INT32:
            raise b.fail(f"requires gm_workspace of at least 16 INT32 elements, got {shaped(t)}")
    cores = b["used_cores"]
    if soft != (cores is not None):
        needs = "needs explicit used_cores: how many cores, or 0 for all launched" if soft else "takes no used_cores"
        raise b.fail(f"mode {b['mode']} {needs}")
    count = value(cores) if cores is not None else None
    if count is not None and not 0 <= count < 1 << 31:
        raise b.fail(f"requires used_cores in the non-negative INT32 range, got {count}")
    return no_result(b)


declare(
    "system.syncall",
    "attr mode: str = 'hard', attr core_type: str! = 'mix', in* gm_workspace: tensor?, "
    "in* used_cores: scalar? like INT32",
    _syncall,
    "Wait for all cores of ``core_type``: by hardware at full occupancy (hard), or through zeroed ``gm_workspace`` "
    "(soft). ``used_cores`` says how many cores a soft one waits for, 0 all that were launched.",
    effects={"gm_workspace": _soft_workspace},
    pto=Pto("pto.syncall", form="syncall"),
    **_EFFECT,
)

for _name, _what in (("sync_src", "Set"), ("sync_dst", "Wait for")):
    declare(
        f"system.{_name}",
        "attr set_pipe: PipeType!, attr wait_pipe: PipeType!, attr event_id: int!",
        no_result,
        f"{_what} flag ``event_id`` from pipe ``set_pipe`` to ``wait_pipe`` of the core.",
        pto=Pto("pto.set_flag" if _name == "sync_src" else "pto.wait_flag", form=_name),
        **_EFFECT,
    )


@attr_kind("LaneType")
def _lane(v: Any) -> str:
    if v in ("aic", "aiv"):
        return v
    raise ValueError(f"core_type must be 'aic' or 'aiv', got {v!r}")


def _event(b: Bound) -> Type:
    event, dynamic = b["event_id"], b["dynamic_event"]
    if (event is None) == (dynamic is None):
        raise b.fail("requires one event_id, a number or an index value")
    if dynamic is not None and dynamic.dtype not in (D.INDEX, D.INT64):
        raise b.fail(f"requires a dynamic event_id of ScalarType(INDEX), got {dynamic.type}")
    if event is not None and not 0 <= event <= 13:
        raise b.fail(f"requires event_id in [0, 13], got {event}")
    mode = b["ffts_mode"] if "ffts_mode" in b.values else None
    if mode is not None and mode not in (0, 1, 2):
        raise b.fail(f"requires ffts_mode to be 0, 1 or 2, got {mode}")
    return no_result(b)


declare(
    "system.sync_set",
    "in dynamic_event: index?, attr pipe: PipeType!, attr event_id: int? = None, attr ffts_mode: int? = None, "
    "attr core_type: LaneType? = None",
    _event,
    "Set cross-core event ``event_id`` (0 to 13) after ``pipe``.",
    pto=Pto("pto.sync.set", form="sync_set"),
    **_EFFECT,
)
declare(
    "system.sync_wait",
    "in dynamic_event: index?, attr pipe: PipeType!, attr event_id: int? = None, attr core_type: LaneType? = None",
    _event,
    "Have ``pipe`` wait for cross-core event ``event_id`` (0 to 13).",
    pto=Pto("pto.sync.wait", form="sync_wait"),
    **_EFFECT,
)


def _set_ffts(b: Bound) -> Type:
    t = b.type("workspace")
    size = value(t.shape[0]) if len(t.shape) == 1 else 0
    if t.dtype is not D.INT64 or (size is not None and size < 256):
        raise b.fail(f"requires a 1-D INT64 workspace of at least 256 elements, got {shaped(t)}")
    return no_result(b)


declare(
    "system.set_ffts",
    "in workspace: tensor",
    _set_ffts,
    "Name the workspace of the cross-core event unit, before the first event of a function.",
    pto=Pto("pto.set_ffts", form="set_ffts"),
    **_EFFECT,
)

# Tasks and launches.

_TASK = ScalarType(D.TASK_ID)
declare("system.task_invalid", "", lambda b: _TASK, "The id of no task.", pto=Pto(form="orchestration"))
declare(
    "system.task_dummy",
    "",
    lambda b: _TASK,
    "A task that does nothing but wait for its dependencies.",
    pto=Pto(form="orchestration"),
    **_EFFECT,
)


def _is_valid(b: Bound) -> Type:
    if b.type("task").dtype is not D.TASK_ID:
        raise b.fail(f"requires a TASK_ID, got {b.type('task')}")
    return ScalarType(D.BOOL)


declare(
    "system.task_is_valid",
    "in task: scalar",
    _is_valid,
    "Whether ``task`` names a task.",
    pto=Pto(form="orchestration"),
)
for _name, _what in (("cluster", "core groups"), ("aiv", "vector cores")):
    declare(
        f"system.available_{_name}_count",
        "",
        scalar_result(D.INT32),
        f"How many {_what} the run has: a launch width that fills the device.",
        pto=Pto(form="orchestration"),
    )

# Cross-core buffers and pipes.

_I32 = scalar_result(D.INT32)


def _reserve(b: Bound) -> Type:
    if b["size"] <= 0:
        raise b.fail(f"requires a positive size, got {b['size']}")
    return _I32(b)


declare(
    "system.reserve_buffer",
    "attr name: str!, attr size: int!, attr base: int+ = -1",
    _reserve,
    "Reserve ``size`` bytes on the consumer's core as ring buffer ``name``; ``base`` -1 lets the compiler place it.",
    pto=Pto("pto.reserve_buffer", form="reserve_buffer"),
    **_EFFECT,
)
declare(
    "system.import_peer_buffer",
    "attr name: str!, attr peer_func: str!",
    _I32,
    "The address of buffer ``name`` that ``peer_func`` reserves.",
    pto=Pto("pto.import_reserved_buffer", form="import_peer_buffer"),
    **_EFFECT,
)


def _pipe(b: Bound) -> Type:
    if b["dir_mask"] not in (1, 2, 3):
        raise b.fail(f"requires dir_mask 1 (cube to vector), 2 (vector to cube) or 3, got {b['dir_mask']}")
    slots, local = b["slot_num"], b["local_slot_num"]
    for name, count in (("slot_size", b["slot_size"]), ("slot_num", slots), ("local_slot_num", local)):
        if count is not None and count <= 0:
            raise b.fail(f"requires {name} to be positive, got {count}")
    if local is not None and slots is not None and local > slots:
        raise b.fail(f"requires local_slot_num <= slot_num, got {local} of {slots}")
    return no_result(b)


for _core in ("aic", "aiv"):
    declare(
        f"system.{_core}_initialize_pipe",
        "in c2v_consumer_buf: scalar like INT32 = 0, in v2c_consumer_buf: scalar like INT32 = 0, attr dir_mask: int!, "
        "attr slot_size: int!, attr slot_num: int? = None, attr local_slot_num: int? = None, attr id: int? = None",
        _pipe,
        f"Set up the {_core} side of a cross-core pipe: ``dir_mask`` 1 cube to vector, 2 vector to cube, 3 both; a "
        "buffer "
        "for each direction used.",
        pto=Pto(f"pto.{_core}_initialize_pipe", form="initialize_pipe"),
        **_EFFECT,
    )

for _core in ("aic", "aiv"):
    declare(
        f"system.tfree_to_{_core}",
        "in tile: tile, attr split: int? = None, attr id: int? = None",
        no_result,
        f"Give the slot a popped tile is in back to {_core}.",
        pto=Pto(f"pto.tfree_from_{_core}", form="tfree"),
        **_EFFECT,
    )

# Asynchronous prefetch into L2.


def _handle(name: str, kind: type, words: str) -> Callable[[Bound], None]:
    def check(b: Bound) -> None:
        if not isinstance(b.type(name), kind):
            article = "an" if words[0] in "AEIOU" else "a"
            raise b.fail(f"requires {name} to be {article} {words}, got {b.type(name)}")

    return check


_check_ctx = _handle("ctx", PrefetchAsyncContextType, "PrefetchAsyncContext")
_check_evt = _handle("evt", AsyncEventType, "AsyncEvent")
_check_session = _handle("session", AsyncSessionType, "AsyncSession")


def _prefetch(b: Bound) -> Type:
    t: TensorType = b.type("src")
    if not isinstance(b["src"], Var):
        found = type(b["src"]).__name__
        raise b.fail(f"expects src to be a Var or IterArg, got a {found}", "assign it to a name first")
    dims = [value(d) for d in t.shape]
    if None in dims or any(d != 1 for d in dims[:-1]):
        raise b.fail(f"requires a flat contiguous logical 1D source ([N], [1, N] ...), got {shaped(t)}")
    _check_ctx(b)
    return AsyncEventType.get()


def _session(b: Bound) -> Type:
    _check_ctx(b)
    return AsyncSessionType.get()


def _wait(b: Bound) -> Type:
    _check_evt(b)
    _check_session(b)
    return ScalarType(D.BOOL)


_PREFETCH: dict[str, Any] = {"core": Core.VECTOR, "pure": False}
declare(
    "prefetch.make_context",
    "",
    lambda b: PrefetchAsyncContextType.get(),
    "State of asynchronous prefetches; one kernel needs one.",
    pto=Pto("pto.make_prefetch_async_context", form="prefetch"),
    **_PREFETCH,
)
declare(
    "prefetch.async_prefetch",
    "in src: tensor, in ctx: any",
    _prefetch,
    "Start pulling flat ``src`` into L2; the value is the event of its completion.",
    pto=Pto("pto.tprefetch_async", form="prefetch"),
    **_PREFETCH,
)
declare(
    "prefetch.session",
    "in ctx: any",
    _session,
    "The session `wait` needs.",
    pto=Pto("pto.get_prefetch_async_session", form="prefetch"),
    **_PREFETCH,
)
declare(
    "prefetch.wait",
    "in evt: any, in session: any",
    _wait,
    "Wait until a prefetch has landed.",
    pto=Pto("pto.comm.wait_async_event", form="prefetch"),
    **_PREFETCH,
)

