"""The parts of ``make vendor`` that work without the tools."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from vendor.__main__ import main
from vendor.allowed import reason
from vendor.assemble import by_kind, recorded
from vendor.library import Kernel, Library, compare, errors_by_kernel, unit
from vendor.record import COMPILED, GENERATED, Recorder

MODULE = 'module attributes {{pto.target_arch = "{arch}"}} {{ }} // {what}'


def test_refusals_that_differ_in_names_and_numbers_are_one_kind(tmp_path):
    recorder = Recorder(tmp_path)
    for n in range(3):
        recorder.text("k", MODULE.format(arch="a5" if n == 2 else "a2a3", what=n), COMPILED)
    texts = recorded(tmp_path)
    for n, text in enumerate(texts):
        text.refusal = f"'pto.tsel' op expects %t_{n} : !pto.tile_buf<loc=vec, rows={n}> of {n} bytes"
    kinds = by_kind(texts)
    assert sorted(map(len, kinds.values())) == [1, 2]
    assert all("pto.tsel" in kind and "%" not in kind for kind in kinds)


def test_text_of_the_compiler_counts_as_compiled_even_when_generated_before(tmp_path):
    recorder = Recorder(tmp_path)
    recorder.text("k", MODULE.format(arch="a5", what=1), GENERATED)
    recorder.text("k", MODULE.format(arch="a5", what=1), COMPILED)
    recorder.text("k", MODULE.format(arch="a5", what=1), GENERATED)
    assert [(t.origin, t.arch) for t in recorded(tmp_path)] == [(COMPILED, "a5")]


def test_first_run_of_a_known_text_is_kept(tmp_path):
    recorder = Recorder(tmp_path)
    text = MODULE.format(arch="a5", what="run")
    array = np.arange(4, dtype=np.float32)
    recorder.run(text, "k", [array], [array])
    assert not list(tmp_path.glob("*.npz"))
    recorder.text("k", text, COMPILED)
    recorder.run(text, "k", [array, 3], [array + 1, 3])
    recorder.run(text, "k", [array, 4], [array, 4])
    (kept,) = recorded(tmp_path)[0].runs
    saved = np.load(kept)
    assert saved["a1"] == 3 and saved["b0"].tolist() == [1, 2, 3, 4] and saved["types"].tolist() == ["float32", "int64"]


def _kernels(tmp_path: Path, *bodies: str) -> list[Kernel]:
    found = []
    for n, body in enumerate(bodies):
        cpp = tmp_path / f"{n}.cpp"
        head = '#include "pto/pto-inst.hpp"\nusing namespace pto;\n'
        cpp.write_text(head + f"void k(float* v1, int32_t v2) {{\n  {body}\n}}\n")
        run = tmp_path / f"{n}.npz"
        array = np.ones(2, np.float32)
        np.savez(run, types=["float32", "int32"], a0=array, a1=np.int32(5), b0=array * 5, b1=np.int32(5))
        found.append(Kernel(f"{n:016x}", "k", "vector", cpp, run, f"test_{n}"))
    return found


def test_unit_keeps_kernels_apart_and_calls_them_with_pointers(tmp_path):
    text = unit(_kernels(tmp_path, "v1[0] = 1;", "v1[0] = 2;"))
    assert text.count("#include <cstdint>") == 1 and text.count("pto-inst.hpp") == 1
    assert "namespace kernel_0000000000000001 {" in text
    assert 'extern "C" void run_0000000000000000(void** a) { k((float*) a[0], *(int32_t*) a[1]); }' in text


def test_errors_belong_to_the_kernel_they_name_or_are_instantiated_by():
    found = errors_by_kernel(
        "kernel_000000000000000a:7:1: error: no member named 'x'\n"
        "lib.hpp:3:1: error: static assertion failed\n"
        "kernel_000000000000000b:9:1: note: in instantiation of function template specialization\n"
    )
    assert found == {"000000000000000a": "no member named 'x'", "000000000000000b": "static assertion failed"}


@pytest.fixture
def library(tmp_path, monkeypatch) -> Library:
    """A library whose headers declare a namespace and nothing else, with the compiler of the machine."""
    header = tmp_path / "isa" / "include" / "pto" / "pto-inst.hpp"
    header.parent.mkdir(parents=True)
    header.write_text("namespace pto {}\n")
    compiler = shutil.which("g++") or shutil.which("clang++")
    assert compiler is not None, "a C++ compiler is needed"
    made = Library(tmp_path / "isa", compiler)
    flags = ["-std=c++17", "-fPIC", "-shared", f"-I{made.root / 'include'}"]
    monkeypatch.setattr(made, "flags", lambda core: flags)
    return made


def test_kernel_that_does_not_compile_or_crashes_leaves_the_others_alone(tmp_path, library, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[1]))
    kernels = _kernels(
        tmp_path, "v1[0] = v1[1] = v2;", "nonsense;", "__builtin_trap();", "v1[0] = 4, v1[1] = v2;", "*v1 = v1[1] = v2;"
    )
    library.judge(kernels, tmp_path / "units")
    equal, broken, crashed, wrong, last = (k.outcome for k in kernels)
    assert (equal, last) == ("equal", "equal")
    assert broken.startswith("does not compile: ") and "nonsense" in broken
    assert crashed.startswith("crashes (")
    assert wrong == "differs: argument 0, 1 of 2 elements, first 4.0 for 5.0 at (0,)"


def test_nan_equals_nan_and_signs_of_zero_do_not_matter(tmp_path):
    want, got = tmp_path / "want.npz", tmp_path / "got.npz"
    np.savez(want, types=["float32"], b0=np.array([np.nan, 0.0, np.inf], np.float32))
    np.savez(got, b0=np.array([np.nan, -0.0, np.inf], np.float32))
    assert compare(want, got) == "equal"


def test_missing_tools_are_named_and_fail(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("PTOAS_ROOT", raising=False)
    monkeypatch.delenv("PTO_ISA_ROOT", raising=False)
    assert main(["--work", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "PTOAS_ROOT" in said and "PTO_ISA_ROOT" in said and "clang++" in said
    assert not list(tmp_path.iterdir())


def test_reasons_are_found_by_pattern():
    assert reason({r"tsel .*tmp": "known"}, "t a3: 'pto.tsel' wants a tmp") == ""
    assert reason({r"tsel.*tmp": "known"}, "t a3: 'pto.tsel' wants a tmp") == "known"
