"""The constructs of the language that are not operators: loops, yields, regions, directives.

The parser recognises each by identity. Called as Python, loops iterate over placeholders (so that editors and type
checkers see scalars); everything else raises RuntimeError.
"""

from __future__ import annotations

import builtins
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


class LoopForm(Form):
    """A counted loop. As Python it runs over placeholders."""

    def __call__(self, *bounds: Any, init_values: Any = None, **attrs: Any) -> Iterator[Any]:
        if not 1 <= len(bounds) <= 3:
            raise TypeError(f"pl.{self.name} takes stop, (start, stop) or (start, stop, step)")
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

at: Final = Form("at", "Region that runs at a machine level; CORE_GROUP regions become kernels.")
cluster: Final = Form("cluster", "Region that runs on cube and vector cores together.")
spmd: Final = Form("spmd", "Region that several blocks run.")
split_aiv: Final = Form("split_aiv", "Region both vector lanes run, each on its part.")
scope: Final = Form("scope", "Region of tasks; mode=pl.ScopeMode.MANUAL leaves their order to the author.")
manual_scope: Final = Form("manual_scope", "Region of tasks ordered by the author.")
split: Final = Form("split", "Optimization entry: how the two vector lanes divide the region's tiles.")
cross_core_slot: Final = Form("cross_core_slot", "Optimization entry: slots of the automatic cross-core pipe.")

submit: Final = Form("submit", "Launch a kernel as a task: (results.., task id).")
spmd_submit: Final = Form("spmd_submit", "Launch a kernel as a task of core_num blocks: (results.., task id).")
no_dep: Final = Form("no_dep", "Argument that takes no part in dependency tracking of this launch.")

const: Final = Form("const", "Constant of a given dtype: const(value, dtype).")
static_print: Final = Form("static_print", "Print while parsing.")
static_assert: Final = Form("static_assert", "Check a compile-time condition while parsing.")
func_attr: Final = Form("func_attr", "Attributes of the function: the first statement of its body.")
dump_tag: Final = Form("dump_tag", "Mark a tensor for run-time dumps.")
