"""Numeric cases of powers, fused arithmetic, quantization, histograms and choices that keep their indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from elementwise_cases import ADD, MAX
from operator_harness import ROWS, Case, Script, Vector, fixed, instruction_dtypes
from operator_values import Array, in_double, is_float, ordinary, rounded, wrap

from pypto.backend import Target
from pypto.dtypes import DataType

D = DataType
INTEGERS = (D.INT8, D.INT16, D.INT32, D.UINT8, D.UINT16, D.UINT32)


def on(target_name: str, *dtypes: DataType) -> Any:
    return lambda target: dtypes if target.name == target_name else ()


def powers_of(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
    """Bases of both signs, exponents that are small integers."""
    if along % 2:
        return rng.integers(0, 6, shape).astype(dtype)
    return ordinary(dtype, shape, rng)


def _power(a: Array, b: Array) -> Array:
    if is_float(a.dtype):
        return in_double(np.power)(a, b)
    return wrap(np.vectorize(lambda x, n: int(x) ** int(n), otypes=[object])(a, b), a.dtype)


def _power_scalar(a: Array, s: Any) -> Array:
    return _power(a, np.full(a.shape, s).astype(a.dtype))


def powers() -> list[Case]:
    cases: list[Case] = []
    tmp = "tmp = pl.create_tile([{R}, {C}], dtype={T})"
    floats = lambda target: [D.FP32] if target.name == "Ascend910B" else [D.FP16, D.BF16, D.FP32]  # noqa: E731
    for dtypes, extra, setup, ulp in ((fixed(*INTEGERS), "", "", 0), (floats, ", tmp", tmp, 2)):
        name = "float" if extra else "integer"
        both = Vector("tile.pow", f"pl.tile.pow(a, b{extra})", "mn mn", _power, setup=setup, ulp=ulp, make=powers_of)
        one = Vector("tile.pows", f"pl.tile.pows(a, {{s}}{extra})", "mn", _power_scalar, setup=setup, ulp=ulp,
                     make=powers_of, scalars=[3, 0, 1, 2])  # fmt: skip
        cases += [both.case(dtypes, name), one.case(dtypes, name)]
    return cases


def fused() -> list[Case]:
    relu = Vector("tile.add_relu", "pl.tile.add_relu(a, b)", "mn mn",
                  lambda a, b: MAX(ADD(a, b), np.zeros_like(a)), ulp=0.5)  # fmt: skip
    cases = [relu.case(fixed(D.INT16, D.FP16, D.FP32))]
    axpy = """
acc = pl.load(x0, [0, 0], [16, 64], valid_shape=[i0, i1])
t = pl.load(x1, [0, 0], [16, 64], valid_shape=[i0, i1])
pl.store(pl.tile.axpy(acc, t, 0.1), [0, 0], y0)
"""

    def added(acc: Array, t: Array, m: int, n: int, y: Array) -> None:
        factor = np.float64(np.array(0.1).astype(t.dtype))
        total = acc[:m, :n].astype(np.float64) + t[:m, :n].astype(np.float64) * factor
        y[:m, :n] = rounded(total.astype(np.float32), y.dtype)

    def run(dtype: DataType, target: Target, acc: DataType) -> None:
        Script("tile.axpy", axpy, [((16, 64), acc), ((16, 64), dtype)], [((16, 64), acc)], added,
               ((16, 64), (5, 19), (0, 64)), ulp=1, make=ordinary).run(dtype, target)  # fmt: skip

    every = frozenset({"full", "ragged", "empty"})
    cases.append(Case("tile.axpy", "", lambda d, t: run(d, t, d),
                      lambda target: instruction_dtypes("tile.axpy", target), covers=every))  # fmt: skip
    cases.append(Case("tile.axpy", "wide", lambda d, t: run(d, t, D.FP32), fixed(D.FP16), covers=every))
    return cases


def quantization() -> list[Case]:
    quant = """
t = pl.load(x0, [0, 0], [16, 64], valid_shape=[i0, i1])
s = pl.load(x1, [0, 0], [16, 1], valid_shape=[i0, 1])
OFFSET
pl.store(pl.tile.quant(t, sOP), [0, 0], y0)
"""
    offset = "o = pl.load(x2, [0, 0], [16, 1], valid_shape=[i0, 1])"

    def clamped(values: Array, dtype: np.dtype) -> Array:
        info = np.iinfo(dtype)
        # A NaN becomes 0; an infinity the nearest limit.
        exact = np.where(np.isnan(values), 0, values)
        return np.clip(np.rint(exact), info.min, info.max).astype(dtype)

    def symmetric(t: Array, s: Array, m: int, n: int, y: Array) -> None:
        y[:m, :n] = clamped(t[:m, :n] * s[:m], y.dtype)

    def shifted(t: Array, s: Array, o: Array, m: int, n: int, y: Array) -> None:
        y[:m, :n] = clamped(t[:m, :n] * s[:m] + o[:m], y.dtype)

    runs = ((16, 64), (5, 19), (1, 1), (0, 64))
    plain = quant.replace("OFFSET\n", "").replace("OP", "")
    asymmetric = quant.replace("OFFSET", offset).replace("OP", ", o")
    column, only = ((16, 1), D.FP32), fixed(D.FP32)
    cases = [
        Script("tile.quant", plain, [(16, 64), column], [((16, 64), D.INT8)], symmetric, runs).case(only),
        Script("tile.quant", asymmetric, [(16, 64), column, column], [((16, 64), D.UINT8)], shifted, runs).case(
            only, "offset"
        ),
    ]
    dequant = """
t = pl.load(x0, [0, 0], [16, 64], valid_shape=[i0, i1])
s = pl.load(x1, [0, 0], [16, 1], valid_shape=[i0, 1])
o = pl.load(x2, [0, 0], [16, 1], valid_shape=[i0, 1])
pl.store(pl.tile.dequant(t, s, o), [0, 0], y0)
"""

    def restored(t: Array, s: Array, o: Array, m: int, n: int, y: Array) -> None:
        y[:m, :n] = (t[:m, :n].astype(np.float32) - o[:m]) * s[:m]

    cases.append(
        Script("tile.dequant", dequant, [(16, 64), column, column], [((16, 64), D.FP32)], restored, runs).case(
            fixed(D.INT8, D.INT16)
        )
    )
    return cases


def quantized_mx() -> list[Case]:
    """FP32 to FP8E4M3FN with a scale for each 32 elements, along either axis."""
    cases: list[Case] = []
    for axis, rows, cols in ((1, 16, 1024), (1, 1, 1024), (0, 64, 64)):
        groups = (rows, cols // 32) if axis else (rows // 32, cols)
        body = f"""
t = pl.load(x0, [0, 0], [{rows}, {cols}])
e = pl.create_tile({list(groups)}, dtype=pl.UINT8)
most = pl.create_tile({list(groups)}, dtype=pl.FP32)
factor = pl.create_tile({list(groups)}, dtype=pl.FP32)
q = pl.tile.quant_mx(t, e, most, factor, axis={axis})
pl.store(q, [0, 0], y0)
pl.store(e, [0, 0], y1)
pl.store(most, [0, 0], y2)
pl.store(factor, [0, 0], y3)
"""

        def quantize(x: Array, q: Array, e: Array, most: Array, factor: Array, axis: int = axis) -> None:
            for g in np.ndindex(*e.shape):
                part = (g[0], slice(32 * g[1], 32 * g[1] + 32)) if axis else (slice(32 * g[0], 32 * g[0] + 32), g[1])
                members = x[part].astype(np.float64)
                most[g] = np.max(np.abs(members))
                if np.isnan(most[g]):
                    e[g], factor[g] = 255, np.nan
                else:
                    power = 128 if np.isinf(most[g]) else int(np.frexp(max(most[g], 2.0**-127))[1]) - 1
                    e[g] = max(power + 127 - 8, 0)
                    factor[g] = 2.0 ** (127 - int(e[g]))
                scaled = np.clip(members * np.float64(factor[g]), -448, 448)
                q[part] = scaled.astype(D.FP8E4M3FN.numpy).view(np.int8)

        outputs = [((rows, cols), D.INT8), (groups, D.UINT8), (groups, D.FP32), (groups, D.FP32)]
        script = Script("tile.quant_mx", body, [(rows, cols)], outputs, quantize, make=_magnitudes)
        cases.append(script.case(on("Ascend950", D.FP32), f"{axis}-{rows}x{cols}"))
    return cases


def _magnitudes(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
    """Blocks of very different magnitudes, subnormal ones, zeros, infinities and NaN in some."""
    values = rng.standard_normal(shape) * np.exp2(np.repeat(rng.integers(-140, 120, shape[0] * shape[1] // 16), 16))\
        .reshape(shape)  # fmt: skip
    found = values.astype(dtype).ravel()
    found[32:64] = 0
    found[70], found[130], found[200:204] = np.nan, -np.inf, (448, -464, 480, 2.0**-9)
    return found.reshape(shape)


def _few(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
    """Few distinct values, so that there are ties; indices are distinct."""
    if dtype == np.int32:
        return (rng.permutation(int(np.prod(shape))) + 10000 * along).astype(dtype).reshape(shape)
    return rng.integers(-3, 4, shape).astype(dtype)


def choices() -> list[Case]:
    body = """
a = pl.load(x0, [0, 0], [16, 64])
b = pl.load(x1, [0, 0], [16, 64], valid_shape=[VM, VN])
ia = pl.load(x2, [0, 0], [16, 64])
ib = pl.load(x3, [0, 0], [16, 64], valid_shape=[VM, VN])
idx = pl.create_tile([16, 64], dtype=pl.INT32)
pl.store(pl.tile.OP(a, b, ia, ib, idx), [0, 0], y0)
pl.store(idx, [0, 0], y1)
"""
    cases: list[Case] = []
    index = ((16, 64), D.INT32)
    for op, better in (("part_argmax", np.greater), ("part_argmin", np.less)):
        for m, n in ((16, 64), (5, 19), (0, 64)):

            def chosen(
                a: Array, b: Array, ia: Array, ib: Array, y: Array, i: Array, to: Any = (better, m, n)
            ) -> None:
                better, m, n = to
                y[...], i[...] = a, ia
                first = better(a[:m, :n], b[:m, :n])
                y[:m, :n] = np.where(first, a[:m, :n], b[:m, :n])
                i[:m, :n] = np.where(first, ia[:m, :n], ib[:m, :n])

            text = body.replace("OP", op).replace("VM", str(m)).replace("VN", str(n))
            inputs = [(16, 64), (16, 64), index, index]
            script = Script(f"tile.{op}", text, inputs, [(16, 64), index], chosen, make=_few)
            cases.append(script.case(fixed(D.FP16, D.FP32), f"{m}x{n}"))
    return cases


def counting() -> list[Case]:
    concat = """
a = pl.load(x0, [0, 0], [16, 64])
b = pl.load(x1, [0, 0], [16, 64])
ca = pl.load(x2, [0, 0], [16, 32])
cb = pl.load(x3, [0, 0], [16, 32])
r = pl.tile.concat_idx(a, b, ca, cb)
pl.store(pl.tile.slice(r, [16, 32], [0, 0]), [0, 0], y0)
"""

    def joined(a: Array, b: Array, ca: Array, cb: Array, y: Array) -> None:
        for i in range(ROWS):
            whole = np.concatenate([a[i, : ca[i, 0]], b[i, : cb[i, 0]]])
            y[i] = whole[:32]

    def counts(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
        return ordinary(dtype, shape, rng) if along < 2 else rng.integers(20, 60, shape).astype(dtype)

    index = ((16, 32), D.INT8)
    script = Script("tile.concat_idx", concat, [(16, 64), (16, 64), index, index], [(16, 32)], joined, make=counts)
    cases = [script.case(fixed(D.INT8, D.INT16, D.INT32, D.FP16, D.BF16, D.FP32))]
    histogram = """
t = pl.load(x0, [0, 0], [32, 64], valid_shape=[32, i0])
i = pl.load(x1, [0, 0], [32, 1])
pl.store(pl.tile.histogram(t, i, byte=BYTE), [0, 0], y0)
"""
    for byte in (0, 1):

        def counted(x: Array, index: Array, n: int, y: Array, byte: int = byte) -> None:
            y[...] = 0
            for r in range(32):
                for value in x[r, :n].tolist():
                    if byte == 1 or value >> 8 == index[r, 0]:
                        y[r, (value >> (8 * byte)) & 255] += 1

        def halves(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
            return rng.integers(0, 3 if along else 3 << 8, shape).astype(dtype)

        script = Script("tile.histogram", histogram.replace("BYTE", str(byte)), [(32, 64), ((32, 1), D.UINT8)],
                        [((32, 256), D.UINT32)], counted, ((64,), (19,), (0,)), make=halves)  # fmt: skip
        cases.append(script.case(on("Ascend950", D.UINT16), f"byte{byte}"))
    return cases


def _angles(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
    """Multiples of pi/4 and their neighbourhood, and angles of many turns."""
    out = (rng.random(shape) * 4096 * np.pi - 2048 * np.pi).astype(dtype)
    out[:, ::2] = ((np.arange(-16, 16) * np.pi / 4)[None, :] + rng.standard_normal((shape[0], 1)) * 1e-4).astype(dtype)
    out[0, 0] = np.nan
    return out


def trigonometry() -> list[Case]:
    """Sine and cosine are a polynomial: close to 1e-5, as their lowering says."""
    cases: list[Case] = []
    for name, function in (("sin", np.sin), ("cos", np.cos)):
        on_tiles = f"""
t = pl.load(x0, [0, 0], [16, 64], valid_shape=[i0, i1])
pl.store(pl.tile.{name}(t), [0, 0], y0)
"""
        on_tensors = f"""
t = pl.slice(x0, [16, 64], [0, 0], valid_shape=[i0, i1])
y0 = pl.assemble(y0, pl.tensor.{name}(t), [0, 0])
"""

        def evaluated(x: Array, m: int, n: int, y: Array, function: Any = function) -> None:
            y[:m, :n] = function(x[:m, :n].astype(np.float64))

        for op, body in ((f"tile.{name}", on_tiles), (f"tensor.{name}", on_tensors)):
            script = Script(op, body, [(16, 64)], [(16, 64)], evaluated, ((16, 64), (5, 19), (0, 64)), make=_angles,
                            within=1e-5, tensors=op.startswith("tensor"))  # fmt: skip
            cases.append(script.case(fixed(D.FP32)))
    return cases


CASES = [*powers(), *fused(), *quantization(), *quantized_mx(), *choices(), *counting(), *trigonometry()]
