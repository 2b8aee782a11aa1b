"""`@pl.jit.extern`: kernels written in C++ that are declared by their signature."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import FunctionType as PyFunction
from typing import Any, Final

from ..ir.enums import FunctionType
from ..ir.expr import Call, GlobalVar, TupleGetItemExpr, Var
from ..ir.program import INCLUDE_DIRS, Function
from ..ir.stmt import AssignStmt, EvalStmt, ReturnStmt, Stmt, seq
from ..ir.types import TupleType, Type, UnknownType
from ..language.parser.external_kernels import located
from ..language.parser.function_parser import FunctionOptions
from . import specializer
from .decorator import JITFunction

_CORES: Final = {"aic": FunctionType.AIC, "aiv": FunctionType.AIV}


class MixedExtern(JITFunction):
    """A kernel in C++ for the cube and the vector cores: a function for each, and a Group that launches both."""

    def __init__(self, fn: PyFunction, members: Sequence[JITFunction], closure: Mapping[str, Any]) -> None:
        super().__init__(fn, "extern", FunctionOptions(FunctionType.Group), closure)
        self.members = list(members)

    def _forget(self) -> None:
        super()._forget()
        for member in self.members:
            member._forget()

    def parsed(
        self, types: Mapping[str, Type], constants: Mapping[str, Any], made: dict[Any, Function]
    ) -> tuple[Function, Iterable[Function]]:
        members = [specializer.specialize(member, types, constants, made) for member in self.members]
        return _group(self.name, members), members


class _Member(JITFunction):
    """The part of a `MixedExtern` for one kind of core."""

    def __init__(self, fn: PyFunction, core: str, options: FunctionOptions, closure: Mapping[str, Any]) -> None:
        super().__init__(fn, "extern", options, closure)
        self.name = f"{fn.__name__}_{core}"

    @cached_property
    def node(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        named = copy.copy(self._located[1])
        named.name = self.name
        return named


def _group(name: str, members: Sequence[Function]) -> Function:
    """The function that launches ``members`` together on its own arguments; it returns what the first does."""
    first, span = members[0], members[0].span
    params = [(Var(p.name_hint, p.type, p.span), d) for p, d in first.directed_params()]
    args = [p for p, _ in params]
    results = list(first.return_types)
    kind = TupleType(results) if len(results) > 1 else results[0] if results else UnknownType()
    call, *others = (Call(GlobalVar(m.name), args, None, None, kind, span) for m in members)
    rest: list[Stmt] = [EvalStmt(other, span) for other in others]
    if not results:
        return Function(name, params, [], seq([EvalStmt(call, span), *rest], span), span, FunctionType.Group)
    made = Var("result", kind, span)
    values = [TupleGetItemExpr(made, i, span) for i in range(len(results))] if len(results) > 1 else [made]
    body = seq([AssignStmt(made, call, span), *rest, ReturnStmt(values, span)], span)
    return Function(name, params, results, body, span, FunctionType.Group)


def declare(
    core_type: str,
    source: str | os.PathLike[str] | None,
    aic_source: str | os.PathLike[str] | None,
    aiv_source: str | os.PathLike[str] | None,
    include_dirs: Sequence[str | os.PathLike[str]],
    dual_aiv_dispatch: bool,
) -> Callable[[PyFunction, Mapping[str, Any]], JITFunction]:
    """What makes of a function, and the names around it, the kernel; `jit.extern` says what the arguments mean."""
    sources = _sources(core_type, source, aic_source, aiv_source)
    if dual_aiv_dispatch and core_type != "mixed":
        raise ValueError(
            f"dual_aiv_dispatch=True requires core_type='mixed', not {core_type!r}: it launches both vector cores "
            "beside the cube"
        )
    if isinstance(include_dirs, (str, os.PathLike)):
        raise TypeError(f"include_dirs must be a sequence of paths, not one path: [{str(include_dirs)!r}]")

    def make(fn: PyFunction, closure: Mapping[str, Any]) -> JITFunction:
        defined_in = fn.__code__.co_filename
        found = {core: _file(path, defined_in) for core, path in sources.items()}
        attrs = {INCLUDE_DIRS: json.dumps([_folder(d, defined_in) for d in include_dirs])} if include_dirs else {}
        options = {core: FunctionOptions(_CORES[core], attrs=attrs, external_source=path)
                   for core, path in found.items()}  # fmt: skip
        if core_type != "mixed":
            return JITFunction(fn, "extern", options[core_type], closure)
        if dual_aiv_dispatch:
            options["aiv"].attrs["dual_aiv_dispatch"] = True
        return MixedExtern(fn, [_Member(fn, core, o, closure) for core, o in options.items()], closure)

    return make


def _sources(core_type: str, source: Any, aic_source: Any, aiv_source: Any) -> dict[str, Any]:
    """The file of each core's kernel."""
    if core_type == "mixed":
        if aic_source is None or aiv_source is None or source is not None:
            raise ValueError("core_type='mixed' requires both aic_source= and aiv_source=, and no source=")
        return {"aic": aic_source, "aiv": aiv_source}
    if core_type not in _CORES:
        raise ValueError(f"core_type must be 'aic', 'aiv' or 'mixed', not {core_type!r}")
    given = [s for s in (source, aic_source if core_type == "aic" else aiv_source) if s is not None]
    other = aiv_source if core_type == "aic" else aic_source
    if len(given) != 1 or other is not None:
        raise ValueError(f"core_type={core_type!r} requires source=, the file of its only kernel")
    return {core_type: given[0]}


def _file(path: str | os.PathLike[str], defined_in: str) -> str:
    found = located(path, defined_in)
    if not found.is_file():
        raise ValueError(f"source file not found: {found}")
    return str(found)


def _folder(path: str | os.PathLike[str], defined_in: str) -> str:
    found: Path = located(path, defined_in)
    if not found.is_dir():
        raise ValueError(f"include directory not found: {found}")
    return str(found)
