"""The parts of ``make vendor`` that work without the tools."""

import io
import os
import signal
import stat
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np

import pypto.language as pl
from pypto.toolchain.ptoas import Ptoas
from vendor import run_unit
from vendor.__main__ import main
from vendor.allowed import reason
from vendor.assemble import assemble, by_kind, recorded
from vendor.library import Kernel, Library, compare, errors_by_kernel, run, unit
from vendor.record import COMPILED, GENERATED, Recorder, digest_of, install

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
    recorder.run(text, "k", [array], [array], (0, 1, 0))
    assert not list(tmp_path.glob("*.npz"))
    recorder.text("k", text, COMPILED)
    number = np.array(3)
    recorder.run(text, "k", [array, number], [array + 1, number], (2, 4, 1))
    recorder.run(text, "k", [array, number + 1], [array, number], (0, 1, 0))
    (kept,) = recorded(tmp_path)[0].runs
    saved = np.load(kept)
    assert saved["a1"] == 3 and saved["b0"].tolist() == [1, 2, 3, 4] and saved["types"].tolist() == ["float32", "int64"]
    assert saved["place"].tolist() == [2, 4, 1]


def test_texts_that_differ_in_source_lines_are_one():
    assert digest_of('return loc("a.py":3:4)') == digest_of('return loc("b.py":10:1)') != digest_of("return 1")


@pl.program
class Scaled:
    @pl.function
    def scaled(self, x: pl.Tensor[[16, 16], pl.FP32], by: pl.Scalar[pl.FP32]) -> pl.Tensor[[16, 16], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.mul(x, by)
        return y


def test_texts_and_runs_are_recorded_with_numbers_in_the_types_the_kernel_declares(tmp_path, monkeypatch):
    recorder = Recorder(tmp_path)
    recorder.test = "a test"
    install(recorder, monkeypatch)
    pl.compile(Scaled, skip_ptoas=True)(np.ones((16, 16), np.float32), 3.0)
    (text,) = recorded(tmp_path)
    assert (text.origin, text.test) == (COMPILED, "a test")
    saved = np.load(text.runs[0])
    assert saved["types"].tolist() == ["float32"] * 3
    (number,) = (i for i in range(3) if saved[f"a{i}"].ndim == 0)
    assert saved[f"a{number}"] == 3 and saved[f"a{number}"].dtype == np.float32
    assert any((saved[f"b{i}"] == 3).all() for i in range(3) if i != number)


def test_verdict_is_kept_for_the_executable_it_came_from(tmp_path):
    asked = tmp_path / "asked"
    tool = _program(tmp_path / "ptoas", f"""
        open({str(asked)!r}, 'a').write('x')
        open(sys.argv[sys.argv.index('-o') + 1], 'w').write('// C++')
    """)
    recorder = Recorder(tmp_path / "kept")
    recorder.text("k", MODULE.format(arch="a5", what=1), COMPILED)
    for _ in range(2):
        texts = recorded(tmp_path / "kept")
        assemble(texts, Ptoas(tool), tmp_path / "cpp")
        assert texts[0].refusal == "" and texts[0].cpp is not None and texts[0].cpp.exists()
    assert asked.read_text() == "x"


def _program(path: Path, body: str) -> Path:
    """An executable written in Python."""
    lines = dedent(body)
    path.write_text(f"#!{sys.executable}\nimport sys\n{lines}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def _kernels(tmp_path: Path, *bodies: str) -> list[Kernel]:
    found = []
    for n, body in enumerate(bodies):
        cpp = tmp_path / f"{n}.cpp"
        head = '#include "pto/pto-inst.hpp"\nusing namespace pto;\n'
        cpp.write_text(head + f"void k(float* v1, int32_t v2) {{\n  {body}\n}}\n")
        run = tmp_path / f"{n}.npz"
        array = np.ones(2, np.float32)
        np.savez(run, types=["float32", "int32"], place=[0, 1, 0], a0=array, a1=np.int32(5), b0=array * 5,
                 b1=np.int32(5))  # fmt: skip
        found.append(Kernel(f"{n:016x}", "k", "vector", "a3", cpp, run, f"test_{n}"))
    return found


def test_unit_keeps_kernels_apart_and_calls_them_with_pointers(tmp_path):
    text = unit(_kernels(tmp_path, "v1[0] = 1;", "v1[0] = 2;"))
    assert text.count("#include <cstdint>") == 1 and text.count("pto-inst.hpp") == 1
    assert "namespace kernel_0000000000000001 {" in text
    assert 'extern "C" void run_0000000000000000(void** a, unsigned block, unsigned lane) {' in text
    assert "k((float*) a[0], *(int32_t*) a[1]); }" in text


def test_errors_belong_to_the_kernel_they_name_or_are_instantiated_by():
    found = errors_by_kernel(
        "kernel_000000000000000a:7:1: error: no member named 'x'\n"
        "lib.hpp:3:1: error: static assertion failed\n"
        "kernel_000000000000000b:9:1: note: in instantiation of function template specialization\n"
    )
    assert found == {"000000000000000a": "no member named 'x'", "000000000000000b": "static assertion failed"}


COMPILER = """
    source = open(next(a for a in sys.argv if a.endswith('.cpp'))).read()
    names = [line.split()[1] for line in source.splitlines() if line.startswith('namespace kernel_')]
    bodies = dict(zip(names, source.split('namespace kernel_')[1:]))
    for name, body in bodies.items():
    \tif 'nonsense' in body: print(f"{name}:2:3: error: what is 'nonsense'", file=sys.stderr)
    \tif 'poison' in body: print('clang: error: crashed', file=sys.stderr)
    sys.exit(any(w in b for b in bodies.values() for w in ('nonsense', 'poison')))
"""


def test_kernels_that_do_not_compile_leave_the_others_of_their_unit_alone(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr("vendor.library.run", lambda kernels, so: ran.extend(k.digest for k in kernels))
    compiler = _program(tmp_path / "compiler", COMPILER)
    kernels = _kernels(tmp_path, "good", "nonsense", "good", "poison", "good")
    Library(tmp_path, str(compiler)).judge(kernels, tmp_path / "units")
    assert [int(d, 16) for d in ran] == [0, 2, 4]
    assert kernels[1].outcome == "does not compile: what is 'nonsense'"
    assert kernels[3].outcome.startswith("does not compile: ") and "crashed" in kernels[3].outcome


def test_kernel_that_crashes_leaves_the_others_alone(tmp_path, monkeypatch, capfd):
    def runs(library, digest, recorded, result):
        if digest == "b":
            os.kill(os.getpid(), signal.SIGKILL)
        Path(result).write_text(digest)

    monkeypatch.setattr(run_unit, "_run", runs)
    monkeypatch.setattr(run_unit.ctypes, "CDLL", lambda path: path)
    monkeypatch.setattr(sys, "argv", ["run_unit", "x.so"])
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{d}\tin\t{tmp_path / d}\n" for d in "abc")))
    run_unit.main()
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["a", "c"]
    assert "b\tSIGKILL" in capfd.readouterr().out


def test_library_that_cannot_be_loaded_is_an_outcome(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[1]))
    kernels = _kernels(tmp_path, "good")
    run(kernels, tmp_path / "none.so")
    assert kernels[0].outcome.startswith("crashes: OSError")


def test_outcomes_that_differ_in_numbers_are_one_kind(tmp_path):
    first, second = _kernels(tmp_path, "good", "good")
    first.test, second.test = "t.py::test_it[tile.cast-FP16-a2a3]", "t.py::test_it[tile.cast-INT8-a2a3]"
    first.outcome, second.outcome = "differs: argument 1, 3 of 4 elements", "differs: argument 0, 1 of 9 elements"
    assert first.kind == second.kind == "tile.cast a3 differs: "


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
