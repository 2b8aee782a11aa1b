"""No keyword of a tensor operator is lost on the way to tiles: it is converted, or refused at its line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pypto.language as pl
from pypto.errors import Diagnosed
from pypto.passes.convert_tensor_to_tile_ops.rules import RULES
from pypto.passes.emitting import build

HEAD = "import pypto.language as pl\n"


def region(params: str, *lines: str) -> str:
    body = "\n".join(f"        {line}" for line in lines)
    return f"{HEAD}@pl.function\ndef f({params}):\n    with pl.at(level=pl.Level.CORE_GROUP):\n{body}\n    return o\n"


def run(source: str, *args: Any, target: str = "Ascend910B") -> Any:
    pl.compile(pl.parse(source), target=target, dump_passes=False)(*args)
    return args[-1]


@pytest.mark.parametrize("target", ["Ascend910B", "Ascend950"])
def test_init_cond_of_a_tensor_level_matmul_acc_overwrites(target: str):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((16, 64), (64, 32)))
    source = region(
        "a: pl.Tensor[[16, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], n: pl.Scalar[pl.INT32], "
        "o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]",
        "c = pl.matmul(a, b, out_dtype=pl.FP32)",
        "o = pl.assemble(o, pl.matmul_acc(c, a, b, init_cond=(n == 0)), [0, 0])",
    )
    product = a.astype(np.float32) @ b.astype(np.float32)
    for n in (0, 1):
        assert np.array_equal(run(source, a, b, n, np.zeros((16, 32), np.float32), target=target), product * (1 + n))


@pytest.mark.parametrize(
    ("call", "shape", "want"),
    [
        ("row_sum(x, keep_dim=False)", (16,), lambda x: x.sum(1)),
        ("col_sum(x, keep_dim=False)", (32,), lambda x: x.sum(0)),
        ("col_max(x, axis=0)", (1, 32), lambda x: x.max(0, keepdims=True)),
        ("row_max(x, axis=0)", (1, 32), lambda x: x.max(0, keepdims=True)),
        ("col_sum(x, axis=-1)", (16, 1), lambda x: x.sum(1, keepdims=True)),
        ("row_min(x, axis=1)", (16, 1), lambda x: x.min(1, keepdims=True)),
    ],
)
def test_reductions_follow_axis_and_keep_dim(call: str, shape: tuple[int, ...], want: Any):
    x = np.random.default_rng(1).integers(-9, 10, (16, 32)).astype(np.float32)
    source = region(
        f"x: pl.Tensor[[16, 32], pl.FP32], o: pl.Out[pl.Tensor[{list(shape)}, pl.FP32]]",
        f"o = pl.assemble(o, pl.{call}, {[0] * len(shape)})",
    )
    assert np.array_equal(run(source, x, np.zeros(shape, np.float32)), want(x))


def test_a_reduction_of_an_outer_dimension_is_refused():
    source = region(
        "x: pl.Tensor[[2, 16, 32], pl.FP32], o: pl.Out[pl.Tensor[[1, 16, 32], pl.FP32]]",
        "o = pl.assemble(o, pl.col_sum(x, axis=0), [0, 0, 0])",
    )
    with pytest.raises(Diagnosed, match="reduces the last two dimensions"):
        pl.compile(pl.parse(source), dump_passes=False)


def test_a_layout_asked_of_a_product_on_chip_is_refused():
    source = region(
        "a: pl.Tensor[[16, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]",
        "o = pl.assemble(o, pl.matmul(a, b, out_dtype=pl.FP32, c_matrix_nz=True), [0, 0])",
    )
    with pytest.raises(Diagnosed, match="c_matrix_nz is not supported on chip"):
        pl.compile(pl.parse(source), dump_passes=False)


def test_a_keyword_that_a_conversion_does_not_read_is_an_error(monkeypatch: pytest.MonkeyPatch):
    def forgets_the_mode(cv: Any, call: Any, space: Any) -> Any:
        bound = cv.bound(call)
        return build("tile.cast", cv.tile(bound["input"]), span=call.span, target_type=bound["target_type"])

    monkeypatch.setitem(RULES, "tensor.cast", forgets_the_mode)
    source = region(
        "x: pl.Tensor[[16, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.INT32]]",
        'o = pl.assemble(o, pl.cast(x, pl.INT32, mode="floor"), [0, 0])',
    )
    with pytest.raises(Diagnosed, match=r"tensor.cast has no form on chip that takes mode"):
        pl.compile(pl.parse(source), dump_passes=False)
