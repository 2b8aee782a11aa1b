"""LegalizeTileOps: operators whose instruction a target does not take for these elements, written so that it does.

What an instruction takes is in its declaration (`pypto.pto.spec`). An instruction that only moves or counts elements
(``bits``) is given the same bytes under another element type; one with a wider type that gives the same results
(``through``) computes in that; a scalar form that is lacking is the tile form of a tile full of the scalar. Where
none of this helps the call is left as it is, and refused when it is written. Without a target (in the pass context or
as the backend) nothing is known of instructions, and nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..backend.target import Target
from ..dtypes import DataType
from ..ir.enums import MemorySpace, PadValue
from ..ir.expr import Call, Cast, ConstInt, Expr, Var, index_const
from ..ir.naming import written_name
from ..ir.node import NodeList
from ..ir.program import Program
from ..ir.scalar import scalar_const
from ..ir.stmt import AssignStmt, Stmt
from ..ir.types import TileType
from ..ops.registry import OpDecl, decl_of, rebind
from ..ops.rules import all_same, value
from ..ops.signature import ArgEffect
from .base import Pass
from .context import PassContext
from .contracts import instruction_of, site_of, tile_form
from .emitting import EmittingRewriter, build, kind_of, reinfer


def legalize_tile_ops() -> Pass:
    """The pass."""
    return Pass("LegalizeTileOps", _run, looks_for=tuple(_RULES))


def _run(program: Program, context: PassContext) -> Program:
    if not context.has_target:
        return program
    target = context.target
    return program.map_functions(lambda f: _Legalizer(target).rewrite(f) if f.is_incore else f)


class _Legalizer(EmittingRewriter):
    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target
        self.name = ""

    def rewrite_assign(self, op: AssignStmt) -> Stmt:
        call = op.value
        if not isinstance(call, Call) or decl_of(call) is None:
            return self.generic(op)
        rule = _RULES.get(call.op.name)
        self.name = written_name(op.var.name_hint)
        seen = self._on_new_operands(call)
        made = (rule(self, seen) if rule is not None else None) or seen
        if made is call:
            return self.generic(op)
        if made.type == op.var.type:
            return op.replace(value=made, var=self.define(op.var))
        var = self.vars[op.var] = Var(op.var.name_hint, made.type, op.var.span)
        return op.replace(value=made, var=var)

    def _on_new_operands(self, call: Call) -> Call:
        """``call`` on what its operands became; of another type where one of theirs is."""
        args = [self.rewrite(arg) for arg in call.args]
        if all(new is old for new, old in zip(args, call.args)):
            return call
        if any(new.type != old.type for new, old in zip(args, call.args)):
            return reinfer(call, args)
        return call.replace(args=NodeList(args))

    def takes(self, decl: OpDecl, dtype: DataType, operand: str) -> bool:
        """Whether the operator's instruction takes elements of ``dtype`` for an operand here."""
        from ..pto.checks import element_types

        spec = instruction_of(decl)
        allowed = None if spec is None else element_types(spec, self.target.module_arch, operand)
        return allowed is None or dtype.mlir in allowed

    def bits_of(self, decl: OpDecl, dtype: DataType, operand: str = "dst") -> DataType | None:
        """The element type of the same width whose place ``dtype`` takes, where the instruction only moves bits."""
        from ..pto.checks import stand_in
        from ..pto.elements import data_type

        spec = instruction_of(decl)
        own = dtype.mlir or ""
        name = None if spec is None else stand_in(spec, self.target.module_arch, own, operand)
        return None if name is None or name == own else data_type(name)

    def seen_as(self, tile: Expr, dtype: DataType, call: Call) -> Expr:
        return self.emit(f"{self.name}_bits", build("tile.reinterpret_view", tile, dtype, span=call.span))

    def add(self, suffix: str, call: Call) -> Var:
        return self.emit(f"{self.name}_{suffix}", call)


def _same_bits(scalar: Expr, dtype: DataType) -> Expr:
    """An integer scalar as the element of ``dtype`` with the same bits."""
    if not isinstance(scalar, ConstInt):
        return scalar if scalar.dtype in (dtype, DataType.INDEX) else Cast(scalar, dtype, scalar.span)
    bits = int(scalar.value) & ((1 << dtype.bits) - 1)
    signed = dtype.int_range()[0] < 0 and bits >> (dtype.bits - 1)
    return scalar_const(bits - (1 << dtype.bits) if signed else bits, dtype, scalar.span)


def _filled(to: _Legalizer, call: Call) -> Call | None:
    """`full`: other integers of the same width, or two 8-bit elements at a time."""
    b = rebind(call)
    dtype, scalar, shape = b["dtype"], b["value"], list(b.dims("shape"))
    as_type = to.bits_of(call.op.decl, dtype)
    if as_type is None and to.takes(call.op.decl, dtype, "dst"):
        return None
    columns = value(shape[-1])
    if as_type is None and (dtype.bits != 8 or not dtype.is_int() or columns is None or columns % 2):
        return None
    if as_type is None:
        as_type, scalar = DataType.INT16, _twice(scalar)
        shape[-1] = index_const((columns or 0) // 2)
    made = build("tile.full", shape, as_type, _same_bits(scalar, as_type), span=call.span)
    return build("tile.reinterpret_view", to.add("bits", made), dtype, span=call.span)


def _twice(scalar: Expr) -> Expr:
    """An 8-bit scalar in both bytes of a 16-bit one."""
    if isinstance(scalar, ConstInt):
        return scalar_const((int(scalar.value) & 0xFF) * 0x0101, DataType.UINT16, scalar.span)
    byte = Cast(Cast(scalar, DataType.UINT8, scalar.span), DataType.UINT16, scalar.span)
    return byte * scalar_const(0x0101, DataType.UINT16, scalar.span)


def _expanded(to: _Legalizer, call: Call) -> Call | None:
    """`expands` as `full`, of which as much is valid as of the target."""
    b = rebind(call)
    target, dtype = b.type("target"), kind_of(call).dtype
    if to.takes(call.op.decl, dtype, "dst") or target.memory_space is MemorySpace.Mat:
        return None
    full = build("tile.full", list(target.shape), dtype, b["scalar"], span=call.span)
    made = _filled(to, full)
    if made is None or all_same(kind_of(call).valid_shape, target.shape):
        return made
    return build("tile.set_validshape", to.add("filled", made), *kind_of(call).valid_shape, span=call.span)


def _counted(to: _Legalizer, call: Call) -> Call | None:
    """`ci` of unsigned integers counts signed ones: the bits are the same."""
    b = rebind(call)
    as_type = to.bits_of(call.op.decl, b["dtype"])
    if as_type is None:
        return None
    start = _same_bits(b["start"], as_type)
    shape, down = list(b.dims("shape")), b["descending"]
    made = build("tile.ci", start, shape, dtype=as_type, descending=down, span=call.span)
    return build("tile.reinterpret_view", to.add("bits", made), b["dtype"], span=call.span)


def _extracted(to: _Legalizer, call: Call) -> Call | None:
    """`extract` within Vec moves elements of any type of a width it has."""
    b = rebind(call)
    dtype = kind_of(call).dtype
    as_type = to.bits_of(call.op.decl, dtype) if kind_of(call).memory_space is MemorySpace.Vec else None
    if as_type is None:
        return None
    source = to.seen_as(b["src"], as_type, call)
    at = [b["index_row"], b["index_col"]]
    made = build("tile.extract", source, *at, list(b.dims("shape")), target_memory=MemorySpace.Vec, span=call.span)
    return build("tile.reinterpret_view", to.add("bits", made), dtype, span=call.span)


def _power(to: _Legalizer, call: Call) -> Call | None:
    """`pows` of unsigned integers raises signed ones: both wrap to the same bits."""
    b = rebind(call)
    dtype = kind_of(call).dtype
    as_type = to.bits_of(call.op.decl, dtype)
    if as_type is None:
        return _through(to, call)
    base = to.seen_as(b["lhs"], as_type, call)
    made = build("tile.pows", base, _same_bits(b["rhs"], as_type), span=call.span)
    return build("tile.reinterpret_view", to.add("bits", made), dtype, span=call.span)


def _through(to: _Legalizer, call: Call) -> Call | None:
    """Operands converted to the wider type that the instruction says gives the same results."""
    from ..pto.elements import data_type

    decl, b = call.op.decl, rebind(call)
    dtype = b.type("lhs").dtype
    spec = instruction_of(decl)
    operand = "dst" if kind_of(call).dtype is dtype else "src0" if decl.name == "tile.cmp" else "src"
    if spec is None or to.takes(decl, dtype, operand):
        return None
    wide = data_type(spec.through.get(dtype.mlir or "", ""))
    if wide is None or not (to.target.can_cast(dtype, wide) and to.target.can_cast(wide, dtype)):
        return None
    args = []
    for param, arg in zip(decl.slots(call.args), call.args):
        if isinstance(arg.type, TileType) and param.name in ("lhs", "rhs"):
            cast = build("tile.cast", arg, target_type=wide, mode="none", span=call.span)
            arg = to.emit(f"{to.name}_{param.name}", cast)
        elif param.name == "rhs":
            arg = Cast(arg, wide, arg.span)
        elif param.name == "tmp":
            shape = list(kind_of(arg).shape)
            arg = to.add("tmp", build("tile.create", shape, wide, target_memory=MemorySpace.Vec, span=call.span))
        args.append(arg)
    made = build(decl.name, *args, span=call.span, **call.kwargs)
    if kind_of(made).dtype is not wide:
        return made
    return build("tile.cast", to.add("wide", made), target_type=dtype, mode="rint", span=call.span)


def _compared(to: _Legalizer, call: Call) -> Call | None:
    """`cmp` through a wider type, to a mask of the operands' extents where the target wants them equal."""
    call = _through(to, call) or call
    b = rebind(call)
    if to.target.quirks.mask_as_wide and call.op.name == "tile.cmp":
        return build("tile.cmp_wide", b["lhs"], b["rhs"], cmp_type=b["cmp_type"], span=call.span)
    return call


def _combined(to: _Legalizer, call: Call) -> Call | None:
    """A scalar form that is lacking, by a tile full of the scalar."""
    decl, b = call.op.decl, rebind(call)
    dtype = kind_of(call).dtype
    other = tile_form(decl)
    if to.takes(decl, dtype, "dst") or other is None or not to.takes(other, dtype, "dst"):
        return None
    full = build("tile.full", list(kind_of(call).shape), dtype, b["rhs"], span=call.span)
    tile = to.add("scalar", _filled(to, full) or full)
    more = [b["tmp"]] if "tmp" in decl.by_name else []
    return build(other.name, b["lhs"], tile, *more, span=call.span)


def _added(to: _Legalizer, call: Call) -> Call | None:
    """`add_relu` by two instructions: its own has no lowering."""
    b = rebind(call)
    total = to.add("sum", build("tile.add", b["lhs"], b["rhs"], span=call.span))
    if kind_of(call).dtype.is_float():
        return build("tile.relu", total, span=call.span)
    return build("tile.maximums", total, 0, span=call.span)


def _padded(to: _Legalizer, call: Call) -> Call | None:
    """On whole tiles, padded with zeros, where the instruction wants constant extents and the run tells them."""
    from ..pto.checks import open_extents

    site = site_of(call, to.target)
    if site is None or not open_extents(site):
        return None
    decl, region = call.op.decl, list(kind_of(call).valid_shape)
    args = [
        to.add("whole", build("tile.fillpad", arg, pad_value=PadValue.zero, span=call.span))
        if param.effect is ArgEffect.Read and isinstance(arg.type, TileType) else arg
        for param, arg in zip(decl.slots(call.args), call.args)
    ]  # fmt: skip
    made = to.add("all", build(decl.name, *args, span=call.span, **call.kwargs))
    return build("tile.set_validshape", made, *region, span=call.span)


def _summed(to: _Legalizer, call: Call) -> Call | None:
    """`col_sum` of as many rows as the run tells, row after row instead of as a tree."""
    from ..pto.checks import open_extents

    b = rebind(call)
    scratch = b["tmp_tile"] is not None and site_of(call, to.target)
    return build("tile.col_sum", b["tile"], span=call.span) if scratch and open_extents(scratch) else None


Rule = Callable[[_Legalizer, Any], "Call | None"]
_RULES: dict[str, Rule] = {
    "tile.full": _filled,
    "tile.expands": _expanded,
    "tile.ci": _counted,
    "tile.extract": _extracted,
    "tile.pow": _through,
    "tile.pows": _power,
    "tile.cmp": _compared,
    "tile.cmps": _compared,
    "tile.ands": _combined,
    "tile.ors": _combined,
    "tile.xors": _combined,
    "tile.add_relu": _added,
    "tile.cast": _padded,
    "tile.prelu": _padded,
    "tile.col_sum": _summed,
}
