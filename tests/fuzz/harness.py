"""One kernel text: compiled, run in the simulator with its sanitizer, and compared with what Python makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import eager
import numpy as np
from mixed_kernels import PLACES, MixedKernel
from vector_kernels import COLS, DTYPES, OUTS, ROWS

import pypto.language as pl
from pypto.errors import Diagnosed, InternalError, VerificationError
from pypto.passes.context import VerificationLevel
from pypto.pto.errors import PtoError
from pypto.runtime.compiled_program import CompiledProgram

NUMPY = {"FP32": np.float32, "FP16": np.float16, "INT32": np.int32}
SCALARS = ({"n": 2, "p": -3, "m": 16, "w": 64}, {"n": -1, "p": 2, "m": 5, "w": 19}, {"n": 0, "p": 7, "m": 1, "w": 1})


@dataclass
class Outcome:
    """``kind`` is ok, refused (by a diagnostic with a place), undefined (no meaning to compare with), or a failure."""

    kind: str
    detail: str = ""

    @property
    def failed(self) -> bool:
        return self.kind not in ("ok", "refused", "undefined")


def vector_arguments(seed: int, scalars: dict[str, int]) -> list[Any]:
    """Small values, so that most arithmetic is exact."""
    rng = np.random.default_rng(seed)

    def array(dtype: str) -> Any:
        values = rng.integers(-12, 13, (ROWS, COLS))
        return (values if dtype == "INT32" else values / 4).astype(NUMPY[dtype])

    arrays = [[array(d) for d, names in of.items() for _ in names.split()] for of in (DTYPES, OUTS)]
    return [*arrays[0], *arrays[1], *scalars.values()]


def differ(got: Any, want: Any) -> str:
    """What differs, beyond the rounding of sums."""
    if got.dtype.kind == "i":
        bad = got != want
    else:
        scale = np.maximum(1, np.abs(np.nan_to_num(want, posinf=1, neginf=1).astype(np.float64)))
        tolerance = (1e-4 if got.dtype == np.float32 else 2e-2) * scale
        with np.errstate(all="ignore"):
            close = np.abs(got.astype(np.float64) - want.astype(np.float64)) <= tolerance
        bad = ~(close | (got == want) | (np.isnan(got) & np.isnan(want)))
    if not bad.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {bad.size} differ, at {at}: {got[at]} instead of {want[at]}"


def compile_text(
    source: str, target: str = "Ascend910B", level: VerificationLevel = VerificationLevel.ROUNDTRIP
) -> CompiledProgram | Outcome:
    """The compiled program, or what became of the attempt."""
    try:
        program = pl.parse("import pypto.language as pl\n" + source)
        return pl.compile(program, target=target, dump_passes=False, verification_level=level)
    except InternalError as error:
        return Outcome("internal", f"{type(error).__name__}: {error}")
    except Diagnosed as error:
        placed = error.diagnostic.location is not None
        return Outcome("refused" if placed else "unplaced", f"{type(error).__name__}: {error}")
    except VerificationError as error:
        placed = all(d.location is not None for d in error.diagnostics)
        return Outcome("refused" if placed else "unplaced", str(error))
    except (RuntimeError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError) as error:
        return Outcome("crash", f"{type(error).__name__}: {error}")


_NO_TEXT = "RuntimeError: after CtrlFlowTransform: the printed program "
"""A name that only some paths past a break or continue assign: what becomes of it has no text to read back."""


def check_vector_kernel(source: str, target: str = "Ascend910B") -> Outcome:
    compiled = compile_text(source, target)
    if isinstance(compiled, Outcome) and compiled.detail.startswith(_NO_TEXT):
        compiled = compile_text(source, target, VerificationLevel.BASIC)
    if isinstance(compiled, Outcome):
        return compiled
    compared = 0
    for seed, scalars in enumerate(SCALARS):
        args = vector_arguments(seed, scalars)
        wanted = [a.copy() if isinstance(a, np.ndarray) else eager.Number(a, "INT32" if k < len(args) - 2 else "INDEX")
                  for k, a in enumerate(args)]  # fmt: skip
        try:
            eager.run(source, wanted)
        except eager.Undefined:
            continue
        try:
            run_sanitized(compiled, args)
        except PtoError as error:
            return Outcome("run", f"scalars {scalars}: {error}")
        compared += 1
        for number, (got, want) in enumerate(zip(args, wanted)):
            what = differ(got, want) if isinstance(got, np.ndarray) else ""
            if what:
                return Outcome("wrong", f"argument {number}, scalars {scalars}: {what}")
    return Outcome("ok" if compared else "undefined")


def run_sanitized(compiled: CompiledProgram, args: list[Any]) -> None:
    """Run the one kernel, reporting reads of what nothing wrote and unsafe overlaps."""
    from pypto import simulator

    (text,) = compiled.pto.values()
    (kernel,) = simulator.load(text).kernels.values()
    kernel.run(args, sanitize=True)


def check_program(source: str, target: str = "Ascend910B") -> Outcome:
    """A text of `programs`: floating-point arrays and the one index scalar ``n``, outputs last."""
    compiled = compile_text(source, target)
    if isinstance(compiled, Outcome):
        return compiled
    for seed, n in enumerate((3, 0, 4)):
        rng = np.random.default_rng(seed)
        args: list[Any] = []
        for param in compiled.params:
            dims = [d or 1 for d in param.shape or ()]
            args.append((rng.integers(-12, 13, dims) / 4).astype(param.dtype.numpy) if param.is_tensor else n)
        wanted = [eager.Number(a, "INDEX") if isinstance(a, int) else a.copy() for a in args]
        result = eager.run(source, wanted)
        wanted[-1] = result if result is not None else wanted[-1]
        try:
            compiled(*args)
        except PtoError as error:
            return Outcome("run", f"n = {n}: {error}")
        what = differ(args[-1], wanted[-1])
        if what:
            return Outcome("wrong", f"n = {n}: {what}")
    return Outcome("ok")


def check_mutant(source: str) -> Outcome:
    """A kernel with mistakes: right all the same, or refused at one of its lines."""
    compiled = compile_text(source, level=VerificationLevel.BASIC)
    if isinstance(compiled, Outcome):
        inside = "--> <pypto text" in compiled.detail
        return Outcome("unplaced", compiled.detail) if compiled.kind == "refused" and not inside else compiled
    return Outcome("ok")


def check_mixed_kernel(kernel: MixedKernel, target: str) -> Outcome:
    """A kernel of `mixed_kernels` and the same on arrays of what is valid."""
    source, model = kernel.text, "\n".join(kernel.model)
    rows, cols = kernel.rows, kernel.cols
    compiled = compile_text(source, target, VerificationLevel.BASIC)
    if isinstance(compiled, Outcome):
        return compiled
    m, n, k = kernel.m, kernel.n, kernel.k
    rng = np.random.default_rng(m + n + k)
    shapes = {"a": (m, k), "b": (k, n), "w": (n, n), "x": (m, n), "s": (m, n), "y": (PLACES * m, n)}
    given = {name: (rng.integers(-4, 5, shape) / 4).astype(np.float32 if name in "xy" else np.float16)
             for name, shape in shapes.items()}  # fmt: skip
    wanted: dict[str, Any] = {name: array.copy() for name, array in given.items()}
    wanted |= {"r": rows, "c": cols, "np": np, "f": lambda half: half.astype(np.float32)}
    with np.errstate(all="ignore"):
        exec(model, wanted)
    compiled.sanitize = True
    try:
        compiled(*(given[name] for name in "abwx"), rows, cols, given["s"], given["y"])
    except PtoError as error:
        return Outcome("run", str(error))
    for name in "sy":
        what = differ(given[name], wanted[name])
        if what:
            return Outcome("wrong", f"{name}: {what}")
    return Outcome("ok")
