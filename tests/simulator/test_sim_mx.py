"""Products of block-scaled operands: the meaning of ``tmatmul.mx`` and ``tgemv.mx`` on arrays."""

import ml_dtypes
import numpy as np
import pytest

from pypto.backend import ASCEND910B, ASCEND950
from pypto.pto import INSTRUCTIONS, PtoError
from pypto.pto.shapes import Tile
from pypto.pto.spec import Site
from pypto.simulator.grid import CUBE, Grid, Group

DATA = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}


class Held:
    """A tile at run time, all of it valid."""

    def __init__(self, data):
        self.data = data

    @property
    def valid(self):
        return self.data.shape

    def read(self):
        return self.data

    def write(self, data):
        self.data = np.broadcast_to(data, self.data.shape).astype(self.data.dtype)


def tile(loc, dtype, rows, cols):
    boxed = {"scaling": ("row_major", "row_major", 32), "acc": ("col_major", "row_major", 1024)}
    blayout, slayout, fractal = boxed.get(loc, ("row_major", "none_box", 512))
    return Tile(loc, dtype, rows, cols, rows, cols, blayout, slayout, fractal)


def site(name, rows, depth, cols, left="f8E4M3FN", right="f8E4M3FN", target=ASCEND950, **other):
    groups = -(-depth // 32)
    types = {
        "a": tile("left", left, rows, depth), "b": tile("right", right, depth, cols),
        "a_scale": tile("scaling", "!pto.f8E8M0", rows, groups),
        "b_scale": tile("scaling", "!pto.f8E8M0", groups, cols),
        "dst": tile("acc", "f32", rows, cols), **other,
    }  # fmt: skip
    return Site(INSTRUCTIONS[name], types, {"accPhase": "unspecified"}, target)


def check(at):
    for rule in at.spec.checks:
        rule(at)


def operands(rows, depth, cols, left, right, seed=0):
    rng = np.random.default_rng(seed)
    groups = -(-depth // 32)
    a = rng.uniform(-4, 4, (rows, depth)).astype(DATA[left])
    b = rng.uniform(-4, 4, (depth, cols)).astype(DATA[right])
    a_scale = np.exp2(rng.integers(-3, 4, (rows, groups))).astype(ml_dtypes.float8_e8m0fnu)
    b_scale = np.exp2(rng.integers(-3, 4, (groups, cols))).astype(ml_dtypes.float8_e8m0fnu)
    return a, a_scale, b, b_scale


def by_hand(a, a_scale, b, b_scale):
    """The product in float64, each element scaled on its own."""
    out = np.zeros((a.shape[0], b.shape[1]))
    for k in range(a.shape[1]):
        left = a[:, k].astype(np.float64) * a_scale[:, k // 32].astype(np.float64)
        right = b[k].astype(np.float64) * b_scale[k // 32].astype(np.float64)
        out += np.outer(left, right)
    return out


@pytest.mark.parametrize("kind, rows", [("tmatmul", 16), ("tgemv", 1)])
@pytest.mark.parametrize("left, right", [(a, b) for a in DATA for b in DATA])
@pytest.mark.parametrize("form", ["", ".acc", ".bias"])
def test_products_with_a_scale_for_each_32_along_the_depth(kind, rows, left, right, form):
    a, a_scale, b, b_scale = operands(rows, 96, 32, left, right)
    more = {".acc": {"c_in": tile("acc", "f32", rows, 32)}, ".bias": {"bias": tile("bias", "f32", 1, 32)}}.get(form, {})
    at = site(f"{kind}.mx{form}", rows, 96, 32, left, right, **more)
    check(at)
    held = [Held(x) for x in (a, a_scale, b, b_scale)]
    start = np.arange(rows * 32, dtype=np.float32).reshape(rows, 32) if form == ".acc" else np.ones((1, 32), np.float32)
    out = Held(np.zeros((rows, 32), np.float32))
    if form == ".acc":
        at.spec.bind(at)(Held(start), *held, out)
    elif form == ".bias":
        at.spec.bind(at)(*held, Held(start), out)
    else:
        at.spec.bind(at)(*held, out)
    want = by_hand(a, a_scale, b, b_scale) + (start if form else 0)
    np.testing.assert_allclose(out.data, want, rtol=1e-5, atol=1e-4 * np.abs(want).max())


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda: site("tmatmul.mx", 16, 64, 32, target=ASCEND910B), "a2a3 has no such instruction"),
        (lambda: site("tmatmul.mx", 16, 64, 32, right="f16"), "both be 8-bit or both 4-bit"),
        (lambda: site("tmatmul.mx", 16, 64, 32, a_scale=tile("scaling", "!pto.f8E8M0", 16, 4)), "must be 16x2"),
        (lambda: site("tmatmul.mx", 16, 64, 32, a_scale=tile("scaling", "f16", 16, 2)), "element type f16"),
        (lambda: site("tmatmul.mx", 16, 64, 32, dst=tile("acc", "f32", 32, 32)), "does not give"),
        (lambda: site("tgemv.mx", 16, 64, 32), "has 1 valid row, got 16"),
        (lambda: site("tgemv.mx", 32, 64, 32), "does not give"),
    ],
)
def test_what_is_no_product(change, words):
    with pytest.raises(PtoError, match=words):
        check(change())


def test_scales_must_cover_what_is_valid():
    a, a_scale, b, b_scale = operands(16, 96, 32, "f8E4M3FN", "f8E4M3FN")
    at = site("tmatmul.mx", 16, 96, 32)
    with pytest.raises(PtoError, match="valid scales"):
        at.spec.bind(at)(Held(a), Held(a_scale[:, :2]), Held(b), Held(b_scale), Held(np.zeros((16, 32), np.float32)))


def test_scales_of_both_operands_at_one_address_are_two_memories():
    left = tile("scaling", "!pto.f8E8M0", 16, 4)
    right = Tile("scaling", "!pto.f8E8M0", 4, 16, 4, 16, "col_major", "col_major", 32)
    core = Group(Grid(ASCEND950, 1, 1, 0), 0).core(CUBE)
    a, b = core.tile(left, 0, (16, 4)), core.tile(right, 0, (4, 16))
    a.write(np.full((16, 4), 2, ml_dtypes.float8_e8m0fnu))
    b.write(np.full((4, 16), 8, ml_dtypes.float8_e8m0fnu))
    assert (a.read().astype(float) == 2).all() and (b.read().astype(float) == 8).all()
    assert core.high_water() == {"scaling": 64, "scaling_right": 64}


def test_scales_lie_in_boxes_of_16_by_2():
    assert tile("scaling", "!pto.f8E8M0", 32, 4).box == (16, 2)
    assert Tile("scaling", "!pto.f8E8M0", 4, 32, 4, 32, "col_major", "col_major", 32).box == (2, 16)
