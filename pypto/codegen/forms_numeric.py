"""Forms of operators with a second result, scratch beside their result, or no result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.expr import Call, Var
from ..ops.registry import Bound, Pto
from .context import Op, Value
from .forms_gather import Form
from .instructions import attributes, destination

if TYPE_CHECKING:
    from .kernel import KernelBuilder


def _write(
    kernel: KernelBuilder, mnemonic: str, ins: list[Value], outs: list[Value], attrs: list[tuple[str, str]]
) -> None:
    kernel.add(Op("dps", mnemonic=mnemonic, ins=ins, outs=outs, attrs=attrs, inline_attrs=False))


def part_arg(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Values and their indices; the indices go into the argument ``index``."""
    if result is None:
        return None
    out = destination(kernel, bound, result)
    ins = [kernel.value(bound[n]) for n in pto.operands]
    _write(kernel, pto.mnemonic, ins, [out, kernel.value(bound["index"])], [])
    return out


def quant(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Scratch stands beside the result; an offset makes it asymmetric."""
    if result is None:
        return None
    out = destination(kernel, bound, result)
    ins = [kernel.value(bound[n]) for n in pto.operands if bound[n] is not None]
    outs = [out] if bound["tmp"] is None else [out, kernel.value(bound["tmp"])]
    kind = "INT8_SYM" if bound["offset"] is None else "INT8_ASYM"
    _write(kernel, pto.mnemonic, ins, outs, [("quant_type", f"#pto<quant_type {kind}>")])
    return out


def quant_mx(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Elements, and beside them what is known of each group."""
    if result is None:
        return None
    out = destination(kernel, bound, result)
    outs = [out, *(kernel.value(bound[n]) for n in ("exp", "max", "scaling"))]
    attrs = [("quant_type", "#pto<quant_type MXFP8>")]
    if bound["axis"] == 0:
        attrs.append(("grpAxis", "#pto<mx_group_axis axis0>"))
    _write(kernel, pto.mnemonic, [kernel.value(bound["tile"])], outs, attrs)
    return out


def show(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """An instruction that only reads."""
    ins = [kernel.value(bound[n]) for n in pto.operands]
    _write(kernel, pto.mnemonic, ins, [], attributes(pto, bound))
    return None


NUMERIC_FORMS: dict[str, Form] = {"part_arg": part_arg, "quant": quant, "quant_mx": quant_mx, "print": show}
