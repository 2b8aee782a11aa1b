"""Operations between ranks and prefetches: their text, and what is refused."""

import pytest

from pypto.pto.errors import PtoError
from pypto.pto.parser import parse_module
from pypto.pto.verify import verify_module

STAGE = (
    "!pto.tile_buf<loc=vec, dtype=f32, rows=4, cols=32, v_row=4, v_col=32, blayout=row_major, slayout=none_box, "
    "fractal=512, pad=0>"
)
WINDOW = "!pto.partition_tensor_view<16x64xf32>"
TRANSFER = f"{WINDOW}, {WINDOW}, {STAGE}"


def module(*lines, stage=STAGE, window=WINDOW, signal="!pto.partition_tensor_view<1xi32>"):
    body = "\n".join(f"    {line}" for line in lines)
    return f"""module attributes {{pto.target_arch = "a2a3"}} {{
  func.func @k(%s: {signal}, %v: i32, %d: {window}, %t: {stage}, %w: !pto.ptr<i8>, %n: i64) {{
{body}
    return
  }}
}}"""


@pytest.mark.parametrize(
    "lines",
    [
        ["pto.comm.tnotify(%s, %v : !pto.partition_tensor_view<1xi32>, i32) {notifyOp = #pto<notify_op set>}"],
        ["pto.comm.tnotify(%s, %v : !pto.partition_tensor_view<1xi32>, i32) {notifyOp = #pto.notify_op<atomic_add>}"],
        ["pto.comm.twait(%s, %v : !pto.partition_tensor_view<1xi32>, i32) {cmp = #pto<wait_cmp ne>}"],
        ["%ok = pto.comm.ttest(%s, %v : !pto.partition_tensor_view<1xi32>, i32) {cmp = #pto<wait_cmp lt>} -> i1"],
        [f"pto.comm.tput(%d, %d, buf(%t) : {TRANSFER}) {{atomicType = #pto<atomic_type atomic_add>}}"],
        [f"pto.comm.tget(%d, %d, buf(%t, %t) : {TRANSFER}, {STAGE})"],
        [
            "%c = pto.make_prefetch_async_context(%w : !pto.ptr<i8>) -> !pto.prefetch_async_context",
            "%x = pto.get_prefetch_async_session %c : !pto.prefetch_async_context -> !pto.async_session",
            f"%e = pto.tprefetch_async(%d, %c : {WINDOW}, !pto.prefetch_async_context) -> !pto.async_event",
            "%z = pto.comm.wait_async_event(%e, %x : !pto.async_event, !pto.async_session) -> i1",
        ],
    ],
)
def test_text_reads_back_as_printed(lines):
    parsed = parse_module(module(*lines))
    verify_module(parsed)
    printed = str(parsed)
    assert str(parse_module(printed)) == printed
    assert all(line.partition("(")[0].partition(" %")[0].split(" = ")[-1] in printed for line in lines)


@pytest.mark.parametrize(
    "line, reason",
    [
        ("pto.comm.tnotify(%s, %v : !pto.partition_tensor_view<1xi32>, i32)", "expected: pto.comm.tnotify"),
        (
            "pto.comm.tnotify(%s, %v : !pto.partition_tensor_view<1xi32>, i32) {notifyOp = #pto<notify_op sub>}",
            "must be one of atomic_add, set",
        ),
        (
            "pto.comm.twait(%s, %n : !pto.partition_tensor_view<1xi32>, i64) {cmp = #pto<wait_cmp ge>}",
            "'value' must be an i32, got a scalar i64",
        ),
        (
            f"pto.comm.twait(%d, %v : {WINDOW}, i32) {{cmp = #pto<wait_cmp ge>}}",
            "'signal' must be a tensor window of i32",
        ),
        (f"pto.comm.tget(%d, %d, buf(%t, %t) : {TRANSFER})", "a staging tile without its type"),
        (
            f"pto.comm.tget(%d, %d, buf(%t) : {TRANSFER}) {{atomicType = #pto<atomic_type atomic_add>}}",
            "has no attribute 'atomicType'",
        ),
        (
            f"pto.comm.tput(%d, %s, buf(%t) : {WINDOW}, !pto.partition_tensor_view<1xi32>, {STAGE})",
            "'dst' is a tensor window 16x64xf32, but 'src' is a tensor window 1xi32",
        ),
        (f"pto.comm.tput(%t, %d, buf(%t) : {STAGE}, {WINDOW}, {STAGE})", "moves one tensor window to another"),
    ],
)
def test_what_does_not_fit_is_refused(line, reason):
    with pytest.raises(PtoError, match=reason):
        verify_module(parse_module(module(line)))


@pytest.mark.parametrize(
    "stage, reason",
    [
        (STAGE.replace("f32", "f16"), "moves f32 elements through vec tiles of f32, got a vec tile 4x32 f16"),
        (STAGE.replace("vec", "mat"), "through vec tiles"),
        (STAGE.replace("v_row=4", "v_row=3"), "chunks of 3 rows do not divide 16 rows"),
        (STAGE.replace("v_col=32", "v_col=24"), "chunks of 24 columns do not divide 64 columns"),
    ],
)
def test_staging_tiles_fit_what_moves_through_them(stage, reason):
    line = f"pto.comm.tput(%d, %d, buf(%t) : {WINDOW}, {WINDOW}, {stage})"
    with pytest.raises(PtoError, match=reason):
        verify_module(parse_module(module(line, stage=stage)))


def test_an_open_staging_tile_takes_any_extent():
    stage = STAGE.replace("v_row=4", "v_row=?").replace("v_col=32", "v_col=?")
    window = "!pto.partition_tensor_view<10x50xf32>"
    line = f"pto.comm.tput(%d, %d, buf(%t) : {window}, {window}, {stage})"
    verify_module(parse_module(module(line, stage=stage, window=window)))
