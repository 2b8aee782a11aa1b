"""``python -m pypto.tools.operator_status [FOLDER]``: how far each operator is.

For every declared operator: whether it is written as PTO on each target, and whether a numeric case runs it. The first
follows from the declarations and the instruction table, or from a case where passes write the operator out; the second
from the table of cases in FOLDER (``tests/operators``). Then, which dtypes an instruction takes that no case runs on a
whole, a ragged and an empty valid region.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..backend import TARGETS, Target
from ..codegen.forms import has_form
from ..dtypes import DataType
from ..ops.registry import OpDecl, all_decls, get_decl
from ..pto.checks import element_types, exists_on
from ..pto.elements import data_type
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


def _cases(folder: Path) -> list[Any]:
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("operator_table").CASES
    finally:
        sys.path.remove(str(folder))


def tested_on(folder: Path) -> dict[str, frozenset[str]]:
    """Architectures on which the cases of ``folder`` run each operator."""
    found: dict[str, set[str]] = {}
    for case in _cases(folder):
        archs = {t.module_arch for t in TARGETS if any(True for _ in case.dtypes(t))}
        found.setdefault(case.op, set()).update(archs)
    return {op: frozenset(archs) for op, archs in found.items()}


def statuses(folder: Path) -> list[Status]:
    """Every operator a user can write, in order of name."""
    importlib.import_module("pypto.ops.distributed")
    tested = tested_on(folder)
    found = []
    for decl in sorted(all_decls(), key=lambda d: d.name):
        if not decl.internal:
            ran = tested.get(decl.name, frozenset())
            written = frozenset(t.module_arch for t in TARGETS if has_pto(decl, t))
            found.append(Status(decl, written | ran, ran))
    return found


REGIONS = ("full", "ragged", "empty")
"""Kinds of valid region a case may run."""

Combination = tuple[str, str, DataType, str]
"""Operator, architecture, dtype, kind of region."""


def takes(decl: OpDecl, target: Target) -> tuple[DataType, ...]:
    """The dtypes the instruction of a tile operator states for its source, or else its result, and numpy holds."""
    spec = INSTRUCTIONS.get(decl.pto.mnemonic.removeprefix("pto.")) if decl.pto is not None else None
    if spec is None or not exists_on(spec, target.module_arch):
        return ()
    stated = (element_types(spec, target.module_arch, operand) for operand in ("src", "src0", "a", "dst"))
    names = next(filter(None, stated), ())
    return tuple(d for d in map(data_type, sorted(names)) if d is not None and d not in _NOT_HELD)


_NOT_HELD = (DataType.HF8, DataType.FP4)
"""Types without a numpy one of an element a slot as PTO has them."""


def combinations(folder: Path) -> tuple[set[Combination], set[Combination]]:
    """What the instructions of tile operators take, in every kind of region, and what the cases of ``folder`` run."""
    wanted: set[Combination] = set()
    for decl in all_decls():
        if decl.name.startswith("tile.") and not decl.internal:
            for target in TARGETS:
                if has_pto(decl, target):
                    taken = takes(decl, target)
                    wanted.update((decl.name, target.module_arch, d, r) for d in taken for r in REGIONS)
    found = {
        (case.op, target.module_arch, dtype, region)
        for case in _cases(folder)
        for target in TARGETS
        for dtype in case.dtypes(target)
        for region in case.covers
    }
    return wanted, found


def lacking(missing: Iterable[Combination]) -> dict[str, str]:
    """Combinations without a case, told by operator."""
    by_op: dict[str, dict[tuple[str, str], list[str]]] = {}
    for op, arch, dtype, region in sorted(missing, key=lambda c: (c[0], c[1], c[2].code(), c[3])):
        by_op.setdefault(op, {}).setdefault((arch, dtype.name), []).append(region)
    told: dict[str, str] = {}
    for op, found in by_op.items():
        groups: dict[tuple[str, ...], dict[str, list[str]]] = {}
        for (arch, dtype), regions in found.items():
            groups.setdefault(tuple(regions), {}).setdefault(dtype, []).append(arch)
        told[op] = "; ".join(f"{', '.join(regions)}: {' '.join(dtypes)}" for regions, dtypes in groups.items())
    return told


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
    """Print the table, and how many of the dtypes and regions that instructions take have a numeric case."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("tests/operators")
    print(table(statuses(folder)))
    wanted, found = combinations(folder)
    count = f"{len(wanted & found)} of {len(wanted)}"
    print(f"\nnumeric cases of tile operators by target, dtype and valid region: {count}")
    for op, what in lacking(wanted - found).items():
        print(f"  {op}: {what}")


if __name__ == "__main__":
    main()
