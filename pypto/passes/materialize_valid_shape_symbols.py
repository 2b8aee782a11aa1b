"""MaterializeValidShapeSymbols: extents that only a caller knows become parameters of kernels.

A symbol in the ``valid_shape`` of a kernel's parameter that is neither an extent of a tensor parameter nor a scalar
parameter has no value in the kernel. It becomes a leading INDEX parameter: leading, because the types of the others
mention it. Every call passes what the argument's own ``valid_shape`` says in the same place.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import user_error
from ..ir.enums import ParamDirection
from ..ir.expr import Call, Expr, GlobalVar, Submit, Var
from ..ir.naming import written_name
from ..ir.program import INCORE_TYPES, Function, Program
from ..ir.structural import structural_equal
from ..ir.types import TensorType, Type
from ..ir.visitor import Rewriter, find_all
from .base import Pass, program_pass
from .wrapper_directions import WRAPPERS, with_leading_args


def materialize_valid_shape_symbols() -> Pass:
    """The pass; see the module. Raises KernelValueError when a call does not say what a symbol is."""
    return program_pass("MaterializeValidShapeSymbols", _materialize, only=INCORE_TYPES | WRAPPERS)


def _materialize(program: Program) -> Program:
    needed: dict[str, tuple[Function, list[Var]]] = {}
    for function in program.functions.values():
        if function.is_incore or function.func_type in WRAPPERS:
            symbols = _unbound_symbols(function)
            if symbols:
                needed[function.name] = function, symbols
    if not needed:
        return program

    def change(function: Function) -> Function:
        made = _Callers(needed).rewrite(function)
        if function.name not in needed:
            return made
        symbols = needed[function.name][1]
        return made.with_params([*((s, ParamDirection.In) for s in symbols), *made.directed_params()])

    return program.map_functions(change)


def _valid_shape(type: Type) -> Sequence[Expr]:
    """The extents a tensor's type states, where it states any."""
    view = type.tensor_view if isinstance(type, TensorType) else None
    return view.valid_shape if view is not None else ()


def _unbound_symbols(function: Function) -> list[Var]:
    """The symbols of valid shapes that nothing in the signature gives a value, in order."""
    bound = set(function.params)
    for param in function.params:
        if isinstance(param.type, TensorType):
            bound.update(d for d in param.type.shape if isinstance(d, Var))
    found: dict[Var, None] = {}
    for param in function.params:
        for extent in _valid_shape(param.type):
            found.update((v, None) for v in find_all(extent, Var) if v not in bound)
    return list(found)


class _Callers(Rewriter):
    """Passes the symbols at calls."""

    def __init__(self, needed: dict[str, tuple[Function, list[Var]]]) -> None:
        super().__init__()
        self._needed = needed

    def visit_call(self, op: Call | Submit) -> Expr:
        made = self.generic(op)
        entry = self._needed.get(op.op.name) if isinstance(op.op, GlobalVar) else None
        if entry is None:
            return made
        callee, symbols = entry
        extents = [_extent(symbol, callee, made) for symbol in symbols]
        return with_leading_args(made, extents)

    visit_submit = visit_call


def _extent(symbol: Var, callee: Function, call: Call | Submit) -> Expr:
    """What ``call`` says ``symbol`` is."""
    name = written_name(symbol.name_hint)
    found: Expr | None = None
    missing: int | None = None
    for i, param in enumerate(callee.params):
        for axis, declared in enumerate(_valid_shape(param.type)):
            if declared is not symbol:
                continue
            if i >= len(call.args):
                missing = i
                continue
            type = call.args[i].type
            actual = (_valid_shape(type) or getattr(type, "shape", ()))[axis]
            if found is not None and not structural_equal(found, actual):
                raise user_error(
                    ValueError,
                    f"{name!r} of {callee.name!r} is one extent, but the arguments of this call have two",
                    call.span,
                    "give the parameters symbols of their own, or pass arguments that are valid alike",
                )
            found = actual
    if found is not None:
        return found
    if missing is not None:
        raise user_error(
            ValueError,
            f"{callee.name!r} needs {name!r}, an extent of its parameter {missing} "
            f"({written_name(callee.params[missing].name_hint)}), but this launch does not supply that argument",
            call.span,
            "Pass the argument explicitly, or make the extent a pl.Scalar[pl.INDEX] parameter",
        )
    raise user_error(
        ValueError,
        f"{name!r} of {callee.name!r} stands in its valid_shape only inside an expression, which is not solved for it",
        callee.span,
        f"state {name} by itself in some parameter's valid_shape, or make it a pl.Scalar[pl.INDEX] parameter",
    )
