"""Order of what crosses between the cores: slots given back in order, pushes behind the stores they tell of."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto import simulator
from pypto.pto.errors import PtoError

F16, F32 = np.float16, np.float32
UP_DOWN, LEFT_RIGHT = "pl.split(pl.SplitMode.UP_DOWN)", "pl.split(pl.SplitMode.LEFT_RIGHT)"
PARAMS = (
    "a: pl.Tensor[[128, 64], pl.FP16], b: pl.Tensor[[64, 64], pl.FP16], s: pl.InOut[pl.Tensor[[128, 64], pl.FP16]], "
    "y: pl.InOut[pl.Tensor[[128, 64], pl.FP32]]"
)


@pytest.fixture(params=["Ascend910B", "Ascend950"])
def target(request: pytest.FixtureRequest) -> str:
    return request.param


def ran(lines: str, target: str, option: str = "") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``a``, ``b`` and what the region ``lines`` makes of ``y``."""
    opened = f", optimizations=[{option}]" if option else ""
    program = pl.parse(
        f"import pypto.language as pl\n@pl.function\ndef k({PARAMS}) -> pl.Tensor[[128, 64], pl.FP32]:\n"
        f"    with pl.at(level=pl.Level.CORE_GROUP{opened}):{lines}    return y\n"
    )
    compiled = pl.compile(program, target=target, dump_passes=False)
    compiled.sanitize = True
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-2, 3, shape).astype(F16) for shape in ((128, 64), (64, 64)))
    y = np.full((128, 64), 7, F32)
    compiled(a, b, np.zeros((128, 64), F16), y)
    return a.astype(F32), b.astype(F32), y


THREE = """
        v = pl.matmul(a[0:32, :], b, out_dtype=pl.FP32)
        w = v * 2.0
        p = pl.matmul(a[32:64, :], b, out_dtype=pl.FP32) + 0.5
        q = pl.matmul(a[64:96, :], b, out_dtype=pl.FP32) + v
        y = pl.assemble(y, v, [0, 0])
        y = pl.assemble(y, w, [32, 0])
        y = pl.assemble(y, p, [64, 0])
        y = pl.assemble(y, q, [96, 0])
"""


@pytest.mark.parametrize("option", ["", UP_DOWN, LEFT_RIGHT, *(f"pl.cross_core_slot(slot_num={n})" for n in (1, 2, 4))])
def test_a_popped_tile_is_needed_after_later_ones_were_popped(target: str, option: str) -> None:
    a, b, y = ran(THREE, target, option)
    c = a @ b
    np.testing.assert_array_equal(y, np.concatenate([c[:32], 2 * c[:32], c[32:64] + 0.5, c[64:96] + c[:32]]))


ACROSS = """
        v = pl.matmul(a[0:32, :], b, out_dtype=pl.FP32) + 1.0
        for i in pl.range(3):
            q = pl.matmul(a[i * 32 : i * 32 + 32, :], b, out_dtype=pl.FP32) + v
            y = pl.assemble(y, q, [i * 32, 0])
        y = pl.assemble(y, v, [96, 0])
"""


@pytest.mark.parametrize("more", ["", " + 1.0"])
def test_a_popped_tile_is_needed_in_a_loop_that_pops(target: str, more: str) -> None:
    a, b, y = ran(ACROSS.replace(" + 1.0", more), target)
    c = a @ b
    v = c[:32] + (1 if more else 0)
    np.testing.assert_array_equal(y, np.concatenate([c[:96] + np.tile(v, (3, 1)), v]))


def test_the_cube_needs_a_popped_operand_across_later_tiles(target: str) -> None:
    lines = """
        e = pl.cast(pl.add(pl.cast(a[0:64, :], pl.FP32), 1.0), pl.FP16)
        for i in pl.range(2):
            d = pl.cast(pl.add(pl.cast(a[i * 64 : i * 64 + 64, :], pl.FP32), 2.0), pl.FP16)
            y = pl.assemble(y, pl.matmul(d, e, out_dtype=pl.FP32), [i * 64, 0])
"""
    a, _, y = ran(lines, target)
    np.testing.assert_array_equal(y, (a + 2) @ (a[:64] + 1))


READ_BACK = """
        for i in pl.pipeline(4, stage=2):
            v = pl.cast(pl.matmul(a[i * 32 : i * 32 + 32, :], b, out_dtype=pl.FP32), pl.FP16)
            s = pl.assemble(s, v, [i * 32, 0])
            y = pl.assemble(y, pl.matmul(s[i * 32 : i * 32 + 32, :], b, out_dtype=pl.FP32), [i * 32, 0])
"""
BESIDE = """
        for i in pl.pipeline(4, stage=2):
            x = pl.add(pl.cast(a[i * 32 : i * 32 + 32, :], pl.FP32), 1.0)
            y = pl.assemble(y, x, [i * 32, 0])
            y = pl.assemble(y, pl.matmul(pl.cast(x, pl.FP16), b, out_dtype=pl.FP32), [i * 32, 0])
"""


@pytest.mark.parametrize("option", ["", UP_DOWN, LEFT_RIGHT])
def test_a_pipelined_loop_stores_before_the_cube_reads_it_back(target: str, option: str) -> None:
    a, b, y = ran(READ_BACK, target, option)
    np.testing.assert_array_equal(y, (a @ b) @ b)


@pytest.mark.parametrize("option", ["", UP_DOWN, LEFT_RIGHT])
def test_a_pipelined_loop_stores_before_the_cube_stores_beside_it(target: str, option: str) -> None:
    a, b, y = ran(BESIDE, target, option)
    np.testing.assert_array_equal(y, (a + 1) @ b)


def test_a_read_of_a_freed_slot_is_reported_without_sanitize() -> None:
    source = "a: pl.Tensor[[16, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]"
    program = pl.parse(
        f"import pypto.language as pl\n@pl.function\ndef k({source}) -> pl.Tensor[[16, 32], pl.FP32]:\n"
        "    with pl.at(level=pl.Level.CORE_GROUP):\n"
        "        y = pl.assemble(y, pl.matmul(a, b, out_dtype=pl.FP32) * 2.0, [0, 0])\n    return y\n"
    )
    compiled = pl.compile(program, target="Ascend950", dump_passes=False)
    (module,) = compiled.pto
    lines = compiled.pto[module].splitlines()
    free = next(i for i, line in enumerate(lines) if "pto.tfree_from_aic" in line)
    pop = next(i for i, line in enumerate(lines) if "pto.tpop_from_aic" in line)
    lines.insert(pop + 1, lines.pop(free))
    compiled.pto[module] = "\n".join(lines)
    with pytest.raises(PtoError) as caught:
        compiled(np.ones((16, 64), F16), np.ones((64, 32), F16), np.zeros((16, 32), F32))
    assert "reads a popped tile whose slot was freed" in str(caught.value)
    assert simulator.load("\n".join(lines)).kernels
