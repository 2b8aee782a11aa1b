"""A launch whose kernels meet by hardware fills the chip, and starts all its blocks at once."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto.errors import VerificationError

SPEC = """
@pl.program
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def add(
        self, a: pl.Tensor[[2048, 16], pl.FP32], out: pl.Out[pl.Tensor[[2048, 16], pl.FP32]]
    ) -> pl.Tensor[[2048, 16], pl.FP32]:
        i = pl.tile.get_block_idx()
        t = pl.load(a, [i * 16, 0], [16, 16])
        pl.system.syncall(%s)
        out = pl.store(pl.add(t, t), [i * 16, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[2048, 16], pl.FP32], out: pl.Out[pl.Tensor[[2048, 16], pl.FP32]]
    ) -> pl.Tensor[[2048, 16], pl.FP32]:
        %s
            out = self.add(a, out)
        return out
"""
ALL = "pl.system.available_aiv_count()"
GROUPS = "pl.system.available_cluster_count()"


def compiled(width: str, syncall: str = 'core_type="aiv_only"', target: str = "Ascend910B"):
    program = pl.parse("import pypto.language as pl\n" + SPEC % (syncall, f"with pl.spmd({width}):"))
    return pl.compile(program, target=target, skip_ptoas=True)


@pytest.mark.parametrize(("target", "cores"), [("Ascend910B", 48), ("Ascend950", 72)])
def test_a_launch_that_fills_the_chip_is_accepted(target, cores):
    assert compiled(f"{cores}, sync_start=True", target=target).pto
    assert compiled(f"{ALL}, sync_start=True", target=target).pto


@pytest.mark.parametrize(
    ("width", "syncall", "message"),
    [
        ("24, sync_start=True", 'core_type="aiv_only"', "must fill all 48 AIV cores, one block each, and has 24"),
        ("96, sync_start=True", 'core_type="aiv_only"', "must fill all 48 AIV cores, one block each, and has 96"),
        ("48", 'core_type="aiv_only"', "needs all blocks at the same time: launch with sync_start=True"),
        (ALL, 'core_type="aiv_only"', "needs all blocks at the same time: launch with sync_start=True"),
        (f"{GROUPS}, sync_start=True", 'core_type="aiv_only"', r"launch pl.system.available_aiv_count\(\) blocks"),
        ("48, sync_start=True", "", "a hard syncall of 'mix' in 'add' can never complete"),
    ],
)
def test_other_launches_are_refused(width, syncall, message):
    with pytest.raises(VerificationError, match=message):
        compiled(width, syncall)


def test_a_kernel_nobody_launches_in_blocks_is_left_alone():
    program = pl.parse("import pypto.language as pl\n" + SPEC % ('core_type="aiv_only"', "if True:"))
    assert pl.compile(program, skip_ptoas=True).pto
