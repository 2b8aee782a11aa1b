"""Functions, compiled programs and jit kernels go to other processes and are copied."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir

ONE = 1.0


@pl.function(type=pl.FunctionType.InCore)
def double(x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
    pl.store(pl.mul(pl.load(x, [0, 0], [16, 16]), 2.0), [0, 0], y)


@pl.inline
def plus_one(t):
    t = pl.add(t, ONE)
    return t


@pl.jit.incore
def helper(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    y = pl.store(plus_one(pl.load(x, [0, 0], [16, 16])), [0, 0], y)
    return y


@pl.jit
def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    y = helper(x, y)
    return y


def scaled(by: float):
    @pl.jit
    def scale(x: pl.Tensor, y: pl.Out[pl.Tensor], k: float = 1.0):
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.store(pl.mul(pl.load(x, [0, 0], [16, 16]), by * k), [0, 0], y)
        return y

    return scale


def run(function, x):
    """What a process of a pool does."""
    y = np.zeros_like(x)
    (pl.compile(function, skip_ptoas=True) if isinstance(function, (ir.Function, ir.Program)) else function)(x, y)
    return y


def x() -> np.ndarray:
    return np.arange(256, dtype=np.float32).reshape(16, 16)


COPIES = {"pickled": lambda v: pickle.loads(pickle.dumps(v)), "copied": copy.copy, "copied deeply": copy.deepcopy}


@pytest.mark.parametrize("how", COPIES)
def test_a_function_and_a_program_are_the_same_after_it(how):
    program = ir.Program([double], "program")
    for value in (double, program):
        made = COPIES[how](value)
        ir.assert_structural_equal(value, made)
        assert (run(made, x()) == 2 * x()).all()


@pytest.mark.parametrize("how", COPIES)
def test_a_compiled_program_runs_before_and_after_and_is_another(how):
    compiled = pl.compile(double, skip_ptoas=True)
    assert (run(compiled, x()) == 2 * x()).all()
    made = COPIES[how](compiled)
    assert (run(made, x()) == 2 * x()).all()
    assert made.pto == compiled.pto and [name for name, _ in made.reports] == ["double"]
    made.sanitize = True
    assert not compiled.sanitize
    assert made.memory_use() == compiled.memory_use()


@pytest.mark.parametrize("how", COPIES)
def test_a_jit_kernel_of_a_module_is_itself(how):
    assert COPIES[how](kernel) is kernel
    assert COPIES[how](plus_one) is plus_one


def test_a_jit_kernel_of_a_function_keeps_what_it_captured():
    made = pickle.loads(pickle.dumps(scaled(3.0)))
    assert (run(made, x()) == 3 * x()).all()
    y = np.zeros_like(x())
    made(x(), y, k=2.0)
    assert (y == 6 * x()).all()
    assert copy.deepcopy(made) is made


def test_a_jit_compiled_program_is_pickled():
    y = np.zeros_like(x())
    made = pickle.loads(pickle.dumps(kernel.compile(x(), y)))
    assert (run(made, x()) == x() + 1).all()


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_process_pools_run_all_of_them(method):
    given = [(double, 2 * x()), (kernel, x() + 1), (scaled(3.0), 3 * x()),
             (pl.compile(double, skip_ptoas=True), 2 * x())]  # fmt: skip
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
        results = list(pool.map(run, [function for function, _ in given], [x()] * len(given)))
    for result, (_, expected) in zip(results, given):
        assert (result == expected).all()
