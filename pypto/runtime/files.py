"""The folder a compilation leaves behind, and the memory report in it."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..backend.target import Target
from ..ir.expr import ConstInt, Var
from ..ir.node import IRNode
from ..ir.program import Function, Program
from ..ir.types import TileType, Type
from ..ir.visitor import Visitor
from ..passes.context import RuntimeKind
from .distributed_config import DistributedConfig

if TYPE_CHECKING:
    from .compiled_program import CompiledProgram


def default_output_dir(name: str) -> Path:
    """``<PYPTO_PROG_BUILD_DIR or build_output>/<name>_<time>``, not existing yet."""
    base = Path(os.environ.get("PYPTO_PROG_BUILD_DIR", "build_output"))
    stem = f"{name or 'program'}_{time.strftime('%Y%m%d_%H%M%S')}"
    path, n = base / stem, 1
    while path.exists():
        path, n = base / f"{stem}_{n}", n + 1
    return path


def write_files(
    compiled: CompiledProgram,
    chosen: Path | None,
    passes: Sequence[tuple[str, Program]],
    explicit: bool,
    runtime: RuntimeKind,
) -> Path:
    """Write ``passes_dump/``, ``ptoas/``, ``report/``, ``orchestration/``, and what `read_files` needs; the folder."""
    from .device_files import orchestration_files, write_all

    root = chosen or default_output_dir(compiled.program.name)
    for folder in ("ptoas", "report"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name, text in compiled.pto.items():
        (root / "ptoas" / f"{name}.pto").write_text(text, encoding="utf-8")
    if passes:
        from ..passes.pipeline import DumpWriter

        dump = DumpWriter(root / "passes_dump", explicit_layout=explicit)
        for name, program in (("", compiled.program), *passes):
            dump(name, program)
    _write_program(compiled, root)
    files, refused = orchestration_files(compiled.lowered, runtime, compiled.target)
    write_all(files, root)
    (root / "report" / "compile.txt").write_text(_report(compiled, refused), encoding="utf-8")
    if compiled.hints:
        (root / "report" / "perf_hints.log").write_text("\n".join(compiled.hints) + "\n", encoding="utf-8")
    return root


_SOURCE, _LOWERED, _ABOUT = "program.ir", "lowered.ir", "compiled.json"


def _write_program(compiled: CompiledProgram, root: Path) -> None:
    from ..ir.serialization import serialize_to_file

    serialize_to_file(compiled.program, str(root / _SOURCE))
    serialize_to_file(compiled.lowered, str(root / _LOWERED))
    about = {"version": 1, "target": compiled.target.name, "kernels": sorted(compiled.pto),
             "distributed_config": dataclasses.asdict(compiled.distributed_config)}  # fmt: skip
    (root / _ABOUT).write_text(json.dumps(about, indent=2), encoding="utf-8")


def read_files(root: Path) -> CompiledProgram:
    """The program `write_files` wrote to ``root``. Raises FileNotFoundError, or ValueError for damaged files."""
    from ..backend import get_target
    from ..ir.serialization import deserialize_from_file
    from .compiled_program import Artifacts, CompiledProgram

    path = root / _ABOUT
    if not path.is_file():
        fix = f"compile with output_dir={str(root)!r}"
        raise FileNotFoundError(f"no compiled program in {root}: it has no {_ABOUT}; {fix}")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        target, kernels = get_target(about["target"]), list(about["kernels"])
        devices = DistributedConfig(**about.get("distributed_config", {}))
        source, lowered = (deserialize_from_file(str(root / name)) for name in (_SOURCE, _LOWERED))
        pto = {name: (root / "ptoas" / f"{name}.pto").read_text(encoding="utf-8") for name in kernels}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"the compiled program in {root} is damaged, compile it again: {error}") from error
    compiled = CompiledProgram(source, lowered, Artifacts(pto), target, root)
    compiled.distributed_config = devices
    for name in kernels:
        cpp = root / "ptoas" / f"{name}.cpp"
        if cpp.is_file():
            compiled.cpp[name] = cpp.read_text(encoding="utf-8")
    compiled._written = root
    return compiled


def write_kernels(compiled: CompiledProgram, root: Path) -> None:
    """Write ``kernels/``: the C++ that PTOAS made of each kernel, with the entry point the device runtime calls."""
    from ..codegen.module import kernel_modules
    from .device_files import wrapped, write_all

    for name, kernels in kernel_modules(compiled.lowered).items():
        if name in compiled.cpp:
            write_all(wrapped(kernels, compiled.cpp[name], compiled.target), root)


def _report(compiled: CompiledProgram, refused: Sequence[tuple[str, Exception]]) -> str:
    lines = [f"target {compiled.target.name}", "", "stage, milliseconds"]
    lines += [f"  {stage:<32}{seconds * 1e3:9.3f}" for stage, seconds in compiled.times.items()]
    lines += ["", "kernel, memory, bytes used of bytes available"]
    for kernel, spaces in compiled.memory_use().items():
        lines += [f"  {kernel:<32}{space:<8}{used:>9} of {available}" for space, (used, available) in spaces.items()]
    if refused:
        lines += ["", "not written for a device", *(f"  {name}: {error}" for name, error in refused)]
    return "\n".join(lines) + "\n"


class _Extent(Visitor):
    """Highest byte in use of each memory."""

    def __init__(self) -> None:
        self.top: dict[str, int] = {}
        self._seen: set[int] = set()

    def visit_type(self, type: Type) -> None:
        if not isinstance(type, TileType) or type.memref is None or type.memory_space is None or id(type) in self._seen:
            return
        self._seen.add(id(type))
        if isinstance(type.memref.byte_offset, ConstInt):
            end = type.memref.byte_offset.value + type.memref.size
            self.top[type.memory_space.name] = max(end, self.top.get(type.memory_space.name, 0))

    def define(self, var: IRNode) -> None:
        super().define(var)
        if isinstance(var, Var):
            self.visit_type(var.type)


def memory_use(function: Function, target: Target) -> dict[str, tuple[int, int]]:
    """Bytes used and available of each memory a lowered kernel uses."""
    found = _Extent()
    found.visit(function)
    by_name = {space.name: memory.usable for space, memory in target.memories.items()}
    return {name: (used, by_name[name]) for name, used in sorted(found.top.items())}
