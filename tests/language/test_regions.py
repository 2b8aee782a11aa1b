"""Placement regions, task scopes and task launches."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir
from pypto.errors import InvalidOperationError, ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from pypto.ir.stmt import flatten_to_stmts

HEADER = """T = pl.Tensor[[64, 64], pl.FP32]
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: T, out: pl.Out[T]) -> T:
        return pl.store(pl.load(a, [0, 0], [64, 64]), [0, 0], out)
    @pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)
    def main(self, a: T, out: pl.Out[T], n: pl.Scalar[pl.INDEX]):
"""


def parsed(body: str) -> list[ir.Stmt]:
    program = pl.parse(HEADER + "".join(f"        {line}\n" for line in body.split("\n")))
    return flatten_to_stmts(program.get_function("main").body)


def inner(stmt: ir.Stmt) -> list[ir.Stmt]:
    return flatten_to_stmts(stmt.body)


def test_core_group_region():
    region, last = parsed(
        'with pl.at(level=pl.Level.CORE_GROUP, name_hint="scale", optimizations=[pl.split(pl.SplitMode.UP_DOWN), '
        "pl.cross_core_slot(slot_num=4)]):\n    out[:] = pl.mul(a, 2.0)\nreturn out"
    )
    assert isinstance(region, ir.InCoreScopeStmt)
    assert (region.name_hint, region.split, region.attrs) == ("scale", ir.SplitMode.UP_DOWN, {"slot_num": 4})
    assert last.value[0] is inner(region)[0].var


def test_other_levels():
    region, *_ = parsed("with pl.at(pl.Level.GLOBAL, role=pl.Role.Orchestrator):\n    y = pl.exp(a)\nreturn y")
    assert isinstance(region, ir.HierarchyScopeStmt)
    assert (region.level, region.role) == (ir.Level.GLOBAL, ir.Role.Orchestrator)


def test_a_region_that_ends_with_return_ends_the_function():
    (region,) = parsed("with pl.cluster():\n    return pl.exp(a)")
    assert isinstance(region, ir.ClusterScopeStmt)
    assert isinstance(inner(region)[0], ir.ReturnStmt)


def test_captured_task_ids_and_dependencies():
    stmts = parsed(
        "with pl.at(level=pl.Level.CORE_GROUP) as t1:\n    x = pl.exp(a)\n"
        "with pl.at(level=pl.Level.CORE_GROUP, deps=[t1, None], no_dep_args=[a], allow_early_resolve=True) as t2:\n"
        "    y = pl.add(x, a)\nreturn y"
    )
    first_id, first, second_id, second, _ = stmts
    assert first_id.value.op.name == "system.task_invalid"
    assert first.attrs == {"task_id_var": first_id.var}
    assert second.attrs["manual_dep_edges"][0] is first_id.var
    assert second.attrs["arg_direction_overrides_vars"][0].name_hint == "a"
    assert second.attrs["allow_early_resolve"] is True
    assert second.attrs["task_id_var"] is second_id.var


def test_spmd_loop():
    region, _ = parsed(
        'for b in pl.spmd(8, sync_start=True, name_hint="rows"):\n'
        "    out = pl.store(pl.load(a, [b * 8, 0], [8, 64]), [b * 8, 0], out)\nreturn out"
    )
    assert isinstance(region, ir.SpmdScopeStmt)
    assert (region.core_num.value, region.sync_start, region.name_hint) == (8, True, "rows_spmd")
    core = region.body
    assert isinstance(core, ir.InCoreScopeStmt) and core.name_hint == "rows"
    assert inner(core)[0].value.op.name == "tile.get_block_idx"


def test_spmd_launch_of_a_kernel_is_not_wrapped():
    region, _ = parsed("with pl.spmd(n):\n    out = self.k(a, out)\nreturn out")
    assert isinstance(region.body, ir.AssignStmt)
    region, _ = parsed(
        "with pl.spmd(n):\n    b = pl.tile.get_block_idx()\n"
        "    out = pl.store(pl.load(a, [b, 0], [1, 64]), [b, 0], out)\nreturn out"
    )
    assert isinstance(region.body, ir.InCoreScopeStmt)


def test_split_aiv_regions():
    region, _ = parsed(
        "for lane in pl.split_aiv(2, mode=pl.SplitMode.LEFT_RIGHT):\n"
        "    out = pl.store(pl.load(a, [lane * 32, 0], [32, 64]), [lane * 32, 0], out)\nreturn out"
    )
    assert isinstance(region, ir.InCoreScopeStmt)
    assert isinstance(region.body, ir.SplitAivScopeStmt)
    assert region.body.split is ir.SplitMode.LEFT_RIGHT


def test_task_scopes():
    (scope, *_) = parsed("with pl.scope():\n    x = self.k(a, out)\nreturn x")
    assert isinstance(scope, ir.RuntimeScopeStmt) and not scope.manual
    (scope, *_) = parsed("with pl.scope(mode=pl.ScopeMode.MANUAL):\n    x = self.k(a, out)\nreturn x")
    assert scope.manual
    with pytest.raises(ParserSyntaxError, match="AUTO scopes by hand"):

        @pl.function(type=pl.FunctionType.Orchestration)
        def f(a: pl.Tensor[[64], pl.FP32]):
            with pl.scope():
                b = pl.exp(a)
            return b


def test_submits():
    stmts = parsed(
        "x, t1 = pl.submit(self.k, a, out)\n"
        "y, t2 = pl.spmd_submit(self.k, x, out, core_num=4, sync_start=True, deps=[t1], dumps=[x])\nreturn y"
    )
    first, second = stmts[0].value, stmts[3].value
    assert isinstance(first, ir.Submit) and isinstance(second, ir.Submit)
    assert [t.dtype for t in first.type.types] == [pl.FP32, pl.TASK_ID]
    assert first.core_num is None
    assert (second.core_num.value, second.sync_start) == (4, True)
    assert second.deps[0] is stmts[2].var
    assert second.attrs["dump_vars"] == [stmts[1].var]


def test_elements_of_task_id_arrays_are_gathered():
    stmts = parsed(
        "ids = pl.array.create(4, pl.TASK_ID)\nx, t = pl.submit(self.k, a, out)\nids[0] = t\n"
        "y, u = pl.submit(self.k, x, out, deps=[ids[k] for k in range(4) if k != 1])\nreturn y"
    )
    submit = next(s.value for s in reversed(stmts) if isinstance(s, ir.AssignStmt) and isinstance(s.value, ir.Submit))
    (edge,) = submit.deps
    assert isinstance(edge.type, ir.ArrayType)
    assert edge.type.extent.value == 3


PREDICATES = """T = pl.Tensor[[8], pl.INT32]
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: T, out: pl.Out[T]) -> T:
        return out
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: T, out: pl.Out[T], f: pl.Tensor[[8], pl.FP32], u: pl.Tensor[[8], pl.UINT32]):
        x, t = pl.submit(self.k, a, out)
"""


def test_dispatch_predicates():
    program = pl.parse(f"{PREDICATES}        y, s = pl.submit(self.k, a, x, deps=[t], predicate=(x[3] > 0))\n")
    stmts = flatten_to_stmts(program.get_function("main").body)
    submit = next(s.value for s in reversed(stmts) if isinstance(s.value, ir.Submit))
    assert isinstance(submit.predicate, ir.Gt)
    assert submit.predicate.left.op.name == "tensor.read"


@pytest.mark.parametrize(
    ("predicate", "error", "message"),
    [
        ("x[3]", ParserSyntaxError, "must be a single comparison"),
        ("0 < x[3] < 9", ParserSyntaxError, "Only simple comparisons"),
        ("x[3] in x", UnsupportedFeatureError, "Unsupported comparison"),
        ("x > 0", ParserSyntaxError, "ScalarExpr or Var with ScalarType"),
        ("a[3] > 1.5", ParserSyntaxError, "same numeric dtype category"),
        ("a[3] % 2 == 0", ParserSyntaxError, "must compare one tensor element"),
        ("a[3] > a[4]", ParserSyntaxError, "must compare one tensor element"),
        ("u[3] > 0", ParserTypeError, "signed 8/16/32/64-bit integer"),
        ("x[3] > 0", ParserSyntaxError, "produced by the task 't', which is not in deps="),
    ],
)
def test_predicates_that_cannot_be_dispatched(predicate: str, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        pl.parse(f"{PREDICATES}        y, s = pl.submit(self.k, a, x, predicate=({predicate}))\n")


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("with pl.at():\n    x = a", ParserSyntaxError, "requires level="),
        ("with pl.at(level=3):\n    x = a", ParserTypeError, "level must be a Level"),
        ("with pl.at(level=pl.Level.HOST, bogus=1):\n    x = a", ParserSyntaxError, "Unknown keyword argument 'bogus'"),
        (
            "with pl.at(level=pl.Level.CORE_GROUP, role=pl.Role.SubWorker):\n    x = a",
            ParserSyntaxError,
            "role= does not apply",
        ),
        ('with pl.at(level=pl.Level.CORE_GROUP, name_hint="a b"):\n    x = a', ParserSyntaxError, "identifier"),
        (
            "with pl.at(level=pl.Level.CORE_GROUP, optimizations=3):\n    x = a",
            ParserSyntaxError,
            "must be a list literal",
        ),
        (
            "with pl.at(level=pl.Level.CORE_GROUP, optimizations=[3]):\n    x = a",
            ParserSyntaxError,
            "Unsupported entry",
        ),
        ("with pl.at(level=pl.Level.CORE_GROUP, deps=[a]):\n    x = a", ParserTypeError, "must be TaskId values"),
        ("with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[a, a]):\n    x = a", ParserTypeError, "more than once"),
        ("with pl.cluster() as t:\n    x = a", ParserSyntaxError, "`as` only applies"),
        ("with open('f'):\n    x = a", UnsupportedFeatureError, "Unsupported context manager"),
        (
            "with pl.cluster(), pl.manual_scope():\n    x = a",
            UnsupportedFeatureError,
            "one with statement opens one region",
        ),
        ("with pl.spmd():\n    x = self.k(a, out)", ParserSyntaxError, "requires core_num"),
        ("with pl.spmd(0):\n    x = self.k(a, out)", ParserSyntaxError, "positive integer"),
        ("with pl.spmd(4):\n    x = pl.exp(a)", ParserSyntaxError, "neither reads the per-block index"),
        ("with pl.spmd(4):\n    x = self.k(a, out)\n    y = self.k(a, x)", ParserSyntaxError, "launches 2 kernels"),
        ("with pl.spmd(4, deps=[]):\n    x = self.k(a, out)", ParserSyntaxError, "does not accept 'deps='"),
        ("for i in pl.spmd(4):\n    x = a\ny = i", Exception, "index of the region"),
        ("for i in pl.split_aiv(3, mode=pl.SplitMode.NONE):\n    x = a", ParserSyntaxError, "requires n == 2"),
        ("for i in pl.split_aiv(2):\n    x = a", ParserSyntaxError, "requires mode="),
        ("for i in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n    break", InvalidOperationError, "not supported inside"),
        ("with pl.manual_scope():\n    with pl.manual_scope():\n        x = a", ParserSyntaxError, "cannot be nested"),
        ("pl.submit(self.k, a, out)", ParserSyntaxError, "must be unpacked"),
        ("x, t = pl.submit(a)", ParserSyntaxError, "launches a function of the program"),
        ("x, t = pl.spmd_submit(self.k, a, out)", ParserSyntaxError, "requires the core_num keyword"),
        ("x = self.k(a, out, deps=[])", ParserTypeError, "does not accept keyword argument 'deps'"),
        ("with pl.cluster():\n    x, t = pl.submit(self.k, a, out, deps=[])", ParserSyntaxError, "per-task dispatch"),
    ],
)
def test_mistakes(body: str, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        parsed(body)


def test_forms_outside_a_kernel():
    assert pl.split(pl.SplitMode.UP_DOWN).mode is pl.SplitMode.UP_DOWN
    assert pl.at(pl.Level.CORE_GROUP, name_hint="x").name_hint == "x"
    assert [type(i) for i in pl.range(3)] == [pl.Scalar] * 3
    with pytest.raises(RuntimeError, match="only inside a kernel"):
        pl.yield_(3)
    with pytest.raises(ValueError, match="positive integer"):
        pl.cross_core_slot(slot_num=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'step'"):
        pl.range(3, step=2)


def test_windowize_marks_a_region():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32]):
        with pl.at(level=pl.Level.CORE_GROUP, windowize=True):
            x = pl.add(x, 1.0)
        return x

    assert flatten_to_stmts(f.body)[0].attrs["windowize"] is True


def test_one_name_receives_the_task_of_a_launch_without_results():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def fill(self, out: pl.Out[pl.Tensor[[64], pl.FP32]]):
            pl.store(pl.load(out, [0], [64]), [0], out)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, out: pl.Out[pl.Tensor[[64], pl.FP32]]) -> pl.Scalar[pl.TASK_ID]:
            with pl.manual_scope():
                task = pl.submit(self.fill, out)
                (same,) = pl.submit(self.fill, out, deps=[task])
            return same

    ir.assert_structural_equal(P, pl.parse_program(str(P)))


def test_nested_unpacking_of_a_launch():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def two(self, a: pl.Tensor[[64], pl.FP32]) -> tuple[pl.Tensor[[64], pl.FP32], pl.Tensor[[64], pl.FP32]]:
            return a, a

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, a: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            with pl.manual_scope():
                (b, c), task = pl.submit(self.two, a)
                d, e, last = pl.submit(self.two, c, deps=[task])
            return d

    assert P.get_function("main") is not None


def test_a_launch_may_leave_out_trailing_outputs():
    source = """
T = pl.Tensor[[64], pl.FP32]
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: T, out: pl.Out[T]) -> T:
        return pl.store(pl.load(a, [0], [64]), [0], out)
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: T) -> T:
        with pl.manual_scope():
            b, task = pl.submit(self.k{args})
        return b
"""
    program = pl.parse_program(source.format(args=", a"))
    ir.assert_structural_equal(program, pl.parse_program(str(program)))
    for args in ("", ", out=a"):
        with pytest.raises(ParserTypeError, match=r"'k' expects 2 argument\(s\), got"):
            pl.parse_program(source.format(args=args))
