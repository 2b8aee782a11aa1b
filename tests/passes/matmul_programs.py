"""Matrix products as kernels of one function, for the AutoTileMatmulL0 tests."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import pypto.language as pl
from pypto import ir, passes
from pypto.backend import get_target

DTYPES = {"FP32": np.float32, "BF16": ml_dtypes.bfloat16, "FP16": np.float16, "INT8": np.int8}


def result_of(dtype: str) -> str:
    return "INT32" if dtype == "INT8" else "FP32"


def product(m: int, k: int, n: int, dtype: str = "BF16", lines: str = "c = pl.tile.matmul(am, bm)") -> ir.Program:
    """``lines`` make ``c`` of ``am @ bm``; ``bias`` is a row that they may load, ``out`` takes ``c``."""
    made = result_of(dtype)
    body = [
        f"am = pl.tile.load(a, [0, 0], [{m}, {k}], target_memory=pl.Mem.Mat)",
        f"bm = pl.tile.load(b, [0, 0], [{k}, {n}], target_memory=pl.Mem.Mat)",
        *lines.strip().splitlines(),
        "out = pl.tile.store(c, [0, 0], out)",
        "return out",
    ]
    params = (
        f"a: pl.Tensor[[{m}, {k}], pl.{dtype}], b: pl.Tensor[[{k}, {n}], pl.{dtype}], "
        f"bias: pl.Tensor[[1, {n}], pl.{made}], out: pl.Out[pl.Tensor[[{m}, {n}], pl.{made}]]"
    )
    text = (
        "import pypto.language as pl\n\n@pl.program\nclass Kernel:\n    @pl.function(type=pl.FunctionType.InCore)\n"
        f"    def kernel(self, {params}) -> pl.Tensor[[{m}, {n}], pl.{made}]:\n        "
    )
    parsed = pl.parse(text + "\n        ".join(body) + "\n")
    assert isinstance(parsed, ir.Program)
    return passes.convert_to_ssa()(parsed)


def biased(n: int) -> str:
    return (
        f"bias_mat = pl.tile.load(bias, [0, 0], [1, {n}], target_memory=pl.Mem.Mat)\n"
        "c = pl.tile.matmul_bias(am, bm, bias_mat)"
    )


def tiled(program: ir.Program, target: str = "Ascend910B", **settings: Any) -> ir.Program:
    """``program`` after the pass, verified, printed and parsed back, and found to be left alone by a second run."""
    checks = [passes.VerificationInstrument(), ir.make_roundtrip_instrument()]
    with passes.PassContext(checks, target=get_target(target), hint_sink=[], **settings):
        made = passes.auto_tile_matmul_l0()(program)
        assert passes.auto_tile_matmul_l0()(made) is made
    return made


def hints(program: ir.Program, target: str = "Ascend910B") -> list[str]:
    """What the pass tells of ``program``, which it returns as it is."""
    told: list[str] = []
    with passes.PassContext([], target=get_target(target), hint_sink=told):
        assert passes.auto_tile_matmul_l0()(program) is program
    return told


def reduction(m: int, k: int, n: int, step: int, dtype: str = "INT8", blocks: int = 1, out: str = "c") -> ir.Program:
    """Products of blocks of K added up in a pipeline, ``blocks`` times side by side; ``out`` takes the sum."""
    made = result_of(dtype)
    c_shape = f"[{m}, {n * blocks}]"
    text = f"""
import pypto.language as pl

@pl.program
class Kernel:
    @pl.function
    def kernel(self, a: pl.Tensor[[{m}, {k}], pl.{dtype}], b: pl.Tensor[[{k}, {n * blocks}], pl.{dtype}],
               c: pl.Out[pl.Tensor[{c_shape}, pl.{made}]]) -> pl.Tensor[{c_shape}, pl.{made}]:
        for i in pl.spmd({blocks}, name_hint="mm"):
            n0 = i * {n}
            acc = pl.create_tensor([{m}, {n}], dtype=pl.{made})
            for kb in pl.pipeline(0, {k // step}, stage=2):
                k0 = kb * {step}
                at = a[0:{m}, k0 : k0 + {step}]
                bt = b[k0 : k0 + {step}, n0 : n0 + {n}]
                if k0 == 0:
                    acc = pl.matmul(at, bt, out_dtype=pl.{made})
                else:
                    acc = pl.matmul_acc(acc, at, bt)
            {out}[0:{m}, n0 : n0 + {n}] = acc
        return {out}
"""
    parsed = pl.parse(text)
    assert isinstance(parsed, ir.Program)
    return parsed


def before_the_pass(program: ir.Program, target: str = "Ascend910B") -> ir.Program:
    """``program`` as the default pipeline hands it to the pass."""
    with passes.PassContext([], target=get_target(target)):
        for name in passes.PIPELINE[: passes.PIPELINE.index("auto_tile_matmul_l0")]:
            program = getattr(passes, name)()(program)
    return program
