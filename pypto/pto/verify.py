"""Verification of a parsed module: types, ranks, layouts, windows, buffers, and every instruction's own rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import WhileOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from pypto.backend.target import Target

from .comm_ops import Get, Notify, PollSignal, Put, WaitSignal
from .comm_rules import check_signal, check_transfer
from .cross_rules import check_pipes
from .dialect import InstructionOp, operand_of
from .errors import PtoError
from .ops import (
    AddPtr,
    AllocTile,
    Bitcast,
    GetValue,
    LoadScalar,
    LocalArrayGet,
    LocalArraySet,
    MakeTensorView,
    PartitionView,
    PtoOp,
    Reshape,
    SetValidShape,
    SetValue,
    StoreScalar,
    Subview,
    constant,
)
from .parser import location_of
from .scalar_rules import check_scalars
from .scalar_types import scalar_name
from .shapes import Tile, View
from .spec import Site
from .targets import target_of
from .tile_rules import check_address, check_reshape, check_subview, check_tile, check_window_layout
from .types import LocalArrayType, PartitionViewType, PtrType


def architecture(module: ModuleOp) -> str:
    """``a2a3`` or ``a5``, from the module's attribute; a2a3 when it states none."""
    found = module.attributes.get("pto.target_arch")
    return found.data if isinstance(found, StringAttr) else "a2a3"


def site_of(op: InstructionOp, target: Target) -> Site:
    """What an instruction's declaration is told about this occurrence."""
    types = {name: operand_of(value) for name, value in op.values().items()}
    return Site(op.spec, types, op.attribute_values(), target)


def verify_module(module: ModuleOp, *, arch: str | None = None, require_addresses: bool = False) -> None:
    """Check a parsed module against the dialect.

    ``arch`` overrides the module's target. ``require_addresses``: every ``alloc_tile`` must carry
    one, the rule of ``--pto-level=level3``. Raises PtoError naming the operation's location.
    """
    checker = _Verifier(target_of(arch or architecture(module)), require_addresses)
    for op in module.walk():
        checker.check(op)
        if isinstance(op, FuncOp):
            check_pipes(op, checker.target)


class _Verifier:
    def __init__(self, target: Target, require_addresses: bool) -> None:
        self.target, self.require_addresses = target, require_addresses

    def check(self, op: Operation) -> None:
        try:
            if isinstance(op, InstructionOp):
                site = site_of(op, self.target)
                for rule in op.spec.checks:
                    rule(site)
                _check_layouts(op, site)
            elif isinstance(op, PtoOp):
                rule = _rules().get(type(op))
                if rule is not None:
                    rule(self, op)
            elif not isinstance(op, ModuleOp):
                _builtin(op)
        except PtoError as error:
            if error.span is None:
                raise PtoError(error.message, location_of(op), error.hint) from None
            raise

    def make_tensor_view(self, op: MakeTensorView) -> None:
        view = _view_of(op.results[0])
        rank = len(op.shape)
        if rank != len(view.shape):
            raise PtoError(f"'pto.make_tensor_view': {rank} extents for a view type of rank {len(view.shape)}")
        for axis, (extent, value) in enumerate(zip(view.shape, op.shape, strict=True)):
            known = constant(value)
            if extent is not None and known is not None and extent != known:
                raise PtoError(f"'pto.make_tensor_view': axis {axis} is {known} but the type says {extent}")
            if known is not None and known < 0:
                raise PtoError(f"'pto.make_tensor_view': axis {axis} has a negative extent {known}")
        if op.layout == "nz":
            _check_nz(op, view, rank)

    def partition_view(self, op: PartitionView) -> None:
        source, result = _view_of(op.operands[0]), _view_of(op.results[0])
        if result.dtype != source.dtype:
            raise PtoError(f"'pto.partition_view': element type {result.dtype} of a window of {source.dtype}")
        if not len(op.offsets) == len(source.shape) == len(result.shape):
            raise PtoError(
                f"'pto.partition_view': {len(op.offsets)} offsets and a window of rank {len(result.shape)} "
                f"on a view of rank {len(source.shape)}"
            )
        view = op.operands[0].owner
        extents = [constant(value) for value in view.shape] if isinstance(view, MakeTensorView) else list(source.shape)
        for axis, (offset, size, extent, stated) in enumerate(
            zip(op.offsets, op.sizes, extents, result.shape, strict=True)
        ):
            _check_window_axis(axis, constant(offset), constant(size), extent, stated)
        if isinstance(view, MakeTensorView) and view.layout == "nz":
            _check_nz_window(op, extents)

    def alloc_tile(self, op: AllocTile) -> None:
        tile = op.tile
        check_tile(tile, self.target)
        _check_valid(op, tile, op.valid)
        if op.addr is None:
            if self.require_addresses:
                raise PtoError("'pto.alloc_tile' needs an addr operand when memory has been planned (level3)")
            return
        address = constant(op.addr)
        if address is not None:
            check_address(tile, address, self.target)

    def subview(self, op: Subview) -> None:
        source, result = _tile_of(op.operands[0]), _tile_of(op.results[0])
        check_subview(source, result, op.sizes, [constant(value) for value in op.operands[1:3]])
        if (result.v_row is None or result.v_col is None) and len(op.operands) == 3:
            raise PtoError("'pto.subview': a result with '?' valid extents needs valid [%rows, %cols]")

    def reshape(self, op: Reshape) -> None:
        source, result = _tile_of(op.operands[0]), _tile_of(op.results[0])
        check_reshape(source, result)

    def bitcast(self, op: Bitcast) -> None:
        source, result = _tile_of(op.operands[0]), _tile_of(op.results[0])
        if source.loc != result.loc or source.nbytes < result.nbytes:
            raise PtoError(f"'pto.bitcast': {result} does not fit the bytes of {source}")

    def set_validshape(self, op: SetValidShape) -> None:
        tile = _tile_of(op.operands[0])
        if tile.v_row is not None or tile.v_col is not None:
            raise PtoError("'pto.set_validshape' needs a tile type with v_row=? and v_col=?")
        if isinstance(op.operands[0].owner, Subview | Reshape):
            raise PtoError("'pto.set_validshape' cannot be used on a view of a tile")
        _check_valid(op, tile, op.operands[1:])

    def pointer(self, op: PtoOp) -> None:
        pointer = next((value.type for value in op.operands if isinstance(value.type, PtrType)), None)
        if pointer is None:
            raise PtoError(f"'{op.name}' needs a !pto.ptr operand")
        if isinstance(op, AddPtr):
            if op.results[0].type != pointer:
                raise PtoError(f"'pto.addptr' gives {pointer}, not {op.results[0].type}")
            return
        scalar = op.results[0].type if isinstance(op, LoadScalar) else op.operands[0].type
        if scalar_name(scalar) != pointer.data:
            raise PtoError(f"'{op.name}': a {scalar_name(scalar)} through a pointer to {pointer.data}")

    def array(self, op: PtoOp) -> None:
        array = op.operands[0].type
        if not isinstance(array, LocalArrayType):
            raise PtoError(f"'{op.name}' needs a !pto.local_array, got {array}")
        indices, scalar = op.operands[1:], op.results[0].type if op.results else op.operands[-1].type
        if not op.results:
            indices = indices[:-1]
        if len(indices) != len(array.data.shape):
            raise PtoError(f"'{op.name}': {len(indices)} indices of an array of rank {len(array.data.shape)}")
        if scalar_name(scalar) != array.data.dtype:
            raise PtoError(f"'{op.name}': a {scalar_name(scalar)} in an array of {array.data.dtype}")

    def signal(self, op: PtoOp) -> None:
        check_signal(op.name, *map(operand_of, op.operands))

    def transfer(self, op: PtoOp) -> None:
        dst, src, *stages = map(operand_of, op.operands)
        layouts = _layout_of(op.operands[0]), _layout_of(op.operands[1])
        check_transfer(op.name, dst, src, stages, layouts)

    def element(self, op: PtoOp) -> None:
        tile = _tile_of(op.operands[0])
        if tile.boxed:
            raise PtoError(f"'{op.name}' takes a tile with slayout=none_box, got {tile}")
        scalar = op.results[0].type if isinstance(op, GetValue) else op.operands[2].type
        if scalar_name(scalar).lstrip("us") != tile.dtype.lstrip("us"):
            raise PtoError(f"'{op.name}': a {scalar_name(scalar)} of a tile of {tile.dtype}")
        offset = constant(op.operands[1])
        if offset is not None and not 0 <= offset < tile.rows * tile.cols:
            raise PtoError(f"'{op.name}': element {offset} of a tile of {tile.rows * tile.cols}")


@cache
def _rules() -> dict[type[PtoOp], Callable[[_Verifier, PtoOp], None]]:
    rules: dict[type[PtoOp], Callable] = {
        MakeTensorView: _Verifier.make_tensor_view,
        PartitionView: _Verifier.partition_view,
        AllocTile: _Verifier.alloc_tile,
        Subview: _Verifier.subview,
        Reshape: _Verifier.reshape,
        Bitcast: _Verifier.bitcast,
        SetValidShape: _Verifier.set_validshape,
        AddPtr: _Verifier.pointer,
        LoadScalar: _Verifier.pointer,
        StoreScalar: _Verifier.pointer,
        GetValue: _Verifier.element,
        SetValue: _Verifier.element,
        LocalArrayGet: _Verifier.array,
        LocalArraySet: _Verifier.array,
        Notify: _Verifier.signal,
        WaitSignal: _Verifier.signal,
        PollSignal: _Verifier.signal,
        Put: _Verifier.transfer,
        Get: _Verifier.transfer,
    }
    return rules


def _builtin(op: Operation) -> None:
    try:
        if not isinstance(op, WhileOp):  # of which xDSL raises bare exceptions; its terminators are checked
            op.verify(verify_nested_ops=False)
    except VerifyException as error:
        raise PtoError(f"'{op.name}': {str(error).strip().splitlines()[-1]}") from None
    check_scalars(op)


def _view_of(value: SSAValue) -> View:
    found = getattr(value.type, "data", None)
    if not isinstance(found, View):
        raise PtoError(f"expected a tensor view, got {value.type}")
    return found


def _tile_of(value: SSAValue) -> Tile:
    found = operand_of(value)
    if not isinstance(found, Tile):
        raise PtoError(f"expected a tile, got {value.type}")
    return found


def _check_valid(op: PtoOp, tile: Tile, extents: Sequence[SSAValue | None]) -> None:
    for axis, value, room in zip(("rows", "columns"), extents, (tile.rows, tile.cols), strict=True):
        known = constant(value) if value is not None else None
        if known is not None and not 0 <= known <= room:
            raise PtoError(f"'{op.name}': {known} valid {axis} in a tile with {room}")


def _check_window_axis(axis: int, offset: int | None, size: int | None, extent: int | None, stated: int | None) -> None:
    if stated is not None and size is not None and stated != size:
        raise PtoError(f"'pto.partition_view': size {size} on axis {axis} but the type says {stated}")
    size = size if size is not None else stated
    if offset is not None and offset < 0:
        raise PtoError(f"'pto.partition_view': negative offset {offset} on axis {axis}")
    if size is not None and size <= 0:
        raise PtoError(f"'pto.partition_view': size {size} on axis {axis}, where only a positive constant may be")
    if extent is not None and size is not None and (offset or 0) + size > extent:
        raise PtoError(
            f"'pto.partition_view': elements {offset or 0}..{(offset or 0) + size} of axis {axis} "
            f"are outside its {extent}"
        )


def _check_nz(op: MakeTensorView, view: View, rank: int) -> None:
    if rank != 5:
        raise PtoError(f"'pto.make_tensor_view' op user-specified layout=nz requires a rank-5 view, got rank {rank}")
    c0 = max(1, 32 // view.numpy.itemsize)
    extents = [constant(value) for value in op.shape]
    for axis, want in ((3, 16), (4, c0)):
        if extents[axis] != want:
            raise PtoError(
                f"'pto.make_tensor_view': an nz view of {view.dtype} has shape [B, C/{c0}, R/16, 16, {c0}], "
                f"got {extents[axis]} on axis {axis}"
            )
    strides = [constant(value) for value in op.strides]
    if strides[4] not in (None, 1) or strides[3] not in (None, c0) or strides[2] not in (None, 16 * c0):
        raise PtoError(
            f"'pto.make_tensor_view': an nz view of {view.dtype} has inner strides [{16 * c0}, {c0}, 1], "
            f"got {strides[2:]}"
        )


def _check_nz_window(op: PartitionView, extents: list[int | None]) -> None:
    for axis in (3, 4):
        offset, size = constant(op.offsets[axis]), constant(op.sizes[axis])
        if offset != 0 or size is None or size != extents[axis]:
            raise PtoError("'pto.partition_view': a window of an nz view must keep the two innermost axes whole")


def _layout_of(value: SSAValue) -> str | None:
    window = value.owner
    view = window.operands[0].owner if isinstance(window, PartitionView) else None
    return view.layout or "nd" if isinstance(view, MakeTensorView) else None


def _check_layouts(op: InstructionOp, site: Site) -> None:
    """Loads and stores join a tensor layout with a tile layout; only some pairs exist."""
    if op.spec.mnemonic in ("tload", "tstore"):
        window = op.values()["src" if op.spec.mnemonic == "tload" else "dst"]
        layout = _layout_of(window) if isinstance(window.type, PartitionViewType) else None
        if layout is not None:
            check_window_layout(site, layout)
