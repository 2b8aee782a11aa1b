"""PTOAS's messages, moved to the lines the user wrote."""

from __future__ import annotations

import pytest

from pypto.errors import DiagnosticSeverity
from pypto.toolchain.messages import diagnose

MODULE = """module {
  %t = pto.alloc_tile : !pto.tile_buf<vec, 8x8xf32> loc("user.py":7:9)
  pto.tadd ins(%t, %t : a, b) outs(%t : c) loc("a \\22odd\\22 dir/user.py":8:5)
  %c0 = arith.constant 0 : index
}
"""


def places(output):
    return [(d.message, d.location) for d in diagnose(output, MODULE, "/out/k.pto")]


@pytest.mark.parametrize(
    "loc, place",
    [
        ('"user.py":7:9', ("user.py", 7, 9)),
        ('fused["user.py":7:9, "other.py":1:1]', ("user.py", 7, 9)),
        ('callsite("user.py":7:9 at "caller.py":3:1)', ("user.py", 7, 9)),
        ('"name"("user.py":7:9)', ("user.py", 7, 9)),
        (r'"C:\\dir\\user.py":7:9', (r"C:\dir\user.py", 7, 9)),
    ],
)
def test_loc_forms(loc, place):
    ((message, location),) = places(f"loc({loc}): error: 'pto.tadd' op (bad): 1:2")
    assert message == "PTOAS: 'pto.tadd' op (bad): 1:2"
    assert tuple(location)[:3] == place


def test_unknown_location_keeps_the_message():
    assert places("loc(unknown): error: broken") == [("PTOAS: broken", None)]
    assert places("ptoas: error: cannot open file") == [("PTOAS: cannot open file", None)]


def test_position_in_the_module_becomes_the_python_line():
    (found,) = diagnose("/tmp/x/k.pto:3:3: error: mismatch", MODULE, "/out/k.pto")
    assert tuple(found.location)[:3] == ('a "odd" dir/user.py', 8, 5)
    assert found.notes == ("in /out/k.pto:3: pto.tadd ins(%t, %t : a, b) outs(%t : c)",)


@pytest.mark.parametrize("line", [4, 1])
def test_line_without_loc_stays_in_the_module(line):
    ((_, location),) = places(f"k.pto:{line}:3: error: e")
    assert tuple(location)[:3] == ("/out/k.pto", line, 3)


def test_position_beyond_the_module_or_in_another_file_is_kept():
    assert tuple(places("k.pto:99:1: error: e")[0][1])[:3] == ("k.pto", 99, 1)
    assert tuple(places("lib.td:2:4: error: e")[0][1])[:3] == ("lib.td", 2, 4)


def test_notes_join_their_error_and_long_ones_are_cut():
    output = "\n".join(
        [
            "k.pto:2:3: note: before any error",
            "k.pto:2:3: error: first",
            "   %t = pto.alloc_tile",
            "   ^",
            'loc("user.py":1:2): note: ' + "x" * 500,
            "k.pto:3:3: warning: second",
        ]
    )
    first, second = diagnose(output, MODULE, "/out/k.pto")
    assert len(first.notes) == 2 and first.notes[1].endswith("... (user.py:1:2)") and len(first.notes[1]) < 300
    assert (second.message, second.severity) == ("PTOAS: second", DiagnosticSeverity.Warning)


def test_other_output_is_no_message():
    assert places("compiling...\nwarnings: 0\nsee note: x\n") == []
