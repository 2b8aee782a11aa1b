"""OutlineClusterScopes: clusters become Group functions, lone `pl.spmd` regions Spmd functions."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir, passes
from pypto.errors import VerificationError
from pypto.ir import FunctionType, ParamDirection
from pypto.passes.pipeline import check_roundtrip


def outlined(program):
    made = passes.outline_incore_scopes()(passes.convert_to_ssa()(program))
    made = passes.outline_cluster_scopes()(made)
    check_roundtrip("OutlineClusterScopes", made)
    passes.verify_properties(passes.IRPropertySet([passes.IRProperty.ClusterOutlined]), made, "test")
    return made


def by_type(program, kind):
    return [f for f in program.functions.values() if f.func_type is kind]


def launches(function):
    return [
        n
        for n in ir.visitor.walk(function.body)
        if isinstance(n, (ir.Call, ir.Submit)) and isinstance(n.op, ir.GlobalVar)
    ]


@pl.program
class Loop:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[64, 32], pl.FP32], out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
    ) -> pl.Tensor[[64, 32], pl.FP32]:
        for i in pl.spmd(4, sync_start=True):
            out = pl.store(pl.load(a, [i * 16, 0], [16, 32]), [i * 16, 0], out)
        return out


def test_a_lone_region_becomes_an_spmd_function_launched_on_its_blocks():
    made = outlined(Loop)
    (wrapper,), (kernel,) = by_type(made, FunctionType.Spmd), by_type(made, FunctionType.InCore)
    assert (wrapper.name, kernel.name) == ("main_spmd_0", "main_incore_0")
    (launch,) = launches(made.get_function("main"))
    assert (
        launch.op.name == "main_spmd_0" and launch.attrs["core_num"].value == 4 and launch.attrs["sync_start"] is True
    )
    assert wrapper.attrs == {} and list(wrapper.param_directions) == [ParamDirection.In, ParamDirection.Out]
    (inner,) = launches(wrapper)
    assert inner.op.name == "main_incore_0" and not inner.attrs
    # What the kernel wrote through a parameter is returned as that parameter.
    assert ir.flatten_to_stmts(wrapper.body)[-1].values[0] is wrapper.params[1]


def test_without_sync_start_there_is_no_such_attribute():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, a: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
        ) -> pl.Tensor[[16, 32], pl.FP32]:
            out = pl.store(pl.load(a, [0, 0], [16, 32]), [0, 0], out)
            return out

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, a: pl.Tensor[[16, 32], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
        ) -> pl.Tensor[[16, 32], pl.FP32]:
            with pl.spmd(n // 16, name_hint="copies"):
                out = self.kernel(a, out)
            return out

    made = outlined(Before)
    (launch,) = launches(made.get_function("main"))
    assert launch.op.name == "copies" and launch.attrs.keys() == {"core_num"}
    # The number of blocks is an expression of the launching function, not of the launched one.
    count = launch.attrs["core_num"]
    assert isinstance(count, ir.FloorDiv) and count.left is made.get_function("main").params[1]
    assert len(made.get_function("copies").params) == 2


def test_results_of_a_kernel_that_returns_several():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self,
            a: pl.Tensor[[16, 32], pl.FP32],
            x: pl.InOut[pl.Tensor[[16, 32], pl.FP32]],
            y: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
        ) -> tuple[pl.Tensor[[16, 32], pl.FP32], pl.Tensor[[16, 32], pl.FP32]]:
            t = pl.load(a, [0, 0], [16, 32])
            x = pl.store(pl.add(t, pl.load(x, [0, 0], [16, 32])), [0, 0], x)
            y = pl.store(t, [0, 0], y)
            return y, x

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            a: pl.Tensor[[16, 32], pl.FP32],
            x: pl.InOut[pl.Tensor[[16, 32], pl.FP32]],
            y: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
        ) -> tuple[pl.Tensor[[16, 32], pl.FP32], pl.Tensor[[16, 32], pl.FP32]]:
            with pl.spmd(2):
                y, x = self.kernel(a, x, y)
            return y, x

    wrapper = outlined(Before).get_function("main_spmd_0")
    assert list(wrapper.param_directions) == [ParamDirection.In, ParamDirection.InOut, ParamDirection.Out]
    returned = ir.flatten_to_stmts(wrapper.body)[-1].values
    assert returned[0] is wrapper.params[2] and returned[1] is wrapper.params[1]


def test_a_captured_task_id_makes_a_launched_task():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, a: pl.Tensor[[64, 32], pl.FP32], out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
        ) -> pl.Tensor[[64, 32], pl.FP32]:
            with pl.spmd(4) as first:
                i = pl.tile.get_block_idx()
                out = pl.store(pl.load(a, [i * 16, 0], [16, 32]), [i * 16, 0], out)
            with pl.spmd(2, deps=[first]) as _second:
                j = pl.tile.get_block_idx()
                t = pl.load(out, [j * 32, 0], [32, 32])
                out = pl.store(pl.add(t, t), [j * 32, 0], out)
            return out

    first, second = launches(outlined(Before).get_function("main"))
    assert isinstance(first, ir.Submit) and isinstance(second, ir.Submit)
    assert (first.core_num.value, second.core_num.value) == (4, 2)
    assert not first.deps and len(second.deps) == 1 and "core_num" not in first.attrs


def test_a_cluster_becomes_a_group_and_takes_over_the_launch_of_its_spmd():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, a: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
        ) -> pl.Tensor[[16, 32], pl.FP32]:
            out = pl.store(pl.load(a, [0, 0], [16, 32]), [0, 0], out)
            return out

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, a: pl.Tensor[[16, 32], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
        ) -> pl.Tensor[[16, 32], pl.FP32]:
            with pl.cluster():
                out = self.kernel(a, out)
            with pl.cluster():  # noqa: SIM117
                with pl.spmd(n * 2, sync_start=True):
                    out = self.kernel(a, out)
            return out

    made = outlined(Before)
    plain, spread = by_type(made, FunctionType.Group)
    assert (plain.name, plain.attrs) == ("main_cluster_0", {})
    assert (spread.name, spread.attrs) == ("main_cluster_1", {"spmd_unwrapped": True})
    assert not by_type(made, FunctionType.Spmd)
    first, second = launches(made.get_function("main"))
    assert not first.attrs and second.attrs["sync_start"] is True
    assert second.attrs["core_num"].left is made.get_function("main").params[1]


def cluster_of(*lines):
    body = "\n".join(f"                {line}" for line in lines)
    return pl.parse(f"""
import pypto.language as pl

@pl.program
class Before:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, a: pl.Tensor[[16], pl.FP32], b: pl.Out[pl.Tensor[[16], pl.FP32]]) -> pl.Tensor[[16], pl.FP32]:
        return b

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[16], pl.FP32], n: pl.Scalar[pl.INDEX], b: pl.Out[pl.Tensor[[16], pl.FP32]]):
            with pl.cluster():
{body}
""")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("with pl.spmd(2):", "    b = self.kernel(a, b)", "with pl.spmd(4):", "    b = self.kernel(a, b)"),
         "a cluster is launched once, but holds 2 pl.spmd regions"),
        (("k = n * 2", "with pl.spmd(k):", "    b = self.kernel(a, b)"),
         "the number of blocks depends on 'k', which the cluster itself computes"),
    ],
)  # fmt: skip
def test_clusters_without_one_launch_are_refused(lines, message):
    with pytest.raises(ValueError, match=message) as caught:
        outlined(cluster_of(*lines))
    assert "= hint:" in str(caught.value)


def test_programs_without_regions_are_returned_as_they_are():
    @pl.program
    class Before:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.add(x, x)
            return y

    before = passes.convert_to_ssa()(Before)
    assert passes.outline_cluster_scopes()(before) is before
    once = outlined(Loop)
    assert passes.outline_cluster_scopes()(once) is once


def test_the_verifier_finds_regions_that_are_left():
    left = passes.convert_to_ssa()(Loop)
    with pytest.raises(VerificationError, match="Spmd ScopeStmt remains in function 'main'"):
        passes.verify_properties(passes.IRPropertySet([passes.IRProperty.ClusterOutlined]), left, "test")
