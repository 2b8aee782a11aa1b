"""The Python functions of the operators, derived from their declarations.

`tile`, `tensor`, `array`, `system` and `prefetch` hold one `OpFunction` an operator, made on first use. `unified` holds
the ``pl.*`` operators, which choose between the tile, the tensor and the scalar form by their first argument, and
`exported` every operator reachable as ``pl.<name>``.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from ..dtypes import DataType
from ..ir import expr as E
from ..ir.expr import Call, Expr
from ..ir.scalar import binary, build_scalar, cast_scalar, scalar_const
from ..ir.span import Span
from ..ir.types import ScalarType, TensorType, TileType
from .catalog import ALIASES, GUARDS, IN_SPLIT_REGION, PROMOTED, SCALARS, TILE_ONLY_UNIFIED, UNIFIED
from .choices import CHOICES, SELECTED, Choice
from .kinds import ROUND_MODES
from .registry import OpDecl, OpTypeError, Param, all_decls, build_call, get_decl, python_name, rebind
from .signature import ATTR_KINDS
from .tile_gather import MaskPattern

Wrap = Callable[[Expr], Any]
_wrap: Wrap | None = None


def set_wrapper(wrap: Wrap | None) -> None:
    """Have results of calls on wrapped values (objects with ``unwrap()``) wrapped by ``wrap``."""
    global _wrap
    _wrap = wrap


def _unwrap(value: Any) -> Any:
    if isinstance(value, (Expr, int, float, str)) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return [_unwrap(v) for v in value]
    unwrap = getattr(value, "unwrap", None)
    return value if unwrap is None else unwrap()


class _Callable:
    """What every operator function shares: called in Python, it builds the expression at the caller's line."""

    __slots__ = ()
    __name__: str
    build: Callable[[Sequence[Any], Mapping[str, Any], Span], Expr]

    def __call__(self, *args: Any, span: Span | None = None, **kwargs: Any) -> Any:
        if args and type(args[-1]) is Span:
            *args, span = args  # pyright: ignore[reportAssignmentType]
        plain = [_unwrap(a) for a in args]
        named = {k: _unwrap(v) for k, v in kwargs.items()}
        made = self.build(plain, named, span or Span.here(1))
        wrapped = any(a is not b and isinstance(b, Expr) for a, b in zip((*args, *kwargs.values()),
                                                                       (*plain, *named.values())))  # fmt: skip
        return _wrap(made) if wrapped and _wrap is not None else made

    def __repr__(self) -> str:
        return f"<operator {self.__name__}>"


class OpFunction(_Callable):
    """One operator as a Python function."""

    __slots__ = ("decl", "__name__")

    def __init__(self, decl: OpDecl) -> None:
        self.decl = decl
        self.__name__ = python_name(decl.name)

    @property
    def __doc__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return f"{self.decl.signature}\n\n{self.decl.doc}"

    @property
    def __signature__(self) -> inspect.Signature:
        return _signature(self.decl.params)

    def build(self, args: Sequence[Any], kwargs: Mapping[str, Any], span: Span) -> Expr:
        """The call of the operator on positional ``args`` and keywords ``kwargs``."""
        return _build(self.decl, args, kwargs, span)


class SpelledFunction(OpFunction):
    """The function under whose name calls of an operator with its flag set are written."""

    __slots__ = ("flag",)

    def __init__(self, decl: OpDecl, flag: str, name: str) -> None:
        self.decl, self.flag, self.__name__ = decl, flag, name

    def build(self, args: Sequence[Any], kwargs: Mapping[str, Any], span: Span) -> Expr:
        return _build(self.decl, args, {**kwargs, self.flag: True}, span)


def _build(decl: OpDecl, args: Sequence[Any], kwargs: Mapping[str, Any], span: Span) -> Call:
    made = build_call(decl, args, kwargs, span)
    if decl.notice is not None:
        text = decl.notice(rebind(made))
        if text is not None:
            where = (span.filename, span.begin_line) if span.is_valid() else ("<kernel>", 1)
            warnings.warn_explicit(f"{decl.name}: {text}", UserWarning, *where)
    return made


def _signature(params: Sequence[Param]) -> inspect.Signature:
    made: dict[bool, list[inspect.Parameter]] = {False: [], True: []}
    optional = False
    for p in params:
        kind = inspect.Parameter.KEYWORD_ONLY if p.keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        optional = optional or (p.optional and not p.keyword_only)
        default = p.default if p.optional else None if optional else inspect.Parameter.empty
        made[p.keyword_only].append(inspect.Parameter(p.name, kind, default=default))
    span = inspect.Parameter("span", inspect.Parameter.KEYWORD_ONLY, default=None)
    return inspect.Signature([*made[False], *made[True], span])


class Unified(_Callable):
    """A ``pl.*`` operator: the tile, tensor or scalar operator its first argument asks for.

    It takes the parameters of all of them; one that only another form has must be at its default.
    """

    __slots__ = ("__name__", "tile", "tensor", "scalar", "params", "guards")

    def __init__(self, name: str, tile: OpDecl | None, tensor: OpDecl | None, scalar: str | None) -> None:
        self.__name__ = name
        self.tile, self.tensor, self.scalar = tile, tensor, scalar
        self.guards: Mapping[str, tuple[str, str]] = GUARDS.get(name, {})
        self.params = _merged_params(tile, tensor)

    @property
    def __doc__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        forms = [d for d in (self.tensor, self.tile) if d is not None]
        names = " or ".join(f"pl.{d.name}" for d in forms)
        return f"{self.__name__}: {names}, by the first argument.\n\n{forms[0].doc}"

    @property
    def __signature__(self) -> inspect.Signature:
        return _signature(self.params)

    def build(self, args: Sequence[Any], kwargs: Mapping[str, Any], span: Span) -> Expr:
        """The call of the form that fits the first argument. Raises OpTypeError when none does."""
        values = self._named(args, kwargs)
        first = values.get(self.params[0].name)
        if isinstance(first, Expr) and isinstance(first.type, TileType) and self.tile is not None:
            return self._call(self.tile, "Tile", values, span)
        if isinstance(first, Expr) and isinstance(first.type, TensorType) and self.tensor is not None:
            return self._call(self.tensor, "Tensor", values, span)
        if self.scalar is not None and _is_scalar(first) and not any(_is_shaped(v) for v in values.values()):
            return self._scalar(values, span)
        raise self._no_form(first, values)

    def _no_form(self, first: Any, values: Mapping[str, Any]) -> OpTypeError:
        what = "operands" if len([p for p in self.params if not p.optional]) > 1 else "operand"
        got = str(first.type).removeprefix("pl.") if isinstance(first, Expr) else f"{type(first).__name__} {first!r}"
        hint = ""
        if _is_scalar(first):
            swap = any(_is_shaped(v) for v in values.values())
            on_scalars = "scalars are computed with Python operators: + - * / // %, min, max, abs"
            hint = f"\n  hint: {'put the tile or tensor first' if swap else on_scalars}"
        return OpTypeError(f"pl.{self.__name__}: expected Tensor or Tile {what}, got {got}{hint}")

    def _named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        params = self.params
        if len(args) > len(params):
            raise OpTypeError(f"pl.{self.__name__} takes {len(params)} arguments, got {len(args)}")
        values: dict[str, Any] = {p.name: v for p, v in zip(params, args)}
        known = {p.name for p in params}
        for name, value in kwargs.items():
            canonical = name
            if name not in known:
                canonical = self._alias(name)
            if canonical in values:
                raise OpTypeError(f"pl.{self.__name__} got multiple values for {name!r}")
            values[canonical] = value
        return values

    def _alias(self, name: str) -> str:
        """The parameter a keyword means: forms may name their first operand differently."""
        for decl in (self.tensor, self.tile):
            if decl is not None and name == decl.params[0].name:
                return self.params[0].name
        close = get_close_matches(name, [p.name for p in self.params], 1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        raise OpTypeError(f"pl.{self.__name__} got an unexpected keyword argument '{name}'{meant}")

    def _call(self, decl: OpDecl, level: str, values: dict[str, Any], span: Span) -> Expr:
        first = self.params[0].name
        out_dtype = self._checked_out_dtype(decl, level, values)
        for name in [n for n in values if n not in decl.by_name and n != first]:
            if values[name] is not None and values[name] != self._default(name):
                raise OpTypeError(self._refusal(name, level))
            del values[name]
        self._check_scratch(decl, level, values)
        self._check_levels(decl, values)
        positional = values.pop(first)
        made = _build(decl, (positional,), values, span)
        if out_dtype is not None and made.dtype is not out_dtype:
            raise OpTypeError(
                f"pl.{self.__name__}: out_dtype={out_dtype!r} is not what the cube produces here, {made.dtype}"
                f"\n  hint: convert the result, pl.cast(result, {out_dtype!r})"
            )
        return made

    def _checked_out_dtype(self, decl: OpDecl, level: str, values: dict[str, Any]) -> Any:
        """The dtype asked of an operator whose result dtype is fixed: it must be the one it has."""
        if level == "Tensor" or "out_dtype" in decl.by_name:
            return None
        return values.pop("out_dtype", None)

    def _default(self, name: str) -> Any:
        return next((p.default for p in self.params if p.name == name), None)

    def _refusal(self, name: str, level: str) -> str:
        guard = self.guards.get(name)
        if guard is not None and guard[0] == level:
            return f"pl.{self.__name__}: keyword '{name}' is not supported for {level} operands: {guard[1]}"
        if name in ("tmp", "tmp_tile"):
            return f"pl.{self.__name__}: Tensor inputs must not pass {name}: the compiler allocates that scratch tile"
        other = "Tensor" if level == "Tile" else "Tile"
        return f"pl.{self.__name__}: keyword '{name}' is not supported for {level} operands, only for {other} ones"

    def _check_scratch(self, decl: OpDecl, level: str, values: Mapping[str, Any]) -> None:
        for param in decl.args:
            if not param.optional and values.get(param.name) is None and param.name in ("tmp", "tmp_tile"):
                wanted = "tmp_tile" if param.name == "tmp_tile" else "an explicit scratch tile as the last argument"
                raise OpTypeError(
                    f"pl.{self.__name__}: Tile inputs require {wanted}"
                    f"\n  hint: tmp = pl.create_tile(shape, dtype=...); {decl.signature}"
                )

    def _check_levels(self, decl: OpDecl, values: Mapping[str, Any]) -> None:
        wrong = TensorType if decl is self.tile else TileType
        for param in decl.args:
            value = values.get(param.name)
            if isinstance(value, Expr) and isinstance(value.type, wrong) and "any" not in param.kinds:
                mine, other = ("Tile", "Tensor") if decl is self.tile else ("Tensor", "Tile")
                if {"tile", "tensor"} <= set(param.kinds):
                    continue
                raise OpTypeError(
                    f"pl.{self.__name__}: cannot mix Tensor and Tile operands: the first is a {mine}, "
                    f"{param.name!r} a {other}\n  hint: pl.load makes a tile of a tensor"
                )

    def _scalar(self, values: dict[str, Any], span: Span) -> Expr:
        if self.scalar == "Cast":
            return _cast_scalar(self.__name__, values, span)
        operands = [values.pop(p.name) for p in self.params[:2] if p.name in values]
        for name, value in values.items():
            if value is not None and value != self._default(name):
                raise OpTypeError(f"pl.{self.__name__}: keyword '{name}' is not supported for Scalar operands")
        return scalar_call(self.scalar or "", operands, span)


def _merged_params(tile: OpDecl | None, tensor: OpDecl | None) -> tuple[Param, ...]:
    """The tile form's parameters, then those only the tensor form has, optional where either leaves one out."""
    if tile is None or tensor is None:
        return (tile or tensor).params  # pyright: ignore[reportOptionalMemberAccess]
    shared = [_optional(p, tensor.by_name.get(p.name)) if i else p for i, p in enumerate(tile.params)]
    extra = [_optional(p, None) for p in tensor.params[1:] if p.name not in tile.by_name]
    return (*shared, *extra)


def _optional(param: Param, other: Param | None) -> Param:
    if param.optional or (other is not None and not other.optional):
        return param
    default = other.default if other is not None else None
    return replace(param, default=default, stored=default)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, Expr) and isinstance(value.type, ScalarType))


def _is_shaped(value: Any) -> bool:
    return isinstance(value, Expr) and isinstance(value.type, (TileType, TensorType))


def scalar_call(cls: str, operands: Sequence[Any], span: Span) -> Expr:
    """Scalar arithmetic ``cls`` on numbers and scalar expressions."""
    if any(isinstance(o, Expr) for o in operands):
        return build_scalar(cls, operands, span)
    made = [scalar_const(o, None, span) for o in operands]
    return build_scalar(cls, made, span) if len(made) < 2 else binary(getattr(E, cls), made[0], made[1], span)


def _cast_scalar(name: str, values: Mapping[str, Any], span: Span) -> Expr:
    items = list(values.values())
    mode = values.get("mode")
    if mode is not None and ATTR_KINDS["RoundMode"](mode) != ROUND_MODES.index("round"):
        raise OpTypeError(f"pl.{name}: Scalar inputs do not support non-default mode {mode!r}")
    if values.get("saturate"):
        hint = "bound it first: pl.min(pl.max(x, low), high)"
        raise OpTypeError(f"pl.{name}: a Scalar does not saturate\n  hint: {hint}")
    target = values.get("target_type")
    if not isinstance(target, DataType):
        raise OpTypeError(f"pl.{name}: 'target_type' must be a DataType, got {target!r}")
    value = items[0] if isinstance(items[0], Expr) else scalar_const(items[0], None, span)
    return cast_scalar(value, target, span)


class ScalarFunction(_Callable):
    """Arithmetic that exists on scalars only, as a Python function."""

    __slots__ = ("__name__", "cls")

    def __init__(self, name: str, cls: str) -> None:
        self.__name__, self.cls = name, cls

    @property
    def __doc__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return f"Scalar {self.__name__} of two values."

    def build(self, args: Sequence[Any], kwargs: Mapping[str, Any], span: Span) -> Expr:
        operands = [*args, *kwargs.values()]
        if len(operands) != 2 or not all(_is_scalar(o) for o in operands):
            raise OpTypeError(
                f"pl.{self.__name__} takes two scalars\n  hint: pl.{self.__name__}imum compares tiles element by "
                f"element, pl.row_{self.__name__} and pl.col_{self.__name__} reduce them"
            )
        return scalar_call(self.cls, operands, span)


class InRegion(_Callable):
    """An operator that takes its mode from the region around it, so that only the parser can build it."""

    __slots__ = ("__name__", "decl", "region")

    def __init__(self, name: str, decl: OpDecl, region: str) -> None:
        self.__name__, self.decl, self.region = name, decl, region

    @property
    def __doc__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return f"{self.__name__}(value), in a {self.region} region.\n\n{self.decl.doc}"

    def build(self, args: Sequence[Any], kwargs: Mapping[str, Any], span: Span) -> Expr:
        """Raises RuntimeError: there is no region outside a kernel's source."""
        raise RuntimeError(f"pl.{self.__name__} has the mode of the {self.region} region it is written in, and there "
                           "is none outside a kernel")  # fmt: skip


class Selected(_Callable):
    """A function that is one of several operators, by which arguments it is given."""

    __slots__ = ("__name__", "level", "choice")

    def __init__(self, level: str, name: str, choice: Choice) -> None:
        self.__name__, self.level, self.choice = name, level, choice

    @property
    def __doc__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.choice.__doc__ or ""

    def build(self, args: Sequence[Any], kwargs: Mapping[str, Any], span: Span) -> Expr:
        """The call of the operator the arguments select."""
        name, values = self.choice(self.level, args, kwargs)
        return _build(_existing(f"{self.level}.{name}"), (), values, span)


def _existing(name: str) -> OpDecl:
    decl = get_decl(name)
    if decl is None:
        raise OpTypeError(f"there is no operator {name!r}")
    return decl


class SelectedByLevel(_Callable):
    """A `Selected` function that its first argument also takes to the tile or the tensor level."""

    __slots__ = ("__name__",)

    def __init__(self, name: str) -> None:
        self.__name__ = name

    @property
    def __doc__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return CHOICES[self.__name__].__doc__ or ""

    def build(self, args: Sequence[Any], kwargs: Mapping[str, Any], span: Span) -> Expr:
        first = args[0] if args else next(iter(kwargs.values()), None)
        if not _is_shaped(first):
            raise OpTypeError(f"pl.{self.__name__}: expected Tensor or Tile operands, got {type(first).__name__}")
        level = "tile" if isinstance(first.type, TileType) else "tensor"  # pyright: ignore
        if level == "tensor" and kwargs.get("tmp") is not None:
            raise OpTypeError(f"pl.{self.__name__}: Tensor inputs must not pass tmp: the compiler allocates it")
        return Selected(level, self.__name__, CHOICES[self.__name__]).build(args, kwargs, span)


class Namespace(ModuleType):
    """The operators of one level as attributes; ``choices`` are the functions that stand for several of them."""

    def __init__(self, level: str, choices: Mapping[str, Choice] | None = None) -> None:
        super().__init__(f"pypto.language.{level}", f"The {level} operators.")
        self._level = level
        self._path = level if level.startswith("pld.") else f"pl.{level}"
        self._choices = choices or {name: CHOICES[name] for at, name in SELECTED if at == level}
        self._aliases = {alias: name for (at, alias), name in ALIASES.items() if at == level}

    @property
    def __all__(self) -> list[str]:
        prefix = self._level + "."
        names = {python_name(d.name) for d in all_decls() if d.name.startswith(prefix)}
        return sorted(names | set(self._choices) | set(self._aliases))

    def __dir__(self) -> list[str]:
        return self.__all__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        target = self._aliases.get(name)
        if target is not None:
            made = getattr(self, target)
        elif name in self._choices:
            made = Selected(self._level, name, self._choices[name])
        else:
            decl = get_decl(f"{self._level}.{name}") or get_decl(f"{self._level}.{name.rstrip('_')}")
            if decl is None or python_name(decl.name) != name:
                made = self._spelled(name)
                if made is not None:
                    return made
                close = get_close_matches(name, self.__all__, 1)
                hint = f"; did you mean {self._path}.{close[0]}?" if close else ""
                raise AttributeError(f"there is no operator {self._path}.{name}{hint}")
            made = OpFunction(decl)
        setattr(self, name, made)
        return made

    def _spelled(self, name: str) -> SpelledFunction | None:
        for decl in all_decls():
            if decl.spelled is not None and decl.spelled[1] == name and decl.name.startswith(f"{self._level}."):
                return SpelledFunction(decl, *decl.spelled)
        return None


tile = Namespace("tile")
tensor = Namespace("tensor")
array = Namespace("array")
system = Namespace("system")
prefetch = Namespace("prefetch")
vars(tile)["MaskPattern"] = MaskPattern
_NAMESPACES: Mapping[str, Namespace] = {
    "tile": tile, "tensor": tensor, "array": array, "system": system, "prefetch": prefetch
}  # fmt: skip


def function_of(name: str) -> OpFunction:
    """The function of operator ``name``, such as ``tile.add``."""
    level, _, short = name.partition(".")
    return getattr(_NAMESPACES[level], python_name(short))


def _unified() -> dict[str, _Callable]:
    made: dict[str, _Callable] = {}
    for name in (*UNIFIED, *TILE_ONLY_UNIFIED):
        if name in CHOICES:
            made[name] = SelectedByLevel(name)
            continue
        short = name.rstrip("_")
        on_tile = get_decl(f"tile.{short}")
        on_tensor = get_decl(f"tensor.{short}") if name in UNIFIED else None
        made[name] = Unified(name, on_tile, on_tensor, SCALARS.get(name))
    for name in IN_SPLIT_REGION:
        made[name] = InRegion(name, _existing(f"tile.{name}"), "pl.split_aiv")
    for name in ("max", "min"):
        made[name] = ScalarFunction(name, name.capitalize())
    return made


unified: dict[str, _Callable] = _unified()
exported: dict[str, _Callable] = unified | {name: function_of(op) for name, op in PROMOTED.items()}
