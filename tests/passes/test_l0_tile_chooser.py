"""The chosen tile fits, is aligned, and is the cheapest there is."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

from pypto.passes import l0_tile_chooser
from pypto.passes.auto_tile_matmul_l0.chooser import L0TileConfig, L0TileResult, Stationarity, choose_l0_tile

EXTENTS = st.integers(1, 40).map(lambda blocks: 16 * blocks)
GATES = ("allow_a_stationary", "allow_b_stationary", "allow_double_buffer_c", "allow_k_boundary")


@st.composite
def questions(draw: st.DrawFn) -> L0TileConfig:
    width = draw(st.sampled_from([1, 2, 4]))
    small = draw(st.sampled_from([4096, 16384, 65536]))
    return L0TileConfig(
        M=draw(EXTENTS),
        N=draw(EXTENTS),
        K=draw(EXTENTS),
        bytes_a=width,
        bytes_b=width,
        l0a_bytes=small,
        l0b_bytes=small,
        l0c_bytes=2 * small,
        l0c_align_m=draw(st.sampled_from([16, 32])),
        box_align_n=draw(st.sampled_from([1, 32])),
        max_n=draw(st.sampled_from([0, 64, 256])),
        **{gate: draw(st.booleans()) for gate in GATES},
    )


def up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def fits(c: L0TileConfig, r: L0TileResult) -> bool:
    copies_a = 1 if r.stationarity is Stationarity.AStationary else 2
    copies_b = 1 if r.stationarity is Stationarity.BStationary else 2
    rows, cols = up(up(r.m, c.box_align_m), c.l0c_align_m), up(r.n, c.box_align_n)
    return (
        up(r.m, c.box_align_m) * r.k * c.bytes_a * copies_a <= c.l0a_bytes
        and r.k * cols * c.bytes_b * copies_b <= c.l0b_bytes
        and rows * cols * c.bytes_c * (2 if r.double_buffer_c else 1) <= c.l0c_bytes
    )


@given(questions())
@settings(max_examples=150, deadline=None)
def test_the_tile_fits(config):
    result = choose_l0_tile(config)
    assert fits(config, result)
    assert all(extent % 16 == 0 and extent > 0 for extent in (result.m, result.n, result.k))
    assert result.m <= config.M and result.n <= config.N and result.k <= config.K
    assert not config.max_n or result.n <= config.max_n
    assert config.allow_k_boundary or config.K % result.k == 0
    assert result.estimated_cost_cycles > 0 and result.estimated_traffic_bytes > 0 and result.perf_hint == ""


@given(questions())
@settings(max_examples=60, deadline=None)
def test_schedules_are_those_allowed(config):
    result = choose_l0_tile(config)
    held = result.stationarity is not Stationarity.OutputStationary
    assert config.allow_double_buffer_c or not result.double_buffer_c
    assert result.k == config.K or not (held or result.double_buffer_c)
    assert config.allow_a_stationary or result.stationarity is not Stationarity.AStationary
    assert config.allow_b_stationary or result.stationarity is not Stationarity.BStationary
    if result.double_buffer_c:
        rows_outer = result.os_holds_a if not held else result.stationarity is Stationarity.AStationary
        assert (config.N // result.n if rows_outer else config.M // result.m) >= 2


def cost(c: L0TileConfig, m: int, n: int, k: int) -> int:
    """Cycles of the plain schedule, by the description of the costs in `pypto.backend.target.L0Costs`."""
    rows, cols = -(-c.M // m), -(-c.N // n)
    a, b = c.bytes_a * c.M * c.K, c.bytes_b * c.K * c.N
    load = a * cols / c.bw_a + b * rows / c.bw_b
    if k >= c.K:
        load = min(a / c.bw_a + b * rows / c.bw_b, a * cols / c.bw_a + b / c.bw_b)
    per_fractal = c.mad_fp32_passes if c.bytes_a == 4 else 1
    unit = 32 // c.bytes_a
    blocks = [k] * (c.K // k) + ([c.K % k] if c.K % k else [])
    fractals = per_fractal * -(-m // 16) * -(-n // 16)
    mad = rows * cols * sum(c.mad_head + fractals * -(-block // unit) for block in blocks)
    odd = -(-n // (32 // c.bytes_c))
    while odd % 2 == 0:
        odd //= 2
    row = max(c.drain_row_cycles, c.bytes_c * n / c.bw_drain) + c.drain_penalty_cycles * (odd - 1)
    return int(max(load, mad) + rows * cols * (c.drain_fixed_cycles + m * row) + 0.5)


@given(st.tuples(*[st.integers(1, 12)] * 3), st.sampled_from([1, 2, 4]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_no_legal_tile_is_cheaper(blocks, width, peels):
    m, n, k = (16 * b for b in blocks)
    config = L0TileConfig(
        M=m, N=n, K=k, bytes_a=width, bytes_b=width, l0a_bytes=8192, l0b_bytes=8192, l0c_bytes=16384,
        allow_k_boundary=peels,
    )  # fmt: skip
    result = choose_l0_tile(config)
    legal = (
        tile
        for tile in product(range(16, m + 1, 16), range(16, n + 1, 16), range(16, k + 1, 16))
        if tile[0] * tile[2] * width <= 4096
        and tile[1] * tile[2] * width <= 4096
        and tile[0] * tile[1] * 4 <= 16384
        and (peels or k % tile[2] == 0)
    )
    assert result.estimated_cost_cycles == min(cost(config, *tile) for tile in legal)
    assert result.estimated_cost_cycles == cost(config, result.m, result.n, result.k)


def test_what_fits_whole_stays_whole():
    for m, n, k in [(64, 64, 64), (16, 512, 32), (128, 128, 128), (16, 16, 1024)]:
        result = choose_l0_tile(L0TileConfig(M=m, N=n, K=k, allow_k_boundary=True))
        assert (result.m, result.n, result.k) == (m, n, k)


def test_padding_is_asked_for_and_told():
    with pytest.raises(ValueError, match="allow_padding=false but N=5"):
        choose_l0_tile(L0TileConfig(M=16, N=5, K=16))
    result = choose_l0_tile(L0TileConfig(M=16, N=5, K=16, allow_padding=True))
    assert result.n == 16 and "N from 5 to 16" in result.perf_hint


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"M": 0}, "must all be positive"),
        ({"K": -16}, "must all be positive"),
        ({"K": 40}, "no legal tile"),
        ({"l0c_bytes": 512}, "no legal tile"),
        ({"max_n": 8}, "max_n must be zero"),
        ({"max_n_pipelined": 15}, "max_n_pipelined must be zero"),
        ({"bytes_c": 0}, "bytes_c must be positive"),
        ({"bw_a": 0.0}, "bw_a must be positive"),
    ],
)
def test_questions_that_make_no_sense(wrong, message):
    with pytest.raises(ValueError, match=message):
        choose_l0_tile(L0TileConfig(**{"M": 64, "N": 64, "K": 64, **wrong}))


def test_the_same_question_is_answered_once():
    first = choose_l0_tile(L0TileConfig(M=4096, N=4096, K=4096))
    assert choose_l0_tile(L0TileConfig(M=4096, N=4096, K=4096)) is first
    assert l0_tile_chooser.choose_l0_tile is choose_l0_tile
