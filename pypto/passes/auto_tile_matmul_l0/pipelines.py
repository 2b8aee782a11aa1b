"""Pipelines of products that their author tiled get a second accumulator, where that is sure to fit and to pay.

Such a loop computes one product an iteration, of an operand that stays and one brought to L0 anew, and writes it to
what the loop carries. With two accumulators one drains while the next fills. That pays after enough iterations:
four for results that go to global memory; eight, and accumulators of a quarter of L0C, for those that go to Mat, which
is quicker. Both have to be there at once, so everything a function may have in L0C counts.
"""

from __future__ import annotations

from ...backend.target import Target
from ...ir.enums import ForKind, MemorySpace
from ...ir.expr import Call, Var
from ...ir.program import Function
from ...ir.stmt import AssignStmt, ForStmt, YieldStmt, flatten_to_stmts
from ...ir.types import TileType
from ...ir.visitor import Visitor
from ..bodies import BodyRewriter, trip_count
from ..core_affinity import space_of
from ..lower_pipeline_loops import DOUBLE_BUFFER_C, OVERLAP_STORES, is_accumulator
from ..memory_model import tile_bytes

_TRANSFERS = ("tile.extract", "tile.move")
_OPERANDS = (MemorySpace.Left, MemorySpace.Right)
_STORE, _ASSEMBLE = "tile.store", "tile.assemble"


def double_accumulators(function: Function, target: Target) -> Function:
    """``function`` with the loops marked that get two accumulators; itself when there are none."""
    found = _Accumulators(target)
    found.visit(function.body)
    if not found.loops or found.total is None or found.total + found.extra > target.capacity(MemorySpace.Acc):
        return function
    return _Marker(found.loops).rewrite(function)


class _Accumulators(Visitor):
    """The loops to mark, and the bytes a function may need in L0C at once."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._copies = 1
        self.loops: set[ForStmt] = set()
        self.total: int | None = 0
        """What there is without marks; None when it is not known."""
        self.extra = 0
        """What the marks add."""

    def visit_for_stmt(self, op: ForStmt) -> None:
        stages = op.attrs.get("pipeline_stages", 1) if op.kind is ForKind.Pipeline else 1
        size = _worthwhile(op, stages, self._target) if stages > 1 else None
        if size is not None:
            self.loops.add(op)
            self.extra += size
        self._copies *= stages
        self.visit(op.body)
        self._copies //= stages

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        type = op.var.type
        if self.total is None or not isinstance(type, TileType) or type.memory_space is not MemorySpace.Acc:
            return
        size = tile_bytes(type, self._target)
        product = isinstance(op.value, Call) and is_accumulator(op.value)
        # Products follow one another in one accumulator; what is brought to L0C otherwise is there once a stage.
        self.total = None if size is None else self.total + size * (1 if product else self._copies)


class _Marker(BodyRewriter):
    def __init__(self, loops: set[ForStmt]) -> None:
        super().__init__()
        self._loops = loops

    def visit_for_stmt(self, op: ForStmt) -> ForStmt:
        made = op.replace(body=self.body(op.body))
        if op not in self._loops:
            return made
        return made.replace(attrs={**op.attrs, OVERLAP_STORES: False, DOUBLE_BUFFER_C: True})


def _worthwhile(loop: ForStmt, stages: int, target: Target) -> int | None:
    """The bytes of the accumulator of a loop that gains by a second one."""
    trips = trip_count(loop)
    if OVERLAP_STORES in loop.attrs or DOUBLE_BUFFER_C in loop.attrs or trips is None:
        return None
    found = _product_and_drain(loop)
    if found is None or trips % stages:
        return None
    accumulator, drain = found
    assert isinstance(accumulator.type, TileType)
    size = tile_bytes(accumulator.type, target)
    if size is None:
        return None
    if drain == _STORE:
        return size if trips >= 4 else None
    return size if trips >= 8 and 4 * size >= target.capacity(MemorySpace.Acc) else None


def _product_and_drain(loop: ForStmt) -> tuple[Var, str] | None:
    """The accumulator and the operator that writes it to what ``loop`` carries, when that is all the loop does."""
    stmts = flatten_to_stmts(loop.body)
    end = stmts.pop() if stmts else None
    if not isinstance(end, YieldStmt):
        return None
    calls: dict[Var, Call] = {}
    for stmt in stmts:
        if not isinstance(stmt, AssignStmt):
            return None
        if isinstance(stmt.value, Call):
            calls[stmt.var] = stmt.value
    products = [var for var, call in calls.items() if space_of(var) is MemorySpace.Acc or is_accumulator(call)]
    drains = [var for var, call in calls.items() if call.op.name in (_STORE, _ASSEMBLE, "tile.write")]
    if len(products) != 1 or len(drains) != 1:
        return None
    product, drain = calls[products[0]], calls[drains[0]]
    if not _brings_one_operand(loop, product, calls) or any(v is products[0] for v in end.values):
        return None
    if sum(a is products[0] for call in calls.values() for a in call.args) != 1:
        return None
    return (products[0], drain.op.name) if _is_carried(loop, products[0], drains[0], drain, end) else None


def _brings_one_operand(loop: ForStmt, product: Call, calls: dict[Var, Call]) -> bool:
    """Whether one operand of a plain product is brought from Mat by the iteration, and the other stays."""
    if product.op.name != "tile.matmul" or tuple(space_of(a) for a in product.args) != _OPERANDS:
        return False
    operands = [a for a in product.args if isinstance(a, Var)]
    moving = [calls[a] for a in operands if a in calls]
    carried = any(a is arg for a in operands for arg in loop.iter_args)
    if len(operands) != 2 or len(moving) != 1 or carried:
        return False
    return moving[0].op.name in _TRANSFERS and space_of(moving[0].args[0]) is MemorySpace.Mat


def _is_carried(loop: ForStmt, product: Var, result: Var, drain: Call, end: YieldStmt) -> bool:
    """Whether ``drain`` writes the product to a carried value, and hands it on in the same place."""
    source, dest = (0, 2) if drain.op.name == _STORE else (1, 0)
    if drain.op.name not in (_STORE, _ASSEMBLE) or drain.args[source] is not product:
        return False
    return any(arg is drain.args[dest] and value is result for arg, value in zip(loop.iter_args, end.values))
