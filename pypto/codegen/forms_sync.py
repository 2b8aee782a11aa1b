"""Forms of barriers, flags, events and fences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import DataType
from ..errors import user_error
from ..ir.expr import Call, ConstInt, Var
from ..ops.registry import Bound, Pto
from .context import Op, Value
from .forms_gather import Form, whole
from .instructions import operand
from .tensors import window

if TYPE_CHECKING:
    from .kernel import KernelBuilder

_BARRIERS = {"bar_all": "ALL", "bar_v": "V", "bar_m": "M"}


def barrier(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> None:
    """Wait for pipes of this core."""
    kernel.add(Op("barrier", pipe=_BARRIERS[pto.form]))


def fence(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> None:
    """Order accesses to global memory."""
    kernel.add(Op("fence"))


def cacheinvalid(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> None:
    """Drop the cache line a region starts in, or all lines of global memory."""
    tensor = bound["tensor"]
    region = None
    if tensor is not None:
        region = window(kernel, tensor, bound.dims("offsets"), bound.dims("shapes"), tensor.name_hint)
    kernel.add(Op("cacheinvalid", source=region))


def syncall(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> None:
    """Wait for all cores. Without a count the launch says how many there are."""
    operands: list[Value] = []
    if bound["gm_workspace"] is not None:
        _check_workspace(bound, call)
        operands.append(whole(kernel, bound["gm_workspace"], "syncgm"))
    cores = bound["used_cores"]
    if cores is not None and not (isinstance(cores, ConstInt) and cores.value == 0):
        operands.append(operand(kernel, cores, DataType.INT32))
    kernel.add(Op("syncall", operands=operands, mode=bound["mode"], core_type=bound["core_type"]))


def _check_workspace(bound: Bound, call: Call) -> None:
    """Raise KernelValueError for a workspace smaller than the cache line cores poll."""
    shape = bound.type("gm_workspace").shape
    if len(shape) == 1 and isinstance(shape[0], ConstInt) and shape[0].value < 16:
        raise user_error(
            ValueError,
            f"system.syncall requires gm_workspace of at least 16 INT32 elements, got {shape[0].value}",
            call.span,
            "16 INT32 are the cache line that cores poll",
        )


def flag(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> None:
    """Set or await a flag between two pipes of this core."""
    pipes = bound["set_pipe"].name, bound["wait_pipe"].name
    kernel.add(Op("flag", mnemonic=pto.mnemonic, pipes=pipes, event=bound["event_id"]))


def event(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> None:
    """Set or await an event between cores."""
    given, mode = bound["dynamic_event"], bound.values.get("ffts_mode")
    text = str(bound["event_id"]) if given is None else kernel.scalars.index(given).name
    attrs = [("ffts_mode", f"{mode} : i32")] if mode is not None else []
    kernel.add(Op("cross_event", mnemonic=pto.mnemonic, pipe=bound["pipe"].name, event=text, attrs=attrs))


def set_ffts(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> None:
    """Name the workspace of cross-core events."""
    kernel.add(Op("set_ffts", source=kernel.pointers[bound["workspace"]][0]))


SYNC_FORMS: dict[str, Form] = {
    **dict.fromkeys(_BARRIERS, barrier),
    "fence": fence,
    "cacheinvalid": cacheinvalid,
    "syncall": syncall,
    "sync_src": flag,
    "sync_dst": flag,
    "sync_set": event,
    "sync_wait": event,
    "set_ffts": set_ffts,
}
