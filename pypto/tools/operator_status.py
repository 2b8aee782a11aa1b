"""``python -m pypto.tools.operator_status [FOLDER]``: how far each operator is.

For every declared operator: whether it is written as PTO on each target, and whether a numeric case runs it. The first
follows from the declarations and the instruction table, or from a case where passes write the operator out; the second
from the table of cases in FOLDER (``tests/operators``).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..backend import TARGETS, Target
from ..codegen.forms import has_form
from ..ops.registry import OpDecl, all_decls, get_decl
from ..pto.checks import exists_on
from ..pto.instructions import INSTRUCTIONS


@dataclass(frozen=True)
class Status:
    """One operator: the targets it has PTO on, by architecture, and those its numeric cases run on."""

    decl: OpDecl
    written: frozenset[str]
    tested: frozenset[str]

    @property
    def level(self) -> str:
        return self.decl.name.partition(".")[0]


def tile_form(decl: OpDecl) -> OpDecl:
    """The operator a tensor operator becomes; itself for any other."""
    found = get_decl(decl.tile_form) if decl.tile_form is not None else None
    return found or decl


def has_pto(decl: OpDecl, target: Target) -> bool:
    """Whether the operator, or the tile operator it becomes, is written as PTO that ``target`` has."""
    pto = tile_form(decl).pto
    if pto is None or not has_form(pto.form):
        return False
    spec = INSTRUCTIONS.get(pto.mnemonic.removeprefix("pto."))
    return spec is None or exists_on(spec, target.module_arch)


def tested_on(folder: Path) -> dict[str, frozenset[str]]:
    """Architectures on which the cases of ``folder`` run each operator."""
    sys.path.insert(0, str(folder))
    try:
        cases = importlib.import_module("operator_table").CASES
    finally:
        sys.path.remove(str(folder))
    found: dict[str, set[str]] = {}
    for case in cases:
        archs = {t.module_arch for t in TARGETS if any(True for _ in case.dtypes(t))}
        found.setdefault(case.op, set()).update(archs)
    return {op: frozenset(archs) for op, archs in found.items()}


def statuses(folder: Path) -> list[Status]:
    """Every operator a user can write, in order of name."""
    tested = tested_on(folder)
    found = []
    for decl in sorted(all_decls(), key=lambda d: d.name):
        if not decl.internal:
            ran = tested.get(decl.name, frozenset())
            written = frozenset(t.module_arch for t in TARGETS if has_pto(decl, t))
            found.append(Status(decl, written | ran, ran))
    return found


def table(rows: Iterable[Status]) -> str:
    """Counts by level, then the operators that lack something."""
    rows = list(rows)
    archs = [t.module_arch for t in TARGETS]
    heads = ["level", "operators", *(f"PTO on {t.name}" for t in TARGETS), "numeric cases"]
    lines = [heads]
    for level in (*sorted({r.level for r in rows}), "all"):
        mine = [r for r in rows if level in (r.level, "all")]
        lines.append([level, str(len(mine)), *(str(sum(a in r.written for r in mine)) for a in archs),
                      str(sum(bool(r.tested) for r in mine))])  # fmt: skip
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    text = ["  ".join(cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(line, widths)))
            for line in lines]  # fmt: skip
    for what, lacking in (
        ("without PTO on any target", [r for r in rows if not r.written]),
        ("with PTO but without numeric cases", [r for r in rows if r.written and not r.tested]),
    ):
        text += ["", f"{what}: {', '.join(r.decl.name for r in lacking) or 'none'}"]
    return "\n".join(text)


def main() -> None:
    """Print the table."""
    print(table(statuses(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("tests/operators"))))


if __name__ == "__main__":
    main()
