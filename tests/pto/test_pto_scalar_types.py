"""The types of scalars in loops, branches and casts: what the assembler refuses is refused."""

import pytest

from pypto.pto import PtoError, parse_module, verify_module

LOOP = "%x = scf.for %k = %n to %n step %n iter_args(%a = {init}) -> ({type}) {{\nscf.yield {end}\n}}"
BRANCH = "%x = scf.if %b -> ({type}) {{\nscf.yield {one}\n}} else {{\nscf.yield {other}\n}}"
WHILE = (
    "%x = scf.while (%a = {init}) : ({type}) -> ({result}) {{\nscf.condition(%b) {passed}\n}} do {{\n"
    "^bb0(%c: {begin}):\nscf.yield {end}\n}}"
)


def check(body):
    arguments = "%p: !pto.ptr<f32>, %n: index, %i: i32, %l: i64, %f: f32, %h: f16, %b: i1"
    head = f"func.func @k({arguments}) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}}"
    verify_module(parse_module(f"module {{\n  {head} {{\n{body}\n    return\n  }}\n}}\n"))


@pytest.mark.parametrize(
    "body",
    [
        "%x = arith.extsi %i : i32 to i64",
        "%x = arith.index_cast %n : index to i64",
        "%x = arith.extf %h : f16 to f32",
        "%x = arith.truncf %f : f32 to f16",
        "%x = arith.constant 3.0 : f32",
        "%x = arith.constant dense<0> : vector<4xi16>",
        BRANCH.format(type="index", one="%n : index", other="%n : index"),
        "scf.if %b {\n}",
        LOOP.format(type="i64", init="%l", end="%a : i64"),
        WHILE.format(type="index", init="%n", result="index", passed="%a : index", begin="index", end="%c : index"),
    ],
)
def test_scalars_of_one_type_are_accepted(body):
    check(body)


@pytest.mark.parametrize(
    "body",
    [
        "%x = arith.extsi %n : index to i64",
        "%x = arith.extui %n : index to i64",
        "%x = arith.trunci %n : index to i32",
        "%x = arith.extsi %i : i32 to index",
        "%x = arith.extsi %l : i64 to i32",
        "%x = arith.sitofp %n : index to f32",
        "%x = arith.fptosi %f : f32 to index",
        "%x = arith.index_cast %i : i32 to i64",
        "%x = arith.extf %f : f32 to f16",
        "%x = arith.truncf %h : f16 to f32",
        "%x = arith.addi %n, %l : i64",
        "%x = arith.addf %i, %i : i32",
        "%x = arith.select %n, %n, %n : index",
        "%x = arith.cmpi slt, %n, %l : index",
        BRANCH.format(type="index", one="%l : i64", other="%n : index"),
        BRANCH.format(type="i64", one="%l : i64", other="%n : index"),
        BRANCH.format(type="i64", one="%n : index", other="%n : index"),
        BRANCH.format(type="i64", one="%l, %l : i64, i64", other="%l : i64"),
        "%x = scf.if %b -> (i64) {\nscf.yield %l : i64\n}",
        LOOP.format(type="index", init="%l", end="%a : index"),
        LOOP.format(type="index", init="%n", end="%l : i64"),
        WHILE.format(type="index", init="%n", result="index", passed="%l : i64", begin="index", end="%c : index"),
        WHILE.format(type="index", init="%n", result="index", passed="%a : index", begin="index", end="%l : i64"),
        WHILE.format(type="index", init="%n", result="i64", passed="%a : index", begin="i64", end="%n : index"),
        WHILE.format(type="index", init="%n", result="index", passed="%a : index", begin="i64", end="%n : index"),
    ],
)
def test_scalars_of_another_type_than_theirs_are_refused(body):
    with pytest.raises(PtoError) as error:
        check(body)
    assert error.value.loc is not None


@pytest.mark.parametrize("rows, fits", [("%one", True), ("%none", False), ("%n", True)])
def test_a_window_has_no_constant_extent_of_0(rows, fits):
    stated = "1" if rows == "%one" else "0" if rows == "%none" else "?"
    kinds = f"!pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<{stated}x1xf32>"
    body = f"""
%one = arith.constant 1 : index
%none = arith.constant 0 : index
%v = pto.make_tensor_view %p, shape = [%n, %one], strides = [%one, %one] : !pto.tensor_view<?x?xf32>
%w = pto.partition_view %v, offsets = [%none, %none], sizes = [{rows}, %one] : {kinds}"""
    if fits:
        check(body)
    else:
        with pytest.raises(PtoError, match="size 0 on axis 0"):
            check(body)
