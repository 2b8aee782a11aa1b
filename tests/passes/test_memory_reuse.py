"""MemoryReuse: which allocations become one, and which must not."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from memory_programs import allocated, bases, places

import pypto.language as pl
from pypto import ir, passes
from pypto.backend import ASCEND910B
from pypto.dtypes import DataType
from pypto.ops import registry
from pypto.passes.memory_lifetimes import RangeSet
from pypto.passes.memory_model import Allocation
from pypto.passes.memory_reuse import pack
from pypto.passes.pipeline_buffers import Stages

Vec = pl.Mem.Vec


def run(program, planner=passes.MemoryPlanner.PYPTO):
    with passes.PassContext([], memory_planner=planner):
        for factory in (passes.init_mem_ref, passes.materialize_semantic_aliases, passes.memory_reuse):
            program = factory()(program)
    return program


class Straight:
    """A straight-line kernel of [rows, 64] f32 tiles, built by operator name."""

    def __init__(self):
        self.a = ir.Var("a", ir.TensorType([64, 64], DataType.FP32))
        self.out = ir.Var("out", ir.TensorType([64, 64], DataType.FP32))
        self.last, self.stmts = self.out, []

    def load(self, name, rows=16, space=Vec, pinned=None):
        call = registry.call("tile.load", self.a, [0, 0], [rows, 64], target_memory=space)
        type = call.type
        if pinned is not None:
            memref = ir.MemRef(pinned, 0, 0, is_pinned=True)
            type = ir.TileType(type.shape, type.dtype, memref, type.tile_view, space)
        return self.assign(name, call, type)

    def op(self, name, operator, *args, **kwargs):
        call = registry.call(f"tile.{operator}", *args, **kwargs)
        return self.assign(name, call, call.type)

    def assign(self, name, call, type):
        var = ir.Var(name, type, ir.Span("kernel.py", len(self.stmts) + 1, 1))
        self.stmts.append(ir.AssignStmt(var, call, var.span))
        return var

    def store(self, tile):
        self.last = self.op(f"stored{len(self.stmts)}", "store", tile, [0, 0], self.last)

    def program(self):
        body = ir.seq([*self.stmts, ir.ReturnStmt([self.last])])
        params = [self.a, self.out]
        return ir.Program([ir.Function("f", params, [self.out.type], body, type=ir.FunctionType.InCore)])


def test_a_chain_lives_in_one_buffer():
    k = Straight()
    x = k.load("x")
    y = k.op("y", "add", x, x)
    z = k.op("z", "exp", y)
    k.store(z)
    after = run(k.program())
    assert allocated(after) == {"mem_vec_2": ("Vec", 4096)}
    assert set(places(after).values()) == {("mem_vec_2", 0, 4096)}
    assert passes.memory_reuse()(after) is after


def test_tiles_needed_together_stay_apart():
    k = Straight()
    x, y = k.load("x"), k.load("y")
    z = k.op("z", "add", x, y)
    w = k.op("w", "mul", z, x)
    k.store(w)
    found = bases(run(k.program()))
    assert found["x"] != found["y"]
    assert found["z"] == found["y"]
    assert found["w"] == found["x"]


def test_a_small_tile_moves_into_a_large_one_s_buffer_even_when_it_comes_first():
    k = Straight()
    small = k.load("small", 4)
    k.store(small)
    large = k.load("large", 64)
    k.store(large)
    after = run(k.program())
    assert bases(after)["small"] == bases(after)["large"]
    assert allocated(after) == {"mem_vec_3": ("Vec", 16384)}
    assert places(after)["small"] == ("mem_vec_3", 0, 1024)


def test_memories_are_packed_apart():
    k = Straight()
    x = k.load("x")
    k.store(x)
    k.load("m", 16, pl.Mem.Mat)
    after = run(k.program())
    assert allocated(after) == {"mem_vec_2": ("Vec", 4096), "mem_mat_3": ("Mat", 4096)}


@pytest.mark.parametrize("operator", ["recip", "rsqrt"])
def test_an_operator_that_reads_while_it_writes_gets_a_buffer_of_its_own(operator):
    k = Straight()
    x = k.load("x")
    y = k.op("y", operator, x)
    z = k.op("z", "exp", y)
    k.store(z)
    found = bases(run(k.program()))
    assert found["x"] != found["y"] == found["z"] or found["z"] == found["x"] != found["y"]


def test_scratch_and_reduced_operands_are_kept_until_the_result_is_written():
    k = Straight()
    x, tmp = k.load("x"), k.load("tmp")
    total = k.op("total", "row_sum", x, tmp)
    y = k.op("y", "row_expand_mul", k.load("z"), total)
    k.store(y)
    found = bases(run(k.program()))
    assert found["total"] not in (found["x"], found["tmp"])
    assert found["y"] != found["total"]


def test_a_wider_result_does_not_overwrite_what_it_is_made_of():
    k = Straight()
    x = k.load("x")
    half = k.op("half", "cast", x, target_type=DataType.FP16)
    wide = k.op("wide", "cast", half, target_type=DataType.FP32)
    k.store(wide)
    found = bases(run(k.program()))
    assert found["wide"] != found["half"]


def test_a_view_keeps_its_buffer_needed():
    k = Straight()
    x = k.load("x")
    row = k.op("row", "slice", x, [1, 64], [5, 0])
    y = k.load("y")
    k.store(y)
    k.store(row)
    after = run(k.program())
    assert bases(after)["y"] != bases(after)["x"]
    assert places(after)["row"] == (bases(after)["x"], 1280, 256)


def test_views_move_with_their_buffer():
    k = Straight()
    first = k.load("first")
    k.store(first)
    x = k.load("x")
    row = k.op("row", "slice", x, [1, 64], [5, 0])
    k.store(row)
    found = places(run(k.program()))
    assert found["x"] == found["first"]
    assert found["row"] == (found["first"][0], 1280, 256)


def test_declared_allocations_are_left_alone():
    ping, pong = ir.Var("ping", ir.PtrType()), ir.Var("pong", ir.PtrType())
    k = Straight()
    for name, pin in (("w", ping), ("x", None), ("y", pong), ("z", None), ("v", ping)):
        k.store(k.load(name, pinned=pin))
    after = run(k.program())
    found = bases(after)
    assert (found["w"], found["v"], found["y"]) == ("ping", "ping", "pong")
    assert found["x"] == found["z"] not in ("ping", "pong")
    assert allocated(after) == {"ping": ("Vec", 4096), "mem_vec_2": ("Vec", 4096), "pong": ("Vec", 4096)}


def test_the_two_branches_share_and_what_lives_past_them_does_not():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, a: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
        ) -> pl.Tensor[[64, 64], pl.FP32]:
            x = pl.tile.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Vec)
            if n < 2:
                p = pl.tile.add(x, x)
                phi = pl.yield_(p)
            else:
                q = pl.tile.mul(x, x)
                phi = pl.yield_(q)
            e = pl.tile.add(x, x)
            f = pl.tile.add(phi, e)
            g = pl.tile.add(x, f)
            result = pl.tile.store(g, [0, 0], out)
            return result

    after = run(Before)
    found = bases(after)
    assert found["p"] == found["q"] == found["phi"]
    assert len({found["x"], found["phi"], found["e"]}) == 3
    assert len(allocated(after)) == 3


def test_what_a_loop_reads_from_outside_lives_to_its_end():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, a: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
        ) -> pl.Tensor[[64, 64], pl.FP32]:
            x = pl.tile.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Vec)
            for _i, (o,) in pl.range(4, init_values=(out,)):
                y = pl.tile.add(x, x)
                z = pl.tile.exp(y)
                s = pl.tile.store(z, [0, 0], o)
                r = pl.yield_(s)
            late = pl.tile.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Vec)
            result = pl.tile.store(late, [0, 0], r)
            return result

    found = bases(run(Before))
    assert found["y"] == found["z"] != found["x"]
    assert found["late"] == found["x"]


def test_ptoas_plans_for_itself():
    k = Straight()
    x = k.load("x")
    k.store(k.op("y", "exp", x))
    assert len(allocated(run(k.program(), passes.MemoryPlanner.PTOAS))) == 2


def test_work_grows_in_proportion_to_the_kernel(monkeypatch):
    def comparisons(length):
        k = Straight()
        tile = k.load("x")
        for i in range(length):
            tile = k.op(f"t{i}", "add", tile, k.load(f"l{i}"))
        k.store(tile)
        count = [0]
        meets = RangeSet.meets

        def counting(self, other):
            count[0] += 1
            return meets(self, other)

        with monkeypatch.context() as patch:
            patch.setattr(RangeSet, "meets", counting)
            run(k.program())
        return count[0]

    assert comparisons(400) < 8.5 * comparisons(50)


def test_range_sets():
    a = RangeSet([(5, 7), (0, 2), (2, 3)])
    assert list(a) == [(0, 3), (5, 7)]
    assert not a.meets(RangeSet([(3, 5)]))
    assert not a.meets(RangeSet([(7, 9)]))
    assert a.meets(RangeSet([(2, 3)]))
    assert RangeSet([(-9, 0)]).meets(RangeSet([(-1, 4)]))
    assert not a.meets(RangeSet())
    a.add(RangeSet([(3, 5), (8, 9)]))
    assert all(a.meets(RangeSet([(i, i + 1)])) for i in (0, 2, 3, 4, 6, 8))
    assert not a.meets(RangeSet([(7, 8)]))


# Smaller tiles side by side in a larger one.


@pl.jit
def two_phases(x: pl.Tensor[[64, 512], pl.FP32], y: pl.Out[pl.Tensor[[64, 512], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for c in pl.range(0, 512, 256):
            a = x[0:32, c : c + 256]
            b = pl.exp(a)
            d = pl.neg(a)
            e = pl.recip(pl.add(b, 1.0))
            y[0:32, c : c + 256] = pl.mul(pl.add(pl.mul(d, e), b), a)
        whole = x[32:64, 0:512]
        twice = pl.add(whole, pl.abs(whole))
        y[32:64, 0:512] = twice
    return y


def test_tiles_share_parts_of_a_larger_one_where_memory_is_short():
    x = np.random.default_rng(7).standard_normal((64, 512)).astype(np.float32)
    y = np.zeros_like(x)
    two_phases(x, y)
    a = x[:32]
    np.testing.assert_allclose(y[:32], (-a / (np.exp(a) + 1) + np.exp(a)) * a, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(y[32:], x[32:] + np.abs(x[32:]))


@pytest.mark.parametrize("seed", range(30))
def test_what_is_needed_at_once_never_shares_a_byte(seed):
    rng = random.Random(seed)
    known, needed = {}, {}
    for i in range(rng.randint(2, 24)):
        base = ir.Var(f"b{i}", ir.PtrType.get())
        start = rng.randint(0, 40)
        known[base] = Allocation(Vec, 32 * rng.choice([1, 2, 3, 4, 8, 16]))
        needed[base] = RangeSet([(start, start + rng.randint(1, 12))])
    k = Straight()
    k.store(k.load("x"))
    function = next(iter(run(k.program()).functions.values()))
    stages = Stages(function, known, ASCEND910B)
    hosts = pack(known, needed, {}, stages, {Vec: 32})
    spans = {}
    for base, allocation in known.items():
        host, at = hosts.get(base, (base, 0))
        assert at % 32 == 0 and at + allocation.size <= known[host].size
        spans[base] = host, at, at + allocation.size
    for one, other in itertools.combinations(known, 2):
        (host, start, end), (other_host, other_start, other_end) = spans[one], spans[other]
        if host is not other_host or end <= other_start or other_end <= start:
            continue
        assert not needed[one].meets(needed[other])
        (_, over), (begins, _) = next(iter(needed[one])), next(iter(needed[other]))
        (first, _), (_, ends) = next(iter(needed[one])), next(iter(needed[other]))
        if over == begins or ends == first:
            assert start == other_start, "a result over its operand starts where that does"


def test_a_cast_to_another_width_does_not_take_the_place_of_its_operand():
    """A narrower result would begin on bytes of rows that are still to be read."""
    k = Straight()
    x = k.load("x")
    half = k.op("half", "cast", x, target_type=DataType.FP16)
    other = k.op("other", "neg", half)
    k.store(k.op("back", "cast", other, target_type=DataType.FP32))
    found = bases(run(k.program()))
    assert found["half"] != found["x"] and found["back"] != found["other"]


def test_a_cast_to_a_type_as_wide_takes_the_place_of_its_operand():
    k = Straight()
    x = k.load("x")
    number = k.op("number", "cast", x, target_type=DataType.INT32, mode="trunc")
    k.store(k.op("back", "cast", number, target_type=DataType.FP32))
    found = bases(run(k.program()))
    assert found["number"] == found["x"] == found["back"]
