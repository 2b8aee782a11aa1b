"""What the instruction of an operator says of the operator's arguments."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ..backend.target import Target
from ..ir.expr import Call, Op
from ..ir.types import TileType, Type, static_dims
from ..ops.registry import OpDecl, get_decl, rebind
from ..ops.signature import ArgEffect

if TYPE_CHECKING:
    from ..pto.shapes import Tile
    from ..pto.spec import Instruction, Site


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


def element_types(decl: OpDecl, arch: str, operand: str = "dst") -> frozenset[str] | None:
    """The element types an operator takes for an operand of its instruction, those that `LegalizeTileOps` sees to too.

    None where its instruction states no limit.
    """
    from ..pto.checks import element_types as allowed_by, stand_in
    from ..pto.elements import DATA_TYPES

    spec = instruction_of(decl)
    allowed = None if spec is None else allowed_by(spec, arch, operand)
    if spec is None or allowed is None:
        return None
    more = {d for d in DATA_TYPES if d and stand_in(spec, arch, d, operand) is not None}
    more |= {d for d, wide in spec.through.items() if wide in allowed}
    other = tile_form(decl)
    return allowed | more | ((element_types(other, arch) or frozenset()) if other is not None else frozenset())


def tile_form(decl: OpDecl) -> OpDecl | None:
    """The bitwise operator on two tiles that one with a scalar stands for."""
    short = decl.name.removeprefix("tile.")
    return get_decl(f"tile.{short[:-1]}") if short in ("ands", "ors", "xors") else None


def site_of(call: Call, target: Target) -> Site | None:
    """What the instruction of a call will see of its operands; None without one, and for tiles of open extents."""
    from ..pto.spec import Site

    decl: OpDecl = call.op.decl
    spec, bound = instruction_of(decl), rebind(call)
    if spec is None or decl.pto is None:
        return None
    names = dict(zip(decl.pto.operands, (operand.name for operand in spec.ins)))
    if "tmp" in decl.by_name:
        names["tmp"] = "tmp"
    types = {names[n]: _seen(bound.type(n)) for n in names if bound.values.get(n) is not None}
    types["dst"] = _seen(call.type)
    attrs = {attr.name: attr.default for attr in spec.attrs.values()}
    given = {key: bound[name] for key, name in decl.pto.attrs.items() if bound[name] is not None}
    attrs |= {key: "ON" if attrs[key] == "OFF" and value is True else value for key, value in given.items() if value}
    return None if None in types.values() else Site(spec, {n: t for n, t in types.items() if t}, attrs, target)


def _seen(type: Type) -> Tile | str | None:
    from ..pto.shapes import Tile

    if not isinstance(type, TileType):
        return getattr(getattr(type, "dtype", None), "mlir", "") or ""
    dims = static_dims(type.shape)
    if dims is None or len(dims) != 2 or type.dtype.mlir is None:
        return None
    view = type.get_effective_tile_view()
    rows, cols = (getattr(d, "value", None) for d in view.valid_shape)
    return Tile("vec", type.dtype.mlir, *dims, rows, cols, view.blayout.name, view.slayout.name)
