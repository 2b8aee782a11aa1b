"""The files from which the device runtime builds a program: a unit for each kernel, the orchestration, their table."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..backend import current_target
from ..backend.target import Target
from ..codegen import PTOCodegen, generate_orchestration, kernel_kind
from ..codegen.module import kernel_groups
from ..codegen.wrapper import kernel_wrapper
from ..codegen.wrapper.config import external_sources, kernel_config, kernel_path
from ..errors import Error
from ..ir.enums import CoreType, FunctionType
from ..ir.program import Function, Program, is_incore_type, summarize
from ..passes.context import RuntimeKind, current_or_default

Assemble = Callable[[str, str, str], str]
"""Gives the C++ of PTO text, its module's name and the output folder."""
_CORES = {"cube": CoreType.CUBE, "vector": CoreType.VECTOR}
_BLOCK_OPS = frozenset({"tile.get_block_idx", "tile.get_block_num"})


class PartialCodegenError(Error):
    """Some functions have no code. ``files`` has what was made of the others, by path."""

    def __init__(self, message: str, files: Mapping[str, str]) -> None:
        super().__init__(message, dict(files))
        self.files = dict(files)

    def __str__(self) -> str:
        return str(self.args[0])


def assemble(text: str, name: str, output_dir: str) -> str:
    """The C++ of a module, by the PTOAS of this machine. Raises PtoasError when there is none or it refuses."""
    from ..toolchain import PtoasError, find_ptoas

    found = find_ptoas()
    if found is None:
        raise PtoasError("PTOAS is not on this machine: compile with skip_ptoas=True, or see toolchain/")
    made = found.assemble({name: text}, Path(output_dir) / "ptoas", current_target().pto_arch)
    return made[name].read_text(encoding="utf-8")


def emit_kernels(
    files: dict[str, str],
    name: str,
    kernels: Sequence[Function],
    text: str,
    output_dir: str,
    skip_ptoas: bool,
    assembler: Assemble = assemble,
) -> None:
    """Add to ``files`` those of ``kernels``, whose PTO is the module ``text``: the text itself with ``skip_ptoas``."""
    if skip_ptoas:
        files.update({kernel_path(k.name, _CORES[kernel_kind(k)], "pto"): text for k in kernels})
        return
    files.update(wrapped(kernels, assembler(text, name, output_dir), current_target()))


def wrapped(kernels: Sequence[Function], cpp: str, target: Target) -> dict[str, str]:
    """The units of ``kernels``, by path: each its entry point beside the C++ of the module they share."""
    blocks = len(kernels) > 1 and any(not _BLOCK_OPS.isdisjoint(summarize(k).ops) for k in kernels)
    return {
        kernel_path(k.name, _CORES[kernel_kind(k)]): kernel_wrapper(k, cpp, target, blocks_of_group=blocks)
        for k in kernels
    }


def write_module(kernels: Sequence[Function], name: str, program: Program) -> str:
    """The PTO module of kernels that are compiled together."""
    return PTOCodegen().generate(Program(list(kernels), name, program.span), constant_extents=True)


def generate(
    program: Program,
    output_dir: str,
    skip_ptoas: bool = False,
    emit: Callable[..., None] = emit_kernels,
) -> dict[str, str]:
    """Files of a lowered program, by path below ``output_dir``.

    Raises PartialCodegenError, with the files of the others, when a function has no code.
    """
    groups, rest = kernel_groups(program)
    modules = [*groups.items(), *((f.name, [f]) for f in rest if is_incore_type(f.func_type))]
    files: dict[str, str] = {}
    failures: list[tuple[str, Exception]] = []
    for name, kernels in modules:
        try:
            emit(files, name, kernels, write_module(kernels, name, program), output_dir, skip_ptoas)
        except (Error, ValueError, TypeError, RuntimeError) as error:
            failures.append((name, error))
    orchestrated, refused = orchestration_files(program, current_or_default().runtime)
    files.update(orchestrated)
    failures += refused
    if failures:
        raise PartialCodegenError(failure_report(failures), files)
    return files


def orchestration_files(
    program: Program, runtime: RuntimeKind, target: Target | None = None
) -> tuple[dict[str, str], list[tuple[str, Exception]]]:
    """The C++ of a lowered program's Orchestration functions and the table of their kernels, by path.

    Also the functions without code, each with the reason. A folder has one table: a program of several
    orchestrations has none.
    """
    orchestrations = [f for f in program.functions.values() if f.func_type is FunctionType.Orchestration]
    files: dict[str, str] = {}
    failures: list[tuple[str, Exception]] = []
    for function in orchestrations:
        try:
            _emit_orchestration(files, program, function, len(orchestrations) == 1, runtime, target)
        except (Error, ValueError, TypeError, RuntimeError) as error:
            failures.append((function.name, error))
    return files, failures


def _emit_orchestration(
    files: dict[str, str],
    program: Program,
    function: Function,
    with_table: bool,
    runtime: RuntimeKind,
    target: Target | None,
) -> None:
    made = generate_orchestration(program, function, target)
    files[f"orchestration/{function.name}.cpp"] = made.code
    if not with_table:
        return
    files["kernel_config.py"] = kernel_config(
        function.name,
        made.func_name_to_id,
        made.func_name_to_core_type,
        made.func_name_to_signature,
        made.orchestration_signature,
        runtime,
        enable_sdma=program.contains("prefetch.make_context"),
        external=external_sources(program),
    )


def failure_summary(error: Exception, function: str) -> str:
    """What went wrong, in a line: the assembler's own error where it gave one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "error:" in line and line.startswith("loc(")]
    text = told[0] if told else lines[0] if lines else type(error).__name__
    return text if told else text.removeprefix(f"{function} ").removeprefix(f"{function}: ")


def failure_report(failures: Sequence[tuple[str, Exception]]) -> str:
    """A table of the functions without code."""
    width = max(len("Function"), *(len(name) for name, _ in failures))
    rows = [(name, failure_summary(error, name)) for name, error in failures]
    table = [f"  {name:<{width}} | {text}" for name, text in (("Function", "Error"), *rows)]
    return "\n".join([f"{len(failures)} function(s) failed to compile:", "", *table])


def write_all(files: Mapping[str, str], output_dir: str | os.PathLike[str]) -> None:
    """Write files below ``output_dir``, by path."""
    for path, text in files.items():
        target = Path(output_dir) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
