"""Functions that stand for several operators: which one, by the arguments they are given.

A choice takes the level, positional and keyword arguments, and returns the operator's short name and all arguments by
name. Raises OpTypeError for arguments of two of the operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..ir.expr import ConstInt, Expr
from .registry import OpTypeError

Choice = Callable[[str, Sequence[Any], Mapping[str, Any]], tuple[str, dict[str, Any]]]


def _named(what: str, names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name, those that are None left out."""
    if len(args) > len(names):
        raise OpTypeError(f"{what} takes {len(names)} arguments, got {len(args)}")
    values = dict(zip(names, args))
    for name, value in kwargs.items():
        if name not in names:
            raise OpTypeError(f"{what} got an unexpected keyword argument '{name}'; it takes {', '.join(names)}")
        if name in values:
            raise OpTypeError(f"{what} got multiple values for {name!r}")
        values[name] = value
    return {name: value for name, value in values.items() if value is not None}


def _one_of(what: str, values: Mapping[str, Any], *groups: tuple[str, ...]) -> int:
    """The group that arguments belong to. Raises OpTypeError when they belong to none or to two."""
    found = [i for i, group in enumerate(groups) if any(name in values for name in group)]
    if len(found) != 1:
        forms = " or ".join(", ".join(group) for group in groups)
        problem = "are mutually exclusive" if found else "are missing"
        raise OpTypeError(f"{what}: {forms} {problem}: give those of one form")
    return found[0]


def gather(level: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Elements at an ``index``, columns of a ``mask_pattern``, or indices of elements that compare with ``kvalue``."""
    names = ("input", "dim", "index", "mask_pattern", "output_dtype", "kvalue", "cmp_mode", "offset", "out_cols")
    values = _named(f"{level}.gather", names, args, kwargs)
    form = _one_of(f"{level}.gather", values, ("index",), ("mask_pattern",), ("kvalue",))
    return ("gather", "gather_mask", "gather_compare")[form], values


def scatter(level: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Elements of ``src`` written at an ``index``, or columns written into ``dst`` where ``mask_pattern`` marks."""
    names = ("input", "dim", "index", "src", "mask_pattern", "dst")
    values = _named(f"{level}.scatter", names, args, kwargs)
    form = _one_of(f"{level}.scatter", values, ("index", "src"), ("mask_pattern", "dst"))
    return ("scatter", "scatter_mask")[form], values


def mrgsort(level: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Merge the sorted runs of ``block_len`` in one operand, or two to four sorted operands."""
    names = ("src0", "src1", "src2", "src3", "tmp", "executed", "exhausted", "block_len")
    if level == "tensor":
        names = ("src0", "src1", "src2", "src3", "block_len")
    if "src" in kwargs:
        kwargs = {("src0" if k == "src" else k): v for k, v in kwargs.items()}
    values = _named(f"{level}.mrgsort", names, args, kwargs)
    if _one_of(f"{level}.mrgsort", values, ("block_len",), ("src1", "src2", "src3")) == 0:
        return "mrgsort_format1", {("src" if k == "src0" else k): v for k, v in values.items()}
    return "mrgsort_format2", values


def _event(name: str) -> Choice:
    def choose(level: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        values = _named(f"{level}.{name}", ("event_id", "pipe", *_EVENT_OPTIONS[name]), args, kwargs)
        event = values.get("event_id")
        if isinstance(event, ConstInt):
            values["event_id"] = event.value
        elif isinstance(event, Expr):
            values["dynamic_event"] = values.pop("event_id")
        return name, values

    choose.__doc__ = f"{name} of cross-core event ``event_id``: a number from 0 to 13, or an index value."
    return choose


_EVENT_OPTIONS: Final = {"sync_set": ("ffts_mode", "core_type"), "sync_wait": ("core_type",)}

CHOICES: Final[Mapping[str, Choice]] = {
    "gather": gather, "scatter": scatter, "mrgsort": mrgsort, **{name: _event(name) for name in _EVENT_OPTIONS},
}  # fmt: skip
SELECTED: Final = {
    ("tensor", "gather"), ("tensor", "scatter"), ("tensor", "mrgsort"), ("tile", "mrgsort"), ("system", "sync_set"),
    ("system", "sync_wait"),
}  # fmt: skip
"""Where a name stands for a choice rather than for one operator."""
