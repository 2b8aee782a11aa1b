"""The kernel language: ``import pypto.language as pl``."""

from __future__ import annotations

from typing import Any

from ..dtypes import DataType
from ..ir.enums import (
    ArgDirection,
    AtomicType,
    CompactMode,
    ForKind,
    FunctionType,
    Level,
    MemorySpace,
    PadValue,
    ParamDirection,
    PipeType,
    Role,
    SplitMode,
    TensorLayout,
    TileLayout,
)
from ..ir.types import TensorView, TileView
from ..ops import functions as _functions
from ..ops.functions import array, prefetch, system, tensor, tile
from . import parser
from .annotations import (
    Array,
    AsyncEvent,
    AsyncSession,
    CommCtx,
    DistributedTensor,
    InOut,
    MemRefType,
    Out,
    PrefetchAsyncContext,
    Ptr,
    Scalar,
    Tensor,
    Tile,
    Tuple,
    WindowBuffer,
    wrap,
)
from .arg_direction import adir
from .decorators import InlineFunction, function, inline, program
from .dynamic import RUNTIME, DynVar, dynamic
from .forms import (
    ScopeMode,
    at,
    cluster,
    cond,
    const,
    cross_core_slot,
    dump_tag,
    func_attr,
    manual_scope,
    no_dep,
    optimizations,
    parallel,
    pipeline,
    range,
    scope,
    split,
    split_aiv,
    spmd,
    spmd_submit,
    static_assert,
    static_print,
    submit,
    unroll,
    while_,
    yield_,
)
from .memref import MemRef
from .parser.text_parser import loads, loads_program, parse, parse_program

_functions.set_wrapper(wrap)

#: The place of a pipe buffer is left to the compiler.
AUTO = -1

Mem = MemorySpace
TaskId = Scalar[DataType.TASK_ID]
ND, DN, NZ = TensorLayout.ND, TensorLayout.DN, TensorLayout.NZ
MX_A_ZZ, MX_B_NN = TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN

globals().update({d.name: d for d in DataType})


def compile(kernel: Any, **options: Any) -> Any:
    """Compile a kernel to a `pypto.runtime.CompiledProgram`; options as of `pypto.runtime.compile`."""
    from ..runtime import compile

    return compile(kernel, **options)


def __getattr__(name: str) -> Any:
    """Operators: whatever `pypto.ops` exports under ``pl``."""
    if name == "__all__":
        return [n for n in __dir__() if not n.startswith("_")]
    found = _functions.exported.get(name)
    if name == "jit":
        from ..jit import jit as found
    if found is None:
        raise AttributeError(f"pl has no '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_functions.exported, "jit"})
