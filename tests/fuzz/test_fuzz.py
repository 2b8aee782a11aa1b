"""Random programs mean in the simulator what the same text means to Python; wrong ones are refused at a line of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from flow_programs import FlowFunction
from harness import Outcome, check_mixed_kernel, check_mutant, check_program, check_vector_kernel
from hypothesis import HealthCheck, given, settings, strategies as st
from mixed_kernels import MixedKernel
from mutate import mutated
from programs import HostProgram, Matmul, TensorFunction
from scalars import check_scalars, expressions, host_text, kernel_text
from vector_kernels import VectorKernel

QUICK = settings(
    max_examples=12,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    database=None,
)


def texts(generator: Callable[[Callable[[Sequence[Any]], Any]], Any]) -> st.SearchStrategy[str]:
    """Texts of a generator; hypothesis makes its choices, and shrinks towards the first of each."""
    return st.composite(lambda draw: generator(lambda options: draw(st.sampled_from(options))).text())()


def passes(outcome: Outcome, source: str) -> None:
    assert not outcome.failed, f"{outcome.kind}: {outcome.detail}\n\n{source}"


@pytest.mark.parametrize("target", ["Ascend910B", "Ascend950"])
def test_vector_kernels(target: str):
    @QUICK
    @given(source=texts(VectorKernel))
    def run(source: str):
        passes(check_vector_kernel(source, target), source)

    run()


@pytest.mark.parametrize("generator", [TensorFunction, HostProgram, Matmul, FlowFunction])
def test_programs(generator: Any):
    @QUICK
    @given(source=texts(generator))
    def run(source: str):
        passes(check_program(source), source)

    run()


@pytest.mark.parametrize("text", [kernel_text, host_text])
def test_scalar_expressions(text: Callable[[Sequence[str]], str]):
    made = st.composite(lambda draw: expressions(lambda options: draw(st.sampled_from(options))))()

    @QUICK
    @given(texts=made.filter(bool))
    def run(texts: list[str]):
        source = text(texts)
        passes(check_scalars(texts, source), source)

    run()


@pytest.mark.parametrize("target", ["Ascend910B", "Ascend950"])
def test_mixed_kernels(target: str):
    made = st.composite(lambda draw: MixedKernel(lambda options: draw(st.sampled_from(options))))()

    @QUICK
    @given(kernel=made)
    def run(kernel: MixedKernel):
        passes(check_mixed_kernel(kernel, target), kernel.text)

    run()


@settings(QUICK, max_examples=40)
@given(source=texts(VectorKernel), seed=st.integers(0, 2**32 - 1))
def test_wrong_kernels_are_refused_at_a_line_of_them(source: str, seed: int):
    wrong = mutated(source, seed)
    passes(check_mutant(wrong), wrong)
