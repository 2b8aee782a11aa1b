"""How communication between ranks is written as PTO."""

import re

import pytest
from texts import lines as lines_with

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import backend, codegen, ir, passes
from pypto.ir import comm_layout


def text_of(function, name="k", target=backend.ASCEND910B):
    with passes.PassContext(target=target):
        lowered = passes.run_pipeline(ir.Program([function], name))
    return codegen.generate_pto(lowered, target, locations=False)[function.name]


def test_a_peer_is_reached_by_the_distance_between_the_windows():
    @pl.function(type=pl.FunctionType.InCore)
    def pull(
        data: pld.DistributedTensor[[16, 64], pl.FP16],
        out: pl.Out[pl.Tensor[[16, 32], pl.FP16]],
        peer: pl.Scalar[pl.INT32],
    ):
        pl.store(pld.tile.remote_load(data, peer, [0, 16], [16, 32]), [0, 0], out)

    text = text_of(pull)
    assert lines_with(text, "func.func") == [
        "func.func @pull(%arg0: !pto.ptr<f16>, %arg1: !pto.ptr<f16>, %arg2: i32, %arg3: !pto.ptr<i64>) "
        "attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {"
    ]
    words = [int(w) for w in re.findall(r"load_scalar %arg3\[%c(\d+)_index\]", text)]
    assert words == [comm_layout.RANK_ID_OFFSET // comm_layout.WINDOW_SLOT_STRIDE]
    first = comm_layout.WINDOWS_IN_OFFSET // comm_layout.WINDOW_SLOT_STRIDE
    assert len(lines_with(text, f"arith.addi %c{first}_index")) == 2
    assert [line.split(", ")[1] for line in lines_with(text, "arith.divsi")] == ["%c2_i64 : i64"]
    (moved,) = lines_with(text, "pto.addptr")
    assert re.fullmatch(r"%\d+ = pto.addptr %arg0, %\d+ : !pto.ptr<f16> -> !pto.ptr<f16>", moved)
    (peer,) = lines_with(text, "%data_peer_pview = ")
    assert "%data_peer_view, offsets = [%c0_index, %c16_index], sizes = [%c16_index, %c32_index]" in peer


def test_a_push_ends_in_the_last_two_dimensions_of_the_peer():
    @pl.function(type=pl.FunctionType.InCore)
    def push(
        x: pl.Tensor[[16, 32], pl.FP32], data: pld.DistributedTensor[[4, 16, 64], pl.FP32], peer: pl.Scalar[pl.INT32]
    ):
        pld.tile.remote_store(pl.load(x, [0, 0], [16, 32]), data, peer, [2, 0, 8], atomic=pld.AtomicType.Add)

    text = text_of(push)
    (store,) = lines_with(text, "pto.tstore")
    assert "!pto.partition_tensor_view<1x16x32xf32>" in store and "atomic_type atomic_add" in store
    (clean,) = lines_with(text, "cacheinvalid")
    assert clean.startswith("pto.cmo.cacheinvalid %data_peer_pview single_cache_line")


@pytest.mark.parametrize("op, word", [(pld.NotifyOp.Set, "set"), (pld.NotifyOp.AtomicAdd, "atomic_add")])
def test_a_notification_follows_everything_before_it(op, word):
    @pl.function(type=pl.FunctionType.InCore)
    def tell(signal: pld.DistributedTensor[[4, 4], pl.INT32], peer: pl.Scalar[pl.INT32]):
        for i in pl.range(3):
            pld.system.notify(signal, peer, [1, 2], i + 1, op=op)

    lines = text_of(tell).splitlines()
    at = next(i for i, line in enumerate(lines) if "tnotify" in line)
    assert "pto.barrier <PIPE_ALL>" in lines[at - 1]
    assert lines[at].endswith(f": !pto.partition_tensor_view<1x1xi32>, i32) {{notifyOp = #pto<notify_op {word}>}}")


def test_waits_and_tests_look_at_this_ranks_own_signal():
    @pl.function(type=pl.FunctionType.InCore)
    def listen(signal: pld.DistributedTensor[[4], pl.INT32], out: pl.Out[pl.Tensor[[1], pl.INT32]]):
        pld.system.wait(signal, [3], 7, cmp=pld.WaitCmp.Ge)
        if pld.system.test(signal, [1], 2, cmp=pld.WaitCmp.Eq):
            pl.write(out, [0], 1)

    text = text_of(listen)
    assert "pto.addptr" not in text
    (wait,) = lines_with(text, "twait")
    assert wait == (
        "pto.comm.twait(%signal_local_pview, %c7_i32 : !pto.partition_tensor_view<1xi32>, i32) "
        "{cmp = #pto<wait_cmp ge>}"
    )
    (test,) = lines_with(text, "ttest")
    assert " = pto.comm.ttest(" in test and test.endswith("{cmp = #pto<wait_cmp eq>} -> i1")


def test_a_context_is_the_one_its_tensor_came_with():
    @pl.function(type=pl.FunctionType.InCore)
    def who(
        a: pld.DistributedTensor[[4], pl.INT32],
        b: pld.DistributedTensor[[4], pl.INT32],
        out: pl.Out[pl.Tensor[[2], pl.INT32]],
    ):
        pl.write(out, [0], pld.rank(pld.get_comm_ctx(b)))
        pl.write(out, [1], pld.nranks(pld.get_comm_ctx(a)))

    text = text_of(who)
    assert re.findall(r"load_scalar (%arg\d)", text) == ["%arg4", "%arg3"]
    assert len(lines_with(text, "arith.shrui")) == 1 and len(lines_with(text, "arith.trunci")) == 2


@pytest.mark.parametrize(
    "rows, cols, pipeline, stages", [(0, 0, False, ["16x64"]), (4, 32, True, ["4x32", "4x32"])]
)
def test_bulk_transfers_move_through_staging_tiles(rows, cols, pipeline, stages):
    @pl.function(type=pl.FunctionType.InCore)
    def swap(
        dst: pld.DistributedTensor[[16, 64], pl.FP16],
        src: pl.Tensor[[16, 64], pl.FP16],
        back: pl.Out[pl.Tensor[[16, 64], pl.FP16]],
        peer: pl.Scalar[pl.INT32],
    ):
        pld.tensor.put(dst, peer, src, chunk_rows=rows, chunk_cols=cols, pipeline=pipeline)
        pld.tensor.get(back, peer, dst, chunk_rows=rows, chunk_cols=cols, pipeline=pipeline)

    text = text_of(swap)
    lines = [line.strip() for line in text.splitlines()]
    put = next(i for i, line in enumerate(lines) if "comm.tput(" in line)
    assert "barrier <PIPE_ALL>" in lines[put - 1] and "barrier <PIPE_ALL>" in lines[put + 1]
    assert lines[put + 2].startswith("pto.cmo.cacheinvalid %dst_peer_pview")
    assert lines[put].startswith("pto.comm.tput(%dst_peer_pview, %src_local_pview, buf(")
    (get,) = lines_with(text, "comm.tget(")
    assert get.startswith("pto.comm.tget(%back_local_pview, %dst_peer_pview_1, buf(")
    for line in (lines[put], get):
        assert re.findall(r"rows=(\d+), cols=(\d+)", line) == [tuple(s.split("x")) for s in stages]


def test_an_element_of_half_a_byte_has_no_address_on_a_peer():
    @pl.function(type=pl.FunctionType.InCore)
    def pull(
        data: pld.DistributedTensor[[16, 64], pl.FP4],
        out: pl.Out[pl.Tensor[[16, 64], pl.FP4]],
        peer: pl.Scalar[pl.INT32],
    ):
        pl.store(pld.tile.remote_load(data, peer, [0, 0], [16, 64]), [0, 0], out)

    with pytest.raises(ValueError, match=r"cannot reach 'data' on a peer: fp4 elements[\s\S]*pld.tile.remote_load"):
        text_of(pull, target=backend.ASCEND950)


def test_a_branch_cannot_choose_between_windows():
    @pl.function(type=pl.FunctionType.InCore)
    def choose(
        a: pld.DistributedTensor[[4], pl.INT32], b: pld.DistributedTensor[[4], pl.INT32], cond: pl.Scalar[pl.BOOL]
    ):
        window = a
        if cond:
            window = b
        pld.system.wait(window, [0], 1, cmp=pld.WaitCmp.Eq)

    with pytest.raises(ValueError, match="different DistributedTensor in each branch"):
        text_of(choose)


def test_chunks_that_do_not_divide_the_transfer_set_their_own_extents():
    @pl.function(type=pl.FunctionType.InCore)
    def put(
        dst: pld.DistributedTensor[[10, 64], pl.FP32],
        src: pl.Tensor[[10, 64], pl.FP32],
        peer: pl.Scalar[pl.INT32],
    ):
        pld.tensor.put(dst, peer, src, chunk_rows=4, chunk_cols=32)

    (line,) = lines_with(text_of(put), "comm.tput(")
    assert "rows=4, cols=32, v_row=?, v_col=?" in line


def test_signals_are_32_bit_integers():
    @pl.function(type=pl.FunctionType.InCore)
    def listen(signal: pld.DistributedTensor[[4], pl.FP32]):
        pld.system.wait(signal, [0], 1, cmp=pld.WaitCmp.Eq)

    with pytest.raises(ValueError, match="'signal' must be a tensor window of INT32") as caught:
        text_of(listen)
    assert "pld.system.wait(signal" in str(caught.value)


def test_the_symbols_of_a_dimension_are_listed_once_in_order():
    n, m = (ir.Var(name, ir.ScalarType(pl.INDEX)) for name in "nm")
    assert [v.name_hint for v in codegen.collect_vars_from_shape_expr(n * m + n)] == ["n", "m"]
    assert codegen.collect_vars_from_shape_expr(ir.ConstInt(4, pl.INDEX)) == []
