"""Element types: one table, from which every name, width, predicate and foreign type comes."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy
    from numpy.typing import DTypeLike

_SIGNED, _UNSIGNED, _FLOAT, _OTHER = "signed", "unsigned", "float", "other"


class DataType(Enum):
    """Type of one element of a tensor, tile, array or scalar.

    Members are singletons: compare and hash them by identity. ``name`` is the name in ``pl``
    (``pl.FP32``), ``str()`` the lower-case one used in messages, ``value`` a stable integer code.

    Each row: code, bits, kind, text, PTO element type, numpy or ml_dtypes type. ``None`` where
    PTO or numpy has no such type.
    """

    BOOL = (0x00, 1, _OTHER, "bool", "i1", "bool_")
    INT4 = (0x10, 4, _SIGNED, "int4", "i4", "int4")
    INT8 = (0x11, 8, _SIGNED, "int8", "i8", "int8")
    INT16 = (0x12, 16, _SIGNED, "int16", "i16", "int16")
    INT32 = (0x13, 32, _SIGNED, "int32", "i32", "int32")
    INT64 = (0x14, 64, _SIGNED, "int64", "i64", "int64")
    INDEX = (0x15, 64, _SIGNED, "index", "index", "int64")
    UINT4 = (0x20, 4, _UNSIGNED, "uint4", "ui4", "uint4")
    UINT8 = (0x21, 8, _UNSIGNED, "uint8", "ui8", "uint8")
    UINT16 = (0x22, 16, _UNSIGNED, "uint16", "ui16", "uint16")
    UINT32 = (0x23, 32, _UNSIGNED, "uint32", "ui32", "uint32")
    UINT64 = (0x24, 64, _UNSIGNED, "uint64", "ui64", "uint64")
    FP4 = (0x30, 4, _FLOAT, "fp4", "!pto.f4E2M1x2", "float4_e2m1fn")
    FP8E4M3FN = (0x31, 8, _FLOAT, "fp8e4m3fn", "f8E4M3FN", "float8_e4m3fn")
    FP8E5M2 = (0x32, 8, _FLOAT, "fp8e5m2", "f8E5M2", "float8_e5m2")
    FP8E8M0 = (0x33, 8, _FLOAT, "fp8e8m0", "!pto.f8E8M0", "float8_e8m0fnu")
    FP16 = (0x34, 16, _FLOAT, "fp16", "f16", "float16")
    BF16 = (0x35, 16, _FLOAT, "bfloat16", "bf16", "bfloat16")
    FP32 = (0x36, 32, _FLOAT, "fp32", "f32", "float32")
    HF4 = (0x40, 4, _FLOAT, "hf4", None, None)
    HF8 = (0x41, 8, _FLOAT, "hf8", "!pto.hif8", None)
    TASK_ID = (0x50, 64, _OTHER, "task_id", None, None)

    bits: int
    _kind: str
    _text: str
    _mlir: str | None
    _numpy_name: str | None

    def __new__(cls, code: int, bits: int, kind: str, text: str, mlir: str | None, numpy_name: str | None) -> DataType:
        self = object.__new__(cls)
        self._value_ = code
        self.bits = bits
        self._kind, self._text, self._mlir, self._numpy_name = kind, text, mlir, numpy_name
        return self

    # Enum hashes the name in Python; identity is enough and runs in C.
    __hash__ = object.__hash__

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"DataType.{self._name_}"

    def code(self) -> int:
        """Integer code, the same in every process and release."""
        return self._value_

    def get_bit(self) -> int:
        """Width of one element in bits."""
        return self.bits

    def get_byte(self) -> int:
        """Bytes of one element rounded up, so 1 for the 1-bit and 4-bit types.

        For a buffer of several elements use `storage_bytes`: 4-bit elements share bytes.
        """
        return (self.bits + 7) // 8

    def storage_bytes(self, count: int) -> int:
        """Bytes occupied by ``count`` consecutive elements: 4-bit types pack two a byte, bool takes a byte."""
        return (count + 1) // 2 if self.bits == 4 else count * self.get_byte()

    def to_string(self) -> str:
        return self._text

    def is_float(self) -> bool:
        return self._kind is _FLOAT

    def is_signed_int(self) -> bool:
        return self._kind is _SIGNED

    def is_unsigned_int(self) -> bool:
        return self._kind is _UNSIGNED

    def is_int(self) -> bool:
        """Signed or unsigned integer, `INDEX` included; `BOOL` and `TASK_ID` are not integers."""
        return self._kind is _SIGNED or self._kind is _UNSIGNED

    def int_range(self) -> tuple[int, int]:
        """Smallest and largest value. Raises TypeError for a type that is not an integer."""
        if self._kind is _SIGNED:
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        if self._kind is _UNSIGNED:
            return 0, (1 << self.bits) - 1
        raise TypeError(f"{self._text} is not an integer type")

    @property
    def mlir(self) -> str:
        """Element type as PTO text writes it, such as ``f32``. Raises TypeError where PTO has none."""
        if self._mlir is None:
            raise TypeError(f"{self._text} has no PTO element type")
        return self._mlir

    @property
    def numpy(self) -> numpy.dtype:
        """numpy dtype holding one element a slot (4-bit types unpacked). Raises TypeError where there is none."""
        dtype = _numpy_dtypes.get(self)
        if dtype is None:
            dtype = _numpy_dtypes[self] = _load_numpy(self._text, self._numpy_name)
        return dtype


_numpy_dtypes: dict[DataType, numpy.dtype] = {}


def _load_numpy(text: str, name: str | None) -> numpy.dtype:
    if name is None:
        raise TypeError(f"{text} has no numpy equivalent")
    import numpy

    scalar = getattr(numpy, name, None)
    if scalar is None:
        import ml_dtypes

        scalar = getattr(ml_dtypes, name)
    return numpy.dtype(scalar)


def from_numpy(dtype: DTypeLike) -> DataType:
    """`DataType` of a numpy or ml_dtypes dtype; int64 gives `INT64`. Raises TypeError when there is none."""
    import numpy

    name = numpy.dtype(dtype).name
    found = of_numpy_name(name)
    if found is None:
        raise TypeError(f"no PyPTO element type for a {name} array")
    return found


def of_numpy_name(name: str) -> DataType | None:
    """`DataType` of the dtype numpy, ml_dtypes and torch call ``name``."""
    return _by_numpy_name.get(name)


# numpy calls the type bool_ and its dtype bool; INDEX shares int64 with INT64, which wins.
_by_numpy_name = {
    (member._numpy_name or "").rstrip("_"): member
    for member in DataType
    if member._numpy_name is not None and member is not DataType.INDEX
}

DT_BOOL = DataType.BOOL
DT_INT4 = DataType.INT4
DT_INT8 = DataType.INT8
DT_INT16 = DataType.INT16
DT_INT32 = DataType.INT32
DT_INT64 = DataType.INT64
DT_INDEX = DataType.INDEX
DT_UINT4 = DataType.UINT4
DT_UINT8 = DataType.UINT8
DT_UINT16 = DataType.UINT16
DT_UINT32 = DataType.UINT32
DT_UINT64 = DataType.UINT64
DT_FP4 = DataType.FP4
DT_FP8E4M3FN = DataType.FP8E4M3FN
DT_FP8E5M2 = DataType.FP8E5M2
DT_FP8E8M0 = DataType.FP8E8M0
DT_FP16 = DataType.FP16
DT_BF16 = DataType.BF16
DT_FP32 = DataType.FP32
DT_HF4 = DataType.HF4
DT_HF8 = DataType.HF8
DT_TASK_ID = DataType.TASK_ID
