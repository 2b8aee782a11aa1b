"""The constructs of the language that are not operators: loops, yields, regions, directives.

The parser recognises each by identity. Called as Python, loops iterate over placeholders (so that editors and type
checkers see scalars); everything else raises RuntimeError.
"""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

from ..dtypes import DataType
from .annotations import Scalar


class ScopeMode(Enum):
    """Who orders the tasks of a ``pl.scope``: the runtime (AUTO) or the author (MANUAL)."""

    AUTO = "auto"
    MANUAL = "manual"


class Form:
    """A construct with meaning only in a kernel."""

    def __init__(self, name: str, doc: str) -> None:
        self.name = name
        self.__doc__ = doc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"pl.{self.name} has meaning only inside a kernel: decorate the function with @pl.function")

    def __repr__(self) -> str:
        return f"pl.{self.name}"


class Region:
    """What a region form evaluates to in Python: its settings. It opens no region."""

    def __init__(self, form: str, settings: dict[str, Any]) -> None:
        self.form = form
        self.__dict__.update(settings)

    def __enter__(self) -> Any:
        return Scalar(DataType.TASK_ID)

    def __exit__(self, *exc: object) -> None:
        return None

    def __iter__(self) -> Iterator[Scalar]:
        yield Scalar(DataType.INDEX)

    def __repr__(self) -> str:
        return f"pl.{self.form}(..)"


class RegionForm(Form):
    """A region or an entry of its ``optimizations``: ``positional`` settings may be given by position."""

    def __init__(self, name: str, doc: str, positional: tuple[str, ...], **settings: Any) -> None:
        super().__init__(name, doc)
        self.positional, self.settings = positional, settings

    def __call__(self, *args: Any, **kwargs: Any) -> Region:
        given = dict(zip(self.positional, args)) | kwargs
        unknown = given.keys() - self.settings.keys()
        if unknown or len(args) > len(self.positional):
            what = f"{len(args)} positional arguments" if not unknown else ", ".join(sorted(unknown))
            raise TypeError(f"pl.{self.name}() does not take {what}")
        made = self.settings | given
        _check_settings(self.name, made)
        return Region(self.name, made)


def _check_settings(name: str, settings: dict[str, Any]) -> None:
    slots = settings.get("slot_num")
    wanted = name == "cross_core_slot" or slots is not None
    if wanted and (not isinstance(slots, int) or isinstance(slots, bool) or slots < 1):
        raise ValueError(f"pl.{name}(): slot_num must be a positive integer, got {slots!r}")
    if name == "split" and slots is not None:
        warnings.warn(SPLIT_SLOT_NUM, DeprecationWarning, stacklevel=3)
    if name == "split_aiv" and (settings["count"] != 2 or isinstance(settings["count"], bool)):
        raise ValueError(
            f"pl.split_aiv(): the count must be the integer 2, the number of vector lanes, got {settings['count']!r}"
        )


SPLIT_SLOT_NUM: Final = (
    "pl.split(mode, slot_num=N) is deprecated: write pl.cross_core_slot(slot_num=N) as an entry of its own"
)


class LoopForm(Form):
    """A counted loop. As Python it runs over placeholders."""

    def __call__(self, *bounds: Any, init_values: Any = None, **options: Any) -> Iterator[Any]:
        if not 1 <= len(bounds) <= 3:
            raise TypeError(f"pl.{self.name} takes stop, (start, stop) or (start, stop, step)")
        unknown = options.keys() - ({"stage", "attrs"} if self.name == "pipeline" else {"attrs"})
        if unknown:
            raise TypeError(f"pl.{self.name}() got an unexpected keyword argument '{sorted(unknown)[0]}'")
        return self._placeholders(bounds, init_values)

    def _placeholders(self, bounds: tuple[Any, ...], init_values: Any) -> Iterator[Any]:
        count = len(builtins.range(*bounds)) if all(isinstance(b, int) for b in bounds) else 1
        for _ in builtins.range(count):
            index = Scalar(DataType.INDEX)
            yield index if init_values is None else (index, tuple(init_values))


range: Final = LoopForm("range", "Sequential loop: range(stop), range(start, stop), range(start, stop, step).")
parallel: Final = LoopForm("parallel", "Loop whose iterations are independent; bounds as in range.")
unroll: Final = LoopForm("unroll", "Loop unrolled at compile time; constant bounds, no carried values.")
pipeline: Final = LoopForm("pipeline", "Loop whose body overlaps itself in `stage` stages; bounds as in range.")
while_: Final = Form("while_", "Loop with carried values: the body starts with pl.cond(..).")
cond: Final = Form("cond", "Condition of the enclosing pl.while_ loop.")
yield_: Final = Form("yield_", "Hand values to the enclosing loop or branch; names bound receive the results.")

at: Final = RegionForm(
    "at",
    "Region that runs at a machine level; CORE_GROUP regions become kernels.",
    ("level",),
    level=None,
    role=None,
    optimizations=(),
    name_hint="",
    deps=None,
    no_dep_args=None,
    dumps=None,
    allow_early_resolve=False,
    windowize=False,
)
cluster: Final = RegionForm("cluster", "Region that runs on cube and vector cores together.", (), name_hint="")
spmd: Final = RegionForm(
    "spmd",
    "Region that core_num blocks run: with a kernel call or get_block_idx() in it, or as a loop over the index.",
    ("core_num",),
    core_num=None,
    sync_start=False,
    name_hint="",
    optimizations=(),
    deps=None,
    allow_early_resolve=False,
    predicate=None,
)
split_aiv: Final = RegionForm(
    "split_aiv",
    "Region both vector lanes run, each on its part; a loop over the lane's index.",
    ("count",),
    count=2,
    mode=None,
)
scope: Final = RegionForm(
    "scope",
    "Region of tasks; mode=pl.ScopeMode.MANUAL leaves their order to the author.",
    (),
    mode=ScopeMode.AUTO,
    name_hint="",
)
manual_scope: Final = RegionForm("manual_scope", "Region of tasks ordered by the author.", (), name_hint="")
split: Final = RegionForm(
    "split",
    "Optimization entry: how the two vector lanes divide the region's tiles.",
    ("mode",),
    mode=None,
    slot_num=None,
)
cross_core_slot: Final = RegionForm(
    "cross_core_slot", "Optimization entry: slots of the automatic cross-core pipe.", (), slot_num=None
)

submit: Final = Form("submit", "Launch a kernel as a task: (results.., task id).")
spmd_submit: Final = Form("spmd_submit", "Launch a kernel as a task of core_num blocks: (results.., task id).")
no_dep: Final = Form("no_dep", "Argument that takes no part in dependency tracking of this launch.")

const: Final = Form("const", "Constant of a given dtype: const(value, dtype).")
static_print: Final = Form("static_print", "Print while parsing.")
static_assert: Final = Form("static_assert", "Check a compile-time condition while parsing.")
func_attr: Final = Form("func_attr", "Attributes of the function: the first statement of its body.")
dump_tag: Final = Form("dump_tag", "Mark a tensor for run-time dumps.")


class _Optimizations:
    """`pl.optimizations`: the entries under their long names."""

    split = split
    cross_core_slot = cross_core_slot


optimizations: Final = _Optimizations()
