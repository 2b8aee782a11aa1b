"""A parsed function compiled once to Python closures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.func import FuncOp, ReturnOp

from pypto.backend.target import Target

# Importing these fills the table of steps.
from . import control, data
from .cores import Core
from .steps import Compiler, Invoke

__all__ = ["Function", "control", "data"]


class Function:
    """A function compiled for a target: run it with the values of its parameters."""

    def __init__(self, op: FuncOp, target: Target, invoke: Invoke, sanitize: bool = False) -> None:
        compiler = Compiler(target, invoke, sanitize)
        block = op.body.block
        self.arguments = compiler.slots_of(block.args)
        self.steps = compiler.block(block)
        last = block.last_op
        self.returns = compiler.slots_of(last.operands) if isinstance(last, ReturnOp) else ()
        self.template = compiler.template

    def call(self, core: Core, values: Sequence[Any]) -> list[Any]:
        """Run on ``core``; gives the values returned."""
        env = self.template.copy()
        env[0] = core
        for slot, value in zip(self.arguments, values, strict=True):
            env[slot] = value
        for step in self.steps:
            step(env)
        return [env[slot] for slot in self.returns]
