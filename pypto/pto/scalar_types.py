"""Scalar types of PTO text and MLIR's builtin types for them."""

from __future__ import annotations

import re
from functools import cache

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    Signedness,
    VectorType,
)
from xdsl.ir import Attribute

INDEX = IndexType()
I64 = IntegerType(64)

_VECTOR = re.compile(r"vector<(\d+)x(\w+)>")
_SIGNEDNESS = {"i": Signedness.SIGNLESS, "si": Signedness.SIGNED, "ui": Signedness.UNSIGNED}
_FLOATS = {"f16": Float16Type, "bf16": BFloat16Type, "f32": Float32Type, "f64": Float64Type}


@cache
def scalar_type(name: str) -> Attribute | None:
    """The builtin type called ``name``, or None when MLIR has no builtin of that name here."""
    if name == "index":
        return INDEX
    if name in _FLOATS:
        return _FLOATS[name]()
    vector = _VECTOR.fullmatch(name)
    if vector is not None:
        element = scalar_type(vector.group(2))
        return None if element is None else VectorType(element, [int(vector.group(1))])
    prefix = name.rstrip("0123456789")
    if prefix in _SIGNEDNESS and prefix != name:
        return IntegerType(int(name[len(prefix) :]), _SIGNEDNESS[prefix])
    return None


def scalar_name(attr: Attribute) -> str:
    """Name of a builtin scalar type: the inverse of `scalar_type`; other types give their own text."""
    if isinstance(attr, IntegerType):
        prefix = {Signedness.SIGNLESS: "i", Signedness.SIGNED: "si", Signedness.UNSIGNED: "ui"}
        return f"{prefix[attr.signedness.data]}{attr.width.data}"
    return str(attr)
