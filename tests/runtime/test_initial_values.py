"""What `create_tensor(init_value=..)` makes holds that value, on the host and on chip."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pypto.language as pl
from pypto.errors import Diagnosed

HEAD = "import pypto.language as pl\n"
CREATE = "t = pl.create_tensor([16, 32], dtype=pl.{dtype}, init_value={value})"
DTYPES = {"FP32": np.float32, "FP16": np.float16, "INT32": np.int32}


def text(dtype: str, value: float, *, outside: bool, lines: tuple[str, ...]) -> str:
    create = CREATE.format(dtype=dtype, value=value)
    first, inner = (f"    {create}\n", "") if outside else ("", f"        {create}\n")
    body = "".join(f"        {line}\n" for line in lines)
    type = f"pl.Tensor[[16, 32], pl.{dtype}]"
    return (
        f"{HEAD}@pl.function\ndef f(x: {type}) -> {type}:\n{first}"
        f"    with pl.at(level=pl.Level.CORE_GROUP):\n{inner}{body}    return t\n"
    )


def run(source: str, dtype: str, target: str = "Ascend910B") -> Any:
    return pl.compile(pl.parse(source), target=target, dump_passes=False)(np.ones((16, 32), DTYPES[dtype]))


@pytest.mark.parametrize("target", ["Ascend910B", "Ascend950"])
@pytest.mark.parametrize(("dtype", "value"), [("FP32", 3.0), ("FP16", 1.5), ("INT32", 7)])
def test_a_tensor_created_in_a_region_holds_its_initial_value(dtype: str, value: float, target: str):
    made = run(text(dtype, value, outside=False, lines=("t = pl.add(t, x)",)), dtype, target)
    assert (made == value + 1).all()


@pytest.mark.parametrize("outside", [True, False])
def test_what_is_not_assembled_into_keeps_the_initial_value(outside: bool):
    lines = ("t = pl.assemble(t, pl.mul(pl.slice(x, [8, 32], [0, 0]), 2.0), [0, 0])",)
    made = run(text("FP32", 3.0, outside=outside, lines=lines), "FP32")
    assert (made[:8] == 2).all() and (made[8:] == 3).all()


def test_a_filled_tensor_is_not_replaced_by_the_part_it_is_assembled_into():
    source = f"""{HEAD}
@pl.function
def f(x: pl.Tensor[[16, 32], pl.FP32]) -> pl.Tensor[[16, 32], pl.FP32]:
    out = pl.create_tensor([16, 32], dtype=pl.FP32, init_value=1.0)
    part = pl.create_tensor([8, 32], dtype=pl.FP32, init_value=3.0)
    with pl.at(level=pl.Level.CORE_GROUP):
        part = pl.assemble(part, pl.mul(pl.slice(x, [4, 32], [0, 0]), 2.0), [0, 0])
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.assemble(out, part, [8, 0])
    return out
"""
    made = run(source, "FP32")
    assert [made[r, 0] for r in (0, 8, 12)] == [1, 2, 3]


@pytest.mark.parametrize("value", [2.5, 3e9])
def test_a_value_that_the_elements_cannot_hold_is_refused(value: float):
    with pytest.raises(Diagnosed, match="cannot fill int32 elements"):
        run(text("INT32", value, outside=True, lines=("t = pl.add(t, x)",)), "INT32")


@pytest.mark.parametrize("target", ["Ascend910B", "Ascend950"])
def test_products_of_int8_are_int32(target: str):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((32, 64), (64, 32)))
    source = f"""{HEAD}
@pl.function
def f(a: pl.Tensor[[32, 64], pl.INT8], b: pl.Tensor[[64, 32], pl.INT8], o: pl.Out[pl.Tensor[[32, 32], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c = pl.matmul_acc(pl.matmul(a, b), a, b)
        o = pl.assemble(o, pl.sub(c, pl.matmul(a, b)), [0, 0])
    return o
"""
    out = np.zeros((32, 32), np.int32)
    pl.compile(pl.parse(source), target=target, dump_passes=False)(a, b, out)
    assert np.array_equal(out, a.astype(np.int32) @ b.astype(np.int32))
