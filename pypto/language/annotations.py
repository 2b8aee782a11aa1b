"""What stands in annotations: containers with shape and dtype, directions, handles.

These objects describe; inside a kernel the parser reads the annotation's text, so that its errors point there.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..dtypes import DataType
from ..ir.enums import MemorySpace, TensorLayout
from ..ir.expr import Expr
from ..ir.memref import MemRef as IrMemRef
from ..ir.types import ArrayType, DistributedTensorType, ScalarType, TensorType, TensorView, TileType, TileView, Type
from .memref import MemRef, MemRefSlot


def _no_value(kind: str) -> ValueError:
    return ValueError(f"annotation-only {kind} holds no value")


class _Annotation:
    """An annotation, or a wrapper of the expression it annotates outside a kernel."""

    kind: ClassVar[str] = ""
    _expr: Expr | None = None

    def unwrap(self) -> Expr:
        """The expression held. ValueError for an annotation."""
        if self._expr is None:
            raise _no_value(self.kind)
        return self._expr

    @property
    def expr(self) -> Expr:
        """The expression held. ValueError for an annotation."""
        return self.unwrap()

    @property
    def type(self) -> Type:
        return self.unwrap().type

    def __repr__(self) -> str:
        state = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if v is not None)
        return f"pl.{self.kind}({state})"


def _call_arguments(kind: str, names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    if len(args) > len(names):
        raise TypeError(f"{kind} takes {len(names)} arguments, got {len(args)}")
    values: dict[str, Any] = dict(zip(names, args))
    for name, value in kwargs.items():
        if name not in names:
            raise TypeError(f"{kind} got an unexpected keyword argument '{name}'")
        if name in values:
            raise TypeError(f"{kind} got multiple values for argument '{name}'")
        values[name] = value
    return values


class _Shaped(_Annotation):
    """``X[[shape], dtype, ...]``: further parts are recognised by what they are."""

    shape: Any
    dtype: Any
    memref: Any = None
    memory_space: MemorySpace | None = None

    def __init__(self, *args: Any, expr: Expr | None = None, **kwargs: Any) -> None:
        values = _call_arguments(self.kind, ("shape", "dtype"), args, kwargs)
        self.shape, self.dtype, self._expr = values.get("shape"), values.get("dtype"), expr
        if expr is not None and values:
            raise TypeError(f"{self.kind} takes either a shape and dtype, or an expression")

    def __class_getitem__(cls, item: Any) -> Any:
        if not isinstance(item, tuple) or len(item) < 2:
            raise TypeError(f"{cls.kind} needs a shape and a dtype: pl.{cls.kind}[[64, 64], pl.FP32]")
        made = cls(item[0], item[1])
        for part in item[2:]:
            made._take(part)
        return made

    def _take(self, part: Any) -> None:
        if isinstance(part, (IrMemRef, MemRef, MemRefSlot)):
            self.memref = part
        elif isinstance(part, MemorySpace):
            self.memory_space = part
        else:
            raise TypeError(f"{self.kind} does not take {part!r}")


class Tensor(_Shaped):
    """A tensor in global memory: ``pl.Tensor[[M, 128], pl.FP16(, layout or TensorView)(, MemRef)]``."""

    kind = "Tensor"
    tensor_view: TensorView | None = None

    def _take(self, part: Any) -> None:
        if isinstance(part, TensorLayout):
            self.tensor_view = TensorView(layout=part)
        elif isinstance(part, TensorView):
            self.tensor_view = part
        else:
            super()._take(part)


class DistributedTensor(Tensor):
    """A tensor that is one rank's slice of a communication window: ``pld.DistributedTensor[[64], pl.FP32]``.

    A string ``"window_buffer=.."``, as dumps state it, says nothing: the window follows from the program.
    """

    kind = "DistributedTensor"

    def _take(self, part: Any) -> None:
        if not is_window_note(part):
            super()._take(part)


def is_window_note(part: Any) -> bool:
    """Whether a part of an annotation only names, for a reader, the window the tensor is in."""
    return isinstance(part, str) and part.startswith("window_buffer=")


class Tile(_Shaped):
    """A tile in on-chip memory: ``pl.Tile[[16, 64], pl.FP16(, MemRef)(, pl.Mem.Vec)(, TileView)]``."""

    kind = "Tile"
    tile_view: TileView | None = None

    def _take(self, part: Any) -> None:
        if isinstance(part, TileView):
            self.tile_view = part
        else:
            super()._take(part)


class Scalar(_Annotation):
    """One value: ``pl.Scalar[pl.INT32]``."""

    kind = "Scalar"

    def __init__(self, *args: Any, expr: Expr | None = None, **kwargs: Any) -> None:
        values = _call_arguments(self.kind, ("dtype",), args, kwargs)
        self.dtype: Any = values.get("dtype") if expr is None else getattr(expr.type, "dtype", None)
        self._expr = expr

    def __class_getitem__(cls, item: Any) -> Scalar:
        return cls(item)


class Array(_Annotation):
    """A fixed-size array on a core's stack: ``pl.Array[16, pl.INT32]``."""

    kind = "Array"

    def __init__(self, extent: Any = None, dtype: DataType | None = None, *, expr: Expr | None = None) -> None:
        self.extent, self.dtype, self._expr = extent, dtype, expr

    def __class_getitem__(cls, item: Any) -> Array:
        if not isinstance(item, tuple) or len(item) != 2:
            raise TypeError("Array needs an extent and a dtype: pl.Array[16, pl.INT32]")
        return cls(*item)


class Tuple:
    """Several values: ``pl.Tuple[T1, T2]``."""

    kind = "Tuple"

    def __init__(self, types: tuple[Any, ...]) -> None:
        self.types = types

    def __class_getitem__(cls, item: Any) -> Tuple:
        return cls(item if isinstance(item, tuple) else (item,))


class _Direction:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __class_getitem__(cls, item: Any) -> Any:
        return cls(item)


class Out(_Direction):
    """A parameter the function only writes: ``pl.Out[pl.Tensor[..]]``."""


class InOut(_Direction):
    """A parameter the function reads and writes: ``pl.InOut[pl.Tensor[..]]``."""


class Ptr:
    """The base address of an allocation."""


class PrefetchAsyncContext:
    """State of an asynchronous prefetch."""


class AsyncEvent:
    """The completion event of an asynchronous transfer."""


class AsyncSession:
    """A session of asynchronous transfers."""


class CommCtx:
    """A communication context."""


class WindowBuffer:
    """A communication window."""


class MemRefType:
    """An allocation of on-chip or global memory."""


def wrap(expr: Expr) -> Any:
    """The ``pl`` object that stands for an expression outside a kernel."""
    kinds: dict[type, Any] = {
        DistributedTensorType: DistributedTensor,
        TensorType: Tensor,
        TileType: Tile,
        ScalarType: Scalar,
        ArrayType: Array,
    }
    cls = next((c for t, c in kinds.items() if isinstance(expr.type, t)), None)
    return expr if cls is None else cls(expr=expr)
