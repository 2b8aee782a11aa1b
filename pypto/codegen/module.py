"""A lowered program to PTO text, one module a kernel."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..backend.target import Target
from ..errors import Diagnosed, InternalError, user_error
from ..ir.enums import FunctionType
from ..ir.naming import identifier
from ..ir.program import Function, Program, is_incore_type, summarize
from ..ops.registry import Core, get_decl
from ..passes.context import MemoryPlanner, current_or_default
from .context import ModuleContext
from .kernel import KernelBuilder, Options
from .legality import check_legal
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


def emits_locations() -> bool:
    """Whether text names the user's lines where nobody says: not when ``PYPTO_EMIT_PTO_LOC`` is 0, false, off or no."""
    return os.environ.get("PYPTO_EMIT_PTO_LOC", "1").lower() not in ("0", "false", "off", "no")


class PTOCodegen:
    """Writes the kernels of a lowered program as one PTO module.

    ``target`` defaults to the selected backend's, else the 910B. Element types and contracts between operands are
    checked; ``strict`` refuses all that the target has no instruction for, which PTOAS would otherwise say.
    """

    def __init__(self, target: Target | None = None, strict: bool = False) -> None:
        self._target = target
        self._strict = strict

    def generate(
        self,
        program: Program,
        emit_tile_addr: bool = True,
        emit_source_loc: bool | None = None,
        constant_extents: bool = False,
    ) -> str:
        """The module. Without ``emit_tile_addr`` PTOAS plans memory; ``emit_source_loc`` adds MLIR ``loc``.

        ``emit_source_loc`` left out is decided by `emits_locations`. With ``constant_extents`` types of tiles state the
        valid extents that are constants, as `generate_pto` and ``compile`` write them; else all are operands.
        """
        if emit_source_loc is None:
            emit_source_loc = emits_locations()
        return render_module(self.build(program, Options(emit_source_loc, emit_tile_addr, constant_extents)))

    def build(self, program: Program, options: Options) -> ModuleContext:
        """The module as data, before it is text."""
        target = self._target or selected_target()
        kernels = [f for f in program.functions.values() if is_incore_type(f.func_type)]
        if self._strict:
            for kernel in kernels:
                _check_name(kernel)
        contexts = [KernelBuilder(f, target, kernel_kind(f), options).build() for f in kernels]
        for context in contexts:
            check_legal(context, target, self._strict)
        return ModuleContext(target.module_arch, contexts)


def _check_name(kernel: Function) -> None:
    """Raise the user's error for a kernel whose name C++ and PTO have no letters for."""
    if kernel.name != identifier(kernel.name):
        raise user_error(
            ValueError,
            f"the kernel's name {kernel.name!r} has letters that C++ and PTO have no names of",
            kernel.span,
            "name the function in ASCII letters, digits and underscores",
        )


def selected_target() -> Target:
    """The target of the selected backend, the 910B when none is."""
    from .. import backend

    return backend.get_backend_type().target if backend.is_backend_configured() else backend.ASCEND910B


def kernel_groups(program: Program) -> tuple[dict[str, list[Function]], list[Function]]:
    """Kernels by the Group function that launches them together, and the functions that are in no group.

    Kernels that are written in C++ are left out. Raises the user's error for a group of both kinds.
    """
    groups: dict[str, list[Function]] = {}
    grouped: set[str] = set()
    for function in program.functions.values():
        if function.func_type is not FunctionType.Group:
            continue
        called = [program.get_function(name) for name in sorted(summarize(function).callees)]
        members = [f for f in called if f is not None and is_incore_type(f.func_type)]
        own = [f for f in members if f.external_source is None]
        if own and len(own) < len(members):
            raise _mixes_sources(function, members)
        if own:
            groups[function.name] = own
        grouped |= {f.name for f in members}
    rest = [
        f for f in program.functions.values()
        if f.name not in grouped and f.func_type is not FunctionType.Group and f.external_source is None
    ]  # fmt: skip
    return groups, rest


def _mixes_sources(group: Function, members: Sequence[Function]) -> Diagnosed:
    foreign = next(f for f in members if f.external_source is not None)
    return user_error(
        ValueError,
        f"group {group.name!r} launches {foreign.name!r}, which is written in C++, together with kernels that are not",
        group.span,
        hint="write both kernels in C++, or neither",
    )


def generate_pto(program: Program, target: Target, locations: bool = True) -> dict[str, str]:
    """PTO text of every module of a lowered program: kernels that run together in one, named for their group.

    Other kernels have modules of their own, by their names; ``locations`` adds the user's lines. Where PTOAS plans
    memory, tiles have no addresses. Raises the user's error at a call ``target`` has no instruction for.
    """
    options = Options(locations, current_or_default().memory_planner is not MemoryPlanner.PTOAS)
    codegen = PTOCodegen(target, strict=True)
    made = {}
    for name, kernels in kernel_modules(program).items():
        made[name] = render_module(codegen.build(Program(kernels, name, program.span), options))
    return made


def kernel_modules(program: Program) -> dict[str, list[Function]]:
    """The kernels of each module. One that is alone in its group is a module by itself."""
    groups, rest = kernel_groups(program)
    together = {name: kernels for name, kernels in groups.items() if len(kernels) > 1}
    alone = [kernel for kernels in groups.values() if len(kernels) == 1 for kernel in kernels]
    alone += [function for function in rest if is_incore_type(function.func_type)]
    order = {function.name: position for position, function in enumerate(program.functions.values())}
    alone.sort(key=lambda kernel: order[kernel.name])
    return {**{kernel.name: [kernel] for kernel in alone}, **together}
