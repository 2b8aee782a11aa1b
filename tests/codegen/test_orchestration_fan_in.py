"""Tasks that wait for the task of every iteration of a loop, where a pass derived that they must."""

import pytest
from orchestrations import entry

import pypto.language as pl
from pypto import codegen, passes
from pypto.ir.pass_manager import PassManager

PROGRAM = """
import pypto.language as pl
T = pl.Tensor[[64], pl.FP32]

@pl.program
class P:
    @pl.function(type=pl.FunctionType.AIV)
    def fill(self, out: pl.Out[T]) -> T:
        return out

    @pl.function(type=pl.FunctionType.AIV)
    def use(self, x: T) -> T:
        return x

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, t: pl.InOut[T], n: pl.Scalar[pl.INDEX]) -> T:
"""


def code(body):
    lines = "".join(f"        {line}\n" for line in body.strip("\n").splitlines())
    manager = PassManager.get_strategy(analyze_auto_scopes_for_deps=True)
    with passes.PassContext([]):
        lowered = manager.run_passes(pl.parse_program(PROGRAM + lines))
    return codegen.generate_orchestration(lowered, lowered.get_function("main")).code


def loop(bounds, kind="parallel"):
    return f"""
for i, (t,) in pl.{kind}({bounds}, init_values=(t,)):
    t = self.fill(t)
    t = pl.yield_(t)
return self.use(t)
"""


@pytest.mark.parametrize(
    ("bounds", "place"), [("0, 3, 1", "i"), ("4, -2, -2", "((i - 4) / -2)"), ("2, 8, 2", "((i - 2) / 2)")]
)
def test_the_ids_of_a_fixed_number_of_iterations_are_in_an_array(bounds, place):
    made = entry(code(loop(bounds)))
    assert "PTO2TaskId t_tids[3];" in made
    assert f"t_tids[{place}] = t_tid;" in made
    for i in range(3):
        assert f"if (t_tids[{i}].is_valid()) params_t1_deps[params_t1_deps_count++] = t_tids[{i}];" in made
    assert "params_t1.add_no_dep(ext_t);" in made


def test_one_task_waits_for_a_number_of_iterations_that_the_run_decides():
    text = code(loop("n"))
    made = entry(text)
    assert "#include <vector>" in text
    assert made.index("t_tids.clear();") < made.index("t_tids.push_back(t_tid);")
    assert made[made.index("if (!t_tids.empty()) {") :][:4] == [
        "if (!t_tids.empty()) {",
        "CoreTaskArgs params_t_tids;",
        "params_t_tids.set_dependencies(t_tids.data(), static_cast<uint32_t>(t_tids.size()));",
        "t_tid_1 = rt_submit_dummy_task(params_t_tids).task_id();",
    ]
    assert "if (t_tid_1.is_valid()) params_t1_deps[params_t1_deps_count++] = t_tid_1;" in made


def test_ids_that_a_loop_carries_are_collected_too():
    made = entry(code("""
last = pl.system.task_invalid()
for i, (t, last) in pl.range(2, init_values=(t, last)):
    t, last = pl.submit(self.fill, t)
    t, last = pl.yield_(t, last)
return self.use(t)
"""))
    assert "PTO2TaskId last_tids[2];" in made
    assert sum(line.startswith("if (last_tids[") for line in made) == 2


def test_loops_in_loops_are_left_to_the_runtime():
    made = entry(code("""
for i, (t,) in pl.parallel(2, init_values=(t,)):
    for j, (t,) in pl.parallel(3, init_values=(t,)):
        t = self.fill(t)
        t = pl.yield_(t)
    t = pl.yield_(t)
return self.use(t)
"""))
    assert "params_t1.add_input(ext_t);" in made
    assert not any("set_dependencies" in line for line in made)
