"""Windows and collectives of a host function: signals, communication domains, launches of the runtime's collectives."""

from __future__ import annotations

import pytest
from text_programs import ORCHESTRATION, method, program

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir, passes
from pypto.ir.visitor import walk

SIGNALS, DOMAINS, LOWER = (
    passes.synthesize_allreduce_signals,
    passes.materialize_comm_domain_scopes,
    passes.lower_host_tensor_collectives,
)


def host(body: str, params: str = "") -> ir.Program:
    window, signal = "pld.DistributedTensor[[4, 64], pl.FP32]", "pld.DistributedTensor[[4, 1], pl.INT32]"
    return program(
        method("chip", f"data: {window}", "return data", window, ORCHESTRATION),
        method("meet", f"signal: {signal}", "return", decorator=ORCHESTRATION),
        method("main", params, body, decorator="@pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)"),
    )


def run(program, *factories):
    """The program after the passes, verified; the last one leaves its own result alone."""
    with passes.PassContext([passes.VerificationInstrument()]):
        for factory in factories:
            program = factory()(program)
        assert factories[-1]()(program) is program
    return program


def body(program) -> list[ir.Stmt]:
    return list(walk(program.get_function("main")))


def domains(program) -> list[ir.CommDomainScopeStmt]:
    return [n for n in body(program) if isinstance(n, ir.CommDomainScopeStmt)]


def calls(program, name: str) -> list[ir.Call]:
    return [n for n in body(program) if isinstance(n, ir.Call) and n.op.name == name]


WINDOWS = """
buf = pld.alloc_window_buffer([4, 64], dtype=pl.FP32)
cells = pld.alloc_window_buffer([4, 1], dtype=pl.INT32)
data = pld.window(buf, [4, 64], dtype=pl.FP32)
signal = pld.window(cells, [4, 1], dtype=pl.INT32)
"""
EVERY = "for r in pl.range(pld.world_size()):\n    self.chip(data, device=r)\n"


# Signals.


def test_an_allreduce_without_a_signal_gets_a_window_of_its_own():
    program = run(host(WINDOWS + EVERY + "a = pld.tensor.allreduce(data)\nb = pld.tensor.allreduce(a, core_num=2)"),
                  SIGNALS)  # fmt: skip
    first, second = calls(program, "pld.tensor.allreduce")
    assert first.args[1] is not second.args[1]
    assert [str(c.args[1].type.shape[1]) for c in (first, second)] == ["1", "2"]
    names = [c.kwargs["name"] for c in calls(program, "pld.tensor.alloc_window_buffer")]
    assert names == ["buf", "cells", "__allreduce_signal_buf_0", "__allreduce_signal_buf_1"]
    pl.parse_program(program.as_python())


def test_a_returned_allreduce_gets_a_name():
    program = run(host(WINDOWS + EVERY + "return pld.tensor.allreduce(data, signal)"), SIGNALS)
    (value,) = next(n for n in body(program) if isinstance(n, ir.ReturnStmt)).value
    assert isinstance(value, ir.Var) and value.name_hint == "__allreduce_result_0"


@pytest.mark.parametrize(
    "last, message",
    [
        ("for _ in pl.range(2):\n    pld.tensor.allreduce(data)", "without an explicit signal is not supported inside"),
        ("while True:\n    pld.tensor.allreduce(data)", "without an explicit signal is not supported inside"),
        ("pld.tensor.allreduce(data, mode='ring')", 'mode="ring" requires an explicit signal'),
        ("pair = (pld.tensor.allreduce(data, signal), 1)", "must be a direct assignment"),
    ],
)
def test_an_allreduce_whose_signal_cannot_be_made_is_refused(last, message):
    with pytest.raises(ValueError, match=message) as error:
        SIGNALS()(host(WINDOWS + EVERY + last))
    assert "pld.tensor.allreduce(data" in str(error.value)


# Domains.


def test_a_signal_belongs_to_the_devices_of_its_data():
    program = run(host(WINDOWS + EVERY + "pld.tensor.allreduce(data, signal)"), DOMAINS)
    (domain,) = domains(program)
    assert list(domain.devices) == [] and [s.name_hint for s in domain.slots] == ["buf", "cells"]
    views = [c.type for c in calls(program, "pld.tensor.window")]
    assert [v.window_buffer for v in views] == list(domain.slots)
    (call,) = calls(program, "pld.tensor.allreduce")
    assert call.args[0].type.window_buffer is domain.slots[0]


def test_windows_of_different_devices_are_different_domains_in_order():
    text = WINDOWS + "self.chip(data, device=2)\nfor r in pl.range(1, 3):\n    self.chip(data, device=r)\n"
    text += "n = 1\nself.meet(signal, device=n)"
    first, second = domains(run(host(text), DOMAINS))
    assert (list(first.devices), [s.name_hint for s in first.slots]) == ([1, 2], ["buf"])
    assert (list(second.devices), [s.name_hint for s in second.slots]) == ([1], ["cells"])
    assert first.name_hint == "comm_d0" and second.name_hint == "comm_d1"


def test_a_launch_hands_its_window_on():
    text = WINDOWS + "for r in pl.range(pld.world_size()):\n    again = self.chip(data, device=r)\n"
    text += "    self.chip(again, device=r)\npld.tensor.allreduce(data, signal)"
    program = run(host(text), DOMAINS)
    launches = calls(program, "chip")
    assert launches[1].args[0].type.window_buffer is domains(program)[0].slots[0]


def test_grouped_windows_print_as_a_remark():
    program = run(host(WINDOWS + EVERY + "pld.tensor.allreduce(data, signal)"), DOMAINS)
    printed = program.as_python()
    assert "# communication domain comm_d0: windows buf, cells, devices all" in printed
    again = run(pl.parse_program(printed), DOMAINS)
    assert [s.name_hint for s in domains(again)[0].slots] == ["buf", "cells"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("buf = pld.alloc_window_buffer([64], dtype=pl.FP32)", "no pld.tensor.window materialisation"),
        (WINDOWS + EVERY, "window 'cells' is not consumed by any chip_orch dispatch"),
        (WINDOWS + "for r in pl.range(0, 4, 2):\n    self.chip(data, device=r)", "non-unit-step loop"),
        (WINDOWS + "for r in pl.range(1, pld.world_size()):\n    self.chip(data, device=r)", "must go from 0"),
        (WINDOWS + "for r in pl.range(4):\n    self.chip(data, device=r + 1)", "neither a constant nor the variable"),
    ],
)
def test_windows_nobody_shares_or_of_unknown_devices_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        DOMAINS()(host(text))


def test_one_window_in_two_domains_is_found():
    program = run(host(WINDOWS + EVERY + "pld.tensor.allreduce(data, signal)"), DOMAINS)
    main = program.get_function("main")
    (domain,) = domains(program)
    twice = ir.CommDomainScopeStmt([], [domain.slots[0]], "again", body=main.body)
    broken = program.map_functions(lambda f: f.replace(body=twice) if f is main else f)
    props = passes.IRPropertySet([passes.IRProperty.CommDomainScopesMaterialized])
    (found,) = passes.PropertyVerifierRegistry.verify(props, broken)
    assert "'buf' appears in multiple CommDomainScopeStmts" in found.message


# Launches.


def test_on_all_devices_a_collective_is_a_loop_over_ranks():
    program = run(host(WINDOWS + EVERY + "data = pld.tensor.allreduce(data, signal)\nreturn data"), DOMAINS, LOWER)
    (call,) = calls(program, "builtin.tensor.allreduce")
    loop = next(n for n in body(program) if isinstance(n, ir.ForStmt) and isinstance(n.body, ir.EvalStmt)
                and n.body.expr is call)  # fmt: skip
    assert call.attrs["device"] is loop.loop_var and loop.stop.op.name == "pld.system.world_size"
    assert call.arg_directions == [ir.ArgDirection.InOut] * 2
    assert calls(program, "pld.tensor.allreduce") == []
    assert 'builtin.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum, dtype=pl.FP32' in program.as_python()


def test_on_known_devices_a_collective_is_a_launch_for_each():
    text = WINDOWS + "for r in pl.range(2):\n    self.chip(data, device=r)\npld.tensor.broadcast(data, signal, root=1)"
    launched = calls(run(host(text), DOMAINS, LOWER), "builtin.tensor.broadcast")
    assert [c.attrs["device"].value for c in launched] == [0, 1]
    assert all(c.kwargs == {"root": 1, "dtype": pl.FP32} for c in launched)


TWO = "for r in pl.range(2):\n    self.chip(data, device=r)\n"
SHORT = WINDOWS.replace("[4, 1]", "[1]")
RING = WINDOWS.replace("[4, 1]", "[7, 4]")


@pytest.mark.parametrize(
    "text, message",
    [
        (SHORT + TWO + "pld.tensor.broadcast(data, signal, root=0)", "signal shape\\[0\\] \\(1\\) must be at least"),
        (WINDOWS + TWO + "pld.tensor.broadcast(data, signal, root=2)", "root \\(2\\) must be a valid rank"),
        (WINDOWS + EVERY + "pld.tensor.allreduce(data, signal, core_num=2)", "must be at least the required lane"),
        (SHORT + EVERY + "pld.tensor.allreduce(data, signal, core_num=2)", "rank-1 signal is valid only"),
        (WINDOWS + EVERY + "pld.tensor.allreduce(data, signal, core_num=999)", "exceeds the backend AIV core count"),
        (WINDOWS + EVERY + "pld.tensor.allreduce(data, signal, mode='star')", 'mode must be "ring" or "mesh"'),
        (RING + EVERY + "pld.tensor.allreduce(data, signal, mode='ring', op=pld.ReduceOp.Max)", "supports Reduce"),
        (WINDOWS + EVERY + "pld.tensor.allreduce(data, signal, mode='ring')", "must be at least 2\\*\\(NR-1\\)"),
        (WINDOWS + EVERY + "pld.tensor.all_to_all(data, data, signal)", "input and target must be different window"),
    ],
)
def test_collectives_that_would_hang_or_race_are_refused(text, message):
    program = run(host(text), DOMAINS)
    with pytest.raises(ValueError, match=message) as error:
        LOWER()(program)
    assert "pld.tensor." in str(error.value)


def test_data_that_is_in_no_window_is_refused():
    text = WINDOWS + EVERY + "pld.tensor.allgather(row, data, signal)"
    program = DOMAINS()(host(text, "row: pl.Tensor[[1, 64], pl.FP32]"))
    with pytest.raises(ValueError, match="input must be a window-bound DistributedTensor"):
        LOWER()(program)


def test_an_unknown_mode_is_refused_on_a_core_too():
    @pl.program
    class Core:
        @pl.function(type=pl.FunctionType.InCore)
        def reduce(
            self,
            data: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[4, 1], pl.INT32]],
        ):
            pld.tensor.allreduce(data, signal, mode="star")

    with pytest.raises(ValueError, match='mode must be "ring" or "mesh"'):
        passes.lower_composite_ops()(Core)
