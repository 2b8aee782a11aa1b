"""Memories as bytes: overlaps, layouts, windows, views, padding, poison, and what the sanitizer reports."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from pto_text import ACC, COL, ND, NZ, ZN, ZZ, Kernel, equal, names, tile_type

from pypto import simulator
from pypto.pto import PtoError
from pypto.pto.types import parse_tile
from pypto.simulator.memory import Memory
from pypto.simulator.tile import SimTile

F32, F16 = np.float32, np.float16


def copy_kernel(rows: int, cols: int, kind: str, **tile) -> Kernel:
    kernel = Kernel()
    a, o = kernel.tensor(rows, cols, kind), kernel.tensor(rows, cols, kind)
    t = kernel.tile(tile_type(**{"rows": rows, "cols": cols, "dtype": kind, **tile}))
    kernel.load(a, t)
    kernel.store(t, o)
    return kernel


def line_of(error: pytest.ExceptionInfo[PtoError]) -> int:
    assert error.value.loc is not None and error.value.loc.filename == "k.py"
    return error.value.loc.begin_line


def test_overlapping_tiles_overwrite_each_other():
    kernel = Kernel()
    a, b, o = kernel.tensor(1, 16, "f32"), kernel.tensor(1, 16, "f32"), kernel.tensor(1, 16, "f32")
    first = kernel.tile(tile_type(1, 16, "f32"), addr=0)
    second = kernel.tile(tile_type(1, 16, "f32"), addr=32)
    kernel.load(a, first)
    kernel.load(b, second)
    kernel.store(first, o)
    x, y, out = np.arange(16, dtype=F32)[None], -np.arange(16, dtype=F32)[None], np.zeros((1, 16), F32)
    kernel.run(x, y, out)
    assert out.ravel().tolist() == [*range(8), *(-k for k in range(8))]


def test_another_type_at_the_same_address_sees_the_same_bytes():
    kernel = Kernel()
    a, o = kernel.tensor(1, 16, "f32"), kernel.tensor(1, 32, "i16")
    kernel.load(a, kernel.tile(tile_type(1, 16, "f32"), addr=0))
    kernel.store(kernel.tile(tile_type(1, 32, "i16"), addr=0), o)
    x, out = np.linspace(-2, 2, 16, dtype=F32)[None], np.zeros((1, 32), np.int16)
    kernel.run(x, out)
    equal(out, x.view(np.int16))


def offset(layout: str, kind: str, rows: int, cols: int, row: int, col: int) -> int:
    """Byte offset of an element, from the words of the layout figures."""
    item = np.dtype(names_to_numpy(kind)).itemsize
    if layout == ND:
        return (row * cols + col) * item
    if layout == COL:
        return (col * rows + row) * item
    box_rows, box_cols = (16, 16) if layout == ACC else (32 // item, 16) if layout == ZN else (16, 32 // item)
    down, across = row // box_rows, col // box_cols
    box = across * (rows // box_rows) + down if layout in (NZ, ACC) else down * (cols // box_cols) + across
    r, c = row % box_rows, col % box_cols
    inside = c * box_rows + r if layout == ZN else r * box_cols + c
    return (box * box_rows * box_cols + inside) * item


def names_to_numpy(kind: str):
    return {"f16": F16, "f32": F32, "i8": np.int8, "bf16": ml_dtypes.bfloat16}[kind]


@pytest.mark.parametrize(
    ("layout", "kind"),
    [(layout, kind) for layout in (ND, COL, NZ, ZZ, ZN) for kind in ("f16", "f32", "i8")] + [(ACC, "f32")],
)
def test_elements_lie_where_the_layout_says(layout, kind):
    rows, cols = 64, 96
    dtype = names_to_numpy(kind)
    text = tile_type(rows, cols, kind, loc="mat", layout=layout)
    memory = Memory("mat", 1 << 17, poison=0)
    tile = SimTile.at(parse_tile(text[len("!pto.tile_buf<") : -1]), memory, 512, (rows, cols))
    data = np.random.default_rng(0).integers(-100, 100, (rows, cols)).astype(dtype)
    tile.write(data)
    for row, col in [(0, 0), (0, 1), (1, 0), (15, 31), (16, 32), (17, 5), (63, 95), (40, 71)]:
        at = 512 + offset(layout, kind, rows, cols, row, col)
        assert memory.data[at : at + data.itemsize].view(dtype)[0] == data[row, col]
    equal(np.array(tile.read()), data)
    tile.write_at(5, 7, np.zeros((3, 11), dtype))
    data[5:8, 7:18] = 0
    equal(np.array(tile.read_at(0, 0, rows, cols)), data)


@pytest.mark.parametrize("layout", [NZ, ZN])
def test_a_partial_write_leaves_the_rest_of_a_box(layout):
    memory = Memory("mat", 1 << 14, poison=0x55)
    text = tile_type(32, 32, "f16", valid=(10, 20), loc="mat", layout=layout)
    tile = SimTile.at(parse_tile(text[len("!pto.tile_buf<") : -1]), memory, 0, (10, 20))
    before = np.array(tile.read_at(0, 0, 32, 32))
    tile.write(np.ones((10, 20), F16))
    after = np.array(tile.read_at(0, 0, 32, 32))
    assert (after[:10, :20] == 1).all()
    after[:10, :20] = before[:10, :20]
    equal(after, before)


def test_dynamic_windows_and_valid_extents():
    kernel = Kernel()
    a, o = kernel.tensor(40, 24, "f32"), kernel.tensor(40, 24, "f32")
    rows, row = kernel.param("index"), kernel.param("index")
    t = kernel.tile(tile_type(16, 32, "f32", valid=("?", 24)), row=rows)
    kernel.load(a, t, (row, 0, rows, 24))
    kernel.op("tmuls", [t, f"{kernel.param('f32')}:f32"], [t])
    kernel.store(t, o, (row, 0, rows, 24))
    x = np.random.default_rng(0).normal(size=(40, 24)).astype(F32)
    for start, count in [(0, 16), (24, 16), (33, 7), (5, 0), (39, 1)]:
        out = np.zeros((40, 24), F32)
        kernel.run(x, out, count, start, 2.0)
        want = np.zeros((40, 24), F32)
        want[start : start + count] = 2 * x[start : start + count]
        equal(out, want)
    with pytest.raises(PtoError, match=r"elements 33..41 of axis 0, which has 40") as error:
        kernel.run(x, np.zeros((40, 24), F32), 8, 33, 2.0)
    assert line_of(error) == 4
    with pytest.raises(PtoError, match="17x24 valid elements in a tile of 16x32") as error:
        kernel.run(x, np.zeros((40, 24), F32), 17, 0, 2.0)
    assert line_of(error) == 3


def test_a_view_larger_than_its_array_is_refused():
    kernel = copy_kernel(8, 16, "f32")
    with pytest.raises(PtoError, match=r"argument 0 of k reaches element 127, but the array has 100") as error:
        kernel.run(np.zeros(100, F32), np.zeros(128, F32))
    assert line_of(error) == 4


def test_column_major_tensors():
    kernel = Kernel()
    a, o = kernel.tensor(8, 16, "f32", "dn"), kernel.tensor(8, 16, "f32")
    src, dst = kernel.tile(tile_type(8, 16, "f32", layout=COL)), kernel.tile(tile_type(8, 16, "f32"))
    kernel.load(a, src)
    kernel.op("tmov", [src], [dst])
    kernel.store(dst, o)
    x, out = np.random.default_rng(0).normal(size=(16, 8)).astype(F32), np.zeros((8, 16), F32)
    kernel.run(x, out)
    equal(out, np.ascontiguousarray(x.T))


def test_nz_tensors_load_and_store_in_fractals():
    kernel = Kernel(kind="cube")
    p, o = kernel.param("!pto.ptr<f16>"), kernel.tensor(32, 48, "f16")
    c = kernel.const
    shape = [1, 3, 2, 16, 16]
    strides = [1536, 512, 256, 16, 1]
    kernel.emit(
        f"%nz = pto.make_tensor_view {p}, shape = [{', '.join(map(c, shape))}], "
        f"strides = [{', '.join(map(c, strides))}]"
        " {layout = #pto.layout<nz>} : !pto.tensor_view<?x?x?x?x?xf16>"
    )
    kernel.types["%w"] = "!pto.partition_tensor_view<1x3x2x16x16xf16>"
    kernel.emit(
        f"%w = pto.partition_view %nz, offsets = [{', '.join([c(0)] * 5)}], sizes = [{', '.join(map(c, shape))}]"
        f" : !pto.tensor_view<?x?x?x?x?xf16> -> {kernel.types['%w']}"
    )
    tile = kernel.tile(tile_type(32, 48, "f16", loc="mat", layout=NZ))
    plain = kernel.tile(tile_type(32, 48, "f16", loc="mat", layout=ND), addr=8192)
    kernel.op("tload", ["%w"], [tile])
    kernel.load(o, plain)
    data = np.arange(32 * 48, dtype=F16)
    kernel.op("tstore", [tile], ["%w"])
    loaded = data.copy()
    kernel.run(loaded, np.zeros((32, 48), F16))
    equal(loaded, data)
    memory = Memory("mat", 1 << 13, poison=0)
    view = SimTile.at(parse_tile(tile_type(32, 48, "f16", loc="mat", layout=NZ)[14:-1]), memory, 0, (32, 48))
    memory.data[: data.nbytes] = data.view(np.uint8)
    assert view.read()[17, 33] == data[2 * 512 + 256 + 16 + 1]


@pytest.mark.parametrize(("pad", "value"), [(1, 0.0), (2, np.inf), (3, -np.inf)])
def test_fill_of_the_padding(pad, value):
    kernel = Kernel()
    a, o = kernel.tensor(5, 11, "f32"), kernel.tensor(8, 16, "f32")
    t = kernel.tile(tile_type(8, 16, "f32", valid=(5, 11), pad=pad), addr=0)
    full = kernel.tile(tile_type(8, 16, "f32", pad=pad), addr=0)
    kernel.load(a, t)
    kernel.op("tfillpad", [t], [full])
    kernel.store(full, o)
    x, out = np.random.default_rng(0).normal(size=(5, 11)).astype(F32), np.zeros((8, 16), F32)
    kernel.run(x, out)
    want = np.full((8, 16), value, F32)
    want[:5, :11] = x
    equal(out, want)


def test_padding_of_integers_and_growth():
    kernel = Kernel()
    a, o = kernel.tensor(4, 16, "i16"), kernel.tensor(8, 32, "i16")
    small, large = kernel.tile(tile_type(4, 16, "i16")), kernel.tile(tile_type(8, 32, "i16", pad=3))
    kernel.load(a, small)
    kernel.op("tfillpad", [small], [large])
    kernel.store(large, o)
    x, out = np.arange(64, dtype=np.int16).reshape(4, 16), np.zeros((8, 32), np.int16)
    kernel.run(x, out)
    want = np.full((8, 32), -32768, np.int16)
    want[:4, :16] = x
    equal(out, want)


def test_subviews_and_reshapes_share_bytes():
    kernel = Kernel()
    a, o = kernel.tensor(8, 32, "f32"), kernel.tensor(8, 32, "f32")
    t = kernel.tile(tile_type(8, 32, "f32"))
    kernel.load(a, t)
    part, row = tile_type(4, 16, "f32"), tile_type(1, 256, "f32")
    kernel.types |= {"%sub": part, "%flat": row}
    kernel.emit(
        f"%sub = pto.subview {t}[{kernel.const(4)}, {kernel.const(16)}] sizes [4, 16] : {kernel.types[t]} -> {part}"
    )
    kernel.emit(f"%flat = pto.treshape {t} : {kernel.types[t]} -> {row}")
    kernel.op("tneg", ["%sub"], ["%sub"])
    kernel.op("tadds", ["%flat", f"{kernel.param('f32')}:f32"], ["%flat"])
    kernel.store(t, o)
    x, out = np.random.default_rng(0).normal(size=(8, 32)).astype(F32), np.zeros((8, 32), F32)
    kernel.run(x, out, 1.0)
    want = x.copy()
    want[4:, 16:] *= -1
    equal(out, want + F32(1))


def test_insert_and_extract_between_vector_tiles():
    kernel = Kernel()
    a, o = kernel.tensor(8, 16, "f16"), kernel.tensor(8, 32, "f16")
    small, large = kernel.tile(tile_type(8, 16, "f16")), kernel.tile(tile_type(8, 32, "f16"))
    zero, half = f"{kernel.const(0)}:index", f"{kernel.const(16)}:index"
    kernel.load(a, small)
    kernel.op("tinsert", [small, zero, half], [large])
    kernel.op("tinsert", [small, zero, zero], [large])
    kernel.op("textract", [large, zero, half], [small])
    kernel.op("tneg", [small], [small])
    kernel.op("tinsert", [small, zero, half], [large])
    kernel.store(large, o)
    x, out = np.arange(128, dtype=F16).reshape(8, 16), np.zeros((8, 32), F16)
    kernel.run(x, out)
    equal(out, np.hstack([x, -x]))


def test_atomic_stores_add_to_what_is_there():
    kernel = copy_kernel(8, 16, "f32")
    kernel.lines[-1] = kernel.lines[-1].replace(" loc(", " {atomicType = #pto<atomic_type atomic_add>} loc(")
    x = np.random.default_rng(0).normal(size=(8, 16)).astype(F32)
    out = np.full((8, 16), 3, F32)
    kernel.run(x, out)
    kernel.run(x, out)
    equal(out, (F32(3) + x) + x)


def test_a_store_may_write_less_than_its_window_and_nothing_else():
    kernel = Kernel()
    a, o = kernel.tensor(3, 5, "f32"), kernel.tensor(8, 8, "f32")
    t = kernel.tile(tile_type(8, 8, "f32", valid=(3, 5)))
    kernel.load(a, t)
    kernel.store(t, o)
    out = np.full((8, 8), 7, F32)
    kernel.run(np.ones((3, 5), F32), out)
    assert (out[:3, :5] == 1).all() and out.sum() == 15 + 7 * (64 - 15)


def test_the_sanitizer_names_the_first_element_nobody_wrote():
    kernel = Kernel()
    a, o = kernel.tensor(8, 16, "f32"), kernel.tensor(8, 16, "f32")
    t = kernel.tile(tile_type(8, 16, "f32"))
    kernel.load(a, t, (0, 0, 6, 16))
    kernel.store(t, o)
    x, out = np.ones((8, 16), F32), np.zeros((8, 16), F32)
    with pytest.raises(PtoError, match=r"32 elements that were never written, the first at \(6, 0\)") as error:
        kernel.run(x, out)
    assert line_of(error) == 7
    kernel.run(x, out, sanitize=False)
    assert np.isnan(out[6:]).all() and (out[:6] == 1).all()
    kernel.run(x, out, sanitize=False, poison=0)
    assert (out[6:] == 0).all()


def test_the_sanitizer_sees_through_fractal_layouts():
    kernel = Kernel(kind="cube")
    a = kernel.tensor(32, 32, "f16")
    m = kernel.tile(tile_type(32, 32, "f16", loc="mat", layout=NZ))
    left = kernel.tile(tile_type(32, 32, "f16", loc="left", layout=ZZ))
    kernel.load(a, m, (0, 0, 32, 20))
    kernel.op("tmov", [m], [left])
    with pytest.raises(PtoError, match=r"384 elements that were never written, the first at \(0, 20\)"):
        kernel.run(np.zeros((32, 32), F16))


def test_read_only_arrays_are_not_written():
    kernel = copy_kernel(8, 16, "f32")
    out = np.zeros((8, 16), F32)
    out.flags.writeable = False
    with pytest.raises(PtoError, match="argument 1 of k is read-only"):
        kernel.run(np.ones((8, 16), F32), out)


def test_addresses_computed_at_run_time_are_checked():
    kernel = Kernel()
    addr = kernel.param("i64")
    kernel.emit(f"%t = pto.alloc_tile addr = {addr} : {tile_type(8, 16, 'f32')}")
    kernel.run(512)
    with pytest.raises(PtoError, match="address 520 in vec is not a multiple of 32 bytes") as error:
        kernel.run(520)
    assert line_of(error) == 1
    with pytest.raises(PtoError, match="ends outside vec"):
        kernel.run(1 << 20)


def test_tiles_without_addresses_are_placed_one_after_another():
    text = copy_kernel(8, 16, "f32").text()
    text = text.replace("addr = %c0_i64 ", "")
    x, out = np.ones((8, 16), F32), np.zeros((8, 16), F32)
    report = simulator.load(text).kernels["k"].run([x, out])
    equal(out, x)
    assert report.high_water == {"vec": 512}


@pytest.mark.parametrize(
    ("args", "error", "match"),
    [
        ([np.zeros((8, 16), F32)], TypeError, "takes 2 arguments, got 1"),
        ([np.zeros((8, 16), F16), np.zeros((8, 16), F32)], TypeError, "argument 0 of k must be an array of float32"),
        ([np.zeros((16, 8), F32).T, np.zeros((8, 16), F32)], ValueError, "must be C-contiguous"),
        ([1.0, np.zeros((8, 16), F32)], TypeError, "must be an array of float32, got float"),
    ],
)
def test_arguments_that_do_not_fit(args, error, match):
    kernel = simulator.load(copy_kernel(8, 16, "f32").text()).kernels["k"]
    with pytest.raises(error, match=match):
        kernel.run(args)


def test_scalars_that_do_not_fit():
    kernel = Kernel()
    kernel.param("i32")
    sim = simulator.load(kernel.text()).kernels["k"]
    sim.run([5])
    sim.run([np.int32(-5)])
    with pytest.raises(ValueError, match="must be a i32, got 1.5"):
        sim.run([1.5])
    with pytest.raises(ValueError, match="must be a i32"):
        sim.run([1 << 40])


@pytest.mark.parametrize("kind", ["bf16", "i8", "ui16", "i64"])
def test_every_element_type_moves_through_a_tile(kind):
    dtype = {"bf16": ml_dtypes.bfloat16, "i8": np.int8, "ui16": np.uint16, "i64": np.int64}[kind]
    data = np.arange(-8, 8 + 240).reshape(8, 32).astype(dtype)
    out = np.zeros((8, 32), dtype)
    copy_kernel(8, 32, kind).run(data, out)
    equal(out, data)
    assert names(dtype) == kind


def test_scratch_is_lost_and_may_not_overlap_data():
    kernel = Kernel()
    a = kernel.tensor(8, 16, "f32")
    t, scratch = kernel.tile(tile_type(8, 16, "f32")), kernel.tile(tile_type(8, 16, "f32"))
    column = kernel.tile(tile_type(8, 1, "f32", layout=COL))
    kernel.load(a, t)
    kernel.load(a, scratch)
    kernel.op("trowsum", [t, scratch], [column])
    x = np.ones((8, 16), F32)
    kernel.run(x)
    kernel.op("tneg", [scratch], [t])
    with pytest.raises(PtoError, match="128 elements that were never written"):
        kernel.run(x)
    kernel.run(x, sanitize=False)
    kernel.lines[-2] = kernel.lines[-2].replace(f"({t}, {scratch}", f"({t}, {t}")
    with pytest.raises(PtoError, match="scratch 'tmp' at 0 overlaps 'src' at 0 in vec") as error:
        kernel.run(x)
    assert line_of(error) == 9


def test_results_may_replace_a_source_but_not_straddle_it():
    def negate(addr: int, kind: str = "f32") -> Kernel:
        kernel = Kernel()
        src = kernel.tile(tile_type(8, 16, "f32"), addr=64)
        dst = kernel.tile(tile_type(8, 16, kind), addr=addr)
        kernel.op("texpands", [f"{kernel.param('f32')}:f32"], [src])
        kernel.op("tneg" if kind == "f32" else "tcvt", [src], [dst])
        return kernel

    negate(64).run(1.0)
    negate(1024).run(1.0)
    with pytest.raises(PtoError, match="'dst' at 96 overwrites part of 'src' at 64 in vec while it is read"):
        negate(96).run(1.0)
    negate(96).run(1.0, sanitize=False)


def test_what_cannot_work_in_place_is_refused():
    kernel = Kernel()
    t = kernel.tile(tile_type(8, 8, "f32"))
    kernel.op("texpands", [f"{kernel.param('f32')}:f32"], [t])
    kernel.op("ttrans", [t], [t])
    with pytest.raises(PtoError, match="'pto.ttrans' cannot work in place"):
        kernel.run(1.0)


def test_views_that_start_off_a_block_are_reported():
    kernel = Kernel()
    t = kernel.tile(tile_type(8, 32, "f32"))
    kernel.op("texpands", [f"{kernel.param('f32')}:f32"], [t])
    part = tile_type(8, 8, "f32")
    kernel.types["%sub"] = part
    kernel.emit(
        f"%sub = pto.subview {t}[{kernel.const(0)}, {kernel.const(4)}] sizes [8, 8] : {kernel.types[t]} -> {part}"
    )
    kernel.op("tneg", ["%sub"], ["%sub"])
    with pytest.raises(PtoError, match="'src' starts at 16 in vec, not a multiple of 32 bytes") as error:
        kernel.run(1.0)
    assert line_of(error) == 4
    kernel.run(1.0, sanitize=False)


@pytest.mark.parametrize(
    ("strides", "offset", "fits"), [((16, 1), 0, True), ((-16, 1), 112, True), ((-16, 1), 0, False)]
)
def test_views_may_run_backwards_inside_their_array(strides, offset, fits):
    kernel = Kernel()
    pointer, o = kernel.param("!pto.ptr<f32>"), kernel.tensor(8, 16, "f32")
    c = kernel.const
    kernel.emit(f"%p = pto.addptr {pointer}, {c(offset)} : !pto.ptr<f32> -> !pto.ptr<f32>")
    kernel.emit(
        f"%v = pto.make_tensor_view %p, shape = [{c(8)}, {c(16)}], strides = [{c(strides[0])}, {c(1)}] "
        "{layout = #pto.layout<nd>} : !pto.tensor_view<?x?xf32>"
    )
    kernel.types["%v"] = "f32"
    t = kernel.tile(tile_type(8, 16, "f32"))
    kernel.load("%v", t)
    kernel.store(t, o)
    x, out = np.arange(128, dtype=F32), np.zeros((8, 16), F32)
    if not fits:
        with pytest.raises(PtoError, match="reaches element -112, but the array has 128"):
            kernel.run(x, out)
        return
    kernel.run(x, out)
    equal(out, x.reshape(8, 16)[:: 1 if strides[0] > 0 else -1].copy())
