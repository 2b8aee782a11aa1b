"""Which buffers share bytes, against the bytes themselves."""

import random

import pytest

from pypto.codegen.places import place_in, place_of, share_bytes
from pypto.pto.shapes import Tile


def plain(rows, cols, dtype="f32", blayout="row_major", **kwargs):
    return Tile("vec", dtype, rows, cols, rows, cols, blayout, **kwargs)


def held(place):
    return {place.start + line * place.pitch + at for line in range(place.lines) for at in range(place.width)}


@pytest.mark.parametrize("seed", range(4))
def test_windows_of_one_tile_share_what_their_bytes_share(seed):
    rng = random.Random(seed)
    whole = plain(6, 8, "f16", rng.choice(["row_major", "col_major"]))
    source = place_of(whole, "%t", 64)
    for _ in range(300):
        windows = []
        for _ in range(2):
            rows, cols = rng.randint(1, 6), rng.randint(1, 8)
            at = rng.randint(0, 6 - rows), rng.randint(0, 8 - cols)
            windows.append(place_in(source, whole, plain(rows, cols, "f16", whole.blayout), at))
        left, right = windows
        # One line stands for all the bytes up to its last; every other pair is told apart byte by byte.
        exact = bool(held(left) & held(right))
        assert share_bytes(left, right) == share_bytes(right, left)
        assert share_bytes(left, right) >= exact
        if left.lines > 1 and right.lines > 1:
            assert share_bytes(left, right) == exact


def test_buffers_share_by_address_or_by_name():
    assert share_bytes(place_of(plain(2, 16), "%a", 0), place_of(plain(2, 16), "%b", 127))
    assert not share_bytes(place_of(plain(2, 16), "%a", 0), place_of(plain(2, 16), "%b", 128))
    assert not share_bytes(place_of(plain(2, 16), "%a", None), place_of(plain(2, 16), "%b", None))
    left = Tile("left", "f32", 2, 16, 2, 16)
    assert not share_bytes(place_of(plain(2, 16), "%a", 0), place_of(left, "%b", 0))


def test_a_window_known_only_at_run_time_may_be_anywhere_in_its_tile():
    whole = plain(4, 16)
    source = place_of(whole, "%t", 0)
    moving = place_in(source, whole, plain(1, 16), [None, 0])
    assert share_bytes(moving, place_in(source, whole, plain(1, 16), [3, 0]))
    assert not share_bytes(moving, place_of(plain(1, 16), "%u", None))
    boxed = plain(32, 32, slayout="row_major", blayout="col_major")
    source = place_of(boxed, "%m", 0)
    assert share_bytes(place_in(source, boxed, boxed, [0, 16]), place_in(source, boxed, boxed, [0, 0]))


def test_a_window_known_only_at_run_time_stays_in_its_tile():
    whole = plain(4, 16)
    moving = place_in(place_of(whole, "%t", 256), whole, plain(4, 8), [0, None])
    assert not share_bytes(moving, place_of(whole, "%u", 0)) and not share_bytes(moving, place_of(whole, "%u", 512))
    assert share_bytes(moving, place_of(plain(1, 16), "%u", 448))
