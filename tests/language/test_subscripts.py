"""Reading and writing parts of tensors and tiles."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir
from pypto.errors import ParserTypeError, UnsupportedFeatureError
from pypto.ir.stmt import flatten_to_stmts

HEADER = (
    "@pl.function\ndef f(x: pl.Tensor[[64, 128], pl.FP32], y: pl.Tensor[[16, 32], pl.FP32], i: pl.Scalar[pl.INDEX]):\n"
)


def parsed(body: str) -> list[ir.Stmt]:
    return flatten_to_stmts(pl.parse(HEADER + "".join(f"    {line}\n" for line in body.split("\n"))).body)


def numbers(expr: ir.Expr) -> list[int]:
    return [e.value for e in expr.elements]


def test_element():
    call = parsed("return x[i, 3]")[0].value[0]
    assert call.op.name == "tensor.read"
    assert call.args[1].elements[1].value == 3


@pytest.mark.parametrize(
    ("text", "shape", "offsets"),
    [
        ("x[0:16, :]", [16, 128], [0, 0]),
        ("x[16:, 32:64]", [48, 32], [16, 32]),
        ("x[:8]", [8, 128], [0, 0]),
        ("x[:, :]", [64, 128], [0, 0]),
    ],
)
def test_windows(text: str, shape: list[int], offsets: list[int]):
    call = parsed(f"return {text}")[0].value[0]
    assert call.op.name == "tensor.slice"
    assert (numbers(call.args[1]), numbers(call.args[2])) == (shape, offsets)
    assert [d.value for d in call.type.shape] == shape


def test_extent_of_a_moving_window_is_constant():
    call = parsed("return x[i * 16 : (i + 1) * 16, i + 1 : i + 33]")[0].value[0]
    assert numbers(call.args[1]) == [16, 32]


def test_indices_drop_dimensions():
    call = parsed("return x[i]")[0].value[0]
    assert [d.value for d in call.type.shape] == [128]
    call = parsed("return x[2:10, i]")[0].value[0]
    assert [d.value for d in call.type.shape] == [8]


def test_tile_windows_keep_a_static_shape():
    code = "t = pl.load(x, [0, 0], [64, 128])\nu = t[:, :i]\nv = t[0:16, 100:300]\nreturn u, v"
    _, u, v, _ = parsed(code)
    assert numbers(u.value.args[1]) == [64, 128]
    assert isinstance(u.value.args[3].elements[1], ir.Min)
    assert numbers(v.value.args[1]) == [16, 28]
    with pytest.raises(UnsupportedFeatureError, match="Dynamic lower bounds"):
        parsed("t = pl.load(x, [0, 0], [64, 128])\nu = t[i:, :]")
    with pytest.raises(UnsupportedFeatureError, match="positive static extent"):
        parsed("t = pl.load(x, [0, 0], [64, 128])\nu = t[:, 9:5]")
    with pytest.warns(UserWarning, match="auto-promoting to 2D"):
        parsed("t = pl.load(x, [0, 0], [64, 128])\nu = t[i]")


def test_writes_rebind_the_name():
    stmts = parsed("x[i : i + 16, 0:32] = y\nx[0:16, 32:64] = y\nreturn x")
    first, second, last = stmts
    assert first.value.op.name == "tensor.assemble"
    assert numbers(second.value.args[2]) == [0, 32]
    assert second.value.args[0] is first.var
    assert last.value[0] is second.var


def test_tiles_are_stored():
    stmts = parsed("t = pl.load(y, [0, 0], [16, 32])\nx[0:16, 0:32] = t\nreturn x")
    assert stmts[1].value.op.name == "tile.store"
    assert stmts[1].value.args[0] is stmts[0].var


def test_write_with_an_index_lifts_the_value():
    stmts = parsed("x[i, 0:32] = y[0]\nreturn x")
    assert stmts[0].value.args[1].op.name == "tensor.reshape"
    assert [d.value for d in stmts[0].value.args[1].type.shape] == [1, 32]


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("z = x[0, 0, 0]", ParserTypeError, "3 indices but the tensor is 2D"),
        ("z = x[64, 0]", ParserTypeError, "index 64 is out of range: the dimension has extent 64"),
        ("z = x[60:70, :]", ParserTypeError, "runs past the dimension's extent 64"),
        ("z = x[5:5, :]", ParserTypeError, "is empty"),
        ("z = x[-1, 0]", ParserTypeError, "an index must be non-negative, got -1"),
        ("z = i[0]", ParserTypeError, "Subscript requires Tuple, Tensor, Tile, or Array"),
        ("z = x[0:8:2, :]", UnsupportedFeatureError, "cannot have a step"),
        ("z = x[None]", UnsupportedFeatureError, "None is not an index"),
        ("z = x[..., 0]", UnsupportedFeatureError, r"`\.\.\.` has no value"),
        ("z = x[1.5, 0]", ParserTypeError, "an index must be an integer"),
        ("x[0:8, 0:32] = y", ParserTypeError, "shape mismatch on source axis 0: the window has extent 8, the value 16"),
        ("x[0:16, 0:32] = y[0]", ParserTypeError, "must be 2D to match the window"),
        ("x[0, 0] = 1.0", UnsupportedFeatureError, "Element-write"),
        ("x[0:4, 0:4] = 1.0", ParserTypeError, "scalar cannot be assigned to a window"),
        ("x[0][0:4] = y", UnsupportedFeatureError, "only a named tensor"),
    ],
)
def test_mistakes(body: str, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        parsed(body)


def test_strict_ssa_has_no_writes():
    with pytest.raises(UnsupportedFeatureError, match="only before SSA conversion"):

        @pl.function(strict_ssa=True)
        def f(x: pl.Tensor[[64], pl.FP32], y: pl.Tensor[[8], pl.FP32]):
            x[0:8] = y
            return x
