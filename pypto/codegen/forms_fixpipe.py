"""Forms of accumulators that leave through the fix pipe: the tile of quantization words stands apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..ir.expr import Call, Var
from ..ops.registry import Bound, Pto
from .context import Op, Value
from .forms_gather import Form
from .instructions import destination
from .tensors import is_empty, window, written_extents

if TYPE_CHECKING:
    from .kernel import KernelBuilder

_WORDS = {"pto.tmov": ","}
"""What stands before the words; elsewhere their role does."""


def _write(kernel: KernelBuilder, mnemonic: str, ins: Sequence[Value], out: Value) -> None:
    word = _WORDS.get(mnemonic, " fp")
    kernel.add(Op("dps_apart", mnemonic=mnemonic, ins=ins, outs=[out], attrs=[], word=word))


def quantize(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """An accumulator into a tile in Mat, at an index where the instruction takes one."""
    if result is None:
        return None
    out = destination(kernel, bound, result)
    source, *place, scale = pto.operands
    at = [i for name in place for i in (bound.dims(name) or (bound[name],))]
    ins = [kernel.value(bound[source]), *map(kernel.scalars.index, at), kernel.value(bound[scale])]
    _write(kernel, pto.mnemonic, ins, out)
    return out


def store(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """An accumulator into a window of a tensor; the value is the tensor."""
    tile, tensor, offsets = bound["tile"], bound["output_tensor"], bound.dims("offsets")
    sizes = written_extents(tile.type.valid_shape, len(offsets))
    if not is_empty(sizes):
        target = window(kernel, tensor, offsets, sizes, tensor.name_hint, written=True)
        _write(kernel, pto.mnemonic, [kernel.value(tile), kernel.value(bound["scale"])], target)
    if result is None:
        return None
    kernel.pointers[result] = kernel.pointers[tensor]
    return kernel.handle(tensor)


FIX_PIPE_FORMS: dict[str, Form] = {"quantize": quantize, "store_quantized": store}
