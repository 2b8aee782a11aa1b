"""Tensor operators that reduce, expand and multiply."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dtypes import DataType
from ..ir.expr import Expr, index_const
from ..ir.scalar import promote
from ..ir.types import ScalarType, Type
from .registry import Bound, declare
from .rules import (
    INT_OR_FLOAT,
    all_same,
    check_dtype,
    dim_text,
    dims_text,
    dtype_names,
    same,
    shaped,
    tensor_type,
    valid_of,
    value,
)
from .tensor_elementwise import kept_region
from .tile_expand import ADD_DTYPES, ARITHMETIC
from .tile_matmul import accumulator_dtype, batch_dims, check_init_cond
from .tile_reduce import ARG_WHAT, WHAT, check_not_empty, reduced

# Reductions.


def _reduce(
    default_axis: int, dtype: DataType | None = None, dtypes: Sequence[DataType] = ()
) -> Callable[[Bound], Type]:
    def rule(b: Bound) -> Type:
        t = b.type("input")
        if dtypes:
            check_dtype(b, "input", dtypes, "input")
        rank = len(t.shape)
        axis = default_axis if b["axis"] is None else b["axis"]
        if rank == 0 or not -rank <= axis < rank:
            raise b.fail(f"cannot reduce axis {axis} of {shaped(t)}")
        axis %= rank
        valid = valid_of(b, "input")
        check_not_empty(b, valid, axis)
        element = dtype or t.dtype
        if b["keep_dim"]:
            return tensor_type(reduced(t.shape, axis), element, reduced(valid, axis))
        shape = [d for i, d in enumerate(t.shape) if i != axis]
        if not shape:
            return ScalarType(element)
        return tensor_type(shape, element, [d for i, d in enumerate(valid) if i != axis])

    return rule


_AXES = "in input: tensor, attr axis: int? = None, attr keep_dim: bool = True"
for _which, _axis, _result in (("row", -1, "a column ``[M, 1]``"), ("col", -2, "a row ``[1, N]``")):
    for _name, _what in WHAT.items():
        declare(
            f"tensor.{_which}_{_name}",
            _AXES,
            _reduce(_axis, None, INT_OR_FLOAT if (_which, _name) == ("row", "min") else ()),
            f"The {_what} along each {'row' if _which == 'row' else 'column'}'s valid part, as {_result}.",
            tile_form=f"tile.{_which}_{_name}",
        )
    for _name, _what in ARG_WHAT.items():
        declare(
            f"tensor.{_which}_{_name}",
            _AXES,
            _reduce(_axis, DataType.INT32),
            f"In each {'row' if _which == 'row' else 'column'}, {_what} (INT32), the first of equals, as {_result}.",
            tile_form=f"tile.{_which}_{_name}",
        )


# Repeating a column, a row, a scalar.


def _row(exact: bool) -> Callable[[Bound], Type]:
    def rule(b: Bound) -> Type:
        main, row = b.type("input"), b.type("row_vec")
        if exact:
            if main.dtype is not row.dtype:
                raise b.fail(f"requires src0 and src1 to have the same dtype, got {shaped(main)} and {shaped(row)}")
            if main.dtype not in ADD_DTYPES:
                raise b.fail(f"requires dtype in {{{dtype_names(ADD_DTYPES)}}}, got {main.dtype}")
        if len(row.shape) != len(main.shape) or len(row.shape) < 2 or value(row.shape[-1]) not in (1, None):
            raise b.fail(f"requires row_vec [M, 1] beside input [M, N], got {shaped(main)} and {shaped(row)}")
        if not all_same(main.shape[:-1], row.shape[:-1]):
            raise b.fail(f"requires row_vec to have the input's rows, got {shaped(main)} and {shaped(row)}")
        return tensor_type(main.shape, promote(main.dtype, row.dtype), kept_region(b, "input"))

    return rule


def _col(b: Bound) -> Type:
    main, col = b.type("input"), b.type("col_vec")
    if len(col.shape) != len(main.shape) or len(col.shape) < 2 or value(col.shape[-2]) not in (1, None):
        raise b.fail(f"requires col_vec [1, N] beside input [M, N], got {shaped(main)} and {shaped(col)}")
    if not same(main.shape[-1], col.shape[-1]):
        raise b.fail(f"requires col_vec to have the input's columns, got {shaped(main)} and {shaped(col)}")
    return tensor_type(main.shape, promote(main.dtype, col.dtype), kept_region(b, "input"))


for _name, _what in ARITHMETIC.items():
    _words = _what.replace("tile", "input")
    declare(
        f"tensor.row_expand_{_name}",
        "in input: tensor, in row_vec: tensor",
        _row(_name == "add"),
        f"Row by row, {_words}, where vector is that row's element of ``row_vec`` ``[M, 1]``.",
        tile_form=f"tile.row_expand_{_name}",
    )
    declare(
        f"tensor.col_expand_{_name}",
        "in input: tensor, in col_vec: tensor",
        _col,
        f"Column by column, {_words}, where vector is that column's element of ``col_vec`` ``[1, N]``.",
        tile_form=f"tile.col_expand_{_name}",
    )
declare(
    "tensor.row_expand",
    "in input: tensor, in row_vec: tensor",
    _row(False),
    "A tensor of ``input``'s shape whose rows repeat that row's element of ``row_vec`` ``[M, 1]``.",
    tile_form="tile.row_expand",
)
declare(
    "tensor.col_expand",
    "in input: tensor, in col_vec: tensor",
    _col,
    "A tensor of ``input``'s shape whose every row is ``col_vec`` ``[1, N]``.",
    tile_form="tile.col_expand",
)


def _expands(b: Bound) -> Type:
    t = b.type("target")
    return tensor_type(t.shape, t.dtype, kept_region(b, "target"))


declare(
    "tensor.expands",
    "in target: tensor, in scalar: scalar like target",
    _expands,
    "A tensor of ``target``'s shape and dtype filled with ``scalar``.",
    tile_form="tile.expands",
)


def _expand_clone(b: Bound) -> Type:
    source, target = b.type("input"), b.type("target")
    if len(source.shape) != len(target.shape):
        raise b.fail(f"requires one rank, got {shaped(source)} and {shaped(target)}")
    grown = [i for i, (s, t) in enumerate(zip(source.shape, target.shape)) if not same(s, t)]
    if len(grown) > 1 or any(value(source.shape[i]) != 1 for i in grown):
        raise b.fail(f"repeats one dimension of size 1, got {shaped(source)} to {shaped(target)}")
    return tensor_type(target.shape, source.dtype)


declare(
    "tensor.expand_clone",
    "in input: tensor, out target: tensor",
    _expand_clone,
    "``input`` repeated along its dimension of size 1 to ``target``'s shape, written to ``target``.",
    reuses="target",
)

# Products.

_FLAGS = "attr a_trans: bool = False, attr b_trans: bool = False"


def _matrix(b: Bound, name: str, flag: str) -> tuple[list[Expr], Expr, Expr]:
    """Batch dimensions, rows and columns of an operand, transposed if it says so. A vector is one row or column."""
    t = b.type(name)
    if len(t.shape) == 0:
        raise b.fail(f"requires {name} to have at least 1 dimension")
    if len(t.shape) == 1:
        if b[flag]:
            raise b.fail(f"{flag} does not apply to a 1D {name}: a vector has nothing to exchange")
        one = index_const(1)
        return ([], one, t.shape[0]) if name == "lhs" else ([], t.shape[0], one)
    rows, columns = t.shape[-2:]
    if b[flag]:
        rows, columns = columns, rows
    return list(t.shape[:-2]), rows, columns


def _product_shape(b: Bound) -> tuple[list[Expr], Expr, Expr]:
    left_batch, rows, left_k = _matrix(b, "lhs", "a_trans")
    right_batch, right_k, columns = _matrix(b, "rhs", "b_trans")
    if not same(left_k, right_k) and (value(left_k) is not None) == (value(right_k) is not None):
        raise b.fail(
            f"requires the contracted dimensions to match: lhs K={dim_text(left_k)} and rhs K={dim_text(right_k)} of "
            f"{shaped(b.type('lhs'))} and {shaped(b.type('rhs'))}",
            "a_trans and b_trans exchange an operand's last two dimensions",
        )
    return batch_dims(b, left_batch, right_batch), rows, columns


def _check_dtypes(b: Bound) -> None:
    left, right = b.type("lhs"), b.type("rhs")
    if left.dtype is not right.dtype and left.dtype.is_int() != right.dtype.is_int():
        raise b.fail(
            f"requires operands of one dtype, got {shaped(left)} and {shaped(right)}",
            f"cast one: pl.cast(rhs, pl.{left.dtype.name})",
        )


def _matmul(b: Bound) -> Type:
    _check_dtypes(b)
    left, right = b.type("lhs"), b.type("rhs")
    batch, rows, columns = _product_shape(b)
    shape = list(batch)
    if len(left.shape) > 1:
        shape.append(rows)
    if len(right.shape) > 1:
        shape.append(columns)
    met = promote(left.dtype, right.dtype)
    dtype = b["out_dtype"] or (accumulator_dtype(met) if met.is_int() else met)
    return tensor_type(shape, dtype, _product_region(b, shape))


def _product_region(b: Bound, shape: Sequence[Expr]) -> Sequence[Expr]:
    """The valid rows of lhs by the valid columns of rhs."""
    left, right = b.type("lhs"), b.type("rhs")
    if len(left.shape) != 2 or len(right.shape) != 2:
        return ()
    rows = valid_of(b, "lhs")[1 if b["a_trans"] else 0]
    columns = valid_of(b, "rhs")[0 if b["b_trans"] else 1]
    return () if all_same((rows, columns), shape) else (rows, columns)


declare(
    "tensor.matmul",
    f"in lhs: tensor, in rhs: tensor, attr out_dtype: DataType? = None, {_FLAGS}, attr c_matrix_nz: bool = False",
    _matmul,
    "lhs @ rhs, over broadcast leading batch dimensions. ``a_trans`` / ``b_trans`` exchange an operand's last two "
    "dimensions; ``out_dtype``, unless stated, is the operands' dtype for floating point and INT32 for integers.",
    tile_form="tile.matmul",
)


def _matmul_acc(b: Bound) -> Type:
    _check_dtypes(b)
    acc = b.type("acc")
    batch, rows, columns = _product_shape(b)
    shape = [*batch, rows, columns]
    if len(acc.shape) != len(shape) or not all_same(acc.shape[:-2], batch):
        raise b.fail(f"requires each acc batch dim to match the product's {dims_text(shape)}, got {shaped(acc)}")
    if not all_same(acc.shape, shape):
        raise b.fail(f"requires acc of shape {dims_text(shape)}, got {shaped(acc)}")
    wanted = accumulator_dtype(b.type("lhs").dtype)
    if acc.dtype is not wanted:
        raise b.fail(f"requires accumulator dtype {wanted} for {b.type('lhs').dtype} operands, got {shaped(acc)}")
    check_init_cond(b)
    return tensor_type(acc.shape, acc.dtype, kept_region(b, "acc"))


declare(
    "tensor.matmul_acc",
    f"inout acc: tensor, in lhs: tensor, in rhs: tensor, in init_cond: scalar?, {_FLAGS}",
    _matmul_acc,
    "acc += lhs @ rhs. Where ``init_cond`` (a BOOL scalar) holds, acc is overwritten instead.",
    reuses="acc",
    tile_form="tile.matmul_acc",
)
