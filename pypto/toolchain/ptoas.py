"""PTOAS, the assembler that turns PTO text into kernel C++: finding it, checking it, running it."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from ..errors import Diagnostic, DiagnosticsError, DiagnosticSeverity
from ..logging import LogLevel, get_log_level, log_info, log_warn
from . import locate
from .messages import diagnose
from .versions import Version, pinned_versions

DEFAULT_TIMEOUT = 300.0
_VERSION_TIMEOUT = 30.0
_TIMED_OUT = 124
_LAST_LINES = 20
_UNPLACED = re.compile(r"pto\.alloc_tile (?!addr\b)")
"""A tile without an address: PTOAS places them at level 2, and not at level 3."""
_GUARD = str(Path(__file__).with_name("_guard.py"))


class PtoasError(DiagnosticsError):
    """PTOAS did not produce C++. ``diagnostics`` has its errors, at the user's Python lines where known."""


class PtoasVersionError(PtoasError):
    """The PTOAS found is too old, or does not say what it is."""


class Ptoas:
    """One PTOAS executable."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"Ptoas({str(self.path)!r})"

    @cached_property
    def version(self) -> Version:
        """What ``--version`` reports. Raises PtoasVersionError when it reports nothing readable."""
        status, output = _run([str(self.path), "--version"], _VERSION_TIMEOUT)
        version = Version.find(output) if status == 0 else None
        if version is None:
            raise PtoasVersionError(f"cannot read the version of {self.path}: status {status}, output {output!r}")
        return version

    def check_version(self) -> None:
        """Raises PtoasVersionError unless this PTOAS reads PTO text as PyPTO means it."""
        minimum = Version.find(pinned_versions()["PTOAS_MINIMUM"])
        if minimum is not None and self.version < minimum:
            raise PtoasVersionError(
                f"{self.path} is PTOAS {self.version}; {minimum} or newer is needed: older releases infer the layout "
                "of a tensor view as nd and reject the NZ layouts PyPTO states. Point PTOAS_ROOT at a newer one "
                "(toolchain/install_ptoas.sh installs it), or compile with skip_ptoas=True"
            )

    def assemble(
        self,
        kernels: Mapping[str, str],
        out_dir: str | os.PathLike[str],
        arch: str,
        timeout: float = DEFAULT_TIMEOUT,
        jobs: int | None = None,
    ) -> dict[str, Path]:
        """Assemble PTO text into C++, several kernels at a time.

        ``kernels`` maps a kernel's name to its PTO text; ``<name>.pto`` and ``<name>.cpp`` are written to
        ``out_dir``. ``arch`` is the target's ``pto_arch`` (``a3`` or ``a5``), ``timeout`` the seconds one
        kernel may take, ``jobs`` the number run at once (default: one a CPU).
        Returns the C++ file of each kernel. Raises PtoasError with the errors of every kernel that failed.
        """
        from concurrent.futures import ThreadPoolExecutor

        self.check_version()
        folder = Path(out_dir)
        folder.mkdir(parents=True, exist_ok=True)
        if not kernels:
            return {}
        workers = min(jobs or os.cpu_count() or 1, len(kernels))
        with ThreadPoolExecutor(workers, thread_name_prefix="ptoas") as pool:
            runs = {
                name: pool.submit(self.assemble_one, name, text, folder, arch, timeout)
                for name, text in kernels.items()
            }
            failures = {name: run.result() for name, run in runs.items()}
        errors = [diagnostic for found in failures.values() for diagnostic in found]
        if errors:
            failed = ", ".join(name for name, found in failures.items() if found)
            raise PtoasError(f"PTOAS {self.version} refused {failed}", errors)
        return {name: folder / f"{name}.cpp" for name in kernels}

    def assemble_one(
        self, name: str, text: str, folder: Path, arch: str, timeout: float = DEFAULT_TIMEOUT
    ) -> list[Diagnostic]:
        """Write ``name``'s .pto and .cpp to ``folder``; the errors, empty on success. See `assemble`."""
        source, result = folder / f"{name}.pto", folder / f"{name}.cpp"
        source.write_text(text, encoding="utf-8")
        result.unlink(missing_ok=True)
        level = "level2" if _UNPLACED.search(text) else "level3"
        flags = ["--enable-insert-sync", f"--pto-level={level}", "--pto-arch", arch]
        started = time.monotonic()
        status, output = _run([str(self.path), str(source), *flags, "-o", str(result)], timeout)
        if status == _TIMED_OUT and time.monotonic() - started >= timeout:
            result.unlink(missing_ok=True)
            hint = "give it longer, or split the kernel"
            return [Diagnostic(f"PTOAS: kernel {name} took longer than {timeout:g} s and was ended", hint=hint)]
        found = diagnose(output, text, str(source))
        errors = [d for d in found if d.severity is DiagnosticSeverity.Error]
        if status == 0 and not errors and result.is_file():
            for warning in found:
                log_warn(warning.render())
            return []
        result.unlink(missing_ok=True)
        if errors:
            return errors
        outcome = f"ended with status {status}" if status else "wrote no C++"
        return [Diagnostic(f"PTOAS: {outcome} for kernel {name}", notes=output.splitlines()[-_LAST_LINES:])]


def _run(command: list[str], timeout: float) -> tuple[int, str]:
    """Status and joined output of ``command``; status 124 when it was ended after ``timeout`` seconds."""
    from subprocess import DEVNULL

    from subprocess_tee import run

    quiet = get_log_level() is not LogLevel.DEBUG
    done = run(
        [sys.executable, "-I", "-S", _GUARD, str(timeout), *command],
        quiet=quiet,
        tee=not quiet,
        stdin=DEVNULL,
    )
    return done.returncode, (done.stderr or "") + (done.stdout or "")


_found: dict[tuple[Path, int], Ptoas] = {}
_told_absent = threading.Event()


def find_ptoas() -> Ptoas | None:
    """The PTOAS of this machine, or None. The same object as before while the file is unchanged.

    The first time none is found, the log says so and how to get kernel C++; that is not an error.
    """
    path = locate.find_ptoas_binary()
    if path is None:
        if not _told_absent.is_set():
            _told_absent.set()
            log_info(locate.absence())
        return None
    key = path, path.stat().st_mtime_ns
    return _found.setdefault(key, Ptoas(path))
