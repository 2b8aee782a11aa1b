"""The PTOAS adapter, driven against a stand-in executable."""

from __future__ import annotations

import os
import sys
import time

import pytest

from pypto import logging as log
from pypto.toolchain import Ptoas, PtoasError, PtoasVersionError, Version, find_ptoas, find_ptoas_binary, ptoas

KERNEL_SOURCE = "import pypto.language as pl\n\ndef add(x, y):\n    return pl.add(x, y)\n"

STAND_IN = """#!{python}
import json, os, pathlib, sys, time
if sys.argv[1:] == ["--version"]:
    print("ptoas {version}")
    sys.exit(0)
source, *rest = sys.argv[1:]
out = pathlib.Path(rest[-1])
behaviour = pathlib.Path(source).stem.split("_")[0]
started = time.time()
{body}
out.write_text(json.dumps(dict(flags=rest[:-2], started=started, ended=time.time())))
"""


@pytest.fixture
def make(tmp_path):
    """Writes a stand-in for PTOAS running ``body`` on each kernel, at a path below tmp_path."""

    def write(body="", version="0.61", at="tools/ptoas"):
        path = tmp_path / at
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(STAND_IN.format(python=sys.executable, version=version, body=body))
        path.chmod(0o755)
        return path

    return write


@pytest.fixture
def kernel_file(tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL_SOURCE)
    return path


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_success_writes_pto_and_cpp_with_the_flags(make, tmp_path, arch):
    result = Ptoas(make()).assemble({"add": "module {}\n"}, tmp_path / "out" / "deep", arch)
    assert result == {"add": tmp_path / "out" / "deep" / "add.cpp"}
    assert (tmp_path / "out/deep/add.pto").read_text() == "module {}\n"
    for flag in ("--enable-insert-sync", "--pto-level=level3", f'"--pto-arch", "{arch}"'):
        assert flag in result["add"].read_text()


@pytest.mark.parametrize("addr, level", [("addr = %c0_i64 ", "level3"), ("", "level2")])
def test_tiles_without_addresses_are_placed_at_level_2(make, tmp_path, addr, level):
    text = f"%t = pto.alloc_tile {addr}: !pto.tile_buf<loc=vec>\n"
    made = Ptoas(make()).assemble({"add": text}, tmp_path / "out", "a3")
    assert f"--pto-level={level}" in made["add"].read_text()


def test_nothing_to_do(make, tmp_path):
    assert Ptoas(make()).assemble({}, tmp_path / "out", "a3") == {}


def test_error_with_loc_is_shown_at_the_python_line(make, tmp_path, kernel_file):
    body = f"""
if behaviour == "bad":
    print('loc("{kernel_file}":4:12): error: \\'pto.tadd\\' op expects equal shapes', file=sys.stderr)
    print('loc("{kernel_file}":4:12): note: see current operation: "pto.tadd"', file=sys.stderr)
    sys.exit(1)"""
    with pytest.raises(PtoasError) as caught:
        Ptoas(make(body)).assemble({"good": "module {}", "bad": "module {}"}, tmp_path / "out", "a3")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == "PTOAS: 'pto.tadd' op expects equal shapes"
    assert (diagnostic.location.filename, diagnostic.location.begin_line) == (str(kernel_file), 4)
    text = str(caught.value)
    assert text.startswith("PTOAS 0.61 refused bad\n")
    assert "4 |     return pl.add(x, y)" in text and "note: see current operation" in text
    assert (tmp_path / "out/good.cpp").is_file() and not (tmp_path / "out/bad.cpp").exists()


def test_errors_of_every_kernel_are_collected(make, tmp_path):
    body = "print(f'error: no {behaviour}', file=sys.stderr); sys.exit(1)"
    with pytest.raises(PtoasError, match="refused b, a") as caught:
        Ptoas(make(body)).assemble({"b": "", "a": ""}, tmp_path, "a3")
    assert [d.message for d in caught.value.diagnostics] == ["PTOAS: no b", "PTOAS: no a"]


def test_a_crash_without_message_shows_the_last_output(make, tmp_path):
    body = "print('stack dump', file=sys.stderr, flush=True); os.kill(os.getpid(), 11)"
    with pytest.raises(PtoasError, match="ended with status 139 for kernel k") as caught:
        Ptoas(make(body)).assemble({"k": ""}, tmp_path, "a3")
    assert caught.value.diagnostics[0].notes == ("stack dump",)


def test_silent_success_without_output_is_an_error_and_stale_output_is_not_returned(make, tmp_path):
    (tmp_path / "k.cpp").write_text("stale")
    with pytest.raises(PtoasError, match="wrote no C"):
        Ptoas(make("sys.exit(0)")).assemble({"k": ""}, tmp_path, "a3")
    assert not (tmp_path / "k.cpp").exists()


def test_warnings_are_logged(make, tmp_path, capfd):
    body = "print('warning: slow copy', file=sys.stderr)"
    Ptoas(make(body)).assemble({"k": ""}, tmp_path, "a3")
    assert "W | Warning: PTOAS: slow copy" in capfd.readouterr().err


def test_time_out_ends_the_whole_tree(make, tmp_path):
    body = f"""
import subprocess
child = subprocess.Popen([{sys.executable!r}, "-c", "import time; time.sleep(60)"])
pathlib.Path({str(tmp_path / "pid")!r}).write_text(str(child.pid))
child.wait()"""
    started = time.monotonic()
    with pytest.raises(PtoasError, match=r"kernel slow took longer than 3 s and was ended"):
        Ptoas(make(body)).assemble({"slow": ""}, tmp_path / "out", "a3", timeout=3)
    assert time.monotonic() - started < 30
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while _alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(pid)


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_kernels_run_at_the_same_time_up_to_jobs(make, tmp_path):
    # Each of the two waits for the other's mark, so one at a time would time out.
    meet = f"""
marks = pathlib.Path({str(tmp_path)!r})
(marks / behaviour).touch()
while len(list(marks.glob("k?"))) < 2:
    time.sleep(0.01)"""
    assert len(Ptoas(make(meet)).assemble({"k1": "", "k2": ""}, tmp_path / "o", "a3", timeout=30, jobs=2)) == 2

    alone = f"""
lock = pathlib.Path({str(tmp_path / "lock")!r})
lock.mkdir()
time.sleep(0.05)
lock.rmdir()"""
    names = dict.fromkeys(("a", "b", "c"), "")
    assert list(Ptoas(make(alone)).assemble(names, tmp_path / "p", "a3", jobs=1)) == ["a", "b", "c"]


@pytest.mark.parametrize("version", ["0.60", "0.60.9", "v0.22"])
def test_old_version_is_refused_with_the_reason(make, tmp_path, version):
    with pytest.raises(PtoasVersionError, match=r"0\.61 or newer is needed: .*NZ layouts"):
        Ptoas(make(version=version)).assemble({"k": ""}, tmp_path / "out", "a3")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("version", ["0.61", "v0.61.0", "0.100 (LLVM 19.1.7)", "1.0"])
def test_new_enough_versions(make, version):
    Ptoas(make(version=version)).check_version()


def test_unreadable_version(make, tmp_path):
    with pytest.raises(PtoasVersionError, match="cannot read the version"):
        Ptoas(make(version="unknown")).check_version()
    with pytest.raises(PtoasVersionError, match="status 1"):
        Ptoas(tmp_path / "missing").check_version()


@pytest.mark.parametrize("layout", ["ptoas.sh", "ptoas", "bin/ptoas"])
def test_each_form_of_ptoas_root(make, tmp_path, monkeypatch, layout):
    path = make(at=f"root/{layout}")
    if layout != "ptoas":
        (tmp_path / "root/ptoas").mkdir()  # the Python package of newer releases
    monkeypatch.setenv("PTOAS_ROOT", str(tmp_path / "root"))
    assert find_ptoas_binary() == path
    found = find_ptoas()
    assert found is not None and found.version == (0, 61, 0) and find_ptoas() is found


def test_the_launcher_with_its_own_interpreter_comes_first(make, tmp_path, monkeypatch):
    make(at="root/bin/ptoas")
    make(at="root/ptoas")
    monkeypatch.setenv("PTOAS_ROOT", str(tmp_path / "root"))
    assert find_ptoas_binary() == tmp_path / "root/ptoas"
    assert find_ptoas_binary() != make(at="root/other")
    launcher = make(at="root/ptoas.sh")
    assert find_ptoas_binary() == launcher


def test_a_replaced_executable_is_a_new_ptoas(make, tmp_path, monkeypatch):
    monkeypatch.setenv("PTOAS_ROOT", str(tmp_path / "tools"))
    path = make(version="0.61")
    first = find_ptoas()
    assert first is not None and str(first.version) == "0.61"
    make(version="0.62")
    os.utime(path, ns=(1, 1))
    second = find_ptoas()
    assert second is not None and str(second.version) == "0.62"


def test_path_is_used_only_without_root(make, tmp_path, monkeypatch):
    path = make(at="bin/ptoas")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("PTOAS_ROOT", raising=False)
    assert find_ptoas_binary() == path
    monkeypatch.setenv("PTOAS_ROOT", str(tmp_path / "empty"))
    assert find_ptoas_binary() is None
    path.chmod(0o644)
    monkeypatch.delenv("PTOAS_ROOT")
    assert find_ptoas_binary() is None


def test_absence_is_told_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PTOAS_ROOT", str(tmp_path))
    monkeypatch.setattr(ptoas, "_told_absent", type(ptoas._told_absent)())
    saved = log.get_log_level()
    log.set_log_level(log.LogLevel.INFO)
    try:
        assert find_ptoas() is None and find_ptoas() is None
    finally:
        log.set_log_level(saved)
    told = capsys.readouterr().err
    assert told.count("no PTOAS") == 1
    assert f"PTOAS_ROOT={tmp_path} holds none of ptoas.sh, ptoas, bin/ptoas" in told
    assert "simulator" in told and "PTOAS v0.61" in told


def test_versions_compare_by_number():
    assert Version.find("ptoas v0.9") < Version.find("release 0.61.0, built 2026.09.01")
    assert str(Version(0, 61)) == "0.61" and str(Version(0, 61, 2)) == "0.61.2"
    assert Version.find("none") is None
