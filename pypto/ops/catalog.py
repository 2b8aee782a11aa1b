"""Which operators are reachable as ``pl.<name>``: by the first argument, or one operator under a shorter name."""

from __future__ import annotations

from typing import Final

UNIFIED: Final = (
    *("add", "sub", "mul", "div", "maximum", "minimum", "neg", "abs", "recip", "exp", "log", "sqrt", "rsqrt"),
    *("fmod", "fmods", "part_add", "part_mul", "part_max", "part_min", "sin", "cos", "cmp", "cast"),
    *("and_", "or_", "xor", "not_", "shl", "shr", "ands", "ors", "xors", "shls", "shrs"),
    *("row_sum", "row_prod", "row_max", "row_min", "row_argmax", "row_argmin"),
    *("col_sum", "col_prod", "col_max", "col_min", "col_argmax", "col_argmin"),
    *("row_expand", "row_expand_add", "row_expand_sub", "row_expand_mul", "row_expand_div", "row_expand_max"),
    *("row_expand_min", "row_expand_expdif", "col_expand", "col_expand_add", "col_expand_sub", "col_expand_mul"),
    *("col_expand_div", "col_expand_max", "col_expand_min", "col_expand_expdif", "expands", "fillpad"),
    *("fillpad_expand", "reshape", "transpose", "slice", "concat", "reinterpret_view", "set_validshape"),
    *("read", "write", "matmul", "matmul_acc", "sort32", "mrgsort", "scatter_update"),
)
"""Operators whose first argument decides between the tile and the tensor form."""

TILE_ONLY_UNIFIED: Final = ("batch_matmul", "rem", "rems")
"""Operators that say so when they are given tensors."""

IN_SPLIT_REGION: Final = ("aiv_shard", "aic_gather")
"""Operators that take their mode from the `pl.split_aiv` region they stand in."""

SCALARS: Final = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "FloatDiv", "maximum": "Max", "minimum": "Min",
    "neg": "Neg", "abs": "Abs", "cast": "Cast", "and_": "BitAnd", "or_": "BitOr", "not_": "BitNot",
    "shl": "BitShiftLeft", "shr": "BitShiftRight",
}  # fmt: skip
"""The scalar expression of a unified operator on scalars."""

_TRANSPOSE = "transpose the operand itself, pl.tile.transpose_view(tile)"
GUARDS: Final = {
    "matmul": {
        "a_trans": ("Tile", _TRANSPOSE),
        "b_trans": ("Tile", _TRANSPOSE),
        "c_matrix_nz": ("Tile", "the layout is that of the Acc tile type"),
    },
    "matmul_acc": {"a_trans": ("Tile", _TRANSPOSE), "b_trans": ("Tile", _TRANSPOSE)},
    "slice": {"clamp": ("Tile", "clamp=True is not supported for a Tile: its windows cannot be cut")},
    "rsqrt": {"high_precision": ("Tile", "pass a scratch tile instead, pl.tile.rsqrt(tile, tmp)")},
}
"""Keywords one form cannot honour: the form, and what to write instead."""

_TILE = (
    *("load", "store", "move", "extract", "create", "relu", "lrelu", "prelu", "sel", "sels", "cmps", "maximums"),
    *("minimums", "addc", "subc", "addsc", "subsc", "matmul_bias", "gemv", "gemv_acc", "gemv_bias", "tri"),
    *("gatherb", "mgather", "mscatter", "get_block_idx", "get_block_num"),
    *("get_subblock_idx", "fillpad_inplace", "tpush_to_aiv", "tpush_to_aic", "tpop_from_aic", "tpop_from_aiv"),
    *("batch_matmul_acc", "matmul_mx", "matmul_mx_acc", "matmul_mx_bias", "gemv_mx", "gemv_mx_acc", "gemv_mx_bias"),
    *("pow", "pows", "add_relu", "axpy", "quant", "quant_mx", "dequant", "histogram", "concat_idx"),
    *("part_argmax", "part_argmin"),
)
_TENSOR = (
    *("full", "assemble", "dim", "random", "gather", "gather_row", "scatter", "expand_clone", "create_l1"),
    "paged_gather",
)
_SYSTEM = (
    *("reserve_buffer", "import_peer_buffer", "aic_initialize_pipe", "aiv_initialize_pipe", "tfree_to_aic"),
    *("tfree_to_aiv",),
)
PROMOTED: Final = (
    {name: f"tile.{name}" for name in _TILE if name != "create"}
    | {name: f"tensor.{name}" for name in _TENSOR}
    | {name: f"system.{name}" for name in _SYSTEM}
    | {"create_tile": "tile.create", "create_tensor": "tensor.create", "arange": "tensor.ci"}
)
"""Operators of one level under a name of their own."""

ALIASES: Final = {
    ("tile", "arange"): "ci",
    ("tensor", "arange"): "ci",
    ("tile", "create_tile"): "create",
    ("tensor", "create_tensor"): "create",
}
"""Second names inside a namespace."""
