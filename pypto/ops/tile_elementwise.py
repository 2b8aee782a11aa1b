"""Tile operators that compute each element from the elements at its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import DataType
from ..ir.enums import MemorySpace
from ..ir.expr import Expr, index_const
from ..ir.types import TileType, Type
from .registry import Bound, Core, Pto, declare
from .rules import (
    FLOATS,
    INT_OR_FLOAT,
    VEC,
    all_same,
    check_dtype,
    check_rank,
    check_same_dtype,
    dims_text,
    dtype_names,
    fresh_like,
    least,
    same,
    shaped,
    tile_type,
    valid_of,
    value,
)

D = DataType
_SUBS = (D.INT8, D.INT16, D.INT32, D.FP16, D.FP32, D.BF16)
_BITS = (D.INT8, D.UINT8, D.INT16, D.UINT16, D.INT32, D.UINT32)
_VECTOR: dict[str, Any] = {
    "core": Core.VECTOR, "result_space": MemorySpace.Vec, "row_major": True, "same_valid": True
}  # fmt: skip
_MASKS: dict[str, Any] = {**_VECTOR, "same_valid": False}
"""Operators with masks, whose extents are bits."""
Rule = Callable[[Bound], Type]


def vec(*names: str) -> dict[str, tuple[MemorySpace, ...]]:
    """The vector memory for each tile argument."""
    return dict.fromkeys(names, VEC)


# Shared rules.


def check_same_shape(b: Bound, *names: str) -> None:
    """Raise OpError unless the tiles' shapes are provably equal."""
    first = b.type(names[0])
    for name in names[1:]:
        other = b.type(name)
        if not all_same(first.shape, other.shape):
            raise b.fail(
                f"requires the same physical shape for {names[0]} and {name}, got {dims_text(first.shape)} and "
                f"{dims_text(other.shape)}",
                "row_expand_* takes a [N, 1] operand, col_expand_* a [1, N] one; slice or reshape anything else",
            )


def common_region(b: Bound, *names: str) -> Sequence[Expr]:
    """The cells in which every argument holds data."""
    regions = [valid_of(b, name) for name in names]
    shape = b.type(names[0]).shape
    if all(all_same(regions[0], other) for other in regions[1:]):
        return regions[0]
    return [_narrowest([r[axis] for r in regions], shape[axis]) for axis in range(len(shape))]


def _narrowest(extents: Sequence[Expr], size: Expr) -> Expr:
    result = extents[0]
    for extent in extents[1:]:
        if same(extent, size):
            continue
        result = extent if same(result, size) else least(result, extent)
    return result


def _binary(b: Bound) -> Type:
    check_same_dtype(b, "lhs", "rhs")
    check_same_shape(b, "lhs", "rhs")
    return fresh_like(b.type("lhs"), None, common_region(b, "lhs", "rhs"))


def like(name: str = "tile", dtypes: Sequence[DataType] = ()) -> Rule:
    """A result of the type of argument ``name``, whose dtype must be one of ``dtypes``."""

    def rule(b: Bound) -> Type:
        if dtypes:
            check_dtype(b, name, dtypes)
        valid_of(b, name)
        return fresh_like(b.type(name))

    return rule


def _scalar(b: Bound) -> Type:
    valid_of(b, "lhs")
    return fresh_like(b.type("lhs"))


def check_precision(b: Bound, dtype: DataType) -> None:
    if b["high_precision"] and dtype not in FLOATS:
        raise b.fail(f"takes high_precision only for FP16 or FP32, got {dtype}", "leave high_precision out")


# Arithmetic with a scalar form.


def _div(b: Bound) -> Type:
    check_same_dtype(b, "lhs", "rhs")
    check_dtype(b, "lhs", INT_OR_FLOAT)
    check_same_shape(b, "lhs", "rhs")
    if not all_same(valid_of(b, "lhs"), valid_of(b, "rhs")):
        found = f"{shaped(b.type('lhs'))} and {shaped(b.type('rhs'))}"
        raise b.fail(f"requires src0, src1, and dst to have the same valid_shape, got {found}")
    check_precision(b, b.type("lhs").dtype)
    return fresh_like(b.type("lhs"))


def _subs(b: Bound) -> Type:
    check_dtype(b, "lhs", _SUBS)
    scalar = b.type("rhs").dtype
    if scalar not in _SUBS:
        raise b.fail(f"requires scalar dtype in {{{dtype_names(_SUBS)}}}, got {scalar}")
    return fresh_like(b.type("lhs"))


_TILES = "in lhs: tile, in rhs: tile"
_TILE_SCALAR = "in lhs: tile, in rhs: scalar like lhs"
_ARITHMETIC: tuple[tuple[str, str, str, Rule, Rule], ...] = (
    ("add", "adds", "lhs + rhs", _binary, _scalar),
    ("sub", "subs", "lhs - rhs", _binary, _subs),
    ("mul", "muls", "lhs * rhs", _binary, _scalar),
    ("maximum", "maximums", "the greater of lhs and rhs", _binary, _scalar),
    ("minimum", "minimums", "the smaller of lhs and rhs", _binary, _scalar),
    ("fmod", "fmods", "the remainder of lhs / rhs with the sign of lhs", _binary, _scalar),
)
_MNEMONICS = {"maximum": "max", "minimum": "min", "maximums": "maxs", "minimums": "mins"}

for _name, _scalar_name, _what, _rule, _scalar_rule in _ARITHMETIC:
    declare(
        f"tile.{_name}",
        _TILES,
        _rule,
        f"Element by element, {_what}, of two tiles of one shape and dtype; a scalar ``rhs`` is `{_scalar_name}`.",
        spaces=vec("lhs", "rhs"),
        scalar_form=f"tile.{_scalar_name}",
        # The quotient is written before lhs is read again.
        pto=Pto(f"pto.t{_MNEMONICS.get(_name, _name)}", ("lhs", "rhs")),
        **_VECTOR,
    )
    declare(
        f"tile.{_scalar_name}",
        _TILE_SCALAR,
        _scalar_rule,
        f"Element by element, {_what}, of a tile and a scalar; a literal takes the tile's dtype.",
        spaces=vec("lhs"),
        pto=Pto(f"pto.t{_MNEMONICS.get(_scalar_name, _scalar_name)}", ("lhs", "rhs")),
        **_VECTOR,
    )

declare(
    "tile.div",
    _TILES + ", attr high_precision: bool = False",
    _div,
    "Element by element, lhs / rhs; a scalar ``rhs`` is `divs`. ``high_precision`` (FP16, FP32) is slower and closer.",
    spaces=vec("lhs", "rhs"),
    scalar_form="tile.divs",
    pto=Pto("pto.tdiv", ("lhs", "rhs"), attrs={"precisionType": "high_precision"}),
    **_VECTOR,
)
declare(
    "tile.divs",
    _TILE_SCALAR,
    _scalar,
    "Element by element, lhs / rhs, of a tile and a scalar.",
    spaces=vec("lhs"),
    pto=Pto("pto.tdivs", ("lhs", "rhs")),
    **_VECTOR,
)

# Remainders that need scratch, partial arithmetic and sums of three.

declare(
    "tile.rem",
    _TILES + ", out tmp: tile",
    _binary,
    "Element by element, the remainder of lhs / rhs with the sign of rhs, using ``tmp`` as scratch.",
    spaces=vec("lhs", "rhs", "tmp"),
    pto=Pto("pto.trem", ("lhs", "rhs", "tmp")),
    **_VECTOR,
)
declare(
    "tile.rems",
    _TILE_SCALAR + ", out tmp: tile",
    _scalar,
    "Element by element, the remainder of lhs / rhs of a tile and a scalar, using ``tmp`` as scratch.",
    spaces=vec("lhs", "tmp"),
    pto=Pto("pto.trems", ("lhs", "rhs", "tmp")),
    **_VECTOR,
)


def _part(b: Bound) -> Type:
    """Cells only one operand holds keep its value, so the valid region is the larger one, which must contain both."""
    check_same_dtype(b, "lhs", "rhs")
    check_same_shape(b, "lhs", "rhs")
    left, right = valid_of(b, "lhs"), valid_of(b, "rhs")
    shape = b.type("lhs").shape
    for outer, inner in ((left, right), (right, left)):
        if all(same(o, i) or same(o, s) or _contains(o, i) for o, i, s in zip(outer, inner, shape)):
            return fresh_like(b.type("lhs"), None, outer)
    raise b.fail(
        f"requires one operand's valid region to contain the other's, got {dims_text(left)} and {dims_text(right)}"
    )


def _contains(outer: Expr, inner: Expr) -> bool:
    x, y = value(outer), value(inner)
    return x is not None and y is not None and x >= y


for _name, _what in (("add", "sum"), ("mul", "product"), ("max", "maximum"), ("min", "minimum")):
    declare(
        f"tile.part_{_name}",
        _TILES,
        _part,
        f"The {_what} where both tiles hold data, the one that does elsewhere.",
        spaces=vec("lhs", "rhs"),
        pto=Pto(f"pto.tpart{_name}", ("lhs", "rhs")),
        **_VECTOR,
    )


def _three(b: Bound) -> Type:
    tiles = [p.name for p in b.decl.args if "tile" in p.kinds]
    check_same_dtype(b, *tiles)
    check_same_shape(b, *tiles)
    return fresh_like(b.type("lhs"), None, common_region(b, *tiles))


for _name, _what, _kind in (
    ("addc", "lhs + rhs + rhs2", "tile"),
    ("subc", "lhs - rhs + rhs2", "tile"),
    ("addsc", "lhs + rhs + rhs2, where rhs is a scalar", "scalar like lhs"),
    ("subsc", "lhs - rhs + rhs2, where rhs is a scalar", "scalar like lhs"),
):
    declare(
        f"tile.{_name}",
        f"in lhs: tile, in rhs: {_kind}, in rhs2: tile",
        _three,
        f"Element by element, {_what}.",
        spaces=vec("lhs", "rhs", "rhs2") if _kind == "tile" else vec("lhs", "rhs2"),
        pto=Pto(f"pto.t{_name}", ("lhs", "rhs", "rhs2")),
        **_VECTOR,
    )

# One operand.


def _log(b: Bound) -> Type:
    dtype = b.type("tile").dtype
    if dtype not in FLOATS:
        raise b.fail(f"requires an FP16 or FP32 tile, got {dtype}", "cast it: pl.cast(tile, pl.FP32)")
    valid_of(b, "tile")
    return fresh_like(b.type("tile"))


def _recip(b: Bound) -> Type:
    valid_of(b, "tile")
    check_precision(b, b.type("tile").dtype)
    return fresh_like(b.type("tile"))


def _fp32_only(b: Bound) -> Type:
    dtype = b.type("tile").dtype
    if dtype is not D.FP32:
        raise b.fail(f"requires an FP32 tile, got {dtype}", "cast it: pl.cast(tile, pl.FP32)")
    valid_of(b, "tile")
    return fresh_like(b.type("tile"))


def _not(b: Bound) -> Type:
    dtype = b.type("tile").dtype
    if dtype not in _BITS:
        raise b.fail(f"requires a tile of 8-, 16- or 32-bit integers, got {dtype}")
    valid_of(b, "tile")
    return fresh_like(b.type("tile"))


_TILE = "in tile: tile"
_PRECISE = "in tile: tile, attr high_precision: bool = False"
for _name, _signature, _what, _rule in (
    ("neg", _TILE, "The negative of each element.", like()),
    ("abs", _TILE, "The absolute value of each element.", like()),
    ("exp", _TILE, "e to the power of each element.", like()),
    ("sqrt", _TILE, "The square root of each element.", like()),
    ("relu", _TILE, "The greater of each element and 0.", like()),
    ("not", _TILE, "The bitwise complement of each element, an integer; 910B has 16-bit ones only.", _not),
    ("log", _PRECISE, "The natural logarithm of each element (FP16, FP32).", _log),
    ("recip", _PRECISE, "1 / each element; ``high_precision`` takes FP16 and FP32.", _recip),
):
    declare(
        f"tile.{_name}",
        _signature,
        _rule,
        _what,
        spaces=vec("tile"),
        # The precise form reads its operand again after it has begun to write.
        pto=Pto(f"pto.t{_name}", ("tile",), attrs={"precisionType": "high_precision"} if "attr" in _signature else {}),
        **_VECTOR,
    )

for _name, _what in (("sin", "sine"), ("cos", "cosine")):
    declare(
        f"tile.{_name}",
        _TILE,
        _fp32_only,
        f"The {_what} of each element in radians (FP32). `LowerCompositeOps` writes it out.",
        spaces=vec("tile"),
        pto=Pto(form="composite"),
        **_VECTOR,
    )


def _rsqrt(b: Bound) -> Type:
    valid_of(b, "tile")
    if b["tmp"] is not None:
        tile, tmp = b.type("tile"), b.type("tmp")
        check_same_dtype(b, "tile", "tmp")
        if not all_same(tile.shape, tmp.shape):
            raise b.fail(
                f"has a tmp shape mismatch: it must be {dims_text(tile.shape)}, got {dims_text(tmp.shape)}"
            )
    return fresh_like(b.type("tile"))


declare(
    "tile.rsqrt",
    "in tile: tile, out tmp: tile?",
    _rsqrt,
    "1 / the square root of each element. A scratch tile ``tmp`` of the tile's shape selects the precise form.",
    spaces=vec("tile", "tmp"),
    pto=Pto("pto.trsqrt", ("tile", "tmp")),
    **_VECTOR,
)


def _cast(b: Bound) -> Type:
    source, target = b.type("tile"), b["target_type"]
    if source.dtype is target:
        raise b.fail(
            f"from {source.dtype} to {target} converts nothing: a same-dtype cast is not a valid operation",
            "use the tile as it is",
        )
    valid_of(b, "tile")
    return fresh_like(source, target)


declare(
    "tile.cast",
    "in tile: tile, attr target_type: DataType!, attr mode: RoundMode! = 'round', attr saturate: bool = False, "
    "out* tmp: tile?",
    _cast,
    "Convert each element to ``target_type``, rounding as ``mode`` says: none, rint (ties to even), round (ties away "
    "from zero), floor, ceil, trunc or odd. Out of range an integer keeps the low bits (floats through INT32; NaN is "
    "0) and a float is infinite; with ``saturate`` each is the nearest there is. `SupplyScratch` makes ``tmp``.",
    spaces=vec("tile", "tmp"),
    pto=Pto("pto.tcvt", ("tile", "tmp"), attrs={"rmode": "mode", "satmode": "saturate"}, form="cast"),
    **_VECTOR,
)

# Bits.


def _bits(b: Bound) -> Type:
    left, right = b.type("lhs"), b.type("rhs")
    for t in (left, right):
        if not t.dtype.is_int():
            raise b.fail(f"requires an integer tile dtype, got {shaped(t)}")
    check_same_shape(b, "lhs", "rhs")
    shift = b.decl.name in ("tile.shl", "tile.shr")
    dtype = left.dtype if shift or left.dtype.bits >= right.dtype.bits else right.dtype
    return fresh_like(left, dtype, common_region(b, "lhs", "rhs"))


def _bits_scalar(b: Bound) -> Type:
    t = b.type("lhs")
    if not t.dtype.is_int():
        raise b.fail(f"requires an integer tile dtype, got {shaped(t)}")
    scalar = b.type("rhs").dtype
    if not scalar.is_int():
        raise b.fail(f"requires the shift/bitwise scalar to be an integer, got {scalar}")
    count = getattr(b["rhs"], "value", None)
    if b.decl.name.startswith(("tile.sh", "tensor.sh")) and count is not None and count < 0:
        raise b.fail(f"requires a non-negative shift count, got {count}")
    valid_of(b, "lhs")
    return fresh_like(t)


for _name, _what in (
    ("and", "Bitwise and"),
    ("or", "Bitwise or"),
    ("xor", "Bitwise exclusive or"),
    ("shl", "Left shift"),
    ("shr", "Right shift, arithmetic for signed elements,"),
):
    _scratch = ", out tmp: tile" if _name == "xor" else ""
    _extra = ("tmp",) if _scratch else ()
    declare(
        f"tile.{_name}",
        _TILES + _scratch,
        _bits,
        f"{_what} of two tiles, element by element" + (", using ``tmp`` as scratch." if _scratch else "."),
        spaces=vec("lhs", "rhs", *_extra),
        scalar_form=None if _scratch else f"tile.{_name}s",
        pto=Pto(f"pto.t{_name}", ("lhs", "rhs", *_extra)),
        **_VECTOR,
    )
    declare(
        f"tile.{_name}s",
        _TILE_SCALAR + _scratch,
        _bits_scalar,
        f"{_what} of a tile and a scalar" + (", using ``tmp`` as scratch." if _scratch else "."),
        spaces=vec("lhs", *_extra),
        # The library spreads the scalar over the destination first.
        pto=Pto(f"pto.t{_name}s", ("lhs", "rhs", *_extra)),
        **_VECTOR,
    )

# Comparison and selection.

CMP_MODES = ("eq", "ne", "lt", "le", "gt", "ge")
"""Comparisons by ``cmp_type`` code."""


def check_cmp_type(b: Bound) -> None:
    if not 0 <= b["cmp_type"] < len(CMP_MODES):
        names = ", ".join(f"{i} {name}" for i, name in enumerate(CMP_MODES))
        raise b.fail(f"requires cmp_type in [0, 5] ({names}), got {b['cmp_type']}")


def _mask_type(t: TileType, valid: Sequence[Expr], wide: bool = False) -> Type:
    """Packed predicates: a bit an element, each row in whole 32-byte blocks of which the bytes in use are valid.

    A ``wide`` row has as many bytes as there are elements.
    """
    *rows, columns = t.shape
    known = value(columns)
    width = columns if known is None else index_const(-(-known // (32 if wide else 256)) * 32)
    known = value(valid[-1])
    used = (valid[-1] + 7) // 8 if known is None else index_const(-(-known // 8))
    return tile_type([*rows, width], D.UINT8, [*valid[:-1], used], MemorySpace.Vec)


def _cmp(b: Bound) -> Type:
    check_cmp_type(b)
    check_same_dtype(b, "lhs", "rhs")
    check_same_shape(b, "lhs", "rhs")
    return _mask_type(b.type("lhs"), common_region(b, "lhs", "rhs"), b.decl.internal)


def _cmps(b: Bound) -> Type:
    check_cmp_type(b)
    return _mask_type(b.type("lhs"), valid_of(b, "lhs"))


declare(
    "tile.cmp",
    _TILES + ", attr cmp_type: int! = 0",
    _cmp,
    "Compare two tiles: ``cmp_type`` 0 eq, 1 ne, 2 lt, 3 le, 4 gt, 5 ge. The value is a packed mask, one bit an "
    "element.",
    spaces=vec("lhs", "rhs"),
    scalar_form="tile.cmps",
    pto=Pto("pto.tcmp", ("lhs", "rhs"), attrs={"cmpMode": "cmp_type"}),
    **_MASKS,
)
declare(
    "tile.cmp_wide",
    _TILES + ", attr cmp_type: int! = 0",
    _cmp,
    "`cmp` to a mask of the operands' shape.",
    spaces=vec("lhs", "rhs"),
    internal=True,
    pto=Pto("pto.tcmp", ("lhs", "rhs"), attrs={"cmpMode": "cmp_type"}),
    **_MASKS,
)
declare(
    "tile.cmps",
    _TILE_SCALAR + ", attr cmp_type: int! = 0",
    _cmps,
    "Compare a tile with a scalar; modes and mask as `cmp`.",
    spaces=vec("lhs"),
    pto=Pto("pto.tcmps", ("lhs", "rhs"), attrs={"cmpMode": "cmp_type"}),
    **_MASKS,
)


def _sel(b: Bound) -> Type:
    check_same_dtype(b, "lhs", "rhs")
    check_same_shape(b, "lhs", "rhs")
    return fresh_like(b.type("lhs"), None, common_region(b, "lhs", "rhs"))


declare(
    "tile.sel",
    "in mask: tile, in lhs: tile, in rhs: tile, out tmp: tile",
    _sel,
    "lhs where the packed mask's bit is set, rhs elsewhere; ``tmp`` is scratch.",
    spaces=vec("mask", "lhs", "rhs", "tmp"),
    pto=Pto("pto.tsel", ("mask", "lhs", "rhs", "tmp")),
    **_MASKS,
)

# Activations with a slope.


def _prelu(b: Bound) -> Type:
    check_rank(b, "src", 2)
    check_rank(b, "tmp", 2)
    check_dtype(b, "src", FLOATS)
    src, slope = b.type("src"), b.type("slope")
    if slope.dtype is not src.dtype:
        raise b.fail(f"requires slope dtype {src.dtype}, got {slope.dtype}")
    check_same_shape(b, "src", "slope")
    if not all_same(valid_of(b, "src"), valid_of(b, "slope")):
        raise b.fail(f"requires one valid_shape for src and slope, got {shaped(src)} and {shaped(slope)}")
    return fresh_like(src)


declare(
    "tile.prelu",
    "in src: tile, in slope: tile, out tmp: tile",
    _prelu,
    "Each element, or slope * element where it is negative; ``tmp`` is scratch.",
    spaces=vec("src", "slope", "tmp"),
    pto=Pto("pto.tprelu", ("src", "slope", "tmp")),
    **_VECTOR,
)


def _lrelu(b: Bound) -> Type:
    valid_of(b, "tile")
    return fresh_like(b.type("tile"))


declare(
    "tile.lrelu",
    "in tile: tile, in slope: scalar like FP32",
    _lrelu,
    "Each element, or ``slope`` (an FP32 scalar) times it where it is negative.",
    spaces=vec("tile"),
    pto=Pto("pto.tlrelu", ("tile", "slope")),
    **_VECTOR,
)
