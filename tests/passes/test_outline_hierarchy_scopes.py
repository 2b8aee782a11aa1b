"""OutlineHierarchyScopes: regions of machine levels become functions."""

from __future__ import annotations

import numpy as np

import pypto.language as pl
from pypto import ir, passes

from .checking import check, findings, run, unchanged

P = passes.IRProperty


@pl.program
class Nested:
    @pl.function
    def main(self, x: pl.Tensor[[16, 16], pl.FP32]) -> pl.Tensor[[16, 16], pl.FP32]:
        with pl.at(level=pl.Level.GLOBAL, role=pl.Role.Orchestrator):
            y = pl.add(x, x)
            with pl.at(level=pl.Level.POD):
                z = pl.mul(y, x)
        return z


@pl.program
class NestedOutlined:
    @pl.function(level=pl.Level.CLUSTER_0)
    def main_global_orch_0_cluster0_0(
        self, y: pl.Tensor[[16, 16], pl.FP32], x: pl.Tensor[[16, 16], pl.FP32]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        z = pl.mul(y, x)
        return z

    @pl.function(level=pl.Level.GLOBAL, role=pl.Role.Orchestrator)
    def main_global_orch_0(self, x: pl.Tensor[[16, 16], pl.FP32]) -> pl.Tensor[[16, 16], pl.FP32]:
        y = pl.add(x, x)
        z = self.main_global_orch_0_cluster0_0(y, x)
        return z

    @pl.function
    def main(self, x: pl.Tensor[[16, 16], pl.FP32]) -> pl.Tensor[[16, 16], pl.FP32]:
        z = self.main_global_orch_0(x)
        return z


def test_a_region_in_a_region_is_a_function_called_by_a_function():
    expected = run(NestedOutlined, passes.convert_to_ssa)
    made = check(Nested, expected, passes.convert_to_ssa, passes.outline_hierarchy_scopes)
    assert {f.name for f in made.functions.values()} == {f.name for f in expected.functions.values()}
    assert findings(made, P.HierarchyOutlined, P.OrchestrationReferencesResolved) == []
    (left, inner) = findings(run(Nested, passes.convert_to_ssa), P.HierarchyOutlined)
    assert left == inner == "Hierarchy ScopeStmt remains in function 'main'"


def test_other_regions_and_functions_stay():
    @pl.program
    class Prog:
        @pl.function
        def main(self, x: pl.Tensor[[16, 16], pl.FP32]) -> pl.Tensor[[16, 16], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.add(x, x)
            return y

    unchanged(run(Prog, passes.convert_to_ssa), passes.outline_hierarchy_scopes)


@pl.program
class OnHost:
    @pl.function
    def main(
        self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        with pl.at(level=pl.Level.HOST, role=pl.Role.Orchestrator):
            for _ in pl.range(2):
                with pl.at(level=pl.Level.CORE_GROUP):
                    out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 16]), 3.0), [0, 0], out)
        return out


def test_a_host_region_runs():
    compiled = pl.compile(OnHost)
    x = np.arange(256, dtype=np.float32).reshape(16, 16)
    out = np.zeros_like(x)
    compiled(x, out)
    np.testing.assert_array_equal(out, 3 * x)
    assert compiled.lowered.get_function("main_host_orch_0").level is ir.Level.HOST
