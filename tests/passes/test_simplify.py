"""Simplify: what is folded, what is decided, what goes, and what must stay."""

from __future__ import annotations

import re

import numpy as np
import pytest
from checking import check, run, unchanged

import pypto.language as pl
from pypto import backend, ir, passes
from pypto.dtypes import DataType
from pypto.ir.visitor import find_all


def stmts(program):
    return ir.flatten_to_stmts(program.get_function("main").body)


def test_a_constant_reaches_extents_and_bounds_and_goes():
    @pl.program
    class Before:
        @pl.function
        def main(self, x: pl.Tensor[[64, 32], pl.FP32]) -> pl.Tensor[[16, 32], pl.FP32]:
            rows: pl.Scalar[pl.INDEX] = 8
            twice: pl.Scalar[pl.INDEX] = rows * 2
            y = pl.create_tensor([twice, 32], dtype=pl.FP32)
            for _i in pl.range(0, twice, rows):
                y = pl.add(y, 1.0)
            return y

    @pl.program
    class Expected:
        @pl.function
        def main(self, x: pl.Tensor[[64, 32], pl.FP32]) -> pl.Tensor[[16, 32], pl.FP32]:
            y = pl.create_tensor([16, 32], dtype=pl.FP32)
            for _i in pl.range(0, 16, 8):
                y = pl.add(y, 1.0)
            return y

    check(Before, Expected, passes.simplify)


def test_ranges_and_conditions_decide_branches():
    @pl.program
    class Before:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            y = pl.exp(x)
            for i in pl.range(2, 10, 2):
                far = i * 4 + 8
                if far < 16:
                    y = pl.add(y, 1.0)
                elif i < 10:
                    y = pl.add(y, 2.0)
                else:
                    y = pl.add(y, 3.0)
            return y

    @pl.program
    class Expected:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            y = pl.exp(x)
            for _i in pl.range(2, 10, 2):
                y = pl.add(y, 2.0)
            return y

    check(Before, Expected, passes.simplify)


def test_a_branch_knows_its_condition_and_its_neighbour_does_not():
    @pl.program
    class Prog:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32], n: pl.Scalar[pl.INDEX]) -> pl.Tensor[[64], pl.FP32]:
            y = pl.exp(x)
            if n < 8:
                if n < 9:
                    y = pl.add(y, 1.0)
            else:
                if n < 9:
                    y = pl.add(y, 2.0)
            if n < 9:
                y = pl.add(y, 3.0)
            return y

    first, second = [s for s in stmts(run(Prog, passes.simplify)) if isinstance(s, ir.IfStmt)]
    assert isinstance(first.then_body, ir.AssignStmt)
    assert isinstance(first.else_body, ir.IfStmt)
    assert isinstance(second.then_body, ir.AssignStmt)


def test_loops_of_one_and_no_iteration_open():
    @pl.program
    class Before:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            y = pl.exp(x)
            for i, (a,) in pl.range(0, 64, 64, init_values=(y,)):
                if i == 0:
                    b = pl.mul(a, 2.0)
                    c = pl.yield_(b)
                else:
                    c = pl.yield_(a)
                d = pl.yield_(c)
            for _j, (e,) in pl.range(5, 5, init_values=(d,)):
                f = pl.add(e, x)
                g = pl.yield_(f)
            for _k in pl.parallel(1):
                _h = pl.sub(g, x)
            return g

    @pl.program
    class Expected:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            y = pl.exp(x)
            b = pl.mul(y, 2.0)
            for _k in pl.parallel(1):
                _h = pl.sub(b, x)
            return b

    check(Before, Expected, passes.simplify)


def test_a_loop_that_may_be_left_early_stays():
    @pl.program
    class Prog:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32], c: pl.Scalar[pl.BOOL]) -> pl.Tensor[[64], pl.FP32]:
            for _i in pl.range(1):
                if c:
                    break
                x = pl.exp(x)
            return x

    unchanged(Prog, passes.simplify)


@pytest.mark.parametrize("ssa", [False, True])
def test_reassigned_scalars_are_no_constants(ssa):
    @pl.program
    class Prog:
        @pl.function
        def main(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
            i: pl.Scalar[pl.INDEX] = 0
            while i < n:
                i = i + 1
            return i

    program = passes.convert_to_ssa()(Prog) if ssa else Prog
    loop = stmts(run(program, passes.simplify))[1 if not ssa else -2]
    assert isinstance(loop, ir.WhileStmt) and isinstance(loop.condition, ir.Lt)


def test_a_difference_of_indices_may_be_negative():
    """Only given positions and sizes are taken not to be negative, not what is computed from them."""

    @pl.program
    class Prog:
        @pl.function
        def main(
            self, x: pl.Tensor[[64], pl.FP32], a: pl.Scalar[pl.INDEX], b: pl.Scalar[pl.INDEX]
        ) -> pl.Tensor[[64], pl.FP32]:
            gap = a - b
            y = pl.exp(x)
            if gap < 0:
                y = pl.mul(y, 2.0)
            if a < 0:
                y = pl.mul(y, 3.0)
            return y

    branches = [s for s in stmts(run(Prog, passes.simplify)) if isinstance(s, ir.IfStmt)]
    assert len(branches) == 1


def test_a_carried_index_may_be_negative():
    @pl.program
    class Prog:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32], n: pl.Scalar[pl.INDEX]) -> pl.Tensor[[64], pl.FP32]:
            i: pl.Scalar[pl.INDEX] = 3
            for _k in pl.range(n):
                i = i - 2
                if i < 0:
                    x = pl.exp(x)
            return x

    loop = next(s for s in stmts(run(Prog, passes.convert_to_ssa, passes.simplify)) if isinstance(s, ir.ForStmt))
    assert any(isinstance(s, ir.IfStmt) for s in ir.flatten_to_stmts(loop.body))


def test_dead_scalars_go_and_calls_stay():
    @pl.program
    class Before:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.INT32], n: pl.Scalar[pl.INDEX]) -> pl.Tensor[[64], pl.INT32]:
            a = n + 1
            _b = a * a
            _c = pl.read(x, [n])
            y = pl.add(x, x)
            return y

    @pl.program
    class Expected:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.INT32], n: pl.Scalar[pl.INDEX]) -> pl.Tensor[[64], pl.INT32]:
            _c = pl.read(x, [n])
            y = pl.add(x, x)
            return y

    check(Before, Expected, passes.simplify)


def test_results_of_branches_nobody_reads_go():
    @pl.program
    class Prog:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32], n: pl.Scalar[pl.INDEX]) -> pl.Tensor[[64], pl.FP32]:
            _k = n + 1
            y = pl.exp(x)
            if n < 8:
                _k = n + 2
                y = pl.add(y, 1.0)
            return y

    after = run(Prog, passes.convert_to_ssa, passes.simplify)
    branch = next(s for s in stmts(after) if isinstance(s, ir.IfStmt))
    assert [v.name_hint for v in branch.return_vars] == ["y__phi_v2"]
    assert len(branch.then_body.stmts[-1].values) == 1


def test_simplify_runs_again_once_all_is_lowered():
    again = [i for i, name in enumerate(passes.PIPELINE) if name == "simplify"]
    assert [passes.PIPELINE[i - 1] for i in again] == ["convert_to_ssa", "materialize_dist_tensor_ctx"]


@pytest.mark.parametrize("target", ["ASCEND910B", "ASCEND950"])
def test_loops_of_one_iteration_that_tiling_leaves_are_opened(target):
    @pl.function
    def product(
        a: pl.Tensor[[64, 256], pl.FP16], b: pl.Tensor[[256, 64], pl.FP16], c: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            c = pl.assemble(c, pl.matmul(a, b, out_dtype=pl.FP32), [0, 0])
        return c

    compiled = pl.compile(product, target=getattr(backend, target), skip_ptoas=True)
    (text,) = compiled.pto.values()
    loops = re.findall(r"scf\.for %\w+ = %c(\d+)_index to %c(\d+)_index step %c(\d+)_index", text)
    assert all(len(range(*map(int, bounds))) > 1 for bounds in loops)
    r = np.random.default_rng(3)
    a, b = (r.standard_normal(shape).astype(np.float16) for shape in ((64, 256), (256, 64)))
    c = np.zeros((64, 64), np.float32)
    compiled(a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)


def test_a_tile_is_read_for_another_only_where_it_is_placed_and_valid_alike():
    """The loop runs once, and its tile is valid in fewer rows than what it starts from."""
    span = ir.Span.unknown()
    base = ir.Var("mem", ir.ScalarType(DataType.INT64), span)
    index = ir.ScalarType(DataType.INDEX)

    def tile(rows):
        dims = [ir.ConstInt(d, DataType.INDEX, span) for d in (rows, 16)]
        memref = ir.MemRef(base, ir.ConstInt(0, DataType.INT64, span), 1024)
        return ir.TileType([16, 16], DataType.FP32, memref, ir.TileView(valid_shape=dims), ir.MemorySpace.Vec)

    def loop(inner):
        x, i, r = ir.Var("x", tile(16), span), ir.Var("i", index, span), ir.Var("r", inner, span)
        carried = ir.IterArg("t", inner, x, span)
        end = ir.YieldStmt([carried], span)
        zero, one = (ir.ConstInt(v, DataType.INDEX, span) for v in (0, 1))
        stmt = ir.ForStmt(i, zero, one, one, [carried], end, [r], span)
        return ir.Function("f", [x], [inner], ir.seq([stmt, ir.ReturnStmt([r], span)], span), span)

    for inner, stays in ((tile(16), False), (tile(8), True)):
        function = passes.simplify()(ir.Program([loop(inner)], "p", span)).get_function("f")
        assert bool(find_all(function.body, ir.ForStmt)) is stays
