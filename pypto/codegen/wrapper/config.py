"""``kernel_config.py``: what the device runtime is told of a program's kernels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...ir.enums import CoreType
from ...ir.program import INCLUDE_DIRS, Program
from ...passes.context import RuntimeKind, runtime_kind_to_name
from ..render import render_template

_FOLDERS = {CoreType.CUBE: ("aic", "aic"), CoreType.VECTOR: ("aiv", "aiv")}


class ExternalSource(NamedTuple):
    """Where a kernel written in C++ is, and where the headers are that it includes."""

    path: str
    include_dirs: Sequence[str] = ()


def external_sources(program: Program) -> dict[str, ExternalSource]:
    """The kernels of a program that are written in C++, by name."""
    return {
        f.name: ExternalSource(f.external_source, json.loads(f.attrs.get(INCLUDE_DIRS, "[]")))
        for f in program.functions.values()
        if f.external_source is not None
    }


def _literals(source: ExternalSource) -> dict[str, str]:
    """``source`` in Python's own notation."""
    return {"path": repr(source.path), "include_dirs": repr(list(source.include_dirs)) if source.include_dirs else ""}


def kernel_path(name: str, core: CoreType, suffix: str = "cpp") -> str:
    """Where the kernel's file is, in the folder of its program."""
    return f"kernels/{_FOLDERS[core][0]}/{name}.{suffix}"


def kernel_config(
    orchestration: str,
    ids: Mapping[str, int],
    cores: Mapping[str, CoreType],
    signatures: Mapping[str, Sequence[str]] | None = None,
    orchestration_signature: Sequence[str] = (),
    runtime: RuntimeKind = RuntimeKind.TENSORMAP_AND_RINGBUFFER,
    enable_sdma: bool = False,
    external: Mapping[str, ExternalSource] | None = None,
) -> str:
    """The file's text. ``signatures`` gives the direction (``IN``, ``OUT``, ``INOUT``) of each tensor of a kernel.

    ``external`` says where kernels are that are written in C++.
    """
    signatures, external = signatures or {}, external or {}
    kernels = [
        {
            "id": number,
            "name": name,
            "source": kernel_path(name, cores[name]),
            "core": _FOLDERS[cores[name]][1],
            "signature": signatures.get(name, ()),
            "external": _literals(external[name]) if name in external else None,
        }
        for name, number in sorted(ids.items(), key=lambda item: item[1])
    ]
    return render_template(
        "wrapper/kernel_config.py.j2",
        orchestration=orchestration,
        signature=orchestration_signature,
        kernels=kernels,
        runtime=runtime_kind_to_name(runtime),
        enable_sdma=enable_sdma,
        directions=bool(orchestration_signature) or any(k["signature"] for k in kernels),
    )
