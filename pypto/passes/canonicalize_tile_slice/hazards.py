"""What codegen must refuse: windows it would have to copy over their own live source.

The ``tile.col_expand_*`` operators read no view. Codegen copies a slice they are given into the slice's own buffer,
which lies inside the source. That is safe only as an identity copy. This pass has replaced every plain slice for which
it is not; a slice with ``valid_shape`` or ``drop_dims`` is left as written and may still be one.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.expr import Call, ConstInt, Expr, Var
from ...ir.types import TileType, static_dims
from ...ops.registry import rebind
from .analysis import is_dense, root_place
from .rewrite import COL_EXPAND


def reads_no_view(op_name: str) -> bool:
    """Whether an operator's tile operands are copied out of the view they are given."""
    return op_name.startswith(COL_EXPAND)


def repack_hazard(call: Call, slice_of: Callable[[Var], Call | None]) -> str | None:
    """Why copying the window of a ``tile.slice`` call into its own buffer destroys the source; None when it does not.

    ``slice_of`` gives the call that defines a variable, where that is a slice.
    """
    shape = static_dims(rebind(call).dims("shape"))
    step: Call | None = call
    source: Expr = call
    while step is not None:
        bound = rebind(step)
        if not all(isinstance(o, ConstInt) for o in bound.dims("offset")):
            return "it is a dynamic-offset tile.slice, so its buffer starts where the source starts"
        source = bound["tile"]
        step = slice_of(source) if isinstance(source, Var) else None
    if shape is None or len(shape) != 2 or not isinstance(source.type, TileType):
        return None
    if all(is_dense(shape, strides) for strides in root_place(source.type).strides):
        return None
    return "its rows lie apart in the source but not in its own buffer, so the copy overwrites rows it has yet to read"
