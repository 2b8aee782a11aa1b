"""Has the assembler and the tile library judge what the tests emit. See docs/vendor.md."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from pypto.pto.cross_rules import kernel_kind
from pypto.pto.parser import parse_module
from pypto.toolchain import find_ptoas
from pypto.toolchain.locate import absence

from .allowed import OUTCOMES, REFUSALS, reason
from .assemble import Text, assemble, by_kind, recorded
from .library import Kernel, Library
from .record import GENERATED

ROOT = Path(__file__).resolve().parents[2]
NO_LIBRARY = (
    "no tile library: PTO_ISA_ROOT is to name a checkout of the public PTO tile library (pto-isa), the folder that has "
    "include/pto/pto-inst.hpp"
)
NO_COMPILER = "no clang++ of version 19 or newer on PATH, which the library's CPU headers need"


def main(argv: list[str] | None = None) -> int:
    options = _options().parse_args(argv)
    work = Path(options.work)
    ptoas, library, missing = _tools(options)
    if missing:
        print("\n".join(missing), file=sys.stderr)
        return 2
    folder = Path(options.texts) if options.texts else work / "recorded"
    if not options.texts and not (options.keep and folder.exists()):
        _record(folder, options.tests.split(), options.select)
    texts = recorded(folder)
    assemble(texts, ptoas, work / "cpp")
    unexpected = report_texts(texts)
    if library is not None:
        kernels = kernels_of(texts)
        library.judge(kernels, work / "units")
        unexpected += report_kernels(kernels)
    return 1 if unexpected or not texts else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m vendor", description=__doc__)
    parser.add_argument("--tests", default="tests", help="what to record: test files and folders")
    parser.add_argument("-k", dest="select", default="", help="only tests that pytest's -k selects")
    parser.add_argument("--texts", help="judge the .pto files of a folder instead")
    parser.add_argument("--keep", action="store_true", help="use what an earlier run recorded")
    parser.add_argument("--assembler-only", action="store_true", help="leave the tile library out")
    parser.add_argument("--work", default=str(ROOT / "build_output" / "vendor"), help="folder for all that is made")
    return parser


def _tools(options: argparse.Namespace) -> tuple[object, Library | None, list[str]]:
    ptoas = find_ptoas()
    missing = [] if ptoas is not None else [absence()]
    if options.assembler_only:
        return ptoas, None, missing
    root = Path(os.environ.get("PTO_ISA_ROOT", "/nonexistent"))
    if not (root / "include/pto/pto-inst.hpp").is_file():
        missing.append(NO_LIBRARY)
    compiler = next((c for c in map(shutil.which, ("clang++-19", "clang++-20", "clang++-21", "clang++")) if c), None)
    if compiler is None:
        missing.append(NO_COMPILER)
    return ptoas, Library(root, compiler or ""), missing


def _record(folder: Path, tests: list[str], select: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    environment = os.environ | {"PYPTO_VENDOR_RECORD": str(folder), "PATH": os.path.dirname(sys.executable)}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "tests"), environment.get("PYTHONPATH", "")])
    environment.pop("PTOAS_ROOT", None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "vendor.record", "-n", str(os.cpu_count() or 1), *tests]
    subprocess.run(command + (["-k", select] if select else []), cwd=ROOT, env=environment, check=False)
    if tests == ["tests"] and not select:
        subprocess.run([sys.executable, "-m", "vendor.record"], cwd=ROOT, env=environment, check=False)


def kernels_of(texts: list[Text]) -> list[Kernel]:
    """Accepted kernels of one core that were run."""
    found = []
    for text in texts:
        if text.cpp is None or not text.runs or "reserve_buffer" in text.text:
            continue
        op = next(iter(parse_module(text.text, str(text.path)).ops))
        kind = kernel_kind(op)
        for run in text.runs:
            found.append(Kernel(text.digest, run.name.split(".")[1], kind, text.arch, text.cpp, run, text.test))
    return found


def report_texts(texts: list[Text]) -> int:
    """Print the assembler's verdicts; how many kinds of refusal nothing allows."""
    refused = [t for t in texts if t.refusal]
    print(f"texts {len(texts)}, accepted {len(texts) - len(refused)}, refused {len(refused)}")
    unexpected = 0
    for kind, group in by_kind(texts).items():
        why = reason(REFUSALS, f"{group[0].test} {kind}")
        unexpected += not why
        origin = " (PTOCodegen)" if all(t.origin == GENERATED for t in group) else ""
        print(f"{len(group):5}  {kind}{origin}\n       {group[0].test} {group[0].digest}\n       {why or 'UNEXPECTED'}")
    return unexpected


def report_kernels(kernels: list[Kernel]) -> int:
    """Print how library and simulator compare; how many differences nothing allows."""
    different = [k for k in kernels if k.outcome != "equal"]
    compiled = sum(not k.outcome.startswith("does not compile") for k in kernels)
    ran = sum(k.outcome == "equal" or k.outcome.startswith("differs") for k in kernels)
    print(f"kernels {len(kernels)}, compiled {compiled}, run {ran}, equal {len(kernels) - len(different)}")
    kinds: dict[str, list[Kernel]] = {}
    for kernel in different:
        kinds.setdefault(kernel.kind, []).append(kernel)
    unexpected = 0
    for kind, group in sorted(kinds.items(), key=lambda item: -len(item[1])):
        first = group[0]
        why = reason(OUTCOMES, f"{first.test} {first.outcome}")
        unexpected += not why
        print(f"{len(group):5}  {kind}\n       {first.test} {first.digest}\n       {first.outcome}")
        print(f"       {why or 'UNEXPECTED'}")
    return unexpected


if __name__ == "__main__":
    sys.exit(main())
