"""Passes, contexts, instruments, pipelines and dumps."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import pypto.language as pl
from pypto import ir, passes
from pypto.dtypes import DataType
from pypto.errors import VerificationError
from pypto.passes.base import function_pass
from pypto.passes.pipeline import DumpWriter, PassManager, default_passes
from pypto.passes.properties import STRUCTURAL

P = passes.IRProperty
I64 = ir.ScalarType(DataType.INT64)


@pl.program
class Prog:
    @pl.function
    def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.add(pl.exp(x), 1.0)
        return y


def twice_assigned():
    a, x = ir.Var("a", I64), ir.Var("x", I64)
    body = ir.seq([ir.AssignStmt(x, a), ir.AssignStmt(x, a), ir.ReturnStmt([x])])
    return ir.Program([ir.Function("main", [a], [I64], body)])


def rename(function):
    return function.replace(attrs={**function.attrs, "seen": True})


def test_a_pass_without_work_is_not_run():
    ran = []

    def change(function):
        ran.append(function.name)
        return function

    for wanted, expected in (
        (("tile.load",), []),
        (("tensor.exp",), ["main"]),
        (("tensor.",), ["main"]),
        ((ir.WhileStmt,), []),
        ((ir.InCoreScopeStmt,), ["main"]),
        ((), []),
        (None, ["main"]),
    ):
        ran.clear()
        assert function_pass("Look", change, looks_for=wanted)(Prog) is Prog
        assert ran == expected, wanted
    for only, expected in (([Prog.get_function("main").func_type], ["main"]), ([ir.FunctionType.AIV], []), ([], [])):
        ran.clear()
        assert function_pass("Look", change, only=only)(Prog) is Prog
        assert ran == expected, only


def test_a_pass_wants_a_program():
    with pytest.raises(TypeError, match="pass ConvertToSSA runs on a Program, got Function"):
        passes.convert_to_ssa()(Prog.get_function("main"))


def test_instruments_see_every_pass_of_the_innermost_context():
    log = []
    outer = passes.CallbackInstrument(after_pass=lambda p, _: log.append(("outer", p.get_name())))
    inner = passes.CallbackInstrument(
        before_pass=lambda p, _: log.append(("before", p.get_name())),
        after_pass=lambda p, q: log.append(("after", q.get_function("main").attrs["seen"])),
    )
    with passes.PassContext([outer]):
        with passes.PassContext([inner]):
            function_pass("Rename", rename)(Prog)
        function_pass("Rename", rename)(Prog)
    assert log == [("before", "Rename"), ("after", True), ("outer", "Rename")]
    assert passes.PassContext.current() is None


def test_a_context_ends_with_its_block_even_on_an_error():
    with pytest.raises(KeyError), passes.PassContext():
        raise KeyError
    assert passes.PassContext.current() is None


@pytest.mark.parametrize("name", ["none", "BASIC", "roundtrip"])
def test_the_environment_sets_the_default_level(monkeypatch, name):
    monkeypatch.setenv("PYPTO_VERIFY_LEVEL", name)
    assert passes.PassContext().get_verification_level().name == name.upper()
    monkeypatch.setenv("PYPTO_VERIFY_LEVEL", "nonsense")
    assert passes.get_default_verification_level() is passes.VerificationLevel.BASIC


def test_a_pipeline_checks_what_a_pass_claims():
    lie = function_pass("Lie", rename, produces={P.SSAForm})
    with pytest.raises(VerificationError, match="Verification failed after pass 'Lie'") as caught:
        passes.PassPipeline([lie]).run(twice_assigned())
    assert [d.rule_name for d in caught.value.diagnostics] == ["SSAVerify"]
    with passes.PassContext([], passes.VerificationLevel.NONE):
        passes.PassPipeline([lie]).run(twice_assigned())


def test_a_property_is_checked_once_for_each_time_it_is_produced(monkeypatch):
    from pypto.passes import verifiers

    checked = []
    monkeypatch.setattr(verifiers, "verify_or_raise", lambda props, program, where: checked.append((where, set(props))))
    make = function_pass("Make", rename, produces={P.SSAForm})
    spoil = function_pass("Spoil", rename, invalidates={P.SSAForm})
    passes.PassPipeline([make, make, spoil, make]).run(Prog)
    assert [(w.rpartition(" ")[2], p) for w, p in checked[1:]] == [("'Make'", {P.SSAForm}), ("'Make'", {P.SSAForm})]
    assert checked[0][1] <= STRUCTURAL


def test_instruments_check_before_and_after():
    before = passes.VerificationInstrument(passes.VerificationMode.BEFORE)
    after = passes.VerificationInstrument(passes.VerificationMode.AFTER)
    claim = "Pre-verification failed before pass 'OutlineIncoreScopes'"
    with passes.PassContext([before]), pytest.raises(VerificationError, match=claim):
        passes.outline_incore_scopes()(twice_assigned())
    lie = function_pass("Lie", rename, produces={P.SSAForm})
    claim = "Post-verification failed after pass 'Lie'"
    with passes.PassContext([after]), pytest.raises(VerificationError, match=claim):
        lie(twice_assigned())


def test_a_round_trip_that_fails_names_the_pass(monkeypatch):
    from pypto.language.parser import text_parser

    monkeypatch.setattr(text_parser, "parse", lambda text: Prog)
    claim = "after Rename: the printed program parses to another one"
    with passes.PassContext([ir.make_roundtrip_instrument()]), pytest.raises(RuntimeError, match=claim):
        function_pass("Rename", rename)(Prog)


def test_every_requirement_of_the_default_pipeline_is_established_before():
    made = set(STRUCTURAL)
    for p in default_passes():
        assert p.requires <= made, (p.name, sorted(q.name for q in p.requires - made))
        made = (made - p.invalidates) | p.produces


def test_factories_are_named_for_their_passes():
    for factory in passes.PIPELINE:
        words = getattr(passes, factory)().name.lower().replace("memref", "mem_ref")
        assert words.replace("_", "") == factory.replace("_", "")


def test_importing_a_pass_module_does_not_hide_its_factory():
    code = (
        "import pypto.passes.simplify, pypto.passes as p; from pypto.passes import simplify;"
        "assert p.simplify is simplify and p.simplify().name == 'Simplify'; assert 'simplify' in dir(p)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_importing_passes_loads_no_pass():
    code = (
        "import sys, pypto.passes;"
        "loaded = {m.rpartition('.')[2] for m in sys.modules if m.startswith('pypto.passes.')};"
        "assert loaded == {'base', 'context', 'diagnostics', 'enum_set', 'pipeline', 'properties'}, loaded;"
        "assert 'numpy' not in sys.modules and 'jinja2' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_planners_choose_passes():
    with passes.PassContext(memory_planner=passes.MemoryPlanner.PTOAS):
        manager = PassManager.get_strategy()
        assert not {"MemoryReuse", "AllocateMemoryAddr"} & set(manager.pass_names)
    with pytest.raises(RuntimeError, match="built for memory_planner=PTOAS and runs under PYPTO"):
        manager.run_passes(Prog)
    with pytest.raises(ValueError, match="Unsupported optimization strategy: 'fast'"):
        PassManager.get_strategy("fast")  # pyright: ignore[reportArgumentType]


def test_dumps_are_numbered_and_read_back(tmp_path):
    names = PassManager.get_strategy().pass_names
    after = PassManager.get_strategy().run_passes(Prog, dump_ir=True, output_dir=str(tmp_path))
    files = sorted(os.listdir(tmp_path))
    assert files == ["00_frontend.py", *(f"{i:02d}_after_{n}.py" for i, n in enumerate(names, 1))]
    ir.assert_structural_equal(pl.parse_program((tmp_path / files[0]).read_text()), Prog)
    assert (tmp_path / files[-1]).read_text() == ir.python_print(after)
    with pytest.raises(ValueError, match="output_dir is required"):
        PassManager.get_strategy().run_passes(Prog, dump_ir=True)


def test_a_dump_callback_gets_the_program_a_failed_check_is_about(tmp_path):
    lie = function_pass("Lie", lambda f: twice_assigned().get_function("main"), produces={P.SSAForm})
    with pytest.raises(VerificationError):
        passes.PassPipeline([lie]).run(Prog, DumpWriter(tmp_path))
    assert "x" in (tmp_path / "00_after_Lie.py").read_text()


def test_property_sets():
    some = passes.IRPropertySet([P.HasMemRefs, P.SSAForm])
    assert some.to_list() == [P.SSAForm, P.HasMemRefs] and str(some) == "{SSAForm, HasMemRefs}"
    assert some.union_with(passes.IRPropertySet([P.TypeChecked])).contains_all(some)
    assert some.difference(passes.IRPropertySet([P.SSAForm])) == passes.IRPropertySet([P.HasMemRefs])
    some.remove(P.SSAForm)
    some.remove(P.SSAForm)
    assert not some.contains(P.SSAForm) and some.intersection(passes.IRPropertySet()).empty()
    with pytest.raises(TypeError, match="unhashable"):
        hash(some)


def test_runtime_names():
    for kind in passes.RuntimeKind:
        assert passes.runtime_kind_from_name(passes.runtime_kind_to_name(kind)) is kind
    with pytest.raises(ValueError, match="Unknown runtime 'ring'; known are tensormap_and_ringbuffer, "):
        passes.runtime_kind_from_name("ring")
