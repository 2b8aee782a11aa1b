"""PTO of programs that need not run."""

from pypto import backend, codegen
from pypto.ir.pass_manager import OptimizationStrategy, PassManager


def text_of(program, **options):
    """PTO of a program's kernels after every pass, which need not be runnable."""
    backend.reset_for_testing()
    backend.set_backend_type(backend.BackendType.Ascend910B)
    lowered = PassManager.get_strategy(OptimizationStrategy.Default).run_passes(program)
    return codegen.PTOCodegen().generate(lowered, emit_source_loc=False, **options)


def lines(text, word):
    return [line.strip() for line in text.splitlines() if word in line]
