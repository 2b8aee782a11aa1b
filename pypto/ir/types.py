"""Types: what an expression's value is, its shape, layout and place.

A type is immutable and compares by structure. ``symbolic`` says whether it mentions anything but constants, so
that a rewriter can pass constant types through untouched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ..dtypes import DataType
from .enums import CompactMode, MemorySpace, PadValue, TensorLayout, TileLayout
from .node import DATA, EMPTY, IGNORE, NODE, NODES, TYPES, IRNode, NodeList, ignore, node, node_list, use
from .span import UNKNOWN_SPAN

if TYPE_CHECKING:
    from .expr import Expr
    from .memref import MemRef, WindowBuffer


def dim_list(dims: Iterable[Expr | int] | None) -> NodeList:
    """Dimensions, strides or offsets as INDEX expressions; plain ints become constants."""
    if type(dims) is NodeList:
        return dims
    if not dims:
        return EMPTY
    from .expr import index_const

    return NodeList(index_const(d) if isinstance(d, int) else d for d in dims)


def _all_const(dims: Iterable[Any]) -> bool:
    return all(hasattr(d, "value") for d in dims)


def static_dims(dims: Sequence[Expr]) -> tuple[int, ...] | None:
    """The values of constant dimensions, or None when one is not constant."""
    values: tuple[int, ...] = tuple(v for d in dims if (v := getattr(d, "value", None)) is not None)
    return values if len(values) == len(dims) else None


def same_dims(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    """Whether two dimension lists are equal, one by one: equal constants or the same expressions."""
    return len(a) == len(b) and all(x is y or _same_dim(x, y) for x, y in zip(a, b))


def _same_dim(a: Expr, b: Expr) -> bool:
    left, right = getattr(a, "value", None), getattr(b, "value", None)
    if left is not None or right is not None or a.__class__ is not b.__class__:
        return left is not None and left == right
    from .structural import structural_equal

    return structural_equal(a, b)


class _View(IRNode):
    """A view compares by value: the same constants or the same symbolic expressions."""

    __slots__ = ()

    def _key(self) -> tuple[Any, ...]:
        parts: list[Any] = []
        for field in type(self).fields[:-1]:
            value = getattr(self, field.name)
            if field.holds == NODES:
                parts.append(tuple(getattr(d, "value", None) if hasattr(d, "value") else ("id", id(d)) for d in value))
            elif field.holds == NODE and value is not None:
                parts.append(value.value if hasattr(value, "value") else ("id", id(value)))
            else:
                parts.append(value)
        return tuple(parts)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _View) and type(self) is type(other) and self._key() == other._key())

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._key())


@node
class TensorView(_View):
    """Strides (elements), layout, valid region and padding of a tensor in global memory.

    Empty ``stride`` means the packed stride of ``layout``; empty ``valid_shape`` the whole shape.
    """

    stride: NodeList = use(NODES, EMPTY)
    layout: TensorLayout = use(DATA, TensorLayout.ND)
    valid_shape: NodeList = use(NODES, EMPTY)
    pad: PadValue = use(DATA, PadValue.null)

    def __new__(
        cls,
        stride: Iterable[Expr | int] = (),
        layout: TensorLayout = TensorLayout.ND,
        valid_shape: Iterable[Expr | int] = (),
        pad: PadValue = PadValue.null,
    ) -> TensorView:
        return cls._build(dim_list(stride), layout, dim_list(valid_shape), pad, UNKNOWN_SPAN)


@node
class TileView(_View):
    """Valid region and physical layout of a tile buffer. ``fractal`` is in bytes."""

    valid_shape: NodeList = use(NODES, EMPTY)
    stride: NodeList = use(NODES, EMPTY)
    start_offset: Expr | None = use(NODE, None)
    blayout: TileLayout = use(DATA, TileLayout.row_major)
    slayout: TileLayout = use(DATA, TileLayout.none_box)
    fractal: int = use(DATA, 512)
    pad: PadValue = use(DATA, PadValue.null)
    compact: CompactMode = use(DATA, CompactMode.null)

    def __new__(
        cls,
        valid_shape: Iterable[Expr | int] = (),
        stride: Iterable[Expr | int] = (),
        start_offset: Expr | int | None = None,
        blayout: TileLayout = TileLayout.row_major,
        slayout: TileLayout = TileLayout.none_box,
        fractal: int = 512,
        pad: PadValue = PadValue.null,
        compact: CompactMode = CompactMode.null,
    ) -> TileView:
        start = dim_list((start_offset,))[0] if start_offset is not None else None
        return cls._build(
            dim_list(valid_shape), dim_list(stride), start, blayout, slayout, fractal, pad, compact, UNKNOWN_SPAN
        )


_BOXED = {
    MemorySpace.Mat: (TileLayout.col_major, TileLayout.row_major, 512),
    MemorySpace.Left: (TileLayout.col_major, TileLayout.row_major, 512),
    MemorySpace.Right: (TileLayout.row_major, TileLayout.col_major, 512),
    MemorySpace.Acc: (TileLayout.col_major, TileLayout.row_major, 1024),
    MemorySpace.LeftScale: (TileLayout.row_major, TileLayout.row_major, 32),
    MemorySpace.RightScale: (TileLayout.col_major, TileLayout.col_major, 32),
}


def implicit_layout(shape: Sequence[Expr], space: MemorySpace | None) -> tuple[TileLayout, TileLayout, int]:
    """The (blayout, slayout, fractal bytes) a tile has when nothing says otherwise.

    Boxed spaces have a layout of their own; elsewhere a column ``[N, 1]`` with N > 1 is column major.
    """
    is_column = (
        len(shape) == 2 and getattr(shape[1], "value", None) == 1 and getattr(shape[0], "value", None) != 1
    )
    if space in _BOXED:
        blayout, slayout, fractal = _BOXED[space]
        return (TileLayout.col_major if is_column and space is MemorySpace.Right else blayout), slayout, fractal
    return (TileLayout.col_major if is_column else TileLayout.row_major), TileLayout.none_box, 512


def implicit_view(shape: Sequence[Expr], space: MemorySpace | None) -> TileView:
    """The whole-tile view of ``implicit_layout``."""
    blayout, slayout, fractal = implicit_layout(shape, space)
    return TileView(blayout=blayout, slayout=slayout, fractal=fractal)


class Type(IRNode):
    """Base of all types. Equal types have equal structure and equal hashes."""

    __slots__ = ()
    symbolic: bool = False

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Type):
            return NotImplemented
        from .structural import structural_equal

        return structural_equal(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        from .structural import structural_hash

        return structural_hash(self)

    def __str__(self) -> str:
        from .printer import python_print_type

        return python_print_type(self)

    __repr__ = __str__


@node
class UnknownType(Type):
    """A type not yet inferred."""


@node
class ScalarType(Type):
    """One value of ``dtype``. There is one object for each dtype."""

    dtype: DataType = use(DATA)

    def __new__(cls, dtype: DataType) -> ScalarType:
        made = _SCALARS.get(dtype)
        if made is None:
            made = _SCALARS[dtype] = cls._build(dtype, UNKNOWN_SPAN)
        return made


_SCALARS: dict[DataType, ScalarType] = {}


class ShapedType(Type):
    """A type with a shape and an element dtype."""

    __slots__ = ()
    shape: NodeList
    dtype: DataType
    memref: MemRef | None

def _check_dtype(dtype: object) -> None:
    if not isinstance(dtype, DataType):
        raise TypeError(f"dtype must be a DataType, got {type(dtype).__name__}")


def _check_packed(dims: Sequence[Expr], dtype: DataType) -> None:
    """Raise ValueError for a shape whose rows do not hold whole bytes: two FP4 elements share one."""
    if dtype is not DataType.FP4:
        return
    if not dims:
        raise ValueError("FP4 needs rank >= 1")
    width = getattr(dims[-1], "value", None)
    if width is not None and (width <= 0 or width % 2):
        raise ValueError(f"FP4 needs a positive even logical last dimension, got {width}: two elements share a byte")


def _replace(self: Any, **changes: Any) -> Any:
    """A copy with fields changed, through the constructor: views stay canonical, ``symbolic`` true to the parts."""
    if all(getattr(self, name) is value for name, value in changes.items()):
        return self
    kept = {f.name: getattr(self, f.name) for f in type(self).fields if f.role != IGNORE}
    return type(self)(**{**kept, **changes})


@node
class TensorType(ShapedType):
    """A tensor in global memory: logical ``shape``, ``dtype``, optional allocation and view."""

    shape: NodeList = use(NODES)
    dtype: DataType = use(DATA)
    memref: MemRef | None = use(NODE, None)
    tensor_view: TensorView | None = use(NODE, None)
    symbolic: bool = ignore()
    replace = _replace

    def __new__(
        cls,
        shape: Iterable[Expr | int],
        dtype: DataType,
        memref: MemRef | None = None,
        tensor_view: TensorView | None = None,
    ) -> TensorType:
        dims, view, symbolic = _tensor_parts(shape, dtype, memref, tensor_view)
        return cls._build(dims, dtype, memref, view, UNKNOWN_SPAN, symbolic)

    @property
    def memory_space(self) -> MemorySpace:
        return MemorySpace.DDR

    @property
    def layout(self) -> TensorLayout:
        """The layout the view states, ND without one."""
        return self.tensor_view.layout if self.tensor_view is not None else TensorLayout.ND

    @property
    def valid_shape(self) -> NodeList:
        """The valid region, the whole shape unless a view narrows it."""
        view = self.tensor_view
        return view.valid_shape if view is not None and view.valid_shape else self.shape


V = TypeVar("V", "TensorView", "TileView")


def _stated(view: V, dims: NodeList, implied: V) -> V | None:
    """``view`` without a valid region that is the whole shape; None when it says no more than is implied."""
    if view.valid_shape and same_dims(view.valid_shape, dims):
        view = view.replace(valid_shape=EMPTY)
    return None if view == implied else view


def _tensor_parts(
    shape: Iterable[Expr | int], dtype: DataType, memref: MemRef | None, view: TensorView | None
) -> tuple[NodeList, TensorView | None, bool]:
    _check_dtype(dtype)
    dims = dim_list(shape)
    _check_packed(dims, dtype)
    if view is not None:
        view = _stated(view, dims, _DEFAULT_TENSOR_VIEW)
    symbolic = memref is not None or not _all_const(dims)
    if view is not None and not symbolic:
        symbolic = not (_all_const(view.stride) and _all_const(view.valid_shape))
    return dims, view, symbolic


_DEFAULT_TENSOR_VIEW = TensorView()


@node
class DistributedTensorType(TensorType):
    """A tensor that is one rank's slice of a communication window."""

    window_buffer: WindowBuffer | None = use(NODE, None)

    def __new__(
        cls,
        shape: Iterable[Expr | int],
        dtype: DataType,
        memref: MemRef | WindowBuffer | None = None,
        tensor_view: TensorView | None = None,
        window_buffer: WindowBuffer | None = None,
    ) -> DistributedTensorType:
        from .memref import WindowBuffer

        if isinstance(memref, WindowBuffer):
            memref, window_buffer = None, memref
        dims, view, symbolic = _tensor_parts(shape, dtype, memref, tensor_view)
        symbolic = symbolic or window_buffer is not None
        return cls._build(dims, dtype, memref, view, window_buffer, UNKNOWN_SPAN, symbolic)


@node
class TileType(ShapedType):
    """A tile in on-chip memory.

    ``tile_view`` is None when it says no more than `implicit_view` of the shape and space does.
    """

    shape: NodeList = use(NODES)
    dtype: DataType = use(DATA)
    memref: MemRef | None = use(NODE, None)
    tile_view: TileView | None = use(NODE, None)
    memory_space: MemorySpace | None = use(DATA, None)
    symbolic: bool = ignore()
    replace = _replace

    def __new__(
        cls,
        shape: Iterable[Expr | int],
        dtype: DataType,
        memref: MemRef | None = None,
        tile_view: TileView | None = None,
        memory_space: MemorySpace | None = None,
    ) -> TileType:
        _check_dtype(dtype)
        if memref is not None and memory_space is None:
            raise ValueError("a TileType with a MemRef needs a memory_space")
        dims = dim_list(shape)
        _check_packed(dims, dtype)
        if tile_view is not None:
            tile_view = _stated(tile_view, dims, implicit_view(dims, memory_space))
        symbolic = memref is not None or not _all_const(dims)
        if tile_view is not None and not symbolic:
            symbolic = not (_all_const(tile_view.valid_shape) and _all_const(tile_view.stride))
            symbolic = symbolic or not (tile_view.start_offset is None or hasattr(tile_view.start_offset, "value"))
        return cls._build(dims, dtype, memref, tile_view, memory_space, UNKNOWN_SPAN, symbolic)

    @property
    def order(self) -> tuple[TileLayout, TileLayout, int]:
        """Block order, order inside a box, bytes of a box: the view's, or what shape and memory imply."""
        view = self.tile_view
        if view is None:
            return implicit_layout(self.shape, self.memory_space)
        return view.blayout, view.slayout, view.fractal

    def get_effective_tile_view(self) -> TileView:
        """The view with nothing left implicit: layout and ``valid_shape`` filled in."""
        view = self.tile_view or implicit_view(self.shape, self.memory_space)
        return view if view.valid_shape else view.replace(valid_shape=self.shape)

    @property
    def valid_shape(self) -> NodeList:
        """The valid region, the whole shape unless the view narrows it."""
        view = self.tile_view
        return view.valid_shape if view is not None and view.valid_shape else self.shape


def same_but_region(a: Type, b: Type) -> bool:
    """Whether two types are equal, or would be with one valid region for both."""
    if a is b:
        return True
    if type(a) is not type(b) or not isinstance(a, (TensorType, TileType)) or not isinstance(b, type(a)):
        return False
    if a.dtype is not b.dtype or not same_dims(a.shape, b.shape) or len(a.valid_shape) != len(b.valid_shape):
        return False
    return with_region(a, b.valid_shape) == b


def with_region(t: Any, valid: Sequence[Expr]) -> Any:
    """A tensor or tile type with another valid region."""
    if isinstance(t, TileType):
        view = t.get_effective_tile_view()
        return t.replace(tile_view=view.replace(valid_shape=dim_list(valid)))
    view = t.tensor_view or TensorView()
    region = () if same_dims(valid, t.shape) else valid
    view = view.replace(valid_shape=dim_list(region))
    return t.replace(tensor_view=None if view == TensorView() else view)


@node
class ArrayType(ShapedType):
    """A fixed-size 1-D array on a core's stack."""

    dtype: DataType = use(DATA)
    shape: NodeList = use(NODES)
    memory_space = MemorySpace.ScalarLocal
    memref = None

    def __new__(cls, dtype: DataType, extent: Expr | int | Sequence[Expr | int]) -> ArrayType:
        _check_dtype(dtype)
        if not (dtype.is_int() or dtype in (DataType.BOOL, DataType.TASK_ID)):
            raise ValueError(f"ArrayType element dtype must be an integer, BOOL or TASK_ID, got {dtype}")
        dims = dim_list((extent,) if isinstance(extent, (int, IRNode)) else extent)
        size = getattr(dims[0], "value", None) if len(dims) == 1 else None
        if size is None:
            raise ValueError("ArrayType has one extent, and the extent must be a compile-time ConstInt")
        if size <= 0:
            raise ValueError(f"ArrayType extent must be positive, got {size}")
        return cls._build(dtype, dims, UNKNOWN_SPAN)

    @property
    def extent(self) -> Expr:
        return self.shape[0]


@node
class TupleType(Type):
    """Several values."""

    types: NodeList = use(TYPES)
    symbolic: bool = ignore()

    def __new__(cls, types: Iterable[Type]) -> TupleType:
        members = node_list(types)
        return cls._build(members, UNKNOWN_SPAN, any(t.symbolic for t in members))


class _OpaqueType(Type):
    """A type without parts; `get` returns always the same object."""

    __slots__ = ()
    _one: ClassVar[Any] = None

    @classmethod
    def get(cls) -> Any:
        if cls.__dict__.get("_one") is None:
            cls._one = cls()
        return cls._one


@node
class PtrType(_OpaqueType):
    """An allocation's base address."""


@node
class WindowBufferType(_OpaqueType):
    """A communication window."""


@node
class CommCtxType(_OpaqueType):
    """A communication context."""


@node
class AsyncSessionType(_OpaqueType):
    """An asynchronous transfer session."""


@node
class AsyncEventType(_OpaqueType):
    """The completion event of an asynchronous transfer."""


@node
class PrefetchAsyncContextType(_OpaqueType):
    """State of an asynchronous prefetch."""
