"""Where compilation spends its time: nested stages, measured while a `CompileProfiler` is active.

Active is the innermost ``with CompileProfiler()`` of the thread, or, with ``PYPTO_COMPILE_PROFILING=1`` in the
environment, one for the process. Without one nothing is recorded. Times are wall-clock seconds.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

_VARIABLE: Final = "PYPTO_COMPILE_PROFILING"
_NAME_WIDTH: Final = 32


@dataclass
class StageRecord:
    """One stage from ``start`` to ``end`` on the clock of `time.perf_counter`; ``end`` is 0 while it runs."""

    name: str
    start: float
    end: float = 0.0
    children: list[StageRecord] = field(default_factory=list)

    @property
    def duration(self) -> float:
        """Seconds; of a running stage, those so far."""
        return (self.end or time.perf_counter()) - self.start

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "seconds": self.duration, "children": [c.to_dict() for c in self.children]}


def stages_of(times: Mapping[str, float], start: float) -> list[StageRecord]:
    """Finished stages from what each took: they follow each other from ``start`` on."""
    made = []
    for name, seconds in times.items():
        made.append(StageRecord(name, start, start + seconds))
        start += seconds
    return made


class CompileProfiler:
    """Collects stages. As a context manager it is the active profiler inside the block."""

    _local: ClassVar[threading.local] = threading.local()

    def __init__(self) -> None:
        self.stages: list[StageRecord] = []
        self._open: list[StageRecord] = []
        self._outer: CompileProfiler | None = None
        self._start = time.perf_counter()
        self._end = 0.0

    @classmethod
    def current(cls) -> CompileProfiler | None:
        """The thread's active profiler."""
        return getattr(cls._local, "current", None)

    def __enter__(self) -> CompileProfiler:
        self._outer, self._local.current = self.current(), self
        self._start, self._end = time.perf_counter(), 0.0
        return self

    def __exit__(self, *_error: object) -> None:
        self._end = time.perf_counter()
        self._local.current = self._outer

    @property
    def of_environment(self) -> bool:
        """Whether the environment asked for this profiler, rather than a program."""
        return self is _env_profiler

    @contextmanager
    def stage(self, name: str) -> Iterator[StageRecord]:
        """Record the block as a stage, inside the stage it runs in."""
        record = self._begin_stage(name)
        try:
            yield record
        finally:
            self._end_stage()

    def _begin_stage(self, name: str) -> StageRecord:
        record = StageRecord(name, time.perf_counter())
        self.add_stage_record(record)
        self._open.append(record)
        return record

    def _end_stage(self) -> None:
        self._open.pop().end = time.perf_counter()

    def add_stage_record(self, record: StageRecord) -> None:
        """Add a stage measured elsewhere to the one running, or at the top."""
        (self._open[-1].children if self._open else self.stages).append(record)

    @property
    def total_seconds(self) -> float:
        """From entering the block to leaving it, or to now."""
        return (self._end or time.perf_counter()) - self._start

    def to_dict(self) -> dict[str, Any]:
        return {"total_seconds": self.total_seconds, "stages": [s.to_dict() for s in self.stages]}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """`to_dict` as JSON, also written to ``path`` when given."""
        import json

        text = json.dumps(self.to_dict(), indent=2)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def summary(self) -> str:
        """The stages as an indented table: seconds, and percent of the total."""
        total = self.total_seconds
        title = "PyPTO Compile Profile"
        lines = [title, "=" * len(title), f"Total: {total:.3f}s", ""]

        def add(record: StageRecord, depth: int) -> None:
            indent = "  " * depth
            share = 100 * record.duration / total if total else 0.0
            lines.append(f"{indent}{record.name:<{_NAME_WIDTH}} {record.duration:.3f}s  ({share:4.1f}%)")
            for child in record.children:
                add(child, depth + 1)

        for record in self.stages:
            add(record, 1)
        return "\n".join(lines) + "\n"

    def write_report(self, directory: str | os.PathLike[str]) -> None:
        """``pipeline_profile.txt`` and ``pipeline_profile.json`` in ``directory``, which is made if need be."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pipeline_profile.txt").write_text(self.summary(), encoding="utf-8")
        self.to_json(folder / "pipeline_profile.json")


_env_profiler: CompileProfiler | None = None


def get_active_profiler() -> CompileProfiler | None:
    """The profiler to record to: the thread's, else the one the environment asks for, which becomes the thread's."""
    global _env_profiler
    found = CompileProfiler.current()
    if found is None and os.environ.get(_VARIABLE) == "1":
        if _env_profiler is None:
            _env_profiler = CompileProfiler()
        CompileProfiler._local.current = found = _env_profiler
    return found


@contextmanager
def profiled(name: str) -> Iterator[StageRecord | None]:
    """Record the block as stage ``name`` when a profiler is active."""
    active = get_active_profiler()
    if active is None:
        yield None
        return
    with active.stage(name) as record:
        yield record
