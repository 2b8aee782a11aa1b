"""Import path of the public API for what the device is given: `pypto.runtime.device_files`, `pypto.codegen.wrapper`.

Nothing of them is loaded before it is used. Functions here may be replaced, and the others then use the replacement.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..ir.enums import CoreType
from ..ir.program import Function, Program, summarize

if TYPE_CHECKING:
    from ..runtime.device_files import PartialCodegenError as PartialCodegenError


def __getattr__(name: str) -> Any:
    if name == "PartialCodegenError":
        from ..runtime.device_files import PartialCodegenError

        return PartialCodegenError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def emit_source_loc_default() -> bool:
    """Whether PTO text names the user's lines where nobody says: not when ``PYPTO_EMIT_PTO_LOC`` switches it off."""
    from ..codegen.module import emits_locations

    return emits_locations()


def _preprocess_ptoas_output(content: str) -> str:
    from ..codegen.wrapper import as_static

    return as_static(content)


def _generate_arg_unpacking(func: Function) -> tuple[str, list[str]]:
    from ..codegen.wrapper import arguments_of, unpacking

    arguments = arguments_of(func)
    return unpacking(arguments), [a.name for a in arguments]


def _generate_kernel_wrapper(func: Function, ptoas_code: str, group_uses_spmd: bool = False) -> str:
    from ..codegen.wrapper import kernel_wrapper

    return kernel_wrapper(func, ptoas_code, blocks_of_group=group_uses_spmd)


def _uses_dynamic_subblock_id(func: Function) -> bool:
    return "tile.get_subblock_idx" in summarize(func).ops


def _build_group_mapping(program: Program) -> tuple[dict[str, list[Function]], list[Function]]:
    from ..runtime.device_files import kernel_groups

    return kernel_groups(program)


def _compile_pto_module(pto_code: str, module_name: str, output_dir: str, memory_planner: Any = None) -> str:
    from ..runtime.device_files import assemble

    return assemble(pto_code, module_name, output_dir)


def _emit_group_output(
    result_files: dict[str, str],
    group_name: str,
    group_funcs: Sequence[Function],
    pto_code: str,
    output_dir: str,
    skip_ptoas: bool = False,
) -> None:
    from ..runtime.device_files import emit_kernels

    emit_kernels(result_files, group_name, group_funcs, pto_code, output_dir, skip_ptoas, _assembler)


def _assembler(pto_code: str, module_name: str, output_dir: str) -> str:
    return _compile_pto_module(pto_code, module_name, output_dir)


def _emit_single_function_output(
    result_files: dict[str, str], func: Function, pto_code: str, output_dir: str, skip_ptoas: bool = False
) -> None:
    _emit_group_output(result_files, func.name, [func], pto_code, output_dir, skip_ptoas)


def _emit(files: dict[str, str], name: str, kernels: Sequence[Function], text: str, folder: str, skip: bool) -> None:
    if len(kernels) == 1:
        _emit_single_function_output(files, kernels[0], text, folder, skip)
    else:
        _emit_group_output(files, name, kernels, text, folder, skip)


def generate(program: Program, output_dir: str, skip_ptoas: bool = False) -> dict[str, str]:
    """Files of a lowered program's kernels, by path: C++ with its entry point, or PTO text with ``skip_ptoas``."""
    from ..runtime.device_files import generate

    return generate(program, output_dir, skip_ptoas, _emit)


def _get_error_summary(error: Exception, func_name: str) -> str:
    from ..runtime.device_files import failure_summary

    return failure_summary(error, func_name)


def _format_error_report(errors: Sequence[tuple[str, Exception]], output_dir: str | os.PathLike[str]) -> str:
    from ..runtime.device_files import failure_report

    return failure_report(errors)


def _generate_config_file(
    orch_func_name: str,
    func_name_to_id: Mapping[str, int],
    func_name_to_core_type: Mapping[str, CoreType],
    func_name_to_signature: Mapping[str, Sequence[str]] | None = None,
    orchestration_signature: Sequence[str] = (),
    runtime: Any = None,
    enable_sdma: bool = False,
) -> str:
    from ..codegen.wrapper import kernel_config
    from ..passes.context import RuntimeKind

    return kernel_config(
        orch_func_name,
        func_name_to_id,
        func_name_to_core_type,
        func_name_to_signature,
        orchestration_signature,
        runtime or RuntimeKind.TENSORMAP_AND_RINGBUFFER,
        enable_sdma,
    )
