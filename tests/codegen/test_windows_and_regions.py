"""Where a store goes, which handle a valid region is set on, and moves that go nowhere."""

import numpy as np
import pytest
from texts import lines, text_of

import pypto.language as pl
from pypto import passes
from pypto.errors import KernelValueError
from pypto.pto.errors import PtoError

R = np.random.default_rng(5)
X = R.standard_normal((32, 32)).astype(np.float32)


def narrowing(*body):
    """A kernel of ``body`` with a tile ``t`` of ``x``, a row count ``n`` and a result ``y``."""
    text = "\n        ".join(("t = pl.load(x, [0, 0], [32, 32])", *body, "return y"))
    return pl.parse(f"""
import pypto.language as pl

@pl.program
class Narrow:
    @pl.function(type=pl.FunctionType.InCore)
    def narrow(self, x: pl.Tensor[[32, 32], pl.FP32], n: pl.Scalar[pl.INDEX],
               y: pl.InOut[pl.Tensor[[32, 32], pl.FP32]]) -> pl.Tensor[[32, 32], pl.FP32]:
        {text}
""")


NARROWINGS = {
    "alone": (["y = pl.store(pl.tile.set_validshape(t, n, 16), [0, 0], y)"], True),
    "stored whole afterwards": (
        ["y = pl.store(pl.tile.set_validshape(t, n, 16), [0, 0], y)", "y = pl.store(pl.exp(t), [0, 0], y)"],
        False,
    ),
    "in a branch": (
        ["if n > 7:", "    y = pl.store(pl.tile.set_validshape(t, n, 16), [0, 0], y)"],
        True,
    ),
    "in a loop": (
        [
            "for i in pl.range(2):",
            "    u = pl.load(x, [0, 0], [32, 32])",
            "    y = pl.store(pl.tile.set_validshape(u, n + i, 16), [0, 0], y)",
        ],
        False,
    ),
}


@pytest.mark.parametrize("body", NARROWINGS)
def test_a_tile_nothing_else_needs_is_narrowed_by_its_own_handle(body):
    written, own = NARROWINGS[body]
    program = narrowing(*written)
    (line,) = lines(text_of(program), "pto.set_validshape")
    assert line.startswith("pto.set_validshape %t,") is own
    y, want = np.zeros_like(X), np.zeros_like(X)
    pl.compile(program)(X, 9, y)
    want[: 10 if "loop" in body else 9, :16] = X[: 10 if "loop" in body else 9, :16]
    assert np.allclose(y, np.exp(X) if "whole" in body else want)


def test_a_narrowed_handle_is_not_that_of_another_tile_at_its_address():
    """The carried tile ``c`` is planned where ``t`` was, and has its type."""
    program = narrowing(
        "y = pl.store(pl.tile.set_validshape(t, n, 16), [0, 0], y)",
        "c = pl.load(x, [0, 0], [32, 32])",
        "for i, (c,) in pl.range(2, init_values=(c,)):",
        "    c = pl.yield_(pl.add(c, c))",
        "y = pl.store(c, [0, 0], y)",
    )
    y = np.zeros_like(X)
    pl.compile(program)(X, 3, y)
    assert np.array_equal(y, X * 4)


@pl.function(type=pl.FunctionType.InCore)
def placed(
    src: pl.Tensor[[1, 8], pl.FP32], at: pl.Tensor[[1], pl.INT32], out: pl.InOut[pl.Tensor[[1, 32], pl.FP32]]
) -> pl.Tensor[[1, 32], pl.FP32]:
    first = pl.read(at, [0])
    out = pl.store(pl.load(src, [0, 0], [1, 8]), [0, first], out)
    return out


def test_a_store_never_starts_before_its_tensor():
    compiled = pl.compile(placed)
    (line,) = lines(compiled.pto["placed"], "arith.maxsi")
    assert "%c0_index {window_offset} : index" in line
    ones, out = np.ones((1, 8), np.float32), np.zeros((1, 32), np.float32)
    compiled(ones, np.array([8], np.int32), out)
    assert np.array_equal(np.flatnonzero(out), range(8, 16))
    with pytest.raises(PtoError, match="offset -8, before its tensor; a device stores at offset 0") as caught:
        compiled(ones, np.array([-8], np.int32), out)
    assert "out = pl.store(" in str(caught.value)


def test_positions_are_taken_as_they_are():
    @pl.function(type=pl.FunctionType.InCore)
    def at(
        src: pl.Tensor[[1, 8], pl.FP32], first: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor[[1, 32], pl.FP32]]
    ) -> pl.Tensor[[1, 32], pl.FP32]:
        out = pl.store(pl.load(src, [0, 0], [1, 8]), [0, pl.max(first, 8)], out)
        return out

    compiled = pl.compile(at)
    assert not lines(compiled.pto["at"], "window_offset")
    out = np.zeros((1, 32), np.float32)
    compiled(np.ones((1, 8), np.float32), 3, out)
    assert np.array_equal(np.flatnonzero(out), range(8, 16))


def in_one_slot(later: str = ""):
    return pl.parse(f"""
import pypto.language as pl

@pl.program
class Slot:
    @pl.function(type=pl.FunctionType.InCore)
    def slot(self, x: pl.Tensor[[32, 32], pl.FP32], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
             ) -> pl.Tensor[[32, 32], pl.FP32]:
        a: pl.Tile[[32, 32], pl.FP32, pl.MemRef("one"), pl.Mem.Vec] = pl.tile.load(x, [0, 0], [32, 32])
        b: pl.Tile[[32, 32], pl.FP32, pl.MemRef("one"), pl.Mem.Vec] = pl.tile.move(a, target_memory=pl.Mem.Vec)
        y = pl.store({later or "b"}, [0, 0], y)
        return y
""")


@pytest.mark.parametrize("planner", passes.MemoryPlanner)
def test_a_move_onto_itself(planner):
    addresses = planner is not passes.MemoryPlanner.PTOAS
    context = passes.PassContext([], memory_planner=planner)
    with context, pytest.raises(ValueError, match="requires distinct source and destination addresses") as caught:
        text_of(in_one_slot(), emit_tile_addr=addresses)
    assert "drop the move" in str(caught.value)


def test_a_slot_two_tiles_need_after_a_move():
    with pytest.raises(KernelValueError, match="'a' and 'b' are bound to the same slot of allocation 'one'"):
        text_of(in_one_slot("pl.add(a, b)"))


@pytest.mark.parametrize("dtype", ["INT64", "INDEX", "INT32"])
def test_a_position_of_any_integer_dtype_meets_an_extent(dtype):
    program = pl.parse(f"""
import pypto.language as pl

M = pl.dynamic("M")

@pl.function(type=pl.FunctionType.InCore)
def window(x: pl.Tensor[[M, 32], pl.FP32], p: pl.Scalar[pl.{dtype}], y: pl.InOut[pl.Tensor[[8, 32], pl.FP32]]
           ) -> pl.Tensor[[8, 32], pl.FP32]:
    first = pl.max(pl.min(p, pl.tensor.dim(x, 0) - 8), 0)
    if pl.tensor.dim(x, 0) - p > 16:
        y = pl.store(pl.load(x, [first, 0], [8, 32]), [0, 0], y)
    elif p + 1 >= pl.tensor.dim(x, 0):
        y = pl.store(pl.exp(pl.load(x, [first, 0], [8, 32])), [0, 0], y)
    return y
""")
    compiled = pl.compile(program)
    for position, want in ((5, X[5:13]), (-3, X[:8]), (20, np.zeros_like(X[:8])), (40, np.exp(X[24:]))):
        y = np.zeros((8, 32), np.float32)
        compiled(X, position, y)
        assert np.allclose(y, want)


EMPTY = {
    "loaded and stored": [
        "e = pl.load(x, [0, 0], [16, 32], valid_shape=[0, 32])", "y = pl.store(pl.exp(e), [0, 0], y)",
    ],
    "columns of it": ["e = pl.load(x, [0, 0], [16, 32], valid_shape=[16, 0])", "y = pl.store(pl.exp(e), [0, 0], y)"],
    "a slice of it": [
        "y = pl.store(pl.tile.slice(t, [8, 32], [8, 0], valid_shape=[0, 32]), [0, 0], y)",
    ],
    "added to": [
        "e = pl.load(x, [0, 0], [16, 32], valid_shape=[0, 32])", "y = pl.store(e, [0, 0], y, atomic=pl.AtomicType.Add)",
    ],
}  # fmt: skip


@pytest.mark.parametrize("target", ["910B", "950"])
@pytest.mark.parametrize("case", EMPTY)
def test_nothing_is_loaded_from_or_stored_to_a_window_without_elements(case, target):
    program = narrowing(*EMPTY[case])
    compiled = pl.compile(program, target=f"Ascend{target}", skip_ptoas=True)
    text = compiled.pto["narrow"]
    assert not any("%c0_index" in line.split("sizes = ")[1] for line in lines(text, "pto.partition_view"))
    assert "pto.tstore" not in text
    y = np.ones_like(X)
    compiled(X, 1, y)
    assert np.array_equal(y, np.ones_like(X))
