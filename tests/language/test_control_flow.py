"""Loops, branches, and which names they make readable."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.errors import InvalidOperationError, ParserSyntaxError, ParserTypeError, UndefinedVariableError
from pypto.ir.stmt import flatten_to_stmts


def body(node: ir.Function | ir.Stmt | None) -> list[ir.Stmt]:
    return flatten_to_stmts(node.body if hasattr(node, "body") else node)  # type: ignore[union-attr]


def test_counted_loop_with_carried_values():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32], n: pl.Scalar[pl.INDEX]):
        for _i, (a, b) in pl.range(1, n, 2, init_values=(x, x)):
            c = pl.add(a, b)
            left, right = pl.yield_(c, a)
        return right

    loop, last = body(f)
    assert isinstance(loop, ir.ForStmt)
    assert loop.kind is ir.ForKind.Sequential
    assert (loop.start.value, loop.stop, loop.step.value) == (1, f.params[1], 2)
    assert [a.name_hint for a in loop.iter_args] == ["a", "b"]
    assert all(a.init_value is f.params[0] for a in loop.iter_args)
    assert [v.name_hint for v in loop.return_vars] == ["left", "right"]
    assert last.value[0] is loop.return_vars[1]
    assert loop.loop_var.dtype is pl.INDEX


@pytest.mark.parametrize(
    ("loop", "kind", "attrs"),
    [
        ("pl.range(4)", ir.ForKind.Sequential, {}),
        ("pl.parallel(4)", ir.ForKind.Parallel, {}),
        ("pl.unroll(4)", ir.ForKind.Unroll, {}),
        ("pl.pipeline(4, stage=2)", ir.ForKind.Pipeline, {"pipeline_stages": 2}),
    ],
)
def test_loop_kinds(loop: str, kind: ir.ForKind, attrs: dict[str, int]):
    f = pl.parse(
        f"@pl.function\ndef f(x: pl.Tensor[[8], pl.FP32]):\n    for i in {loop}:\n        x = pl.exp(x)\n    return x"
    )
    first = body(f)[0]
    assert (first.kind, first.attrs) == (kind, attrs)


def test_assigning_in_a_loop_keeps_the_variable_of_the_body_around():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32]):
        y = x
        for _i in pl.range(3):
            y = pl.exp(y)
            y = pl.mul(y, 2.0)
        y = pl.add(y, x)
        return y

    first, loop, after, last = body(f)
    inner = body(loop)
    assert inner[0].var is inner[1].var is first.var
    assert after.var is not first.var
    assert last.value[0] is after.var


def test_carried_value_without_yield_is_what_its_name_holds():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32], n: pl.Scalar[pl.INDEX]):
        for i, (a,) in pl.range(4, init_values=(x,)):
            a = pl.exp(a)
            if i > n:
                a = pl.mul(a, 2.0)
        return a

    loop, last = body(f)
    copy, exp, branch, out = body(loop)
    assert copy.value is loop.iter_args[0]
    assert list(exp.value.args) == [copy.var]
    assert flatten_to_stmts(branch.then_body)[0].var is exp.var
    assert isinstance(out, ir.YieldStmt) and out.values[0] is exp.var
    assert last.value[0] is loop.return_vars[0]


def test_while_loops():
    @pl.function
    def plain(n: pl.Scalar[pl.INT64]) -> pl.Scalar[pl.INT64]:
        i: pl.Scalar[pl.INT64] = 0
        while i < n:
            i += 2
        return i

    first, loop, last = body(plain)
    assert isinstance(loop.condition, ir.Lt)
    assert body(loop)[0].var is first.var is last.value[0]

    @pl.function
    def carried(n: pl.Scalar[pl.INT64]):
        for (i,) in pl.while_(init_values=(n,)):
            pl.cond(i < 10)
            j = pl.yield_(i + 1)
        return j

    loop, last = body(carried)
    assert isinstance(loop, ir.WhileStmt)
    assert loop.condition.left is loop.iter_args[0]
    assert last.value[0] is loop.return_vars[0]


def test_branches_that_bind_the_same_name():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32], n: pl.Scalar[pl.INDEX]):
        if n > 0:
            y = pl.exp(x)
        elif n == 0:
            y = x
            y = pl.mul(y, 2.0)
        else:
            y = pl.neg(x)
        return y

    branch, last = body(f)
    inner = flatten_to_stmts(branch.else_body)[0]
    variables = [
        flatten_to_stmts(branch.then_body)[0].var,
        flatten_to_stmts(inner.then_body)[1].var,
        flatten_to_stmts(inner.else_body)[0].var,
        last.value[0],
    ]
    assert all(v is variables[0] for v in variables)


def test_branches_that_yield():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32], n: pl.Scalar[pl.INDEX]):
        if n > 0:
            t = pl.exp(x)
            y, z = pl.yield_(t, n)
        else:
            y, z = pl.yield_(x, 1)
        return y, z

    branch, last = body(f)
    assert [v.name_hint for v in branch.return_vars] == ["y", "z"]
    assert list(last.value) == list(branch.return_vars)


def test_a_branch_that_leaves_the_loop_does_not_count():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32]):
        for i in pl.range(8):
            if i > 3:
                break
            else:
                y = pl.exp(x)
            x = pl.add(x, y)
        return x

    assert isinstance(body(f)[0], ir.ForStmt)


def test_names_first_bound_in_a_counted_loop_can_be_read_after_it():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32]):
        for _i in pl.range(3):
            y = pl.exp(x)
        return y

    loop, last = body(f)
    assert last.value[0] is body(loop)[0].var


@pytest.mark.parametrize("flag", [True, False])
def test_conditions_around_the_kernel_choose_a_branch(flag: bool):
    bias = flag

    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32]):
        if bias:
            y = pl.add(x, x)
        else:
            y = pl.yield_(x)
        return y

    first, last = body(f)
    assert last.value[0] is first.var
    assert (first.value is f.params[0]) is not flag


def undefined(code: str, message: str, line: int, column: int) -> None:
    source = f"@pl.function\ndef f(x: pl.Tensor[[8], pl.FP32], n: pl.Scalar[pl.INDEX]):\n{code}\n"
    with pytest.raises(UndefinedVariableError, match=message) as caught:
        pl.parse(source)
    assert (caught.value.span["begin_line"], caught.value.span["begin_column"]) == (line, column)
    assert caught.value.hint


def test_names_that_may_be_unbound():
    undefined("    if n > 0:\n        y = x\n    return y", "only one branch of the if binds it", 5, 12)
    undefined("    while n > 0:\n        y = x\n    return y", "bound only inside the loop", 5, 12)
    undefined("    for i in pl.range(0):\n        y = x\n    return y", "bound only inside the loop", 5, 12)
    undefined(
        "    for i in pl.range(4):\n        y = x\n        if n > i:\n            break\n    return y",
        "inside the loop",
        7,
        12,
    )
    undefined("    for i in pl.range(4):\n        y = x\n    return i", "variable of the loop", 5, 12)
    undefined(
        "    for i, (a,) in pl.range(4, init_values=(x,)):\n        t = a\n        b = pl.yield_(t)\n    return t",
        "bound only inside the loop",
        6,
        12,
    )
    undefined(
        "    if n > 0:\n        t = x\n        y = pl.yield_(t)\n    else:\n        y = pl.yield_(x)\n    return t",
        "not yielded",
        8,
        12,
    )
    undefined("    if n > 0:\n        y = x\n    else:\n        y = n\n    return y", "different types", 7, 12)


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        ("for i in range(3):\n        pass", ParserSyntaxError, r"must use pl\.range\(\)"),
        ("for i in pl.range():\n        pass", ParserSyntaxError, "got 0 arguments"),
        ("for i in pl.range(0, 4, 0):\n        pass", ParserSyntaxError, "step of a loop cannot be 0"),
        ("for i in pl.range(1.5):\n        pass", ParserTypeError, "must be an integer scalar"),
        ("for i, j in pl.range(3):\n        pass", ParserSyntaxError, "target must be a name"),
        ("for i in pl.range(3, init_values=(x,)):\n        pass", ParserSyntaxError, "target must be a loop variable"),
        ("for i, (a, b) in pl.range(3, init_values=(x,)):\n        pass", ParserSyntaxError, "Mismatch: 2 carried"),
        ("for i in pl.range(3, foo=1):\n        pass", ParserSyntaxError, "unexpected keyword argument 'foo'"),
        ("for i in pl.unroll(n):\n        pass", ParserSyntaxError, "compile-time constants"),
        (
            "for i in pl.unroll(3, init_values=(x,)):\n        pass",
            ParserSyntaxError,
            "cannot be combined with init_values",
        ),
        ("for i in pl.pipeline(3):\n        pass", ParserSyntaxError, "requires stage="),
        ("for i in pl.pipeline(3, stage=0):\n        pass", ParserSyntaxError, "stage must be >= 1"),
        ("for i in pl.range(3):\n        y = pl.yield_(x)", ParserSyntaxError, "nothing to carry"),
        ("for i, (a,) in pl.range(3, init_values=(x,)):\n        pl.yield_(a)", ParserSyntaxError, "assignment-form"),
        (
            "for i, (a,) in pl.range(3, init_values=(x,)):\n        b = pl.yield_(n)",
            ParserTypeError,
            "changes its type",
        ),
        (
            "for i, (a,) in pl.range(3, init_values=(x,)):\n        b = pl.yield_(a)\n        c = a",
            ParserSyntaxError,
            "never reached",
        ),
        ("for i in pl.parallel(3):\n        break", InvalidOperationError, "not allowed in a parallel loop"),
        ("for i in pl.unroll(3):\n        continue", InvalidOperationError, "not allowed in a unrolled loop"),
        ("for (a,) in pl.while_(init_values=(n,)):\n        b = pl.yield_(a)", ParserSyntaxError, r"must be pl\.cond"),
        ("for (a,) in pl.while_():\n        pl.cond(n > 0)", ParserSyntaxError, "requires init_values"),
        ("if n:\n        y = x", ParserTypeError, "if condition must be a Bool-typed scalar"),
        ("while x:\n        y = x", ParserTypeError, "while condition must be a Bool-typed scalar"),
        ("if n > 0:\n        y = pl.yield_(x)", ParserSyntaxError, "only one branch yields: there is no else"),
        (
            "if n > 0:\n        y = pl.yield_(x)\n    else:\n        z = pl.yield_(x)",
            ParserSyntaxError,
            "different names",
        ),
        (
            "if n > 0:\n        y = pl.yield_(x)\n    else:\n        y = pl.yield_(n)",
            ParserTypeError,
            "different types",
        ),
        ("y = pl.yield_(x)", ParserSyntaxError, "last statement of a loop body or branch"),
        ("pl.cond(n > 0)", ParserSyntaxError, r"first statement of a pl\.while_"),
        ("y = x\n    y = n", ParserTypeError, "Cannot reassign 'y'"),
        ("y = x\n    for i in pl.range(3):\n        y = pl.cast(x, pl.FP16)", ParserTypeError, "Cannot reassign 'y'"),
    ],
)
def test_mistakes(code: str, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        pl.parse(f"@pl.function\ndef f(x: pl.Tensor[[8], pl.FP32], n: pl.Scalar[pl.INDEX]):\n    {code}\n")


def test_statements_after_a_jump_are_accepted():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32], n: pl.Scalar[pl.INDEX]) -> pl.Tensor[[64], pl.FP32]:
        for i in pl.range(n):
            if i > 2:
                break
                x = pl.add(x, 2.0)
            x = pl.add(x, 1.0)
        return x

    assert f.name == "f"


def test_values_that_meet_may_lie_in_different_memories():
    @pl.function(type=pl.FunctionType.InCore)
    def f(x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
        t = pl.load(x, [0, 0], [16, 16])
        for _i, (acc,) in pl.range(4, init_values=(t,)):
            acc: pl.Tile[[16, 16], pl.FP32, pl.Mem.Mat] = pl.yield_(pl.add(acc, acc))
        return pl.store(acc, [0, 0], out)

    assert f.name == "f"


def test_a_buffer_place_left_to_the_compiler():
    assert pl.AUTO == -1


def test_handing_nothing_over_is_nothing():
    head = """import pypto.language as pl
@pl.function
def f(n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
    for i in pl.range(n):
        j: pl.Scalar[pl.INDEX] = i + 1
"""
    with_yield = pl.parse(head + "        pl.yield_()\n    return n\n")
    ir.assert_structural_equal(with_yield, pl.parse(head + "    return n\n"))


def test_positions_and_int64_values_share_a_name_across_bodies():
    @pl.jit
    def slots(x: pl.Tensor[[16], pl.INT64], y: pl.Out[pl.Tensor[[16], pl.INT64]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(16):
                slot = pl.cast(-1, pl.INT64)
                if i < 9:
                    slot = i * 2
                    if i % 2 == 0:
                        slot = pl.read(x, [i])
                pl.write(y, [i], slot)
        return y

    x, y = np.arange(16, dtype=np.int64) * 3_000_000_000 - 5, np.zeros(16, np.int64)
    slots(x, y)
    assert y.tolist() == [x[i] if i % 2 == 0 else 2 * i for i in range(9)] + [-1] * 7
