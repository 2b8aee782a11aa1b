"""Running passes in order, with verification between them, and the order of the default pipeline."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from enum import Enum

from ..errors import Diagnosed, InternalError
from ..ir.program import Program, summarize
from ..ir.stmt import AssignStmt, CommDomainScopeStmt, ReturnStmt, SeqStmts, flatten_to_stmts
from ..ir.types import UnknownType
from ..ir.visitor import find_all
from .base import Pass
from .context import CallbackInstrument, MemoryPlanner, PassInstrument, VerificationLevel, current_or_default
from .diagnostics import DiagnosticPhase, advise
from .properties import STRUCTURAL, VERIFIED, IRProperty

PIPELINE: tuple[str, ...] = (
    "inline_functions",
    "unroll_loops",
    "ctrl_flow_transform",
    "convert_to_ssa",
    "simplify",
    "normalize_stmt_structure",
    "flatten_call_expr",
    "outline_hierarchy_scopes",
    "outline_incore_scopes",
    "outline_cluster_scopes",
    "convert_tensor_to_tile_ops",
    "lower_composite_ops",
    "flatten_tile_nd_to_2d",
    "block_nz_tensor_views",
    "block_mx_scale_tensor_views",
    "legalize_tile_cast",
    "auto_tile_matmul_l0",
    "canonicalize_tile_slice",
    "legalize_tile_ops",
    "infer_tile_memory_space",
    "insert_mx_scale_addr",
    "resolve_backend_op_layouts",
    "lower_auto_vector_split",
    "expand_mixed_kernel",
    "inject_gm_pipe_buffer",
    "split_vector_kernel",
    "stamp_tfree_split",
    "normalize_return_order",
    "skew_cross_core_pipeline",
    "lower_pipeline_loops",
    "canonicalize_io_order",
    "materialize_tensor_strides",
    "supply_scratch",
    "init_mem_ref",
    "materialize_semantic_aliases",
    "memory_reuse",
    "allocate_memory_addr",
    "fold_no_op_reshape",
    "legalize_tile_assemble",
    "fuse_create_assemble_to_slice",
    "materialize_window_strides",
    "derive_call_directions",
    "auto_derive_task_dependencies",
    "expand_manual_phase_fence",
    "synthesize_allreduce_signals",
    "materialize_comm_domain_scopes",
    "lower_host_tensor_collectives",
    "materialize_dist_tensor_ctx",
    "simplify",
    "materialize_runtime_scopes",
    "classify_iter_arg_carry",
    "insert_comm_fence",
    "materialize_valid_shape_symbols",
)
"""Factories of the default pipeline, in order. Each names the module and the function in it.

Simplify comes a second time once all is lowered, for loops of one iteration and decided branches that lowering leaves.
"""


class PassPipeline:
    """Passes in order. `run` gives the advice that is due, too.

    At level BASIC and above, `run` checks the structural properties of its input and, after each pass, those it
    produced, each once for each time it is produced. Raises VerificationError when a check fails.
    """

    def __init__(self, passes: Iterable[Pass] = ()) -> None:
        self._passes = list(passes)

    def add_pass(self, pass_: Pass) -> None:
        self._passes.append(pass_)

    def get_pass_names(self) -> list[str]:
        return [p.name for p in self._passes]

    def get_passes(self) -> list[Pass]:
        return list(self._passes)

    def run(self, program: Program, dump: Callable[[str, Program], None] | None = None) -> Program:
        """The program after every pass. ``dump(pass_name, program)`` is called after each pass."""
        context = current_or_default()
        level = context.verification_level
        verified: set[IRProperty] = set()
        if level is not VerificationLevel.NONE:
            _verify(STRUCTURAL & VERIFIED, verified, program, "at pipeline input")
        advise(context, DiagnosticPhase.PRE_PIPELINE, program)
        for pass_ in self._passes:
            program = pass_(program)
            if dump is not None:
                dump(pass_.name, program)
            if level is not VerificationLevel.NONE:
                verified -= pass_.invalidates
                _verify(pass_.produces & VERIFIED, verified, program, f"after pass {pass_.name!r}")
            if level is VerificationLevel.ROUNDTRIP:
                check_roundtrip(pass_.name, program)
            advise(context, DiagnosticPhase.POST_PASS, program)
        advise(context, DiagnosticPhase.POST_PIPELINE, program)
        return program


def _verify(due: Iterable[IRProperty], verified: set[IRProperty], program: Program, where: str) -> None:
    fresh = frozenset(due) - verified
    if fresh:
        from .verifiers import verify_or_raise

        verify_or_raise(fresh, program, f"Verification failed {where}")
        verified |= fresh


_PARSE_ERRORS = (Diagnosed, InternalError, SyntaxError, ValueError, TypeError, RuntimeError)


def check_roundtrip(pass_name: str, program: Program) -> None:
    """Raises RuntimeError unless printing ``program`` and parsing the text gives it back.

    Programs the language has no text for are left out; only hand-built ones are of this kind.
    """
    from ..ir.printer import python_print
    from ..ir.structural import assert_structural_equal
    from ..language.parser import text_parser

    if not _is_expressible(program):
        return
    text = python_print(program)
    try:
        parsed = text_parser.parse(text)
    except _PARSE_ERRORS as error:
        raise RuntimeError(f"after {pass_name}: the printed program does not parse: {error}") from error
    try:
        assert_structural_equal(program, parsed)
    except ValueError as error:
        raise RuntimeError(f"after {pass_name}: the printed program parses to another one: {error}") from error


def _is_expressible(program: Program) -> bool:
    """Whether the language has text for the whole program.

    Functions with results return, values assigned have types, no block assigns one object twice, and no windows have
    been grouped: text says of windows only what the author does.
    """
    for function in program.functions.values():
        if CommDomainScopeStmt in summarize(function).kinds:
            return False
        if function.return_types and not any(isinstance(s, ReturnStmt) for s in flatten_to_stmts(function.body)[-1:]):
            return False
        assigns = find_all(function, AssignStmt) if UnknownType in summarize(function).kinds else ()
        if any(isinstance(s.value.type, UnknownType) for s in assigns):
            return False
        if any(_assigns_twice(node) for node in find_all(function, SeqStmts)):
            return False
    return True


def _assigns_twice(block: SeqStmts) -> bool:
    """Whether one block assigns one variable object twice: in text, the second assignment makes a new variable."""
    assigned = [s.var for s in block.stmts if isinstance(s, AssignStmt)]
    return len(set(assigned)) != len(assigned)


def make_roundtrip_instrument() -> PassInstrument:
    """An instrument that runs `check_roundtrip` after every pass."""
    return CallbackInstrument(
        after_pass=lambda pass_, program: check_roundtrip(pass_.name, program), name="RoundtripInstrument"
    )


SKIPPED_BY_PLANNER: dict[MemoryPlanner, frozenset[str]] = {
    MemoryPlanner.PTOAS: frozenset({"memory_reuse", "allocate_memory_addr"}),
    MemoryPlanner.DSA_RP: frozenset({"memory_reuse"}),
}
"""Factories left out when another planner does their work."""


def default_passes(analyze_auto_scopes_for_deps: bool = False) -> list[Pass]:
    """Fresh passes of the default pipeline, in order."""
    from .. import passes

    skipped = SKIPPED_BY_PLANNER.get(current_or_default().memory_planner, frozenset())
    options = {"auto_derive_task_dependencies": {"analyze_auto_scopes": analyze_auto_scopes_for_deps}}
    return [getattr(passes, factory)(**options.get(factory, {})) for factory in PIPELINE if factory not in skipped]


def run_pipeline(program: Program, dump: Callable[[str, Program], None] | None = None) -> Program:
    """Run the default pipeline."""
    return PassPipeline(default_passes()).run(program, dump)


class OptimizationStrategy(Enum):
    """Named pass sequences."""

    Default = "Default"


class PassDumpLevel(Enum):
    """How per-pass dumps print: not at all, concisely, or with every layout spelled out."""

    NONE = 0
    CONCISE = 1
    EXPLICIT = 2


class PassManager:
    """The passes of a strategy, and running them with dumps. Raises ValueError for no `OptimizationStrategy`."""

    def __init__(
        self, strategy: OptimizationStrategy = OptimizationStrategy.Default, analyze_auto_scopes_for_deps: bool = False
    ) -> None:
        if not isinstance(strategy, OptimizationStrategy):
            raise ValueError(f"Unsupported optimization strategy: {strategy!r}")
        self.strategy = strategy
        self._pipeline = PassPipeline(default_passes(analyze_auto_scopes_for_deps))
        self._planner = current_or_default().memory_planner

    @classmethod
    def get_strategy(
        cls, strategy: OptimizationStrategy = OptimizationStrategy.Default, analyze_auto_scopes_for_deps: bool = False
    ) -> PassManager:
        """The manager of ``strategy``, as the constructor makes it."""
        return cls(strategy, analyze_auto_scopes_for_deps)

    @property
    def passes(self) -> list[Pass]:
        return self._pipeline.get_passes()

    @property
    def pass_names(self) -> list[str]:
        return self._pipeline.get_pass_names()

    def get_pass_names(self) -> list[str]:
        return self.pass_names

    def _check_planner_consistency(self) -> None:
        now = current_or_default().memory_planner
        if now is not self._planner:
            raise RuntimeError(
                f"the pipeline was built for memory_planner={self._planner.name} and runs under {now.name}; "
                "build and run it under one PassContext"
            )

    def run_passes(
        self,
        program: Program,
        dump_ir: bool | PassDumpLevel = False,
        output_dir: str | None = None,
        prefix: str = "pl",
    ) -> Program:
        """Run every pass. ``dump_ir`` writes ``00_frontend.py`` and ``NN_after_<Pass>.py`` into ``output_dir``.

        Raises ValueError when dumps are asked for without ``output_dir``.
        """
        self._check_planner_consistency()
        level = PassDumpLevel(int(dump_ir)) if isinstance(dump_ir, bool) else dump_ir
        if level is PassDumpLevel.NONE:
            return self._pipeline.run(program)
        if output_dir is None:
            raise ValueError("output_dir is required when dump_ir is set")
        writer = DumpWriter(output_dir, prefix, level is PassDumpLevel.EXPLICIT)
        writer("", program)
        return self._pipeline.run(program, writer)


class DumpWriter:
    """A ``dump`` callback that writes each program to a numbered file in ``output_dir``."""

    def __init__(self, output_dir: str | os.PathLike[str], prefix: str = "pl", explicit_layout: bool = False) -> None:
        self.output_dir = os.fspath(output_dir)
        self._settings = {"prefix": prefix, "explicit_layout": explicit_layout}
        self._count = 0
        os.makedirs(self.output_dir, exist_ok=True)

    def __call__(self, pass_name: str, program: Program) -> None:
        """Write ``program``; an empty ``pass_name`` stands for the front end."""
        from ..ir.printer import python_print

        name = f"{self._count:02d}_after_{pass_name}.py" if pass_name else f"{self._count:02d}_frontend.py"
        self._count += 1
        with open(os.path.join(self.output_dir, name), "w", encoding="utf-8") as file:
            file.write(python_print(program, **self._settings))
