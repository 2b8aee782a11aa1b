"""MaterializeWindowStrides: kernels state the strides of the windows they are given.

A window of a tensor is its memory: the next row is as far away as in the whole tensor. A kernel knows of an argument
only where it begins, so the type of its parameter has to say how far apart elements are. Every call is followed from
where no other function calls: a kernel that is always given windows alike states their strides, one that is given
several kinds becomes one function for each. Strides that only a run knows are passed as leading INDEX arguments.

Runs after FuseCreateAssembleToSlice, which makes the last windows. A window of a tensor in another order than row by
row, another shape of a window, and a tensor that may be windows of two kinds are refused.
"""

from __future__ import annotations

from ...ir.program import INCORE_TYPES, FunctionType, Program
from ...ir.types import TensorView
from ..base import P, Pass, program_pass
from .rewrite import rewritten
from .variants import Variants

_MAKES_WINDOWS = ("tensor.slice", "tensor.transpose", TensorView)


def materialize_window_strides() -> Pass:
    """The pass; see the module. Raises KernelValueError for a window whose strides no kernel can state."""
    return program_pass(
        "MaterializeWindowStrides",
        _materialize,
        requires={P.SplitIncoreOrch},
        looks_for=_MAKES_WINDOWS,
        only=frozenset(FunctionType) - INCORE_TYPES,
    )


def _materialize(program: Program) -> Program:
    found = Variants(program)
    return rewritten(program, found) if found.matter else program
