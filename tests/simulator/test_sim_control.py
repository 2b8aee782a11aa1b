"""Loops, branches, scalars, single elements, calls and block indices."""

from __future__ import annotations

import numpy as np
import pytest
from pto_text import Kernel, equal, tile_type

from pypto import simulator
from pypto.pto import PtoError

F32 = np.float32


def function(body: str, params: str = "%p: !pto.ptr<i32>") -> simulator.SimKernel:
    text = f"""module attributes {{pto.target_arch = "a2a3"}} {{
  func.func @f({params}) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
{body}
    return
  }}
}}"""
    return simulator.load(text).kernels["f"]


def test_loop_carries_two_values_at_once():
    kernel = function("""
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 10 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero, %y = %one) -> (i32, i32) {
      %s = arith.addi %x, %y : i32
      scf.yield %y, %s : i32, i32
    }
    pto.store_scalar %a, %p[%c0] : !pto.ptr<i32>, i32
    pto.store_scalar %b, %p[%c1] : !pto.ptr<i32>, i32""")
    out = np.zeros(2, np.int32)
    kernel.run([out])
    assert out.tolist() == [55, 89]


def test_branch_with_results_and_while():
    kernel = function(
        """
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %zero = arith.constant 0 : i32
    %n, %steps = scf.while (%x = %arg, %k = %zero) : (i32, i32) -> (i32, i32) {
      %more = arith.cmpi ne, %x, %one : i32
      scf.condition(%more) %x, %k : i32, i32
    } do {
    ^bb0(%x: i32, %k: i32):
      %odd = arith.remsi %x, %two : i32
      %is = arith.cmpi eq, %odd, %one : i32
      %next = scf.if %is -> (i32) {
        %t = arith.muli %x, %three : i32
        %u = arith.addi %t, %one : i32
        scf.yield %u : i32
      } else {
        %h = arith.divsi %x, %two : i32
        scf.yield %h : i32
      }
      %l = arith.addi %k, %one : i32
      scf.yield %next, %l : i32, i32
    }
    pto.store_scalar %steps, %p[%c0] : !pto.ptr<i32>, i32""",
        "%p: !pto.ptr<i32>, %arg: i32",
    )
    out = np.zeros(1, np.int32)
    kernel.run([out, 27])
    assert out[0] == 111


@pytest.mark.parametrize(
    ("op", "a", "b", "want"),
    [
        ("addi", 2**31 - 1, 1, -(2**31)),
        ("muli", 65536, 65536, 0),
        ("divsi", -7, 2, -3),
        ("floordivsi", -7, 2, -4),
        ("ceildivsi", -7, 2, -3),
        ("remsi", -7, 2, -1),
        ("divui", -1, 2, 2**31 - 1),
        ("minsi", -7, 2, -7),
        ("maxui", -7, 2, -7),
        ("andi", 12, 10, 8),
        ("xori", 12, 10, 6),
        ("shli", 1, 31, -(2**31)),
        ("shrsi", -8, 1, -4),
        ("shrui", -8, 1, 2**31 - 4),
    ],
)
def test_integer_scalars(op, a, b, want):
    kernel = function(
        f"""
    %c0 = arith.constant 0 : index
    %r = arith.{op} %a, %b : i32
    pto.store_scalar %r, %p[%c0] : !pto.ptr<i32>, i32""",
        "%p: !pto.ptr<i32>, %a: i32, %b: i32",
    )
    out = np.zeros(1, np.int32)
    kernel.run([out, a, b])
    assert out[0] == want


def test_float_scalars_round_to_their_type():
    kernel = function(
        """
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %third = arith.constant 3.0 : f32
    %q = arith.divf %x, %third : f32
    %h = arith.truncf %q : f32 to f16
    %w = arith.extf %h : f16 to f32
    %m = arith.maximumf %q, %w : f32
    %n = arith.index_cast %c2 : index to i32
    %f = arith.sitofp %n : i32 to f32
    %lt = arith.cmpf olt, %q, %f : f32
    %s = arith.select %lt, %m, %f : f32
    pto.store_scalar %q, %p[%c0] : !pto.ptr<f32>, f32
    pto.store_scalar %w, %p[%c1] : !pto.ptr<f32>, f32
    pto.store_scalar %s, %p[%c2] : !pto.ptr<f32>, f32""",
        "%p: !pto.ptr<f32>, %x: f32",
    )
    out = np.zeros(3, F32)
    kernel.run([out, 2.0])
    third = F32(2) / F32(3)
    assert out.tolist() == [third, F32(np.float16(third)), max(third, F32(np.float16(third)))]


def test_division_by_zero_names_its_line():
    kernel = function(
        """
    %r = arith.divsi %a, %a : i32 loc("k.py":3:7)""",
        "%a: i32",
    )
    with pytest.raises(PtoError, match="integer division by zero") as error:
        kernel.run([0])
    assert str(error.value.loc) == "k.py:3:7"


def test_scalars_in_memory_and_pointers():
    kernel = function(
        """
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %q = pto.addptr %p, %c3 : !pto.ptr<i32> -> !pto.ptr<i32>
    %v = pto.load_scalar %q[%c0] : !pto.ptr<i32> -> i32
    pto.store_scalar %v, %p[%i] : !pto.ptr<i32>, i32""",
        "%p: !pto.ptr<i32>, %i: index",
    )
    data = np.array([1, 2, 3, 40, 5], np.int32)
    kernel.run([data, 4])
    assert data.tolist() == [1, 2, 3, 40, 40]
    with pytest.raises(PtoError, match="element 5 is outside argument 0 of f, which has 5"):
        kernel.run([data, 5])


def test_single_elements_of_a_tile():
    kernel = Kernel()
    a, o = kernel.tensor(4, 16, "f32"), kernel.tensor(4, 16, "f32")
    t = kernel.tile(tile_type(4, 16, "f32"))
    kernel.load(a, t)
    kernel.emit(f"%v = pto.tgetval ins({t}, {kernel.const(17)} : {kernel.types[t]}, index) outs : f32")
    kernel.emit(f"pto.tsetval ins({kernel.const(63)}, %v : index, f32) outs({t} : {kernel.types[t]})")
    kernel.store(t, o)
    x, out = np.arange(64, dtype=F32).reshape(4, 16), np.zeros((4, 16), F32)
    kernel.run(x, out)
    want = x.copy()
    want[3, 15] = 17
    equal(out, want)


def test_block_indices_and_valid_shape():
    tile = tile_type(8, 16, "f32", valid=("?", "?"))
    kernel = function(f"""
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c5 = arith.constant 5 : index
    %zero = arith.constant 0 : i64
    %t = pto.alloc_tile addr = %zero valid_row = %c1 valid_col = %c5 : {tile}
    pto.set_validshape %t, %c3, %c2 : {tile}
    %r, %c = pto.get_validshape %t : {tile}
    %ri = arith.index_cast %r : index to i32
    %ci = arith.index_cast %c : index to i32
    %b = pto.get_block_idx
    %n = pto.get_block_num
    %bi = arith.trunci %b : i64 to i32
    %ni = arith.trunci %n : i64 to i32
    pto.store_scalar %ri, %p[%c0] : !pto.ptr<i32>, i32
    pto.store_scalar %ci, %p[%c1] : !pto.ptr<i32>, i32
    pto.store_scalar %bi, %p[%c2] : !pto.ptr<i32>, i32
    pto.store_scalar %ni, %p[%c3] : !pto.ptr<i32>, i32""")
    out = np.zeros(4, np.int32)
    kernel.run([out], block_idx=6, block_num=24)
    assert out.tolist() == [3, 2, 6, 24]


def test_loop_over_row_blocks_with_a_ragged_last_one():
    kernel = Kernel()
    a, o = kernel.tensor(50, 32, "f32"), kernel.tensor(50, 32, "f32")
    c = kernel.const
    kernel.lines.append(f"scf.for %i = {c(0)} to {c(50)} step {c(16)} {{")
    kernel.emit(f"%left = arith.subi {c(50)}, %i : index")
    kernel.emit(f"%rows = arith.minsi %left, {c(16)} : index")
    t = kernel.tile(tile_type(16, 32, "f32", valid=("?", 32)), row="%rows")
    kernel.load(a, t, ("%i", 0, "%rows", 32))
    kernel.op("texp", [t], [t])
    kernel.store(t, o, ("%i", 0, "%rows", 32))
    kernel.lines.append("}")
    x, out = np.random.default_rng(0).normal(size=(50, 32)).astype(F32), np.zeros((50, 32), F32)
    report = kernel.run(x, out)
    np.testing.assert_allclose(out, np.exp(x.astype(np.float64)), rtol=1e-6)
    assert report.instructions == {"tload": 4, "texp": 4, "tstore": 4} and report.total_instructions == 12
    assert report.high_water == {"vec": 2048} and set(report.cycles) == {"MTE2", "V", "MTE3"}


def test_disagreeing_valid_extents_are_found_when_run():
    kernel = Kernel()
    rows = kernel.param("index")
    a = kernel.tile(tile_type(16, 32, "f32", valid=("?", 32)), row=rows)
    b = kernel.tile(tile_type(16, 32, "f32"))
    kernel.op("texpands", [f"{kernel.param('f32')}:f32"], [a])
    kernel.op("tneg", [a], [b])
    kernel.run(16, 1.0)
    with pytest.raises(PtoError, match="'src' has 7x32 valid elements but 'dst' 16x32") as error:
        kernel.run(7, 1.0)
    assert error.value.loc is not None and error.value.loc.begin_line == 4


def test_a_function_calls_another():
    text = """module attributes {pto.target_arch = "a2a3"} {
  func.func @twice(%x: i32) -> i32 {
    %y = arith.addi %x, %x : i32
    return %y : i32
  }
  func.func @main(%p: !pto.ptr<i32>, %x: i32) attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
    %c0 = arith.constant 0 : index
    %y = func.call @twice(%x) : (i32) -> i32
    %z = func.call @twice(%y) : (i32) -> i32
    pto.store_scalar %z, %p[%c0] : !pto.ptr<i32>, i32
    return
  }
}"""
    out = np.zeros(1, np.int32)
    simulator.load(text).kernels["main"].run([out, 5])
    assert out[0] == 20


def test_unknown_targets_and_wrong_modules():
    with pytest.raises(PtoError, match="module for a2a3 loaded for Ascend950"):
        simulator.load(Kernel().text(), target="a5")
    with pytest.raises(ValueError, match="unknown target"):
        simulator.load(Kernel().text(), target="tpu")
    assert simulator.load(Kernel().text(), target="910C").target.name == "Ascend910B"


def test_local_arrays():
    kernel = function(
        """
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 4 : index
    %seven = arith.constant 7 : i32
    %a = pto.declare_local_array -> !pto.local_array<4x2xi32>
    scf.for %i = %c0 to %n step %c1 {
      %v = arith.index_cast %i : index to i32
      %w = arith.muli %v, %seven : i32
      pto.local_array_set %a[%i, %c1], %w : !pto.local_array<4x2xi32>, i32
    }
    %r = pto.local_array_get %a[%j, %c1] : !pto.local_array<4x2xi32> -> i32 loc("k.py":8:1)
    pto.store_scalar %r, %p[%c0] : !pto.ptr<i32>, i32""",
        "%p: !pto.ptr<i32>, %j: index",
    )
    out = np.zeros(1, np.int32)
    kernel.run([out, 3])
    assert out[0] == 21
    with pytest.raises(PtoError, match=r"element \[4, 1\] is outside an array of \[4, 2\]") as error:
        kernel.run([out, 4])
    assert str(error.value.loc) == "k.py:8:1"


def test_elements_of_a_column_tile():
    kernel = Kernel()
    a, o = kernel.tensor(8, 1, "f32", "dn"), kernel.tensor(8, 1, "f32", "dn")
    t = kernel.tile(tile_type(8, 1, "f32", layout="blayout=col_major, slayout=none_box, fractal=512"))
    kernel.load(a, t)
    kernel.emit(f"%v = pto.tgetval ins({t}, {kernel.const(5)} : {kernel.types[t]}, index) outs : f32")
    kernel.emit(f"pto.tsetval ins({kernel.const(0)}, %v : index, f32) outs({t} : {kernel.types[t]})")
    kernel.store(t, o)
    x, out = np.arange(8, dtype=F32).reshape(8, 1), np.zeros((8, 1), F32)
    kernel.run(x, out)
    assert out.ravel().tolist() == [5, 1, 2, 3, 4, 5, 6, 7]
