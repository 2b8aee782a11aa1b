"""The PTOAS installer script, on an archive made here."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from pypto._resources import resource_dir

SCRIPT = Path(str(resource_dir("toolchain"))) / "install_ptoas.sh"
LAUNCHER = "#!/bin/sh\necho ptoas 0.61\n"


def install(tmp_path, root="root", **environment):
    base = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    command = ["bash", str(SCRIPT), str(tmp_path / root)]
    return subprocess.run(command, env=base | environment, capture_output=True, text=True, check=False)


@pytest.fixture
def tree(tmp_path):
    tree = tmp_path / "src" / "ptoas-bin"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin/ptoas").write_text(LAUNCHER)
    (tree / "bin/ptoas").chmod(0o755)
    return tree


@pytest.fixture
def archive(tmp_path, tree):
    path = tmp_path / "ptoas.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(tree, "ptoas-bin")
    return path


def test_unpacks_an_archive_with_one_top_folder(tmp_path, archive):
    done = install(tmp_path, PTOAS_ARCHIVE=str(archive))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "root/bin/ptoas").is_file()
    assert "installed ptoas 0.61" in done.stdout and f"export PTOAS_ROOT={tmp_path}/root" in done.stdout


def test_downloads_from_a_url(tmp_path, archive):
    done = install(tmp_path, PTOAS_URL=f"file://{archive}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "root/bin/ptoas").is_file()
    assert "cannot download" in install(tmp_path, "new", PTOAS_URL=f"file://{tmp_path}/none.tar.gz").stderr


def test_checks_the_sum_when_given(tmp_path, archive):
    bad = install(tmp_path, PTOAS_ARCHIVE=str(archive), PTOAS_SHA256="0" * 64)
    assert bad.returncode == 1 and "does not have checksum" in bad.stderr and not (tmp_path / "root").exists()
    good = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert install(tmp_path, PTOAS_ARCHIVE=str(archive), PTOAS_SHA256=good).returncode == 0


def test_without_a_source_says_what_is_needed(tmp_path):
    done = install(tmp_path)
    assert done.returncode == 2 and "PTOAS v0.61" in done.stderr and "PTOAS_ARCHIVE" in done.stderr


def test_never_overwrites_and_refuses_what_is_no_ptoas(tmp_path, archive):
    (tmp_path / "root").mkdir()
    assert "exists" in install(tmp_path, PTOAS_ARCHIVE=str(archive)).stderr
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("readme", "nothing")
    done = install(tmp_path, "new", PTOAS_ARCHIVE=str(tmp_path / "other.zip"))
    assert done.returncode == 1 and "holds no executable" in done.stderr
    assert "no archive at" in install(tmp_path, "new", PTOAS_ARCHIVE="/nowhere").stderr
