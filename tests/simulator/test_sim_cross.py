"""Kernels on both kinds of core: pipes and their splits, back-pressure, and what is refused or reported."""

from __future__ import annotations

import numpy as np
import pytest
from cross_programs import cube_to_vector, ragged, vector_to_cube

import pypto.language as pl
from pypto.pto.errors import PtoError

TARGETS = ["Ascend910B", "Ascend950"]


def product(program, target, rounds=1, sanitize=True):
    """Run `cube_to_vector` on random arrays; what it gives and what it should give."""
    compiled = pl.compile(program, target=target, skip_ptoas=True)
    compiled.sanitize = sanitize
    rng = np.random.default_rng(rounds)
    x = rng.standard_normal((rounds * 16, 16)).astype(np.float16)
    w = rng.standard_normal((16, 16)).astype(np.float16)
    y = np.zeros((rounds * 16, 16), np.float32)
    compiled(x, w, y)
    return y, x.astype(np.float32) @ w.astype(np.float32) + 1, compiled


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("split", [0, 1, 2])
def test_lanes_get_whole_tiles_their_rows_or_their_columns(target, split):
    got, want, compiled = product(cube_to_vector(split), target)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    lanes = 1 if target == "Ascend950" and not split else 2
    assert sorted(name for name, _ in compiled.reports) == ["cube"] + ["vector"] * lanes


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("slots", [1, 2, 3, 8])
def test_a_ring_of_few_slots_carries_many_tiles(target, slots):
    got, want, _ = product(cube_to_vector(1, rounds=7, slots=slots), target, rounds=7)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("split", [0, 1, 2])
def test_the_cube_gets_what_the_lanes_push_as_one_tile(target, split):
    compiled = pl.compile(vector_to_cube(split), target=target, skip_ptoas=True)
    compiled.sanitize = True
    rng = np.random.default_rng(split)
    x, w = rng.standard_normal((2, 32, 32), dtype=np.float32)
    y = np.zeros((32, 32), np.float32)
    compiled(x, w, y)
    np.testing.assert_allclose(y, 2 * x @ w, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_pushed_names_the_core_that_waits_and_its_line(target):
    with pytest.raises(PtoError) as caught:
        product(cube_to_vector(1, rounds=2, pops=3), target, rounds=2)
    message = caught.value.message
    assert message.startswith("nothing can go on: vector lane 0 of block 0, 'vector', waits at ")
    assert "vector lane 1 of block 0" in message and "the cube" in message and "the other side pushes none" in message
    loc = caught.value.loc
    assert loc is not None and "tpop_from_aic" in (loc.source_line() or "")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("split", [0, 1])
def test_a_product_that_is_not_valid_to_its_edge_crosses_whole(target, split):
    compiled = pl.compile(ragged(split), target=target, skip_ptoas=True)
    compiled.sanitize = True
    rng = np.random.default_rng(split)
    x, w = rng.standard_normal((16, 16)).astype(np.float16), rng.standard_normal((16, 24)).astype(np.float16)
    y = np.zeros((16, 24), np.float32)
    compiled(x, w, y)
    np.testing.assert_allclose(y, x.astype(np.float32) @ w.astype(np.float32) + 1, rtol=1e-5, atol=1e-5)
