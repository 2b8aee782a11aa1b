"""Structural equality and hash.

One comparer and one hasher is compiled for each node class, on first use, from the class's field table. A
definition maps the left variable to the right one; later uses follow that mapping. Spans, names and comments do not
count, and INDEX equals INT64 as a scalar's dtype: the two are one representation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from ..dtypes import DataType
from .expr import ConstInt, IterArg, Op, Var
from .memref import MemRef, WindowBuffer
from .node import DATA, DEF, IGNORE, MAPPING, NODE, NODES, TYPE, TYPES, Field, IRNode
from .program import Function, Program
from .stmt import AssignStmt, SeqStmts
from .types import DistributedTensorType, ScalarType, TensorView, TileView, TupleType, Type


def structural_equal(lhs: Any, rhs: Any, enable_auto_mapping: bool = False) -> bool:
    """Whether two nodes are the same up to renaming of the variables they define.

    Variables that neither side defines must be the same objects, unless ``enable_auto_mapping`` lets them
    correspond one to one as well (their types must agree).
    """
    if lhs is rhs:
        return True
    return _Comparison(enable_auto_mapping).node(lhs, rhs)


def assert_structural_equal(lhs: Any, rhs: Any, enable_auto_mapping: bool = False) -> None:
    """Raise ValueError with the path to the first difference and both sides of it, unless the nodes are equal."""
    if lhs is rhs:
        return
    comparison = _Comparison(enable_auto_mapping)
    if not comparison.node(lhs, rhs):
        raise ValueError(comparison.report())


def structural_hash(node: Any, enable_auto_mapping: bool = False) -> int:
    """A hash equal for structurally equal nodes; stable within one process."""
    return _Hashing(enable_auto_mapping).node(node)


class _Comparison:
    """The state of one comparison: the variable mapping, and on failure the reason and the path, innermost first."""

    __slots__ = ("left", "right", "auto", "all_auto", "in_function", "reason", "sides", "path")

    def __init__(self, auto: bool) -> None:
        self.left: dict[Var, Var] = {}
        self.right: dict[Var, Var] = {}
        self.auto = auto
        self.all_auto = auto
        self.in_function = False
        self.reason = ""
        self.sides: tuple[Any, Any] = (None, None)
        self.path: list[str] = []

    def report(self) -> str:
        path = "".join(reversed(self.path)).removeprefix(".")
        lines = [f"Structural equality assertion failed at: {path or '<root>'}", self.reason]
        for name, side in zip(("left", "right"), self.sides):
            text = _show(side)
            lines.append(f"  {name}: " + (text if "\n" not in text else "\n    " + text.replace("\n", "\n    ")))
        return "\n".join(lines)

    def fail(self, reason: str, a: Any, b: Any) -> bool:
        self.reason, self.sides = reason, (a, b)
        return False

    def at(self, step: str) -> bool:
        """Add an enclosing step to a failure's path; always False."""
        self.path.append(step)
        return False

    def node(self, a: Any, b: Any) -> bool:
        if a.__class__ is b.__class__:
            return _COMPARERS[a.__class__](self, a, b)
        if a is None or b is None:
            return self.fail(f"Optional field presence mismatch ({_kind(a)} != {_kind(b)})", a, b)
        what = "Type name" if isinstance(a, Type) and isinstance(b, Type) else "Node type"
        return self.fail(f"{what} mismatch ({_kind(a)} != {_kind(b)})", a, b)

    def nodes(self, a: Any, b: Any, prefix: str, size: str, each: Callable[[Any, Any], bool]) -> bool:
        """Compare sequences. ``size`` is the message for different lengths, ``prefix`` the step before the index."""
        if len(a) != len(b):
            self.fail(size.format(len(a), len(b)), a, b)
            return self.at(prefix) if prefix else False
        for i, (x, y) in enumerate(zip(a, b)):
            if not each(x, y):
                return self.at(f"{prefix}[{i}]")
        return True

    def dim(self, a: Any, b: Any) -> bool:
        """Part of a shape: constants by value, whatever their dtype."""
        if a.__class__ is ConstInt and b.__class__ is ConstInt:
            return self.data(a.value, b.value, "ConstInt value")
        return self.node(a, b)

    def allocation(self, a: Any, b: Any) -> bool:
        """The allocation of a memory reference; inside a function the first mention stands for a definition."""
        if not self.in_function:
            return self.node(a, b)
        saved, self.auto = self.auto, True
        same = self.node(a, b)
        self.auto = saved
        return same

    def define(self, a: Any, b: Any) -> bool:
        """A definition: what it names corresponds from here on."""
        saved, self.auto = self.auto, True
        same = _compare_definition(self, a, b) if a.__class__ is b.__class__ else self.node(a, b)
        self.auto = saved
        return same

    def variable(self, a: Any, b: Any) -> bool:
        """A variable by its identity alone."""
        mapped = self.left.get(a)
        if mapped is not None:
            if mapped is b:
                return True
            other = _name(mapped)
            return self.fail(f"Variable mapping inconsistent ({_names(a, b)}: the left one is already {other})", a, b)
        if b in self.right:
            other = _name(self.right[b])
            return self.fail(f"Variable mapping inconsistent ({_names(a, b)}: the right one is already {other})", a, b)
        if a is not b:
            if not self.auto:
                return self.fail(f"Variable pointer mismatch ({_names(a, b)}: different variables)", a, b)
            if not self.node(a.type, b.type):
                return self.at(".type")
        self.left[a] = b
        self.right[b] = a
        return True

    def window_of_type(self, a: Any, b: Any) -> bool:
        """The window a type refers to, by identity: its definition is where its fields are compared."""
        x, y = a.window_buffer, b.window_buffer
        if x is None or y is None:
            return self.node(x, y)
        saved, self.auto = self.auto, self.all_auto
        same = self.variable(x, y)
        self.auto = saved
        return same

    def data(self, a: Any, b: Any, what: str) -> bool:
        if a is b or _same_data(a, b):
            return True
        if isinstance(a, Enum) and isinstance(b, Enum):
            return self.fail(f"{type(a).__name__} mismatch ({a.name} != {b.name})", a, b)
        return self.fail(f"{what} mismatch ({_text(a)} != {_text(b)})", a, b)

    def mapping(self, a: dict[str, Any], b: dict[str, Any], step: str) -> bool:
        if a.keys() != b.keys():
            self.fail(f"Keys mismatch ({sorted(a)} != {sorted(b)})", a, b)
            return self.at(step)
        for key, x in a.items():
            if not self.value(x, b[key]):
                return self.at(f"{step}[{key!r}]")
        return True

    def value(self, a: Any, b: Any) -> bool:
        """A value of a mapping: a node, data, or a list of either."""
        if isinstance(a, IRNode) or isinstance(b, IRNode):
            return self.node(a, b)
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            return self.nodes(a, b, "", "Vector size mismatch ({} items != {} items)", self.value)
        return self.data(a, b, "value")


def _same_data(a: Any, b: Any) -> bool:
    if a.__class__ is not b.__class__:
        return isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and _same_items(a, b)
    if a.__class__ is float:
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)
    if isinstance(a, (list, tuple)):
        return _same_items(a, b)
    return a.name == b.name if isinstance(a, Op) else bool(a == b)


def _same_items(a: Any, b: Any) -> bool:
    return len(a) == len(b) and all(x is y or _same_data(x, y) for x, y in zip(a, b))


def _kind(item: Any) -> str:
    return "None" if item is None else type(item).__name__


def _name(var: Any) -> str:
    return getattr(var, "name_hint", str(var))


def _names(a: Any, b: Any) -> str:
    return f"{_name(a)} != {_name(b)}"


def _text(value: Any) -> str:
    return value.name if isinstance(value, Op) else str(value)


def _show(side: Any) -> str:
    if isinstance(side, (list, tuple)):
        return f"[{', '.join(map(_show, side))}]"
    return repr(side) if isinstance(side, str) else _text(side)


def _compare_definition(c: _Comparison, a: Any, b: Any) -> bool:
    if isinstance(a, WindowBuffer):
        return _compare_window(c, a, b)
    if isinstance(a, IterArg):
        c.auto = c.all_auto
        if not c.node(a.init_value, b.init_value):
            return c.at(".init_value")
        c.auto = True
    if not c.node(a.type, b.type):
        return c.at(".type")
    return c.variable(a, b)


def _compare_use(c: _Comparison, a: Any, b: Any) -> bool:
    return c.variable(a, b)


def _compare_window(c: _Comparison, a: Any, b: Any) -> bool:
    """A window is the allocation it is: only auto-mapping lets two correspond, and then their fields must agree."""
    saved, c.auto = c.auto, c.all_auto
    same = c.variable(a, b) and (not c.all_auto or _WINDOW_FIELDS(c, a, b))
    c.auto = saved
    return same


def _compare_scalar_type(c: _Comparison, a: Any, b: Any) -> bool:
    if a is b or (a.dtype in _INDEX_LIKE and b.dtype in _INDEX_LIKE):
        return True
    return c.fail(f"ScalarType dtype mismatch ({a.dtype} != {b.dtype})", a, b)


_INDEX_LIKE = frozenset({DataType.INDEX, DataType.INT64})


def _compare_program(c: _Comparison, a: Any, b: Any) -> bool:
    left, right = ({g.name: f for g, f in p.functions.items()} for p in (a, b))
    if left.keys() != right.keys():
        return c.fail(f"Function names mismatch ({sorted(left)} != {sorted(right)})", sorted(left), sorted(right))
    for name, function in left.items():
        if not c.node(function, right[name]):
            return c.at(f"[{name!r}]")
    return True


def _compare_function(c: _Comparison, a: Any, b: Any) -> bool:
    """Variables are a function's own: nothing mapped in one function carries over to the next."""
    saved = (c.left, c.right, c.in_function)
    c.left, c.right, c.in_function = dict(c.left), dict(c.right), True
    same = _FUNCTION_FIELDS(c, a, b)
    c.left, c.right, c.in_function = saved
    return same


def _compared_fields(cls: type[IRNode]) -> Iterable[Field]:
    """The fields that count. An assignment's variable comes first: free in its own value, it is that variable."""
    fields = [f for f in cls.fields if f.role != IGNORE]
    return sorted(fields, key=lambda f: f.role != DEF) if cls is AssignStmt else fields


def _compile_comparer(cls: type) -> Callable[[_Comparison, Any, Any], bool]:
    if not issubclass(cls, IRNode):
        raise TypeError(f"only IR nodes compare structurally, not {cls.__name__}")
    scope: dict[str, Any] = {}
    lines = ["def compare(c, a, b):"]
    if issubclass(cls, Type):
        lines.append("    if a is b and not a.symbolic: return True")
    for i, f in enumerate(_compared_fields(cls)):
        test, scope[f"step{i}"], scope[f"say{i}"] = _field_test(cls, f, i)
        failed = f"c.at(step{i})" if f.holds in (NODE, TYPE, DATA) else "False"
        lines.append(f"    if not {test}: return {failed}")
    exec("\n".join([*lines, "    return True"]), scope)
    return scope["compare"]


def _treatment(cls: type[IRNode], f: Field) -> str:
    """How the value of a field is compared and hashed: as a definition, a dimension, an allocation, or any node."""
    if f.role == DEF:
        return "define"
    if (cls, f.name) == (MemRef, "base"):
        return "allocation"
    return "dim" if issubclass(cls, (Type, TensorView, TileView)) and f.holds == NODES else "node"


def _field_test(cls: type[IRNode], f: Field, i: int) -> tuple[str, str, str]:
    """The expression that compares a field, its path step, and its message."""
    n, step = f.name, f".{f.name}"
    one = f"c.{_treatment(cls, f)}"
    if (cls, n) == (DistributedTensorType, "window_buffer"):
        return "((a.window_buffer is b.window_buffer is None) or c.window_of_type(a, b))", step, ""
    if f.holds in (NODE, TYPE):
        both = f"(a.{n} is b.{n} is None or c.node(a.{n}, b.{n}))" if f.default is None else f"{one}(a.{n}, b.{n})"
        return both, step, ""
    if f.holds in (NODES, TYPES):
        size = "Vector size mismatch ({} items != {} items)"
        if issubclass(cls, TupleType):
            size = "TupleType size mismatch ({} != {})"
        elif issubclass(cls, Type):
            size = f"{cls.__name__} {n} rank mismatch ({{}} != {{}})"
        return f"c.nodes(a.{n}, b.{n}, step{i}, say{i}, {one})", "" if cls is SeqStmts else step, size
    if f.holds == MAPPING:
        return f"((not a.{n} and not b.{n}) or c.mapping(a.{n}, b.{n}, step{i}))", step, ""
    return f"(a.{n} is b.{n} or c.data(a.{n}, b.{n}, say{i}))", step, f"{cls.__name__} {n}"


class _Compiled(dict):
    """Node class -> function, compiled on first use."""

    def __init__(self, build: Callable[[type], Any], known: dict[type, Any]) -> None:
        super().__init__(known)
        self.build = build

    def __missing__(self, cls: type) -> Any:
        made = self[cls] = self.build(cls)
        return made


_COMPARERS = _Compiled(
    _compile_comparer,
    {
        Var: _compare_use,
        IterArg: _compare_use,
        WindowBuffer: _compare_window,
        ScalarType: _compare_scalar_type,
        Program: _compare_program,
        Function: _compare_function,
    },
)
_FUNCTION_FIELDS = _compile_comparer(Function)
_WINDOW_FIELDS = _compile_comparer(WindowBuffer)


class _Hashing:
    """The state of one hash: variables numbered in order of definition."""

    __slots__ = ("numbers", "auto", "all_auto", "in_function")

    def __init__(self, auto: bool) -> None:
        self.numbers: dict[Var, int] = {}
        self.auto = auto
        self.all_auto = auto
        self.in_function = False

    def dim(self, item: Any) -> int:
        return hash(item.value) if item.__class__ is ConstInt else self.node(item)

    def allocation(self, base: Any) -> int:
        if not self.in_function:
            return self.node(base)
        saved, self.auto = self.auto, True
        made = self.node(base)
        self.auto = saved
        return made

    def node(self, item: Any) -> int:
        return 0 if item is None else _HASHERS[item.__class__](self, item)

    def define(self, var: Any) -> int:
        """A definition numbers its variable."""
        if isinstance(var, WindowBuffer):
            return self.node(var)
        saved = self.auto
        parts = [0, 0]
        if isinstance(var, IterArg):
            self.auto = self.all_auto
            parts[0] = self.node(var.init_value)
        self.auto = True
        parts[1] = self.variable(var)
        self.auto = saved
        return hash((var.__class__, *parts))

    def variable(self, var: Any) -> int:
        """A variable's number, with its type where it first gets one."""
        number = self.numbers.get(var)
        if number is not None:
            return number
        if not self.auto:
            return hash((Var, var.unique_id))
        type_hash = self.node(var.type)
        number = self.numbers[var] = len(self.numbers)
        return hash((number, type_hash))

    def window(self, buffer: Any) -> int:
        """A window by identity: its fields may differ between two that auto-mapping lets correspond in a type."""
        saved, self.auto = self.auto, self.all_auto
        number = self.variable(buffer)
        self.auto = saved
        return hash((WindowBuffer, number))

    def value(self, value: Any) -> int:
        if isinstance(value, IRNode):
            return self.node(value)
        if isinstance(value, (list, tuple)):
            return hash(tuple([self.value(v) for v in value]))
        return _hash_data(value)

    def mapping(self, mapping: dict[str, Any]) -> int:
        return hash(tuple([(key, self.value(mapping[key])) for key in sorted(mapping)])) if mapping else 0


def _hash_data(value: Any) -> int:
    if isinstance(value, Op):
        return hash(value.name)
    if isinstance(value, (list, tuple)):
        return hash(tuple([_hash_data(v) for v in value]))
    if isinstance(value, float) and value != value:
        return hash("nan")
    return hash(value)


def _compile_hasher(cls: type) -> Callable[[_Hashing, Any], int]:
    if not issubclass(cls, IRNode):
        raise TypeError(f"only IR nodes hash structurally, not {cls.__name__}")
    parts = []
    for f in _compared_fields(cls):
        n, one = f.name, f"c.{_treatment(cls, f)}"
        if (cls, n) == (DistributedTensorType, "window_buffer"):
            parts.append("a.window_buffer is not None and c.window(a.window_buffer)")
        elif f.holds in (NODE, TYPE):
            parts.append(f"{one}(a.{n})")
        elif f.holds in (NODES, TYPES):
            parts.append(f"tuple([{one}(x) for x in a.{n}])")
        else:
            parts.append(f"c.mapping(a.{n})" if f.holds == MAPPING else f"data(a.{n})")
    scope: dict[str, Any] = {"data": _hash_data, "name": cls.__name__}
    exec(f"def run(c, a):\n    return hash((name, {' '.join(p + ',' for p in parts)}))\n", scope)
    return scope["run"]


def _hash_use(c: _Hashing, var: Any) -> int:
    return hash((var.__class__, c.variable(var)))


def _hash_scalar_type(c: _Hashing, type: Any) -> int:
    return hash((ScalarType, DataType.INT64 if type.dtype is DataType.INDEX else type.dtype))


def _hash_program(c: _Hashing, program: Any) -> int:
    return hash(("Program", tuple([(f.name, c.node(f)) for f in program.functions.values()])))


def _hash_function(c: _Hashing, function: Any) -> int:
    saved = (c.numbers, c.in_function)
    c.numbers, c.in_function = dict(c.numbers), True
    made = _FUNCTION_HASH(c, function)
    c.numbers, c.in_function = saved
    return made


_HASHERS = _Compiled(
    _compile_hasher,
    {
        Var: _hash_use,
        IterArg: _hash_use,
        WindowBuffer: _Hashing.window,
        ScalarType: _hash_scalar_type,
        Program: _hash_program,
        Function: _hash_function,
    },
)
_FUNCTION_HASH = _compile_hasher(Function)
