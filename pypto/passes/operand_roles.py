"""What operators want of their tensor operands once they compute on chip."""

from __future__ import annotations

from enum import Enum

from ..ops.registry import OpDecl, get_decl


class Role(Enum):
    """What an operator wants of a tensor argument."""

    TILE = "tile"
    """Its value on chip, in vector memory."""
    VIEW = "view"
    """Its value on chip, wherever the result is wanted."""
    MATRIX = "matrix"
    """Its value as a matmul operand; one in global memory is loaded right there."""
    SOURCE = "source"
    """Its value on chip; one in global memory is loaded right there."""
    WINDOW = "window"
    """Part of it: a load from global memory, or a view of a tile."""
    MEMORY = "memory"
    """The tensor itself, wherever it is."""


_ROLES: dict[str, dict[str, Role]] = {
    "tensor.slice": {"input": Role.WINDOW},
    "tensor.view": {"input": Role.MEMORY},
    "tensor.dim": {"tensor": Role.MEMORY, "input": Role.MEMORY},
    "tensor.read": {"tensor": Role.MEMORY},
    "tensor.write": {"tensor": Role.MEMORY, "dst": Role.MEMORY},
    "tensor.assemble": {"target": Role.MEMORY, "source": Role.SOURCE},
    "tensor.matmul": {"lhs": Role.MATRIX, "rhs": Role.MATRIX},
    "tensor.matmul_acc": {"acc": Role.SOURCE, "lhs": Role.MATRIX, "rhs": Role.MATRIX},
    "tensor.expand_clone": {"input": Role.SOURCE, "target": Role.MEMORY},
    "tensor.gather_row": {"acc": Role.SOURCE, "src": Role.MEMORY},
    "pld.tensor.remote_store": {"src": Role.SOURCE, "target": Role.MEMORY},
    "tensor.paged_gather": {"src": Role.MEMORY, "indices": Role.MEMORY, "block_table": Role.MEMORY},
}

STAYS_IN_MEMORY = frozenset({"tensor.view", "tensor.expand_clone"})
"""Operators whose tensor result is in global memory."""


def computes_tile(op: str) -> bool:
    """Whether a tensor that operator ``op`` makes is on chip (an assembled one is where its target is)."""
    return op.startswith("tensor.") and op not in STAYS_IN_MEMORY


def role_of(decl: OpDecl | None, index: int) -> Role:
    """What the operator wants of its tensor argument ``index``."""
    if decl is None or index >= len(decl.args):
        return Role.MEMORY
    name = decl.args[index].name
    special = _ROLES.get(decl.name)
    if special is not None:
        return special.get(name, Role.TILE)
    if not decl.name.startswith("tensor."):
        return Role.MEMORY
    form = get_decl(decl.tile_form) if decl.tile_form else None
    viewed = form is not None and form.inherits is not None and form.arg_index(form.inherits) == index
    return Role.VIEW if viewed else Role.TILE
