"""PTO text to modules and back: types in both forms, attributes in both spellings, locations, errors."""

from __future__ import annotations

import pytest
from pto_text import NZ, Kernel, tile_type
from xdsl.dialects.builtin import FileLineColLoc

from pypto.pto import INSTRUCTIONS, PtoError, parse_module
from pypto.pto.attrs import ENUMS
from pypto.pto.dialect import OPERATIONS
from pypto.pto.parser import location_of
from pypto.pto.types import TileBufType, parse_tile, parse_view


def function(*lines: str, params: str = "") -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return f"module {{\n  func.func @f({params}) {{\n{body}\n    return\n  }}\n}}\n"


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("vec, 8x16xf32", "loc=vec, dtype=f32, rows=8, cols=16, v_row=8, v_col=16, blayout=row_major"),
        ("vec, 8x16xbf16, valid=?x3", "loc=vec, dtype=bf16, rows=8, cols=16, v_row=?, v_col=3, slayout=none_box"),
        (
            "acc, 16x16xi32, blayout=col_major, slayout=row_major, fractal=1024",
            "loc=acc, dtype=i32, rows=16, cols=16, blayout=col_major, slayout=row_major, fractal=1024, pad=0",
        ),
        ("vec, 1x8xui32, pad=zero", "loc=vec, dtype=ui32, rows=1, cols=8, fractal=512, pad=1"),
        ("mat, 4x4x!pto.f8E8M0", "loc=mat, dtype=!pto.f8E8M0, rows=4, cols=4"),
    ],
)
def test_tile_types_read_in_both_forms(short, long):
    assert parse_tile(short) == parse_tile(long)
    assert parse_tile(parse_tile(short).text) == parse_tile(short)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("loc=ub, dtype=f32, rows=8, cols=8", "loc must be one of vec, mat"),
        ("loc=vec, dtype=f33, rows=8, cols=8", "'f33' is not an element type"),
        ("loc=vec, dtype=f32, rows=8", "tile_buf has no cols"),
        ("loc=vec, dtype=f32, rows=0, cols=8", "rows and cols must be positive"),
        ("loc=vec, dtype=f32, rows=8, cols=8, size=3", "tile_buf has no field 'size'"),
        ("loc=vec, dtype=f32, rows=8, rows=8, cols=8", "'rows' is given twice"),
        ("loc=vec, dtype=f32, rows=8, cols=8, pad=7", "pad must be 0..3"),
        ("loc=vec, dtype=f32, rows=-8, cols=8", "rows must be a number or '\\?'"),
        ("vec, 8x?xf32", "two static extents"),
    ],
)
def test_bad_tile_types(body, message):
    with pytest.raises(ValueError, match=message):
        parse_tile(body)


def test_views():
    assert parse_view("?x64xf32").shape == (None, 64) and parse_view("1x2x3xui8").dtype == "ui8"
    with pytest.raises(ValueError, match="not an element type"):
        parse_view("4x4xfoo")


def test_equal_type_text_gives_one_object():
    kernel = Kernel()
    kernel.tile(tile_type(8, 16, "f32"))
    kernel.tile(tile_type(8, 16, "f32"))
    allocated = [op for op in parse_module(kernel.text()).walk() if op.name == "pto.alloc_tile"]
    first, second = (op.results[0].type for op in allocated)
    assert isinstance(first, TileBufType) and first is second


def everything() -> Kernel:
    kernel = Kernel()
    a, o = kernel.tensor(8, 16, "f32"), kernel.tensor(8, 1, "f32", "dn")
    t, u = (kernel.tile(tile_type(8, 16, "f32")) for _ in range(2))
    column = kernel.tile(tile_type(8, 1, "f32", layout="blayout=col_major, slayout=none_box, fractal=512"))
    half = kernel.tile(tile_type(8, 16, "f16", valid=("?", "?")), row=kernel.const(3), col=kernel.const(4))
    kernel.load(a, t)
    kernel.op("tadds", [t, f"{kernel.param('f32')}:f32"], [u])
    kernel.op("trowsum", [t, u], [column])
    kernel.op("tcvt", [t], [half], "rmode = #pto<round_mode FLOOR>, satmode = #pto.saturation_mode<ON>")
    kernel.emit(f"pto.set_validshape {half}, {kernel.const(1)}, {kernel.const(2)} : {kernel.types[half]}")
    kernel.emit(f"%r, %c = pto.get_validshape {half} : {kernel.types[half]}")
    kernel.emit(
        f"%s = pto.subview {t}[{kernel.const(0)}, {kernel.const(8)}] sizes [8, 8] : "
        f"{kernel.types[t]} -> {tile_type(8, 8, 'f32')}"
    )
    kernel.emit(f"%v = pto.tgetval ins({t}, %c : {kernel.types[t]}, index) outs : f32")
    kernel.emit(f"pto.tsetval ins(%r, %v : index, f32) outs({t} : {kernel.types[t]})")
    kernel.emit("%i = pto.get_block_idx")
    kernel.store(column, o)
    return kernel


def test_printing_and_reading_back_is_stable():
    printed = str(parse_module(everything().text()))
    assert str(parse_module(printed)) == printed


def test_operations_know_the_authors_line_or_their_own():
    text = everything().text()
    module = parse_module(text, "kernel.pto")
    for op in module.walk():
        location = location_of(op)
        assert location is not None
        if op.name.startswith("pto."):
            assert location.filename == "k.py" and location.begin_column == 5
        elif op.name == "arith.constant":
            assert location.filename == "kernel.pto"
            assert "arith.constant" in text.splitlines()[location.begin_line - 1]
    loops = function(
        "%c = arith.constant 1 : index",
        'scf.for %i = %c to %c step %c { scf.yield } loc("k.py":9:2)',
        '%d = arith.addi %c, %c : index loc("k.py":10:3)',
    )
    found = {op.name: op.location for op in parse_module(loops).walk()}
    assert isinstance(found["scf.for"], FileLineColLoc) and found["scf.for"].line.data == 9
    assert isinstance(found["arith.addi"], FileLineColLoc) and found["arith.addi"].line.data == 10


def test_line_breaks_and_missing_spaces_are_free():
    tile = tile_type(8, 16, "f32")
    text = function(
        f"%a=pto.alloc_tile:{tile}",
        f"pto.tadd ins(%a,%a\n :{tile},\n   {tile})\n      outs(%a:{tile})",
    )
    assert [op.name for op in parse_module(text).walk()][2:4] == ["pto.alloc_tile", "pto.tadd"]


@pytest.mark.parametrize(
    ("line", "message", "column"),
    [
        ("pto.tfoo ins(%a : T) outs(%a : T)", "'pto.tfoo' is not an operation of PTO kernels", 5),
        ("pto.tadd ins(%a : T) outs(%a : T)", r"operands do not fit pto.tadd ins\(src0, src1\) outs\(dst\)", 14),
        ("pto.tadd ins(%a, %b : T, T) outs(%a : T)", "%b is used before it is defined", 22),
        ("pto.tadd ins(%a, %a : T) outs(%a : T)", "2 operands but 1 types", 18),
        ("pto.tadd ins(%a, %a : T, T)", r"expected: pto.tadd ins\(src0, src1\) outs\(dst\)", 14),
        ("pto.tadd ins(%a, %a : T, U) outs(%a : T)", "operand is used with type", 22),
        ("pto.tcvt ins(%a : T) outs(%a : T) {mode = 1 : i32}", "pto.tcvt has no attribute 'mode'", 14),
        (
            "pto.tcvt ins(%a : T) outs(%a : T) {rmode = #pto<round_mode UP>}",
            "#pto.round_mode must be one of NONE",
            None,
        ),
        ("pto.tcvt ins(%a : T) outs(%a : T) {rmode = #pto<cmp eq>}", "'rmode' must be #pto.round_mode<..>", 14),
        ("pto.alloc_tile valid_row = %i : T", "takes no valid_row operand", None),
        ("%x = pto.alloc_tile : V", "v_row=\\? needs valid_row operand|needs valid_row", None),
    ],
)
def test_parse_errors_name_line_and_column(line, message, column):
    t, u, v = tile_type(8, 16, "f32"), tile_type(8, 16, "f16"), tile_type(8, 16, "f32", valid=("?", 16))
    text = function(
        "%i = arith.constant 1 : index",
        f"%a = pto.alloc_tile : {t}",
        line.replace(": T", f": {t}").replace(", T", f", {t}").replace(", U", f", {u}").replace(": V", f": {v}"),
    )
    with pytest.raises(PtoError, match=message) as error:
        parse_module(text, "bad.pto")
    loc = error.value.loc
    assert loc is not None and (loc.filename, loc.begin_line) == ("bad.pto", 5)
    assert column is None or loc.begin_column == column


def test_errors_show_the_line_of_the_text():
    with pytest.raises(PtoError) as error:
        parse_module("module {\n  func.func @f() {\n    pto.oops\n    return\n  }\n}\n")
    assert "pto.oops" in str(error.value) and "^" in str(error.value)


def test_every_instruction_has_an_operation_and_says_how_it_is_written():
    assert set(OPERATIONS) == set(INSTRUCTIONS) and len(INSTRUCTIONS) > 100
    for name, spec in INSTRUCTIONS.items():
        assert spec.usage().startswith(f"pto.{name} ins(")
        assert spec.outs or name == "tprint"
        assert all(attr.kind in {*ENUMS, "bool", "int", "str"} for attr in spec.attrs.values())


def test_optional_operands_are_told_apart_by_kind():
    spec = INSTRUCTIONS["tsels"]
    assert [o.name for o in spec.assign(("tile", "tile", "scalar"), ("tile",)) or ()] == [
        "mask",
        "src",
        "scalar",
        "dst",
    ]
    four = spec.assign(("tile", "tile", "tile", "scalar"), ("tile",))
    assert [o.name for o in four or ()] == ["mask", "src", "tmp", "scalar", "dst"]
    assert spec.assign(("tile", "scalar"), ("tile",)) is None


def test_synchronization_reads_and_prints():
    lines = (
        "pto.barrier <PIPE_ALL>",
        "pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]",
        "pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]",
        "pto.fence.barrier_all #pto.fence_scope<gm>",
        "pto.cmo.cacheinvalid all #pto.address_space<gm>",
    )
    text = function(*lines)
    printed = str(parse_module(text))
    for line in lines:
        assert line in printed.replace(" [", "[")
    assert str(parse_module(printed)) == printed
    with pytest.raises(PtoError, match="expected one of PIPE_S, "):
        parse_module(text.replace("PIPE_ALL", "PIPE_X"))


def test_quantization_words_have_a_type_beside_them():
    acc = "!pto.tile_buf<loc=acc, dtype=f32, rows=16, cols=32, v_row=16, v_col=32, blayout=col_major, " \
        "slayout=row_major, fractal=1024, pad=0>"  # fmt: skip
    mat, fp = tile_type(16, 32, "i8", loc="mat", layout=NZ), tile_type(1, 32, "ui64", loc="scaling")
    lines = {
        "tmov": f"pto.tmov ins(%a : {acc}, %w : {fp}) outs(%d : {mat})",
        "textract": f"pto.textract ins(%a, %c, %c : {acc}, index, index fp %w : {fp}) outs(%d : {mat})",
        "tinsert": f"pto.tinsert ins(%a, %c, %c : {acc}, index, index fp %w : {fp}) outs(%d : {mat})",
    }
    head = ["%c = arith.constant 0 : index", *(f"%{n} = pto.alloc_tile : {t}" for n, t in zip("awd", (acc, fp, mat)))]
    for name, line in lines.items():
        module = parse_module(function(*head, line))
        (op,) = [op for op in module.walk() if op.name == f"pto.{name}"]
        assert op.values()["fp"].name_hint == "w"
        printed = str(module)
        assert f"%w : {fp}) outs(%d : {mat})" in printed and str(parse_module(printed)) == printed
        wrong = line.replace("fp %w", ", %w") if " fp " in line else line.replace(", %w :", " fp %w :")
        with pytest.raises(PtoError, match=f"expected: pto.{name} ins"):
            parse_module(function(*head, wrong))
