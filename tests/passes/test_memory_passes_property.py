"""Random kernels, run twice: on values, as SSA means them, and on the bytes at the addresses the passes assigned.

Memory is an array of rows of 256 bytes, each holding a token. An operator reads its operands' rows from memory while
it writes its result's, row by row, so an unsafe overlap shows as a wrong token.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pypto import ir, passes
from pypto.backend import get_target
from pypto.dtypes import DataType
from pypto.errors import CapacityError
from pypto.ir.enums import FunctionType, MemorySpace, ParamDirection
from pypto.ops import registry
from pypto.passes.allocate_memory_addr import assign_addresses
from pypto.passes.memory_model import allocations
from pypto.passes.pipeline import check_roundtrip

ROW = 64 * 4
TENSOR = ir.TensorType([64, 64], DataType.FP32)
INDEX = ir.ScalarType(DataType.INDEX)


def const(value):
    return ir.index_const(value)


@dataclass
class Builder:
    """Draws a kernel body; ``tiles`` are the variables in scope."""

    rng: random.Random
    source: ir.Var
    condition: ir.Var
    counter: int = 0
    depth: int = 0
    stmts: list = field(default_factory=list)

    def span(self):
        self.counter += 1
        return ir.Span("kernel.py", self.counter, 1)

    def op(self, name, *args, **kwargs):
        span = self.span()
        call = registry.call(name, *args, span=span, **kwargs)
        var = ir.Var(f"t{self.counter}", call.type, span)
        self.stmts.append(ir.AssignStmt(var, call, span))
        return var

    def load(self, rows):
        return self.op("tile.load", self.source, [0, 0], [rows, 64], target_memory=MemorySpace.Vec)

    def rows(self, tile):
        return tile.type.shape[0].value

    def like(self, tiles, rows):
        found = [t for t in tiles if self.rows(t) == rows]
        return self.rng.choice(found) if found else self.load(rows)

    def body(self, tiles, length):
        """Statements on ``tiles``; the tiles then in scope."""
        scope = list(tiles)
        for _ in range(length):
            kind = self.rng.choice(["load", "add", "add", "exp", "prelu", "slice", "assemble", "alias", "for", "if"])
            if kind in ("for", "if") and self.depth < 2:
                scope += self.region(kind, scope)
            elif kind == "load" or not scope:
                scope.append(self.load(self.rng.choice([1, 2, 4])))
            else:
                scope.append(self.simple(kind, scope))
        return scope

    def simple(self, kind, scope):
        tile = self.rng.choice(scope)
        rows = self.rows(tile)
        if kind == "exp":
            return self.op("tile.exp", tile)
        if kind == "prelu":
            return self.op("tile.prelu", tile, self.like(scope, rows), self.like(scope, rows))
        if kind == "slice":
            size = self.rng.choice([r for r in (1, 2, 4) if r <= rows])
            return self.op("tile.slice", tile, [size, 64], [self.rng.randrange(rows - size + 1), 0])
        if kind == "assemble":
            part = self.like(scope, self.rng.choice([r for r in (1, 2, 4) if r <= rows]))
            return self.op("tile.assemble", tile, part, [self.rng.randrange(rows - self.rows(part) + 1), 0])
        if kind == "alias":
            span = self.span()
            var = ir.Var(f"t{self.counter}", tile.type, span)
            self.stmts.append(ir.AssignStmt(var, tile, span))
            return var
        return self.op("tile.add", tile, self.like(scope, rows))

    def region(self, kind, scope):
        rows = [self.rng.choice([1, 2, 4]) for _ in range(self.rng.randrange(1, 4))]
        return self.loop(scope, rows) if kind == "for" else self.branch(scope, rows)

    def nested(self, scope, rows):
        outer, self.stmts = self.stmts, []
        self.depth += 1
        inner = self.body(scope, self.rng.randrange(1, 5))
        values = [self.like(inner, r) for r in rows]
        self.stmts.append(ir.YieldStmt(values, self.span()))
        self.depth -= 1
        body, self.stmts = ir.seq(self.stmts), outer
        return body, values

    def loop(self, scope, rows):
        initial = [self.like(scope, r) for r in rows]
        span = self.span()
        carried = [ir.IterArg(f"c{self.counter}_{i}", v.type, v, span) for i, v in enumerate(initial)]
        index = ir.Var(f"i{self.counter}", INDEX, span)
        body, _ = self.nested([*scope, *carried], rows)
        results = [ir.Var(f"r{self.counter}_{i}", v.type, span) for i, v in enumerate(initial)]
        trips = const(self.rng.randrange(0, 4))
        self.stmts.append(ir.ForStmt(index, const(0), trips, const(1), carried, body, results, span))
        return results

    def branch(self, scope, rows):
        span = self.span()
        then_body, values = self.nested(scope, rows)
        else_body, _ = self.nested(scope, rows)
        results = [ir.Var(f"p{self.counter}_{i}", v.type, span) for i, v in enumerate(values)]
        self.stmts.append(ir.IfStmt(self.condition, then_body, else_body, results, span))
        return results


def kernel(seed, length):
    rng = random.Random(seed)
    source, out = ir.Var("source", TENSOR), ir.Var("out", TENSOR)
    condition = ir.Var("condition", ir.ScalarType(DataType.BOOL))
    build = Builder(rng, source, condition)
    scope = build.body([], length)
    written = out
    for tile in rng.sample(scope, min(3, len(scope))):
        written = build.op("tile.store", tile, [0, 0], written)
    body = ir.seq([*build.stmts, ir.ReturnStmt([written])])
    directed = [(source, ParamDirection.In), (condition, ParamDirection.In), (out, ParamDirection.Out)]
    function = ir.Function("kernel", directed, [TENSOR], body, type=FunctionType.InCore)
    return ir.Program([function])


class Machine:
    """Runs a kernel that has addresses, checking every tile it reads against the value the variable stands for."""

    def __init__(self, choices):
        self.choices = random.Random(choices)
        self.memory = {}
        self.values = {}
        self.loads = 0

    def place(self, var):
        start = var.type.memref.byte_offset.value
        assert start % ROW == 0
        return start // ROW, var.type.shape[0].value

    def rows_in_memory(self, var):
        start, count = self.place(var)
        return tuple(self.memory.get(start + i) for i in range(count))

    def read(self, var):
        assert self.rows_in_memory(var) == self.values[var], f"{var.name_hint} was overwritten while needed"
        return self.values[var]

    def run(self, stmt):
        """What the statement yields, if it does."""
        for s in ir.flatten_to_stmts(stmt):
            if isinstance(s, ir.YieldStmt):
                return list(s.values)
            if isinstance(s, ir.AssignStmt):
                self.assign(s.var, s.value)
            elif isinstance(s, ir.ForStmt):
                self.loop(s)
            elif isinstance(s, ir.IfStmt):
                taken = self.run(s.then_body if self.choices.random() < 0.5 else s.else_body)
                self.hand_over(taken, s.return_vars)
        return []

    def hand_over(self, sources, targets):
        for source, target in zip(sources, targets):
            assert self.place(source) == self.place(target)
        found = [self.read(source) for source in sources]
        self.values.update(zip(targets, found))

    def loop(self, stmt):
        self.hand_over([a.init_value for a in stmt.iter_args], stmt.iter_args)
        for _ in range(stmt.stop.value):
            self.hand_over(self.run(stmt.body), stmt.iter_args)
        self.hand_over(stmt.iter_args, stmt.return_vars)

    def assign(self, var, value):
        if isinstance(value, ir.Var):
            self.values[var] = self.read(value)
            return
        name, args = value.op.name, value.args
        if name in ("tile.alloc", "tile.store"):
            if name == "tile.store":
                self.read(args[0])
            return
        if name == "tile.slice":
            first = args[2].elements[0].value
            self.values[var] = self.read(args[0])[first : first + var.type.shape[0].value]
            self.read(var)
            return
        self.compute(var, name, args)

    def compute(self, var, name, args):
        tiles = [a for a in args if isinstance(a.type, ir.TileType)]
        operands = [self.read(t) for t in tiles]
        start, count = self.place(var)
        self.loads += name == "tile.load"
        expected = []
        if name == "tile.assemble":
            assert self.place(var) == self.place(tiles[0])
            first = args[2].elements[0].value
            expected = list(operands[0])
            for i, token in enumerate(self.rows_in_memory(tiles[1])):
                expected[first + i] = operands[1][i]
                self.memory[start + first + i] = token
        for i in range(count) if name != "tile.assemble" else ():
            expected.append(self.token(name, operands, i))
            self.memory[start + i] = self.token(name, [self.rows_in_memory(t) for t in tiles], i)
        self.values[var] = tuple(expected)
        self.read(var)

    def token(self, name, operands, i):
        if name == "tile.load":
            return ("load", self.loads, i)
        if name == "tile.move":
            return operands[0][i]
        if name == "tile.prelu":
            return hash((name, *operands[:2], i))
        return hash((name, *(rows[i] for rows in operands)))


STAGES = (
    passes.init_mem_ref,
    passes.materialize_semantic_aliases,
    passes.memory_reuse,
    passes.allocate_memory_addr,
)


def lower(program):
    for factory in STAGES:
        program = factory()(program)
    return program


QUICK = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


@QUICK
@given(st.integers(0, 1 << 32), st.integers(1, 14), st.integers(0, 1 << 16))
def test_no_needed_tile_is_overwritten(seed, length, choices):
    lowered = lower(kernel(seed, length))
    for attempt in range(3):
        Machine(choices + attempt).run(lowered.get_function("kernel").body)


@QUICK
@given(st.integers(0, 1 << 32), st.integers(1, 14))
def test_passes_are_idempotent_and_deterministic(seed, length):
    program = kernel(seed, length)
    lowered = program
    for factory in STAGES:
        lowered = factory()(lowered)
        assert factory()(lowered) is lowered
    assert list(addresses(lower(program))) == list(addresses(lowered))


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 1 << 32), st.integers(1, 10))
def test_every_stage_prints_and_reads_back(seed, length):
    program = kernel(seed, length)
    for factory in STAGES:
        program = factory()(program)
        check_roundtrip(factory.__name__, program)


def addresses(program):
    for node in ir.flatten_to_stmts(program.get_function("kernel").body):
        if isinstance(node, ir.AssignStmt) and isinstance(node.var.type, ir.TileType):
            yield node.var.name_hint, node.var.type.memref.base.name_hint, node.var.type.memref.byte_offset.value


@given(st.lists(st.tuples(st.sampled_from([MemorySpace.Vec, MemorySpace.Left]), st.integers(1, 5000)), max_size=30))
def test_addresses_are_aligned_disjoint_and_the_high_water_mark_is_exact(sizes):
    target = get_target("a2a3")
    known = {
        ir.Var(f"mem_{i}", ir.PtrType()): passes.memory_model.Allocation(space, size)
        for i, (space, size) in enumerate(sizes)
    }
    placed, used = assign_addresses(known, target)
    for space in {s for s, _ in sizes}:
        ranges = sorted((placed[b], placed[b] + a.size) for b, a in known.items() if a.space is space)
        assert all(start % target.memories[space].alignment == 0 for start, _ in ranges)
        assert all(a[1] <= b[0] for a, b in zip(ranges, ranges[1:]))
        assert used[space] == ranges[-1][1]


def test_a_kernel_too_large_is_refused_and_a_fitting_one_is_not():
    source, out = ir.Var("source", TENSOR), ir.Var("out", TENSOR)
    build = Builder(random.Random(0), source, ir.Var("condition", ir.ScalarType(DataType.BOOL)))
    tiles = [build.op("tile.load", source, [0, 0], [64, 64], target_memory=MemorySpace.Vec) for _ in range(12)]
    total = tiles[0]
    for tile in tiles[1:]:
        total = build.op("tile.add", total, tile)
    stored = build.op("tile.store", total, [0, 0], out)
    body = ir.seq([*build.stmts, ir.ReturnStmt([stored])])
    program = ir.Program([ir.Function("kernel", [source, out], [TENSOR], body, type=FunctionType.InCore)])
    with pytest.raises(CapacityError, match=r"\(196608 bytes\) exceeds platform limit \(188416 bytes\)"):
        lower(program)


def test_every_declared_allocation_is_used():
    lowered = lower(kernel(11, 12))
    function = lowered.get_function("kernel")
    used = {var.type.memref.base for var in passes.memory_lifetimes.Lifetimes(function).order}
    assert set(allocations(function.body)) == used
