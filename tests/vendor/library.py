"""Compiles kernel C++ against the tile library's CPU headers, runs it on recorded arguments, compares."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

BATCH = 24
_CORES = {"vector": "__DAV_VEC__", "cube": "__DAV_CUBE__"}
_MEMORIES = {"a3": "A2A3", "a5": "A5"}
_HEADERS = ("cstdint", "cstddef", "cmath", "cstring", "cassert", "vector", "algorithm", "iostream", "iomanip", "mutex")
_STDFLOAT = """#pragma once
#include <cstdint>
namespace std { using bfloat16_t = __bf16; }
extern "C" __attribute__((weak)) __bf16 __truncsfbf2(float x) {
  uint32_t bits = __builtin_bit_cast(uint32_t, x);
  bits = x != x ? bits | 0x400000 : bits + 0x7fff + ((bits >> 16) & 1);
  return __builtin_bit_cast(__bf16, (uint16_t) (bits >> 16));
}
extern "C" __attribute__((weak)) __bf16 __truncdfbf2(double x) { return __truncsfbf2((float) x); }
"""
"""What the library wants of <stdfloat>, for a compiler that knows the type and has no such header or conversion."""
_TIMEOUT = 900


@dataclass
class Kernel:
    """One kernel and one run of it; ``outcome`` is ``equal``, or says what went wrong and in which step."""

    digest: str
    name: str
    core: str
    arch: str
    cpp: Path
    run: Path
    test: str
    outcome: str = ""

    @property
    def kind(self) -> str:
        """Case, target and outcome, without what differs from kernel to kernel."""
        case = re.search(r"\[([a-z_]+\.\w+)", self.test) or re.search(r"::(\w+)", self.test)
        outcome = re.sub(r"argument \d+, .*", "", self.outcome)
        return f"{case[1] if case else self.test} {self.arch} {re.sub(r'-?[0-9]+', 'N', outcome)[:160]}"


class Library:
    """A checkout of the tile library, and the compiler to use with it."""

    def __init__(self, root: Path, compiler: str) -> None:
        self.root, self.compiler = root, compiler

    def _has_bfloat16(self) -> bool:
        command = [self.compiler, "-std=c++23", "-fsyntax-only", "-x", "c++", "-"]
        source = "#include <stdfloat>\nstd::bfloat16_t x;\n"
        return subprocess.run(command, input=source, text=True, capture_output=True, check=False).returncode == 0

    def flags(self, kernel: Kernel, out: Path) -> list[str]:
        return [
            "-std=c++23", "-O0", "-w", "-fPIC", "-shared", "-ferror-limit=0", "-fbracket-depth=1024", "-D__CPU_SIM",
            f"-D{_CORES[kernel.core]}", "-D__STDCPP_BFLOAT16_T__=1", "-DPTO_CPU_SIM_ENABLE_BF16=1",
            "-DCPU_SIM_BFLOAT_ENABLED=1", f"-I{self.root / 'include'}", f"-I{out}",
        ]  # fmt: skip

    def judge(self, kernels: Sequence[Kernel], out: Path) -> None:
        """Note each kernel's outcome. One that does not compile, or crashes, leaves the others of its unit alone."""
        out.mkdir(parents=True, exist_ok=True)
        (out / "stdfloat").unlink(missing_ok=True)
        if not self._has_bfloat16():
            (out / "stdfloat").write_text(_STDFLOAT, encoding="utf-8")
        groups: dict[tuple[str, str], list[Kernel]] = {}
        for kernel in kernels:
            groups.setdefault((kernel.core, kernel.arch), []).append(kernel)
        batches = [g[i : i + BATCH] for g in groups.values() for i in range(0, len(g), BATCH)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda item: self._batch(item[1], out / f"unit{item[0]}"), enumerate(batches)))

    def _batch(self, kernels: Sequence[Kernel], stem: Path) -> None:
        while kernels:
            failed = self._compile(kernels, stem)
            if not failed:
                break
            kernels = [k for k in kernels if k.digest not in failed]
        if kernels:
            run(kernels, stem.with_suffix(".so"))

    def _compile(self, kernels: Sequence[Kernel], stem: Path) -> set[str]:
        """Compile a unit; the digests of those whose errors stop it, halving it where the errors name none."""
        source = stem.with_suffix(".cpp")
        source.write_text(unit(kernels), encoding="utf-8")
        command = [self.compiler, *self.flags(kernels[0], stem.parent), str(source), "-o", str(stem) + ".so"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
        if done.returncode == 0:
            return set()
        errors = errors_by_kernel(done.stderr)
        known = {k.digest for k in kernels}
        if not known & errors.keys() and len(kernels) > 1:
            half = len(kernels) // 2
            return self._compile(kernels[:half], stem) | self._compile(kernels[half:], stem)
        for kernel in kernels:
            if kernel.digest in errors or len(kernels) == 1:
                kernel.outcome = f"does not compile: {errors.get(kernel.digest, done.stderr.strip()[-200:])}"
        return (known & errors.keys()) or known


def errors_by_kernel(text: str) -> dict[str, str]:
    """The first error of each kernel a compiler's output names, at its own line or in what it instantiates."""
    found: dict[str, str] = {}
    error = ""
    for line in text.splitlines():
        if " error: " in line:
            error = line.split(" error: ", 1)[1]
        for digest in re.findall(r"\bkernel_([0-9a-f]{16})\b", line):
            if error and " warning: " not in line:
                found.setdefault(digest, error)
    return found


def unit(kernels: Sequence[Kernel]) -> str:
    """One translation unit: each kernel in a namespace of its own, called with its core's place and its arguments."""
    parts = [*(f"#include <{name}>" for name in _HEADERS), '#include "pto/pto-inst.hpp"']
    for kernel in kernels:
        body = re.sub(r"^#include.*$", "", kernel.cpp.read_text(encoding="utf-8"), flags=re.M)
        place = f"kernel_{kernel.digest}"
        parts += [f'#line 1 "{place}"', f"namespace {place} {{", body, f'#line 1 "{place}"', _entry(body, kernel), "}"]
    return "\n".join(parts) + "\n"


def _entry(body: str, kernel: Kernel) -> str:
    found = re.search(rf"\bvoid {re.escape(kernel.name)}\(([^)]*)\)\s*\{{", body)
    params = [p.strip().rsplit(" ", 1)[0] for p in found[1].split(",")] if found and found[1].strip() else []
    given = [
        f"({p}) a[{i}]" if p.endswith("*") else f"*({p}*) a[{i}]" for i, p in enumerate(params)
    ]  # fmt: skip
    return (
        f'extern "C" void run_{kernel.digest}(void** a, unsigned block, unsigned lane) {{ '
        f"pto::NPUMemoryModel::SetDefaultArch(pto::NPUArch::{_MEMORIES[kernel.arch]}); "
        f"pto::cpu_sim::set_execution_context(block, lane, 2); {kernel.name}({', '.join(given)}); }}"
    )


def run(kernels: Sequence[Kernel], library: Path) -> None:
    """Run each kernel in a process of its own, all forked from one, and compare what they wrote."""
    for kernel in kernels:
        _result(kernel).unlink(missing_ok=True)
    given = "".join(f"{k.digest}\t{k.run}\t{_result(k)}\n" for k in kernels)
    command = [sys.executable, "-m", "vendor.run_unit", str(library)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    ended = dict(line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line)
    last = (done.stderr.strip().splitlines() or [""])[-1]
    for kernel in kernels:
        if _result(kernel).exists():
            kernel.outcome = compare(kernel.run, _result(kernel))
        else:
            kernel.outcome = f"crashes: {ended.get(kernel.digest) or last}"


def _result(kernel: Kernel) -> Path:
    return kernel.run.with_suffix(".out.npz")


def compare(expected: Path, found: Path) -> str:
    """``equal``, or where the arguments differ after the run."""
    want, got = np.load(expected), np.load(found)
    types = [str(t) for t in want["types"]]
    for i, kind in enumerate(types):
        a, b = _values(want[f"b{i}"], kind), _values(got[f"b{i}"], kind)
        if a.dtype.kind == "f":
            scale = np.abs(np.where(np.isfinite(a), a, 0)).max(initial=0)
            error = _TOLERANCE.get(kind, 0)
            differ = ~np.isclose(a, b, rtol=error, atol=error * min(scale, 1), equal_nan=True)
        else:
            differ = a != b
        if differ.any():
            where = tuple(int(n) for n in np.argwhere(differ)[0])
            count = f"{int(differ.sum())} of {a.size} elements"
            return f"differs: argument {i}, {count}, first {b[where]} for {a[where]} at {where}"
    return "equal"


_TOLERANCE = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 2e-2}


def _values(array: np.ndarray, kind: str) -> np.ndarray:
    import ml_dtypes

    if array.dtype.name != kind and hasattr(ml_dtypes, kind):
        array = array.view(getattr(ml_dtypes, kind))
    return array if array.dtype.kind in "biu" or kind in ("int4", "uint4") else array.astype(np.float64)
