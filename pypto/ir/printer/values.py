"""Printing expressions, types and attribute values."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

from ...dtypes import DataType
from ...errors import InternalError
from .. import expr as E, types as T
from ..enums import DISTRIBUTED, ArgDirection, MemorySpace, PadValue, SplitMode
from ..expr import Expr, GlobalVar, Var
from ..memref import MemRef, WindowBuffer
from .names import Names

_ATOM: Final = 20
_UNARY: Final = 11
_CONSTS: Final = frozenset({E.ConstInt, E.ConstFloat, E.ConstBool})

_INFIX: Final[dict[type, tuple[str, int]]] = {
    cls: (cls.symbol, level)
    for level, classes in (
        (1, (E.Or,)),
        (2, (E.And,)),
        (4, (E.Eq, E.Ne, E.Lt, E.Le, E.Gt, E.Ge)),
        (5, (E.BitOr,)),
        (6, (E.BitXor,)),
        (7, (E.BitAnd,)),
        (8, (E.BitShiftLeft, E.BitShiftRight)),
        (9, (E.Add, E.Sub)),
        (10, (E.Mul, E.FloorDiv, E.FloorMod, E.FloatDiv)),
        (12, (E.Pow,)),
    )
    for cls in classes
}
_INFIX[E.Xor] = ("^", 6)
_PREFIX: Final[dict[type, tuple[str, int]]] = {E.Neg: ("-", _UNARY), E.BitNot: ("~", _UNARY), E.Not: ("not ", 3)}
_FUNCTIONS: Final[dict[type, str]] = {E.Min: "min", E.Max: "max", E.Abs: "abs"}
_LEVELS: Final[dict[type, int]] = {cls: level for cls, (_, level) in (_INFIX | _PREFIX).items()}

_BARE_INT, _BARE_FLOAT = DataType.INDEX, DataType.FP32
_LANE_OPS: Final = frozenset({"tile.aiv_shard", "tensor.aiv_shard", "tile.aic_gather", "tensor.aic_gather"})
_DEPENDENCY_ATTRS: Final = ("manual_dep_edges", "dummy_task")
_OPAQUE_TYPES: Final[dict[type, str]] = {
    T.UnknownType: "Unknown",
    T.PtrType: "Ptr",
    T.WindowBufferType: "WindowBuffer",
    T.CommCtxType: "CommCtx",
    T.AsyncSessionType: "AsyncSession",
    T.AsyncEventType: "AsyncEvent",
    T.PrefetchAsyncContextType: "PrefetchAsyncContext",
}


def dialect_import(prefix: str) -> str:
    """The line that imports the language under ``prefix``."""
    if prefix == "pl":
        return "import pypto.language as pl"
    return "from pypto import language" + (f" as {prefix}" if prefix != "language" else "")


def quoted(text: str) -> str:
    """A string literal in double quotes."""
    body = repr(text)[1:-1]
    return repr(text) if '"' in text else '"' + body.replace("\\'", "'") + '"'


def number(value: int | float) -> str:
    """A number literal; infinities and NaN through ``float``."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f'float("{value}")'
    return repr(value)


class ValuePrinter:
    """Turns expressions, types and attribute values into text, naming variables through ``names``."""

    __slots__ = ("names", "pl", "explicit", "in_program", "lane_split", "types")

    def __init__(self, names: Names, prefix: str, explicit: bool = False, in_program: bool = False) -> None:
        self.names = names
        self.pl = f"{prefix}."
        self.explicit = explicit
        self.in_program = in_program
        self.lane_split: SplitMode | None = None
        self.types: dict[int, str] = {}

    def expr(self, e: Expr) -> str:
        return _EXPRS[e.__class__](self, e)

    def list(self, items: Any) -> str:
        return ", ".join([self.expr(x) for x in items])

    def operand(self, e: Expr, least: int, typed: bool) -> str:
        """``e`` as an operand that binds at least as tightly as ``least``; ``typed`` gives constants their dtype."""
        cls = e.__class__
        if cls in _CONSTS:
            if typed:
                return self.typed_const(e)
            text = self.expr(e)
            return f"({text})" if text[0] == "-" and least > _UNARY else text
        text = self.expr(e)
        return f"({text})" if _LEVELS.get(cls, _ATOM) < least else text

    def typed_const(self, e: Any) -> str:
        if e.__class__ is E.ConstBool:
            return str(e.value)
        return f"{self.pl}const({number(e.value)}, {self.pl}{e.type.dtype.name})"

    def value(self, v: Any) -> str:
        """A keyword's or attribute's value."""
        if isinstance(v, (E.Expr, T.Type)):
            if v.__class__ in _CONSTS:
                return self.typed_const(v)
            return self.type(v) if isinstance(v, T.Type) else self.expr(v)
        if isinstance(v, str):
            return quoted(v)
        if isinstance(v, Enum):
            return self.enum(v)
        if isinstance(v, (list, tuple)):
            return f"[{', '.join([self.value(x) for x in v])}]"
        if isinstance(v, Mapping):
            return "{" + ", ".join(f"{quoted(str(k))}: {self.value(x)}" for k, x in v.items()) + "}"
        return number(v) if isinstance(v, float) else repr(v)

    def enum(self, v: Enum) -> str:
        if isinstance(v, DataType):
            return self.pl + v.name
        if isinstance(v, MemorySpace):
            return f"{self.pl}Mem.{v.name}"
        if isinstance(v, ArgDirection):
            return f"{self.pl}adir.{_DIRECTIONS[v]}"
        cls = type(v)
        return f"{'pld.' if cls in DISTRIBUTED else self.pl}{cls.__name__}.{v.name}"

    def type(self, t: T.Type) -> str:
        text = self.types.get(id(t))
        if text is None:
            text = self.types[id(t)] = _TYPES[t.__class__](self, t)
        return text

    def dims(self, items: Any) -> str:
        """A shape: constant dimensions are plain numbers whatever their dtype."""
        return "[" + ", ".join([str(x.value) if x.__class__ is E.ConstInt else self.expr(x) for x in items]) + "]"

    def dim(self, e: Expr) -> str:
        return self.dims((e,))[1:-1]

    def view(self, v: Any) -> str:
        return self.tensor_view(v) if isinstance(v, T.TensorView) else self.tile_view(v, T.TileView(), full=False)

    def tensor_view(self, v: T.TensorView) -> str:
        parts = [f"valid_shape={self.dims(v.valid_shape)}"] if v.valid_shape else []
        parts += [f"stride={self.dims(v.stride)}", f"layout={self.enum(v.layout)}"]
        if v.pad is not PadValue.null:
            parts.append(f"pad={self.enum(v.pad)}")
        return f"{self.pl}TensorView({', '.join(parts)})"

    def tile_view(self, v: T.TileView, implicit: T.TileView, full: bool) -> str:
        """The fields that differ from what shape and memory imply; ``full`` states the block layout regardless."""
        parts = []
        if v.valid_shape:
            parts.append(f"valid_shape={self.dims(v.valid_shape)}")
        if v.stride:
            parts.append(f"stride={self.dims(v.stride)}")
        if v.start_offset is not None:
            parts.append(f"start_offset={self.expr(v.start_offset)}")
        for name in ("blayout", "slayout", "fractal", "pad", "compact"):
            found = getattr(v, name)
            if found is not getattr(implicit, name) and found != getattr(implicit, name) or (full and name in _LAYOUT):
                parts.append(f"{name}={self.value(found)}")
        return f"{self.pl}TileView({', '.join(parts)})"

    def memref(self, m: MemRef) -> str:
        name = self.names[m.base]
        base = name if m.base in self.names.defined else quoted(name)
        slots = f", slots={m.slot_count}" if m.slot_count != 1 else ""
        index = f"[{self.expr(m.slot_index)}]" if m.slot_index is not None else ""
        if not m.is_pinned:
            return f"{self.pl}MemRef({base}, {self.expr(m.byte_offset)}, {m.size}{slots}){index}"
        return f"{self.pl}MemRef({quoted(name)}{slots}){index}"

    def attrs(self, attrs: Mapping[str, Any], skip: tuple[str, ...] = ()) -> list[str]:
        """``attrs={...}`` as a call part, or nothing."""
        items = [f"{quoted(k)}: {self.value(v)}" for k, v in attrs.items() if k not in skip]
        return [f"attrs={{{', '.join(items)}}}"] if items else []

    def callee(self, op: Any) -> str:
        return f"self.{op.name}" if self.in_program else op.name

    def call(self, e: Any) -> str:
        op = e.op
        if isinstance(op, GlobalVar):
            parts = [*map(self.expr, e.args), *self.kwargs(e)]
            if e.attrs:
                device = e.attrs.get("device")
                parts += [f"device={self.expr(device)}"] if isinstance(device, Expr) else []
                parts += self.attrs(e.attrs, ("device",) if isinstance(device, Expr) else ())
            return f"{self.callee(op)}({', '.join(parts)})"
        if op.name == "system.task_dummy":
            deps = f"deps=[{self.list(e.attrs.get('manual_dep_edges', ()))}]"
            return f"{self.op_name(op.name)}({', '.join([deps, *self.attrs(e.attrs, _DEPENDENCY_ATTRS)])})"
        if e.attrs:
            misplaced = [k for k in _DEPENDENCY_ATTRS if k in e.attrs]
            if misplaced:
                raise InternalError(f"{op.name} carries {misplaced[0]!r}, which only system.task_dummy can")
        decl = op.decl
        if decl is None or (not e.kwargs and _args_lead(decl)):
            parts = [*map(self.expr, e.args), *self.kwargs(e)]
        else:
            if decl.spelled is not None and e.kwargs.get(decl.spelled[0]):
                return self._spelled(e, *decl.spelled)
            parts = self.in_declared_order(e, decl)
        return f"{self.op_name(op.name)}({', '.join(parts + self.attrs(e.attrs) if e.attrs else parts)})"

    def _spelled(self, e: Any, flag: str, function: str) -> str:
        """A call whose ``flag`` is set, under the function that sets it."""
        kwargs = {k: v for k, v in e.kwargs.items() if k != flag}
        parts = self.in_declared_order(e.replace(kwargs=kwargs), e.op.decl)
        return f"{self.op_name(e.op.name.rpartition('.')[0])}.{function}({', '.join(parts + self.attrs(e.attrs))})"

    def op_name(self, name: str) -> str:
        head, _, last = name.rpartition(".")
        if keyword.iskeyword(last):
            name = f"{name}_"
        return name if head.startswith(("pld", "builtin")) else self.pl + name

    def kwargs(self, e: Any) -> list[str]:
        """Keywords of something that has no declaration."""
        return [f"{k}={self.kwarg(_ENUM_KEYWORDS.get(k), v)}" for k, v in e.kwargs.items()]

    def inherits_split(self, e: Any, name: str) -> bool:
        """Whether a lane operator's keyword only repeats the mode of the region it stands in."""
        mode = self.lane_split
        if name != "split" or mode is None or e.op.name not in _LANE_OPS:
            return False
        value = e.kwargs[name]
        return getattr(value, "value", value) == mode.value

    def kwarg(self, kind: str | None, value: Any) -> str:
        """A keyword's value; a stored code of an enum as its member."""
        members = _ENUMS.get(kind) if value.__class__ is int else None
        return self.value(value) if members is None else self.enum(members(value))

    def in_declared_order(self, e: Any, decl: Any) -> list[str]:
        """Arguments and keywords as the operator declares them: those after a keyword left out go by name."""
        parts, named, args, kwargs = [], False, iter(e.args), e.kwargs
        for param in decl.params:
            name = param.name
            if not param.is_attr:
                arg = next(args, None)
                named = named or param.keyword_only
                if arg is not None:
                    bare = arg.__class__ is E.ConstInt and arg.dtype.name == param.like
                    text = str(arg.value) if bare else self.expr(arg)
                    parts.append(f"{name}={text}" if named else text)
            elif name in kwargs and not self.inherits_split(e, name):
                text = self.kwarg(param.kinds[0], param.shown(kwargs[name]))
                named = named or not param.positional
                parts.append(f"{name}={text}" if named else text)
            else:
                named = True
        parts += [self.expr(a) for a in args]
        parts += [f"{k}={self.value(v)}" for k, v in kwargs.items() if k not in decl.by_name]
        return parts

    def submit(self, e: Any) -> str:
        parts = [self.callee(e.op) if isinstance(e.op, GlobalVar) else self.op_name(e.op.name)]
        parts += [self.expr(a) for a in e.args]
        if e.core_num is not None:
            parts.append(f"core_num={self.expr(e.core_num)}")
        if e.sync_start:
            parts.append("sync_start=True")
        if e.deps:
            parts.append(f"deps=[{self.list(e.deps)}]")
        if e.allow_early_resolve:
            parts.append("allow_early_resolve=True")
        if e.predicate is not None:
            parts.append(f"predicate=({self.expr(e.predicate)})")
        if e.attrs.get("dump_vars"):
            parts.append(f"dumps=[{self.list(e.attrs['dump_vars'])}]")
        form = "submit" if e.core_num is None else "spmd_submit"
        return f"{self.pl}{form}({', '.join([*parts, *self.kwargs(e), *self.attrs(e.attrs, ('dump_vars',))])})"


_LAYOUT: Final = ("blayout", "slayout", "fractal")
_DIRECTIONS: Final = {
    ArgDirection.Input: "input",
    ArgDirection.Output: "output",
    ArgDirection.InOut: "inout",
    ArgDirection.OutputExisting: "output_existing",
    ArgDirection.NoDep: "no_dep",
    ArgDirection.Scalar: "scalar",
}


def _enum_classes() -> dict[str | None, Any]:
    from .. import enums

    return {k: v for k, v in vars(enums).items() if isinstance(v, type) and issubclass(v, Enum) and v is not Enum}


_ENUMS: Final = _enum_classes()
_ENUM_KEYWORDS: Final = {"atomic": "AtomicType"}
"""Keywords that stand for an enum's code, for operators without a declaration."""
_ARGS_LEAD: dict[str, bool] = {}


def _args_lead(decl: Any) -> bool:
    """Whether an operator declares all its arguments before its keywords."""
    found = _ARGS_LEAD.get(decl.name)
    if found is None:
        kinds = [p.is_attr for p in decl.params]
        found = _ARGS_LEAD[decl.name] = kinds == sorted(kinds)
    return found


def _infix(symbol: str, level: int) -> Callable[[ValuePrinter, Any], str]:
    # Comparisons do not chain and ** groups to the right; everything else groups to the left.
    left_least = level + 1 if level in (4, 12) else level
    right_least = level if level == 12 else level + 1

    def emit(p: ValuePrinter, e: Any) -> str:
        a, b = e.left, e.right
        typed = a.__class__ in _CONSTS and b.__class__ in _CONSTS
        return f"{p.operand(a, left_least, typed)} {symbol} {p.operand(b, right_least, typed)}"

    return emit


def _prefix(symbol: str, level: int) -> Callable[[ValuePrinter, Any], str]:
    return lambda p, e: symbol + p.operand(e.operand, level, True)


def _const_int(p: ValuePrinter, e: Any) -> str:
    return str(e.value) if e.type.dtype is _BARE_INT else p.typed_const(e)


def _const_float(p: ValuePrinter, e: Any) -> str:
    return number(e.value) if e.type.dtype is _BARE_FLOAT else p.typed_const(e)


def _cast(p: ValuePrinter, e: Any) -> str:
    return f"{p.pl}cast({p.expr(e.operand)}, {p.pl}{e.type.dtype.name})"


def _make_tuple(p: ValuePrinter, e: Any) -> str:
    return f"[{p.list(e.elements)}]"


def _get_item(p: ValuePrinter, e: Any) -> str:
    return f"{p.operand(e.tuple, _ATOM, True)}[{e.index}]"


def _function(name: str) -> Callable[[ValuePrinter, Any], str]:
    if name == "abs":
        return lambda p, e: f"{p.pl}abs({p.operand(e.operand, 0, True)})"

    def emit(p: ValuePrinter, e: Any) -> str:
        typed = e.left.__class__ in _CONSTS and e.right.__class__ in _CONSTS
        return f"{p.pl}{name}({p.operand(e.left, 0, typed)}, {p.operand(e.right, 0, typed)})"

    return emit


def _var(p: ValuePrinter, e: Var) -> str:
    return p.names.names.get(e) or p.names[e]


_EXPRS: Final[dict[type, Callable[[ValuePrinter, Any], str]]] = {
    Var: _var,
    E.IterArg: _var,
    WindowBuffer: _var,
    MemRef: ValuePrinter.memref,
    E.ConstInt: _const_int,
    E.ConstFloat: _const_float,
    E.ConstBool: lambda p, e: str(e.value),
    E.Cast: _cast,
    E.Call: ValuePrinter.call,
    E.Submit: ValuePrinter.submit,
    E.MakeTuple: _make_tuple,
    E.TupleGetItemExpr: _get_item,
    **{cls: _infix(*how) for cls, how in _INFIX.items()},
    **{cls: _prefix(*how) for cls, how in _PREFIX.items()},
    **{cls: _function(name) for cls, name in _FUNCTIONS.items()},
}


def _tensor_type(p: ValuePrinter, t: T.TensorType) -> str:
    parts = [p.dims(t.shape), p.pl + t.dtype.name]
    if t.memref is not None:
        parts.append(p.memref(t.memref))
    if t.tensor_view is not None:
        parts.append(p.tensor_view(t.tensor_view))
    if not isinstance(t, T.DistributedTensorType):
        return f"{p.pl}Tensor[{', '.join(parts)}]"
    if p.explicit and t.window_buffer is not None:
        parts.append(quoted(f"window_buffer={p.names[t.window_buffer]}"))
    return f"pld.DistributedTensor[{', '.join(parts)}]"


def _tile_type(p: ValuePrinter, t: T.TileType) -> str:
    parts = [p.dims(t.shape), p.pl + t.dtype.name]
    if t.memref is not None:
        parts.append(p.memref(t.memref))
    if t.memory_space is not None:
        parts.append(f"{p.pl}Mem.{t.memory_space.name}")
    if t.tile_view is not None or p.explicit:
        implicit = T.implicit_view(t.shape, t.memory_space)
        parts.append(p.tile_view(t.tile_view or implicit, implicit, full=p.explicit))
    return f"{p.pl}Tile[{', '.join(parts)}]"


def _opaque_type(p: ValuePrinter, t: T.Type) -> str:
    return f"{'pld.' if t.__class__ is T.CommCtxType else p.pl}{_OPAQUE_TYPES[t.__class__]}"


_TYPES: Final[dict[type, Callable[[ValuePrinter, Any], str]]] = {
    T.ScalarType: lambda p, t: f"{p.pl}Scalar[{p.pl}{t.dtype.name}]",
    T.TensorType: _tensor_type,
    T.DistributedTensorType: _tensor_type,
    T.TileType: _tile_type,
    T.ArrayType: lambda p, t: f"{p.pl}Array[{p.dim(t.extent)}, {p.pl}{t.dtype.name}]",
    T.TupleType: lambda p, t: f"{p.pl}Tuple[{', '.join([p.type(x) for x in t.types])}]",
    **dict.fromkeys(_OPAQUE_TYPES, _opaque_type),
}
