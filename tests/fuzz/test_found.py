"""What random programs found, shrunk: each once gave a wrong result, an internal error, or failed to read back."""

from __future__ import annotations

import textwrap

import pytest
from harness import check_program, check_vector_kernel
from programs import TENSOR
from vector_kernels import HEAD

_TWO = "t1 = pl.load(x0, [0, 0], [8, 64])\nt2 = pl.load(x1, [0, 0], [8, 64])\n"
_STORE = "\npl.store(t1, [0, 0], y0)\npl.store(t2, [8, 0], y0)\n"

RIGHT = {
    "a bound that the loop changes is read once, with break too": """
        s = p + 6
        t1 = pl.load(x0, [0, 0], [8, 64])
        for i in pl.range(s):
            s = s - 1
            t1 = pl.add(t1, 1.0)
            if s < -10:
                break
        pl.store(t1, [0, 0], y0)
    """,
    "a loop with break over INT32 bounds counts in INDEX": """
        t1 = pl.load(x0, [0, 0], [8, 64])
        for i in pl.range(n, 3):
            t1 = pl.add(t1, 1.0)
            if i > 5:
                break
        pl.store(t1, [0, 0], y0)
    """,
    "names of an unrolled body are each iteration's own": """
        t1 = pl.load(x0, [0, 0], [8, 64])
        for i in pl.unroll(3):
            for j in pl.range(2):
                t2 = pl.add(t1, 1.0)
                if n > j:
                    t3 = pl.add(t2, 1.0)
                    t1 = t3
            if n > i:
                t4 = t1
        pl.store(t1, [0, 0], y0)
    """,
    "an unrolled body assigns a parameter in a branch": """
        t1 = pl.load(y0, [0, 0], [8, 64])
        for i in pl.unroll(3):
            if p == 100:
                y0 = y0
            else:
                y0 = pl.store(t1, [i, 0], y0)
    """,
    "assigned in both branches, in unrolled iterations, and again": """
        if n > 1:
            t1 = pl.load(x0, [0, 0], [8, 64])
        else:
            t1 = pl.load(x1, [0, 0], [8, 64])
        for i in pl.unroll(2):
            t1 = pl.add(t1, 1.0)
        t1 = pl.mul(t1, 2.0)
        pl.store(t1, [0, 0], y0)
    """,
    "a result does not take the place of a window it is computed from": """
        t1 = pl.maximum(pl.slice(pl.load(x3, [0, 0], [16, 64]), [16, 16], [0, 16]), 0)
        pl.store(t1, [0, 0], y3)
        t2 = pl.sub(pl.slice(pl.load(x0, [24, 0], [16, 64]), [8, 64], [m % 9, 0]), pl.load(x1, [0, 0], [8, 64]))
        pl.store(t2, [0, 0], y0)
    """,
    "a window with gaps is reshaped": """
        t1 = pl.reshape(pl.slice(pl.load(x0, [24, 0], [16, 64]), [8, 16], [m % 9, 0]), [16, 8])
        pl.store(t1, [0, 0], y0)
    """,
    "a window with gaps is overwritten in part": """
        t1 = pl.load(x0, [0, 0], [16, 64])
        t2 = pl.slice(t1, [16, 32], [0, 32])
        t3 = pl.tile.assemble(t2, pl.load(x0, [32, 0], [8, 16]), [8, 0])
        pl.store(t2, [0, 0], y0)
        pl.store(t3, [0, 32], y0)
        pl.store(t1, [16, 0], y0)
    """,
    "a window carried by a pipelined loop": """
        t1 = pl.slice(pl.load(x0, [0, 0], [16, 64]), [8, 32], [w % 8, 0])
        t2 = pl.load(x0, [0, 0], [16, 64])
        for i in pl.pipeline(3, stage=2):
            t3 = pl.col_expand_sub(t1, pl.tile.full([1, 32], dtype=pl.FP32, value=2.0))
            pl.store(pl.reshape(t1, [16, 16]), [0, 0], y1)
            t1 = pl.slice(t2, [8, 32], [i, 0])
            pl.store(t3, [i * 8, 0], y0)
    """,
    "an empty loop in a pipelined one": """
        for i in pl.pipeline(3, stage=2):
            for j in pl.range(1, n):
                continue
    """,
    **{
        f"{swap} in {loop}": f"{_TWO}{loop}\n    {swap}{_STORE}"
        for loop in ("for i in pl.range(3):", "if n > 1:", "for i in pl.unroll(3):")
        for swap in ("t1, t2 = t2, t1", "t1, t2 = pl.add(t2, 1.0), pl.mul(t1, 2.0)")
    },
}


@pytest.mark.parametrize("name", RIGHT)
def test_kernels_that_are_right_now(name: str):
    outcome = check_vector_kernel(HEAD + textwrap.indent(textwrap.dedent(RIGHT[name]), "    "))
    assert outcome.kind == "ok", outcome.detail


REFUSED = {
    "1099511627776 does not fit int32": "t1 = pl.load(x3, [0, 0], [8, 64])\nif p > 1099511627776:\n"
    "    t1 = pl.add(t1, 1)\npl.store(t1, [0, 0], y3)",
    "2147483648 does not fit int32": "pl.store(pl.add(pl.load(x3, [0, 0], [8, 64]), 2147483648), [0, 0], y3)",
    "no native cast path from fp32 to bool": "t1 = pl.cast(pl.load(x0, [0, 0], [8, 64]), pl.BOOL)",
    "'y0' is another tensor after each iteration": "for i in pl.range(3):\n    y0, y1 = y1, y0\n"
    "    y0 = pl.store(pl.load(x0, [0, 0], [8, 64]), [i * 8, 0], y0)",
    "'o' is a different tensor in each branch": "if n > 1:\n    o = y0\nelse:\n    o = y1\n"
    "o = pl.store(pl.load(x0, [0, 0], [8, 64]), [0, 0], o)",
    "tile.reshape cannot take slice 't1'": "t1 = pl.tile.slice(pl.load(x0, [0, 0], [16, 64]), [16, 32], [0, 32], "
    "valid_shape=[16, 32])\npl.store(pl.reshape(t1, [8, 64]), [0, 0], y0)",
    "tile.assemble cannot take slice 't1'": "t1 = pl.tile.slice(pl.load(x0, [0, 0], [16, 64]), [16, 32], [0, 32], "
    "valid_shape=[16, 32])\nt1 = pl.tile.assemble(t1, pl.load(x0, [32, 0], [8, 16]), [0, 0])\npl.store(t1, [0, 0], y0)",
}


@pytest.mark.parametrize("message", REFUSED)
def test_kernels_that_are_refused_now(message: str):
    outcome = check_vector_kernel(HEAD + textwrap.indent(REFUSED[message], "    ") + "\n")
    assert outcome.kind == "refused" and message in outcome.detail, outcome.detail
    assert "^" in outcome.detail


def test_a_tile_name_used_in_two_regions_is_no_result_of_them():
    body = """
    for b in pl.spmd(4):
        t = pl.load(x, [b * 8, 0], [8, 64])
        y = pl.store(pl.add(t, 1.0), [b * 8, 0], y)
    for i in pl.range(n):
        for b in pl.spmd(4):
            t = pl.load(x, [b * 8, 0], [8, 64])
            y = pl.store(pl.add(t, 2.0), [b * 8, 0], y)
    return y
    """
    head = f"@pl.function\ndef k(x: {TENSOR}, n: pl.Scalar[pl.INDEX], y: pl.InOut[{TENSOR}]) -> {TENSOR}:"
    outcome = check_program(head + body)
    assert outcome.kind == "ok", outcome.detail


@pytest.mark.parametrize("message", [m for m in REFUSED if "cannot take slice 't1'" in m])
@pytest.mark.parametrize("target", ["Ascend910B", "Ascend950"])
def test_the_form_a_refused_slice_is_given_works(message: str, target: str):
    body = REFUSED[message].replace("[16, 32])\n", "[16, 32])\nt1 = pl.move(t1, target_memory=pl.Mem.Vec)\n", 1)
    outcome = check_vector_kernel(HEAD + textwrap.indent(body, "    ") + "\n", target)
    assert outcome.kind == "ok", outcome.detail
