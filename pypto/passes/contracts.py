"""What the instruction of an operator says of the operator's arguments."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ..ir.expr import Op
from ..ops.registry import OpDecl
from ..ops.signature import ArgEffect

if TYPE_CHECKING:
    from ..pto.spec import Instruction


def instruction_of(decl: OpDecl) -> Instruction | None:
    """The instruction an operator is written as."""
    from ..pto.instructions import INSTRUCTIONS

    return None if decl.pto is None else INSTRUCTIONS.get(decl.pto.mnemonic.removeprefix("pto."))


@cache
def in_place(op: Op) -> frozenset[str]:
    """The arguments whose buffer the result of an operator may take while the operator works.

    Those of its instruction, unless the operator itself is not in-place safe; without an instruction, all that it only
    reads.
    """
    from ..pto.checks import in_place as shared

    decl: OpDecl | None = op.decl
    if decl is None:
        return frozenset()
    spec = instruction_of(decl)
    if spec is None or decl.pto is None:
        return frozenset(p.name for p in decl.args if p.effect is ArgEffect.Read and decl.inplace_safe)
    names = dict(zip(decl.pto.operands, (operand.name for operand in spec.ins)))
    return frozenset(p.name for p in decl.args if decl.inplace_safe and names.get(p.name) in shared(spec))
