"""A lowered program to PTO text, one module a kernel."""

from __future__ import annotations

from ..backend.target import Target
from ..errors import InternalError
from ..ir.enums import FunctionType
from ..ir.program import Function, Program, is_incore_type, summarize
from ..ops.registry import Core, get_decl
from .context import ModuleContext
from .kernel import KernelBuilder
from .render import render_module


def kernel_kind(function: Function) -> str:
    """``cube`` or ``vector``, by what the kernel's operators run on.

    Raises InternalError for a kernel that mixes both: splitting one is a pass's work.
    """
    if function.func_type is FunctionType.AIC:
        return "cube"
    if function.func_type is FunctionType.AIV:
        return "vector"
    cores = {decl.core for name in summarize(function).ops if (decl := get_decl(name)) is not None}
    if {Core.CUBE, Core.VECTOR} <= cores:
        raise InternalError(f"kernel {function.name!r} mixes cube and vector operators", function.span)
    return "cube" if Core.CUBE in cores else "vector"


def generate_kernel(function: Function, target: Target, locations: bool = True) -> str:
    """The PTO module of one lowered InCore function; ``locations`` adds MLIR ``loc`` of the user's lines."""
    context = KernelBuilder(function, target, kernel_kind(function), locations).build()
    return render_module(ModuleContext(target.module_arch, [context]))


def generate_pto(program: Program, target: Target, locations: bool = True) -> dict[str, str]:
    """PTO text of every kernel of a lowered program, by kernel name."""
    return {
        f.name: generate_kernel(f, target, locations)
        for f in program.functions.values()
        if is_incore_type(f.func_type)
    }
