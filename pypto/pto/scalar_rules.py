"""The types of scalars that loops, branches and casts hand on: what MLIR asks and xDSL leaves unchecked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.dialects.scf import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from xdsl.ir import Operation, SSAValue

from .elements import numpy_type
from .errors import PtoError
from .scalar_types import scalar_name


def check_scalars(op: Operation) -> None:
    """Raise PtoError where values meet types that are not theirs."""
    rule = _RULES.get(type(op))
    if rule is not None:
        rule(op)


def _types(values: Sequence[SSAValue]) -> list[str]:
    return [scalar_name(v.type) for v in values]


def _equal(op: Operation, what: str, given: Sequence[SSAValue], wanted: Sequence[SSAValue]) -> None:
    found, want = _types(given), _types(wanted)
    if found != want:
        raise PtoError(f"'{op.name}' {what} ({', '.join(want)}), got ({', '.join(found)})")


def _yield(op: YieldOp) -> None:
    parent = op.parent_op()
    if isinstance(parent, (IfOp, ForOp)):
        _equal(op, f"gives the results of its {parent.name},", op.operands, parent.results)
    elif isinstance(parent, WhileOp):
        _equal(op, "gives what its scf.while goes on with,", op.operands, parent.arguments)


def _branch(op: IfOp) -> None:
    if not op.results:
        return
    for region in (op.true_region, op.false_region):
        if not region.blocks or not isinstance(region.block.last_op, YieldOp):
            raise PtoError(f"'{op.name}' with results ({', '.join(_types(op.results))}) yields them in both branches")


def _condition(op: ConditionOp) -> None:
    parent = op.parent_op()
    if isinstance(parent, WhileOp):
        _equal(op, "gives the results of its scf.while,", op.operands[1:], parent.results)
        _equal(op, "gives what the body begins with,", op.operands[1:], parent.after_region.block.args)


def _bits(value: SSAValue) -> int:
    kind = value.type
    return kind.width.data if isinstance(kind, IntegerType) else 8 * numpy_type(scalar_name(kind)).itemsize


def _float_cast(op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    grows = op.name == "arith.extf"
    if _bits(source) == _bits(result) or (_bits(source) < _bits(result)) is not grows:
        raise PtoError(f"'{op.name}' makes a {'wider' if grows else 'narrower'} number, not "
                       f"{_types([source])[0]} to {_types([result])[0]}")  # fmt: skip


_RULES: dict[type[Operation], Callable] = {
    YieldOp: _yield,
    IfOp: _branch,
    ConditionOp: _condition,
    arith.ExtFOp: _float_cast,
    arith.TruncFOp: _float_cast,
}
