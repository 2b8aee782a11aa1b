"""``kernel_config.py``: what the device runtime is told of a program's kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.enums import CoreType
from ...passes.context import RuntimeKind, runtime_kind_to_name
from ..render import environment

_FOLDERS = {CoreType.CUBE: ("aic", "aic"), CoreType.VECTOR: ("aiv", "aiv")}


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
) -> str:
    """The file's text. ``signatures`` gives the direction (``IN``, ``OUT``, ``INOUT``) of each tensor of a kernel."""
    signatures = signatures or {}
    kernels = [
        {
            "id": number,
            "name": name,
            "source": kernel_path(name, cores[name]),
            "core": _FOLDERS[cores[name]][1],
            "signature": signatures.get(name, ()),
        }
        for name, number in sorted(ids.items(), key=lambda item: item[1])
    ]
    return (
        environment()
        .get_template("wrapper/kernel_config.py.j2")
        .render(
            orchestration=orchestration,
            signature=orchestration_signature,
            kernels=kernels,
            runtime=runtime_kind_to_name(runtime),
            enable_sdma=enable_sdma,
            directions=bool(orchestration_signature) or any(k["signature"] for k in kernels),
        )
    )
