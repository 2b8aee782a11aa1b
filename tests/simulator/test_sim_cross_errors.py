"""What is refused, reported or named when kernels on both kinds of core disagree: the text of a good one is spoiled."""

from __future__ import annotations

import re

import numpy as np
import pytest
from cross_programs import cube_to_vector, vector_to_cube

import pypto.language as pl
from pypto import simulator
from pypto.pto.errors import PtoError


def line_of(text: str, what: str) -> str:
    """The line of the text that has ``what``, with its end."""
    return next(line for line in text.splitlines(keepends=True) if what in line)


def run(program, *edits, target="Ascend950", sanitize=False, rounds=1):
    """Compile, edit the PTO text with functions from text to text, run on ones."""
    compiled = pl.compile(program, target=target, skip_ptoas=True)
    compiled.sanitize = sanitize
    text = compiled.pto["both"]
    for edit in edits:
        changed = edit(text)
        assert changed != text
        text = changed
    compiled.pto["both"] = text
    types = {p.name: p.dtype.numpy for p in compiled.params}
    shapes = {p.name: p.shape for p in compiled.params}
    arrays = [np.ones(shapes[name], types[name]) for name in compiled.param_names]
    compiled(*arrays)
    return arrays[-1]


def without(what: str):
    return lambda text: text.replace(line_of(text, what), "")


def twice(what: str):
    return lambda text: text.replace(line_of(text, what), 2 * line_of(text, what))


def swap(old: str, new: str, where: str = ""):
    """Replace in the one line that has ``where``, or in all lines."""
    if not where:
        return lambda text: text.replace(old, new)
    return lambda text: text.replace(line_of(text, where), line_of(text, where).replace(old, new))


def test_slots_that_are_not_freed_stop_the_producer():
    with pytest.raises(PtoError) as caught:
        run(cube_to_vector(1, rounds=3), without("tfree_from_aic"))
    message = caught.value.message
    assert "the cube of block 0, 'cube', waits at " in message
    assert "a free slot of the 2 of pipe 0 from the cube to the vectors: the other side holds 4 popped tiles" in message
    assert "vector lane 1 of block 0, 'vector', waits at " in message


def test_a_tile_that_is_never_freed_is_reported():
    assert run(cube_to_vector(1), without("tfree_from_aic")).all()
    with pytest.raises(PtoError, match="pops a tile from pipe 0 from the cube .* that it never frees") as caught:
        run(cube_to_vector(1), without("tfree_from_aic"), sanitize=True)
    assert caught.value.loc is not None and "tpop_from_aic" in (caught.value.loc.source_line() or "")


def test_a_tile_read_after_its_slot_was_freed_is_reported():
    def early(text: str) -> str:
        free, pop = line_of(text, "tfree_from_aic"), line_of(text, "= pto.tpop_from_aic")
        return text.replace(free, "").replace(pop, pop + free)

    for sanitize in (False, True):
        with pytest.raises(PtoError, match="reads a popped tile whose slot was freed"):
            run(cube_to_vector(1), early, sanitize=sanitize)


def test_a_slot_is_freed_once():
    with pytest.raises(PtoError, match="frees a slot of pipe 0 from the cube to the vectors, but holds none"):
        run(cube_to_vector(1), twice("tfree_from_aic"))


def test_both_ends_have_the_same_slots():
    with pytest.raises(PtoError, match=r"one side sets pipe 0 .* with 2 slots of 1024 bytes, the other with 2 of 2048"):
        run(cube_to_vector(1, vector_slot=2048))


def test_ends_with_different_numbers_do_not_meet():
    with pytest.raises(PtoError, match="a tile from pipe 0 from the cube to the vectors: only one side sets up pipe 0"):
        run(cube_to_vector(1, cube_pipe=1))


def test_both_ends_split_alike():
    with pytest.raises(PtoError, match="pops f32 with split 1 where f32 was pushed with split 2"):
        run(cube_to_vector(1), swap("split = 1", "split = 2", "tpush_to_aiv"))


def test_a_tile_fits_its_slot():
    with pytest.raises(PtoError, match="a tile of 16x16 f32 does not fit the slots of pipe 0 .*, of 512 bytes"):
        run(cube_to_vector(1), swap("slot_size = 1024", "slot_size = 512"))


def test_lanes_that_share_a_tile_push_the_same():
    def own(text: str) -> str:
        """Write the lane's number into what it adds to itself."""
        add = line_of(text, "pto.tadd")
        tile, kind = re.search(r"ins\((%\w+)", add), re.search(r"!pto.tile_buf<[^>]*>", add)
        zero = re.search(r"(%\w+) = arith.constant 0 : index", text[text.index("@vector") :])
        assert tile is not None and kind is not None and zero is not None
        number = (
            "    %lane_number = arith.sitofp %__pypto_spmd_subblock_idx : i32 to f32\n"
            f"    pto.tsetval ins({zero.group(1)}, %lane_number : index, f32) outs({tile.group(1)} : {kind.group()})\n"
        )
        return text.replace(add, number + add)

    with pytest.raises(PtoError, match="both lanes push to the same elements of a slot of pipe 0 .*, and not the same"):
        run(shared(), own)


def shared():
    """`vector_to_cube` without a split, on both lanes even where one would do."""
    program = vector_to_cube(0)

    def on_both(function):
        is_vector = function.name == "vector"
        return function.replace(attrs={**function.attrs, "dual_aiv_dispatch": True}) if is_vector else function

    return program.map_functions(on_both)


REFUSED = [
    (without("pto.aiv_initialize_pipe"), "uses pipe 0, which its function does not set up: it sets up none"),
    (swap("dir_mask = 1", "dir_mask = 2"), "goes from the cube to the vectors, and pipe 0 has dir_mask 2"),
    (swap("dir_mask = 1", "dir_mask = 4"), r"dir_mask is 1 \(cube to vector\), 2 \(vector to cube\) or 3, got 4"),
    (swap("split = 1", "split = 0", "tfree_from"), "pipe 0 has tiles that are split and tiles that are not"),
    (swap("split = 1", "split = 7"), "split is 0 to 4, got 7"),
    (twice("pto.aiv_initialize_pipe"), "pipe 0 is set up twice"),
    (swap("size = 2048", "size = 1024", "reserve_buffer"), "2 slots of 1024 bytes take 2048, but 'products' has 1024"),
    (swap("size = 2048", "size = 0", "reserve_buffer"), "'pto.reserve_buffer': 0 bytes"),
    (swap("base = 0", "base = 260000", "reserve_buffer"), "2048 bytes at 260000 end outside vec"),
    (swap("auto = false", "auto = true", "reserve_buffer"), "either auto = true or a base"),
    (swap('"products"', '"others"', "import_reserved"), "@vector of this module reserves no 'others'"),
    (swap("<vector>", "<cube>", "func.func @vector"), "is for a vector kernel, and this is a cube kernel"),
    (swap("slot_num = 2", "slot_num = 2, local_slot_num = 1"), "the pipes of a5 are local"),
    (swap("slot_num = 2", "slot_num = -1"), "-1 slots of 1024 bytes"),
    (swap("loc=vec", "loc=mat"), "the tile is in Mat, and a vector core gets tiles in Vec only"),
    (swap("aic {", "aic(%c0_index, %c0_index) {", "= pto.tpop_from_aic"), "2 extents for a tile that leaves 0 open"),
]


@pytest.mark.parametrize(("edit", "message"), REFUSED, ids=[message[:40] for _, message in REFUSED])
def test_text_with_a_wrong_pipe_is_refused(edit, message):
    text = pl.compile(cube_to_vector(1), target="Ascend950", skip_ptoas=True).pto["both"]
    changed = edit(text)
    assert changed != text
    with pytest.raises(PtoError, match=message):
        simulator.load(changed)


def test_a_slot_ptoas_is_to_place_is_placed():
    def auto(text: str) -> str:
        return text.replace("auto = false, base = 0", "auto = true")

    assert (run(cube_to_vector(1), auto) == 17).all()


def test_one_end_alone_waits_for_the_other():
    module = simulator.load(pl.compile(cube_to_vector(1), target="Ascend950", skip_ptoas=True).pto["both"])
    x, w, y = np.ones((16, 16), np.float16), np.ones((16, 16), np.float16), np.zeros((16, 16), np.float32)
    with pytest.raises(PtoError, match="nothing pushes to pipe 0 from the cube to the vectors in this launch"):
        module.kernels["vector"].run([x, w, y, 0])
    with pytest.raises(PtoError, match="nothing pops from pipe 0 from the cube to the vectors in this launch"):
        module.kernels["cube"].run([x, w, y])
