"""The C++ around a kernel: the entry point a task is launched at, and the table of a program's kernels."""

from __future__ import annotations

from typing import Any, Final

from ...backend.target import Target
from ...errors import user_error
from ...ir.enums import FunctionType, SplitMode
from ...ir.program import Function, summarize
from ..kernel import LANES, PREFETCH_WORKSPACE, lane_parameters
from ..module import selected_target
from ..render import render_template
from .arguments import arguments_of, unpacking
from .assembled import as_static
from .config import kernel_config

__all__ = [
    "BODY_BEGIN", "BODY_END", "arguments_of", "as_static", "kernel_config", "kernel_wrapper", "unpacking",
]  # fmt: skip

BODY_BEGIN: Final = "// --- ptoas-generated code ---"
BODY_END: Final = "// --- Kernel entry point ---"
"""What stands around the C++ of PTOAS in a wrapper."""
_SOURCES: Final = {
    "tile.get_block_idx": "get_block_idx",
    "tile.get_block_num": "get_block_num",
    "tile.get_subblock_idx": "get_sub_block_id",
}


def kernel_wrapper(function: Function, cpp: str, target: Target | None = None, *, blocks_of_group: bool = False) -> str:
    """The C++ unit of a kernel: what PTOAS made of it, ``cpp``, and the entry point that calls it.

    ``blocks_of_group``: other kernels of its group ask which block they are. Raises ValueError for a kernel that cannot
    be launched.
    """
    if "pld.system.defer_wait" in summarize(function).ops:
        raise user_error(
            ValueError, f"{function.name!r} defers its completion, which no runtime is known to support", function.span
        )
    target = target or selected_target()
    arguments = arguments_of(function)
    asked = lane_parameters(function)
    workspace = PREFETCH_WORKSPACE if "prefetch.make_context" in summarize(function).ops else None
    known = [op for op in _SOURCES if op in asked or (blocks_of_group and op != "tile.get_subblock_idx")]
    kernel: dict[str, Any] = {
        "name": function.name,
        "body": as_static(cpp),
        "begin": BODY_BEGIN,
        "end": BODY_END,
        "workspace": workspace,
        "lanes": [{"name": LANES[op], "source": _SOURCES[op]} for op in known],
        "lane_bridge": target.quirks.runtime_subblock_bridge and runs_on_both_lanes(function),
        "asks_runtime": bool(known or workspace),
        "unpacking": unpacking(arguments),
        "passed": [*(a.name for a in arguments), *([workspace] if workspace else []), *(LANES[op] for op in asked)],
    }
    return render_template("wrapper/kernel.cpp.j2", kernel=kernel)


def runs_on_both_lanes(function: Function) -> bool:
    """Whether a vector kernel is launched on both vector cores of a group, which it must tell apart."""
    if function.func_type is not FunctionType.AIV:
        return False
    split = function.attrs.get("split")
    return bool(function.attrs.get("dual_aiv_dispatch")) or split not in (None, SplitMode.NONE)
