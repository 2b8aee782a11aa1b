"""Printing: IR as Python that reads back."""

from __future__ import annotations

import ast
import math

import pytest

import pypto.language as pl
from pypto import DataType, InternalError, ir
from pypto.ir import python_print, python_print_type

INT, IDX, FP, BOOL = DataType.INT64, DataType.INDEX, DataType.FP32, DataType.BOOL


def var(name: str = "x", dtype: DataType = IDX) -> ir.Var:
    return ir.Var(name, ir.ScalarType(dtype))


def const(value: int, dtype: DataType = IDX) -> ir.ConstInt:
    return ir.ConstInt(value, dtype)


def reads_back(program):
    """Parse what is printed; it must be equal, and print the same."""
    text = python_print(program)
    again = pl.parse(text)
    ir.assert_structural_equal(program, again)
    assert python_print(again) == text
    return text


a, b, c = var("a"), var("b"), var("c")


@pytest.mark.parametrize(
    "expr, text",
    [
        (a + b * c, "a + b * c"),
        ((a + b) * c, "(a + b) * c"),
        (a - (b - c), "a - (b - c)"),
        ((a - b) - c, "a - b - c"),
        (a // b % c, "a // b % c"),
        (a // (b % c), "a // (b % c)"),
        (-(a + b), "-(a + b)"),
        (-a + b, "-a + b"),
        ((-a) ** b, "(-a) ** b"),
        (-(a**b), "-a ** b"),
        (a ** (b**c), "a ** b ** c"),
        ((a**b) ** c, "(a ** b) ** c"),
        (a & b | c ^ a << b, "a & b | c ^ a << b"),
        ((a | b) & c, "(a | b) & c"),
        (a + -5, "a + -5"),
        (const(-5) ** a, "(-5) ** a"),
        (const(32) + const(32), "pl.const(32, pl.INDEX) + pl.const(32, pl.INDEX)"),
        (-const(5), "-pl.const(5, pl.INDEX)"),
        (a < b, "a < b"),
        (ir.And(a < b, ir.Or(b < c, c < a, BOOL), BOOL), "a < b and (b < c or c < a)"),
        (ir.Not(ir.And(a < b, b < c, BOOL), BOOL), "not (a < b and b < c)"),
        (ir.Eq(a < b, b < c, BOOL), "(a < b) == (b < c)"),
        (ir.Min(a, b + 1, IDX), "pl.min(a, b + 1)"),
        (ir.Cast(a, DataType.UINT64), "pl.cast(a, pl.UINT64)"),
        (ir.TupleGetItemExpr(ir.MakeTuple([a, b]), 1), "[a, b][1]"),
    ],
)
def test_expressions_have_the_parentheses_they_need(expr, text):
    assert python_print(expr) == text
    names = {"a": 7, "b": 2, "c": 3}
    plain = text.replace("pl.const(32, pl.INDEX)", "32").replace("pl.const(5, pl.INDEX)", "5")
    if "pl." not in plain and "[" not in plain:
        assert eval(plain, {}, names) == eval(_fully_parenthesized(expr), {}, names)


def _fully_parenthesized(e) -> str:
    if isinstance(e, ir.BinaryExpr):
        return f"({_fully_parenthesized(e.left)} {e.symbol} {_fully_parenthesized(e.right)})"
    if isinstance(e, ir.UnaryExpr):
        return f"({e.symbol} {_fully_parenthesized(e.operand)})"
    return e.name_hint if isinstance(e, ir.Var) else f"({e.value})"


@pytest.mark.parametrize(
    "value, text",
    [
        (const(42), "42"),
        (const(42, INT), "pl.const(42, pl.INT64)"),
        (const(1, DataType.BOOL), "pl.const(1, pl.BOOL)"),
        (const(-3, DataType.INT8), "pl.const(-3, pl.INT8)"),
        (ir.ConstFloat(1.5, FP), "1.5"),
        (ir.ConstFloat(1e30, FP), "1e+30"),
        (ir.ConstFloat(-2.5, DataType.FP16), "pl.const(-2.5, pl.FP16)"),
        (ir.ConstFloat(math.inf, FP), 'float("inf")'),
        (ir.ConstFloat(math.nan, DataType.BF16), 'pl.const(float("nan"), pl.BF16)'),
        (ir.ConstBool(True), "True"),
    ],
)
def test_constants_state_a_dtype_that_is_not_the_default(value, text):
    assert str(value) == text


def _mem(space=ir.MemorySpace.Vec, **kwargs):
    return ir.MemRef(space, 0, 512, 3, **kwargs)


@pytest.mark.parametrize(
    "type, text",
    [
        (ir.ScalarType(DataType.BF16), "pl.Scalar[pl.BF16]"),
        (ir.TensorType([const(64, DataType.INT32), a], FP), "pl.Tensor[[64, a], pl.FP32]"),
        (
            ir.TensorType([8, 4], FP, None, ir.TensorView([4, 1], ir.TensorLayout.ND, [8, a])),
            "pl.Tensor[[8, 4], pl.FP32, pl.TensorView(valid_shape=[8, a], stride=[4, 1], layout=pl.TensorLayout.ND)]",
        ),
        (
            ir.TileType([16, 16], DataType.FP16, _mem(), None, ir.MemorySpace.Vec),
            'pl.Tile[[16, 16], pl.FP16, pl.MemRef("mem_vec_3", 0, 512), pl.Mem.Vec]',
        ),
        (
            ir.TileType([16, 16], FP, ir.MemRef("l0c", is_pinned=True, slot_count=2, slot_index=a % 2), None,
                        ir.MemorySpace.Acc),
            'pl.Tile[[16, 16], pl.FP32, pl.MemRef("l0c", slots=2)[a % 2], pl.Mem.Acc]',
        ),
        (
            ir.TileType([32, 32], FP, None, ir.TileView(valid_shape=[8, 32], pad=ir.PadValue.zero), ir.MemorySpace.Vec),
            "pl.Tile[[32, 32], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[8, 32], pad=pl.PadValue.zero)]",
        ),
        (ir.ArrayType(DataType.INT32, 8), "pl.Array[8, pl.INT32]"),
        (ir.TupleType([ir.ScalarType(FP), ir.PtrType()]), "pl.Tuple[pl.Scalar[pl.FP32], pl.Ptr]"),
    ],
)  # fmt: skip
def test_types_print_as_annotations(type, text):
    assert python_print_type(type) == text
    ast.parse(text)


def test_a_view_shows_only_what_shape_and_memory_do_not_imply():
    boxed = ir.TileView(blayout=ir.TileLayout.col_major, slayout=ir.TileLayout.row_major, fractal=1024)
    acc = ir.TileType([32, 32], FP, None, boxed, ir.MemorySpace.Acc)
    assert str(acc) == "pl.Tile[[32, 32], pl.FP32, pl.Mem.Acc]"
    assert "blayout=pl.TileLayout.col_major" in python_print(acc, explicit_layout=True)
    plain = ir.TileType([32, 32], FP, None, ir.TileView(), ir.MemorySpace.Acc)
    assert "blayout=pl.TileLayout.row_major, slayout=pl.TileLayout.none_box, fractal=512" in str(plain)


def test_distinct_variables_get_distinct_names():
    x, y, z = var("x"), var("x"), var("x_1")
    body = ir.SeqStmts([ir.AssignStmt(y, x + 1), ir.AssignStmt(z, y + x), ir.ReturnStmt([z])])
    text = ir.Function("f", [x], [x.type], body).as_python(concise=True)
    assert [line.strip() for line in text.split("\n")[2:]] == ["x_1 = x + 1", "x_1_1 = x_1 + x", "return x_1_1"]


@pytest.mark.parametrize(
    "hint, name", [("lambda", "lambda_"), ("a-b", "a_b"), ("2d", "_2d"), ("", "_v"), ("pl", "pl_1")]
)
def test_names_are_identifiers(hint, name):
    assert python_print(var(hint)) == name


def test_a_variable_nothing_defines_is_marked():
    x, stray = var("x"), var("x")
    f = ir.Function("f", [x], [x.type], ir.ReturnStmt([x + stray]))
    assert "return x + x_1__FREE_VAR" in python_print(f)
    assert "FREE_VAR" not in python_print(f.body)


def test_prefixes():
    f = ir.Function("f", [a], [], ir.ReturnStmt())
    assert "a: ir.Scalar[ir.INDEX]" in f.as_python("ir")
    program = ir.Program([f], "P")
    assert "import pypto.language as pl\n" in program.as_python()
    assert "from pypto import language\n" in program.as_python("language")
    assert "from pypto import language as k\n" in program.as_python("k")


def test_an_empty_program_and_an_empty_body_are_python():
    ast.parse(python_print(ir.Program([], "Nothing")))
    f = ir.Function("f", [], [], ir.SeqStmts([]))
    assert python_print(f) == "@pl.function\ndef f():\n    pass"
    commented = f.replace(body=ir.IfStmt(ir.ConstBool(True), ir.SeqStmts([]), None))
    ast.parse(python_print(commented))


def test_what_a_call_cannot_say_is_refused():
    call = ir.Call(ir.Op("tile.load"), [a], {}, {"manual_dep_edges": [a]})
    with pytest.raises(InternalError, match="system.task_dummy"):
        python_print(call)


def test_strings_and_attributes_are_quoted():
    call = ir.Call(ir.Op("t.op"), [], {"text": 'say "hi"\n', "other": "it's"}, {"k": [1, ir.MemorySpace.Vec, FP]})
    text = python_print(call)
    found = {k.arg: k.value for k in ast.parse(text, mode="eval").body.keywords}  # pyright: ignore
    assert ast.literal_eval(found["text"]) == 'say "hi"\n' and ast.literal_eval(found["other"]) == "it's"
    assert 'attrs={"k": [1, pl.Mem.Vec, pl.FP32]}' in text


M = pl.dynamic("M")


@pl.program
class Kernels:
    @pl.function(type=pl.FunctionType.InCore)
    def scale(
        self,
        x: pl.Tensor[[M, 64], pl.FP32],
        factor: pl.Scalar[pl.FP32],
        out: pl.Out[pl.Tensor[[M, 64], pl.FP32]],
    ) -> pl.Tensor[[M, 64], pl.FP32]:
        pl.func_attr({"split": pl.SplitMode.UP_DOWN})
        # one block of rows
        for i, (acc,) in pl.range(0, M, 16, init_values=(out,)):
            t: pl.Tile[[16, 64], pl.FP32] = pl.load(x, [i, 0], [16, 64])
            if i == 0:
                u: pl.Tile[[16, 64], pl.FP32] = pl.mul(t, factor)
                r = pl.yield_(u)
            else:
                r = pl.yield_(t)
            stored: pl.Tensor[[M, 64], pl.FP32] = pl.store(r, [i, 0], acc)
            result = pl.yield_(stored)
        return result

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[128, 64], pl.FP32], out: pl.Tensor[[128, 64], pl.FP32]):
        k: pl.Scalar[pl.INT32] = pl.const(0, pl.INT32)
        while k < pl.const(3, pl.INT32):
            k = k + pl.const(1, pl.INT32)
        with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.LEFT_RIGHT)], name_hint="twice"):
            y = pl.add(x, x)
        for _j in pl.parallel(2, 8):
            for _q in pl.unroll(4):
                y = pl.mul(y, 2.0)
        out = self.scale(y, 0.5, out)
        return


def test_programs_read_back():
    text = reads_back(Kernels)
    for part in (
        "# pypto.program: Kernels\nimport pypto.language as pl\n",
        'M = pl.dynamic("M")\n',
        "@pl.program\nclass Kernels:\n",
        "    @pl.function(type=pl.FunctionType.InCore)\n    def scale(self, x: pl.Tensor[[M, 64], pl.FP32], "
        "factor: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor[[M, 64], pl.FP32]]) -> pl.Tensor[[M, 64], pl.FP32]:\n",
        '        pl.func_attr({"split": pl.SplitMode.UP_DOWN})\n',
        "        # one block of rows\n        for i, (acc,) in pl.range(0, M, 16, init_values=(out,)):\n",
        "pl.tile.load(x, [i, 0], [16, 64], [16, 64], target_memory=pl.Mem.Vec)",
        'with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.LEFT_RIGHT)], name_hint="twice"):',
        "for _j in pl.parallel(2, 8):\n            for _q in pl.unroll(4):\n",
        "self.scale(y, 0.5, out)",
    ):
        assert part in text, text


def test_concise_leaves_out_only_local_types():
    text = python_print(Kernels, concise=True)
    assert "def scale(self, x: pl.Tensor[[M, 64], pl.FP32]" in text
    assert "            t = pl.tile.load(" in text


@pl.program
class Tasks:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
        return x

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
        with pl.manual_scope():
            y, first = pl.submit(self.kernel, x, dumps=[x])
            z, _ = pl.spmd_submit(self.kernel, y, core_num=4, sync_start=True, deps=[first], allow_early_resolve=True)
        with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[x]) as made:
            w = pl.add(x, x)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[made]):
            w = pl.add(w, x)
        with pl.cluster():
            w = self.kernel(w)
        with pl.spmd(2):
            w = self.kernel(w)
        return w


def test_task_launches_and_their_order_read_back():
    text = reads_back(Tasks)
    assert "with pl.scope(mode=pl.ScopeMode.MANUAL):" in text
    assert "pl.submit(self.kernel, x, dumps=[x])" in text
    assert "core_num=4, sync_start=True, deps=[first], allow_early_resolve=True)" in text
    assert "no_dep_args=[x]) as made:" in text and "task_invalid" not in text


@pl.program
class Blocks:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[512, 128], pl.FP32], out: pl.Out[pl.Tensor[[512, 128], pl.FP32]]
    ) -> pl.Tensor[[512, 128], pl.FP32]:
        for i in pl.spmd(4, name_hint="rows"):
            t: pl.Tile[[128, 128], pl.FP32] = pl.load(a, [i * 128, 0], [128, 128])
            out = pl.store(t, [i * 128, 0], out)
        for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            u: pl.Tile[[128, 128], pl.FP32] = pl.load(a, [lane * 128, 0], [128, 128])
            out = pl.store(u, [lane * 128, 0], out)
        for k in pl.pipeline(4, stage=2):
            pl.tensor.write(out, [k, 0], 0.0)
        return out


def test_region_loops_read_back():
    text = reads_back(Blocks)
    assert 'for i in pl.spmd(4, name_hint="rows"):' in text
    assert "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):" in text
    assert "for k in pl.pipeline(4, stage=2):" in text
    assert "get_block_idx" not in text and "get_subblock_idx" not in text


def test_printing_is_linear():
    def program(count):
        x = var()
        stmts = []
        for _ in range(count):
            made = var()
            stmts.append(ir.AssignStmt(made, x + 1))
            x = made
        return ir.Function("f", [], [], ir.SeqStmts(stmts))

    import time

    def seconds(count):
        f = program(count)
        start = time.perf_counter()
        python_print(f)
        return time.perf_counter() - start

    seconds(200)
    assert min(seconds(8000) for _ in range(3)) < 12 * min(seconds(2000) for _ in range(3))
