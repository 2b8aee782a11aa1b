"""PTO operations that describe data: pointers, views, tiles, scalar access, block indices.

Each class is one assembly form: a pattern, and the operands and results it stands for. Instructions
on tiles are not written here; `dialect.py` makes their classes from the instruction table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from typing import ClassVar

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, OpTraits, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from . import asm
from .attrs import ENUMS
from .errors import PtoError
from .scalar_types import I64, INDEX
from .shapes import Tile
from .types import PartitionViewType, PtrType, TensorViewType, TileBufType

Part = str | SSAValue | Attribute
LAYOUT = ENUMS["layout"]

_VALUE = r"%[\w$.-]+(?:#\d+)?"
_TYPE = r"!?[A-Za-z_][\w.]*(?:<[^>]*>)?"
_HOLES = {"V": _VALUE, "L": r"[^\]]*", "T": _TYPE}


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """A pattern from a template: ``V:name`` is a value, ``L:name`` values up to ``]``, ``T:name`` a type."""
    text = re.sub(r"\b([VLT]):(\w+)", lambda hole: f"(?P<{hole.group(2)}>{_HOLES[hole.group(1)]})", template)
    return re.compile(text.replace(" ", r"\s*"))


class PtoOp(Operation):
    """Base of the PTO operations.

    A subclass gives the `template` of its assembly, `usage` to show when text does not match it,
    `build` from a match, and `parts`, the pieces to print.
    """

    traits = OpTraits(lambda: ())
    usage: ClassVar[str] = ""
    template: ClassVar[str]

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        return cls.build(parser, asm.match(parser, _pattern(cls.template), f"{cls.name} {cls.usage}"))

    @classmethod
    def build(cls, parser: Parser, found: re.Match[str]) -> Operation:
        operands, results, attributes = cls.pieces(parser, found)
        return cls.create(operands=operands, result_types=results, attributes=attributes)

    @classmethod
    def pieces(
        cls, parser: Parser, found: re.Match[str]
    ) -> tuple[list[SSAValue], Sequence[Attribute], dict[str, Attribute]]:
        """Operands, result types and attributes of a match."""
        return [], (), {}

    def parts(self) -> Iterable[Part]:
        """What is printed after the operation's name."""
        return ()

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        for part in self.parts():
            if isinstance(part, str):
                printer.print_string(part)
            elif isinstance(part, SSAValue):
                printer.print_ssa_value(part)
            else:
                printer.print_attribute(part)


_OPTIONAL = re.compile(r"\(\?:[^()]*\)\?")
_TIGHT = re.compile(r" (?=[,()\[\]])|(?<=[(\[]) ")
_HOLE = re.compile(r"\b([VLT]):(\w+)")


@cache
def _holes(template: str) -> dict[str, str]:
    """The letter of each hole of a template, by name."""
    return {hole.group(2): hole.group(1) for hole in _HOLE.finditer(template)}


@cache
def _layout(template: str) -> list[str]:
    """A template as text is printed, in pieces: text, letter and name of a hole, text, and so on."""
    return _HOLE.split(_TIGHT.sub("", _OPTIONAL.sub("", template).replace("\\", "")))


class TemplateOp(PtoOp):
    """An operation that is its template.

    The value in the hole ``V:x`` is of the type in ``T:x_type``, or an index where there is no such hole;
    ``T:result`` is the type of its result. What the template leaves out in ``(?:..)?`` is not printed.
    """

    fixed_results: ClassVar[tuple[Attribute, ...]] = ()
    """Types of results that the template has no hole for."""
    order: ClassVar[tuple[str, ...]] = ()
    """Names of the operands, where they are not in the order of the template."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Names of the operands, in order."""
        return cls.order or tuple(name for name, letter in _holes(cls.template).items() if letter != "T")

    @classmethod
    def pieces(cls, parser, found):
        holes = _holes(cls.template)
        operands: list[SSAValue] = []
        for name in cls.names():
            if holes[name] == "L":
                operands += _indices(parser, found, name)
            else:
                kind = _type(parser, found, f"{name}_type") if f"{name}_type" in holes else INDEX
                operands += _one(parser, found, name, kind)
        return operands, (_type(parser, found, "result"),) if "result" in holes else cls.fixed_results, {}

    def _values(self) -> dict[str, Sequence[SSAValue]]:
        """The operands by name; a list takes those that are over."""
        holes, rest = _holes(self.template), list(self.operands)
        spare = len(rest) - len(self.names()) + 1
        counts = {name: spare if holes[name] == "L" else 1 for name in self.names()}
        return {name: [rest.pop(0) for _ in range(count)] for name, count in counts.items()}

    def parts(self):
        text, *pieces = _layout(self.template)
        yield text
        values = self._values()
        for letter, name, text in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
            if letter != "T":
                yield from commas(values[name])
            else:
                yield self.results[0].type if name == "result" else values[name.removesuffix("_type")][0].type
            yield text


def commas(parts: Iterable[Part]) -> list[Part]:
    out: list[Part] = []
    for part in parts:
        out += [", ", part] if out else [part]
    return out


def _type(parser: Parser, found: re.Match[str], group: str) -> Attribute:
    types = asm.types_in(parser, found, group)
    return types[0]


def _one(parser: Parser, found: re.Match[str], group: str, attr: Attribute) -> list[SSAValue]:
    return asm.operands(parser, found, group, (attr,)) if found.group(group) else []


def _indices(parser: Parser, found: re.Match[str], group: str) -> list[SSAValue]:
    return asm.operands(parser, found, group, (INDEX,) * len(asm.split_words(found.group(group) or "")))


class MakeTensorView(PtoOp):
    """A tensor in global memory: pointer, extents, strides in elements, layout."""

    name = "pto.make_tensor_view"
    usage = "%ptr, shape = [..], strides = [..] {layout = #pto.layout<nd>} : !pto.tensor_view<..>"
    template = (
        r"V:ptr , shape = \[L:shape\] , strides = \[L:strides\] "
        r"(?:\{ layout = #pto(?:\.layout<|<layout)\s* (?P<layout>\w+) > \})? : T:type"
    )

    @classmethod
    def pieces(cls, parser, found):
        view = _type(parser, found, "type")
        if not isinstance(view, TensorViewType):
            parser.raise_error("expected a !pto.tensor_view type", found.start("type"), found.end("type"))
        shape, strides = _indices(parser, found, "shape"), _indices(parser, found, "strides")
        if len(shape) != len(strides):
            parser.raise_error(f"{len(shape)} extents but {len(strides)} strides", found.start("strides"))
        attributes: dict[str, Attribute] = {}
        if found.group("layout"):
            attributes["layout"] = LAYOUT.named(parser, found, "layout", "layout must be")
        pointer = _one(parser, found, "ptr", PtrType(view.data.dtype))
        return [*pointer, *shape, *strides], (view,), attributes

    @property
    def shape(self) -> Sequence[SSAValue]:
        return self.operands[1 : 1 + len(self.operands) // 2]

    @property
    def strides(self) -> Sequence[SSAValue]:
        return self.operands[1 + len(self.operands) // 2 :]

    @property
    def layout(self) -> str | None:
        found = self.attributes.get("layout")
        return found.data if isinstance(found, LAYOUT) else None

    def parts(self):
        yield from (
            self.operands[0],
            ", shape = [",
            *commas(self.shape),
            "], strides = [",
            *commas(self.strides),
            "]",
        )
        if self.layout:
            yield f" {{layout = #pto.layout<{self.layout}>}}"
        yield from (" : ", self.results[0].type)


class PartitionView(PtoOp):
    """A window of a tensor view: offsets and extents in elements, one an axis."""

    name = "pto.partition_view"
    usage = "%view, offsets = [..], sizes = [..] : !pto.tensor_view<..> -> !pto.partition_tensor_view<..>"
    template = r"V:source , offsets = \[L:offsets\] , sizes = \[L:sizes\] : T:type -> T:result"

    @classmethod
    def pieces(cls, parser, found):
        source, result = _type(parser, found, "type"), _type(parser, found, "result")
        if not isinstance(source, TensorViewType) or not isinstance(result, PartitionViewType):
            parser.raise_error(f"expected {cls.usage.partition(' : ')[2]}", found.start("type"), found.end("result"))
        offsets, sizes = _indices(parser, found, "offsets"), _indices(parser, found, "sizes")
        if len(offsets) != len(sizes):
            parser.raise_error(f"{len(offsets)} offsets but {len(sizes)} sizes", found.start("sizes"))
        return [*_one(parser, found, "source", source), *offsets, *sizes], (result,), {}

    @property
    def offsets(self) -> Sequence[SSAValue]:
        return self.operands[1 : 1 + len(self.operands) // 2]

    @property
    def sizes(self) -> Sequence[SSAValue]:
        return self.operands[1 + len(self.operands) // 2 :]

    def parts(self):
        source = self.operands[0]
        yield from (source, ", offsets = [", *commas(self.offsets), "], sizes = [", *commas(self.sizes), "] : ")
        yield from (source.type, " -> ", self.results[0].type)


def constant(value: SSAValue) -> int | None:
    """The integer an ``arith.constant`` gives, else None."""
    op = value.owner
    if isinstance(op, ConstantOp) and isinstance(op.value, IntegerAttr):
        return op.value.value.data
    return None


@lru_cache(maxsize=4096)
def _narrowed(tile: Tile, rows: int | None, cols: int | None) -> Tile:
    return replace(tile, v_row=tile.v_row if rows is None else rows, v_col=tile.v_col if cols is None else cols)


_SETS_EXTENTS = frozenset({"pto.set_validshape", "pto.comm.tput", "pto.comm.tget"})
"""What sets a tile's valid extents anew: a transfer does for its last chunk."""


class AllocTile(PtoOp):
    """A tile buffer: its byte address when memory was planned, and the valid extents its type leaves open."""

    name = "pto.alloc_tile"
    usage = "[addr = %a] [valid_row = %r] [valid_col = %c] : !pto.tile_buf<..>"
    template = r"(?:addr = V:addr )?(?:valid_row = V:row )?(?:valid_col = V:col )?: T:type"

    @classmethod
    def pieces(cls, parser, found):
        tile = _type(parser, found, "type")
        if not isinstance(tile, TileBufType):
            parser.raise_error("expected a !pto.tile_buf type", found.start("type"), found.end("type"))
        for group, extent in (("row", tile.data.v_row), ("col", tile.data.v_col)):
            if (extent is None) != (found.group(group) is not None):
                want = "needs" if extent is None else "takes no"
                parser.raise_error(
                    f"a tile with v_{group}={'?' if extent is None else extent} {want} valid_{group} operand",
                    found.start("type"),
                    found.end("type"),
                )
        operands = _one(parser, found, "addr", I64)
        operands += _one(parser, found, "row", INDEX) + _one(parser, found, "col", INDEX)
        return operands, (tile,), {}

    def _valid(self) -> list[SSAValue | None]:
        tile = self.results[0].type
        rest = list(self.operands)
        addr = rest.pop(0) if rest and rest[0].type == I64 else None
        row = rest.pop(0) if isinstance(tile, TileBufType) and tile.data.v_row is None else None
        col = rest.pop(0) if isinstance(tile, TileBufType) and tile.data.v_col is None else None
        return [addr, row, col]

    @property
    def tile(self) -> Tile:
        """What its type says."""
        found = self.results[0].type
        if not isinstance(found, TileBufType):
            raise PtoError(f"'{self.name}' gives a tile, not {found}")
        return found.data

    @cached_property
    def known(self) -> Tile:
        """`tile` with the extents that are constants, unless they are set anew somewhere."""
        tile = self.tile
        rows, cols = (constant(value) if value is not None else None for value in self.valid)
        if rows is None and cols is None or any(u.operation.name in _SETS_EXTENTS for u in self.results[0].uses):
            return tile
        return _narrowed(tile, rows, cols)

    @property
    def addr(self) -> SSAValue | None:
        return self._valid()[0]

    @property
    def valid(self) -> tuple[SSAValue | None, SSAValue | None]:
        _, row, col = self._valid()
        return row, col

    def parts(self):
        for key, value in zip(("addr", "valid_row", "valid_col"), self._valid(), strict=True):
            if value is not None:
                yield from (f"{key} = ", value, " ")
        yield from (": ", self.results[0].type)


class Subview(PtoOp):
    """A window of a tile, sharing its bytes."""

    name = "pto.subview"
    usage = "%tile[%i, %j] sizes [16, 64] [valid [%r, %c]] : !pto.tile_buf<..> -> !pto.tile_buf<..>"
    template = r"V:source \[L:offsets\] sizes \[L:sizes\] (?:valid \[L:valid\] )?: T:type -> T:result"

    @classmethod
    def pieces(cls, parser, found):
        sizes = asm.split_words(found.group("sizes"))
        if len(sizes) != 2 or not all(size.isdigit() for size in sizes):
            parser.raise_error("sizes must be two numbers", found.start("sizes"), found.end("sizes"))
        source = _one(parser, found, "source", _type(parser, found, "type"))
        offsets, valid = _indices(parser, found, "offsets"), _indices(parser, found, "valid")
        if len(offsets) != 2 or len(valid) not in (0, 2):
            parser.raise_error("a subview has two offsets, and two valid extents or none", found.start("offsets"))
        attributes: dict[str, Attribute] = {"sizes": ArrayAttr([IntegerAttr(int(size), I64) for size in sizes])}
        return [*source, *offsets, *valid], (_type(parser, found, "result"),), attributes

    @property
    def sizes(self) -> tuple[int, int]:
        found = self.attributes["sizes"]
        if not isinstance(found, ArrayAttr):
            raise PtoError("a subview without sizes")
        rows, cols = (item.value.data for item in found.data)
        return rows, cols

    def parts(self):
        source, row, col, *valid = self.operands
        yield from (source, "[", row, ", ", col, f"] sizes [{self.sizes[0]}, {self.sizes[1]}] ")
        if valid:
            yield from ("valid [", *commas(valid), "] ")
        yield from (": ", source.type, " -> ", self.results[0].type)


class _Conversion(TemplateOp):
    usage = "%value : type -> type"
    template = r"V:source : T:source_type -> T:result"


class Reshape(_Conversion):
    """The bytes of a tile under another shape or layout."""

    name = "pto.treshape"


class Bitcast(_Conversion):
    """The bytes of a tile under another element type."""

    name = "pto.bitcast"


class SetValidShape(TemplateOp):
    """Change the valid extents of a tile whose type leaves both open."""

    name = "pto.set_validshape"
    usage = "%tile, %rows, %cols : !pto.tile_buf<..>"
    template = r"V:source , V:row , V:col : T:source_type"


class GetValidShape(TemplateOp):
    """Valid rows and columns of a tile."""

    name = "pto.get_validshape"
    usage = "%tile : !pto.tile_buf<..>"
    template = r"V:source : T:source_type(?: -> index , index)?"
    fixed_results = (INDEX, INDEX)


class TileValidRows(_Conversion):
    name = "pto.tile_valid_rows"


class TileValidCols(_Conversion):
    name = "pto.tile_valid_cols"


class AddPtr(TemplateOp):
    """A pointer moved by a number of elements."""

    name = "pto.addptr"
    usage = "%ptr, %offset : !pto.ptr<..> -> !pto.ptr<..>"
    template = r"V:ptr , V:offset : T:ptr_type -> T:result"


class LoadScalar(TemplateOp):
    """One element of global memory."""

    name = "pto.load_scalar"
    usage = "%ptr[%offset] : !pto.ptr<f32> -> f32"
    template = r"V:ptr \[ V:offset \] : T:ptr_type -> T:result"


class StoreScalar(TemplateOp):
    """Write one element of global memory."""

    name = "pto.store_scalar"
    usage = "%value, %ptr[%offset] : !pto.ptr<f32>, f32"
    template = r"V:value , V:ptr \[ V:offset \] : T:ptr_type , T:value_type"


class GetValue(TemplateOp):
    """One element of a tile, by its linear position in row-major order of the whole buffer."""

    name = "pto.tgetval"
    usage = "ins(%tile, %offset : !pto.tile_buf<..>, index) outs : f32"
    template = r"ins \( V:source , V:offset : T:source_type , index \) outs : T:result"


class SetValue(TemplateOp):
    """Write one element of a tile, by its linear position in row-major order of the whole buffer."""

    name = "pto.tsetval"
    usage = "ins(%offset, %value : index, f32) outs(%tile : !pto.tile_buf<..>)"
    template = r"ins \( V:offset , V:value : index , T:value_type \) outs \( V:dst : T:dst_type \)"
    order = ("dst", "offset", "value")


class DeclareLocalArray(TemplateOp):
    """An array of scalars on the core's stack, its contents undefined."""

    name = "pto.declare_local_array"
    usage = "-> !pto.local_array<16xi32>"
    template = r"-> T:result"


class LocalArrayGet(TemplateOp):
    """One element of a local array."""

    name = "pto.local_array_get"
    usage = "%array[%i, ..] : !pto.local_array<..> -> i32"
    template = r"V:array \[L:indices\] : T:array_type -> T:result"


class LocalArraySet(TemplateOp):
    """Write one element of a local array."""

    name = "pto.local_array_set"
    usage = "%array[%i, ..], %value : !pto.local_array<..>, i32"
    template = r"V:array \[L:indices\] , V:value : T:array_type , T:value_type"


class _BlockQuery(PtoOp):
    template = r"(?:-> i64)?"

    @classmethod
    def pieces(cls, parser, found):
        return [], (I64,), {}


class GetBlockIdx(_BlockQuery):
    name = "pto.get_block_idx"


class GetBlockNum(_BlockQuery):
    name = "pto.get_block_num"


class GetSubblockIdx(_BlockQuery):
    name = "pto.get_subblock_idx"


class GetSubblockNum(_BlockQuery):
    name = "pto.get_subblock_num"


class ViewDim(TemplateOp):
    """Extent of one axis of a tensor view."""

    name = "pto.get_tensor_view_dim"
    usage = "%view, %axis : !pto.tensor_view<..> -> index"
    template = r"V:source , V:axis : T:source_type -> index"
    fixed_results = (INDEX,)


class ViewStride(ViewDim):
    """Stride of one axis of a tensor view, in elements."""

    name = "pto.get_tensor_view_stride"


OPS: tuple[type[PtoOp], ...] = (
    MakeTensorView,
    PartitionView,
    AllocTile,
    Subview,
    Reshape,
    Bitcast,
    SetValidShape,
    GetValidShape,
    TileValidRows,
    TileValidCols,
    AddPtr,
    LoadScalar,
    StoreScalar,
    GetValue,
    SetValue,
    DeclareLocalArray,
    LocalArrayGet,
    LocalArraySet,
    GetBlockIdx,
    GetBlockNum,
    GetSubblockIdx,
    GetSubblockNum,
    ViewDim,
    ViewStride,
)
