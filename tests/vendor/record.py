"""A pytest plugin that keeps what the tests emit: every distinct PTO text, and one run of each kernel.

``python -m pytest -p vendor.record`` with PYPTO_VENDOR_RECORD naming the folder. For each text: ``<digest>.pto``, a
``<digest>.json`` that says where it came from, and for each kernel run ``<digest>.<kernel>.npz`` with its arguments
before (``a0``, ``a1`` ..) and after (``b0`` ..).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

COMPILED, GENERATED = "compiled", "generated"
_LARGEST = 4 << 20
"""Bytes of arguments; larger runs are not kept."""


class Recorder:
    """Writes texts and runs to ``folder``, each once; safe among processes, as names are digests of contents."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.test = folder, ""
        self._texts: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def text(self, name: str, text: str, origin: str) -> None:
        digest = hashlib.sha1(text.encode()).hexdigest()[:16]
        if self._texts.get(text) == COMPILED:
            return
        self._texts[text] = origin
        info = {"name": name, "origin": origin, "test": self.test}
        path = self.folder / f"{digest}.json"
        if origin == GENERATED and path.exists():
            return
        (self.folder / f"{digest}.pto").write_text(text, encoding="utf-8")
        path.write_text(json.dumps(info), encoding="utf-8")

    def run(self, text: str, kernel: str, before: Sequence[Any], after: Sequence[Any]) -> None:
        digest = hashlib.sha1(text.encode()).hexdigest()[:16]
        path = self.folder / f"{digest}.{kernel}.npz"
        if text not in self._texts or path.exists():
            return
        arrays = {f"a{i}": _plain(v) for i, v in enumerate(before)} | {f"b{i}": _plain(v) for i, v in enumerate(after)}
        types = [np.asarray(v).dtype.name for v in before]
        part = path.with_suffix(f".{os.getpid()}.tmp.npz")
        np.savez(part, types=np.array(types), **arrays)
        part.replace(path)


def _plain(value: Any) -> np.ndarray:
    """As bytes where numpy's files do not know the element type."""
    array = np.array(value)
    return array if array.dtype.kind in "biuf" and array.dtype.isbuiltin else array.view(np.uint8)


def _keepable(args: Sequence[Any]) -> bool:
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    return all(a.flags.c_contiguous for a in arrays) and sum(a.nbytes for a in arrays) <= _LARGEST


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

    def started(self: Any, args: Sequence[Any], core: Any) -> Any:
        module, text = sources.get(id(self._op.parent_op()), (None, ""))
        if module is None or len(self._siblings) > 1 or not _keepable(args):
            return (yield from start(self, args, core))
        before = [np.array(a) for a in args]
        report = yield from start(self, args, core)
        recorder.run(text, self.name, before, args)
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
