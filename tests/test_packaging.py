"""The wheel: built, installed outside the checkout, and used to compile and run a kernel there."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from pypto._resources import resource_dir
from pypto.errors import InternalError

CHECKOUT = Path(__file__).resolve().parents[1]

KERNEL = """
import numpy as np

import pypto
import pypto.language as pl


@pl.function(type=pl.FunctionType.InCore)
def add(
    a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[32, 64], pl.FP32], out: pl.Out[pl.Tensor[[32, 64], pl.FP32]]
) -> pl.Tensor[[32, 64], pl.FP32]:
    x = pl.load(a, [0, 0], [32, 64])
    y = pl.load(b, [0, 0], [32, 64])
    return pl.store(pl.add(x, y), [0, 0], out)


compiled = pl.compile(add)
rng = np.random.default_rng(0)
a, b = rng.standard_normal((2, 32, 64), dtype=np.float32)
a[0, :3] = [np.inf, np.nan, -0.0]
out = np.full((32, 64), 7, np.float32)
compiled(a, b, out)
np.testing.assert_array_equal(out, a + b)
(text,) = compiled.pto.values()
assert "pto.tadd" in text
print(pypto.__file__)
"""

RESOURCES = """
import sys
from pypto._resources import resource_dir
from pypto.toolchain import pinned_versions
assert pinned_versions()["PTOAS_VERSION"].startswith("v0.")
assert (resource_dir("toolchain") / "install_ptoas.sh").is_file()
templates = resource_dir("codegen_templates") / "pto"
assert any(entry.name.endswith(".j2") for entry in templates.iterdir())
print(resource_dir("toolchain"))
"""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(CHECKOUT)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Interpreter of a fresh venv with the wheel; dependencies come from this interpreter's packages."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(packages)]
    subprocess.run([*install, str(wheel)], check=True)
    # The .pth file of an editable install among them is not followed, so the checkout stays out of reach.
    outer = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "dependencies.pth").write_text("\n".join(outer) + "\n")
    return python


def run(python: Path, code: str, folder: Path) -> str:
    script = folder / "script.py"
    script.write_text(code)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PTOAS"))}
    done = subprocess.run(
        [str(python), str(script)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_wheel_is_pure_and_complete(wheel: Path):
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for source in ("pypto", "codegen_templates", "toolchain"):
        prefix = "" if source == "pypto" else "pypto/_data/"
        for path in (CHECKOUT / source).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert prefix + path.relative_to(CHECKOUT).as_posix() in names
    assert not any(name.startswith(("tests/", "examples/", "codegen_templates/", "toolchain/")) for name in names)


def test_data_folders_are_found_from_the_wheel(installed: Path, tmp_path: Path):
    where = run(installed, RESOURCES, tmp_path)
    assert where.endswith("pypto/_data/toolchain") and not where.startswith(str(CHECKOUT))


def test_a_kernel_compiles_and_runs_from_the_wheel(installed: Path, tmp_path: Path):
    assert not run(installed, KERNEL, tmp_path).startswith(str(CHECKOUT))


def test_data_folders_are_found_in_the_checkout():
    assert (resource_dir("toolchain") / "versions.env").is_file()
    with pytest.raises(InternalError, match="has no nonsense folder"):
        resource_dir("nonsense")
