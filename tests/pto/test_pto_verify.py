"""What verification refuses, and that it says where and why."""

from __future__ import annotations

import pytest
from pto_text import ACC, COL, NZ, ZN, ZZ, Kernel, tile_type

from pypto.pto import PtoError, parse_module, verify_module


def refused(kernel: Kernel, message: str, line: int | None = None, **options) -> None:
    with pytest.raises(PtoError, match=message) as error:
        verify_module(parse_module(kernel.text()), **options)
    loc = error.value.loc
    assert loc is not None and loc.filename == "k.py"
    assert line is None or loc.begin_line == line


def accepted(kernel: Kernel, **options) -> None:
    verify_module(parse_module(kernel.text()), **options)


def one(op: str, kinds: list[str], out: str, attrs: str = "", arch: str = "a2a3", scalars=()) -> Kernel:
    kernel = Kernel(arch)
    ins = [kernel.tile(kind) for kind in kinds] + [f"{kernel.param(kind)}:{kind}" for kind in scalars]
    kernel.op(op, ins, [kernel.tile(out)], attrs)
    return kernel


T = tile_type(8, 16, "f32")
SCALES = "blayout=row_major, slayout=row_major, fractal=32"


def drain(acc: str, out: str, words: str = "ui64", arch: str = "a2a3", source: str = "acc", count: int = 32) -> Kernel:
    """An accumulator of ``acc`` quantized to ``out`` with ``count`` words."""
    kernel = Kernel(arch, "cube")
    layout = ACC if source == "acc" else NZ
    src, to = tile_type(16, 32, acc, loc=source, layout=layout), tile_type(16, 32, out, loc="mat", layout=NZ)
    scale = tile_type(1, count, words, loc="scaling")
    names = [kernel.tile(kind).split(":")[0] for kind in (src, scale, to)]
    kernel.emit(f"pto.tmov ins({names[0]} : {src}, {names[1]} : {scale}) outs({names[2]} : {to})")
    return kernel


def test_what_the_fix_pipe_quantizes():
    for arch, pairs in (
        ("a2a3", {"f32": ("i8", "ui8"), "i32": ("i8", "ui8", "f16")}),
        ("a5", {"f32": ("i8", "ui8", "f16", "bf16", "f8E4M3FN"), "i32": ("i8", "ui8", "f16", "bf16")}),
    ):
        for acc, to in pairs.items():
            for out in to:
                accepted(drain(acc, out, arch=arch))
                accepted(drain(acc, out, "i64", arch=arch))
    refused(drain("f32", "f16"), "a2a3 quantizes accumulators of f32 to i8, ui8 or i32 to .*, not f32 to f16")
    refused(drain("i32", "f32", arch="a5"), "not i32 to f32")
    refused(drain("f32", "i8", "f16"), "element type f16 of 'fp' is not supported")
    refused(drain("f32", "i8", count=40), "'fp' must be a row of 64-bit words in scaling, a multiple of 16")
    refused(drain("f32", "i8", count=16), "16 words in 'fp' for the 32 columns of 'src'")
    refused(drain("i8", "i8", source="mat"), "no move from mat to mat")


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (one("tadd", [T, tile_type(8, 16, "f16")], T), "'src1' must have the element type f32 of 'dst', got f16"),
        (
            one("tadd", [tile_type(8, 16, "bf16")] * 2, tile_type(8, 16, "bf16")),
            "bf16 of 'dst' is not supported on a2a3",
        ),
        (one("tadd", [T, tile_type(8, 16, "f32", valid=(7, 16))], T), "'src1' has 7 valid rows but 'dst' has 8"),
        (
            one("tneg", [tile_type(8, 1, "f32", layout=COL)], tile_type(8, 1, "f32", layout=COL)),
            "must be blayout=row_major",
        ),
        (one("texp", [tile_type(8, 16, "i32")], tile_type(8, 16, "i32")), "element type i32 of 'dst' is not supported"),
        (one("tadds", [T], T, scalars=["f16"]), "'scalar' must be f32 like 'src', got f16"),
        (one("trowsum", [T, T], T), "'dst' must have 1 valid column, got 16"),
        (one("trowsum", [T, T], tile_type(16, 1, "f32", layout=COL)), "'dst' has 16 valid rows but 'src' has 8"),
        (one("tcolmax", [T], tile_type(8, 16, "f32")), "'dst' must have 1 valid row, got 8"),
        (one("tcvt", [tile_type(8, 16, "i32")], tile_type(8, 32, "i8", valid=(8, 16))), "no conversion from i32 to i8"),
        (one("tcmp", [T, T], tile_type(8, 32, "i32")), "i32 of 'dst' is not supported"),
        (one("tcmp", [tile_type(8, 16, "i32")] * 2, tile_type(8, 32, "i8"), "cmpMode = #pto<cmp lt>"), "equality only"),
        (one("tsel", [tile_type(4, 32, "i8"), T, T], T), "'mask' must have rows of 2 bytes"),
        (one("tfillpad", [T], T), "must state a pad other than null"),
        (
            one("tmov", [T], tile_type(8, 16, "f32", loc="left", layout=ZZ, valid=(8, 16))),
            "not made of whole 16x8 boxes",
        ),
        (
            one("tmov", [tile_type(16, 16, "f32")], tile_type(16, 16, "f32", loc="mat", layout=NZ)),
            "no move from vec to mat",
        ),
        (one("tci", [], tile_type(8, 1, "i32", layout=COL), scalars=["i32"]), "row_major"),
        (one("tdivs", [T], tile_type(8, 16, "f16"), scalars=["f32"]), "'src' must have the element type f16"),
    ],
)
def test_instructions_refuse_what_they_cannot_do(kernel, message):
    refused(kernel, message)


def test_architectures_differ():
    bf16 = tile_type(8, 16, "bf16")
    accepted(one("tadd", [bf16, bf16], bf16, arch="a5"))
    accepted(one("tmov", [tile_type(16, 16, "f32")], tile_type(16, 16, "f32", loc="mat", layout=NZ), arch="a5"))


def cube(a: str, b: str, c: str) -> Kernel:
    return one("tmatmul", [a, b], c)


A, B = tile_type(16, 32, "f16", loc="left", layout=ZZ), tile_type(32, 16, "f16", loc="right", layout=ZN)
C = tile_type(16, 16, "f32", loc="acc", layout=ACC)


def test_products():
    accepted(cube(A, B, C))
    refused(cube(B, A, C), "'lhs' must be in left, got a right tile")
    refused(cube(A, B, tile_type(16, 16, "i32", loc="acc", layout=ACC)), "no product of f16 x f16 to i32")
    refused(cube(A, tile_type(64, 16, "f16", loc="right", layout=ZN), C), "16x32 times 64x16 does not give 16x16")
    refused(cube(A, B, tile_type(16, 16, "f32", loc="acc", layout=ACC, valid=(9, 16))), "valid rows differ: 16 and 9")
    refused(cube(tile_type(16, 32, "f16", loc="left", layout=NZ), B, C), "a tile in left of a2a3 has blayout=row_major")
    refused(cube(A, B, tile_type(16, 16, "f32", loc="acc", layout=NZ)), "fractal=1024")


def test_buffers_fit_their_memory():
    kernel = Kernel()
    kernel.tile(tile_type(512, 128, "f32"))
    refused(kernel, "262144 bytes does not fit vec, which has 188416")
    kernel = Kernel()
    kernel.tile(tile_type(64, 128, "f32"), addr=180 * 1024)
    refused(kernel, "ends outside vec, which has 188416 bytes")
    kernel = Kernel()
    kernel.tile(T, addr=48)
    refused(kernel, "address 48 in vec is not a multiple of 32 bytes")
    kernel = Kernel()
    kernel.tile(tile_type(8, 6, "f32"))
    refused(kernel, "a row of 6 f32 is not a multiple of 32 bytes")
    kernel = Kernel()
    kernel.tile(tile_type(20, 16, "f16", loc="mat", layout=NZ))
    refused(kernel, "20x16 tile is not made of whole 16x16 boxes")
    kernel = Kernel()
    kernel.tile(tile_type(8, 16, "f32", valid=(9, 16)))
    refused(kernel, "9 valid rows in a tile with 8")
    kernel = Kernel()
    kernel.tile(tile_type(8, 16, "f32", valid=("?", 16)), row=kernel.const(9))
    refused(kernel, "9 valid rows in a tile with 8")
    kernel = Kernel()
    kernel.tile(tile_type(16, 16, "!pto.f8E8M0", loc="scaling", layout=SCALES))
    refused(kernel, "a2a3 has no memory 'scaling' for tiles of slayout=row_major")


def test_planned_modules_need_addresses():
    kernel = Kernel()
    kernel.emit(f"%t = pto.alloc_tile : {T}")
    accepted(kernel)
    refused(kernel, "needs an addr operand", require_addresses=True)


def test_windows_stay_inside_constant_extents():
    kernel = Kernel()
    view = kernel.tensor(8, 16, "f32")
    kernel.window(view, 0, 8, 8, 16)
    refused(kernel, "elements 8..24 of axis 1 are outside its 16", line=2)
    kernel = Kernel()
    view, row = kernel.tensor(8, 16, "f32"), kernel.param("index")
    kernel.window(view, row, 0, 8, 16)
    accepted(kernel)
    kernel.window(view, row, 0, 9, 16)
    refused(kernel, "0..9 of axis 0 are outside its 8", line=3)


def test_window_types_agree_with_their_sizes():
    kernel = Kernel()
    view = kernel.tensor(8, 16, "f32")
    kernel.window(view, 0, 0, 4, 16)
    kernel.lines[-1] = kernel.lines[-1].replace("partition_tensor_view<4x16xf32>", "partition_tensor_view<5x16xf32>")
    refused(kernel, "size 4 on axis 0 but the type says 5")
    kernel.lines[-1] = kernel.lines[-1].replace("5x16xf32", "16xf32")
    refused(kernel, "2 offsets and a window of rank 1 on a view of rank 2")
    kernel.lines[-1] = kernel.lines[-1].replace("<16xf32", "<4x16xf16")
    refused(kernel, "element type f16 of a window of f32")


def nz(shape: list[int], strides: list[int], dtype: str = "f16") -> Kernel:
    kernel = Kernel(kind="cube")
    pointer = kernel.param(f"!pto.ptr<{dtype}>")
    dims = "x".join("?" * len(shape))
    kernel.emit(
        f"%v = pto.make_tensor_view {pointer}, shape = [{', '.join(map(kernel.const, shape))}], "
        f"strides = [{', '.join(map(kernel.const, strides))}] {{layout = #pto.layout<nz>}} : "
        f"!pto.tensor_view<{dims}x{dtype}>"
    )
    return kernel


def test_nz_views():
    accepted(nz([1, 2, 4, 16, 16], [2048, 1024, 256, 16, 1]))
    refused(nz([64, 32], [32, 1]), "user-specified layout=nz requires a rank-5 view, got rank 2", line=1)
    refused(nz([1, 2, 4, 16, 8], [1024, 512, 128, 8, 1]), r"\[B, C/16, R/16, 16, 16\], got 8 on axis 4")
    refused(nz([1, 2, 4, 16, 16], [2048, 1024, 256, 32, 1]), r"inner strides \[256, 16, 1\]")
    kernel = nz([1, 2, 4, 16, 16], [2048, 1024, 256, 16, 1])
    c = kernel.const
    kernel.emit(
        f"%w = pto.partition_view %v, offsets = [{', '.join([c(0)] * 5)}], "
        f"sizes = [{c(1)}, {c(2)}, {c(4)}, {c(8)}, {c(16)}] : "
        "!pto.tensor_view<?x?x?x?x?xf16> -> !pto.partition_tensor_view<1x2x4x8x16xf16>"
    )
    refused(kernel, "must keep the two innermost axes whole", line=2)


def test_loads_and_stores_join_matching_layouts():
    kernel = Kernel()
    view = kernel.tensor(8, 1, "f32")
    kernel.load(view, kernel.tile(tile_type(8, 1, "f32", layout=COL)))
    refused(kernel, "layout nd and a tile in vec with blayout=col_major, slayout=none_box; that tile takes dn")
    kernel = Kernel()
    view = kernel.tensor(8, 16, "f32", "dn")
    kernel.load(view, kernel.tile(T))
    refused(kernel, "that tile takes nd")
    kernel = Kernel(kind="cube")
    kernel.load(kernel.tensor(32, 16, "f16", "dn"), kernel.tile(tile_type(32, 16, "f16", loc="mat", layout=ZN)))
    accepted(kernel)
    kernel = Kernel()
    kernel.load(kernel.tensor(8, 16, "f16"), kernel.tile(T))
    refused(kernel, "'dst' has 4-byte elements \\(f32\\) but 'src' 2-byte")
    kernel = Kernel()
    kernel.load(kernel.tensor(16, 16, "f32"), kernel.tile(T))
    refused(kernel, "window of 16 rows does not fit a tile of 8x16")


def store(tile: str, dtype: str, attrs: str = "", arch: str = "a2a3") -> Kernel:
    kernel = Kernel(arch)
    rows, cols = (16, 16)
    kernel.store(kernel.tile(tile), kernel.tensor(rows, cols, dtype), attrs=attrs)
    return kernel


def test_stores():
    accepted(store(C, "bf16"))
    refused(store(C, "i32"), "an f32 accumulator cannot be stored as i32")
    refused(store(C, "i8"), "a2a3 does not store an accumulator as i8")
    refused(store(tile_type(16, 16, "i32", loc="acc", layout=ACC), "f16"), "stored as i32, not f16")
    tile = tile_type(16, 16, "f32")
    refused(store(tile, "f32", "reluPreMode = #pto<relu_pre_mode normal_relu>"), "reluPreMode needs a source in acc")
    bf16 = tile_type(16, 16, "bf16")
    add = "atomicType = #pto<atomic_type atomic_add>"
    accepted(store(bf16, "bf16", add))
    refused(store(bf16, "bf16", add, arch="a5"), "a5 has no atomic_add of bf16")


def view_of(kernel: Kernel, text: str, result: str) -> None:
    kernel.types["%s"] = result
    kernel.emit(f"%s = {text} -> {result}")


def test_views_of_tiles():
    def sub(offsets, sizes, result, source=T):
        kernel = Kernel()
        tile = kernel.tile(source)
        i, j = (kernel.const(value) for value in offsets)
        view_of(kernel, f"pto.subview {tile}[{i}, {j}] sizes {sizes} : {source}", result)
        return kernel

    accepted(sub((4, 8), [4, 8], tile_type(4, 8, "f32")))
    refused(sub((4, 8), [4, 8], tile_type(4, 16, "f32")), "sizes .* but the type is 4x16", line=2)
    refused(sub((6, 8), [4, 8], tile_type(4, 8, "f32")), "are outside a tile of 8x16")
    refused(sub((4, 8), [4, 8], tile_type(4, 8, "i32")), "dtype i32 of a view of a tile with f32")
    boxed = tile_type(64, 32, "f16", loc="mat", layout=NZ)
    accepted(sub((0, 16), [64, 16], tile_type(64, 16, "f16", loc="mat", layout=NZ), boxed))
    refused(sub((16, 0), [32, 32], tile_type(32, 32, "f16", loc="mat", layout=NZ), boxed), "keeps all its rows")
    refused(sub((0, 8), [64, 16], tile_type(64, 16, "f16", loc="mat", layout=NZ), boxed), "multiples of 16")


def test_reshapes_keep_bytes_and_kind():
    def reshape(result, source=T):
        kernel = Kernel()
        tile = kernel.tile(source)
        view_of(kernel, f"pto.treshape {tile} : {source}", result)
        return kernel

    accepted(reshape(tile_type(1, 128, "f32")))
    accepted(reshape(tile_type(1, 8, "f32"), tile_type(8, 1, "f32", layout=COL)))
    refused(reshape(tile_type(1, 64, "f32")), "512 bytes seen as 256 bytes")
    refused(reshape(tile_type(8, 16, "f32", loc="mat")), "cannot move a tile from vec to mat")


def test_valid_shapes_change_only_where_the_type_is_open():
    kernel = Kernel()
    tile = kernel.tile(T)
    kernel.emit(f"pto.set_validshape {tile}, {kernel.const(1)}, {kernel.const(1)} : {T}")
    refused(kernel, "needs a tile type with v_row=\\? and v_col=\\?", line=2)


def test_scalars_through_pointers():
    kernel = Kernel()
    pointer = kernel.param("!pto.ptr<f32>")
    kernel.emit(f"%v = pto.load_scalar {pointer}[{kernel.const(0)}] : !pto.ptr<f32> -> f16")
    refused(kernel, "a f16 through a pointer to f32", line=1)
    kernel = Kernel()
    tile = kernel.tile(T)
    kernel.emit(f"%v = pto.tgetval ins({tile}, {kernel.const(128)} : {T}, index) outs : f32")
    refused(kernel, "element 128 of a tile of 128")


def test_unknown_architecture_and_broken_arith():
    kernel = Kernel("a7")
    with pytest.raises(PtoError, match="unknown pto.target_arch 'a7', expected a2a3 or a5"):
        verify_module(parse_module(kernel.text()))
    bad = "module {\n func.func @f(%a: i32) -> i32 {\n  return\n }\n}"
    with pytest.raises(PtoError, match="func.return") as error:
        verify_module(parse_module(bad))
    assert error.value.loc is not None and error.value.loc.begin_line == 3


def test_errors_can_be_pickled():
    import pickle

    kernel = one("tadd", [T, tile_type(8, 16, "f16")], T)
    with pytest.raises(PtoError) as error:
        verify_module(parse_module(kernel.text()))
    copy = pickle.loads(pickle.dumps(error.value))
    assert copy.message == error.value.message and copy.loc == error.value.loc


def open_tiles(rows: int, other: int, widen: bool = False) -> Kernel:
    """A sum of two tiles whose types leave their valid regions to operands."""
    kernel = Kernel()
    kind = tile_type(8, 16, "f32", valid=("?", "?"))
    names = [kernel.tile(kind, row=kernel.const(n), col=kernel.const(16)) for n in (rows, other)]
    if widen:
        kernel.emit(f"pto.set_validshape {names[0]}, {kernel.const(other)}, {kernel.const(16)} : {kind}")
    kernel.emit(f"pto.tadd ins({names[0]}, {names[1]} : {kind}, {kind}) outs({names[1]} : {kind})")
    return kernel


def test_constant_operands_tell_what_the_type_of_a_tile_leaves_open():
    accepted(open_tiles(5, 5))
    refused(open_tiles(4, 5), "'src0' has 4 valid rows but 'dst' has 5")


def test_a_valid_region_that_is_set_later_is_not_known():
    accepted(open_tiles(4, 5, widen=True))


def test_an_extent_is_within_its_tile_without_an_address_too():
    kernel = Kernel()
    kernel.emit(f"%t = pto.alloc_tile valid_row = {kernel.const(9)} valid_col = {kernel.const(16)} : "
                + tile_type(8, 16, "f32", valid=("?", "?")))  # fmt: skip
    refused(kernel, "9 valid rows in a tile with 8")


@pytest.mark.parametrize(
    ("ins", "outs", "message"),
    [
        (["s"], ["d"], "takes one of indices, a kValue and a maskPattern"),
        (["s", "k", "t"], ["d"], "has a 'cdst' when it compares with a kValue, and only then"),
        (["s", "i", "t"], ["d", "c"], "has a 'cdst' when it compares with a kValue, and only then"),
        (["s", "k"], ["d", "c"], "needs 'tmp'"),
        (["s", "k", "t"], ["s", "c"], "element type f32 of 'dst' is not supported"),
    ],
)
def test_forms_of_a_gather_in_text(ins, outs, message):
    made = Kernel()
    kinds = {"s": "f32", "i": "i32", "d": "i32", "c": "i32", "t": "ui8"}
    tiles = {name: made.tile(tile_type(8, 32, kind)) for name, kind in kinds.items()}
    tiles["k"] = f"{made.param('f32')}:f32"
    made.op("tgather", [tiles[name] for name in ins], [tiles[name] for name in outs])
    refused(made, message)


def test_a_reshaped_tile_has_extents_of_its_own():
    kernel = Kernel()
    source, result = tile_type(8, 16, "f32"), tile_type(16, 8, "f32", valid=("?", 8))
    kernel.emit(f"%r = pto.treshape {kernel.tile(source)} : {source} -> {result}")
    refused(kernel, "the valid extents of the result must be constants")


def test_scratch_of_the_places_of_row_maxima_on_the_target_that_uses_it():
    column = tile_type(16, 1, "i32", layout=COL)

    def found(columns: int, scratch: str, arch: str = "a2a3") -> Kernel:
        return one("trowargmax", [tile_type(16, columns, "f32"), scratch], column, arch=arch)

    accepted(found(64, tile_type(1, 8, "f32")))
    accepted(found(128, tile_type(16, 16, "f32")))
    accepted(found(128, tile_type(1, 8, "f32"), "a5"))
    refused(found(128, tile_type(16, 8, "f32")), "16 rows of 'src' and 16 columns, or its shape")
    refused(found(128, tile_type(8, 16, "f32")), "16 rows of 'src' and 16 columns, or its shape")
    refused(found(128, tile_type(16, 16, "i32")), "'tmp' must have the element type f32")


def test_what_expands_along_rows_is_a_column_or_a_block_of_copies():
    matrix, block = tile_type(16, 64, "f32"), tile_type(16, 8, "f32")
    accepted(one("trowexpandmul", [matrix, block], matrix))
    accepted(one("trowexpandmul", [block, matrix], matrix))
    accepted(one("trowexpandmul", [matrix, tile_type(16, 1, "f32", layout=COL)], matrix))
    refused(one("trowexpandmul", [matrix, tile_type(16, 16, "f32")], matrix), "or a block of 32 bytes a row")
    refused(one("trowexpandmul", [matrix, matrix], matrix), "one source must have the valid elements of 'dst'")
    single = tile_type(16, 1, "f32", layout=COL)
    refused(one("tcolexpand", [single], tile_type(16, 8, "f32", valid=(16, 1))), "must be blayout=row_major")


def test_gathered_elements_have_no_gaps_and_two_bytes_at_least_on_one_target():
    ragged, whole = tile_type(4, 32, "f32", valid=(4, 20)), tile_type(4, 32, "f32")
    index = tile_type(4, 32, "i32")
    accepted(one("tgather", [whole, index, index], whole))
    refused(one("tgather", [whole, index], whole), "needs 'tmp' to gather by index")
    accepted(one("tgather", [whole, index], whole, arch="a5"))
    cut = tile_type(4, 32, "i32", valid=(4, 20))
    refused(one("tgather", [whole, cut, cut], ragged), "'dst' must have all its 32 columns valid, got 20")
    pattern = "maskPattern = #pto.mask_pattern<P0101>"
    masked = [tile_type(4, 64, "i8")], tile_type(4, 32, "i8"), pattern
    accepted(one("tgather", *masked, arch="a5"))
    refused(one("tgather", *masked), "'src' must have 2 or 4-byte elements, got i8")


def test_places_and_scalars_of_the_types_the_library_has():
    row, matrix = tile_type(1, 32, "i16"), tile_type(8, 32, "f16")
    refused(one("tcolargmax", [matrix, matrix], row, arch="a5"), "element type i16 of 'dst'")
    half = tile_type(8, 32, "f16")
    refused(one("tfmods", [half], half, scalars=["f16"]), "element type f16 of 'dst'")
    accepted(one("tfmods", [half], half, arch="a5", scalars=["f16"]))
    byte = tile_type(8, 32, "i8")
    for op, scalars in (("tmuls", ["i8"]), ("tdivs", ["i8"]), ("tneg", [])):
        refused(one(op, [byte], byte, arch="a5", scalars=scalars), "element type i8 of 'dst'")


def test_what_only_vectors_store_and_fill():
    boxed = tile_type(16, 32, "f16", loc="mat", layout=NZ)
    refused(one("tfillpad", [boxed], boxed.replace("pad=0", "pad=2")), "a tile in mat is filled with zeros")
    accepted(one("tfillpad", [boxed], boxed.replace("pad=0", "pad=1")))
