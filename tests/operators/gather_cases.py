"""Numeric cases of gathers, scatters, sorts and merges."""

from __future__ import annotations

from typing import Any

import numpy as np
from operator_harness import Case, Script, fixed, instruction_dtypes
from operator_values import Array, is_float, mixed, raw

from pypto.dtypes import DataType

D = DataType
USUAL = fixed(D.INT16, D.INT32, D.FP16, D.FP32)
PAYLOADS = fixed(D.INT8, D.UINT8, D.INT16, D.UINT16, D.INT32, D.UINT32, D.FP16, D.BF16, D.FP32)
_EIGHT_BITS = (D.FP8E4M3FN, D.FP8E5M2)
SIGNED = fixed(D.INT8, D.INT16, D.INT32, D.FP16, D.BF16, D.FP32)
PATTERNS = {1: (2, 0), 2: (2, 1), 3: (4, 0), 4: (4, 1), 5: (4, 2), 6: (4, 3), 7: (1, 0)}
"""For each mask pattern, of how many columns it marks one, and which."""


def positions(limit: int) -> Any:
    """Data in operands of the dtype under test; in index operands, positions below ``limit``, each once if they fit."""

    def make(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
        if along == 0:
            return mixed(dtype, shape, rng)
        count = int(np.prod(shape))
        chosen = rng.permutation(limit)[:count] if count <= limit else rng.integers(0, limit, count)
        return chosen.astype(dtype).reshape(shape)

    return make


def by_index() -> list[Case]:
    gather = """
t = pl.load(x0, [0, 0], [16, 64])
i = pl.load(x1, [0, 0], [8, 32], valid_shape=[i0, i1])
tmp = pl.create_tile([8, 32], dtype=pl.INT32)
pl.store(pl.tile.gather(t, i, tmp), [0, 0], y0)
"""

    def gathered(x: Array, index: Array, m: int, n: int, y: Array) -> None:
        y[:m, :n] = x.ravel()[index[:m, :n]]

    runs = ((8, 32), (5, 32), (1, 32), (0, 32), (8, 0))
    cases = [Script("tile.gather", gather, [(16, 64), ((8, 32), D.INT32)], [(8, 32)], gathered, runs,
                    make=positions(1024)).case(USUAL)]  # fmt: skip
    for dtypes, index in (
        (fixed(D.INT32, D.FP32), D.INT32),
        (fixed(D.INT16, D.FP16, D.BF16), D.INT16),
        (fixed(D.INT8), D.INT16),
    ):
        scatter = """
d = pl.load(x0, [0, 0], [16, 64])
i = pl.load(x1, [0, 0], [8, 32], valid_shape=[i0, i1])
s = pl.load(x2, [0, 0], [8, 32], valid_shape=[i0, i1])
pl.store(pl.tile.scatter(d, s, i), [0, 0], y0)
"""

        def scattered(d: Array, index: Array, s: Array, m: int, n: int, y: Array) -> None:
            flat = np.zeros(d.size, d.dtype)
            for at, value in zip(index[:m, :n].ravel(), s[:m, :n].ravel()):
                flat[at] = value
            y[...] = flat.reshape(d.shape)

        script = Script("tile.scatter", scatter, [(16, 64), ((8, 32), index), (8, 32)], [(16, 64)], scattered,
                        ((8, 32), (5, 19), (0, 32)), make=_third_is_data(1024))  # fmt: skip
        cases.append(script.case(dtypes, index.name))
    blocks = """
t = pl.load(x0, [0, 0], [16, 64])
o = pl.load(x1, [0, 0], [4, 8])
pl.store(pl.tile.gatherb(t, o), [0, 0], y0)
"""

    def gathered_blocks(x: Array, offset: Array, y: Array) -> None:
        item, raw = x.dtype.itemsize, x.tobytes()
        rows = [b"".join(raw[int(o) : int(o) + 32] for o in row) for row in offset]
        y[...] = np.stack([np.frombuffer(r, x.dtype) for r in rows]).reshape(y.shape)
        assert y.shape[1] * item == 8 * 32

    for dtype in (D.INT8, D.UINT8, D.INT16, D.UINT16, D.INT32, D.UINT32, D.FP16, D.BF16, D.FP32):
        columns = 8 * 32 * 8 // dtype.bits
        limit = 16 * 64 * dtype.bits // 8 // 32
        script = Script("tile.gatherb", blocks, [(16, 64), ((4, 8), D.UINT32)], [(4, columns)], gathered_blocks,
                        make=_blocks(limit))  # fmt: skip
        cases.append(script.case(fixed(dtype)))
    return cases


def _blocks(limit: int) -> Any:
    make = positions(limit)
    return lambda dtype, shape, rng, along=0: make(dtype, shape, rng, along) * (32 if along else 1)


def _third_is_data(limit: int) -> Any:
    make = positions(limit)
    return lambda dtype, shape, rng, along=0: make(dtype, shape, rng, 1 if along == 1 else 0)


def by_pattern() -> list[Case]:
    cases: list[Case] = []
    for pattern, (step, first) in PATTERNS.items():
        gather = f"""
t = pl.load(x0, [0, 0], [16, 64], valid_shape=[i0, 64])
pl.store(pl.tile.gather_mask(t, mask_pattern={pattern}), [0, 0], y0)
"""

        def taken(x: Array, m: int, y: Array, step: int = step, first: int = first) -> None:
            y[:m] = x[:m, first::step]

        script = Script("tile.gather_mask", gather, [(16, 64)], [(16, 64 // step)], taken, ((16,), (5,), (0,)))
        # A quarter of a row of 64 one-byte elements is not whole 32-byte blocks.
        cases.append(script.case(fixed(D.INT16, D.INT32, D.UINT16, D.UINT32, D.FP16, D.FP32), str(pattern)))
        scatter = f"""
d = pl.load(x0, [0, 0], [16, 128])
s = pl.load(x1, [0, 0], [16, {128 // step}])
pl.store(pl.tile.scatter_mask(d, s, mask_pattern={pattern}), [0, 0], y0)
"""

        def spread(d: Array, s: Array, y: Array, step: int = step, first: int = first) -> None:
            y[...] = 0
            y[:, first::step] = s

        script = Script("tile.scatter_mask", scatter, [(16, 128), (16, 128 // step)], [(16, 128)], spread)
        cases.append(script.case(PAYLOADS, str(pattern)))
    reread = """
t = pl.load(x0, [0, 0], [16, 64])
pl.store(pl.tile.gather_mask(t, mask_pattern=2, output_dtype=pl.INT32), [0, 0], y0)
"""

    def bits(x: Array, y: Array) -> None:
        y[...] = x.view(np.int32)[:, 1::2]

    cases.append(
        Script("tile.gather_mask", reread, [(16, 64)], [((16, 32), D.INT32)], bits).case(fixed(D.FP32), "reinterpreted")
    )
    return cases


def distinct(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
    """Values with ties and infinities; index operands count up."""
    if not is_float(dtype):
        return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
    out = (rng.integers(-40, 40, shape) / 4).astype(dtype)
    out[:, :3] = np.array([np.inf, -np.inf, 0.0], dtype)
    return out


def _pairs(values: Array, index: Array) -> Array:
    """Each value and its index as 8 bytes, as elements of the values' dtype."""
    width = 8 // values.dtype.itemsize
    out = np.zeros((*values.shape, width), values.dtype)
    out[..., 0] = values
    out[..., width // 2 :] = index.astype(np.uint32)[..., None].view(values.dtype)
    return out.reshape(*values.shape[:-1], -1)


def sorted_runs(values: Array, index: Array, run: int) -> Array:
    """Runs of ``run`` elements each sorted from the largest, equal ones in their order, as pairs."""
    rows = []
    for row, ids in zip(values.tolist(), index.tolist()):
        order: list[int] = []
        for start in range(0, len(row), run):
            order += sorted(range(start, start + run), key=lambda k: -row[k])
        rows.append(([row[k] for k in order], [ids[k] for k in order]))
    return _pairs(np.array([r[0] for r in rows], values.dtype), np.array([r[1] for r in rows], np.uint32))


def sorts() -> list[Case]:
    cases: list[Case] = []
    for dtype, factor in ((D.FP32, 2), (D.FP16, 4)):
        plain = """
t = pl.load(x0, [0, 0], [4, 128])
i = pl.load(x1, [0, 0], [4, 128])
pl.store(pl.tile.sort32(t, i), [0, 0], y0)
"""

        def ordered(x: Array, index: Array, y: Array) -> None:
            y[...] = sorted_runs(x, index, 32)

        inputs = [(4, 128), ((4, 128), D.UINT32)]
        cases.append(
            Script("tile.sort32", plain, inputs, [(4, 128 * factor)], ordered, make=distinct).case(fixed(dtype))
        )
        merged = f"""
t = pl.load(x0, [0, 0], [1, 512])
i = pl.load(x1, [0, 0], [1, 512])
s = pl.tile.sort32(t, i)
m = pl.tile.mrgsort_format1(s, {32 * factor})
pl.store(pl.tile.mrgsort_format1(m, {128 * factor}), [0, 0], y0)
"""

        def whole(x: Array, index: Array, y: Array) -> None:
            y[...] = sorted_runs(x, index, 512)

        row = [(1, 512), ((1, 512), D.UINT32)]
        script = Script("tile.mrgsort_format1", merged, row, [(1, 512 * factor)], whole, make=distinct)
        cases.append(script.case(fixed(dtype)))
        for lists in (2, 3, 4):
            parts = "\n".join(f"s{k} = pl.tile.sort32(pl.load(x0, [0, {32 * k}], [1, 32]), pl.load(x1, [0, {32 * k}], "
                              f"[1, 32]))" for k in range(lists))  # fmt: skip
            names, width = ", ".join(f"s{k}" for k in range(lists)), 32 * lists
            body = f"""
{parts}
tmp = pl.create_tile([1, {width * factor}], dtype={{T}})
pl.store(pl.tile.mrgsort_format2({names}, tmp=tmp), [0, 0], y0)
"""

            def several(x: Array, index: Array, y: Array, width: int = width) -> None:
                y[...] = sorted_runs(x, index, width)

            row = [(1, width), ((1, width), D.UINT32)]
            script = Script("tile.mrgsort_format2", body, row, [(1, width * factor)], several, make=distinct)
            cases.append(script.case(fixed(dtype), str(lists)))
    return cases


def rows_replaced() -> list[Case]:
    body = """
t = pl.load(x0, [0, 0], [32, 64])
i = pl.load(x1, [0, 0], [1, 8])
s = pl.load(x2, [0, 0], [8, 64])
pl.store(pl.tile.scatter_update(t, -2, i, s), [0, 0], y0)
"""

    def replaced(t: Array, index: Array, s: Array, y: Array) -> None:
        y[...] = t
        y[index[0]] = s

    inputs = [(32, 64), ((1, 8), D.INT32), (8, 64)]
    return [Script("tile.scatter_update", body, inputs, [(32, 64)], replaced, make=_third_is_data(32)).case(USUAL)]


def exhausted() -> list[Case]:
    """Two lists merged up to the end of the first to end; what follows is left as it was."""
    body = """
a = pl.tile.sort32(pl.load(x0, [0, 0], [1, 32]), pl.load(x1, [0, 0], [1, 32]))
b = pl.tile.sort32(pl.load(x0, [0, 32], [1, 32]), pl.load(x1, [0, 32], [1, 32]))
tmp = pl.create_tile([1, 128], dtype=pl.FP32)
m = pl.tile.mrgsort_format2(a, b, tmp=tmp, exhausted=True)
pl.store(pl.tile.slice(m, [1, 64], [0, 0]), [0, 0], y0)
"""

    def until_one_ends(x: Array, index: Array, y: Array) -> None:
        y[...] = sorted_runs(x, index, 64)[:, :64]

    def apart(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
        """The first list is above the second, so that its 32 pairs come first."""
        if not is_float(dtype):
            return np.arange(64, dtype=dtype).reshape(shape)
        return np.where(np.arange(64) < 32, 100, 0).reshape(shape).astype(dtype) + rng.random(shape).astype(dtype)

    row = [(1, 64), ((1, 64), D.UINT32)]
    script = Script("tile.mrgsort_format2", body, row, [(1, 64)], until_one_ends, make=apart)
    return [script.case(fixed(D.FP32), "exhausted")]


def from_memory() -> list[Case]:
    rows = """
i = pl.load(x1, [0, 0], [1, 8])
pl.store(pl.tile.mgather(x0, i, coalesce="row"), [0, 0], y0)
"""

    def rows_of(x: Array, index: Array, y: Array) -> None:
        y[...] = x[index[0]]

    cases = [Script("tile.mgather", rows, [(20, 64), ((1, 8), D.INT32)], [(8, 64)], rows_of, make=positions(20))
             .case(PAYLOADS, "row")]  # fmt: skip
    flat = """
i = pl.load(x1, [0, 0], [8, 32], valid_shape=[i0, i1])
pl.store(pl.tile.mgather(x0, i, coalesce="elem"), [0, 0], y0)
"""

    def elements_of(x: Array, index: Array, m: int, n: int, y: Array) -> None:
        y[:m, :n] = x.ravel()[index[:m, :n]]

    runs = ((8, 32), (5, 19), (1, 1), (0, 32))
    chosen = positions(1280)
    cases.append(Script("tile.mgather", flat, [(20, 64), ((8, 32), D.INT32)], [(8, 32)], elements_of, runs,
                        make=positions(1280)).case(PAYLOADS, "elem"))  # fmt: skip

    def patterns(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
        return raw(dtype, shape, rng) if along == 0 else chosen(dtype, shape, rng, along)

    inputs = [(20, 64), ((8, 32), D.INT32)]
    bits = Script("tile.mgather", flat, inputs, [(8, 32)], elements_of, runs, make=patterns)
    cases.append(bits.case(lambda target: _EIGHT_BITS if target.module_arch == "a5" else (), "bits"))
    scatter = """
s = pl.load(x0, [0, 0], [8, 32], valid_shape=[i0, i1])
i = pl.load(x1, [0, 0], [8, 32], valid_shape=[i0, i1])
pl.tile.mscatter(s, i, y0)
"""

    def scattered(s: Array, index: Array, m: int, n: int, y: Array) -> None:
        y.ravel()[index[:m, :n].ravel()] = s[:m, :n].ravel()

    cases.append(Script("tile.mscatter", scatter, [(8, 32), ((8, 32), D.INT32)], [(20, 64)], scattered, runs,
                        make=positions(1280)).case(SIGNED))  # fmt: skip
    bits = Script("tile.mscatter", scatter, [(8, 32), ((8, 32), D.INT32)], [(20, 64)], scattered, runs, make=patterns)
    cases.append(bits.case(lambda target: _EIGHT_BITS if target.module_arch == "a5" else (), "bits"))
    copied = """
acc = pl.tile.full([16, 64], dtype={T}, value=0)
acc = pl.tile.gather_row(acc, x0, [4, 0], [i0, 0], [2, 64])
acc = pl.tile.gather_row(acc, x0, [9, 0], [i1, 0], [1, 64])
pl.store(acc, [0, 0], y0)
"""

    def two_rows(x: Array, i: int, j: int, y: Array) -> None:
        y[...] = 0
        y[4:6], y[9] = x[i : i + 2], x[j]

    script = Script("tile.gather_row", copied, [(20, 64)], [(16, 64)], two_rows, ((0, 19), (18, 3)))
    cases.append(script.case(lambda target: instruction_dtypes("tile.full", target)))
    return cases


MATCHES = 8


def matching(mode: str) -> Any:
    """In operand 0 rows of which `MATCHES` elements compare with 3, which operand 1 holds."""

    def make(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
        if along == 1:
            return np.full(shape, 3, dtype)
        extremes = [np.nan, -np.inf, -0.0] if is_float(dtype) else [-3, -100, 0]
        data = rng.choice(np.array([1, 2, 0, *extremes], dtype), shape)
        for row in data:
            columns = rng.choice(row.size, MATCHES, replace=False)
            row[columns] = 3 if mode == "eq" else rng.choice(np.array([4, 100], dtype), MATCHES)
            if mode == "gt" and is_float(dtype):
                row[columns[0]] = np.inf
        return data

    return make


def first_matches(mode: str, offset: int) -> Any:
    """What a comparing gather gives for such rows."""
    compare = np.equal if mode == "eq" else np.greater

    def reference(x: Array, k: Array, *rest: Any) -> None:
        *rows, y, counts = rest
        for row in range(rows[0] if rows else len(x)):
            found = np.flatnonzero(compare(x[row], k.ravel()[0]))
            y[row], counts[0, row] = found + offset, found.size

    return reference


def by_comparison() -> list[Case]:
    cases = []
    for mode in ("eq", "gt"):
        gather = f"""
k = pl.read(x1, [0])
t = pl.load(x0, [0, 0], [16, 64], valid_shape=[i0, 64])
tmp = pl.create_tile([1, 8192], dtype=pl.UINT8)
found, counts = pl.tile.gather_compare(t, k, tmp, cmp_mode="{mode}", offset=5, out_cols=8)
pl.store(found, [0, 0], y0)
pl.store(counts, [0, 0], y1)
"""
        outputs = [((16, MATCHES), D.INT32), ((1, 16), D.INT32)]
        script = Script("tile.gather_compare", gather, [(16, 64), (1,)], outputs, first_matches(mode, 5),
                        ((16,), (5,), (0,)), make=matching(mode))  # fmt: skip
        cases.append(script.case(comparable(mode), mode))
    return cases


def comparable(mode: str) -> Any:
    """The dtypes that targets compare in a gather."""

    def dtypes(target: Any) -> tuple[DataType, ...]:
        if target.module_arch == "a5":
            return (D.INT16, D.INT32, D.FP16, D.FP32)
        return (D.INT32, D.FP16, D.FP32) if mode == "eq" else (D.FP16, D.FP32)

    return dtypes


CASES = [*by_index(), *by_comparison(), *by_pattern(), *sorts(), *exhausted(), *rows_replaced(), *from_memory()]
