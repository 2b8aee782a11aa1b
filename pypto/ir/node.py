"""How an IR node class is declared.

A class lists its fields once, in traversal order. `node` turns the list into slots, a constructor, traversal,
copy-on-write rebuild, and the table that structural equality, hashing, serialization and printing read.

Nodes are immutable. A node is filled in as an instance of a mutable twin class with the same slots and then
switched to its public class, whose ``__setattr__`` refuses; that costs no more than a plain object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from .span import UNKNOWN_SPAN, Span

DEF: Final = "def"
USE: Final = "use"
IGNORE: Final = "ignore"

NODE: Final = "node"
NODES: Final = "nodes"
DATA: Final = "data"
TYPE: Final = "type"
TYPES: Final = "types"
MAPPING: Final = "mapping"
"""An ordered mapping whose values may hold expressions, alone or in a list."""

_REQUIRED: Final = object()


class Field:
    """One field of a node class: what it means to a traversal (``role``) and what it holds (``holds``)."""

    __slots__ = ("name", "role", "holds", "default")

    def __init__(self, role: str, holds: str, default: object = _REQUIRED) -> None:
        self.name = ""
        self.role = role
        self.holds = holds
        self.default = default


def define(holds: str = NODE, default: object = _REQUIRED) -> Any:
    """A field that introduces variables."""
    return Field(DEF, holds, default)


def use(holds: str = NODE, default: object = _REQUIRED) -> Any:
    """A field that takes part in the node's meaning."""
    return Field(USE, holds, default)


def ignore(holds: str = DATA, default: object = _REQUIRED) -> Any:
    """A field that structural comparison leaves out."""
    return Field(IGNORE, holds, default)


class NodeList(tuple):
    """An immutable sequence that equals a list of the same elements."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, (list, tuple)) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __add__(self, other: Any) -> Any:
        return [*self, *other] if isinstance(other, list) else NodeList((*self, *other))

    def __radd__(self, other: list[Any]) -> list[Any]:
        return [*other, *self]


EMPTY: Final = NodeList()


def node_list(items: Iterable[Any] | None) -> NodeList:
    """`items` as a field stores them."""
    if type(items) is NodeList:
        return items
    return NodeList(items) if items else EMPTY


class _MutableNode:
    __slots__ = ("span", "__weakref__")


class IRNode(_MutableNode):
    """Base of everything in the IR.

    Scalar expressions overload ``==``: compare nodes with ``is`` or `structural_equal`, never look one up in a list.
    """

    __slots__ = ()
    _mutable: ClassVar[type] = _MutableNode
    fields: ClassVar[tuple[Field, ...]] = ()
    signature: ClassVar[tuple[str, ...]] = ()
    """Constructor order, where it differs from traversal order."""
    node_kind: ClassVar[str] = "ir_node"
    """Snake-case class name: visitor methods are ``visit_<node_kind>``."""
    span: Span

    if TYPE_CHECKING:

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} is read-only: IR nodes are immutable, use replace()")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} is read-only")

    def __reduce__(self) -> Any:
        from .serialization import deserialize, serialize

        return deserialize, (serialize(self),)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    _build: ClassVar[Callable[..., Any]]
    _visit_children: Callable[[Any], None]
    _rewrite_children: Callable[[Any], Any]

    def replace(self, **changes: Any) -> Any:
        """A copy with the given fields changed; ``self`` when every value is the one already held."""
        for name, value in changes.items():
            if getattr(self, name, _REQUIRED) is not value:
                break
        else:
            return self
        values = {f.name: getattr(self, f.name) for f in self.fields} | changes
        if len(values) > len(self.fields):
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(list(values)[len(self.fields):]))}")
        return self._build(*values.values())

    def as_python(self, prefix: str = "pl", concise: bool = False) -> str:
        """The node as Python of the kernel language; ``concise`` leaves out the types of local variables."""
        from .printer import python_print

        return python_print(self, prefix, concise)

    def __str__(self) -> str:
        return self.as_python()

    def same_as(self, other: object) -> bool:
        """Whether both are the same object."""
        return self is other

    def type_name(self) -> str:
        return type(self).__name__


T = TypeVar("T", bound=type)


def node(cls: T) -> T:
    """Class decorator: build the node class that ``cls`` declares."""
    base = next(b for b in cls.__mro__[1:] if issubclass(b, IRNode))
    own = _own_fields(cls)
    ordered = _merge(base.fields, own)
    mutable = type(f"_Mutable{cls.__name__}", (base._mutable,), {"__slots__": tuple(f.name for f in own)})
    body = {k: v for k, v in cls.__dict__.items() if k not in ("__dict__", "__weakref__") and not isinstance(v, Field)}
    body.update(
        __slots__=(), _mutable=mutable, fields=ordered, node_kind=_snake(cls.__name__), __qualname__=cls.__qualname__
    )
    built: Any = type(cls.__name__, (mutable, *cls.__bases__), body)
    _compile_methods(built, own_new="__new__" in cls.__dict__)
    return built


def _own_fields(cls: type) -> list[Field]:
    own = []
    for name, value in cls.__dict__.items():
        if isinstance(value, Field):
            value.name = name
            own.append(value)
    return own


_SPAN = Field(IGNORE, DATA, UNKNOWN_SPAN)
_SPAN.name = "span"


def _merge(inherited: tuple[Field, ...], own: list[Field]) -> tuple[Field, ...]:
    """Inherited fields first; bookkeeping (span, comments) after everything that has meaning."""
    fields = (*(inherited or (_SPAN,)), *own)
    return (*(f for f in fields if f.role != IGNORE), *(f for f in fields if f.role == IGNORE))


def _snake(name: str) -> str:
    out = ""
    for i, c in enumerate(name):
        new_word = c.isupper() and i and (name[i - 1].islower() or (i + 1 < len(name) and name[i + 1].islower()))
        out += ("_" if new_word else "") + c.lower()
    return out


def _compile_methods(cls: Any, own_new: bool) -> None:
    names = [f.name for f in cls.fields]
    stores = "".join(f"    self.{n} = {n}\n" for n in names)
    fill = f"    self = new(mutable)\n{stores}    self.__class__ = cls\n    return self\n"
    source = f"def _build({', '.join(names)}):\n{fill}"
    scope: dict[str, Any] = {"new": object.__new__, "mutable": cls._mutable, "cls": cls, "node_list": node_list}
    scope["required"] = _REQUIRED
    if not own_new and not cls.__dict__.get("abstract", False):
        source += _constructor_source(cls)
    exec(source, scope)
    cls._build = staticmethod(scope["_build"])
    cls._visit_children = _first_visit
    cls._rewrite_children = _first_rewrite
    if "__new__" in scope:
        cls.__new__ = scope["__new__"]


def _first_visit(self: Any, v: Any) -> None:
    """Stands in until a class is first traversed: most classes never are in a process."""
    _compile_traversal(type(self))
    self._visit_children(v)


def _first_rewrite(self: Any, m: Any) -> Any:
    _compile_traversal(type(self))
    return self._rewrite_children(m)


def _compile_traversal(cls: Any) -> None:
    scope: dict[str, Any] = {"_build": cls._build}
    exec(_visit_source(cls) + _rewrite_source(cls), scope)
    cls._visit_children, cls._rewrite_children = scope["_visit_children"], scope["_rewrite_children"]


def _constructor_source(cls: Any) -> str:
    by_name = {f.name: f for f in cls.fields}
    order = cls.__dict__.get("signature") or tuple(by_name)
    params, prepare, optional = [], "", False
    for name in order:
        field = by_name[name]
        optional = optional or field.default is not _REQUIRED
        params.append(f"{name}=cls.defaults.get({name!r}, required)" if optional else name)
        if optional and field.default is _REQUIRED:
            prepare += f"    if {name} is required: raise TypeError('{cls.__name__} needs {name}')\n"
        if field.holds in (NODES, TYPES):
            prepare += f"    {name} = node_list({name})\n"
        elif field.holds == MAPPING:
            prepare += f"    {name} = dict({name}) if {name} else {{}}\n"
    cls.defaults = {f.name: f.default for f in cls.fields if f.default is not _REQUIRED}
    return f"def __new__(_cls, {', '.join(params)}):\n{prepare}    return _build({', '.join(by_name)})\n"


def _visit_source(cls: Any) -> str:
    lines = []
    for f in cls.fields:
        call = "v.define" if f.role == DEF else "v.visit"
        if f.role == IGNORE or f.holds == DATA:
            continue
        if f.holds in (TYPE, TYPES):
            call = "v.visit_type"
        if f.holds in (NODE, TYPE):
            lines.append(f"    if self.{f.name} is not None: {call}(self.{f.name})")
        elif f.holds in (NODES, TYPES):
            lines.append(f"    for x in self.{f.name}: {call}(x)")
        elif f.holds == MAPPING:
            lines.append(f"    if self.{f.name}: v.visit_mapping(self.{f.name})")
    return "def _visit_children(self, v):\n" + "\n".join(lines or ["    pass"]) + "\n"


def _rewrite_source(cls: Any) -> str:
    lines, changed, values = [], [], []
    for f in cls.fields:
        name, local = f.name, f"n_{f.name}"
        if f.role == IGNORE or f.holds == DATA:
            values.append(f"self.{name}")
            continue
        lines.append(f"    o_{name} = self.{name}")
        call = "m.define" if f.role == DEF else "m.rewrite_type" if f.holds in (TYPE, TYPES) else "m.rewrite"
        if f.holds in (NODE, TYPE):
            lines.append(f"    {local} = {call}(o_{name}) if o_{name} is not None else None")
        elif f.holds in (NODES, TYPES):
            lines.append(f"    {local} = m.rewrite_list(o_{name}, {call}) if o_{name} else o_{name}")
        else:
            lines.append(f"    {local} = m.rewrite_mapping(o_{name}) if o_{name} else o_{name}")
        changed.append(f"{local} is o_{name}")
        values.append(local)
    keep = f"    if {' and '.join(changed)}: return self\n" if changed else "    return self\n"
    rebuild = f"    return _build({', '.join(values)})\n" if changed else ""
    return "def _rewrite_children(self, m):\n" + "\n".join(lines) + ("\n" if lines else "") + keep + rebuild


def same_objects(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two sequences hold the same objects in the same order."""
    return len(a) == len(b) and all(map(is_, a, b))


def updated(items: NodeList, made: Sequence[Any]) -> NodeList:
    """``made`` as a field's value: ``items`` itself when it holds the same objects."""
    return items if same_objects(items, made) else NodeList(made)


def mapping_items(mapping: Mapping[str, Any]) -> Iterable[Any]:
    """Every IR node among a mapping's values, lists included, in order."""
    for value in mapping.values():
        if isinstance(value, IRNode):
            yield value
        elif isinstance(value, (list, tuple)):
            for item in value:
                if isinstance(item, IRNode):
                    yield item
