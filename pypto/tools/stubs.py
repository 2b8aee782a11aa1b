"""``python -m pypto.tools.stubs``: write ``pypto/language/__init__.pyi`` from the declarations.

A type checker sees through it what `pl` makes when it is first asked: every operator with its parameters, types and
documentation, at the top level and in ``pl.tile``, ``pl.tensor`` and the other namespaces.
"""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pypto.language as pl

from ..dtypes import DataType
from ..ops import functions
from ..ops.registry import OpDecl, Param, no_result

TARGET = Path(pl.__file__).with_suffix(".pyi")
NAMESPACES = ("tile", "tensor", "array", "system", "prefetch")
_LINE = 120

_ARGUMENTS = {
    "tile": "Tile", "tensor": "Tensor", "dist": "DistributedTensor", "array": "Array", "scalar": "ScalarLike",
    "element": "ScalarLike", "index": "Index", "dims": "Dims", "ptr": "Ptr", "ctx": "CommCtx", "any": "Any",
}  # fmt: skip
_ATTRIBUTES = {
    "bool": "bool", "int": "int", "str": "str", "float": "float", "DataType": "DataType", "RoundMode": "str | int",
    "CmpMode": "str | int", "Coalesce": "str | int", "GatherOob": "str | int", "LaneType": "str", "PrintFormat": "str",
    "number": "float", "PadValue": "PadValue | float", "MaskPattern": "Any",
}  # fmt: skip
_VALUE_CLASSES = ("Tensor", "Tile", "Scalar", "Array", "Ptr", "CommCtx", "DistributedTensor", "Tuple", "WindowBuffer")

_HEAD = '''"""The kernel language, as type checkers see it. Written by ``python -m pypto.tools.stubs``; do not edit.

Shapes in annotations, ``pl.Tensor[[16, 64], pl.FP32]``, are values, not types: a file of kernels says
``# pyright: reportInvalidTypeArguments=false``.
"""

from collections.abc import Iterator, Sequence
from typing import Any, overload

'''

_VALUES = '''
class _Value:
    """What tensors, tiles and scalars have in common in a kernel."""

    shape: Any
    dtype: Any
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, key: Any) -> Any: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __bool__(self) -> bool: ...
    def __eq__(self, other: Any) -> Any: ...
    def __ne__(self, other: Any) -> Any: ...
    def __neg__(self) -> Any: ...
    def __invert__(self) -> Any: ...
'''
_OPERATORS = (
    "lt", "le", "gt", "ge", "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv",
    "rfloordiv", "mod", "rmod", "pow", "and", "rand", "or", "ror", "xor", "rxor", "lshift", "rshift", "matmul",
)  # fmt: skip


_LATE = "\nfrom ..ir.span import Span\nfrom ..jit import jit\n"
"""Names `pypto.language` takes from elsewhere when they are first used."""


def stub() -> str:
    """The whole stub file."""
    parts = [_HEAD, *_imports(), _VALUES]
    parts += [f"    def __{name}__(self, other: Any) -> Any: ...\n" for name in _OPERATORS]
    parts.append("\n")
    parts += [f"class {name}(_Value): ...\n" for name in _VALUE_CLASSES]
    parts.append("\nOut = Tensor\nInOut = Tensor\nScalarLike = Scalar | int | float\nIndex = Scalar | int\n")
    parts.append("Dims = Sequence[Index]\nTaskId = Scalar\n\n")
    parts += _constants()
    parts.append("\ndef compile(kernel: Any, **options: Any) -> Any:\n" + _doc(pl.compile.__doc__ or "", 1) + "\n")
    parts += [f"\n{text}" for text in map(_exported, sorted(functions.exported)) if text]
    parts += [_namespace(name) for name in NAMESPACES]
    return "".join(parts)


def _imports() -> Iterator[str]:
    """What `pypto.language` imports, but for what the stub defines itself."""
    own = {*_VALUE_CLASSES, "Out", "InOut", *NAMESPACES, "Any"}
    tree = ast.parse(Path(pl.__file__).read_text(encoding="utf-8") + _LATE)
    nodes = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module != "__future__"]
    for node in sorted(nodes, key=lambda n: (-n.level, n.module or "")):
        names = [a.asname or a.name for a in node.names]
        kept = [n for n in names if n not in own and not n.startswith("_")]
        if not kept or not node.level:
            continue
        source = "." * node.level + (node.module or "")
        line = f"from {source} import {', '.join(f'{n} as {n}' for n in kept)}\n"
        long = f"from {source} import (\n" + "".join(f"    {n} as {n},\n" for n in kept) + ")\n"
        yield line if len(line) <= _LINE else long


def _constants() -> Iterator[str]:
    yield "AUTO: int\nMem = MemorySpace\n"
    for layout in ("ND", "DN", "NZ", "MX_A_ZZ", "MX_B_NN"):
        yield f"{layout}: TensorLayout\n"
    for dtype in DataType:
        yield f"{dtype.name}: DataType\n"


def _type_of(p: Param, scalar: bool = False) -> str:
    if p.is_attr:
        kind = p.kinds[0]
        text = _ATTRIBUTES.get(kind) or (kind if hasattr(pl, kind) else "Any")
    else:
        kinds = [_ARGUMENTS[k] for k in p.kinds]
        text = " | ".join(dict.fromkeys([*kinds, *(["ScalarLike"] if scalar else [])]))
    return f"{text} | None" if p.optional and p.default is None and "Any" not in text else text


def _parameters(decl: OpDecl) -> list[str]:
    """An operator's parameters as a stub writes them: those after an optional one have a default too."""
    made: list[str] = []
    optional = keyword = False
    for p in (*decl.positional, *(p for p in decl.params if p.keyword_only)):
        optional = optional or p.optional
        if p.keyword_only and not keyword:
            keyword = True
            made.append("*")
        made.append(
            f"{p.name}: {_type_of(p, decl.scalar_form is not None and p is decl.args[-1])}"
            + (" = ..." if optional and (p.optional or not keyword) else "")
        )
    return [*made, *([] if keyword else ["*"]), "span: Span | None = ..."]


def _result_of(decl: OpDecl) -> str:
    """The class of an operator's value, where the declaration alone says it."""
    rule = decl.infer
    if rule is no_result:
        return "None"
    if getattr(rule, "__qualname__", "").startswith("scalar_result"):
        return "Scalar"
    written = next((p for p in decl.args if p.name == decl.reuses), None)
    if written is not None:
        return _ARGUMENTS[written.kinds[0]]
    if decl.name.startswith("tile."):
        return "Tile" if decl.result_space is not None or decl.inherits is not None else "Any"
    plain = decl.name.startswith("tensor.") and (decl.tile_form is not None or decl.pto is None)
    return "Tensor" if plain else "Any"


def _doc(text: str, depth: int) -> str:
    pad = "    " * depth
    words = text.strip().replace("\\", "\\\\").split("\n")
    if len(words) == 1 and len(words[0]) + len(pad) + 6 <= _LINE:
        return f'{pad}"""{words[0]}"""\n'
    lines: list[str] = []
    for line in words:
        lines += textwrap.wrap(line, _LINE - len(pad) - 3) or [""]
    body = "\n".join((pad + line).rstrip() for line in lines)
    return f'{pad}"""' + body.lstrip() + f'\n{pad}"""\n'


def _function(name: str, params: Sequence[str], result: str, doc: str, depth: int = 0, decorator: str = "") -> str:
    pad = "    " * depth
    head = f"{pad}{decorator}\n" if decorator else ""
    line = f"{pad}def {name}({', '.join(params)}) -> {result}:"
    if len(line) > _LINE:
        line = f"{pad}def {name}(\n" + "".join(f"{pad}    {p},\n" for p in params) + f"{pad}) -> {result}:"
    return f"{head}{line}\n{_doc(doc, depth + 1)}"


def _of_decl(decl: OpDecl, name: str, depth: int = 0, decorator: str = "") -> str:
    return _function(name, _parameters(decl), _result_of(decl), decl.doc, depth, decorator)


_ANYTHING = ("*args: Any", "span: Span | None = ...", "**kwargs: Any")


def _exported(name: str) -> str:
    """One ``pl.<name>``: an overload for each form a unified operator has."""
    found: Any = functions.exported[name]
    if isinstance(found, functions.OpFunction):
        return _of_decl(found.decl, name)
    if isinstance(found, functions.Unified):
        forms = [d for d in (found.tile, found.tensor) if d is not None]
        scalar = found.scalar is not None
        if len(forms) == 1 and not scalar:
            return _of_decl(forms[0], name)
        text = "".join(_of_decl(d, name, decorator="@overload") for d in forms)
        if scalar:
            names = [p.name for p in forms[0].args if not p.optional][: 2 if len(forms[0].args) > 1 else 1]
            params = [*(f"{n}: ScalarLike" for n in names), *_rest(name)]
            text += _function(name, params, "Scalar", "The same of scalars.", decorator="@overload")
        return text
    return _function(name, _ANYTHING, "Any", found.__doc__ or "")


def _rest(name: str) -> list[str]:
    """What the scalar form of a cast takes after its value."""
    more = ["target_type: DataType"] if name == "cast" else []
    return [*more, "*", "span: Span | None = ..."]


def _namespace(level: str) -> str:
    namespace = getattr(functions, level)
    lines = [f'\nclass {level}:\n    """Operators ``pl.{level}.*``."""\n']
    if level == "tile":
        lines.append("\n    MaskPattern: Any\n")
    for name in namespace.__all__:
        target: Any = getattr(namespace, name)
        decorator = "    @staticmethod".strip()
        if isinstance(target, functions.OpFunction):
            text = _of_decl(target.decl, name, 1, decorator)
        else:
            text = _function(name, _ANYTHING, "Any", target.__doc__ or "", 1, decorator)
        lines.append("\n" + text)
    return "".join(lines)


def main() -> None:
    """Write the stub; with ``--check``, exit with an error when it is out of date instead."""
    text = stub()
    if "--check" in sys.argv[1:]:
        if not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
            sys.exit(f"{TARGET} is out of date: run python -m pypto.tools.stubs")
        return
    TARGET.write_text(text, encoding="utf-8")
    print(f"wrote {TARGET}")


if __name__ == "__main__":
    main()
