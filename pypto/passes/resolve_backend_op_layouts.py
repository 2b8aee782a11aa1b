"""ResolveBackendOpLayouts: operands in the layout and with the valid region that element-by-element instructions take.

A column ``[N, 1]`` lies in memory as the row ``[1, N]`` does, so it is viewed as one for the instruction and viewed as
a column again afterwards. A single element of a row is stored to a tensor of columns as one of a column. Any other
layout is copied to row-major order and back. An operand that is valid further out than the result is narrowed to it, so
that the instruction sees one region. Without a target (in the pass context or as the backend) nothing is known of
instructions, and nothing changes.
"""

from __future__ import annotations

from typing import Any

from ..errors import user_error
from ..ir.enums import TileLayout
from ..ir.expr import Call, Expr, Var, index_const
from ..ir.naming import written_name
from ..ir.program import Function, Program
from ..ir.stmt import AssignStmt, EvalStmt, Stmt
from ..ir.types import TileType, implicit_layout
from ..ops.registry import decl_of
from ..ops.rules import all_same, at_most, dims_text, same, value
from ..ops.signature import ArgEffect
from .base import P, Pass
from .context import PassContext
from .emitting import EmittingRewriter, build, kind_of, reinfer

_FLAT = (TileLayout.row_major, TileLayout.none_box)


def resolve_backend_op_layouts() -> Pass:
    """The pass. Raises KernelValueError for a column in an operator whose result has no row form."""
    properties = {P.SSAForm, P.IncoreTileOps, P.SplitIncoreOrch, P.TileOps2D}
    return Pass(
        "ResolveBackendOpLayouts",
        _run,
        requires=properties,
        produces=properties | {P.NormalizedStmtStructure},
        looks_for=(TileType,),
    )


def _run(program: Program, context: PassContext) -> Program:
    return program.map_functions(_repair) if context.has_target else program


def _repair(function: Function) -> Function:
    return _Repairer().rewrite(function) if function.is_incore else function


def _layout(value: Expr) -> tuple[TileLayout, TileLayout] | None:
    kind = value.type
    if not isinstance(kind, TileType):
        return None
    view = kind.tile_view
    return implicit_layout(kind.shape, kind.memory_space)[:2] if view is None else (view.blayout, view.slayout)


def _is_column(operand: Expr) -> bool:
    shape = kind_of(operand).shape
    return len(shape) == 2 and value(shape[1]) == 1 and value(shape[0]) != 1


def _is_element_for_column(call: Call) -> bool:
    """Whether ``call`` stores one element of a row-major row to a tensor of columns, whose window is stated as one."""
    if call.op.name != "tile.store":
        return False
    tile, tensor = kind_of(call.args[0]), kind_of(call.args[2])
    one = [value(d) for d in tile.valid_shape] == [1, 1] and value(tile.shape[0]) == 1 != value(tile.shape[1])
    return one and _layout(call.args[0]) == _FLAT and len(tensor.shape) > 1 and value(tensor.shape[-1]) == 1


def _alike(a: Expr, b: Expr) -> bool:
    return _layout(a) == _layout(b) and all_same(kind_of(a).shape, kind_of(b).shape)


def _wider_operands(call: Call) -> dict[int, list[Expr]]:
    """Operands that are valid further out than the result, by index, and the region the result has for them."""
    result, decl = call.type, decl_of(call)
    if decl is None or not isinstance(result, TileType) or len(result.shape) != 2:
        return {}
    found = {}
    for i, (param, arg) in enumerate(zip(decl.slots(call.args), call.args)):
        kind = arg.type
        if param.effect is not ArgEffect.Read or not isinstance(kind, TileType) or len(kind.valid_shape) != 2:
            continue
        region = [
            limit if same(size, room) and (at_most(limit, extent) or same(extent, size)) else extent
            for size, extent, room, limit in zip(kind.shape, kind.valid_shape, result.shape, result.valid_shape)
        ]
        if not all_same(region, kind.valid_shape):
            found[i] = region
    return found


class _Repairer(EmittingRewriter):
    def rewrite_assign(self, op: AssignStmt) -> Stmt:
        call = op.value
        if isinstance(call, Call) and _is_element_for_column(call):
            return op.replace(value=self._as_column(call), var=self.define(op.var))
        if not isinstance(call, Call) or not self._concerns(call):
            return self.generic(op)
        name = written_name(op.var.name_hint)
        made = self._on_rows(call, name)
        if isinstance(made.type, TileType) and not _alike(call, made):
            made = self._restored(call, self.emit(f"{name}_row", made))
        if made.type == op.var.type:
            return op.replace(value=made, var=self.define(op.var))
        var = self.vars[op.var] = Var(op.var.name_hint, made.type, op.var.span)
        return op.replace(value=made, var=var)

    def rewrite_eval(self, op: EvalStmt) -> Stmt:
        call = op.expr
        if isinstance(call, Call) and _is_element_for_column(call):
            return op.replace(expr=self._as_column(call))
        if not isinstance(call, Call) or not self._concerns(call):
            return self.generic(op)
        return op.replace(expr=self._on_rows(call, "operand"))

    def _as_column(self, store: Call) -> Call:
        """``store`` of a column, which lies in memory as the row does."""
        tile, *others = (self.rewrite(a) for a in store.args)
        column = build("tile.reshape", tile, [kind_of(tile).shape[1], index_const(1)], span=store.span)
        return reinfer(store, [self.emit("element_column", column), *others])

    def _concerns(self, call: Call) -> bool:
        decl = decl_of(call)
        if decl is None:
            return False
        if decl.row_major and any(_layout(a) not in (None, _FLAT) for a in (*call.args, call)):
            return True
        return decl.same_valid and bool(_wider_operands(call))

    def _on_rows(self, call: Call, name: str) -> Call:
        """``call`` on row-major operands, where it needs those, that are valid where its result is."""
        args = [self.rewrite(a) for a in call.args]
        decl = decl_of(call)
        if decl is None or not decl.row_major:
            return self._narrowed(reinfer(call, args), name)
        columns = any(_layout(a) not in (None, _FLAT) and _is_column(a) for a in args)
        made: list[Expr] = []
        for arg in args:
            layout = _layout(arg)
            if layout is None or (layout == _FLAT and not (columns and _is_column(arg))):
                made.append(arg)
            elif layout[1] is TileLayout.none_box and _is_column(arg):
                row = [index_const(1), kind_of(arg).shape[0]]
                made.append(self.emit(f"{name}_row", build("tile.reshape", arg, row, span=call.span)))
            else:
                made.append(self.emit(f"{name}_row", _copied(arg, _FLAT, call)))
        return self._narrowed(reinfer(call, made), name)

    def _narrowed(self, call: Call, name: str) -> Call:
        """``call`` on operands that are valid where its result is."""
        decl = decl_of(call)
        wider = _wider_operands(call) if decl is not None and decl.same_valid else {}
        if not wider:
            return call
        made = list(call.args)
        for i, region in wider.items():
            made[i] = self.emit(f"{name}_valid", build("tile.set_validshape", made[i], *region, span=call.span))
        return reinfer(call, made)

    def _restored(self, call: Call, row: Var) -> Call:
        """``row``, a row-major result, in the shape and layout ``call`` promised."""
        want, have = kind_of(call).shape, kind_of(row).shape
        if all_same(want, have):
            layout: Any = _layout(call)
            return _copied(row, layout, call)
        if _is_column(call) and value(have[0]) == 1 and all_same(want[:1], have[1:]):
            return build("tile.reshape", row, list(want), span=call.span)
        raise user_error(
            ValueError,
            f"{call.op.name} of a column vector has no row form: the result {dims_text(want)} is not one value for "
            "each row",
            call.span,
            "work on a row: pl.reshape(column, [1, N])",
        )


def _copied(tile: Expr, layout: tuple[TileLayout, TileLayout], call: Call) -> Call:
    blayout, slayout = layout
    space = kind_of(tile).memory_space
    return build("tile.move", tile, span=call.span, target_memory=space, blayout=blayout, slayout=slayout)
