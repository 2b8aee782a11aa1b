"""Imports go one way, and importing the language stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "pypto"
LEVELS = {
    "dtypes": 0, "errors": 0, "logging": 0, "compile_profiling": 0, "_resources": 1, "ir": 1, "ops": 2, "backend": 2,
    "arith": 2, "language": 3, "passes": 4, "pto": 5, "codegen": 5, "simulator": 6, "toolchain": 6, "layouts": 6,
    "runtime": 7, "jit": 7, "tools": 8,
}  # fmt: skip
COMPATIBILITY = (
    "pypto_core", "backend/pto_backend.py", "ir/op", "ir/pass_manager.py", "ir/instruments.py", "ir/compile.py",
    "ir/compiled_program.py", "ir/distributed_compiled_program.py",
)  # fmt: skip
"""Modules that only give later stages' names under an import path of the public API."""


def imported(path):
    """Top-level parts of `pypto` that a module imports when it is loaded; type-checking imports are not."""
    package = ("pypto", *path.relative_to(ROOT).parts[:-1])
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            full = (*base, *(node.module or "").split(".")) if node.module else base
            names = [full] if len(full) > 1 else [(*full, a.name) for a in node.names]
            yield from (parts[1] for parts in names if parts[0] == "pypto" and len(parts) > 1)


MODULES = [
    pytest.param(p, id=str(p.relative_to(ROOT)))
    for p in sorted(ROOT.rglob("*.py"))
    if p.parent != ROOT or p.stem in LEVELS
    if not str(p.relative_to(ROOT)).startswith(COMPATIBILITY)
]


@pytest.mark.parametrize("path", MODULES)
def test_a_module_imports_nothing_above_it(path):
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    above = {part for part in imported(path) if LEVELS.get(part, 0) > LEVELS[own]}
    assert not above


def test_the_language_loads_no_heavy_package():
    code = (
        "import sys, pypto.language\n"
        "heavy = {'numpy', 'jinja2', 'xdsl', 'ml_dtypes', 'torch', 'pypto.simulator', 'pypto.pto', 'pypto.codegen'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent)
    assert done.stdout.strip() == "[]"
