"""A parsed function compiled once to Python closures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.func import FuncOp, ReturnOp

from pypto.backend.target import Target

# Importing these fills the table of steps.
from . import comm, control, cross, data
from .cores import Core
from .scheduler import Steps
from .steps import AnyStep, Compiler, Env, Functions, plain, resume

__all__ = ["Function", "comm", "control", "cross", "data"]


class Function:
    """A function compiled for a target: run it with the values of its parameters.

    One that ``resumes`` may have to wait for other cores: it is run by a scheduler, through `start`, others by `call`.
    """

    def __init__(self, op: FuncOp, target: Target, functions: Functions, sanitize: bool = False) -> None:
        compiler = Compiler(target, functions, sanitize)
        block = op.body.block
        self.arguments = compiler.slots_of(block.args)
        self._waiting: list[AnyStep] = compiler.block(block)
        self.steps = plain(self._waiting)
        self.resumes = len(self.steps) != len(self._waiting)
        last = block.last_op
        self.returns = compiler.slots_of(last.operands) if isinstance(last, ReturnOp) else ()
        self.template = compiler.template

    def _enter(self, core: Core, values: Sequence[Any]) -> Env:
        env = self.template.copy()
        env[0] = core
        for slot, value in zip(self.arguments, values, strict=True):
            env[slot] = value
        return env

    def call(self, core: Core, values: Sequence[Any]) -> list[Any]:
        """Run on ``core``; gives the values returned."""
        env = self._enter(core, values)
        for step in self.steps:
            step(env)
        return [env[slot] for slot in self.returns]

    def start(self, core: Core, values: Sequence[Any]) -> Steps:
        """Run on ``core`` under a scheduler; gives the values returned."""
        env = self._enter(core, values)
        yield from resume(self._waiting, env)
        return [env[slot] for slot in self.returns]
