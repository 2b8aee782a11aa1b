"""Numeric cases of operators that transfer, allocate, window, reshape, pad and address."""

from __future__ import annotations

from typing import Any

import numpy as np
from elementwise_cases import ADD
from operator_harness import COLS, ROWS, Case, Script, Vector, fixed, instruction_dtypes
from operator_values import NUMPY, Array, small
from references import combined, doubled, padded, reshaped, same, same_bytes

from pypto.dtypes import DataType

D = DataType
ALL = fixed(*NUMPY)
USUAL = fixed(D.INT16, D.INT32, D.FP16, D.FP32)
NARROW = fixed(*(d for d in NUMPY if d.bits <= 32))
SOME = fixed(D.INT8, D.INT16, D.INT32, D.FP16, D.BF16, D.FP32)
WIDE = fixed(D.INT16, D.INT32, D.UINT16, D.UINT32, D.FP16, D.BF16, D.FP32)


def _copy_window(x: Array, i: int, j: int, m: int, n: int, y: Array) -> None:
    y[i // 2 : i // 2 + m, j // 4 : j // 4 + n] = x[i : i + m, j : j + n]


def _clamped(x: Array, i: int, y: Array) -> None:
    rows = x[i : i + 16]
    y[: len(rows)] = rows


def transfers() -> list[Case]:
    window = """
t = pl.load(x0, [i0, i1], [16, 32], valid_shape=[i2, i3])
pl.store(t, [i0 // 2, i1 // 4], y0)
"""
    runs = (
        (0, 0, 16, 32),
        (3, 17, 16, 32),
        (24, 64, 16, 32),
        (38, 90, 2, 6),
        (8, 5, 1, 1),
        (0, 0, 0, 32),
        (4, 4, 16, 0),
    )
    cases = []
    for op in ("tile.load", "tile.store"):
        cases.append(Script(op, window, [(40, 96)], [(40, 64)], _copy_window, runs).case(ALL, "window"))
    clamp = "t = pl.load(x0, [i0, 0], [16, 32], clamp=True)\npl.store(t, [0, 0], y0)"
    cases.append(Script("tile.load", clamp, [(20, 32)], [(20, 32)], _clamped, ((0,), (7,), (19,))).case(ALL, "clamp"))
    ranked = """
for b in pl.range(0, 3):
    t = pl.load(x0, [b, 4, 0], [1, 8, 32])
    pl.store(t, [2 - b, 8, 0], y0)
"""

    def reversed_planes(x: Array, y: Array) -> None:
        y[::-1, 8:16] = x[:, 4:12]

    cases += [Script(op, ranked, [(3, 16, 32)], [(3, 16, 32)], reversed_planes).case(SOME, "3d")
              for op in ("tile.load", "tile.store")]  # fmt: skip
    column = "t = pl.load(x0, [i0, 0], [16, 1], valid_shape=[i1, 1])\npl.store(t, [i0, 0], y0)"

    def some_rows(x: Array, i: int, m: int, y: Array) -> None:
        y[i : i + m] = x[i : i + m]

    cases += [
        Script("tile.load", column, [(40, 1)], [(40, 1)], some_rows, ((0, 16), (7, 5), (3, 0))).case(WIDE, "column")
    ]
    twice = """
t = pl.load(x0, [0, 0], [16, 64], valid_shape=[i0, i1])
pl.store(t, [0, 0], y0)
pl.store(t, [0, 0], y0, atomic=pl.AtomicType.Add)
"""

    atomic = Script("tile.store", twice, [(16, 64)], [(16, 64)], doubled, ((16, 64), (5, 19), (0, 64)))
    cases.append(atomic.case(lambda target: [d for d in NUMPY if d in target.atomic_add_dtypes], "atomic"))
    return cases


def allocation() -> list[Case]:
    created = """
t = pl.create_tile([16, 64], dtype={T})
a = pl.load(x0, [0, 0], [16, 64])
t = pl.tile.muls(a, 1)
pl.store(t, [0, 0], y0)
"""

    full = "pl.store(pl.tile.full([16, 64], dtype={T}, value=VALUE), [0, 0], y0)"

    def filled(value: Any) -> Any:
        def reference(y: Array) -> None:
            y[...] = np.array(value).astype(y.dtype)

        return reference

    cases = [Script("tile.create", created, [(16, 64)], [(16, 64)], same).case(fixed(D.INT16, D.INT32, D.FP16, D.FP32))]
    floats, integers = fixed(D.FP16, D.BF16, D.FP32), fixed(D.INT8, D.INT16, D.INT32, D.UINT8, D.UINT16, D.UINT32)
    for value, dtypes in ((-2.5, floats), (0.1, floats), (7, integers), (0, integers)):
        body = full.replace("VALUE", repr(value))
        cases.append(Script("tile.full", body, [], [(16, 64)], filled(value)).case(dtypes, str(value)))
    extreme = {d: d.int_range()[0] for d in integers(None)}  # pyright: ignore[reportArgumentType]
    for dtype, value in extreme.items():
        body = full.replace("VALUE", repr(value))
        cases.append(Script("tile.full", body, [], [(16, 64)], filled(value)).case(fixed(dtype), "least"))
    return cases


def reshapes() -> list[Case]:
    cases: list[Case] = []
    reshape = """
t = pl.load(x0, [0, 0], [16, 64])
r = pl.tile.reshape(t, [32, 32])
pl.store(r, [0, 0], y0)
"""

    cases.append(Script("tile.reshape", reshape, [(16, 64)], [(32, 32)], reshaped).case(ALL))
    column = """
t = pl.load(x0, [0, 0], [16, 64])
s = pl.tile.row_max(t, pl.create_tile([16, 64], dtype={T}))
r = pl.tile.reshape(s, [1, 16])
pl.store(pl.tile.add(r, r), [0, 0], y0)
"""

    def summed(x: Array, y: Array) -> None:
        most = x.max(axis=1)
        y[0] = ADD(most, most)

    cases.append(Script("tile.reshape", column, [(16, 64)], [(1, 16)], summed).case(USUAL, "column"))
    return cases


def windows() -> list[Case]:
    cases: list[Case] = []
    window = """
t = pl.load(x0, [0, 0], [32, 128])
s = pl.tile.slice(t, [8, 32], [i0, i1])
pl.store(pl.tile.add(s, s), [0, 0], y0)
"""

    def window_doubled(x: Array, i: int, j: int, y: Array) -> None:
        part = x[i : i + 8, j : j + 32]
        y[...] = ADD(part, part)

    runs = ((0, 0), (3, 32), (24, 96), (5, 64))
    cases.append(Script("tile.slice", window, [(32, 128)], [(8, 32)], window_doubled, runs).case(USUAL))
    whole_blocks = window.replace("i0", "8").replace("i1", "32")

    def aligned(x: Array, y: Array) -> None:
        window_doubled(x, 8, 32, y)

    cases.append(Script("tile.slice", whole_blocks, [(32, 128)], [(8, 32)], aligned).case(USUAL, "static"))
    fixed_window = window.replace("i0", "5").replace("i1", "37")

    def at_odd(x: Array, y: Array) -> None:
        window_doubled(x, 5, 37, y)

    cases.append(Script("tile.slice", fixed_window, [(32, 128)], [(8, 32)], at_odd).case(USUAL, "misaligned"))
    narrowed = """
t = pl.load(x0, [0, 0], [32, 128])
s = pl.tile.slice(t, [8, 32], [8, 32], valid_shape=[i0, i1])
pl.store(pl.tile.add(s, s), [0, 0], y0)
"""

    def narrow(x: Array, m: int, n: int, y: Array) -> None:
        part = x[8 : 8 + m, 32 : 32 + n]
        y[:m, :n] = ADD(part, part)

    cases.append(
        Script("tile.slice", narrowed, [(32, 128)], [(8, 32)], narrow, ((8, 32), (3, 7), (1, 32), (0, 32))).case(
            USUAL, "valid"
        )
    )
    valid = """
t = pl.load(x0, [0, 0], [16, 64])
s = pl.tile.set_validshape(t, i0, i1)
pl.store(pl.tile.add(s, s), [0, 0], y0)
"""

    regions = ((16, 64), (5, 19), (1, 64), (0, 64), (16, 0))
    cases.append(Script("tile.set_validshape", valid, [(16, 64)], [(16, 64)], doubled, regions).case(USUAL))
    return cases


def reinterpretations() -> list[Case]:
    cases: list[Case] = []
    bits = """
t = pl.load(x0, [0, 0], [16, 64])
pl.store(pl.tile.reinterpret_view(t, TO), [0, 0], y0)
"""

    for dtype in (D.FP16, D.BF16, D.FP32):
        turned = """
a = pl.load(x0, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
b = pl.load(x1, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
pl.store(pl.tile.matmul(a, pl.tile.transpose_view(b)), [0, 0], y0)
"""

        def by_transpose(a: Array, b: Array, y: Array) -> None:
            y[...] = a.astype(np.float64) @ b.astype(np.float64).T

        script = Script("tile.transpose_view", turned, [(32, 64), (32, 64)], [((32, 32), D.FP32)], by_transpose,
                        make=small)  # fmt: skip
        cases.append(script.case(fixed(dtype)))
    for source, to in ((D.FP32, D.INT32), (D.INT16, D.BF16), (D.FP16, D.UINT16), (D.INT32, D.INT8), (D.UINT8, D.FP32)):
        columns = 64 * source.bits // to.bits
        body = bits.replace("TO", f"pl.{to.name}")
        script = Script("tile.reinterpret_view", body, [(16, 64)], [((16, columns), to)], same_bytes)
        cases.append(script.case(fixed(source), to.name))
    return cases


def padding() -> list[Case]:
    cases: list[Case] = []
    regions = ((16, 64), (5, 19), (1, 64), (16, 1), (0, 64), (16, 0))
    for mode in ("zero", "max", "min"):
        for op, result in (
            ("fillpad", "pl.tile.fillpad(t, pad_value=pl.PadValue.MODE)"),
            ("fillpad_inplace", "pl.tile.fillpad_inplace(t, pad_value=pl.PadValue.MODE)"),
            ("fillpad_expand", "pl.tile.fillpad_expand(t, [24, 128], pad_value=pl.PadValue.MODE)"),
        ):
            shape = (24, 128) if op == "fillpad_expand" else (16, 64)
            body = f"t = pl.load(x0, [0, 0], [16, 64], valid_shape=[i0, i1])\npl.store({result}, [0, 0], y0)"
            script = Script(f"tile.{op}", body.replace("MODE", mode), [(16, 64)], [shape], padded(mode), regions)
            cases.append(script.case(NARROW, mode))
    return cases


def rearranging() -> list[Case]:
    transposed = Vector("tile.transpose", "pl.tile.transpose(a, 0, 1)", "mn", lambda a: a.T, out="nm")
    cases = [transposed.case(WIDE)]
    concat = """
a = pl.load(x0, [0, 0], [16, 64], valid_shape=[i0, 64])
b = pl.load(x1, [0, 0], [16, 64], valid_shape=[i0, i1])
pl.store(pl.tile.concat(a, b), [0, 0], y0)
"""

    def joined(a: Array, b: Array, m: int, n: int, y: Array) -> None:
        y[:m, :64], y[:m, 64 : 64 + n] = a[:m], b[:m, :n]

    runs = ((16, 64), (5, 19), (1, 1), (0, 64), (16, 0))
    cases.append(
        Script("tile.concat", concat, [(16, 64), (16, 64)], [(16, 128)], joined, runs).case(
            lambda target: instruction_dtypes("tile.concat", target)
        )
    )
    into = """
t = pl.load(x0, [0, 0], [16, 64])
s = pl.load(x1, [0, 0], [8, 32])
pl.store(pl.tile.assemble(t, s, [i0, i1]), [0, 0], y0)
"""

    def inserted(t: Array, s: Array, i: int, j: int, y: Array) -> None:
        y[...] = t
        y[i : i + 8, j : j + 32] = s

    cases.append(
        Script("tile.assemble", into, [(16, 64), (8, 32)], [(16, 64)], inserted, ((0, 0), (8, 32), (3, 32))).case(
            NARROW
        )
    )
    cases += [_partial(name, function) for name, function in (
        ("add", np.add), ("mul", np.multiply), ("max", np.maximum), ("min", np.minimum))]  # fmt: skip
    return cases


def _partial(name: str, function: Any) -> Case:
    body = f"""
a = pl.load(x0, [0, 0], [16, 64])
b = pl.load(x1, [0, 0], [16, 64], valid_shape=[i0, i1])
pl.store(pl.tile.part_{name}(a, b), [0, 0], y0)
"""
    op = f"tile.part_{name}"
    runs, ulp = ((16, 64), (5, 19), (1, 1), (0, 64), (16, 0)), 0.5 if name in ("max", "min") else 0
    script = Script(op, body, [(16, 64), (16, 64)], [(16, 64)], combined(function), runs, ulp)
    return script.case(lambda target: instruction_dtypes(op, target))


def elements() -> list[Case]:
    body = """
t = pl.load(x0, [0, 0], [16, 64])
v = pl.tile.read(t, [i0, i1])
w = pl.tile.read(t, [i1 % 16, i0])
pl.tile.write(t, [i1 % 16, i0], v)
pl.tile.write(t, [i0, i1], w)
pl.store(t, [0, 0], y0)
"""

    def swapped(x: Array, i: int, j: int, y: Array) -> None:
        y[...] = x
        first, second = x[i, j], x[j % 16, i]
        y[j % 16, i] = first
        y[i, j] = second

    runs = ((0, 0), (3, 17), (15, 63), (2, 9))
    signed = fixed(D.INT8, D.INT16, D.INT32, D.FP16, D.BF16, D.FP32)
    cases = [Script(op, body, [(16, 64)], [(16, 64)], swapped, runs).case(signed) for op in ("tile.read", "tile.write")]
    tensor = """
v = pl.tensor.read(x0, [i0, i1])
pl.tensor.write(y0, [i1 % 16, i0], v)
"""

    def element(x: Array, i: int, j: int, y: Array) -> None:
        y[j % 16, i] = x[i, j]

    cases += [Script(op, tensor, [(16, 64)], [(16, 64)], element, runs).case(signed)
              for op in ("tensor.read", "tensor.write")]  # fmt: skip
    return cases


def generated() -> list[Case]:
    cases: list[Case] = []
    for descending in (False, True):
        for start in (0, 5):
            body = f"pl.store(pl.tile.ci({start}, [1, 64], dtype={{T}}, descending={descending}), [0, 0], y0)"

            def counted(y: Array, start: int = start, step: int = -1 if descending else 1) -> None:
                y[0] = (start + step * np.arange(64)).astype(y.dtype)

            script = Script("tile.ci", body, [], [(1, 64)], counted)
            cases.append(script.case(lambda target: instruction_dtypes("tile.ci", target), f"{start}-{descending}"))
    for upper in (False, True):
        for diagonal in (0, -3, 5):
            made = f"pl.tile.tri({diagonal}, [16, 64], valid_shape=[i0, i1], dtype={{T}}, upper={upper})"
            body = f"pl.store({made}, [0, 0], y0)"

            def triangle(m: int, n: int, y: Array, upper: bool = upper, diagonal: int = diagonal) -> None:
                for i in range(m):
                    for j in range(n):
                        y[i, j] = (j - i >= diagonal) if upper else (j - i <= diagonal)

            script = Script("tile.tri", body, [], [(16, 64)], triangle, ((16, 64), (5, 19)))
            cases.append(script.case(lambda target: instruction_dtypes("tile.tri", target), f"{upper}-{diagonal}"))
    return cases


def lanes() -> list[Case]:
    """One block runs, alone: it is number 0 of 1."""
    body = """
t = pl.load(x0, [0, 0], [16, 64])
pl.tile.write(t, [0, 0], pl.cast(pl.tile.get_block_idx(), {T}))
pl.tile.write(t, [0, 1], pl.cast(pl.tile.get_block_num(), {T}))
pl.tile.write(t, [0, 2], pl.cast(pl.tile.get_subblock_idx(), {T}))
pl.store(t, [0, 0], y0)
"""

    def numbered(x: Array, y: Array) -> None:
        y[...] = x
        y[0, :3] = 0, 1, 0

    names = ("get_block_idx", "get_block_num", "get_subblock_idx")
    on_tensors = body.replace("pl.tile.get", "pl.tensor.get")
    return [Script(f"{level}.{name}", text, [(16, 64)], [(16, 64)], numbered).case(fixed(D.INT32))
            for level, text in (("tile", body), ("tensor", on_tensors)) for name in names]  # fmt: skip


def arrays() -> list[Case]:
    body = """
a = pl.array.create(8, {T})
t = pl.load(x0, [0, 0], [16, 64])
for i in pl.range(0, 8):
    a = pl.array.update_element(a, i, pl.tile.read(t, [i, i0]))
for i in pl.range(0, 8):
    pl.tile.write(t, [7 - i, i0], pl.array.get_element(a, i))
pl.store(t, [0, 0], y0)
"""

    def mirrored(x: Array, j: int, y: Array) -> None:
        y[...] = x
        y[:8, j] = x[7::-1, j]

    return [Script(op, body, [(16, 64)], [(16, 64)], mirrored, ((0,), (63,))).case(fixed(D.INT32, D.INT16))
            for op in ("array.create", "array.get_element", "array.update_element")]  # fmt: skip


assert (ROWS, COLS) == (16, 64)
CASES = [
    *transfers(),
    *allocation(),
    *reshapes(),
    *windows(),
    *reinterpretations(),
    *padding(),
    *rearranging(),
    *elements(),
    *generated(),
    *lanes(),
    *arrays(),
]
