"""PTO types: ``!pto.ptr``, ``!pto.tensor_view``, ``!pto.partition_tensor_view``, ``!pto.tile_buf``.

Each holds one plain Python value of `shapes`, so that the verifier and the simulator never unpack attributes.
"""

from __future__ import annotations

import re

from xdsl.ir import Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from .shapes import Tile, View, element, parse_tile, parse_view


def take_body(parser: AttrParser) -> tuple[str, int]:
    """Text between the current ``<`` and its match, and where it starts; continues after the match."""
    start = parser.pos
    content = parser.lexer.input.content
    if content[start] != "<":
        parser.raise_error("expected '<'")
    depth = 0
    for match in re.compile("[<>]").finditer(content, start):
        if match.group() == "<":
            depth += 1
        elif content[match.start() - 1] != "-":
            depth -= 1
            if depth == 0:
                parser._resume_from(match.end())
                return content[start + 1 : match.start()], start + 1
    parser.raise_error("'<' without a matching '>'")


def _parse_with(parser: AttrParser, build):
    start = parser.pos
    body, _ = take_body(parser)
    try:
        return build(body)
    except ValueError as error:
        parser.raise_error(str(error), start, start + len(body) + 2)


@irdl_attr_definition
class TileBufType(Data[Tile], TypeAttribute):
    """``!pto.tile_buf<..>``."""

    name = "pto.tile_buf"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Tile:
        return _parse_with(parser, parse_tile)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data.text}>")


class _ViewType(Data[View], TypeAttribute):
    """A type whose parameter is a shape with an element type."""

    read = staticmethod(parse_view)
    """Makes the parameter of its text; raises ValueError."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> View:
        return _parse_with(parser, cls.read)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data.text}>")


@irdl_attr_definition
class TensorViewType(_ViewType):
    """``!pto.tensor_view<?x?xf32>``."""

    name = "pto.tensor_view"


@irdl_attr_definition
class PartitionViewType(_ViewType):
    """``!pto.partition_tensor_view<64x64xf32>``."""

    name = "pto.partition_tensor_view"


@irdl_attr_definition
class PtrType(Data[str], TypeAttribute):
    """``!pto.ptr<f32>``: a pointer into global memory; ``data`` is the element type."""

    name = "pto.ptr"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        return _parse_with(parser, _parse_pointer)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


def _parse_pointer(body: str) -> str:
    found, comma, space = (piece.strip() for piece in body.partition(","))
    if comma and space != "gm":
        raise ValueError(f"only pointers into gm are supported, got '{space}'")
    return found if found == "index" else element(found)


def _parse_array(body: str) -> View:
    shape = parse_view(body)
    if not shape.shape or not all(shape.shape):
        raise ValueError(f"a local array has positive static extents, got '{body}'")
    return shape


@irdl_attr_definition
class LocalArrayType(_ViewType):
    """``!pto.local_array<16xi32>``: an array of scalars on the core's stack."""

    name = "pto.local_array"
    read = staticmethod(_parse_array)


@irdl_attr_definition
class PrefetchContextType(ParametrizedAttribute, TypeAttribute):
    """``!pto.prefetch_async_context``: the state of asynchronous prefetches."""

    name = "pto.prefetch_async_context"


@irdl_attr_definition
class AsyncSessionType(ParametrizedAttribute, TypeAttribute):
    """``!pto.async_session``: where asynchronous transfers are awaited."""

    name = "pto.async_session"


@irdl_attr_definition
class AsyncEventType(ParametrizedAttribute, TypeAttribute):
    """``!pto.async_event``: the end of one asynchronous transfer."""

    name = "pto.async_event"


HANDLES = (PrefetchContextType, AsyncSessionType, AsyncEventType)
"""Types without parameters."""
TYPES = (PtrType, TensorViewType, PartitionViewType, TileBufType, LocalArrayType, *HANDLES)
BUILDERS = {
    "pto.ptr": (PtrType, _parse_pointer),
    "pto.tile_buf": (TileBufType, parse_tile),
    **{view.name: (view, view.read) for view in (TensorViewType, PartitionViewType, LocalArrayType)},
}
