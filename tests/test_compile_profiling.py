"""Stages of compilation and what they took."""

import json
import time

import pytest

import pypto.language as pl
from pypto import compile_profiling
from pypto.compile_profiling import CompileProfiler, StageRecord, get_active_profiler, profiled, stages_of


@pytest.fixture(autouse=True)
def nothing_active(monkeypatch):
    monkeypatch.delenv("PYPTO_COMPILE_PROFILING", raising=False)
    monkeypatch.setattr(compile_profiling, "_env_profiler", None)
    yield
    CompileProfiler._local.__dict__.clear()


def names(records):
    return [(r.name, names(r.children)) for r in records]


def test_stages_nest_and_end_when_their_block_fails():
    with CompileProfiler() as profiler:
        with profiler.stage("a"), pytest.raises(KeyError), profiler.stage("b"):
            raise KeyError
        with profiler.stage("c"):
            profiler.add_stage_record(StageRecord("measured elsewhere", 1.0, 3.5))
    assert names(profiler.stages) == [("a", [("b", [])]), ("c", [("measured elsewhere", [])])]
    assert profiler.stages[1].children[0].duration == 2.5
    assert all(r.end >= r.start for r in profiler.stages)


def test_the_innermost_profiler_of_the_thread_is_active():
    assert get_active_profiler() is None
    with CompileProfiler() as outer:
        with CompileProfiler() as inner, profiled("x"):
            assert get_active_profiler() is inner
        assert get_active_profiler() is outer
    assert names(inner.stages) == [("x", [])] and outer.stages == []
    with profiled("into nothing"):
        assert CompileProfiler.current() is None


def test_the_environment_makes_one_profiler_for_the_process(monkeypatch):
    monkeypatch.setenv("PYPTO_COMPILE_PROFILING", "1")
    found = get_active_profiler()
    assert found is not None and found is get_active_profiler() and found.of_environment
    monkeypatch.setenv("PYPTO_COMPILE_PROFILING", "0")
    CompileProfiler._local.__dict__.clear()
    assert get_active_profiler() is None


def test_times_measured_elsewhere_become_stages():
    records = stages_of({"A": 0.25, "B": 0.5}, start=10.0)
    assert [(r.name, r.start, r.duration) for r in records] == [("A", 10.0, 0.25), ("B", 10.25, 0.5)]


def test_an_open_stage_counts_up_to_now():
    record = StageRecord("open", time.perf_counter() - 1)
    assert record.duration >= 1
    with CompileProfiler() as profiler:
        first = profiler.total_seconds
        assert profiler.total_seconds >= first
    assert profiler.total_seconds == profiler.total_seconds


def test_reports(tmp_path):
    with CompileProfiler() as profiler, profiler.stage("passes"):
        profiler.add_stage_record(StageRecord("Simplify", 0.0, 0.5))
    profiler.write_report(tmp_path / "report")
    text = (tmp_path / "report" / "pipeline_profile.txt").read_text()
    assert text.splitlines()[0] == "PyPTO Compile Profile"
    assert "  passes" in text and "    Simplify" in text and "0.500s" in text and "%" in text
    stored = json.loads((tmp_path / "report" / "pipeline_profile.json").read_text())
    assert stored["stages"][0]["children"] == [{"name": "Simplify", "seconds": 0.5, "children": []}]
    assert json.loads(profiler.to_json())["stages"] == stored["stages"]


def test_parsing_a_program_is_a_stage():
    with CompileProfiler() as profiler:

        @pl.program
        class Empty:
            @pl.function
            def main(self, x: pl.Tensor[[4], pl.FP32]) -> pl.Tensor[[4], pl.FP32]:
                return x

    assert names(profiler.stages) == [("parse", [])]
