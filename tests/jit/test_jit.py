"""`pl.jit`: specialization by shapes, dtypes and numbers, the functions called, the cache, and refusals."""

import re

import numpy as np
import pytest
import torch

import pypto.language as pl
from pypto import ir
from pypto.errors import InvalidOperationError, KernelValueError, ParserError, ParserTypeError, UnsupportedFeatureError
from pypto.jit import JITFunction
from pypto.passes import VerificationLevel
from pypto.runtime import DistributedConfig, RunConfig

M = pl.dynamic("M")


@pl.jit.incore
def shifted(x: pl.Tensor, n: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor]):
    t = pl.load(x, [0, 0], [x.shape[0], x.shape[1]])
    out = pl.store(pl.add(t, n), [0, 0], out)
    return out


@pl.jit
def shift(x: pl.Tensor, n: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor]):
    """Adds a number."""
    out = shifted(x, n, out)
    return out


@pl.jit
def double(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.add(x, x)
    return out


@pl.jit
def by_rows(x: pl.Tensor[[M, 64], pl.FP32], out: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
    for i in pl.range(0, M, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [i, 0], [16, 64])
            out = pl.store(pl.mul(t, 3.0), [i, 0], out)
    return out


def arrays(*shape, dtype=np.float32):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape), np.zeros(shape, dtype)


@pytest.mark.parametrize("shape", [(16, 64), (32, 128)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_shapes_and_dtypes_come_from_the_arguments(shape, dtype):
    x, out = arrays(*shape, dtype=dtype)
    double(x, out)
    assert (out == 2 * x).all()


def test_torch_tensors_are_filled_in_place():
    x, out = torch.full((16, 64), 2.0, dtype=torch.bfloat16), torch.zeros((16, 64), dtype=torch.bfloat16)
    double(x, out, config=RunConfig(platform="a5sim"))
    assert (out == 4).all()


def test_a_function_keeps_its_name_and_text():
    assert isinstance(shift, JITFunction) and shift.__name__ == "shift" and shift.__doc__ == "Adds a number."


def test_the_program_is_the_one_written_out():
    x, out = arrays(16, 64)

    @pl.program
    class Expected:
        @pl.function(type=pl.FunctionType.InCore)
        def shifted(
            self, x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
        ) -> pl.Tensor[[16, 64], pl.FP32]:
            t = pl.load(x, [0, 0], [16, 64])
            out = pl.store(pl.add(t, n), [0, 0], out)
            return out

        @pl.function(type=pl.FunctionType.Orchestration)
        def shift(
            self, x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
        ) -> pl.Tensor[[16, 64], pl.FP32]:
            out = self.shifted(x, n, out)
            return out

    @pl.jit
    def same(x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        out = shifted(x, n, out)
        return out

    made = same.specialize(n=pl.RUNTIME)
    renamed = ir.Program([f.replace(name=f.name.replace("same", "shift")) for f in made.functions.values()], "shift")
    ir.assert_structural_equal(renamed, Expected)
    assert double.lower(x, out).get_function("double").func_type is ir.FunctionType.Orchestration


def test_numbers_are_part_of_the_program():
    x, out = arrays(16, 64)
    for n in (2.5, -1.0):
        shift(x, n, out)
        assert (out == x + n).all()
    assert "pl.tile.adds(t, 2.5)" in shift.specialize(x, 2.5, out).as_python()
    first, second = shift.compile(x, 2.5, out), shift.compile(x, -1.0, out)
    assert first is not second and shift.compile(x, 2.5, out) is first


def test_zeros_of_both_signs_are_two_numbers():
    @pl.jit.incore
    def filled(n: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor]):
        out = pl.store(pl.tile.full([1, 8], dtype=pl.FP32, value=n), [0, 0], out)
        return out

    @pl.jit
    def kernel(n: pl.Scalar[pl.FP32], a: pl.Out[pl.Tensor], b: pl.Out[pl.Tensor], c: pl.Out[pl.Tensor]):
        a = filled(0.0, a)
        b = filled(-0.0, b)
        c = filled(n, c)
        return a, b, c

    for n, signs in ((-0.0, [False, True, True]), (0.0, [False, True, False])):
        outs = np.ones((3, 1, 8), np.float32)
        kernel(n, *outs)
        assert not outs.any() and [bool(np.signbit(o).all()) for o in outs] == signs


def test_a_number_each_run_gives():
    @pl.jit
    def kernel(
        x: pl.Tensor[[16, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
        n: pl.Scalar[pl.FP32] = pl.RUNTIME,
    ):
        out = shifted(x, n, out)
        return out

    x, out = arrays(16, 64)
    compiled = kernel.compile()
    for n in (0.5, -7.0):
        compiled(x, out, n)
        assert (out == x + n).all()
    assert kernel.compile(n=pl.RUNTIME) is compiled and kernel.compile(n=3.0) is not compiled
    with pytest.raises(TypeError, match=r"'n' received pl\.RUNTIME"):
        kernel(x, out)


def test_one_program_for_the_same_shapes_dtypes_and_settings():
    x, out = arrays(16, 64)
    first = double.compile(x, out)
    assert double.compile(np.ones_like(x), out) is first and double.compile(out=out, x=x) is first
    assert double.compile(torch.from_numpy(x), torch.from_numpy(out)) is first
    assert double.compile(*arrays(32, 64)) is not first
    assert double.compile(*arrays(16, 64, dtype=np.float16)) is not first
    assert double.compile(x, out, config=RunConfig(platform="a5sim")) is not first
    assert double.compile(x, out, config=RunConfig(verification_level=VerificationLevel.NONE)) is not first


@pytest.mark.parametrize("rows", [16, 48, 64])
def test_a_dimension_of_an_annotation_is_left_to_each_run(rows):
    x, out = arrays(rows, 64)
    by_rows(x, out)
    assert (out == 3 * x).all()
    assert by_rows.compile(x, out) is by_rows.compile()


@pl.jit.incore
def first_rows(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    ROWS = pl.dynamic("ROWS")
    x.bind_dynamic(0, ROWS)
    out.bind_dynamic(0, ROWS)
    out = pl.store(pl.neg(pl.load(x, [0, 0], [16, 64])), [0, 0], out)
    return out


@pl.jit
def through(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    out = first_rows(x, out)
    return out


def test_a_dimension_bound_in_the_body_reaches_the_entry():
    compiled = through.compile(*arrays(16, 64))
    for rows in (16, 80):
        x, out = arrays(rows, 64)
        assert through.compile(x, out) is compiled
        through(x, out)
        assert (out[:16] == -x[:16]).all() and not out[16:].any()
    assert compiled.params[0].shape == [None, 64]


@pl.jit.inline
def scaled(x: pl.Tensor, n):
    y = pl.mul(x, n)
    return y


@pl.jit.opaque
def row_blocks(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.range(0, 32, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [i, 0], [16, 64])
            out = pl.store(pl.add(t, 1.0), [i, 0], out)
    return out


def test_inline_and_opaque_functions():
    @pl.jit
    def kernel(x: pl.Tensor, mid: pl.Out[pl.Tensor], out: pl.Out[pl.Tensor]):
        mid = row_blocks(x, mid)
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = scaled(scaled(mid, 2.0), 5.0)
        return out

    x, out = arrays(32, 64)
    kernel(x, np.zeros_like(x), out)
    assert (out == 10 * (x + 1)).all()


def test_one_function_for_several_shapes():
    @pl.jit
    def kernel(x: pl.Tensor, y: pl.Tensor, a: pl.Out[pl.Tensor], b: pl.Out[pl.Tensor]):
        a = shifted(x, 1.0, a)
        b = shifted(y, 1.0, b)
        a = shifted(x, 1.0, a)
        return a, b

    (x, a), (y, b) = arrays(16, 64), arrays(32, 128)
    kernel(x, y, a, b)
    assert (a == x + 1).all() and (b == y + 1).all()
    names = {f.name for f in kernel.specialize(x, y, a, b).functions.values()}
    assert names == {"kernel", "shifted", "shifted_1"}


def test_windows_of_tensors_are_arguments():
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for i in pl.range(0, 48, 16):
            part = pl.create_tensor([16, 64], dtype=pl.FP32)
            part = shifted(pl.slice(x, [16, 64], [i, 0]), 1.0, part)
            out = pl.assemble(out, part, [i, 0])
        return out

    x, out = arrays(48, 64)
    kernel(x, out)
    assert (out == x + 1).all()


def test_windows_of_columns_are_arguments_where_they_lie():
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for i in pl.range(0, 128, 64):
            part = pl.slice(out, [16, 64], [0, i])
            part = shifted(pl.slice(x, [16, 64], [16, i]), 1.0, part)
            out = pl.assemble(out, part, [0, i])
        return out

    x, out = arrays(32, 128)
    kernel(x, out)
    assert (out[:16] == x[16:] + 1).all() and not out[16:].any()


def test_launches_as_tasks():
    @pl.jit
    def kernel(x: pl.Tensor, mid: pl.Out[pl.Tensor], out: pl.Out[pl.Tensor]):
        with pl.manual_scope():
            mid, first = pl.submit(shifted, x, 1.0, mid)
            out, _ = pl.submit(shifted, mid, 2.0, out, deps=[first])
        return out

    x, out = arrays(16, 64)
    kernel(x, np.zeros_like(x), out)
    assert (out == x + 3).all()


def test_launches_name_kernels_as_methods_and_arguments_without_dependency():
    @pl.jit
    def kernel(x: pl.Tensor, mid: pl.Out[pl.Tensor], out: pl.Out[pl.Tensor]):
        with pl.manual_scope():
            mid, first = pl.submit(self.shifted, pl.no_dep(x), 1.0, mid)  # noqa: F821
            out, _ = pl.submit(shifted, pl.no_dep(mid), 2.0, out, deps=[first])
        return out

    x, out = arrays(16, 64)
    kernel(x, np.zeros_like(x), out)
    assert (out == x + 3).all()


def test_a_method_that_is_no_function_around_is_refused():
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.manual_scope():
            out, _ = pl.submit(self.nothing, x, out)  # noqa: F821
        return out

    x, out = arrays(16, 64)
    with pytest.raises(InvalidOperationError, match=r"'self\.nothing' can be called only in a method"):
        kernel(x, out)


def test_a_launch_on_several_blocks():
    @pl.jit.incore
    def block(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        i = pl.tile.get_block_idx() * 16
        out = pl.store(pl.neg(pl.load(x, [i, 0], [16, 64])), [i, 0], out)
        return out

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.spmd(4):
            out = block(x, out)
        return out

    x, out = arrays(64, 64)
    kernel(x, out)
    assert (out == -x).all()


def test_a_name_may_come_to_stand_for_another_type():
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            mean = pl.row_sum(x)
            mean = pl.reshape(mean, [1, 32])
            mean = pl.mul(mean, 1.0 / 64)
            mean = pl.reshape(mean, [32, 1])
            out[:] = pl.row_expand_sub(x, mean)
        return out

    x, out = arrays(32, 64)
    kernel(x, out)
    np.testing.assert_allclose(out, x - x.mean(axis=1, keepdims=True), rtol=1e-5)


def test_a_name_keeps_its_type_in_inner_blocks():
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.row_sum(x)
            for _ in pl.range(2):
                y = pl.reshape(y, [1, 32])
            out[:] = pl.row_expand_sub(x, y)
        return out

    text = caught(ParserTypeError, "Cannot reassign 'y' with a different type", kernel, *arrays(32, 64))
    assert "y = pl.reshape(y, [1, 32])" in text


def test_integers_stand_for_truth():
    @pl.jit.incore
    def either(x: pl.Tensor, flag: pl.Scalar[pl.BOOL], out: pl.Out[pl.Tensor]):
        t = pl.load(x, [0, 0], [16, 64])
        if flag:
            out = pl.store(pl.neg(t), [0, 0], out)
        else:
            out = pl.store(t, [0, 0], out)
        return out

    @pl.jit
    def kernel(x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        out = either(x, n, out)
        return out

    compiled = kernel.compile(n=pl.RUNTIME)
    x, out = arrays(16, 64)
    for n, sign in ((0, 1), (1, -1), (4, -1)):
        compiled(x, n, out)
        assert (out == sign * x).all()


def test_a_kernel_with_its_types_is_compiled_as_it_is():
    x, out = arrays(32, 64)
    pl.compile(by_rows, target="Ascend950")(x, out)
    assert (out == 3 * x).all()
    with pytest.raises(TypeError, match="bare 'pl.Tensor'"):
        pl.compile(double)


def caught(error, message, call, *args, **named):
    with pytest.raises(error, match=message) as found:
        call(*args, **named)
    return str(found.value)


def test_arguments_that_do_not_fit_the_annotation():
    x, out = arrays(16, 32)
    text = caught(ParserTypeError, re.escape("argument 'x' of 'by_rows' is [M, 32] fp32, the parameter [M, 64] fp32"),
                  by_rows, x, out)  # fmt: skip
    assert "x: pl.Tensor[[M, 64], pl.FP32]" in text and "^" in text
    caught(ParserTypeError, r"is \[M, 64\] fp16", by_rows, *arrays(16, 64, dtype=np.float16))
    caught(ParserTypeError, "is", by_rows, *arrays(64))


@pytest.mark.parametrize(
    ("args", "named", "message"),
    [
        ((), {"skip_ptoas": True}, "unexpected keyword argument 'skip_ptoas'"),
        ((np.zeros((16, 64), np.float32),), {}, "missing a required argument: 'out'"),
        (("text", 1.0), {}, "argument 'x' is a str; it must be an array, a number, or pl.RUNTIME"),
        ((np.zeros(4, np.complex64), np.zeros(4, np.float32)), {}, "no element type of the language is complex64"),
        ((), {}, r"parameter 'x' is a bare 'pl.Tensor'"),
    ],
)
def test_arguments_python_can_refuse(args, named, message):
    caught(TypeError, message, double.compile, *args, **named)


def test_a_scalar_without_value():
    @pl.jit
    def kernel(x: pl.Tensor[[M, 64], pl.FP32], n: pl.Scalar[pl.INT32]):
        return x

    caught(TypeError, r"scalar parameter 'n' has no value: pass n=<number>, or n=pl\.RUNTIME", kernel.compile)


def test_entries_do_not_call_entries():
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = double(x, out)
        return out

    text = caught(ParserTypeError, "'double' is an entry function", kernel, *arrays(16, 64))
    assert "out = double(x, out)" in text and "@pl.jit.incore" in text


@pl.jit.incore
def calls_itself(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    out = calls_itself(x, out)
    return out


def test_recursion():
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = calls_itself(x, out)
        return out

    caught(UnsupportedFeatureError, "'calls_itself' calls itself", kernel, *arrays(16, 64))


@pl.jit.incore
def ping(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    out = pong(x, out)
    return out


@pl.jit.incore
def pong(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    out = ping(x, out)
    return out


def test_functions_that_call_each_other():
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = ping(x, out)
        return out

    caught(UnsupportedFeatureError, "'ping' calls itself", kernel, *arrays(16, 64))


def test_the_wrong_number_of_arguments_in_a_kernel():
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = shifted(x, out)
        return out

    text = caught(ParserTypeError, r"'shifted' takes 3 argument\(s\), got 2", kernel, *arrays(16, 64))
    assert "call shifted(x, n, out)" in text


def test_a_dimension_bound_to_nothing():
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        y.bind_dynamic(0, M)  # noqa: F821
        return out

    caught(ParserTypeError, "names no dimension of a parameter", kernel, *arrays(16, 64))


def test_errors_are_at_the_line_of_the_function_called():
    @pl.jit.incore
    def wrong(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        t = pl.load(x, [0, 0], [16, 64])
        out = pl.store(pl.tile.add(t, 1), [0], out)
        return out

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = wrong(x, out)
        return out

    text = caught(ParserError, "requires", kernel, *arrays(16, 64))
    assert "pl.store(pl.tile.add(t, 1), [0], out)" in text and "test_jit.py" in text


def test_operators_outside_a_region():
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out[:] = pl.add(x, x)
        return out

    text = caught(KernelValueError, "outside any InCore scope of 'kernel'", kernel, *arrays(16, 64))
    assert "pl.at(level=pl.Level.CORE_GROUP)" in text


@pytest.mark.parametrize("wrong", [3, "text", type])
def test_only_functions_are_decorated(wrong):
    with pytest.raises(TypeError, match="decorates a function"):
        pl.jit(wrong)


@pl.jit.inline
def row_of(x: pl.Tensor, i: pl.Scalar[pl.INT32]):
    at = i * 2
    return pl.load(x, [at, 0], [1, 64])


@pl.jit
def every_other_row(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(4):
            out = pl.store(row_of(x, i), [i, 0], out)
    return out


def test_an_index_is_cast_where_an_inline_function_computes_with_another_integer():
    x, out = np.arange(512, dtype=np.float32).reshape(8, 64), np.zeros((4, 64), np.float32)
    every_other_row(x, out)
    np.testing.assert_array_equal(out, x[::2])


def test_a_host_entry_launches_on_the_devices_of_its_config():
    import pypto.language.distributed as pld

    @pl.jit.incore
    def scaled(x: pl.Tensor, n: pl.Scalar[pl.FP32], y: pl.Out[pl.Tensor]):
        y = pl.store(pl.mul(pl.load(x, [0, 0], [x.shape[0], x.shape[1]]), n), [0, 0], y)
        return y

    @pl.jit
    def on_chip(x: pl.Tensor, y: pl.Out[pl.Tensor], rank: pl.Scalar[pl.INT32]):
        return scaled(x, pl.cast(rank, pl.FP32), y)

    @pl.jit.host
    def entry(xs: pl.Tensor, ys: pl.Out[pl.Tensor]):
        for r in pl.range(pld.world_size()):
            on_chip(xs[r], ys[r], r, device=r)

    for ranks in (2, 3):
        config = RunConfig(distributed_config=DistributedConfig(device_ids=list(range(ranks))))
        xs, ys = np.ones((ranks, 16, 64), np.float32), np.zeros((ranks, 16, 64), np.float32)
        entry(xs, ys, config=config)
        assert (ys == np.arange(ranks)[:, None, None]).all()
        assert entry.compile(xs, ys, config=config).distributed_config.world_size == ranks
    few = RunConfig(distributed_config=DistributedConfig(device_ids=[0]))
    assert entry.compile(xs, ys, config=few) is not entry.compile(xs, ys, config=config)
