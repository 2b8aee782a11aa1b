"""A runnable example for an operator, made from its declaration.

Arguments are chosen by kind and name, then tried: the first choice that compiles and runs on a target is the example.
An operator for which none does has no example here; the guides show those.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import pypto.language as pl

from ..backend import ASCEND910B, ASCEND950, Target
from ..dtypes import DataType
from ..errors import Diagnosed, InternalError, VerificationError
from ..ir.enums import MemorySpace
from ..ir.expr import Var
from ..ir.types import ScalarType, TensorType, TileType, Type
from ..ops.registry import ArgEffect, OpDecl, Param, build_call, python_name

_DTYPES = ("FP32", "INT32", "INT16", "UINT16", "UINT32", "UINT8", "INT8")
_SECOND = ("", "INT32", "UINT32", "UINT8", "FP32", "FP16")
_SHAPES = ((32, 64), (32, 1), (1, 64), (64, 32))
_INDICES = ("lhs_index", "rhs_index", "index")
"""Arguments of INT32 beside others of the first one's dtype."""
_ATTRIBUTES = {"MaskPattern": "pl.tile.MaskPattern.P0101", "CmpMode": "'gt'", "RoundMode": "'rint'", "str": "'row'"}
_REFUSALS = (
    *(ValueError, TypeError, Diagnosed, InternalError, VerificationError),
    *(NotImplementedError, AttributeError, KeyError),
)
_ENTRY = "import numpy as np\n\nimport pypto.language as pl\n\n\n"


class Argument(NamedTuple):
    """How an argument is written, the tensor parameter it comes from and the lines that make it."""

    text: str
    value: Any
    parameter: str = ""
    lines: tuple[str, ...] = ()


def example_of(decl: OpDecl) -> str | None:
    """Python that compiles and runs a kernel using ``decl``; None where none of the choices does."""
    level = decl.name.split(".")[0]
    if level not in ("tile", "tensor") or decl.internal:
        return None
    tried: set[tuple[Argument | None, ...]] = set()
    for dtype, second, shape in product(_DTYPES, _SECOND, _SHAPES):
        arguments = [_argument(decl, p, dtype, second, shape) for p in decl.params]
        key = tuple(a and a._replace(value=None) for a in arguments)
        if None in arguments or key in tried:
            continue
        tried.add(key)
        given = {p.name: a for p, a in zip(decl.params, arguments) if a is not None and a.text}
        text = _example(decl, given)
        if text is not None:
            return text
    return None


def _argument(decl: OpDecl, p: Param, dtype: str, second: str, shape: tuple[int, int]) -> Argument | None:
    if p.is_attr:
        return _attribute(p, dtype)
    kind = p.kinds[0]
    if p.optional and not (p.name == "tmp" and dtype.startswith("FP")):
        return Argument("", None)
    first = p is decl.args[0]
    indexed = "lhs_index" in decl.by_name
    element = dtype if first or not second or p.name.startswith("tmp") else second
    if indexed:
        element = "INT32" if p.name in _INDICES else dtype
    extent = _SHAPES[0] if first or p.name.startswith("tmp") else shape
    if kind == "tile":
        return _tile(decl, p, element, extent)
    if kind == "tensor":
        t = TensorType(list(extent), DataType[element])
        return Argument(p.name, Var(p.name, t), f"{p.name}: pl.Tensor[{list(extent)}, pl.{element}]")
    if kind in ("scalar", "element"):
        number = 2.0 if dtype.startswith("FP") else 2
        return Argument(str(number), number)
    if kind == "index":
        number = int(p.name == "axis2")
        return Argument(str(number), number)
    if kind == "dims":
        dims = [0, 0] if "offset" in p.name or "ind" in p.name else list(_SHAPES[0])
        return Argument(str(dims), dims)
    return None


def _attribute(p: Param, dtype: str) -> Argument | None:
    if p.optional:
        return Argument("", None)
    kind = p.kinds[0]
    if kind == "DataType":
        wanted = "FP16" if dtype == "FP32" else "FP32"
        return Argument(f"pl.{wanted}", DataType[wanted])
    if kind in ("int", "number"):
        return Argument("1", 1)
    if kind == "bool":
        return Argument("True", True)
    text = _ATTRIBUTES.get(kind)
    return None if text is None else Argument(text, eval(text, {"pl": pl}))


def _tile(decl: OpDecl, p: Param, dtype: str, shape: tuple[int, int]) -> Argument | None:
    space = decl.spaces.get(p.name, (MemorySpace.Vec,))[0]
    t = TileType(list(shape), DataType[dtype], None, None, space)
    if p.name.startswith("tmp") or p.effect is ArgEffect.Write:
        return Argument(p.name, Var(p.name, t), "", (f"{p.name} = pl.tile.create({list(shape)}, pl.{dtype})",))
    source = f"{p.name}_in"
    parameter = f"{source}: pl.Tensor[{list(shape)}, pl.{dtype}]"
    if space is MemorySpace.Vec:
        return Argument(p.name, Var(p.name, t), parameter, (f"{p.name} = pl.load({source}, [0, 0], {list(shape)})",))
    if space is MemorySpace.Acc:
        return None
    load = f"{p.name}_l1 = pl.load({source}, [0, 0], {list(shape)}, target_memory=pl.Mem.Mat)"
    move = f"{p.name} = pl.move({p.name}_l1, target_memory=pl.Mem.{space.name})"
    return Argument(p.name, Var(p.name, t), parameter, (load, move))


def _example(decl: OpDecl, given: dict[str, Argument]) -> str | None:
    """The example with these arguments, when the operator takes them and a target has it."""
    try:
        made = build_call(decl, (), {n: a.value for n, a in given.items()})
    except _REFUSALS:
        return None
    if not isinstance(made.type, (TileType, TensorType, ScalarType)):
        return None
    for target in (ASCEND910B, ASCEND950):
        text = _text(decl, given, made.type, target)
        if text is not None and _runs(text):
            return text
    return None


def _text(decl: OpDecl, given: dict[str, Argument], result: Type, target: Target) -> str | None:
    level, short = decl.name.split(".")[0], python_name(decl.name)
    words, by_name = [], False
    for p in decl.params:
        by_name = by_name or p.name not in given or p.is_attr
        if p.name in given:
            words.append(f"{p.name}={given[p.name].text}" if by_name else given[p.name].text)
    use = f"result = pl.{level}.{short}({', '.join(words)})"
    parameters = [a.parameter for a in given.values() if a.parameter]
    lines = [line for a in given.values() for line in a.lines]
    made = _kernel(level, parameters, [*lines, use], result)
    if made is None:
        return None
    arrays = [_array(text) for text in made[1]]
    compiled = f'compiled = pl.compile(example, target="{target.name}")\n'
    return _ENTRY + made[0] + "\n\n" + compiled + f"compiled({', '.join(arrays)})\n"


def _kernel(level: str, parameters: list[str], lines: list[str], result: Type) -> tuple[str, list[str]] | None:
    """The function, and the parameters it is called with."""
    if isinstance(result, ScalarType):
        shape, dtype, last = [1, 8], result.dtype.name, "pl.write(out, [0, 0], result)"
    elif isinstance(result, (TileType, TensorType)):
        sizes = [getattr(d, "value", None) for d in result.shape]
        if None in sizes or not sizes:
            return None
        shape, dtype, last = sizes, result.dtype.name, f"out = pl.store(result, {[0] * len(sizes)}, out)"
    else:
        return None
    if level == "tensor":
        head = _signature(parameters, f"pl.Tensor[{shape}, pl.{dtype}]")
        if isinstance(result, ScalarType):
            return None
        body = ["with pl.at(level=pl.Level.CORE_GROUP):", *("    " + line for line in lines), "return result"]
        return "@pl.function\n" + head + "".join(f"    {line}\n" for line in body), parameters
    given = [*parameters, f"out: pl.Out[pl.Tensor[{shape}, pl.{dtype}]]"]
    head = _signature(given, f"pl.Tensor[{shape}, pl.{dtype}]")
    body = [*lines, last, "return out"]
    return (
        "@pl.function(type=pl.FunctionType.InCore)\n" + head + "".join(f"    {line}\n" for line in body),
        given,
    )


def _signature(parameters: list[str], result: str) -> str:
    line = f"def example({', '.join(parameters)}) -> {result}:\n"
    if len(line) <= 100:
        return line
    return "def example(\n" + "".join(f"    {p},\n" for p in parameters) + f") -> {result}:\n"


def _array(parameter: str) -> str:
    """An argument for a parameter: ones of its shape and dtype."""
    inside = parameter.partition("pl.Tensor[")[2]
    shape, _, rest = inside.partition("], pl.")
    dtype = DataType[rest.strip("]")].numpy.name
    return f'np.ones({shape}], "{dtype}")'


def _runs(text: str) -> bool:
    """Whether the example compiles and runs."""
    function, _, call = text.partition("compiled = ")
    target = call.partition('target="')[2].partition('"')[0]
    kernel = function.partition("\n\n\n")[2]
    try:
        parsed = pl.parse("import pypto.language as pl\n" + kernel)
        compiled = pl.compile(parsed, target=target, dump_passes=False, skip_ptoas=True)
        arguments = call.partition("compiled(")[2].strip()[:-1]
        compiled(*eval(f"[{arguments}]", {"np": np}))
    except _REFUSALS:
        return False
    return True


def examples(decls: Iterable[OpDecl]) -> dict[str, str]:
    """The examples of all operators that have one, by operator."""
    made = {decl.name: example_of(decl) for decl in decls}
    return {name: text for name, text in made.items() if text is not None}
