"""ConvertTensorToTileOps: tensor operators inside kernels become loads, tile operators and stores.

A kernel's tensor parameters are loaded where a tile of them is wanted, its operators become tile operators, and
what it returns is stored to an output parameter it gains for the purpose; callers create and pass those tensors.
A parameter that turns out to be written is declared so, in the kernel and in its callers.
"""

from __future__ import annotations

from ...ir.program import Function, Program, summarize
from ..base import P, Pass, program_pass
from ..join_regions import join_regions
from ..outlining import with_stores_to_bound
from .count_up import count_up
from .interface import check_write_paths, follow, upgrade_directions
from .plan import plan_function
from .rewrite import Converter
from .scalar_stores import bulk_stores


def convert_tensor_to_tile_ops() -> Pass:
    """The pass. Raises KernelValueError for tensors that cannot be tiles where their use needs them to be."""
    return program_pass(
        "ConvertTensorToTileOps",
        _run,
        requires={P.SSAForm, P.SplitIncoreOrch, P.NormalizedStmtStructure},
        produces={P.SSAForm, P.IncoreTileOps, P.NormalizedStmtStructure, P.AivSplitValid},
        invalidates={P.AivSplitValid},
    )


def _run(program: Program) -> Program:
    if not any(f.is_incore for f in program.functions.values()):
        return program
    made: dict[str, Function] = {}
    added: dict[str, int] = {}
    for function in _callees_first(program):
        changed, count = _convert(function, made, added)
        made[function.name], added[function.name] = changed, count
    return program.with_functions([made[f.name] for f in program.functions.values()])


def _convert(function: Function, made: dict[str, Function], added: dict[str, int]) -> tuple[Function, int]:
    changed = function
    if function.is_incore:
        source = count_up(bulk_stores(function))
        plan = plan_function(source)
        if plan.loads:
            # What is loaded where it is defined has to be defined anew where it is stored to.
            bound = with_stores_to_bound(source, plan.loads)
            if bound is not source:
                source, plan = bound, plan_function(bound)
        converter = Converter(source, plan)
        changed = converter.convert()
        if converter.uneven:
            changed = join_regions(changed)
        check_write_paths(changed, made)
        count = len(changed.params) - len(function.params)
    else:
        changed, count = follow(function, made, added)
    return upgrade_directions(changed, made), count


def _callees_first(program: Program) -> list[Function]:
    """Functions in an order in which each comes after those it calls."""
    by_name = {f.name: f for f in program.functions.values()}
    ordered: dict[str, Function] = {}

    def place(name: str, above: frozenset[str]) -> None:
        function = by_name.get(name)
        if function is None or name in ordered or name in above:
            return
        for callee in sorted(summarize(function).callees):
            place(callee, above | {name})
        ordered[name] = function

    for name in by_name:
        place(name, frozenset())
    return list(ordered.values())
