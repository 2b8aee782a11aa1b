"""A pytest plugin that keeps what the tests emit: every distinct PTO text, and one run of each kernel.

``python -m pytest -p vendor.record`` with PYPTO_VENDOR_RECORD naming the folder. For each text: ``<digest>.pto``, a
``<digest>.json`` that says where it came from, and for each kernel run ``<digest>.<kernel>.npz`` with its arguments
before (``a0``, ``a1`` ..) and after (``b0`` ..), the ``types`` of their elements, and the core's ``place``: block,
blocks, lane. As a program, ``python -m vendor.record`` records the examples and the README.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pypto.pto.elements import numpy_type
from pypto.pto.scalar_types import scalar_name
from pypto.pto.types import PtrType
from pypto.simulator import SimKernel

ROOT = Path(__file__).resolve().parents[2]
COMPILED, GENERATED = "compiled", "generated"
_LARGEST = 4 << 20
"""Bytes of arguments; larger runs are not kept."""
_LOCATION = re.compile(r' loc\("[^"]*":\d+:\d+\)')


def digest_of(text: str) -> str:
    """Names a text; the same for texts that differ in the source lines they name only."""
    return hashlib.sha1(_LOCATION.sub("", text).encode()).hexdigest()[:16]


class Recorder:
    """Writes texts and runs to ``folder``, each once; safe among processes, as names are digests of contents."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.test = folder, ""
        self._texts: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def text(self, name: str, text: str, origin: str) -> None:
        digest = digest_of(text)
        if self._texts.get(digest) == COMPILED:
            return
        self._texts[digest] = origin
        info = {"name": name, "origin": origin, "test": self.test}
        path = self.folder / f"{digest}.json"
        if origin == GENERATED and path.exists():
            return
        (self.folder / f"{digest}.pto").write_text(text, encoding="utf-8")
        path.write_text(json.dumps(info), encoding="utf-8")

    def run(self, text: str, kernel: str, before: Sequence[Any], after: Sequence[Any], place: Sequence[int]) -> None:
        digest = digest_of(text)
        path = self.folder / f"{digest}.{kernel}.npz"
        if digest not in self._texts or path.exists():
            return
        arrays = {f"a{i}": _plain(v) for i, v in enumerate(before)} | {f"b{i}": _plain(v) for i, v in enumerate(after)}
        types = [v.dtype.name for v in before]
        part = path.with_suffix(f".{os.getpid()}.tmp")
        with open(part, "wb") as file:
            np.savez_compressed(file, types=np.array(types), place=np.array(place), **arrays)
        part.replace(path)


def _plain(value: Any) -> np.ndarray:
    """As bytes where numpy's files do not know the element type."""
    array = np.array(value)
    return array if array.dtype.kind in "biuf" and array.dtype.isbuiltin else array.view(np.uint8)


def _keepable(args: Sequence[Any]) -> bool:
    """Whether the arguments are arrays apart from each other, not too large, and numbers."""
    arrays = [a for a in args if isinstance(a, np.ndarray) and a.ndim]
    apart = not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])
    return apart and all(a.flags.c_contiguous for a in arrays) and sum(a.nbytes for a in arrays) <= _LARGEST


def _given(kernel: SimKernel, args: Sequence[Any]) -> list[np.ndarray]:
    """The arguments in the kernel's types: a copy of each array, an array of no dimensions for each number."""
    found = []
    for kind, value in zip(kernel.parameters, args, strict=True):
        if isinstance(kind, PtrType):
            found.append(np.array(value))
        else:
            name = scalar_name(kind)
            dtype = np.dtype(np.int64) if name == "index" else numpy_type(name)
            found.append(np.array(value).astype(dtype))
    return found


def install(recorder: Recorder, patch: pytest.MonkeyPatch) -> None:
    """Have the compiler and the simulator tell ``recorder`` what they write and run."""
    import pypto.codegen as codegen
    from pypto.simulator import kernel as simulated

    generate, parse, start = codegen.generate_pto, simulated.parse_module, simulated.SimKernel.start
    of_codegen = codegen.PTOCodegen.generate

    def generate_pto(*args: Any, **kwargs: Any) -> Mapping[str, str]:
        made = generate(*args, **kwargs)
        for name, text in made.items():
            recorder.text(name, text, COMPILED)
        return made

    def generate_text(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = of_codegen(self, *args, **kwargs)
        if isinstance(made, str):
            recorder.text("", made, GENERATED)
        return made

    def parse_module(text: str, *args: Any, **kwargs: Any) -> Any:
        module = parse(text, *args, **kwargs)
        sources[id(module)] = module, text
        return module

    def started(self: SimKernel, args: Sequence[Any], core: Any) -> Any:
        module, text = sources.get(id(self._op.parent_op()), (None, ""))
        alone = module is not None and len(self._siblings) == 1 and len(args) == len(self.parameters)
        if not alone or self.compiled(core.sanitize).resumes or not _keepable(args):
            return (yield from start(self, args, core))
        before = _given(self, args)
        report = yield from start(self, args, core)
        after = [np.array(v) if isinstance(v, np.ndarray) and v.ndim else b for v, b in zip(args, before, strict=True)]
        recorder.run(text, self.name, before, after, (core.block_idx, core.block_num, core.subblock_idx))
        return report

    sources: dict[int, tuple[Any, str]] = {}
    patch.setattr(codegen, "generate_pto", generate_pto)
    patch.setattr(codegen.PTOCodegen, "generate", generate_text)
    patch.setattr(simulated, "parse_module", parse_module)
    patch.setattr(simulated.SimKernel, "start", started)


class _Plugin:
    def __init__(self, recorder: Recorder) -> None:
        self.recorder, self.patch = recorder, pytest.MonkeyPatch()
        install(recorder, self.patch)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.recorder.test = nodeid

    def pytest_unconfigure(self) -> None:
        self.patch.undo()


def pytest_configure(config: pytest.Config) -> None:
    folder = os.environ.get("PYPTO_VENDOR_RECORD")
    if folder:
        config.pluginmanager.register(_Plugin(Recorder(Path(folder))), "vendor-recorder")


def main() -> int:
    """Record what the README's kernels and the examples emit; 0 when all run."""
    recorder = Recorder(Path(os.environ["PYPTO_VENDOR_RECORD"]))
    install(recorder, pytest.MonkeyPatch())
    recorder.test = "README.md"
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL):
        path = recorder.folder / "readme.py"
        path.write_text(block, encoding="utf-8")
        runpy.run_path(str(path), run_name="__main__")
    from pypto.tools import demo

    recorder.test = "examples"
    sys.argv = ["demo", str(ROOT / "examples")]
    return demo.main()


if __name__ == "__main__":
    sys.exit(main())
