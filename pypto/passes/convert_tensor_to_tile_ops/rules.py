"""Tensor operators that become something other than one tile operator on the same arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...dtypes import DataType
from ...errors import user_error
from ...ir.enums import AtomicType, MemorySpace, PadValue, TensorLayout
from ...ir.expr import Call, Expr, Var, index_const
from ...ir.naming import written_name
from ...ir.types import TensorType
from ...ops.rules import all_same, common_region, dims_text, same, value
from ...ops.tile_gather import compare_scratch
from ...ops.tile_reduce import ARG_WHAT, WHAT
from ..emitting import EmittingRewriter, build, kind_of, registering
from ..operand_roles import Role, role_of

if TYPE_CHECKING:
    from .rewrite import Converter

VEC, MAT = MemorySpace.Vec, MemorySpace.Mat
Rule = Callable[["Converter", Call, MemorySpace], Expr]
RULES: dict[str, Rule] = {}
rule = registering(RULES)
"""Decorator: the function converts calls of the operators named."""
ROW_SCRATCH_COLUMNS = 128
"""A row reduction's scratch has at least this many columns."""


# Memory.


@rule("tensor.create")
def _create(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    if cv.result is not None and cv.result in cv.plan.outputs:
        return cv.vars[cv.result]
    b = cv.bound(call)
    if b["layout"] is not TensorLayout.ND:
        raise user_error(
            ValueError,
            f"pl.create_tensor with layout={b['layout'].name} on chip: a tile has the layout of its memory",
            call.span,
            "create the tensor outside the region",
        )
    # Of the keywords, manual_dep is about tasks, whose dependencies know of no tile.
    shape, filled = cv.rewrite(b["shape"]), cv.keywords(call).get("init_value")
    if filled is not None:
        return build("tile.full", shape, span=call.span, dtype=b["dtype"], value=filled)
    return build("tile.create", shape, span=call.span, dtype=b["dtype"], target_memory=VEC)


@rule("tensor.create_l1")
def _create_l1(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    return build("tile.create", cv.rewrite(call.args[0]), span=call.span, target_memory=MAT, **cv.keywords(call))


@rule("tensor.gather_row")
def _gather_row(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    """Rows go straight from global memory into the tile."""
    acc, source, *places = cv.arguments(call)
    names = [p.name for p in call.op.decl.args[2:]]
    where = {n: cv.rewrite(p) for n, p in zip(names, places)}
    return build("tile.gather_row", cv.tile(acc), cv.rewrite(source), span=call.span, **where, **cv.keywords(call))


@rule("tensor.reinterpret_view")
def _reinterpret(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    source = call.args[0]
    if kind_of(source).layout is not TensorLayout.ND and not cv.is_tile(source):
        raise user_error(
            ValueError,
            f"pl.reinterpret_view of {_named(source)}: only packed ND tensors can be reinterpreted on chip, not one in "
            f"layout {kind_of(source).layout.name}",
            call.span,
            "reinterpret the tensor before the kernel, or take its ND view",
        )
    return cv.one_to_one(call, space)


@rule("tensor.slice")
def _slice(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    """A window: of a tile a view, of a tensor in global memory a load."""
    b = cv.bound(call)
    shape, offset, valid = (cv.rewrite(b[n]) if b[n] is not None else None for n in ("shape", "offset", "valid_shape"))
    if valid is not None and not valid.elements:
        valid = None
    if cv.is_tile(b["input"]):
        if b["clamp"]:
            raise user_error(
                ValueError,
                "pl.slice with clamp reads global memory, and its source is computed on chip",
                call.span,
                "state the part that is there: valid_shape=[...]",
            )
        kwargs = {"pad_value": b["pad_value"]} if b["pad_value"] is not PadValue.null else {}
        made = build("tile.slice", cv.tile(b["input"], space), shape, offset, valid, span=call.span, **kwargs)
    else:
        made = _window(cv, cv.rewrite(b["input"]), offset, shape, valid, space, call)
    return _dropped(cv, made, call, b["drop_dims"] is not None and len(b["drop_dims"].elements) > 0)


def _window(
    cv: Converter, tensor: Expr, offset: Any, shape: Any, valid: Any, space: MemorySpace, call: Call
) -> Call:
    clamp = {"clamp": True} if cv.bound(call)["clamp"] else {}
    made = cv.load_call(tensor, offset, shape, valid or shape, space, call.span, **clamp)
    region = kind_of(made).valid_shape
    if valid is None and not clamp and not all(same(a, b) for a, b in zip(region, kind_of(made).shape)):
        made = cv.load_call(tensor, offset, shape, region, space, call.span)
    return made


def _dropped(cv: Converter, made: Call, call: Call, drop: bool) -> Call:
    """``made`` without the unit dimensions the call drops."""
    pad = cv.bound(call)["pad_value"]
    if pad not in (None, PadValue.null) and made.op.name == "tile.load":
        made = build("tile.fillpad", cv.emit("window__tile", made), span=call.span, pad_value=pad)
    if not drop:
        return made
    name = written_name(cv.result.name_hint) if cv.result is not None else "window"
    return build("tile.reshape", cv.emit(f"{name}__whole", made), list(kind_of(call).shape), span=call.span)


@rule("tensor.assemble")
def _assemble(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    """A write into part of a tensor: a store, or a copy between tiles."""
    b = cv.bound(call)
    target, offset = b["target"], cv.rewrite(b["offset"])
    if cv.is_tile(target):
        if b["atomic"] is not AtomicType.None_:
            raise user_error(
                ValueError,
                "pl.assemble adds atomically to a global-memory destination only, and this one is a tile on chip",
                call.span,
                "leave out atomic=: nothing else writes the tile; or assemble into a tensor parameter",
            )
        return build("tile.assemble", cv.tile(target), cv.tile(b["source"]), offset, span=call.span)
    kwargs = {"atomic": b["atomic"]} if "atomic" in call.kwargs else {}
    source = cv.tile(b["source"], stored=True)
    return build("tile.store", source, offset, cv.rewrite(target), span=call.span, **kwargs)


@rule("tensor.reshape", "tensor.transpose")
def _reshaped(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    """A valid region stated for the result narrows the tile afterwards."""
    b = cv.bound(call)
    region = b["valid_shape"].elements if b["valid_shape"] is not None else ()
    viewed = role_of(call.op.decl, 0) is Role.VIEW
    source = cv.tile(b["input"], space if viewed else VEC)
    made = build(_tile_name(call), source, *(cv.rewrite(a) for a in _plain_args(call)), span=call.span)
    if not region or all(same(x, y) for x, y in zip(region, kind_of(made).valid_shape)):
        return made
    if len(region) != 2:
        raise user_error(
            ValueError,
            f"valid_shape {dims_text(region)} of a {len(region)}-dimensional value cannot be kept on chip",
            call.span,
            "give valid_shape to pl.slice where the value is read",
        )
    name = written_name(cv.result.name_hint) if cv.result is not None else "value"
    rows, columns = (cv.rewrite(d) for d in region)
    return build("tile.set_validshape", cv.emit(f"{name}__whole", made), rows, columns, span=call.span)


def _plain_args(call: Call) -> Sequence[Expr]:
    return call.args[1 : 2 if call.op.name == "tensor.reshape" else 3]


@rule("tensor.view")
def _view(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    source = call.args[0]
    if cv.is_tile(source):
        raise user_error(
            ValueError,
            "pl.tensor.view reinterprets a tensor in global memory; its input is the result of an op lowered to Tile",
            call.span,
            "reshape the value with pl.reshape, or take the view of the tensor before computing with it",
        )
    return cv.generic(call)


@rule("tensor.read")
def _read(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    tensor, indices = call.args
    if cv.on_chip(tensor):
        return build("tile.read", cv.tile(tensor), cv.rewrite(indices), span=call.span)
    return cv.generic(call)


@rule("tensor.write")
def _write(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    tensor, indices, element = call.args
    if cv.is_tile(tensor):
        return build("tile.write", cv.tile(tensor), cv.rewrite(indices), cv.rewrite(element), span=call.span)
    if cv.on_chip(tensor):
        raise user_error(
            ValueError,
            f"{_named(tensor)} is read whole into a tile and also written element by element in global memory",
            call.span,
            "write the elements in one scope and compute with the tensor in another",
        )
    return cv.generic(call)


@rule("tensor.dim")
def _dim(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    if not cv.on_chip(call.args[0]):
        return cv.generic(call)
    axis = value(cv.bound(call)["axis"])
    return cv.generic(call) if axis is None else cv.rewrite(kind_of(call.args[0]).shape[axis])


def _named(tensor: Expr) -> str:
    return repr(written_name(tensor.name_hint)) if isinstance(tensor, Var) else "the tensor"


# Matrix multiplication.


@rule("tensor.matmul")
def _matmul(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    b = cv.bound(call)
    lhs = cv.matrix(b["lhs"], b["a_trans"], "lhs")
    rhs = cv.matrix(b["rhs"], b["b_trans"], "rhs")
    if b["c_matrix_nz"]:
        raise user_error(
            NotImplementedError,
            "a kernel's product has no layout of its own: c_matrix_nz is not supported on chip",
            call.span,
            "assemble or store the product into a tensor of layout pl.NZ",
        )
    form = "tile.batch_matmul" if _batched(lhs, rhs) else "tile.matmul"
    made = build(form, lhs, rhs, span=call.span)
    only_stored = cv.stored if cv.result is None else cv.result not in cv.plan.computed_with
    wanted = b["out_dtype"] or kind_of(call).dtype
    if kind_of(made).dtype is wanted or only_stored:
        return made
    # The cube accumulates in one dtype; a store converts on its way out, any other consumer needs the declared one.
    made = cv.emit("product__tile", made)
    return build("tile.cast", made, span=call.span, target_type=wanted, mode="rint")


@rule("tensor.matmul_acc")
def _matmul_acc(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    b = cv.bound(call)
    acc = cv.tile(b["acc"])
    lhs = cv.matrix(b["lhs"], b["a_trans"], "lhs")
    rhs = cv.matrix(b["rhs"], b["b_trans"], "rhs")
    form = "tile.batch_matmul_acc" if _batched(acc, lhs, rhs) else "tile.matmul_acc"
    first = {} if b["init_cond"] is None else {"init_cond": cv.rewrite(b["init_cond"])}
    return build(form, acc, lhs, rhs, span=call.span, **first)


def _batched(*operands: Expr) -> bool:
    return any(len(kind_of(o).shape) > 2 for o in operands)


# Operators that need a scratch tile.


def scratch(cv: EmittingRewriter, name: str, shape: Sequence[Expr], dtype: Any, call: Call) -> Var:
    """A scratch tile ahead of the statement at hand."""
    return cv.emit(name, build("tile.create", list(shape), span=call.span, dtype=dtype, target_memory=VEC))


_REDUCTIONS = tuple(f"tensor.{axis}_{kind}" for axis in ("row", "col") for kind in WHAT)
_ARG_REDUCTIONS = tuple(f"tensor.{axis}_{kind}" for axis in ("row", "col") for kind in ARG_WHAT)


@rule(*_REDUCTIONS, *_ARG_REDUCTIONS)
def _reduction(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    """Along the last dimension or the one before; scratch as the tile operator wants it."""
    b = cv.bound(call)
    source = cv.tile(b["input"])
    *_, kind = call.op.name.split("_")
    rank = len(kind_of(source).shape)
    default = 1 if call.op.name.startswith("tensor.row") else 2
    axis, keep = (-default if b["axis"] is None else b["axis"]) % rank, b["keep_dim"]
    along = {1: "row", 2: "col"}.get(rank - axis)
    if along is None:
        raise user_error(
            NotImplementedError,
            f"{call.op.name} along dimension {axis} of {dims_text(kind_of(source).shape)}: a core reduces the "
            "last two dimensions",
            call.span,
            "reshape the value so that the dimension is the last or the one before",
        )
    if rank == 1:
        source = cv.emit("reduced__row", build("tile.reshape", source, [1, *kind_of(source).shape], span=call.span))
    made = build(f"tile.{along}_{kind}", source, *_reduction_scratch(cv, along, kind, source, call), span=call.span)
    if keep and rank > 1:
        return made
    made = cv.emit("reduced__whole", made)
    if not keep and rank == 1:
        return build("tile.read", made, [0, 0], span=call.span)
    return build("tile.reshape", made, list(kind_of(call).shape), span=call.span)


def _reduction_scratch(cv: Converter, along: str, kind: str, source: Expr, call: Call) -> Sequence[Expr]:
    *rows, columns = kind_of(source).shape
    if along == "row" and kind in WHAT:
        known = value(columns)
        columns = columns if known is None else index_const(max(known, ROW_SCRATCH_COLUMNS))
    elif kind in WHAT:
        return ()
    return (scratch(cv, "tmp_tile", [*rows, columns], kind_of(source).dtype, call),)


@rule("tensor.rsqrt")
def _rsqrt(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    source = cv.tile(call.args[0])
    if not cv.bound(call)["high_precision"]:
        return build("tile.rsqrt", source, span=call.span)
    tmp = scratch(cv, "rsqrt_tmp", kind_of(source).shape, kind_of(source).dtype, call)
    return build("tile.rsqrt", source, tmp, span=call.span)


@rule("tensor.mrgsort_format2")
def _merge(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    runs = {p.name: cv.tile(a) for p, a in zip(call.op.decl.args, cv.arguments(call))}
    tmp = scratch(cv, "mrgsort_tmp", kind_of(call).shape, kind_of(call).dtype, call)
    return build("tile.mrgsort_format2", span=call.span, tmp=tmp, **runs)


@rule("tensor.xor", "tensor.xors")
def _xor(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    lhs, rhs = (cv.tile(a) for a in call.args[:2])
    tmp = scratch(cv, "xor_tmp", kind_of(lhs).shape, kind_of(lhs).dtype, call)
    return build(_tile_name(call), lhs, rhs, tmp, span=call.span)


@rule("tensor.cmp")
def _cmp(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    """A comparison of tiles is a packed mask; 1 and 0 are selected by it."""
    b = cv.bound(call)
    lhs, rhs = cv.tile(b["lhs"]), cv.tile(b["rhs"]) if isinstance(b["rhs"].type, TensorType) else cv.rewrite(b["rhs"])
    mask = cv.emit("cmp_mask", build("tile.cmp", lhs, rhs, span=call.span, cmp_type=b["cmp_type"]))
    one, zero = (cv.emit(f"cmp_{value}", build("tile.expands", lhs, value, span=call.span)) for value in (1, 0))
    tmp = scratch(cv, "cmp_tmp", [index_const(1), index_const(32)], DataType.UINT8, call)
    return build("tile.sel", mask, one, zero, tmp, span=call.span)


def _tile_name(call: Call) -> str:
    return "tile." + call.op.name.split(".", 1)[1]


@rule("tensor.gather_compare")
def _gather_compare(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    b = cv.bound(call)
    source = cv.tile(b["input"])
    rows, columns = (value(d) for d in kind_of(source).shape)
    if rows is None or columns is None:
        raise user_error(
            ValueError,
            f"{call.op.name} needs an input of known shape: its scratch depends on it",
            call.span,
            "slice the tensor to a shape of constants first, with valid_shape= for what there is of it",
        )
    _, size = compare_scratch(rows, columns, kind_of(source).dtype)
    tmp = scratch(cv, "gather_tmp", [index_const(1), index_const(size)], DataType.UINT8, call)
    stated = {name: b[name] for name in ("cmp_mode", "offset", "out_cols")}
    return build("tile.gather_compare", source, cv.rewrite(b["kvalue"]), tmp, span=call.span, **stated)


# Broadcasts.

_EXPANDS = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "maximum": "max", "minimum": "min"}
_COMMUTATIVE = frozenset({"add", "mul", "maximum", "minimum"})


@rule(*(f"tensor.{name}" for name in _EXPANDS))
def _elementwise(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    """Two operands of one shape, or a matrix and a row or column that repeats over it."""
    if not all(isinstance(a.type, TensorType) for a in call.args[:2]):
        return cv.one_to_one(call)
    name = call.op.name.split(".", 1)[1]
    lhs, rhs = (_as_dtype(cv, cv.tile(a), call) for a in call.args[:2])
    if _same_shape(lhs, rhs):
        if name == "div" and all_same(*(kind_of(a).valid_shape for a in call.args[:2])):
            lhs, rhs = _alike(cv, lhs, rhs, call)
        return build(f"tile.{name}", lhs, rhs, span=call.span, **cv.keywords(call))
    lhs, rhs = _same_rank(cv, lhs, rhs, call)
    if name in _COMMUTATIVE and _expand_axis(lhs, rhs) is None and _expand_axis(rhs, lhs) is not None:
        lhs, rhs = rhs, lhs
    axis = _expand_axis(lhs, rhs)
    if axis is None:
        _refuse_left_vector(name, lhs, rhs, call)
        return build(f"tile.{name}", lhs, rhs, span=call.span, **cv.keywords(call))
    if name == "div":
        _check_division(cv, axis, lhs, rhs, call)
    return build(f"tile.{axis}_expand_{_EXPANDS[name]}", lhs, rhs, span=call.span)


def _alike(cv: Converter, lhs: Expr, rhs: Expr, call: Call) -> tuple[Expr, Expr]:
    """Tiles narrowed to what both hold, of tensors whose types do not tell that they hold different parts."""
    shape = kind_of(lhs).shape
    region = common_region(kind_of(lhs).valid_shape, kind_of(rhs).valid_shape, shape)
    if len(shape) != 2:
        return lhs, rhs
    made = [
        t if all_same(kind_of(t).valid_shape, region)
        else cv.emit("operand__valid", build("tile.set_validshape", t, *region, span=call.span))
        for t in (lhs, rhs)
    ]  # fmt: skip
    return made[0], made[1]


def _as_dtype(cv: Converter, operand: Expr, call: Call) -> Expr:
    """``operand`` in the dtype the operator computes in."""
    if kind_of(operand).dtype is kind_of(call).dtype:
        return operand
    made = build("tile.cast", operand, span=call.span, target_type=kind_of(call).dtype)
    return cv.emit("operand__cast", made)


def _same_rank(cv: Converter, lhs: Expr, rhs: Expr, call: Call) -> tuple[Expr, Expr]:
    """The operand of lower rank reshaped with leading unit dimensions."""
    rank = max(len(kind_of(lhs).shape), len(kind_of(rhs).shape))
    made = []
    for operand in (lhs, rhs):
        shape = kind_of(operand).shape
        if len(shape) < rank:
            padded = [index_const(1)] * (rank - len(shape)) + list(shape)
            operand = cv.emit("operand__row", build("tile.reshape", operand, padded, span=call.span))
        made.append(operand)
    return made[0], made[1]


def _expand_axis(matrix: Expr, vector: Expr) -> str | None:
    """``row`` for a ``[.., M, 1]`` vector beside a ``[.., M, N]`` matrix, ``col`` for ``[1, N]``; else None."""
    m, v = kind_of(matrix).shape, kind_of(vector).shape
    if len(m) != len(v) or len(m) < 2:
        return None
    if value(v[-1]) == 1 and all(same(a, b) for a, b in zip(m[:-1], v[:-1])):
        return "row"
    return "col" if all(value(d) == 1 for d in v[:-1]) and same(m[-1], v[-1]) else None


def _refuse_left_vector(name: str, lhs: Expr, rhs: Expr, call: Call) -> None:
    axis = _expand_axis(rhs, lhs)
    if axis is None:
        return
    shapes = f"{dims_text(kind_of(lhs).shape)} and {dims_text(kind_of(rhs).shape)}"
    if axis == "row":
        why = "row-vector lhs broadcast is not possible, the instruction takes the matrix first"
    else:
        why = "it requires src0, src1, and dst to have the same physical shape, or the matrix first"
    hint = f"repeat the left operand first with pl.{axis}_expand, then {name}"
    raise user_error(ValueError, f"{call.op.name} of {shapes}: {why}", call.span, hint)


def _check_division(cv: Converter, axis: str, lhs: Expr, rhs: Expr, call: Call) -> None:
    if cv.bound(call)["high_precision"]:
        raise user_error(
            ValueError,
            f"tensor.div with high_precision does not support {axis} broadcasting: "
            f"{dims_text(kind_of(lhs).shape)} / {dims_text(kind_of(rhs).shape)}",
            call.span,
            f"repeat the divisor first with pl.{axis}_expand, or leave high_precision out",
        )
    if kind_of(lhs).dtype not in (DataType.FP16, DataType.FP32):
        raise user_error(
            ValueError,
            f"tensor.div with {axis} broadcasting supports only FP16 or FP32, got {kind_of(lhs).dtype}",
            call.span,
            "convert both operands: pl.cast(value, pl.FP32)",
        )
    shared = 0 if axis == "row" else -1
    have, need = kind_of(rhs).valid_shape[shared], kind_of(lhs).valid_shape[shared]
    known_have, known_need = value(have), value(need)
    covered = same(have, need) or (known_have is not None and known_need is not None and known_have >= known_need)
    if not covered and not same(have, kind_of(rhs).shape[shared]):
        raise user_error(
            ValueError,
            f"tensor.div with {axis} broadcasting requires the divisor valid {axis}s to cover the dividend's: "
            f"valid {dims_text(kind_of(rhs).valid_shape)} divides valid {dims_text(kind_of(lhs).valid_shape)}",
            call.span,
        )


def _same_shape(a: Expr, b: Expr) -> bool:
    x, y = kind_of(a).shape, kind_of(b).shape
    return len(x) == len(y) and all(same(p, q) for p, q in zip(x, y))
