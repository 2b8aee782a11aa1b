"""Races, arguments that share memory, and captured values: what is said of random ones, against a plain search."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from orders import figures

import pypto.language as pl
from pypto.errors import KernelValueError
from pypto.jit.captured import captured
from pypto.pto.errors import PtoError


@pytest.mark.parametrize("sets", [False, True], ids=["added to", "some set"])
def test_races_of_ranks_are_those_that_some_order_has(sets: bool):
    found = figures(range(400), sets)
    assert found["missed"] == found["wrongly reported"] == 0
    assert min(found["races"], found["none"]) > 20


class Blocks:
    """A kernel whose blocks read and write windows of one tensor, at rows and columns that follow from their number."""

    def __init__(self, seed: int) -> None:
        choose = random.Random(seed)
        self.down, self.across = choose.choice((0, 8, 15, 16, 20)), choose.choice((0, 8, 16, 24))
        self.ahead, self.rows, self.cols = choose.choice((0, 3, 40)), choose.choice((8, 16)), choose.choice((8, 16))

    def run(self) -> bool:
        """Whether a sanitized run reports a race."""
        down, across, ahead, rows, cols = self.down, self.across, self.ahead, self.rows, self.cols

        @pl.program
        class Program:
            @pl.function(type=pl.FunctionType.InCore)
            def copy(self, y: pl.InOut[pl.Tensor[[128, 128], pl.FP32]]) -> pl.Tensor[[128, 128], pl.FP32]:
                i = pl.tile.get_block_idx()
                t = pl.load(y, [i * down + ahead, i * across], [rows, cols])
                y = pl.store(t, [i * down, i * across], y)
                return y

            @pl.function(type=pl.FunctionType.Orchestration)
            def main(self, y: pl.InOut[pl.Tensor[[128, 128], pl.FP32]]) -> pl.Tensor[[128, 128], pl.FP32]:
                with pl.spmd(3):
                    y = self.copy(y)
                return y

        compiled = pl.compile(Program, skip_ptoas=True, dump_passes=False)
        compiled.sanitize = True
        try:
            compiled(np.zeros((128, 128), np.float32))
        except PtoError as error:
            assert "a race" in str(error)
            return True
        return False

    def has_race(self) -> bool:
        """Whether an element that a block writes is one that another reads or writes."""

        def elements(i: int, ahead: int) -> set[tuple[int, int]]:
            top, left = i * self.down + ahead, i * self.across
            return {(r, c) for r in range(top, top + self.rows) for c in range(left, left + self.cols)}

        writes = [elements(i, 0) for i in range(3)]
        uses = [elements(i, self.ahead) | w for i, w in enumerate(writes)]
        return any(writes[i] & uses[j] for i in range(3) for j in range(3) if i != j)


def test_blocks_race_where_their_elements_overlap():
    programs = [Blocks(seed) for seed in range(12)]
    assert [p.run() for p in programs] == [p.has_race() for p in programs]


@pl.program
class Copy:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[8, 8], pl.FP32], y: pl.Out[pl.Tensor[[8, 8], pl.FP32]]) -> pl.Tensor[[8, 8], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.assemble(y, pl.mul(a, 2.0), [0, 0])
        return y


def view(choose: random.Random, whole: np.ndarray) -> np.ndarray:
    """An 8x8 view of a 24x24 array."""
    steps = choose.choice((1, 1, 2, -1)), choose.choice((1, 2))
    starts = [choose.randrange(8 if step > 0 else 9) + (8 if step < 0 else 0) for step in steps]
    part = whole[starts[0] :: steps[0], starts[1] :: steps[1]][:8, :8]
    return part.T if choose.random() < 0.3 else part


def test_arguments_are_refused_where_they_have_an_element_in_common():
    compiled = pl.compile(Copy, skip_ptoas=True, dump_passes=False)
    choose, counts = random.Random(5), [0, 0]
    for _ in range(150):
        numbers = np.arange(576).reshape(24, 24)
        state = choose.getstate()
        places = [set(view(choose, numbers).ravel().tolist()) for _ in range(2)]
        choose.setstate(state)
        whole = numbers.astype(np.float32)
        a, y = (view(choose, whole) for _ in range(2))
        shared, expected = bool(places[0] & places[1]), 2 * a
        counts[shared] += 1
        if shared:
            with pytest.raises(KernelValueError, match="arguments 'a' and 'y' share memory"):
                compiled(a, y)
        else:
            compiled(a, y)
            assert (y == expected).all()
    assert min(counts) > 10


VALUE: Any = None


@pl.jit
def reads(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), VALUE.first[0]["a"]), [0, 0], out)
    return out


class Holder:
    def __init__(self, first: Any) -> None:
        self.first = first


def nested(choose: random.Random, depth: int) -> Any:
    """A random value, with others in it."""
    kind = choose.choice(("list", "dict", "tuple", "object", "number")) if depth else "number"
    inner = [nested(choose, depth - 1) for _ in range(choose.randint(1, 3))] if kind != "number" else []
    if kind == "dict":
        return {i if choose.random() < 0.5 else str(i): v for i, v in enumerate(inner)}
    made = {"list": list, "tuple": tuple, "object": lambda v: Holder(v)}
    return made[kind](inner) if kind in made else choose.choice((0, 0.0, -0.0, 1, True, float("nan"), "a", None))


def shown(value: Any) -> str:
    """A text that tells all values apart."""
    if isinstance(value, Holder):
        return f"Holder({shown(value.first)})"
    if isinstance(value, dict):
        return f"dict({[(repr(k), shown(v)) for k, v in value.items()]})"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({[shown(v) for v in value]})"
    return f"{type(value).__name__}({value!r})"


def test_keys_of_captured_values_are_equal_where_the_values_are(monkeypatch):
    keys: dict[Any, str] = {}
    texts: set[str] = set()
    for seed in range(2000):
        monkeypatch.setitem(globals(), "VALUE", nested(random.Random(seed), 3))
        text = shown(VALUE)
        assert keys.setdefault(captured(reads), text) == text
        texts.add(text)
    assert len(keys) == len(texts) > 200
