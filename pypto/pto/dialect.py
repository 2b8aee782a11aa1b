"""The PTO dialect: operation classes made from the instruction table, and the context they load into."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, StringAttr
from xdsl.dialects.func import Func
from xdsl.dialects.scf import Scf
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.parser import Parser

from . import asm
from .attrs import ENUMS, EnumAttr, plain
from .comm_ops import COMM_OPS
from .cross_ops import CROSS_OPS
from .instructions import INSTRUCTIONS
from .ops import OPS, AllocTile, PtoOp, commas
from .scalar_types import scalar_name
from .spec import Instruction, Operand, OperandType
from .sync_ops import SYNC_OPS
from .types import TYPES, PartitionViewType, TensorViewType, TileBufType

_INS = (
    r"ins\s*\((?P<ins>[^:{)]*?)\s*,?\s*(?P<inner>\{[^{}]*\})?\s*:"
    r"(?P<types>[^)\"%]*?)(?:,\s*\"(?P<axis>\w+)\"\s*)?"
    r"(?:\s*(?P<word>,|\bfp)\s*(?P<fp>%[\w$.#-]+)\s*:\s*(?P<fp_type>[^)]*?))?\)\s*"
)
_OUTER = r"\s*(?P<outer>\{[^{}]*\})?"
_DPS = re.compile(_INS + r"outs\s*\((?P<outs>[^:)]*):(?P<out_types>[^)]*)\)" + _OUTER)
_READS = re.compile(_INS + r"(?P<outs>)(?P<out_types>)" + _OUTER)
"""An instruction without a result."""


def operand_type(attr: Attribute) -> OperandType:
    """A tile, a window, or the name of a scalar type."""
    if isinstance(attr, (TileBufType, PartitionViewType, TensorViewType)):
        return attr.data
    return scalar_name(attr)


def operand_of(value: SSAValue) -> OperandType:
    """The type of an operand; of a tile, with the valid extents it keeps from its allocation."""
    op = value.owner
    return op.known if isinstance(op, AllocTile) else operand_type(value.type)


def _shape_of(attr: Attribute) -> str:
    if isinstance(attr, TileBufType):
        return "tile"
    return "view" if isinstance(attr, PartitionViewType) else "scalar"


class InstructionOp(PtoOp):
    """An instruction: ``pto.x ins(..) outs(..)``; `spec` is its declaration.

    Operands are those in ``ins`` then those in ``outs``; ``roles`` says which declared operand each is.
    """

    spec: ClassVar[Instruction]
    roles: tuple[Operand, ...] = ()

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        found = asm.match(parser, _DPS if cls.spec.outs else _READS, cls.spec.usage())
        in_types, out_types = asm.types_in(parser, found, "types"), asm.types_in(parser, found, "out_types")
        axis = found.group("axis")
        operands = asm.operands(parser, found, "ins", in_types)
        if found.group("fp"):
            if found.group("word") != cls.spec.apart:
                parser.raise_error(f"expected: {cls.spec.usage()}", found.start("word"), found.end("fp_type"))
            kind = asm.types_in(parser, found, "fp_type")
            operands, in_types = operands + asm.operands(parser, found, "fp", kind), in_types + kind
        operands += asm.operands(parser, found, "outs", out_types)
        roles = cls.spec.assign(tuple(map(_shape_of, in_types)), tuple(map(_shape_of, out_types)))
        if roles is None:
            parser.raise_error(f"operands do not fit {cls.spec.usage()}", found.start(), found.end("outs"))
        attributes: dict[str, Attribute] = {"axis": StringAttr(axis)} if axis else {}
        for group in ("inner", "outer"):
            if found.group(group):
                attributes |= asm.attributes_in(parser, found, group)
        op = cls.create(operands=operands, attributes=cls._checked(parser, found, attributes))
        op.roles = roles
        return op

    @classmethod
    def _checked(cls, parser: Parser, found: re.Match[str], given: dict[str, Attribute]) -> dict[str, Attribute]:
        declared = cls.spec.attrs
        checked: dict[str, Attribute] = {}
        for name, value in given.items():
            spelled = name if name in declared else _SPELLINGS.get(name, name)
            attr = declared.get(spelled)
            if attr is None:
                options = ", ".join(declared) or "none"
                parser.raise_error(f"{cls.name} has no attribute '{name}' (it has: {options})", found.start())
            if attr.kind in ENUMS and not isinstance(value, ENUMS[attr.kind]):
                parser.raise_error(f"attribute '{name}' must be #pto.{attr.kind}<..>, got {value}", found.start())
            checked[spelled] = value
        missing = [attr.name for attr in declared.values() if attr.required and attr.name not in checked]
        if missing:
            parser.raise_error(f"{cls.name} needs attribute {', '.join(missing)}", found.start(), found.end())
        return checked

    def values(self) -> dict[str, SSAValue]:
        """Operands present, by declared name."""
        return {role.name: value for role, value in zip(self._roles(), self.operands, strict=True)}

    def _roles(self) -> tuple[Operand, ...]:
        """A clone has operands but no record of which is which: match them again."""
        if not self.roles:
            shapes = tuple(_shape_of(value.type) for value in self.operands)
            for split in range(len(shapes) - len(self.spec.outs), len(shapes) + 1):
                found = self.spec.assign(shapes[:split], shapes[split:])
                if found is not None:
                    self.roles = found
                    break
        return self.roles

    def attribute_values(self) -> dict[str, Any]:
        """Every declared attribute, given or default, as a Python value."""
        found = {attr.name: attr.default for attr in self.spec.attrs.values()}
        found.update((name, plain(value)) for name, value in self.attributes.items())
        return found

    def parts(self):
        outs = [role for role in self._roles() if role in self.spec.outs]
        split = len(self.operands) - len(outs)
        scale = self.values().get("fp") if self.spec.apart else None
        last = split if scale is None else split - 1
        for word, values in (("ins", self.operands[:last]), (" outs", self.operands[split:])):
            if not values:
                continue
            yield from (f"{word}(", *commas(values), " : ", *commas([value.type for value in values]))
            if scale is not None and word == "ins":
                yield from (self.spec.apart if self.spec.apart == "," else f" {self.spec.apart}", " ", scale, " : ")
                yield scale.type
            yield ")"
        if self.attributes:
            yield " {"
            for position, (name, value) in enumerate(self.attributes.items()):
                yield from (", " if position else "", f"{name} = ", value)
            yield "}"


_SPELLINGS = {"sat_mode": "satmode", "cmp_mode": "cmpMode"}


def _operation(spec: Instruction) -> type[InstructionOp]:
    title = "".join(part.title() for part in spec.mnemonic.replace(".", "_").split("_")) + "Op"
    return type(title, (InstructionOp,), {"name": spec.op_name, "spec": spec, "__doc__": spec.doc})


OPERATIONS: dict[str, type[InstructionOp]] = {name: _operation(spec) for name, spec in INSTRUCTIONS.items()}
"""Operation class of every instruction, by mnemonic."""

_ATTRIBUTES: list[type[EnumAttr]] = list(ENUMS.values())

Pto = Dialect("pto", [*OPS, *SYNC_OPS, *COMM_OPS, *CROSS_OPS, *OPERATIONS.values()], [*TYPES, *_ATTRIBUTES])


@cache
def context() -> Context:
    """A context with PTO and the dialects its kernels use."""
    ctx = Context()
    for dialect in (Builtin, Func, Arith, Scf, Pto):
        ctx.load_dialect(dialect)
    return ctx
