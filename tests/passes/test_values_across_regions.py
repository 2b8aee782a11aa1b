"""Names assigned in loops and branches of a region and read after it, run against numpy."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import pypto.language as pl
from pypto.errors import ParserError

SHAPE = "pl.Tensor[[16, 64], pl.FP32]"
PARAMS = f"x: {SHAPE}, z: {SHAPE}, n: pl.Scalar[pl.INDEX]"
HEAD = f"import pypto.language as pl\n\n\n@pl.function\ndef k({PARAMS}) -> {SHAPE}:\n"
AT = "with pl.at(level=pl.Level.CORE_GROUP):"
TARGETS = ["Ascend910B", "Ascend950"]


def check(body: str, wanted, target: str = "Ascend910B", counts=(0, 1, 3)) -> None:
    """``wanted(x, z, n)`` is what the function returns."""
    program = pl.parse(HEAD + textwrap.indent(textwrap.dedent(body), "    "))
    compiled = pl.compile(program, target=target)
    for n in counts:
        rng = np.random.default_rng(n)
        x, z = (rng.integers(-8, 9, (16, 64)).astype(np.float32) for _ in range(2))
        np.testing.assert_array_equal(np.asarray(compiled(x, z, n)), wanted(x.copy(), z.copy(), n))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("trips", ["2", "n"])
def test_name_assigned_in_loop_of_region_is_live_after_it(target: str, trips: str):
    check(f"""
        {AT}
            y = pl.mul(z, 2.0)
            for i in pl.range({trips}):
                y = pl.add(x, -0.5)
        return y
    """, lambda x, z, n: x - 0.5 if trips == "2" or n else 2 * z, target)  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_name_assigned_on_both_arms_in_region_is_live_after_it(target: str):
    check(f"""
        {AT}
            if n > 1:
                y = pl.mul(z, 2.0)
            else:
                y = pl.add(x, -0.5)
        return y
    """, lambda x, z, n: 2 * z if n > 1 else x - 0.5, target)  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_name_assigned_on_all_arms_of_elif_in_region_is_live_after_it(target: str):
    check(f"""
        {AT}
            if n > 1:
                y = pl.mul(z, 2.0)
            elif n > 0:
                y = pl.add(x, -0.5)
            else:
                y = pl.neg(x)
        return y
    """, lambda x, z, n: 2 * z if n > 1 else x - 0.5 if n else -x, target)  # fmt: skip


CASES = {
    "while": ("""
        y = pl.mul(z, 2.0)
        i = pl.const(0, pl.INDEX)
        while i < n:
            y = pl.add(x, 1.0)
            i = i + 1
    """, lambda x, z, n: x + 1 if n else 2 * z),
    "nested loops": ("""
        y = pl.mul(z, 2.0)
        for i in pl.range(n):
            for j in pl.range(2):
                y = pl.add(x, 1.0)
    """, lambda x, z, n: x + 1 if n else 2 * z),
    "branch in a loop": ("""
        y = pl.mul(z, 2.0)
        for i in pl.range(3):
            if i == n:
                y = pl.add(x, 1.0)
    """, lambda x, z, n: x + 1 if n < 3 else 2 * z),
    "loop in a branch": ("""
        if n > 1:
            y = pl.neg(z)
            for i in pl.range(n):
                y = pl.add(x, 1.0)
        else:
            y = pl.mul(z, 2.0)
    """, lambda x, z, n: x + 1 if n > 1 else 2 * z),
    "break": ("""
        y = pl.mul(z, 2.0)
        for i in pl.range(4):
            if i == n:
                break
            y = pl.add(x, 1.0)
    """, lambda x, z, n: x + 1 if n else 2 * z),
    "continue": ("""
        y = pl.mul(z, 2.0)
        for i in pl.range(2):
            if i < n:
                continue
            y = pl.add(x, 1.0)
    """, lambda x, z, n: x + 1 if n < 2 else 2 * z),
    "two names at once": ("""
        y, w = pl.mul(z, 2.0), pl.neg(z)
        for i in pl.range(n):
            y, w = w, y
    """, lambda x, z, n: -z if n % 2 else 2 * z),
    "unrolled": ("""
        y = pl.mul(z, 2.0)
        for i in pl.unroll(2):
            if n > i:
                y = pl.add(x, 1.0)
    """, lambda x, z, n: x + 1 if n else 2 * z),
    "written in part": ("""
        y = pl.mul(z, 2.0)
        for i in pl.range(2):
            y = pl.assemble(y, pl.slice(x, [8, 64], [i * 8, 0]), [i * 8, 0])
    """, lambda x, z, n: x),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_value_is_read_after_its_region(case: str):
    body, wanted = CASES[case]
    check(AT + "\n" + textwrap.indent(textwrap.dedent(body), "    ") + "return y\n", wanted)


@pytest.mark.parametrize("case", CASES)
def test_value_is_read_in_the_next_region(case: str):
    body, wanted = CASES[case]
    lines = [AT, textwrap.indent(textwrap.dedent(body), "    "), AT, "    r = pl.add(y, z)", "return r", ""]
    check("\n".join(lines), lambda x, z, n: wanted(x, z, n) + z)


@pytest.mark.parametrize("opening", ["with pl.manual_scope():", "for r in pl.range(2):"])
def test_regions_inside_scopes_and_loops_of_the_host(opening: str):
    check(f"""
        {AT}
            y = pl.neg(z)
        {opening}
            {AT}
                y = pl.mul(z, 2.0)
                if n > 0:
                    y = pl.add(x, 1.0)
        return y
    """, lambda x, z, n: x + 1 if n else 2 * z)  # fmt: skip


def test_scalar_assigned_in_region_is_live_after_it():
    check(f"""
        {AT}
            y = pl.mul(z, 2.0)
            s = n * 2 + 1
        {AT}
            if s > 3:
                y = pl.add(x, 1.0)
        return y
    """, lambda x, z, n: x + 1 if n > 1 else 2 * z)  # fmt: skip


def test_name_of_one_arm_is_refused_where_it_is_read_after_the_region():
    with pytest.raises(ParserError, match="'y'") as caught:
        check(f"""
            {AT}
                w = pl.neg(x)
                if n > 1:
                    y = pl.mul(z, 2.0)
            return y
        """, None)  # fmt: skip
    assert "return y" in str(caught.value)


def test_scalar_that_only_the_loop_of_a_region_knows_is_refused():
    with pytest.raises(ValueError, match="'s' is computed in the region and read after it"):
        check(f"""
            s = n
            {AT}
                for i in pl.range(n):
                    w = pl.mul(x, 2.0)
                    s = i + 1
            {AT}
                y = pl.mul(z, pl.cast(s, pl.FP32))
            return y
        """, None)  # fmt: skip
