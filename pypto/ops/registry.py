"""Operator declarations and the call builder derived from them.

An operator is one `declare` call: a signature string as `signature` describes, a type rule and facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum
from importlib import import_module
from typing import Any, Final

from ..dtypes import DataType
from ..ir.enums import DISTRIBUTED, MemorySpace
from ..ir.expr import KNOWN_OPS, Call, Expr, MakeTuple, Op
from ..ir.node import EMPTY, NodeList
from ..ir.span import UNKNOWN_SPAN, Span
from ..ir.types import ScalarType, TileType, Type, UnknownType
from .arguments import OpError, OpTypeError, argument, attribute, check_attr, fits, left_out, scalar_argument
from .signature import MISSING, ArgEffect, Param, attr_kind as attr_kind, parse_param, split_signature


class WriteChannel(Enum):
    """The path an operator's writes to global memory take: the two are not ordered against each other."""

    Dma = 0
    Scalar = 1


class Core(Enum):
    """Which core executes an operator; ``SHARED`` ones run wherever their operands are."""

    SHARED = "shared"
    VECTOR = "vector"
    CUBE = "cube"
    MOVE = "move"
    """A transfer: the memories at its ends decide."""


@dataclass(frozen=True, slots=True)
class Pto:
    """The PTO instruction of an operator: ``mnemonic ins(operands) outs(result) {attrs}``.

    ``operands`` are parameter names in the instruction's order, left out when the argument was; ``out`` is
    ``result`` or the parameter written. ``attrs`` maps instruction attributes to parameter names. ``form`` names a
    construct that is more than this one line (``load``, ``store``, ``slice`` ...), which codegen writes from a
    template of its own.
    """

    mnemonic: str = ""
    operands: tuple[str, ...] = ()
    out: str = "result"
    attrs: Mapping[str, str] = field(default_factory=dict)
    form: str = "dps"


EffectRule = Callable[[Mapping[str, Any]], ArgEffect]


@dataclass(frozen=True, slots=True)
class OpDecl:
    """Everything known of one operator."""

    name: str
    params: tuple[Param, ...]
    infer: Callable[[Bound], Type]
    doc: str
    core: Core = Core.SHARED
    spaces: Mapping[str, tuple[MemorySpace, ...]] = field(default_factory=dict)
    """Memories each tile argument may be in, the preferred first; absent: anywhere."""
    result_space: MemorySpace | str | None = None
    """Where the result is: a memory, the attribute that says, the argument it is beside, or None (no tile)."""
    inherits: str | None = None
    """The argument whose buffer the result is a view of."""
    reuses: str | None = None
    """The argument whose buffer the result overwrites in place."""
    inplace_safe: bool = True
    """Whether the result may take the buffer of an input that dies here, where the operator's instruction lets it."""
    row_major: bool = False
    """Whether tile operands and the result must be row major and unboxed."""
    same_valid: bool = False
    """Whether operands must have no larger valid region than the result, along the dimensions they share with it."""
    pure: bool = True
    """Whether a call whose result is unused can go; by default, unless it writes an argument in place."""
    duplicable: bool = True
    """Whether a second core may run a copy."""
    internal: bool = False
    """Whether only passes make calls of it."""
    elided: str | None = None
    """The optional argument that leaves no gap when it is left out: those after it are of another kind."""
    scalar_form: str | None = None
    """The operator a scalar last argument selects."""
    notice: Callable[[Bound], str | None] | None = None
    """What a user should be told of a call that is right but hardly meant."""
    tile_form: str | None = None
    """The tile operator a tensor operator maps to, argument by argument."""
    spelled: tuple[str, str] | None = None
    """A flag, and the name of the function that sets it: such calls are written, and print, under that name."""
    effects: Mapping[str, EffectRule] = field(default_factory=dict)
    """Arguments whose effect depends on the call's attributes."""
    channel: WriteChannel | None = None
    pto: Pto | None = None
    op: Op = field(init=False)
    args: tuple[Param, ...] = field(init=False)
    attrs: tuple[Param, ...] = field(init=False)
    by_name: Mapping[str, Param] = field(init=False)
    positional: tuple[Param, ...] = field(init=False)
    """The parameters that may be given by position."""

    def __post_init__(self) -> None:
        op = Op(self.name)
        op.decl = self
        KNOWN_OPS[self.name] = op
        put = object.__setattr__
        put(self, "op", op)
        put(self, "args", tuple(p for p in self.params if not p.is_attr))
        put(self, "attrs", tuple(p for p in self.params if p.is_attr))
        put(self, "by_name", {p.name: p for p in self.params})
        put(self, "positional", tuple(p for p in self.params if not p.keyword_only))

    def param(self, name: str) -> Param:
        return self.by_name[name]

    def arg_index(self, name: str) -> int:
        return next(i for i, p in enumerate(self.args) if p.name == name)

    def slots(self, args: Sequence[Any]) -> tuple[Param, ...]:
        """The arguments that the positional ``args`` are, in order."""
        if self.elided is None:
            return self.args
        param = self.by_name[self.elided]
        index = self.args.index(param)
        given = args[index] if len(args) > index else None
        if given is None or (isinstance(given, Expr) and fits(param.kinds, given)):
            return self.args
        return self.args[:index] + self.args[index + 1 :]

    @property
    def signature(self) -> str:
        """The call as a user writes it."""
        parts = [p.name if not p.optional else f"{p.name}={_show(p.default)}" for p in self.params]
        return f"{python_name(self.name)}({', '.join(parts)})"


def python_name(name: str) -> str:
    """The Python name of operator ``name``: keywords carry an underscore."""
    short = name.rpartition(".")[2]
    return short + "_" if short in ("and", "or", "not") else short


def _show(value: Any) -> str:
    if isinstance(value, DataType):
        return f"pl.{value.name}"
    if not isinstance(value, Enum):
        return repr(value)
    return f"{'pld' if type(value) in DISTRIBUTED else 'pl'}.{type(value).__name__}.{value.name}"


_REGISTRY: dict[str, OpDecl] = {}


def declare(name: str, signature: str, infer: Callable[[Bound], Type], doc: str, **facts: Any) -> OpDecl:
    """Register operator ``name``. `facts` are the remaining fields of `OpDecl`.

    Raises ValueError for a second declaration, a parameter without an effect, or facts that contradict it.
    """
    if name in _REGISTRY:
        raise ValueError(f"operator {name} is declared twice")
    params = tuple(parse_param(name, part) for part in split_signature(signature))
    facts.setdefault("pure", facts.get("reuses") is None)
    decl = OpDecl(name, params, infer, doc, **facts)
    _check_facts(decl)
    _REGISTRY[name] = decl
    return decl


def _check_facts(decl: OpDecl) -> None:
    arguments = {p.name: p for p in decl.args}
    about_args = set(decl.spaces) | set(decl.effects)
    about_args |= {decl.inherits, decl.reuses, decl.elided} - {None}
    about_args |= {p.like for p in decl.params if p.like not in DataType.__members__} - {None}
    unknown = about_args - set(arguments)
    if decl.pto is not None:
        unknown |= set(decl.pto.operands) - set(decl.by_name)
        unknown |= {*decl.pto.attrs.values(), decl.pto.out} - set(decl.by_name) - {"result"}
    if isinstance(decl.result_space, str):
        unknown |= {decl.result_space} - set(decl.by_name)
    if unknown:
        raise ValueError(f"operator {decl.name} states facts about parameters it lacks: {sorted(map(str, unknown))}")
    if decl.reuses is not None and arguments[decl.reuses].effect is ArgEffect.Read:
        raise ValueError(f"operator {decl.name} reuses {decl.reuses!r} in place but says it only reads it")
    if decl.channel is not None and not decl.effects and all(p.effect is ArgEffect.Read for p in decl.args):
        raise ValueError(f"operator {decl.name} has a write channel but writes no argument")


_LOADED_LATER: Final = ("pld.", "builtin.", "dist.")
"""Operators whose declarations are loaded when one of them is first asked for."""


def get_decl(name: str) -> OpDecl | None:
    """The declaration of operator ``name``."""
    found = _REGISTRY.get(name)
    if found is None and name.startswith(_LOADED_LATER):
        import_module(".distributed", __package__)
        found = _REGISTRY.get(name)
    return found


def all_decls() -> Iterable[OpDecl]:
    """Every declaration, in order of declaration."""
    return _REGISTRY.values()


def decl_of(call: Expr) -> OpDecl | None:
    """The declaration of the operator a call applies; None for functions and anything that is no operator call."""
    return call.op.decl if isinstance(call, Call) else None


class Bound:
    """The arguments of one call, by parameter name, as a type rule sees them."""

    __slots__ = ("decl", "values", "span")

    def __init__(self, decl: OpDecl, values: dict[str, Any], span: Span) -> None:
        self.decl, self.values, self.span = decl, values, span

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def type(self, name: str) -> Any:
        """The type of argument ``name``."""
        return self.values[name].type

    def arg(self, index: int) -> Any:
        """The argument the operator declares at ``index``."""
        return self.values[self.decl.args[index].name]

    def dims(self, name: str) -> Sequence[Expr]:
        """The elements of a ``dims`` argument; empty when it was left out."""
        value = self.values[name]
        return value.elements if isinstance(value, MakeTuple) else ()

    def fail(self, message: str, hint: str | None = None) -> OpError:
        """The error to raise for arguments that do not fit."""
        return OpError(f"{self.decl.name} {message}" + (f"\n  hint: {hint}" if hint else ""))


def bind(decl: OpDecl, args: Sequence[Any], kwargs: Mapping[str, Any], span: Span) -> Bound:
    """Match a call's arguments with ``decl``; numbers and lists become expressions.

    Raises OpTypeError for wrong counts, unknown keywords and wrong kinds, naming the signature.
    """
    params = decl.params
    if len(args) > len(decl.positional):
        raise _too_many(decl, len(decl.positional), len(args))
    given: dict[str, Any] = {}
    for param, value in zip(decl.positional if decl.elided is None else decl.slots(args), args):
        given[param.name] = value
    if kwargs:
        _add_keywords(decl, given, kwargs)
    values: dict[str, Any] = {}
    literals: list[Param] = []
    for param in params:
        value = given.get(param.name, param.default)
        if value is None:
            if param.required and not param.is_attr and param.name in given:
                raise OpTypeError(f"{decl.name}: {param.name} cannot be None: leave it out instead")
            value = param.default
        if value is MISSING:
            raise _missing(decl, param)
        if param.effect is None:
            values[param.name] = attribute(decl, param, value)
            continue
        values[param.name] = value if param.like else argument(decl, param, value, span)
        if param.like:
            literals.append(param)
    for param in literals:
        values[param.name] = scalar_argument(decl, param, values, span)
    return Bound(decl, values, span)


def _too_many(decl: OpDecl, most: int, count: int) -> OpTypeError:
    takes = f"{'at most' if any(p.optional for p in decl.params) else 'exactly'} {most}" if most else "no"
    return OpTypeError(
        f"{decl.name} takes {takes} positional argument{'' if most == 1 else 's'}, got {count}: {decl.signature}"
    )


def _missing(decl: OpDecl, param: Param) -> OpTypeError:
    needed = sum(not p.optional for p in decl.params)
    kind = "keyword" if param.keyword_only else "positional"
    return OpTypeError(
        f"{decl.name} requires {needed} arg{'' if needed == 1 else 's'}, missing required {kind} argument "
        f"{param.name!r}: it takes {needed} arguments at least, {decl.signature}"
    )


def _add_keywords(decl: OpDecl, given: dict[str, Any], kwargs: Mapping[str, Any]) -> None:
    for name, value in kwargs.items():
        if name in given:
            raise OpTypeError(f"{decl.name} got multiple values for {name!r}: {decl.signature}")
        if name not in decl.by_name:
            close = get_close_matches(name, list(decl.by_name), 1)
            meant = f"; did you mean {close[0]!r}?" if close else "."
            none = "" if decl.attrs or close else ", it has no kwargs"
            raise OpTypeError(
                f"{decl.name} got an unexpected keyword argument '{name}'{none}{meant} It is {decl.signature}"
                f"\n  Unknown kwarg {name!r}"
            )
        given[name] = value


def build_call(decl: OpDecl, args: Sequence[Any], kwargs: Mapping[str, Any], span: Span = UNKNOWN_SPAN) -> Call:
    """The call of ``decl`` on ``args``. A scalar last operand selects the operator's scalar form."""
    if decl.scalar_form is not None and _last_is_scalar(decl, args, kwargs):
        decl, args, kwargs = _scalar_call(decl, args, kwargs)
    bound = bind(decl, args, kwargs, span)
    return call_of(bound, decl.infer(bound))


def _scalar_call(decl: OpDecl, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[OpDecl, Any, Any]:
    """The scalar form of a call. Keywords it lacks must be at their defaults."""
    if len(args) > len(decl.positional):
        raise _too_many(decl, len(decl.positional), len(args))
    scalar = _REGISTRY[decl.scalar_form or ""]
    renamed = {decl.args[-1].name: scalar.args[-1].name}
    level = "Tile" if decl.name.startswith("tile.") else "Tensor"
    values = {p.name: v for p, v in zip(decl.params, args)} | dict(kwargs)
    for name in [n for n in values if n in decl.by_name and renamed.get(n, n) not in scalar.by_name]:
        if values[name] != decl.by_name[name].default:
            raise OpTypeError(f"{decl.name}: keyword {name!r} requires a {level} rhs; {scalar.name} has none")
        del values[name]
    return scalar, (), {renamed.get(name, name): value for name, value in values.items()}


def _last_is_scalar(decl: OpDecl, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    last = decl.args[-1]
    index = decl.params.index(last)
    value = args[index] if len(args) > index else kwargs.get(last.name)
    return isinstance(value, (int, float)) or (isinstance(value, Expr) and isinstance(value.type, ScalarType))


def build_ir_call(decl: OpDecl, args: Sequence[Any], kwargs: Mapping[str, Any], span: Span = UNKNOWN_SPAN) -> Call:
    """The call exactly as the IR states it: arguments by position, attributes by keyword and as they are stored.

    Raises OpTypeError as `bind`, TypeError for an attribute of another type, OpError for an always-stored one left out.
    """
    if len(args) > len(decl.args):
        raise _too_many(decl, len(decl.args), len(args))
    for param in decl.attrs:
        value = kwargs.get(param.name)
        if value is None and param.required:
            raise OpError(f"{decl.name} requires a {param.name!r} kwarg")
        if value is not None and param.kinds[0] == "PadValue":
            check_attr(decl, param, value)
    named = {p.name: v for p, v in zip(decl.slots(args), args)}
    if named.keys() & kwargs.keys():
        raise OpTypeError(f"{decl.name} got an argument twice: {decl.signature}")
    bound = bind(decl, (), {**named, **kwargs}, span)
    return call_of(bound, decl.infer(bound))


def call_of(bound: Bound, result: Type) -> Call:
    """The call node for bound arguments. Trailing arguments left out and attributes at their default are not stored.

    One left out before an argument that was given is stored as an empty tuple, and an empty tuple stands for it.
    """
    decl, values = bound.decl, bound.values
    args = [values[p.name] for p in decl.args if p.name != decl.elided or values[p.name] is not None]
    while args and args[-1] is None:
        args.pop()
    if any(a is None for a in args):
        args = [MakeTuple(EMPTY, bound.span) if a is None else a for a in args]
    attrs = {p.name: values[p.name] for p in decl.attrs
             if values[p.name] is not None and (p.always or values[p.name] != p.stored)}  # fmt: skip
    return Call._build(decl.op, NodeList(args), attrs, {}, _in_space(decl, result), bound.span)


def _in_space(decl: OpDecl, result: Type) -> Type:
    """A tile result in the memory its operator always writes to."""
    space = decl.result_space
    if not isinstance(space, MemorySpace) or not isinstance(result, TileType) or result.memory_space is not None:
        return result
    return TileType(result.shape, result.dtype, result.memref, result.tile_view, space)


def call(name: str, /, *args: Any, span: Span = UNKNOWN_SPAN, **kwargs: Any) -> Call:
    """Build a call of operator ``name``, as passes do."""
    decl = get_decl(name)
    if decl is None:
        raise OpTypeError(f"there is no operator {name!r}")
    return build_call(decl, args, kwargs, span)


def rebind(call: Call) -> Bound:
    """The arguments of an existing call by parameter name, None for those left out."""
    decl: OpDecl = call.op.decl
    values: dict[str, Any] = {p.name: None if p.stored is MISSING else p.stored for p in decl.params}
    for param, arg in zip(decl.slots(call.args), call.args):
        values[param.name] = None if left_out(param, arg) else arg
    values.update(call.kwargs)
    return Bound(decl, values, call.span)


def reinfer(call: Call, args: Sequence[Expr]) -> Call:
    """``call`` with other arguments and the result type that follows from them."""
    decl: OpDecl = call.op.decl
    bound = rebind(call)
    bound.values.update((p.name, None if left_out(p, arg) else arg) for p, arg in zip(decl.slots(args), args))
    made = call_of(bound, decl.infer(bound))
    return made.replace(attrs=call.attrs) if call.attrs else made


def arg_effect(call: Call, index: int) -> ArgEffect:
    """What ``call`` does to its argument ``index``. An atomic store reads what it adds to."""
    decl: OpDecl | None = call.op.decl
    return ArgEffect.Read if decl is None else effect_of(decl, index, call.kwargs, call.args)


def effect_of(decl: OpDecl, index: int, kwargs: Mapping[str, Any], args: Sequence[Any] = ()) -> ArgEffect:
    """What an operator called with attributes ``kwargs`` (and ``args``) does to its argument ``index``."""
    slots = decl.slots(args)
    if index >= len(slots):
        return ArgEffect.Read
    param = slots[index]
    rule = decl.effects.get(param.name)
    return rule(kwargs) if rule is not None else param.effect or ArgEffect.Read


def no_result(bound: Bound) -> Type:
    """Type rule of an operator that has no value."""
    return UnknownType()
