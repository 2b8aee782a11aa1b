"""MaterializeSemanticAliases: one buffer where the program means one value, a copy where it means two."""

from __future__ import annotations

import pytest
from memory_programs import allocated, bases, operators, places, statements, variables

import pypto.language as pl
from pypto import ir, passes
from pypto.dtypes import DataType
from pypto.errors import KernelValueError, UnsupportedError
from pypto.ops import registry

Vec, Acc = pl.Mem.Vec, pl.Mem.Acc


def run(program):
    with passes.PassContext([]):
        return passes.materialize_semantic_aliases()(passes.init_mem_ref()(program))


def test_an_accumulator_is_one_buffer_without_a_copy():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, a: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
        ) -> pl.Tensor[[64, 64], pl.FP32]:
            start = pl.tile.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Vec)
            step = pl.tile.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Vec)
            for _i, (total,) in pl.range(4, init_values=(start,)):
                next_total = pl.tile.add(total, step)
                end = pl.yield_(next_total)
            result = pl.tile.store(end, [0, 0], out)
            return result

    after = run(Before)
    found = bases(after)
    assert {found[n] for n in ("start", "total", "next_total", "end")} == {"mem_vec_2"}
    assert found["step"] == "mem_vec_3"
    assert allocated(after) == {"mem_vec_2": ("Vec", 16384), "mem_vec_3": ("Vec", 16384)}
    assert "tile.move" not in operators(after)
    ir.assert_structural_equal(pl.parse(ir.python_print(after)), after)
    assert run(after) is after


def test_an_initial_value_needed_in_the_loop_is_copied_before_it():
    """Were ``x`` updated in place, the second iteration would add the wrong thing."""

    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, a: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
        ) -> pl.Tensor[[64, 64], pl.FP32]:
            x = pl.tile.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Vec)
            for _i, (c,) in pl.range(4, init_values=(x,)):
                y = pl.tile.add(c, x)
                r = pl.yield_(y)
            result = pl.tile.store(r, [0, 0], out)
            return result

    after = run(Before)
    found = bases(after)
    assert operators(after) == ["tile.load", "tile.move", "tile.add", "tile.store"]
    assert found["x"] not in {found[n] for n in ("x_mv", "c", "y", "r")}
    assert len({found[n] for n in ("x_mv", "c", "y", "r")}) == 1
    loop = next(s for s in statements(after) if isinstance(s, ir.ForStmt))
    assert loop.iter_args[0].init_value is variables(after)["x_mv"]


def test_an_empty_tile_is_made_again_instead_of_copied():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self,
            a: pl.Tensor[[32, 32], pl.FP16],
            out: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
        ) -> pl.Tensor[[32, 32], pl.FP32]:
            m = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
            left = pl.tile.move(m, target_memory=pl.Mem.Left)
            right = pl.tile.move(m, target_memory=pl.Mem.Right)
            empty = pl.tile.create([32, 32], dtype=pl.FP32, target_memory=pl.Mem.Acc)
            for _i, (c, d) in pl.range(4, init_values=(empty, empty)):
                c1 = pl.tile.matmul_acc(c, left, right)
                d1 = pl.tile.matmul_acc(d, left, right)
                rc, rd = pl.yield_(c1, d1)
            r0 = pl.tile.store(rc, [0, 0], out)
            r1 = pl.tile.store(rd, [0, 0], r0)
            return r1

    after = run(Before)
    found = bases(after)
    assert operators(after).count("tile.create") == 2
    assert found["c"] == found["c1"] == found["rc"]
    assert found["d"] == found["d1"] == found["rd"]
    assert found["c"] != found["d"]


def test_a_producer_that_comes_too_early_is_copied_at_the_yield():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, a: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
        ) -> pl.Tensor[[64, 64], pl.FP32]:
            x = pl.tile.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Vec)
            for _i, (c,) in pl.range(4, init_values=(x,)):
                y = pl.tile.add(c, c)
                z = pl.tile.mul(y, c)
                _s = pl.tile.store(z, [0, 0], out)
                r = pl.yield_(y)
            result = pl.tile.store(r, [0, 0], out)
            return result

    after = run(Before)
    found = bases(after)
    assert found["y"] != found["c"]
    assert found["y_mv"] == found["c"] == found["x"] == found["r"]
    end = [s for s in statements(after) if isinstance(s, ir.YieldStmt)]
    assert end[0].values[0] is variables(after)["y_mv"]


def loop(values, carried, results):
    """A loop that yields ``values``, of three iterations."""
    return ir.ForStmt(
        ir.Var("i", ir.ScalarType(DataType.INDEX)), ir.index_const(0), ir.index_const(3), ir.index_const(1), carried,
        ir.YieldStmt(values), results,
    )  # fmt: skip


def rotation(order):
    """A kernel with three carried tiles that change places as ``order`` says."""
    a, out = ir.Var("a", ir.TensorType([64, 64], DataType.FP32)), ir.Var("out", ir.TensorType([64, 64], DataType.FP32))
    loads = [registry.call("tile.load", a, [i, 0], [8, 64], target_memory=Vec) for i in range(len(order))]
    starts = [ir.Var(f"x{i}", c.type) for i, c in enumerate(loads)]
    carried = [ir.IterArg(f"c{i}", x.type, x) for i, x in enumerate(starts)]
    results = [ir.Var(f"r{i}", x.type) for i, x in enumerate(starts)]
    stmts = [ir.AssignStmt(x, c) for x, c in zip(starts, loads)]
    stmts.append(loop([carried[i] for i in order], carried, results))
    for i, r in enumerate(results):
        stored = registry.call("tile.store", r, [8 * i, 0], out)
        out = ir.Var(f"s{i}", stored.type)
        stmts.append(ir.AssignStmt(out, stored))
    body = ir.seq([*stmts, ir.ReturnStmt([out])])
    outer = ir.Var("out", out.type)
    return ir.Program([ir.Function("f", [a, outer], [out.type], body, type=ir.FunctionType.InCore)])


@pytest.mark.parametrize(
    ("order", "moves"),
    [((0, 1, 2), 0), ((1, 0), 3), ((1, 2, 0), 4), ((1, 2, 2), 2), ((0, 0), 1), ((2, 1, 0), 3)],
)
def test_values_that_change_places_are_copied_in_an_order_that_loses_none(order, moves):
    after = run(rotation(order))
    found = bases(after)
    assert operators(after).count("tile.move") == moves
    memory = {found[f"c{i}"]: f"x{i}" for i in range(len(order))}
    for s in statements(after):
        if isinstance(s, ir.AssignStmt) and isinstance(s.value, ir.Call) and s.value.op.name == "tile.move":
            memory[found[s.var.name_hint]] = memory[found[s.value.args[0].name_hint]]
    assert [memory[found[f"c{i}"]] for i in range(len(order))] == [f"x{i}" for i in order]


def test_branches_write_the_same_buffer():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, a: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
        ) -> pl.Tensor[[64, 64], pl.FP32]:
            x = pl.tile.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Vec)
            if n < 2:
                p = pl.tile.exp(x)
                q = pl.yield_(p)
            else:
                s = pl.tile.neg(x)
                t = pl.tile.exp(s)
                q = pl.yield_(t)
            y = pl.tile.add(q, x)
            result = pl.tile.store(y, [0, 0], out)
            return result

    after = run(Before)
    found = bases(after)
    assert found["p"] == found["t"] == found["q"]
    assert found["x"] != found["q"] != found["s"]
    assert "tile.move" not in operators(after)


def test_a_branch_that_passes_on_a_value_needed_later_copies_it():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, a: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
        ) -> pl.Tensor[[64, 64], pl.FP32]:
            x = pl.tile.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Vec)
            if n < 2:
                p = pl.tile.exp(x)
                q = pl.yield_(p)
            else:
                q = pl.yield_(x)
            y = pl.tile.add(q, x)
            result = pl.tile.store(y, [0, 0], out)
            return result

    after = run(Before)
    found = bases(after)
    assert found["x_mv"] == found["p"] == found["q"] != found["x"]


def test_an_operand_needed_after_it_is_overwritten_is_copied_first():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, a: pl.Tensor[[8, 64], pl.FP32], out: pl.Out[pl.Tensor[[8, 64], pl.FP32]]
        ) -> pl.Tensor[[8, 64], pl.FP32]:
            x = pl.tile.load(a, [0, 0], [8, 64], target_memory=pl.Mem.Vec)
            row = pl.tile.load(a, [0, 0], [1, 64], target_memory=pl.Mem.Vec)
            y = pl.tile.assemble(x, row, [3, 0])
            z = pl.tile.assemble(y, row, [4, 0])
            w = pl.tile.add(x, z)
            result = pl.tile.store(w, [0, 0], out)
            return result

    after = run(Before)
    found = bases(after)
    assert operators(after).count("tile.move") == 1
    assert found["x_mv"] == found["y"] == found["z"] != found["x"]
    assembled = next(s for s in statements(after) if getattr(s, "var", None) is variables(after)["y"])
    assert assembled.value.args[0] is variables(after)["x_mv"]


def acc_branch(early):
    """Accumulate on one path; on the other start afresh there, or, ``early``, use a value made before the branch."""
    shape, line = [16, 64], iter(range(1, 99))

    def span():
        return ir.Span("kernel.py", next(line), 1)

    left = ir.Var("left", ir.TileType([16, 64], DataType.BF16, memory_space=pl.Mem.Left))
    right = ir.Var("right", ir.TileType([64, 64], DataType.BF16, memory_space=pl.Mem.Right))
    fresh = registry.call("tile.matmul", left, right)
    prev, seed = (ir.Var(n, fresh.type, span()) for n in ("prev", "seed"))
    more = registry.call("tile.matmul_acc", prev, left, right)
    acc, phi = ir.Var("acc", more.type, span()), ir.Var("phi", fresh.type, span())
    condition = ir.Var("condition", ir.ScalarType(DataType.BOOL))
    start = ir.AssignStmt(seed, fresh, span())
    branch = ir.IfStmt(
        condition,
        ir.YieldStmt([seed], span()) if early else ir.seq([start, ir.YieldStmt([seed], span())]),
        ir.seq([ir.AssignStmt(acc, more, span()), ir.YieldStmt([acc], span())]),
        [phi],
        span(),
    )
    out = ir.Var("out", ir.TensorType(shape, DataType.FP32))
    stored = registry.call("tile.store", phi, [0, 0], out)
    result = ir.Var("result", stored.type)
    first = [ir.AssignStmt(prev, fresh, span()), *([start] if early else [])]
    body = ir.seq([*first, branch, ir.AssignStmt(result, stored), ir.ReturnStmt([result])])
    params = [left, right, condition, out]
    return ir.Program([ir.Function("f", params, [out.type], body, type=ir.FunctionType.InCore)])


def test_an_accumulator_started_in_a_branch_takes_the_accumulator_s_buffer():
    found = bases(run(acc_branch(early=False)))
    assert found["prev"] == found["seed"] == found["acc"] == found["phi"]


def test_accumulators_cannot_be_copied():
    with pytest.raises(UnsupportedError, match="cannot reconcile divergent L0C accumulator buffers") as caught:
        run(acc_branch(early=True))
    assert "kernel.py" in str(caught.value)
    assert caught.value.hint


def test_a_window_of_a_tile_does_not_become_a_whole_one():
    """A [8, 32] window of an [8, 64] tile has gaps between its rows; a carried [8, 32] tile has none."""

    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, a: pl.Tensor[[8, 64], pl.FP32], out: pl.Out[pl.Tensor[[8, 32], pl.FP32]]
        ) -> pl.Tensor[[8, 32], pl.FP32]:
            start = pl.tile.load(a, [0, 0], [8, 32], target_memory=pl.Mem.Vec)
            for _i, (_c,) in pl.range(4, init_values=(start,)):
                x = pl.tile.load(a, [0, 0], [8, 64], target_memory=pl.Mem.Vec)
                window = pl.tile.slice(x, [8, 32], [0, 0])
                r = pl.yield_(window)
            result = pl.tile.store(r, [0, 0], out)
            return result

    after = run(Before)
    found = places(after)
    assert found["window"][2] == (7 * 64 + 32) * 4
    assert found["window_mv"] == found["_c"] == found["r"] == (found["start"][0], 0, 1024)
    assert found["window"][0] != found["_c"][0]


def test_tiles_bound_to_one_allocation_take_turns():
    def program(overlapping):
        a, out = (ir.Var(n, ir.TensorType([8, 64], DataType.FP32)) for n in ("a", "out"))
        base, line, stmts = ir.Var("ping", ir.PtrType()), iter(range(1, 99)), []

        def bound(name, call, pin=True):
            memref = ir.MemRef(base, 0, 0, is_pinned=True) if pin else None
            type = ir.TileType([8, 64], DataType.FP32, memref, call.type.tile_view, Vec)
            var = ir.Var(name, type, ir.Span("kernel.py", next(line), 1))
            stmts.append(ir.AssignStmt(var, call))
            return var

        x = bound("x", registry.call("tile.load", a, [0, 0], [8, 64], target_memory=Vec))
        y = bound("y", registry.call("tile.exp", x))
        z = bound("z", registry.call("tile.add", x if overlapping else y, y), pin=False)
        stored = registry.call("tile.store", z, [0, 0], out)
        stmts.append(ir.ReturnStmt([stored]))
        return ir.Program([ir.Function("f", [a, out], [out.type], ir.seq(stmts), type=ir.FunctionType.InCore)])

    found = bases(run(program(overlapping=False)))
    assert found["x"] == found["y"] == "ping" != found["z"]
    with pytest.raises(KernelValueError, match="'x' and 'y' are bound to the same slot of allocation 'ping'") as caught:
        run(program(overlapping=True))
    assert "kernel.py:2" in str(caught.value)
    assert "kernel.py:1" in str(caught.value)
