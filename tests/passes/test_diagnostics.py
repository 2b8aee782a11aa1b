"""Warnings and performance hints: what is advised, where it goes, how it is turned off."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import LogLevel, get_log_level, passes, set_log_level
from pypto.backend import ASCEND910B, ASCEND950
from pypto.passes.pipeline import PassPipeline

Check, Phase = passes.DiagnosticCheck, passes.DiagnosticPhase


@pytest.fixture(autouse=True)
def quiet_state():
    level = get_log_level()
    set_log_level(LogLevel.INFO)
    yield
    set_log_level(level)


def advice(program, *checks, target=ASCEND910B):
    with passes.PassContext(target=target):
        chosen = passes.DiagnosticCheckSet(checks)
        phases = (Phase.PRE_PIPELINE, Phase.POST_PIPELINE)
        return [d for p in phases for d in passes.DiagnosticCheckRegistry.run_checks(chosen, p, program)]


@pl.program
class Wasteful:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self, x: pl.Tensor[[64, 48], pl.FP32], out: pl.Out[pl.Tensor[[64, 48], pl.FP32]]
    ) -> pl.Tensor[[64, 48], pl.FP32]:
        spare = pl.load(x, [0, 0], [16, 16])  # noqa: F841
        _meant = pl.load(x, [0, 0], [64, 48])
        t = pl.load(x, [0, 0], [64, 48], valid_shape=[3, 40])
        out = pl.store(pl.exp(t), [0, 0], out)
        return out


def test_unused_names_are_warned_of_unless_underscored():
    (found,) = advice(Wasteful, Check.UnusedVariable)
    assert found.message == "Unused variable 'spare' in function 'kernel'"
    assert found.severity is passes.DiagnosticSeverity.Warning and found.hint_code == ""
    assert "spare = pl.load" in found.render()


def test_what_acts_is_not_unused():
    @pl.program
    class Prog:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]):
            done = pl.store(pl.load(x, [0], [64]), [0], out)  # noqa: F841

    assert advice(Prog, Check.UnusedVariable) == []


def test_short_rows_are_hinted_at_with_what_they_move():
    found = advice(Wasteful, Check.TileInnermostDimGranularity)
    assert [d.hint_code for d in found] == ["PH001"] * 4
    assert found[2].message.startswith(
        "tile.load has innermost dim = 192B (tile fp32[48], target_memory=Vec); moves 480B as 3 x 160B rows; "
        "recommended >= 512B for backend a2a3 (L2 cache line = 512B)"
    )
    assert len(advice(Wasteful, Check.TileInnermostDimGranularity, target=ASCEND950)) == 1


def test_the_same_transfer_at_the_same_place_is_counted():
    @pl.program
    class Prog:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, x: pl.Tensor[[64, 16], pl.FP32], out: pl.Out[pl.Tensor[[64, 16], pl.FP32]]
        ) -> pl.Tensor[[64, 16], pl.FP32]:
            for i in pl.unroll(4):
                out = pl.store(pl.load(x, [i * 16, 0], [16, 16]), [i * 16, 0], out)
            return out

    found = advice(passes.unroll_loops()(Prog), Check.TileInnermostDimGranularity)
    load, store = sorted(found, key=lambda d: d.message)
    assert load.message.endswith("(4 occurrences at this source location)")
    assert store.message.startswith("tile.store")


@pl.program
class Dropped:
    @pl.function
    def main(
        self, x: pl.Tensor[[64], pl.FP32], y: pl.Out[pl.Tensor[[64], pl.FP32]], z: pl.InOut[pl.Tensor[[64], pl.FP32]]
    ) -> pl.Tensor[[64], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.add(x, 1.0)
            z = pl.assemble(z, x, [0])
        return y


def test_an_output_that_is_only_renamed_is_warned_of():
    (found,) = advice(Dropped, Check.OutParamWriteDropped)
    assert found.message.startswith("Out parameter 'y' is given a new tensor here")
    assert "y[:] = <expr>" in found.message


def test_an_output_carried_through_a_loop_is_written():
    @pl.program
    class Prog:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, x: pl.Tensor[[64, 16], pl.FP32], out: pl.Out[pl.Tensor[[64, 16], pl.FP32]]
        ) -> pl.Tensor[[64, 16], pl.FP32]:
            for i, (o,) in pl.range(4, init_values=(out,)):
                p = pl.store(pl.load(x, [i * 16, 0], [16, 16]), [i * 16, 0], o)
                last = pl.yield_(p)
            out = last
            return out

    assert advice(Prog, Check.OutParamWriteDropped) == []


def test_results_of_loops_and_branches_are_only_looked_at_on_request():
    @pl.program
    class Prog:
        @pl.function
        def main(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
            for i, (a,) in pl.range(4, init_values=(n,)):
                b = a + i
                unread = pl.yield_(b)  # noqa: F841
            return n

    (found,) = advice(Prog, Check.UnusedControlFlowResult)
    assert found.message == "Unused result 'unread' in function 'main'"
    assert passes.PassContext().get_disabled_diagnostics().contains(Check.UnusedControlFlowResult)


def test_a_pipeline_tells_the_console_and_the_report(tmp_path, capsys):
    def run(*instruments, **settings):
        with passes.PassContext(list(instruments), target=ASCEND910B, **settings):
            PassPipeline().run(Wasteful)
        return capsys.readouterr().err

    text = run()
    assert "[warning] UnusedVariableCheck: Unused variable 'spare'" in text
    assert text.count("[perf_hint PH001] TileInnermostDimGranularity: ") == 4

    text = run(passes.ReportInstrument(str(tmp_path / "report")))
    log = tmp_path / "report" / "perf_hints.log"
    assert f"[perf_hint] 4 hints across 4 sites; see {log}" in text and "PH001" not in text
    assert len(log.read_text().splitlines()) == 4

    assert run(diagnostic_phase=Phase.NONE) == ""
    off = passes.DiagnosticCheckSet([Check.TileInnermostDimGranularity])
    assert "PH001" not in run(disabled_diagnostics=off)
    set_log_level(LogLevel.ERROR)
    assert run() == ""


def test_the_environment_sets_the_default_phase(monkeypatch):
    monkeypatch.setenv("PYPTO_WARNING_LEVEL", "none")
    assert passes.get_default_diagnostic_phase() is Phase.NONE
    monkeypatch.setenv("PYPTO_WARNING_LEVEL", "loud")
    assert passes.PassContext().get_diagnostic_phase() is Phase.PRE_PIPELINE


def test_check_sets():
    some = passes.DiagnosticCheckSet([Check.UnusedVariable])
    some.insert(Check.OutParamWriteDropped)
    some.remove(Check.UnusedVariable)
    some.remove(Check.UnusedVariable)
    assert list(some) == [Check.OutParamWriteDropped] and not some.empty() and not some.contains(Check.UnusedVariable)
    registry = passes.DiagnosticCheckRegistry
    assert registry.get_all_checks() == registry.get_warning_checks().union_with(registry.get_perf_hint_checks())
    assert registry.get_all_checks().difference(registry.get_warning_checks()) == registry.get_perf_hint_checks()
    with pytest.raises(TypeError, match="unhashable"):
        hash(some)
