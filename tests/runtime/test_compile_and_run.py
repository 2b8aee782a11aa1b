"""`pl.compile` and calling what it returns."""

import numpy as np
import pytest

import pypto.language as pl
from pypto.dtypes import DataType
from pypto.ir import Program, ScalarType, Var
from pypto.runtime.arrays import _extent

ROWS, COLS = 24, 40


@pl.function(type=pl.FunctionType.InCore)
def add(
    a: pl.Tensor[[ROWS, COLS], pl.FP32],
    b: pl.Tensor[[ROWS, COLS], pl.FP32],
    c: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
    c = pl.store(pl.add(pl.load(a, [0, 0], [ROWS, COLS]), pl.load(b, [0, 0], [ROWS, COLS])), [0, 0], c)
    return c


@pytest.fixture
def arrays():
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal((ROWS, COLS), dtype=np.float32) for _ in range(2))
    return a, b, np.zeros((ROWS, COLS), np.float32)


def test_out_arrays_are_filled_in_place_and_returned(arrays):
    a, b, c = arrays
    result = pl.compile(add)(a, b, c)
    assert result is c
    np.testing.assert_array_equal(c, a + b)


def test_it_knows_its_interface_and_what_a_run_did(arrays):
    compiled = pl.compile(add)
    assert compiled.param_names == ["a", "b", "c"]
    assert compiled.output_indices == [2]
    assert compiled.has_return
    assert compiled.platform == "a2a3sim"
    assert list(compiled.pto) == ["add"] and compiled.cpp == {}
    compiled(*arrays)
    ((name, report),) = compiled.reports
    assert name == "add" and report.instructions == {"tload": 2, "tadd": 1, "tstore": 1}


def test_arrays_that_are_not_contiguous_are_read_and_filled(arrays):
    a, b, _ = arrays
    wide = np.zeros((ROWS, 2 * COLS), np.float32)
    wide[:, ::2] = a
    out = np.zeros((COLS, ROWS), np.float32).T
    pl.compile(add)(wide[:, ::2], b, out)
    np.testing.assert_array_equal(out, a + b)


def test_files_are_written_where_asked(arrays, tmp_path):
    compiled = pl.compile(add, output_dir=tmp_path / "here")
    assert compiled.output_dir == tmp_path / "here"
    dumps = sorted(p.name for p in (tmp_path / "here" / "passes_dump").iterdir())
    assert [int(name[:2]) for name in dumps] == list(range(len(dumps)))
    order = [name[9:-3] for name in dumps]
    assert order.index("ConvertToSSA") < order.index("InitMemRef") < order.index("AllocateMemoryAddr")
    assert (tmp_path / "here" / "ptoas" / "add.pto").read_text() == compiled.pto["add"]
    report = (tmp_path / "here" / "report" / "compile.txt").read_text()
    assert "Vec" in report and "AllocateMemoryAddr" in report


def test_hints_are_kept_with_the_program_and_not_printed(tmp_path, capfd):
    compiled = pl.compile(add, output_dir=tmp_path / "out", skip_ptoas=True)
    assert any("PH001" in hint and "innermost dim = 160B" in hint for hint in compiled.hints)
    assert (tmp_path / "out" / "report" / "perf_hints.log").read_text().splitlines() == compiled.hints
    assert "perf_hint" not in "".join(capfd.readouterr())


def test_every_dump_reads_back(tmp_path):
    compiled = pl.compile(add, output_dir=tmp_path / "out")
    for path in sorted((compiled.output_dir / "passes_dump").iterdir()):
        assert isinstance(pl.loads(str(path)), Program), path


def test_the_default_folder_is_made_on_first_use(monkeypatch, tmp_path):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    compiled = pl.compile(add)
    assert not (tmp_path / "build").exists()
    assert compiled.output_dir.parent == tmp_path / "build" and compiled.output_dir.is_dir()
    assert pl.compile(add).output_dir != compiled.output_dir


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda a, b, c: (a,), TypeError, r"add takes 3 arguments \(a, b, c\) or 2 without c, got 1"),
        (lambda a, b, c: (a, b[:-1], c), ValueError, r"argument 'b' must have shape \[24, 40\], got \[23, 40\]"),
        (lambda a, b, c: (a[0], b, c), ValueError, r"argument 'a' must have shape \[24, 40\], got \[40\]"),
        (lambda a, b, c: (a, b, c.astype(np.float64)), TypeError, "'c' must be an array of float32, got float64"),
        (lambda a, b, c: (a, 3, c), TypeError, "argument 'b': expected an array, got int"),
        (lambda a, b, c: (a, b, c.tolist()), TypeError, "argument 'c': expected an array, got list"),
    ],
)
def test_arguments_that_do_not_fit_are_named_at_their_parameter(arrays, change, error, message):
    with pytest.raises(error, match=message) as caught:
        pl.compile(add)(*change(*arrays))
    assert f"{__file__}:" in str(caught.value)


def test_scalars_are_checked_too():
    @pl.function(type=pl.FunctionType.InCore)
    def shift(x: pl.Tensor[[8, 8], pl.FP32], by: pl.Scalar[pl.FP32], n: pl.Scalar[pl.INT32],
              y: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):  # fmt: skip
        t = pl.load(x, [0, 0], [8, 8])
        for _ in pl.range(0, n):
            t = pl.add(t, by)
        pl.store(t, [0, 0], y)

    compiled = pl.compile(shift)
    x, y = np.zeros((8, 8), np.float32), np.empty((8, 8), np.float32)
    assert compiled(x, np.float32(1.5), np.int64(2), y) is None
    assert (y == 3).all()
    with pytest.raises(TypeError, match="argument 'n' must be an integer, got float"):
        compiled(x, 1.5, 2.0, y)
    with pytest.raises(TypeError, match="argument 'by' must be a number, got str"):
        compiled(x, "1", 2, y)
    with pytest.raises(ValueError, match="argument 'n' must fit int32"):
        compiled(x, 1.0, 2**31, y)


def test_one_symbol_is_one_size():
    n = pl.dynamic("N")

    @pl.function(type=pl.FunctionType.InCore)
    def copy(x: pl.Tensor[[n, 16], pl.FP32], y: pl.Out[pl.Tensor[[n, 16], pl.FP32]]):
        for r in pl.range(0, n, 8):
            pl.store(pl.load(x, [r, 0], [8, 16], valid_shape=[pl.min(8, n - r), 16]), [r, 0], y)

    compiled = pl.compile(copy)
    for rows in (1, 8, 19):
        x = np.random.default_rng(rows).standard_normal((rows, 16), dtype=np.float32)
        y = np.zeros_like(x)
        compiled(x, y)
        np.testing.assert_array_equal(x, y)
    with pytest.raises(ValueError, match=r"argument 'y' must have shape \[8, 16\], got \[9, 16\]"):
        compiled(np.zeros((8, 16), np.float32), np.zeros((9, 16), np.float32))


@pl.program
class TwoKernels:
    @pl.function(type=pl.FunctionType.InCore)
    def double(
        self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        t = pl.load(x, [0, 0], [16, 16])
        y = pl.store(pl.add(t, t), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[16, 16], pl.FP32], times: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        scratch = pl.create_tensor([16, 16], dtype=pl.FP32)
        scratch = self.double(x, scratch)
        for _ in pl.range(0, times):
            scratch = self.double(scratch, scratch)
        y = self.double(scratch, y)
        return y


def test_a_program_runs_its_kernels_from_its_host_function():
    compiled = pl.compile(TwoKernels)
    x = np.random.default_rng(3).standard_normal((16, 16), dtype=np.float32)
    y = np.zeros_like(x)
    assert compiled(x, 2, y) is y
    np.testing.assert_array_equal(y, 16 * x)
    assert [name for name, _ in compiled.reports] == ["double"] * 4
    compiled.kernel("double")(x, y)
    np.testing.assert_array_equal(y, 2 * x)
    with pytest.raises(KeyError, match="no function 'triple'"):
        compiled.kernel("triple")


def test_tensors_made_by_the_program_are_returned():
    @pl.function
    def square(x: pl.Tensor[[8, 32], pl.FP32]) -> pl.Tensor[[8, 32], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.mul(x, x)
        return y

    x = np.random.default_rng(4).standard_normal((8, 32), dtype=np.float32)
    np.testing.assert_array_equal(pl.compile(square)(x), x * x)


def test_torch_tensors_go_in_and_come_out():
    import torch

    a, b = torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)
    c = torch.zeros(ROWS, COLS)
    assert pl.compile(add)(a, b, c) is c
    assert torch.equal(c, a + b)


def test_bfloat16_arrays_of_ml_dtypes():
    import ml_dtypes

    @pl.function(type=pl.FunctionType.InCore)
    def widen(x: pl.Tensor[[16, 16], pl.BF16], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        pl.store(pl.cast(pl.load(x, [0, 0], [16, 16]), pl.FP32), [0, 0], y)

    x = np.random.default_rng(5).standard_normal((16, 16)).astype(ml_dtypes.bfloat16)
    y = np.zeros((16, 16), np.float32)
    pl.compile(widen)(x, y)
    np.testing.assert_array_equal(y, x.astype(np.float32))


def test_only_kernels_compile_and_only_for_known_targets():
    with pytest.raises(TypeError, match="compile takes a function under @pl.function"):
        pl.compile(lambda x: x)
    with pytest.raises(ValueError, match="Ascend310"):
        pl.compile(add, target="Ascend310")


def test_the_950_is_a_target_too(arrays):
    a, b, c = arrays
    compiled = pl.compile(add, target="Ascend950")
    assert 'pto.target_arch = "a5"' in compiled.pto["add"]
    compiled(a, b, c)
    np.testing.assert_array_equal(c, a + b)


COUNT = pl.dynamic("COUNT")


@pl.jit
def rows_of_blocks(x: pl.Tensor[[COUNT, 4, 64], pl.FP32], y: pl.Out[pl.Tensor[[COUNT, 64], pl.FP32]]):
    n = pl.tensor.dim(x, 0)
    flat = pl.reshape(x, [n * 4, 64])
    for i in pl.spmd(n):
        y = pl.assemble(y, pl.col_sum(flat[i * 4 : i * 4 + 4, 0:64]), [i, 0])
    return y


@pytest.mark.parametrize("count", [1, 3])
def test_an_extent_the_host_computes_gives_its_symbol_in_the_kernel(count):
    x = np.random.default_rng(count).standard_normal((count, 4, 64)).astype(np.float32)
    y = np.zeros((count, 64), np.float32)
    rows_of_blocks(x, y)
    np.testing.assert_allclose(y, x.sum(1), rtol=1e-5, atol=1e-5)


def test_symbols_of_extents_are_solved_where_one_value_fits():
    n, m = (Var(name, ScalarType(DataType.INDEX)) for name in "nm")
    for dim, actual, wanted in ((n * 4, 12, 3), (4 * n + 2, 14, 3), (n - 5, 3, 8), (20 - n, 3, 17), (n * 4, 13, None)):
        dims: dict = {}
        assert _extent(dim, actual, dims) == (actual if wanted is not None else None)
        assert dims.get(n) == wanted
    dims = {m: 2}
    assert _extent(n * m, 6, dims) == 6 and dims[n] == 3
    assert _extent(n * m, 8, dims) == 6
