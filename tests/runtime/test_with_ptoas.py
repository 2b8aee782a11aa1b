"""`pl.compile` with PTOAS on the machine, played by a small executable."""

import sys

import numpy as np
import pytest

import pypto.language as pl
from pypto.toolchain import PtoasError, PtoasVersionError

PTOAS = """#!{python}
import pathlib, re, sys
if sys.argv[1:] == ["--version"]:
    print("ptoas {version}")
    sys.exit(0)
text = pathlib.Path(sys.argv[1]).read_text()
found = re.search(r'pto\\.texp .* loc\\("(.*)":(\\d+):(\\d+)\\)', text)
if found:
    print(f'loc("{{found[1]}}":{{found[2]}}:{{found[3]}}): error: \\'pto.texp\\' op is not for today', file=sys.stderr)
    sys.exit(1)
pathlib.Path(sys.argv[-1]).write_text("// " + " ".join(sys.argv[2:-2]))
"""


@pytest.fixture
def ptoas(tmp_path, monkeypatch):
    """Installs a PTOAS of a version under PTOAS_ROOT."""

    def install(version="0.61"):
        path = tmp_path / "root" / "bin" / "ptoas"
        path.parent.mkdir(parents=True)
        path.write_text(PTOAS.format(python=sys.executable, version=version))
        path.chmod(0o755)
        monkeypatch.setenv("PTOAS_ROOT", str(tmp_path / "root"))

    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    monkeypatch.delenv("PTOAS_ROOT", raising=False)
    monkeypatch.setenv("PATH", "")
    return install


@pl.function(type=pl.FunctionType.InCore)
def double(x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
    t = pl.load(x, [0, 0], [16, 16])
    pl.store(pl.add(t, t), [0, 0], y)


@pl.function(type=pl.FunctionType.InCore)
def exponential(x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
    t = pl.load(x, [0, 0], [16, 16])
    t = pl.exp(t)
    pl.store(t, [0, 0], y)


@pytest.mark.parametrize(("target", "arch"), [("Ascend910B", "a3"), ("Ascend950", "a5")])
def test_kernels_become_cpp(ptoas, target, arch):
    ptoas()
    compiled = pl.compile(double, target=target)
    assert compiled.cpp["double"] == f"// --enable-insert-sync --pto-level=level3 --pto-arch {arch}"
    assert (compiled.output_dir / "ptoas" / "double.cpp").read_text() == compiled.cpp["double"]


def test_what_ptoas_refuses_is_shown_at_the_python_line(ptoas):
    ptoas()
    with pytest.raises(PtoasError) as caught:
        pl.compile(exponential)
    text = str(caught.value)
    assert "op is not for today" in text and "t = pl.exp(t)" in text and f"{__file__}:" in text


def test_skip_ptoas_does_not_run_it(ptoas):
    ptoas()
    assert pl.compile(exponential, skip_ptoas=True).cpp == {}


def test_an_old_ptoas_is_refused_with_the_reason(ptoas):
    ptoas("0.60")
    with pytest.raises(PtoasVersionError, match="0.61"):
        pl.compile(double)


def test_without_ptoas_programs_still_run(ptoas):
    compiled = pl.compile(double)
    assert compiled.cpp == {}
    x = np.ones((16, 16), np.float32)
    y = np.zeros_like(x)
    compiled(x, y)
    assert (y == 2).all()
