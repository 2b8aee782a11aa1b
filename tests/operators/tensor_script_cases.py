"""Numeric cases of operators on tensors that are not one tile operator on the same arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
from cast_cases import converted
from cube_cases import acc, product
from elementwise_cases import ADD, BINARY, with_scalar
from gather_cases import MATCHES, PATTERNS, comparable, distinct, first_matches, matching, positions, sorted_runs
from operator_harness import Case, Script, Vector, fixed
from operator_values import Array, is_float, small, wrap
from references import combined, doubled, padded, reshaped, same, same_bytes

from pypto.backend import ASCEND910B, Target
from pypto.dtypes import DataType

D = DataType
USUAL = fixed(D.INT16, D.INT32, D.FP16, D.FP32)
OPERANDS = fixed(D.FP16, D.BF16, D.FP32, D.INT8)


def script(
    op: str,
    expr: str,
    inputs: Any,
    output: Any,
    reference: Any,
    dtypes: Any = USUAL,
    name: str = "",
    before: str = "",
    at: str = "[0, 0]",
    **more: Any,
) -> Case:
    """``y0`` assembled from the value of ``expr``."""
    lines = [line for line in before.strip("\n").split("\n") if line]
    body = "\n".join([*lines, f"y0 = pl.assemble(y0, {expr}, {at})"])
    return Script(op, body, inputs, [output], reference, tensors=True, **more).case(dtypes, name)


def scalar_forms() -> list[Case]:
    cases = []
    for name in ("maximum", "minimum"):
        vector = Vector(
            f"tensor.{name}",
            f"pl.tensor.{name}(a, {{s}})",
            "mn",
            with_scalar(BINARY[name]),
            ulp=0.5,
            scalars=[3, -1],
            tensors=True,
            regions=((16, 64), (5, 19)),
        )
        cases.append(vector.case(lambda target: USUAL(target) if target is ASCEND910B else (), "scalar"))
    return cases


def copies() -> list[Case]:
    square, tall = (16, 64), (32, 32)

    def window(x: Array, i: int, j: int, m: int, n: int, y: Array) -> None:
        y[:m, :n] = ADD(x[i : i + m, j : j + n], x[i : i + m, j : j + n])

    def part(x: Array, i: int, j: int, y: Array) -> None:
        y[i : i + 8, j : j + 32] = x

    def joined(a: Array, b: Array, y: Array) -> None:
        y[:, :64], y[:, 64:] = a, b

    def raised(x: Array, y: Array) -> None:
        y[...] = ADD(x, np.full_like(x, 64))

    def repeated(x: Array, y: Array) -> None:
        y[...] = np.broadcast_to(x, y.shape)

    twice = "pl.tensor.add(s, s)"
    doubled_window = "s = pl.tensor.slice(x0, [8, 32], [i0, i1], valid_shape=[i2, i3])"
    return [
        script("tensor.reshape", "pl.tensor.reshape(x0, [32, 32])", [square], tall, reshaped),
        script(
            "tensor.reinterpret_view",
            "pl.tensor.reinterpret_view(x0, pl.INT32)",
            [square],
            (square, D.INT32),
            same_bytes,
            fixed(D.FP32),
        ),
        script(
            "tensor.slice",
            twice,
            [(32, 128)],
            (8, 32),
            window,
            before=doubled_window,
            runs=((0, 0, 8, 32), (24, 96, 8, 32), (5, 32, 3, 7), (3, 64, 0, 32)),
        ),
        script("tensor.assemble", "x0", [(8, 32)], square, part, at="[i0, i1]", runs=((0, 0), (8, 32), (3, 17))),
        script("tensor.concat", "pl.tensor.concat(x0, x1)", [square, square], (16, 128), joined),
        script(
            "tensor.set_validshape",
            twice,
            [square],
            square,
            doubled,
            before="s = pl.tensor.set_validshape(x0, i0, i1)",
            runs=((16, 64), (5, 19), (0, 64)),
        ),
        script(
            "tensor.create",
            "t",
            [square],
            square,
            same,
            before="t = pl.create_tensor([16, 64], dtype={T})\nt = pl.assemble(t, x0, [0, 0])",
        ),
        script(
            "tensor.dim",
            "pl.tensor.adds(x0, pl.cast(pl.tensor.dim(x0, 1), {T}))",
            [square],
            square,
            raised,
            fixed(D.INT32),
        ),
        script("tensor.view", "pl.tensor.view(x0, [32, 32])", [square], tall, reshaped),
        *(
            Script(
                "tensor.expand_clone",
                "y0 = pl.tensor.expand_clone(x0, y0)",
                [shape],
                [(4, 8, 32)],
                repeated,
                tensors=True,
            ).case(USUAL, str(shape.index(1)))
            for shape in ((1, 8, 32), (4, 1, 32), (4, 8, 1))
        ),
    ]


def filled() -> list[Case]:
    cases: list[Case] = []

    def constant(y: Array) -> None:
        y[...] = 5

    cases.append(script("tensor.full", "pl.tensor.full([16, 64], dtype={T}, value=5)", [], (16, 64), constant))
    cases.append(
        script("tensor.ci", "pl.tensor.ci(5, [1, 64], dtype={T})", [], (1, 64), _counted, fixed(D.INT16, D.INT32))
    )
    for mode in ("zero", "max", "min"):
        for name, expr, shape in (
            ("fillpad", "pl.tensor.fillpad(s, pad_value=pl.PadValue.MODE)", (16, 64)),
            ("fillpad_expand", "pl.tensor.fillpad_expand(s, [24, 128], pad_value=pl.PadValue.MODE)", (24, 128)),
        ):
            cases.append(
                script(
                    f"tensor.{name}",
                    expr.replace("MODE", mode),
                    [(16, 64)],
                    shape,
                    padded(mode),
                    USUAL,
                    mode,
                    before="s = pl.slice(x0, [16, 64], [0, 0], valid_shape=[i0, i1])",
                    runs=((16, 64), (5, 19), (0, 64)),
                )
            )
    return cases


def _counted(y: Array) -> None:
    y[0] = np.arange(5, 69)


def partial() -> list[Case]:
    cases = []
    for name, function in (("add", np.add), ("mul", np.multiply), ("max", np.maximum), ("min", np.minimum)):
        cases.append(
            script(
                f"tensor.part_{name}",
                f"pl.tensor.part_{name}(x0, s)",
                [(16, 64), (16, 64)],
                (16, 64),
                combined(function),
                before="s = pl.slice(x1, [16, 64], [0, 0], valid_shape=[i0, i1])",
                ulp=0.5,
                runs=((16, 64), (5, 19), (0, 64)),
            )
        )
    return cases


def conversions() -> list[Case]:
    cases = []
    for source, to in ((D.FP32, D.FP16), (D.FP32, D.BF16), (D.FP32, D.INT32), (D.FP16, D.FP32), (D.INT32, D.FP32)):
        for mode in ("rint", "round", "floor", "ceil", "trunc"):

            def cast(x: Array, y: Array, mode: str = mode) -> None:
                y[...] = converted(x, y.dtype, mode)

            cases.append(
                script(
                    "tensor.cast",
                    f"pl.tensor.cast(x0, pl.{to.name}, mode={mode!r})",
                    [(8, 32)],
                    ((8, 32), to),
                    cast,
                    fixed(source),
                    f"{to.name}-{mode}",
                )
            )
    return cases


def compared() -> list[Case]:
    cases: list[Case] = []
    for code, function in enumerate((np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)):

        def holds(a: Array, b: Array, m: int, n: int, y: Array, function: Any = function) -> None:
            y[:m, :n] = function(a[:m, :n], b[:m, :n])

        def above(a: Array, y: Array, function: Any = function) -> None:
            y[...] = function(a, a.dtype.type(1))

        both = """
a = pl.slice(x0, [16, 64], [0, 0], valid_shape=[i0, i1])
b = pl.slice(x1, [16, 64], [0, 0], valid_shape=[i0, i1])
"""
        expr = f"pl.tensor.cmp(a, b, cmp_type={code})"
        square = (16, 64)
        runs = (square, (5, 19), (0, 64))
        dtypes = fixed(D.FP16, D.FP32, D.INT32) if code == 0 else fixed(D.FP16, D.FP32)
        cases.append(script("tensor.cmp", expr, [square] * 2, square, holds, dtypes, str(code), both, runs=runs))
        scalar = f"pl.tensor.cmp(x0, 1, cmp_type={code})"
        cases.append(script("tensor.cmp", scalar, [square], square, above, dtypes, f"{code}-scalar"))
    return cases


def products() -> list[Case]:
    def on_tensors(op: str, lines: str, inputs: Any, output: Any, reference: Any, name: str = "") -> Case:
        def run(dtype: DataType, target: Target) -> None:
            out, text = (output, acc(dtype)), lines.replace("{O}", f"pl.{acc(dtype).name}")
            Script(op, text, inputs, [out], reference, make=small, tensors=True).run(dtype, target)

        return Case(op, name, run, OPERANDS)

    def matmul(a: Array, b: Array, y: Array) -> None:
        y[...] = product(a, b)

    def turned(a: Array, b: Array, y: Array) -> None:
        y[...] = product(a, b.T)

    def accumulated(a: Array, b: Array, y: Array) -> None:
        total = product(a, b)
        y[...] = total + total if is_float(total.dtype) else wrap(2 * total.astype(object), total.dtype)

    plain = "y0 = pl.assemble(y0, pl.tensor.matmul(x0, x1, out_dtype={O}), [0, 0])"
    transposed = "y0 = pl.assemble(y0, pl.tensor.matmul(x0, x1, out_dtype={O}, b_trans=True), [0, 0])"
    more = """acc = pl.tensor.matmul(x0, x1, out_dtype={O})
acc = pl.tensor.matmul_acc(acc, x0, x1)
y0 = pl.assemble(y0, acc, [0, 0])"""
    shapes = [(32, 64), (64, 32)]
    return [
        on_tensors("tensor.matmul", plain, shapes, (32, 32), matmul),
        on_tensors("tensor.matmul", transposed, [(32, 64), (32, 64)], (32, 32), turned, "b_trans"),
        on_tensors("tensor.matmul_acc", more, shapes, (32, 32), accumulated),
    ]


def indexed() -> list[Case]:
    def gathered(x: Array, index: Array, y: Array) -> None:
        y[...] = np.take_along_axis(x, index, axis=1)

    def scattered(x: Array, index: Array, s: Array, y: Array) -> None:
        y[...] = x
        for i in range(x.shape[0]):
            for at, value in zip(index[i], s[i]):
                y[i, at] = value

    index = ((16, 32), D.INT32)
    cases = [
        script(
            "tensor.gather",
            "pl.tensor.gather(x0, dim=-1, index=x1)",
            [(16, 64), index],
            (16, 32),
            gathered,
            make=_columns(64),
        )
    ]
    for dtypes, kind in ((fixed(D.INT32, D.FP32), D.INT32), (fixed(D.INT16, D.FP16), D.INT16)):
        cases.append(
            script(
                "tensor.scatter",
                "pl.tensor.scatter(x0, dim=-1, index=x1, src=x2)",
                [(16, 64), ((16, 32), kind), (16, 32)],
                (16, 64),
                scattered,
                dtypes,
                kind.name,
                make=_columns(64),
            )
        )
    step, first = PATTERNS[2]

    def marked(x: Array, y: Array) -> None:
        y[...] = x[:, first::step]

    cases.append(
        script("tensor.gather_mask", "pl.tensor.gather_mask(x0, mask_pattern=2)", [(16, 64)], (16, 32), marked)
    )

    def spread(x: Array, old: Array, y: Array) -> None:
        y[...] = old
        y[:, first::step] = x

    written = "pl.tensor.scatter_mask(x0, dst=x1, mask_pattern=2)"
    cases.append(script("tensor.scatter_mask", written, [(16, 64), (16, 128)], (16, 128), spread))

    def copied(x: Array, i: int, y: Array) -> None:
        y[...] = 0
        y[4:6] = x[i : i + 2]

    cases.append(
        script(
            "tensor.gather_row",
            "a",
            [(20, 64)],
            (16, 64),
            copied,
            runs=((0,), (18,)),
            before="a = pl.tensor.full([16, 64], dtype={T}, value=0)\n"
            "a = pl.tensor.gather_row(a, x0, [4, 0], [i0, 0], [2, 64])",
        )
    )
    return cases


def paged() -> list[Case]:
    def replaced(x: Array, index: Array, s: Array, y: Array) -> None:
        y[...] = x
        for at, row in zip(index.ravel(), s):
            y[at] = row

    def from_pages(x: Array, index: Array, table: Array, y: Array) -> None:
        y[...] = x[table[0, index[0] // 8] * 8 + index[0] % 8]

    cases: list[Case] = []
    for dtypes, kind in ((fixed(D.INT32, D.FP32), D.INT32), (fixed(D.INT16, D.FP16), D.INT16)):
        cases.append(
            script(
                "tensor.scatter_update",
                "pl.tensor.scatter_update(x0, dim=-2, index=x1, src=x2)",
                [(32, 64), ((1, 8), D.INT32), (8, 64)],
                (32, 64),
                replaced,
                dtypes,
                kind.name,
                make=_rows(32),
            )
        )
    pages = "pl.tensor.paged_gather(x0, x1, x2, block_size=8, size=64, max_indices=16, space=pl.Mem.Vec)"
    inputs = [(64, 64), ((1, 16), D.INT32), ((1, 8), D.INT32)]
    compared = """
found, counts = pl.tensor.gather_compare(x0, pl.tensor.read(x1, [0]), cmp_mode="eq", out_cols=8)
y0 = pl.assemble(y0, found, [0, 0])
y1 = pl.assemble(y1, counts, [0, 0])
"""
    outputs = [((16, MATCHES), D.INT32), ((1, 16), D.INT32)]
    cases.append(
        Script("tensor.gather_compare", compared, [(16, 64), (1,)], outputs, first_matches("eq", 0),
               make=matching("eq"), tensors=True).case(comparable("eq"))
    )  # fmt: skip
    cases.append(script("tensor.paged_gather", pages, inputs, (16, 64), from_pages, make=_pages))
    return cases


def _pages(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
    """A pool of 8 pages of 8 rows, 16 logical rows, and the page of each block."""
    if along == 2:
        return rng.permutation(8).astype(dtype).reshape(shape)
    return positions(64)(dtype, shape, rng, along)


def _rows(limit: int) -> Any:
    data = positions(limit)
    return lambda dtype, shape, rng, along=0: data(dtype, shape, rng, 1 if along == 1 else 0)


def _columns(limit: int) -> Any:
    """Data, and in the second operand columns, each once a row."""
    data = positions(limit)

    def make(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
        if along != 1:
            return data(dtype, shape, rng, 0)
        return np.stack([rng.permutation(limit)[: shape[1]] for _ in range(shape[0])]).astype(dtype)

    return make


def sorted_() -> list[Case]:
    cases: list[Case] = []
    for dtype, factor in ((D.FP32, 2), (D.FP16, 4)):

        def blocks(x: Array, index: Array, y: Array) -> None:
            y[...] = sorted_runs(x, index, 32)

        def whole(x: Array, index: Array, y: Array) -> None:
            y[...] = sorted_runs(x, index, x.shape[1])

        before = "a = pl.tensor.sort32(x0, x1)\nb = pl.tensor.sort32(x2, x3)"

        def both(x: Array, i: Array, z: Array, j: Array, y: Array) -> None:
            y[...] = sorted_runs(np.concatenate([x, z], 1), np.concatenate([i, j], 1), 64)

        run = [(1, 32), ((1, 32), D.UINT32)]
        cases.append(
            script(
                "tensor.mrgsort_format2",
                "pl.tensor.mrgsort_format2(a, b)",
                [*run, *run],
                (1, 64 * factor),
                both,
                fixed(dtype),
                make=distinct,
                before=before,
            )
        )
        row = [(1, 128), ((1, 128), D.UINT32)]
        cases.append(
            script(
                "tensor.sort32",
                "pl.tensor.sort32(x0, x1)",
                [(4, 64), ((4, 64), D.UINT32)],
                (4, 64 * factor),
                blocks,
                fixed(dtype),
                make=distinct,
            )
        )
        cases.append(
            script(
                "tensor.mrgsort_format1",
                f"pl.tensor.mrgsort_format1(s, {32 * factor})",
                row,
                (1, 128 * factor),
                whole,
                fixed(dtype),
                make=distinct,
                before="s = pl.tensor.sort32(x0, x1)",
            )
        )
    return cases


CASES = [
    *scalar_forms(),
    *copies(),
    *filled(),
    *partial(),
    *conversions(),
    *compared(),
    *products(),
    *indexed(),
    *paged(),
    *sorted_(),
]
