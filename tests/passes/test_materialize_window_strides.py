"""MaterializeWindowStrides: a kernel states how far apart the rows of the windows are that it is given."""

from __future__ import annotations

import numpy as np
import pytest
import text_programs
from text_programs import ORCHESTRATION, method

import pypto.language as pl
from pypto import ir, passes
from pypto.pto.errors import PtoError

from .checking import run, unchanged

KERNELS = """
    @pl.function(type=pl.FunctionType.InCore)
    def inc(self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
            ) -> pl.Tensor[[16, 16], pl.FP32]:
        written = pl.store(pl.add(pl.load(x, [0, 0], [16, 16]), 1.0), [0, 0], out)
        return written

    @pl.function(type=pl.FunctionType.InCore)
    def head(self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
             ) -> pl.Tensor[[16, 16], pl.FP32]:
        written = pl.store(pl.add(pl.load(x, [0, 0], [16, 8]), 1.0), [0, 0], out)
        return written
"""
X = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)


def program(body, params="x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]", more=""):
    host = method("main", params, body, decorator=ORCHESTRATION)
    return text_programs.program(KERNELS, more, host, head='M = pl.dynamic("M")\nN = pl.dynamic("N")\n')


def lowered(source):
    """``source`` after the pass, printed and parsed back, and run again."""
    made = run(source, passes.convert_to_ssa, passes.normalize_stmt_structure, passes.flatten_call_expr)
    made = run(made, passes.materialize_window_strides)
    unchanged(made, passes.materialize_window_strides)
    return made


def strides(made, name):
    """What each tensor parameter of a function states, None for nothing."""
    found = [p.type for p in made.get_function(name).params if isinstance(p.type, ir.TensorType)]
    return [None if t.tensor_view is None else [ir.python_print(s) for s in t.tensor_view.stride] for t in found]


COLUMNS = """
for c in pl.range(0, 64, 16):
    a = pl.slice(x, [16, 16], [32, c])
    b = pl.slice(out, [16, 16], [0, c])
    b = self.inc(a, b)
    out = pl.assemble(out, b, [0, c])
return out
"""


def test_a_window_of_columns_gives_its_strides_to_the_kernel():
    made = lowered(program(COLUMNS))
    assert strides(made, "inc") == [["64", "1"], ["64", "1"]]
    assert [f.name for f in made.functions.values()] == ["head", "inc", "main"]
    calls = [n for n in ir.visitor.walk(made.get_function("inc")) if isinstance(n, ir.Call)]
    store = next(c for c in calls if c.op.name == "tile.store")
    assert [s.value for s in store.type.tensor_view.stride] == [64, 1]
    out = np.zeros_like(X)
    compiled = pl.compile(program(COLUMNS))
    compiled(X, out)
    assert (out[:16] == X[32:48] + 1).all() and not out[16:].any()
    assert "strides = [%c64_index, %c1_index]" in compiled.pto["inc"]


def test_windows_of_whole_rows_leave_the_kernel_as_it_is():
    source = program(
        "t = pl.slice(x, [16, 16], [16, 0])\nu = self.inc(t, pl.slice(out, [16, 16], [48, 0]))\nreturn out",
        "x: pl.Tensor[[64, 16], pl.FP32], out: pl.Out[pl.Tensor[[64, 16], pl.FP32]]",
    )
    assert strides(lowered(source), "inc") == [None, None]
    x, out = X[:, :16].copy(), np.zeros((64, 16), np.float32)
    pl.compile(source)(x, out)
    assert (out[48:] == x[16:32] + 1).all() and not out[:48].any()


def test_one_row_has_no_rows_to_be_apart():
    more = """
    @pl.function(type=pl.FunctionType.InCore)
    def row(self, x: pl.Tensor[[1, 16], pl.FP32], out: pl.Out[pl.Tensor[[1, 16], pl.FP32]]
            ) -> pl.Tensor[[1, 16], pl.FP32]:
        written = pl.store(pl.add(pl.load(x, [0, 0], [1, 16]), 1.0), [0, 0], out)
        return written
"""
    source = program(
        "u = self.row(pl.slice(x, [1, 16], [3, 16]), pl.slice(out, [1, 16], [5, 32]))\nreturn out", more=more
    )
    assert strides(lowered(source), "row") == [None, None]
    out = np.zeros_like(X)
    pl.compile(source)(X, out)
    assert (out[5, 32:48] == X[3, 16:32] + 1).all() and np.count_nonzero(out) == 16


TWO_KINDS = """
t = pl.create_tensor([16, 16], dtype=pl.FP32)
t = self.inc(pl.slice(x, [16, 16], [0, 16]), t)
u = pl.create_tensor([16, 16], dtype=pl.FP32)
u = self.inc(t, u)
out = self.inc(u, out)
return out
"""


def test_a_kernel_on_two_kinds_of_arguments_becomes_two():
    params = "x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]"
    made = lowered(program(TWO_KINDS, params))
    assert strides(made, "inc") == [None, None]
    assert strides(made, "inc__strided") == [["64", "1"], None]
    compiled = pl.compile(program(TWO_KINDS, params))
    out = np.zeros((16, 16), np.float32)
    compiled(X, out)
    assert (out == X[:16, 16:32] + 3).all()
    assert sorted(compiled.pto) == ["head", "inc", "inc__strided"]


def test_a_kernel_with_strides_runs_by_itself():
    compiled = pl.compile(program(COLUMNS))
    x, out = X[:16, :16].copy(), np.zeros((16, 16), np.float32)
    compiled.kernel("inc")(x, out)
    assert (out == x + 1).all()


def test_windows_of_windows():
    source = program(
        "half = pl.slice(x, [64, 32], [0, 32])\npart = pl.slice(half, [16, 16], [8, 4])\nout = self.inc(part, out)\n"
        "return out",
        "x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]",
    )
    assert strides(lowered(source), "inc") == [["64", "1"], None]
    out = np.zeros((16, 16), np.float32)
    pl.compile(source)(X, out)
    assert (out == X[8:24, 36:52] + 1).all()


@pytest.mark.parametrize("window", ["[1, 16, 16], [2, 16, 8], drop_dims=[0]", "[16, 1, 16], [0, 5, 8], drop_dims=[1]"])
def test_inner_dimensions(window):
    source = program(
        f"part = pl.slice(x, {window})\nout = self.inc(part, out)\nreturn out",
        "x: pl.Tensor[[16, 64, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]",
    )
    x = np.random.default_rng(0).random((16, 64, 32), np.float32)
    out = np.zeros((16, 16), np.float32)
    pl.compile(source)(x, out)
    expected = x[2, 16:32, 8:24] if window.startswith("[1,") else x[:, 5, 8:24]
    assert (out == expected + 1).all()
    wanted = ["32", "1"] if window.startswith("[1,") else ["2048", "1"]
    assert strides(lowered(source), "inc") == [wanted, None]


def test_strides_that_only_a_run_knows_are_passed():
    source = program(
        "for c in pl.range(0, N, 16):\n"
        "    b = pl.slice(out, [16, 16], [0, c])\n"
        "    b = self.inc(pl.slice(x, [16, 16], [4, c]), b)\n"
        "    out = pl.assemble(out, b, [0, c])\n"
        "return out",
        "x: pl.Tensor[[M, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]",
    )
    made = lowered(source)
    kernel = made.get_function("inc")
    assert [p.name_hint for p in kernel.params[:2]] == ["x_stride0", "out_stride0"]
    assert all(isinstance(p.type, ir.ScalarType) for p in kernel.params[:2])
    assert strides(made, "inc") == [["x_stride0", "1"], ["out_stride0", "1"]]
    compiled = pl.compile(source)
    for columns in (32, 80):
        x, out = X.reshape(-1)[: 20 * columns].reshape(20, columns).copy(), np.zeros((20, columns), np.float32)
        compiled(x, out)
        assert (out[:16] == x[4:] + 1).all() and not out[16:].any()


MIXED = """
    @pl.function(type=pl.FunctionType.InCore)
    def mixed(self, a: pl.Tensor[[16, 16], pl.FP16], b: pl.Tensor[[16, 16], pl.FP16],
              out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
        y = pl.add(pl.matmul(a, b, out_dtype=pl.FP32), 1.0)
        out = pl.assemble(out, y, [0, 0])
        return out
"""


@pytest.mark.parametrize("target", ["Ascend910B", "Ascend950"])
def test_a_group_on_two_kinds_of_arguments_becomes_two_with_parts_of_their_own(target):
    source = program(
        "t = pl.create_tensor([16, 16], dtype=pl.FP32)\n"
        "t = self.mixed(pl.slice(a, [16, 16], [0, 16]), b, t)\n"
        "out = pl.assemble(out, t, [0, 16])\n"
        "first = self.mixed(b, b, first)\n"
        "return first, out",
        "a: pl.Tensor[[16, 32], pl.FP16], b: pl.Tensor[[16, 16], pl.FP16], first: pl.Out[pl.Tensor[[16, 16], pl.FP32]],"
        " out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]",
        MIXED,
    )
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, s).astype(np.float16) for s in ((16, 32), (16, 16)))
    first, out = np.zeros((16, 16), np.float32), np.zeros((16, 32), np.float32)
    compiled = pl.compile(source, target=target)
    compiled(a, b, first, out)
    wide = b.astype(np.float32)
    assert (out[:, 16:] == a[:, 16:].astype(np.float32) @ wide + 1).all() and not out[:, :16].any()
    assert (first == wide @ wide + 1).all()
    assert {"mixed", "mixed__strided"} <= set(compiled.pto)
    assert "@mixed_aiv__strided" in compiled.pto["mixed__strided"]


def test_a_wrong_stride_shows():
    """The simulator gives a kernel the window's memory: one that takes rows to follow each other reads others."""
    source = program(COLUMNS.replace("pl.range(0, 64, 16)", "pl.range(0, 16, 16)"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pypto.passes.pipeline.PIPELINE", tuple(p for p in passes.PIPELINE if "window_strides" not in p))
        compiled = pl.compile(source)
    out = np.zeros_like(X)
    compiled(X, out)
    assert not (out[:16, :16] == X[32:48, :16] + 1).all()


def test_columns_one_behind_the_other():
    more = """
    @pl.function(type=pl.FunctionType.InCore)
    def column(self, x: pl.Tensor[[2, 16, 1], pl.FP32], out: pl.Out[pl.Tensor[[16, 1], pl.FP32]]
               ) -> pl.Tensor[[16, 1], pl.FP32]:
        t = pl.reshape(pl.load(x, [1, 0, 0], [1, 16, 1]), [16, 1])
        written = pl.store(pl.add(t, 1.0), [0, 0], out)
        return written
"""
    source = program(
        "out = self.column(pl.slice(x, [2, 16, 1], [1, 32, 0]), out)\nreturn out",
        "x: pl.Tensor[[4, 64, 1], pl.FP32], out: pl.Out[pl.Tensor[[16, 1], pl.FP32]]",
        more,
    )
    assert strides(lowered(source), "column") == [["64", "1", "16"], None]
    x, out = X.reshape(-1)[:256].reshape(4, 64, 1).copy(), np.zeros((16, 1), np.float32)
    pl.compile(source)(x, out)
    assert (out == x[2, 32:48] + 1).all()


def test_a_column_of_a_wider_tensor_is_refused_where_it_is_loaded():
    more = """
    @pl.function(type=pl.FunctionType.InCore)
    def column(self, x: pl.Tensor[[16, 1], pl.FP32], out: pl.Out[pl.Tensor[[16, 1], pl.FP32]]
               ) -> pl.Tensor[[16, 1], pl.FP32]:
        written = pl.store(pl.add(pl.load(x, [0, 0], [16, 1]), 1.0), [0, 0], out)
        return written
"""
    source = program(
        "out = self.column(pl.slice(x, [16, 1], [0, 5]), out)\nreturn out",
        "x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 1], pl.FP32]]",
        more,
    )
    with pytest.raises(ValueError, match="that tile takes dn") as error:
        pl.compile(source)
    assert "pl.load(x, [0, 0], [16, 1])" in str(error.value)


# Windows that are cut at their tensor's edge


OVER = """
for c in pl.range(0, 32, 16):
    b = pl.slice(out, [16, 16], [0, c])
    b = self.{kernel}(pl.slice(x, [16, 16], [0, c]), b)
    out = pl.assemble(out, b, [0, c])
return out
"""
OVER_PARAMS = "x: pl.Tensor[[16, N], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]"


def test_a_window_may_end_outside_where_nobody_looks():
    compiled = pl.compile(program(OVER.format(kernel="head"), OVER_PARAMS))
    x, out = X[:16, :24].copy(), np.zeros((16, 32), np.float32)
    compiled(x, out)
    assert (out[:, 16:24] == x[:, 16:] + 1).all() and not out[:, 24:].any()


def test_reading_the_part_outside_is_an_error():
    compiled = pl.compile(program(OVER.format(kernel="inc"), OVER_PARAMS))
    with pytest.raises(PtoError, match="of axis 1, but the tensor it is a slice of ends after 8"):
        compiled(X[:16, :24].copy(), np.zeros((16, 32), np.float32))


def test_a_window_that_begins_outside_is_an_error():
    compiled = pl.compile(program(OVER.format(kernel="head"), OVER_PARAMS))
    with pytest.raises(ValueError, match=r"a slice of \[16, 16\] at \[0, 16\] is outside a tensor of \[16, 8\]"):
        compiled(X[:16, :8].copy(), np.zeros((16, 32), np.float32))


# What no kernel can state


def test_another_shape_of_a_window_is_refused():
    source = program(
        "flat = pl.reshape(pl.slice(x, [8, 32], [0, 0]), [16, 16])\nout = self.inc(flat, out)\nreturn out",
        "x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]",
    )
    with pytest.raises(ValueError, match="no strides describe the result") as error:
        pl.compile(source)
    assert "take the window of that" in str(error.value)


def test_ones_may_come_and_go():
    source = program(
        "part = pl.reshape(pl.slice(x, [1, 16, 16], [1, 2, 8]), [16, 16])\nout = self.inc(part, out)\nreturn out",
        "x: pl.Tensor[[4, 64, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]",
    )
    x, out = np.stack([X + k for k in range(4)]), np.zeros((16, 16), np.float32)
    pl.compile(source)(x, out)
    assert (out == x[1, 2:18, 8:24] + 1).all()


def test_one_of_two_windows_with_different_strides_is_refused():
    source = program(
        "part = pl.slice(x, [16, 16], [0, 16])\n"
        "if n > 0:\n    part = pl.slice(y, [16, 16], [0, 16])\n"
        "out = self.inc(part, out)\nreturn out",
        "x: pl.Tensor[[64, 64], pl.FP32], y: pl.Tensor[[64, 32], pl.FP32], n: pl.Scalar[pl.INDEX], "
        "out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]",
    )
    with pytest.raises(ValueError, match="'part' may be windows whose rows are") as error:
        pl.compile(source)
    assert "launch the kernels in each branch" in str(error.value)


STATED = """
    @pl.function(type=pl.FunctionType.InCore)
    def stated(self, x: pl.Tensor[[16, 16], pl.FP32, pl.TensorView(stride=[{stride}, 1], layout=pl.TensorLayout.ND)],
               out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
        written = pl.store(pl.add(pl.load(x, [0, 0], [16, 16]), 1.0), [0, 0], out)
        return written
"""


def stating(stride):
    return program(
        "out = self.stated(pl.slice(x, [16, 16], [0, 16]), out)\nreturn out",
        "x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]",
        STATED.format(stride=stride),
    )


def test_strides_the_author_states_are_checked():
    out = np.zeros((16, 16), np.float32)
    pl.compile(stating(64))(X, out)
    assert (out == X[:16, 16:32] + 1).all()
    with pytest.raises(ValueError, match="'x' of 'stated' states strides that its argument does not have"):
        pl.compile(stating(48))


def test_a_program_without_windows_is_left_alone():
    source = program("out = self.inc(x, out)\nreturn out", PLAIN)
    prepared = run(source, passes.convert_to_ssa, passes.normalize_stmt_structure)
    unchanged(prepared, passes.materialize_window_strides)


PLAIN = "x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]"


def test_windows_of_fp4_elements():
    more = """
    @pl.function(type=pl.FunctionType.InCore)
    def widen(self, x: pl.Tensor[[16, 64], pl.FP4], out: pl.Out[pl.Tensor[[16, 64], pl.BF16]]
              ) -> pl.Tensor[[16, 64], pl.BF16]:
        written = pl.store(pl.cast(pl.load(x, [0, 0], [16, 64]), pl.BF16), [0, 0], out)
        return written
"""
    source = program(
        "out = self.widen(pl.slice(x, [16, 64], [0, 64]), out)\nreturn out",
        "x: pl.Tensor[[16, 256], pl.FP4], out: pl.Out[pl.Tensor[[16, 64], pl.BF16]]",
        more,
    )
    values = np.random.default_rng(2).choice([-6, -1.5, 0, 0.5, 1, 3], (16, 256))
    out = np.zeros((16, 64), pl.BF16.numpy)
    pl.compile(source, target="Ascend950")(values.astype(pl.FP4.numpy), out)
    assert (out.astype(np.float64) == values[:, 64:128]).all()
