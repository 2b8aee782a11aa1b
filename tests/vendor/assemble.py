"""What the assembler says of recorded texts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from pypto.toolchain.ptoas import Ptoas

ARCHS = {"a2a3": "a3", "a5": "a5"}
"""``--pto-arch`` by the ``pto.target_arch`` that a module states."""


@dataclass
class Text:
    """One recorded text. ``refusal`` is empty when the assembler accepted it and wrote ``cpp``."""

    digest: str
    path: Path
    origin: str
    test: str
    refusal: str = ""
    cpp: Path | None = None
    runs: list[Path] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def arch(self) -> str:
        found = re.search(r'pto\.target_arch = "(\w+)"', self.text)
        return ARCHS[found[1]] if found else "a3"


def recorded(folder: Path) -> list[Text]:
    """The texts in ``folder``; plain ``.pto`` files too, which nothing was recorded of."""
    found: list[Text] = []
    by_text: dict[str, list[Path]] = {}
    for run in sorted(folder.glob("*.npz")):
        if not run.name.endswith((".out.npz", ".tmp.npz")):
            by_text.setdefault(run.name.split(".")[0], []).append(run)
    for path in sorted(folder.glob("*.pto")):
        about = path.with_suffix(".json")
        info = json.loads(about.read_text()) if about.exists() else {"origin": "given", "test": path.name}
        found.append(Text(path.stem, path, info["origin"], info["test"], runs=by_text.get(path.stem, [])))
    return found


def assemble(texts: Sequence[Text], ptoas: Ptoas, out: Path) -> None:
    """Assemble each text, several at a time, and note the outcome in it. What this PTOAS said before is kept."""
    out.mkdir(parents=True, exist_ok=True)
    stamp = f"{ptoas.path.resolve()} {ptoas.path.stat().st_mtime_ns}"

    def one(text: Text) -> None:
        said, cpp = out / f"{text.digest}.json", out / f"{text.digest}.cpp"
        before = json.loads(said.read_text(encoding="utf-8")) if said.exists() else {}
        if before.get("stamp") == stamp:
            text.refusal = before["refusal"]
        else:
            errors = ptoas.assemble_one(text.digest, text.text, out, text.arch)
            text.refusal = errors[0].message if errors else ""
            said.write_text(json.dumps({"stamp": stamp, "refusal": text.refusal}), encoding="utf-8")
        text.cpp = None if text.refusal else cpp

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, texts))


def kind_of_refusal(text: Text) -> str:
    """Instruction, target and message without what differs from case to case."""
    message = re.sub(r"!pto\.\w+<[^>]*>+|\"[^\"]*\"|%\w+", "..", text.refusal)
    return f"{text.arch}: {re.sub(r'-?[0-9]+', 'N', message)[:160]}"


def by_kind(texts: Iterable[Text]) -> dict[str, list[Text]]:
    """Refused texts by kind, the most frequent first."""
    kinds: dict[str, list[Text]] = {}
    for text in texts:
        if text.refusal:
            kinds.setdefault(kind_of_refusal(text), []).append(text)
    return dict(sorted(kinds.items(), key=lambda item: -len(item[1])))
