"""Operators say of their arguments what their instructions say of their operands."""

from __future__ import annotations

import pytest

from pypto.ops import registry
from pypto.passes.contracts import in_place, instruction_of
from pypto.pto import checks
from pypto.pto.instructions import INSTRUCTIONS

registry.get_decl("pld.tile.get")
WRITTEN = [d for d in registry.all_decls() if instruction_of(d) is not None]
A_COPY_GOES_ELSEWHERE = {"tile.move"}
"""`pto.tmov` onto its own source does nothing, and codegen writes no such copy."""


@pytest.mark.parametrize("decl", WRITTEN, ids=lambda d: d.name)
def test_compiler_and_sanitizer_agree_whose_place_a_result_may_take(decl):
    spec = instruction_of(decl)
    names = dict(zip(decl.pto.operands, (operand.name for operand in spec.ins)))
    allowed = {p.name for p in decl.args if names.get(p.name) in checks.in_place(spec)}
    assert in_place(decl.op) == (set() if decl.name in A_COPY_GOES_ELSEWHERE else allowed)


@pytest.mark.parametrize("decl", [d for d in WRITTEN if in_place(d.op)], ids=lambda d: d.name)
def test_operators_that_work_in_place_name_their_operands_in_the_order_of_the_instruction(decl):
    spec = instruction_of(decl)
    for name, operand in zip(decl.pto.operands, spec.ins, strict=False):
        kinds = decl.by_name[name].kinds
        assert operand.accepts("tile" if "tile" in kinds else "scalar"), (decl.name, name, operand)


@pytest.mark.parametrize("spec", INSTRUCTIONS.values(), ids=lambda s: s.mnemonic)
def test_only_tiles_that_are_read_or_scratch_give_their_place(spec):
    names = {o.name for o in spec.ins if o.accepts("tile")}
    assert checks.in_place(spec) <= names
