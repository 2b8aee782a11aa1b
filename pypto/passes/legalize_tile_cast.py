"""LegalizeTileCast: a cast the target has no single instruction for becomes the shortest chain of ones it has.

A chain to an integer gives what one instruction would, for every value and also out of range: floats are rounded once,
integers keep the low bits that are wanted, or saturate. A chain to a float loses no value the cast would keep: the
range of every type on the way holds whatever is in the range of both ends. Of the shortest chains the one with the
fewest types that round or narrow on the way is taken; of those, the one that first goes to a float of the same width.
Without a target (in the pass context or as the backend) nothing is known of instructions, and nothing changes.
"""

from __future__ import annotations

from functools import lru_cache

from ..backend.target import Target
from ..dtypes import DataType
from ..errors import user_error
from ..ir.expr import Call, Expr, Var
from ..ir.naming import written_name
from ..ir.program import Program
from ..ir.stmt import AssignStmt, EvalStmt, Stmt
from .base import Pass
from .context import PassContext
from .emitting import EmittingRewriter, build, kind_of


def legalize_tile_cast() -> Pass:
    """The pass. Raises KernelValueError for a cast the target has no chain for."""
    return Pass("LegalizeTileCast", _run, looks_for=("tile.cast",))


def _run(program: Program, context: PassContext) -> Program:
    if not context.has_target:
        return program
    target = context.target
    return program.map_functions(lambda f: _Legalizer(target).rewrite(f) if f.is_incore else f)


class _Legalizer(EmittingRewriter):
    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target

    def rewrite_assign(self, op: AssignStmt) -> Stmt:
        call = op.value
        if not isinstance(call, Call) or call.op.name != "tile.cast":
            return self.generic(op)
        return op.replace(value=self._chain(call, op.var), var=self.define(op.var))

    def rewrite_eval(self, op: EvalStmt) -> Stmt:
        call = op.expr
        if not isinstance(call, Call) or call.op.name != "tile.cast":
            return self.generic(op)
        return op.replace(expr=self._chain(call, None))

    def _chain(self, call: Call, result: Var | None) -> Call:
        """The last cast of the chain, the others emitted before it."""
        source, wanted = kind_of(call.args[0]).dtype, kind_of(call).dtype
        saturate = bool(call.kwargs.get("saturate"))
        steps = cast_chain(self.target, source, wanted, saturate)
        if steps is None:
            raise user_error(
                ValueError,
                f"{self.target.name} has no native cast path from {source} to {wanted}",
                call.span,
                _advice(self.target, source),
            )
        value: Expr = self.rewrite(call.args[0])
        if len(steps) <= 1 and value is call.args[0]:
            return call
        extra = {k: v for k, v in call.kwargs.items() if k in ("mode", "saturate")}
        name = written_name(result.name_hint) if result is not None else "cast"
        for dtype in steps[:-1]:
            if not saturate and wanted.is_int() and _outgrows(kind_of(value).dtype, dtype):
                low = build("tile.ands", value, (1 << wanted.bits) - 1, span=call.span)
                value = self.emit(f"{name}_low", low)
            hop = build("tile.cast", value, span=call.span, target_type=dtype, **extra)
            value = self.emit(f"{name}_{dtype.name.lower()}", hop)
        return build("tile.cast", value, span=call.span, target_type=wanted, **extra)


def _advice(target: Target, source: DataType) -> str:
    direct = ", ".join(d.name for d in target.casts.get(source, ()))
    return f"{source} converts to {direct}" if direct else f"{target.name} has no conversion from {source}"


@lru_cache(maxsize=1024)
def cast_chain(
    target: Target, source: DataType, wanted: DataType, saturate: bool = False
) -> tuple[DataType, ...] | None:
    """The types a cast goes through, ``wanted`` last; None when the target has no chain that keeps every value."""
    if source is wanted or target.can_cast(source, wanted):
        return (wanted,)
    if not all(d in _FLOATS or d.is_int() for d in (source, wanted)):
        return None
    chains: list[tuple[DataType, ...]] = [()]
    while chains:
        longer = [
            (*chain, step)
            for chain in chains
            for step in target.casts.get(chain[-1] if chain else source, ())
            if step is not source
            and step not in chain
            and _continues(chain[-1] if chain else source, step, source, wanted, saturate)
        ]
        done = [chain for chain in longer if chain[-1] is wanted]
        if done:
            return min(done, key=lambda chain: _preference(chain, source, wanted))
        chains = longer
    return None


def _continues(before: DataType, step: DataType, source: DataType, wanted: DataType, saturate: bool) -> bool:
    """Whether a chain that has come to ``before`` may go on to ``step``."""
    if wanted in _FLOATS:
        return step is wanted or _keeps(step, source, wanted)
    if step in _FLOATS:
        return _holds(step, before) or (_outgrows(before, step) and wanted.bits == 8)
    (low, high), (least, most) = _span(wanted), _span(step)
    return step is wanted or (least <= low and high <= most if saturate else step.bits >= wanted.bits)


def _holds(step: DataType, before: DataType) -> bool:
    """Whether a float has all values of another type."""
    (low, high), (least, most), bits = _span(before), _span(step), _FLOATS[step][0]
    digits = _FLOATS[before][0] if before in _FLOATS else before.bits - before.is_signed_int()
    return least <= low and high <= most and digits <= bits


def _outgrows(before: DataType, step: DataType) -> bool:
    """Whether ``step`` is a float that holds the low 8 bits of the integers of ``before``, but not all of them."""
    return step is DataType.FP16 and before is DataType.INT16


def _span(dtype: DataType) -> tuple[float, float]:
    """The least and greatest finite value."""
    if not dtype.is_float():
        low, high = dtype.int_range()
        return float(low), float(high)
    limit = _FLOATS[dtype][1]
    return -limit, limit


_FLOATS: dict[DataType, tuple[int, float]] = {
    DataType.FP32: (24, 3.4028234663852886e38),
    DataType.BF16: (8, 3.3895313892515355e38),
    DataType.FP16: (11, 65504.0),
    DataType.FP8E4M3FN: (4, 448.0),
    DataType.FP8E5M2: (3, 57344.0),
    DataType.HF8: (4, 32768.0),
    DataType.FP4: (2, 6.0),
}
"""Significant bits and greatest value."""


def _common(source: DataType, wanted: DataType) -> tuple[float, float]:
    (low, high), (least, most) = _span(source), _span(wanted)
    return max(low, least), min(high, most)


def _keeps(step: DataType, source: DataType, wanted: DataType) -> bool:
    """Whether ``step`` holds fractions if both ends do, and its range what is in the range of both."""
    fractions = source.is_float() and wanted.is_float()
    if step not in _FLOATS and (fractions or step.is_float()):
        return False
    (low, high), (least, most) = _common(source, wanted), _span(step)
    return least <= low and high <= most


def _rounds(step: DataType, source: DataType, wanted: DataType) -> bool:
    """Whether a cast to ``step`` may round a value the cast to ``wanted`` would round differently."""
    if not step.is_float():
        return False
    bits = _FLOATS[step][0]
    if source.is_float():
        return bits < _FLOATS[source][0]
    low, high = _common(source, wanted)
    return max(-low, high) > 2.0**bits


def _preference(chain: tuple[DataType, ...], source: DataType, wanted: DataType) -> tuple[int, int]:
    """Steps that may change a value, and whether the first is anything but a float of the source's width."""
    (low, high), first = _span(source), chain[0]
    spans = [_span(step) for step in chain[:-1]]
    narrower = sum(not (least <= low and high <= most) for least, most in spans)
    rounding = sum(_rounds(step, source, wanted) for step in chain[:-1])
    return rounding + narrower, 0 if first.is_float() and first.bits == source.bits else 1
