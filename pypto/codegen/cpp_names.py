"""Words of C++: those no identifier may be, and its types for scalars."""

from __future__ import annotations

from typing import Final

from ..dtypes import DataType

KEYWORDS: Final = frozenset(
    {
        "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch",
        "char", "class", "compl", "const", "const_cast", "constexpr", "continue", "decltype", "default", "delete",
        "do", "double", "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for",
        "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq",
        "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast",
        "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch",
        "template", "this", "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "union",
        "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
    }
)  # fmt: skip
SCALAR_TYPES: Final = {
    DataType.BOOL: "bool", DataType.INT8: "int8_t", DataType.INT16: "int16_t", DataType.INT32: "int32_t",
    DataType.INT64: "int64_t", DataType.INDEX: "int64_t", DataType.UINT8: "uint8_t", DataType.UINT16: "uint16_t",
    DataType.UINT32: "uint32_t", DataType.UINT64: "uint64_t", DataType.FP32: "float",
}  # fmt: skip
"""The types that host and device have alike."""
