"""What a jit kernel captures is part of what it is compiled for."""

from __future__ import annotations

import math
import sys
import types
from dataclasses import dataclass, field

import numpy as np
import pytest

import pypto.language as pl
from pypto.jit.captured import captured

SCALE = 2.0
SIZES = [3.0, [4.0]]
TABLE = {"k": 5.0}
BASE = 1.0
INNER = 1.0
ARRAY = np.array([1.0, 2.0], np.float32)
module = types.ModuleType("settings")
module.V = 6.0  # type: ignore[attr-defined]


@dataclass
class Config:
    n: float = 7.0
    inner: dict = field(default_factory=lambda: {"a": [8.0]})

    shared = 0.5

    def total(self) -> float:
        return self.n + self.shared


config = Config()


def helper(k: float = 1.0) -> float:
    return BASE * k


@pl.jit.inline
def scaled(t):
    t = pl.mul(t, INNER)
    return t


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 64])
        t = pl.add(t, SCALE)
        t = pl.add(t, SIZES[1][0])
        t = pl.add(t, TABLE["k"])
        t = pl.add(t, module.V)
        t = pl.add(t, config.n)
        t = pl.add(t, config.inner["a"][0])
        t = pl.add(t, config.total())
        t = pl.add(t, helper())
        t = pl.add(t, float(ARRAY[1]))
        t = scaled(t)
        out = pl.store(t, [0, 0], out)
    return out


def expected() -> float:
    total = SCALE + SIZES[1][0] + TABLE["k"] + module.V + config.n + config.inner["a"][0] + config.total()
    return (total + helper() + float(ARRAY[1])) * INNER


def result(function) -> float:
    x, out = np.zeros((16, 64), np.float32), np.zeros((16, 64), np.float32)
    function(x, out)
    return float(out[0, 0])


CHANGES = {
    "a global": lambda m: m.setitem(globals(), "SCALE", 20.0),
    "an element of a list in a list": lambda m: m.setattr(sys.modules[__name__], "SIZES", [3.0, [21.0]]),
    "an entry of a dict": lambda m: m.setitem(TABLE, "k", 22.0),
    "an attribute of a module": lambda m: m.setattr(module, "V", 23.0),
    "an attribute": lambda m: m.setattr(config, "n", 24.0),
    "an element behind an attribute": lambda m: m.setitem(config.inner, "a", [25.0]),
    "an attribute of a class that a method reads": lambda m: m.setattr(Config, "shared", 26.0),
    "a global of a helper": lambda m: m.setitem(globals(), "BASE", 27.0),
    "a default of a helper": lambda m: m.setattr(helper, "__defaults__", (28.0,)),
    "an element of an array": lambda m: m.setattr(sys.modules[__name__], "ARRAY", np.array([1.0, 29.0], np.float32)),
    "a global of an inline function": lambda m: m.setitem(globals(), "INNER", 3.0),
    "the helper itself": lambda m: m.setitem(globals(), "helper", lambda: 30.0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_call_after_a_change_uses_the_new_value(change, monkeypatch):
    assert result(kernel) == expected()
    before = expected()
    CHANGES[change](monkeypatch)
    assert expected() != before
    assert result(kernel) == expected()
    monkeypatch.undo()
    assert result(kernel) == before


def adding(value):
    @pl.jit
    def add(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), value), [0, 0], out)
        return out

    def change(new):
        nonlocal value
        value = new

    return add, change


def test_elements_changed_in_place_are_seen():
    values = [[1.0], np.array([1.0])]
    for value in values:
        add, _ = adding(value)
        before = captured(add)
        value[0] = 2.0
        assert captured(add) != before


def test_a_variable_of_the_function_around_is_looked_up_again():
    add, change = adding(2.0)
    x, out = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
    add(x, out)
    change(5.0)
    add(x, out)
    assert (out == 5).all()


def test_signed_zeros_and_nan_are_values_of_their_own():
    add, change = adding(0.0)
    x, out = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
    for value in (0.0, -0.0, math.nan, 0.0):
        change(value)
        add(x, out)
        assert np.isnan(out).all() if math.isnan(value) else (np.signbit(out) == (math.copysign(1, value) < 0)).all()


def test_an_integer_and_a_float_of_one_value_are_two():
    add, change = adding(2)
    first = captured(add)
    change(2.0)
    assert captured(add) != first
    change(True)
    assert captured(add) not in (first,)


def test_the_same_values_find_the_same_program():
    x, out = np.zeros((16, 64), np.float32), np.zeros((16, 64), np.float32)
    first = kernel.compile(x, out)
    assert kernel.compile(x, out) is first
    SIZES[1] = [SIZES[1][0]]
    assert kernel.compile(x, out) is first


def test_names_the_kernel_assigns_are_its_own(monkeypatch):
    """A variable of the caller that happens to be called as one of the kernel's does not compile it again."""
    before = captured(kernel)
    monkeypatch.setitem(globals(), "t", 5)
    monkeypatch.setitem(globals(), "out", 6)
    assert captured(kernel) == before


ROWS = 16


@pl.jit
def annotated(x: pl.Tensor[[ROWS, 64], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(pl.load(x, [0, 0], [ROWS, 64]), [0, 0], out)
    return out


def test_annotations_follow_what_they_name(monkeypatch):
    x = np.ones((16, 64), np.float32)
    assert [p.shape for p in annotated.compile().params] == [[16, 64]] * 2
    annotated(x, np.zeros_like(x))
    monkeypatch.setitem(globals(), "ROWS", 32)
    assert [p.shape for p in annotated.compile().params] == [[32, 64]] * 2
    x = np.ones((32, 64), np.float32)
    out = np.zeros_like(x)
    annotated(x, out)
    assert (out == 1).all()


def test_values_that_hold_themselves_have_a_key():
    loop: list = [1.0]
    loop.append(loop)
    add, change = adding(loop)
    first = captured(add)
    assert captured(add) == first
    loop[0] = 2.0
    assert captured(add) != first
    assert change is not None
