"""One operator through the whole public path: DSL text, `pl.compile`, the PTO it becomes, the simulator, numpy."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from operator_values import NUMPY, Array, assert_same, fill, mixed

import pypto.language as pl
from pypto.backend import ASCEND910B, ASCEND950, Target
from pypto.dtypes import DataType
from pypto.ir.program import summarize
from pypto.logging import LogLevel, set_log_level
from pypto.ops.registry import get_decl
from pypto.passes import VerificationLevel
from pypto.passes.contracts import element_types
from pypto.runtime.compiled_program import CompiledProgram
from pypto.simulator import load

set_log_level(LogLevel.WARN)
TARGETS = (ASCEND910B, ASCEND950)
ROWS, COLS = 16, 64
REGIONS = ((ROWS, COLS), (5, 19), (1, COLS), (ROWS, 1), (1, 1), (0, COLS), (ROWS, 0))
"""Valid extents tried: whole, ragged, one row, one column, one element, nothing."""
FILLED = tuple(r for r in REGIONS if 0 not in r)


@cache
def compile_text(source: str, target: Target) -> CompiledProgram:
    """The kernel or program in ``source``, compiled. Round trips after every pass, five times as long, are left out."""
    program = pl.parse("import pypto.language as pl\n" + source)
    return pl.compile(program, target=target, dump_passes=False, verification_level=VerificationLevel.BASIC)


def run_op(op: str, source: str, args: Sequence[Any], target: Target) -> Any:
    """Run the kernel in ``source``, which must apply ``op``, on ``args``; outputs are filled in place."""
    compiled = compile_text(source, target)
    used = set().union(*(summarize(f).ops for f in compiled.program.functions.values()))
    assert op in used, f"the kernel does not use {op} but {sorted(used)}"
    return compiled(*args)


def instruction_dtypes(op: str, target: Target, operand: str = "dst") -> tuple[DataType, ...]:
    """The dtypes the instruction of a tile operator takes on a target, from the instruction table."""
    decl = get_decl(op)
    assert decl is not None and decl.pto is not None
    names = element_types(decl, target.module_arch, operand)
    assert names is not None, f"{decl.pto.mnemonic} states no element types for {operand}"
    return tuple(d for d in NUMPY if d.mlir in names)


def kind_of(valid: Sequence[int], whole: Sequence[int]) -> str:
    """``full``, ``ragged`` or ``empty``: what a valid region is of a tile."""
    return "empty" if 0 in valid else "full" if tuple(valid) == tuple(whole) else "ragged"


_WINDOW = re.compile(
    r"\b(?:(?:load|slice)\(\w+, \[[^\]]*\]|tri\(-?\d+), \[([^\]]*)\](?:, valid_shape=\[([^\]]*)\])?"
)


def regions_of(body: str, runs: Iterable[Sequence[int]]) -> frozenset[str]:
    """The kinds of valid region the loads of ``body`` give when run with scalars ``i0..`` as in ``runs``."""
    windows = [(shape.split(", "), (valid or shape).split(", ")) for shape, valid in _WINDOW.findall(body)]
    found = set() if windows else {"full"}
    for run in runs:
        names = {f"i{i}": n for i, n in enumerate(run)}
        for dims in windows:
            shape, valid = ([names.get(d, int(d) if d.isdigit() else None) for d in part] for part in dims)
            if None not in valid:
                found.add(kind_of(valid, shape))
    return frozenset(found)


@dataclass(frozen=True)
class Case:
    """A numeric test of operator ``op``: ``run(dtype, target)`` for each dtype ``dtypes(target)`` gives."""

    op: str
    name: str
    run: Callable[[DataType, Target], None]
    dtypes: Callable[[Target], Iterable[DataType]]
    refuse: Callable[[DataType, Target], None] | None = None
    """Compiles for a dtype that must be refused; None where others than ``dtypes`` may be taken."""
    vector: Vector | None = None
    per_target: bool = False
    """Whether targets differ in more than their dtypes."""
    covers: frozenset[str] = frozenset({"full"})
    """The kinds of valid region it runs."""

    @property
    def id(self) -> str:
        return self.op if not self.name else f"{self.op}-{self.name}"


def fixed(*dtypes: DataType) -> Callable[[Target], Iterable[DataType]]:
    return lambda target: dtypes


_SHAPES = {
    "mn": ("[{R}, {C}]", "[m, n]"), "m1": ("[{R}, 1]", "[m, 1]"), "1n": ("[1, {C}]", "[1, n]"),
    "11": ("[1, 1]", "[1, 1]"), "nm": ("[{C}, {R}]", "[n, m]"), "m2n": ("[{R}, {C2}]", "[m, {C} + n]"),
}  # fmt: skip


def _extents(code: str, m: int, n: int) -> tuple[int, int]:
    return {"mn": (m, n), "m1": (m, 1), "1n": (1, n), "11": (1, 1), "nm": (n, m), "m2n": (m, COLS + n)}[code]


@dataclass(frozen=True)
class Vector:
    """A vector operator on tiles of shapes ``ins``, in the letters of `_SHAPES`.

    ``expr`` computes the result from tiles ``a``, ``b``, ``c``, the scalar ``s`` and what ``setup`` makes; T in it is
    the dtype under test. ``reference`` gives the valid part of the result from the valid parts of
    the inputs (and the scalar).
    """

    op: str
    expr: str
    ins: str
    reference: Callable[..., Array]
    out: str = "mn"
    setup: str = ""
    out_dtype: DataType | None = None
    in_dtypes: tuple[DataType | None, ...] = ()
    ulp: float = 0
    scalars: Sequence[Any] | Callable[[DataType], Sequence[Any]] = ()
    scalar_type: DataType | None = None
    regions: Sequence[tuple[int, int]] = REGIONS
    make: Callable[..., Array] = mixed
    outside: Callable[[Array, tuple[int, int]], Array] | None = None
    """What the rest of the output holds afterwards; by default what was there."""
    tensors: bool = False
    """Whether the operator is applied to tensors in a region instead of to tiles in a kernel."""

    def text(self, dtype: DataType, m: str, n: str, scalar: str) -> str:
        """The kernel: valid extents and scalar are expressions, the parameters ``m``, ``n`` and ``s`` or numbers."""
        out_dtype = (self.out_dtype or dtype).name
        names = dict(R=ROWS, C=COLS, C2=2 * COLS, T=f"pl.{dtype.name}")
        params, body = [], []
        for name, code, own in zip("abc", self.ins.split(), self.dtypes_in(dtype)):
            shape, valid = (text.format(**names) for text in _SHAPES[code])
            valid = valid.replace("m", m).replace("n", n)
            params.append(f"x_{name}: pl.Tensor[{shape}, pl.{own.name}]")
            body.append(f"    {name} = {self.operand(f'x_{name}', shape, valid)}")
        params += [f"{x}: pl.Scalar[pl.INDEX]" for x, given in (("m", m), ("n", n)) if x == given]
        if scalar == "s":
            params.append(f"s: pl.Scalar[pl.{(self.scalar_type or dtype).name}]")
        result = f"pl.Tensor[{_SHAPES[self.out][0].format(**names)}, pl.{out_dtype}]"
        params.append(f"y: pl.Out[{result}]")
        body += [f"    {line}" for line in self.setup.format(**names).split("\n") if line]
        expr = self.expr.format(**names, s=scalar, m=m, n=n)
        head = f"def k({', '.join(params)})"
        if not self.tensors:
            lines = [*body, f"    pl.store({expr}, [0, 0], y)"]
            return f"@pl.function(type=pl.FunctionType.InCore)\n{head}:\n" + "\n".join(lines) + "\n"
        lines = [*body, f"    y = pl.assemble(y, {expr}, [0, 0])"]
        inside = "\n".join("    " + line for line in ["with pl.at(level=pl.Level.CORE_GROUP):", *lines])
        return f"@pl.function\n{head} -> {result}:\n{inside}\n    return y\n"

    def operand(self, tensor: str, shape: str, valid: str) -> str:
        if not self.tensors:
            return f"pl.load({tensor}, [0, 0], {shape}, valid_shape={valid})"
        whole = valid == shape
        return tensor if whole else f"pl.slice({tensor}, {shape}, [0, 0], valid_shape={valid})"

    def dtypes_in(self, dtype: DataType) -> list[DataType]:
        given = list(self.in_dtypes) or [None] * len(self.ins.split())
        return [own or dtype for own in given]

    def inputs(self, dtype: DataType) -> list[Array]:
        rng = np.random.default_rng([zlib.crc32(self.op.encode()), dtype.code()])
        shapes = [_extents(code, ROWS, COLS) if code != "m2n" else (ROWS, 2 * COLS) for code in self.ins.split()]
        return [self.make(own.numpy, shape, rng, i)
                for i, (shape, own) in enumerate(zip(shapes, self.dtypes_in(dtype)))]  # fmt: skip

    def check(self, source: str, dtype: DataType, target: Target, region: tuple[int, int], given: tuple[bool, Any]):
        """Run ``source`` on one valid region; ``given`` is whether the scalar is an argument, and its value."""
        m, n = region
        arrays = self.inputs(dtype)
        valid = [x[: e[0], : e[1]] for x, e in zip(arrays, (_extents(c, m, n) for c in self.ins.split()))]
        out_type = (self.out_dtype or dtype).numpy
        whole = _extents(self.out, ROWS, COLS) if self.out != "m2n" else (ROWS, 2 * COLS)
        y, rows_cols = fill(out_type, whole), _extents(self.out, m, n)
        scalar = [given[1]] if self.scalars else []
        with np.errstate(all="ignore"):
            want = self.reference(*valid, *scalar)
        expected = y.copy() if self.outside is None else self.outside(y, rows_cols)
        expected[: rows_cols[0], : rows_cols[1]] = want
        extents = [v for v, letter in ((m, "m"), (n, "n")) if f"{letter}: pl.Scalar" in source]
        run_op(self.op, source, [*arrays, *extents, *(scalar if given[0] else []), y], target)
        what = f"{self.op} {dtype.name} on {target.name}, {m}x{n} valid, scalar {scalar}"
        assert_same(y, expected, self.ulp, what)

    def values(self, dtype: DataType) -> Sequence[Any]:
        return self.scalars(dtype) if callable(self.scalars) else self.scalars

    def run(self, dtype: DataType, target: Target) -> None:
        """Every region with extents known at run time, and one with extents and scalar in the kernel's text."""
        values = self.values(dtype)
        first = values[0] if len(values) else None
        for region in self.regions:
            self.check(self.text(dtype, "m", "n", "s" if len(values) else ""), dtype, target, region, (True, first))
        for value in values[1:]:
            self.check(self.text(dtype, "m", "n", "s"), dtype, target, (ROWS, COLS), (True, value))
        m, n = self.regions[dtype.code() % 2]
        # A bare number promotes a tensor's dtype; a scalar of its own keeps it.
        literal = "" if not len(values) else "s" if self.tensors else repr(first)
        self.check(self.text(dtype, str(m), str(n), literal), dtype, target, (m, n), (literal == "s", first))

    def case(self, dtypes: Callable[[Target], Iterable[DataType]] | None = None, name: str = "", of: str = "dst"):
        """The case of the table. Without ``dtypes``: those of the instruction's operand ``of``, and no others."""
        chosen = dtypes or (lambda target: instruction_dtypes(self.op, target, of))
        refuse = self.attempt if dtypes is None else None
        covers = frozenset(kind_of(r, (ROWS, COLS)) for r in self.regions)
        return Case(self.op, name, self.run, chosen, refuse, self, covers=covers)

    def on_tensors(self) -> Vector:
        """The same operator on tensors, which takes no scratch."""
        expr = self.expr.replace("pl.tile.", "pl.tensor.").replace(", tmp)", ")")
        regions = [r for r in self.regions if r in ((ROWS, COLS), (5, 19), (0, COLS))]
        return replace(self, op=self.op.replace("tile.", "tensor."), expr=expr, setup="", regions=regions, tensors=True)

    def attempt(self, dtype: DataType, target: Target) -> None:
        """Compile for ``dtype`` and load the PTO."""
        values = self.values(dtype)
        compiled = compile_text(self.text(dtype, str(ROWS), str(COLS), repr(values[0]) if values else ""), target)
        load(compiled.pto["k"], target.name)


@dataclass(frozen=True)
class Script:
    """An operator in a kernel written out: ``body`` reads tensors ``x0..`` and index scalars ``i0..``, writes ``y0..``.

    ``inputs`` and ``outputs`` are shapes, with a dtype where it is not the one under test (T in ``body``). Outputs hold
    `fill` before; ``reference`` takes inputs, scalars and outputs as they were, and changes the outputs. ``runs`` are
    the scalars of each run. ``tensors`` writes a function on tensors instead of a kernel.
    """

    op: str
    body: str
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    reference: Callable[..., None]
    runs: Sequence[tuple[int, ...]] = ((),)
    ulp: float = 0
    within: float | None = None
    """Absolute error allowed instead."""
    make: Callable[..., Array] = mixed
    tensors: bool = False

    def text(self, dtype: DataType) -> str:
        def annotation(spec: Any) -> str:
            shape, own = _parted(spec, dtype)
            return f"pl.Tensor[{list(shape)}, pl.{own.name}]"

        params = [f"x{i}: {annotation(s)}" for i, s in enumerate(self.inputs)]
        params += [f"i{i}: pl.Scalar[pl.INDEX]" for i in range(len(self.runs[0]))]
        params += [f"y{i}: pl.Out[{annotation(s)}]" for i, s in enumerate(self.outputs)]
        kind = "" if self.tensors else "(type=pl.FunctionType.InCore)"
        lines = self.body.strip("\n").split("\n")
        if self.tensors:
            lines = ["with pl.at(level=pl.Level.CORE_GROUP):", *(f"    {line}" for line in lines)]
        result = ""
        if self.tensors:
            lines.append("return y0")
            result = f" -> {annotation(self.outputs[0])}"
        text = "\n".join(f"    {line}" for line in lines).replace("{T}", f"pl.{dtype.name}")
        return f"@pl.function{kind}\ndef k({', '.join(params)}){result}:\n{text}\n"

    def run(self, dtype: DataType, target: Target) -> None:
        rng = np.random.default_rng([zlib.crc32(self.op.encode()), dtype.code()])
        inputs = []
        for i, spec in enumerate(self.inputs):
            shape, own = _parted(spec, dtype)
            flat = (int(np.prod(shape[:-1])), shape[-1])
            inputs.append(self.make(own.numpy, flat, rng, i).reshape(shape))
        for ints in self.runs:
            outs = [fill(own.numpy, shape) for shape, own in (_parted(s, dtype) for s in self.outputs)]
            want = [o.copy() for o in outs]
            with np.errstate(all="ignore"):
                self.reference(*inputs, *ints, *want)
            run_op(self.op, self.text(dtype), [*inputs, *ints, *outs], target)
            for i, (out, expected) in enumerate(zip(outs, want)):
                what = f"{self.op} {dtype.name} on {target.name}, y{i}, scalars {ints}"
                if self.within is not None:
                    np.testing.assert_allclose(out, expected, rtol=0, atol=self.within, err_msg=what)
                else:
                    assert_same(out, expected, self.ulp, what)

    def case(self, dtypes: Callable[[Target], Iterable[DataType]], name: str = "") -> Case:
        return Case(self.op, name, self.run, dtypes, covers=regions_of(self.body, self.runs))


def _parted(spec: Any, dtype: DataType) -> tuple[tuple[int, ...], DataType]:
    return (tuple(spec[0]), spec[1]) if isinstance(spec[0], tuple) else (tuple(spec), dtype)
