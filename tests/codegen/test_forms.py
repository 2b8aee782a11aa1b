"""Instructions with a syntax of their own: their text, and what gathers and scatters compute."""

import numpy as np
import pytest
from texts import lines, text_of

import pypto.language as pl
from pypto import DataType, backend, codegen, ir, passes

R = np.random.default_rng(2)
TARGETS = pytest.mark.parametrize("target", ["a2a3", "a5"])


def run(kernel, *arrays, target="a2a3"):
    return pl.compile(kernel, target=target, skip_ptoas=True)(*arrays)


@TARGETS
def test_gather_by_flat_index(target):
    @pl.function(type=pl.FunctionType.InCore)
    def pick(
        src: pl.Tensor[[16, 64], pl.FP32], idx: pl.Tensor[[8, 32], pl.INT32], out: pl.Out[pl.Tensor[[8, 32], pl.FP32]]
    ) -> pl.Tensor[[8, 32], pl.FP32]:
        scratch = pl.tile.create([8, 32], pl.INT32)
        got = pl.tile.gather(pl.load(src, [0, 0], [16, 64]), pl.load(idx, [0, 0], [8, 32]), scratch)
        out = pl.store(got, [0, 0], out)
        return out

    x, i = R.standard_normal((16, 64)).astype(np.float32), R.integers(0, 1024, (8, 32)).astype(np.int32)
    assert np.array_equal(run(pick, x, i, np.zeros((8, 32), np.float32), target=target), x.ravel()[i])


def test_gather_from_a_view_whose_rows_lie_apart_is_refused():
    @pl.function(type=pl.FunctionType.InCore)
    def pick(
        src: pl.Tensor[[16, 64], pl.FP32], idx: pl.Tensor[[8, 32], pl.INT32], out: pl.Out[pl.Tensor[[8, 32], pl.FP32]]
    ) -> pl.Tensor[[8, 32], pl.FP32]:
        scratch = pl.tile.create([8, 32], pl.INT32)
        part = pl.tile.slice(pl.load(src, [0, 0], [16, 64]), [16, 32], [0, 32])
        out = pl.store(pl.tile.gather(part, pl.load(idx, [0, 0], [8, 32]), scratch), [0, 0], out)
        return out

    with pytest.raises(ValueError, match="slice 'part' lie apart") as caught:
        pl.compile(pick, skip_ptoas=True)
    assert "pl.tile.assemble" in str(caught.value)


def test_gather_by_byte_offset_takes_blocks_of_32_bytes():
    @pl.function(type=pl.FunctionType.InCore)
    def pick(
        src: pl.Tensor[[16, 64], pl.FP32], at: pl.Tensor[[8, 8], pl.UINT32], out: pl.Out[pl.Tensor[[8, 64], pl.FP32]]
    ) -> pl.Tensor[[8, 64], pl.FP32]:
        out = pl.store(pl.tile.gatherb(pl.load(src, [0, 0], [16, 64]), pl.load(at, [0, 0], [8, 8])), [0, 0], out)
        return out

    x = R.standard_normal((16, 64)).astype(np.float32)
    block = R.integers(0, 128, (8, 8))
    got = run(pick, x, (block * 32).astype(np.uint32), np.zeros((8, 64), np.float32))
    assert np.array_equal(got, x.reshape(-1, 8)[block].reshape(8, 64))


def test_scatter_by_flat_index_leaves_zeros_elsewhere():
    @pl.function(type=pl.FunctionType.InCore)
    def put(
        dst: pl.Tensor[[16, 32], pl.FP32],
        src: pl.Tensor[[4, 32], pl.FP32],
        idx: pl.Tensor[[4, 32], pl.INT32],
        out: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        held = pl.load(dst, [0, 0], [16, 32])
        got = pl.tile.scatter(held, pl.load(src, [0, 0], [4, 32]), pl.load(idx, [0, 0], [4, 32]))
        out = pl.store(got, [0, 0], out)
        return out

    d, s = R.standard_normal((16, 32)).astype(np.float32), R.standard_normal((4, 32)).astype(np.float32)
    i = R.permutation(512)[:128].astype(np.int32).reshape(4, 32)
    want = np.zeros_like(d)
    want.ravel()[i.ravel()] = s.ravel()
    assert np.array_equal(run(put, d, s, i, np.zeros_like(d)), want)


def fetching(outside):
    @pl.function(type=pl.FunctionType.InCore)
    def fetch(
        mem: pl.Tensor[[64, 32], pl.FP32], idx: pl.Tensor[[1, 16], pl.INT32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        got = pl.tile.mgather(mem, pl.load(idx, [0, 0], [1, 16]), coalesce="row", gather_oob=outside)
        out = pl.store(got, [0, 0], out)
        return out

    return fetch


@pytest.mark.parametrize("outside", ["zero", "clamp", "wrap"])
def test_gather_of_rows_from_memory_with_indices_outside(outside):
    m = R.standard_normal((64, 32)).astype(np.float32)
    i = R.integers(0, 64, (1, 16)).astype(np.int32)
    i[0, 3], i[0, 4] = 99, -1
    want = m[i[0] % 64 if outside == "wrap" else np.clip(i[0], 0, 63)]
    if outside == "zero":
        want[3:5] = 0
    assert np.array_equal(run(fetching(outside), m, i, np.zeros((16, 32), np.float32)), want)


def test_scatter_to_memory_by_flat_index():
    @pl.function(type=pl.FunctionType.InCore)
    def put(
        src: pl.Tensor[[8, 32], pl.FP32], idx: pl.Tensor[[8, 32], pl.INT32], out: pl.InOut[pl.Tensor[[512], pl.FP32]]
    ) -> pl.Tensor[[512], pl.FP32]:
        out = pl.tile.mscatter(pl.load(src, [0, 0], [8, 32]), pl.load(idx, [0, 0], [8, 32]), out)
        return out

    s, i = R.standard_normal((8, 32)).astype(np.float32), R.permutation(512)[:256].astype(np.int32).reshape(8, 32)
    out = np.ones(512, np.float32)
    want = out.copy()
    want[i.ravel()] = s.ravel()
    assert np.array_equal(run(put, s, i, out), want)


def test_sorted_blocks_merged_and_their_values_picked():
    @pl.function(type=pl.FunctionType.InCore)
    def order(
        src: pl.Tensor[[1, 128], pl.FP32],
        idx: pl.Tensor[[1, 128], pl.UINT32],
        out: pl.Out[pl.Tensor[[1, 128], pl.FP32]],
    ) -> pl.Tensor[[1, 128], pl.FP32]:
        pairs = pl.tile.sort32(pl.load(src, [0, 0], [1, 128]), pl.load(idx, [0, 0], [1, 128]))
        merged = pl.tile.mrgsort(pairs, block_len=64)
        out = pl.store(pl.tile.gather_mask(merged, mask_pattern=pl.tile.MaskPattern.P0101), [0, 0], out)
        return out

    x = R.standard_normal((1, 128)).astype(np.float32)
    got = run(order, x, np.arange(128, dtype=np.uint32)[None], np.zeros_like(x))
    assert np.array_equal(got, np.sort(x)[:, ::-1])


@pytest.mark.parametrize("rows", [5, "n"])
def test_assemble_writes_the_valid_part_only(rows):
    @pl.function(type=pl.FunctionType.InCore)
    def put(
        x: pl.Tensor[[16, 16], pl.FP32],
        y: pl.Tensor[[16, 64], pl.FP32],
        n: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        part = pl.load(x, [0, 0], [16, 16], valid_shape=[n if rows == "n" else rows, 16])
        out = pl.store(pl.tile.assemble(pl.load(y, [0, 0], [16, 64]), part, [0, 16]), [0, 0], out)
        return out

    x, y = R.standard_normal((16, 16)).astype(np.float32), R.standard_normal((16, 64)).astype(np.float32)
    want = y.copy()
    want[:5, 16:32] = x[:5]
    assert np.array_equal(run(put, x, y, 5, np.zeros_like(y)), want)


def test_a_narrowed_tile_leaves_the_tile_it_came_from_whole():
    @pl.function(type=pl.FunctionType.InCore)
    def cut(
        x: pl.Tensor[[32, 32], pl.FP32],
        n: pl.Scalar[pl.INDEX],
        part: pl.InOut[pl.Tensor[[32, 32], pl.FP32]],
        whole: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ):
        t = pl.load(x, [0, 0], [32, 32])
        part = pl.store(pl.tile.set_validshape(t, n, 16), [0, 0], part)
        whole = pl.store(t, [0, 0], whole)

    compiled = pl.compile(cut, skip_ptoas=True)
    whole_handle, narrow_handle = lines(compiled.pto["cut"], "pto.alloc_tile")
    assert "addr = %c0_i64 :" in whole_handle and "v_row=32, v_col=32" in whole_handle
    assert "addr = %c0_i64 valid_row = %arg3 :" in narrow_handle and "v_row=?, v_col=16" in narrow_handle
    x, part, whole = R.standard_normal((32, 32)).astype(np.float32), np.zeros((32, 32), np.float32), np.zeros((32, 32))
    whole = whole.astype(np.float32)
    compiled(x, 5, part, whole)
    want = np.zeros_like(x)
    want[:5, :16] = x[:5, :16]
    assert np.array_equal(part, want) and np.array_equal(whole, x)


def test_a_slice_is_not_narrowed_afterwards():
    @pl.function(type=pl.FunctionType.InCore)
    def cut(x: pl.Tensor[[32, 8], pl.FP32], y: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        part = pl.tile.slice(pl.load(x, [0, 0], [32, 8]), [8, 8], [8, 0])
        pl.store(pl.tile.set_validshape(part, 8, 4), [0, 0], y)

    with pytest.raises(ValueError, match="cannot narrow a tile view") as caught:
        pl.compile(cut, skip_ptoas=True)
    assert "valid_shape=" in str(caught.value)


@pytest.mark.parametrize("static", [True, False])
def test_a_constant_condition_of_a_matmul_is_no_branch(static):
    @pl.function(type=pl.FunctionType.InCore)
    def product(
        a: pl.Tensor[[16, 16], pl.FP16],
        b: pl.Tensor[[16, 16], pl.FP16],
        first: pl.Scalar[pl.BOOL],
        y: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        left = pl.load(a, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
        right = pl.load(b, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
        acc = pl.tile.create([16, 16], pl.FP32, target_memory=pl.Mem.Acc)
        acc = pl.tile.matmul_acc(acc, left, right, init_cond=True if static else first)
        y = pl.store(acc, [0, 0], y)
        return y

    text = pl.compile(product, skip_ptoas=True).pto["product"]
    assert ("scf.if" in text, "pto.tmatmul.acc" in text) == (not static, not static)


def test_barriers_events_and_fences():
    @pl.program
    class Synced:
        @pl.function(type=pl.FunctionType.InCore)
        def synced(
            self,
            ffts: pl.Tensor[[256], pl.INT64],
            ws: pl.Tensor[[16], pl.INT32],
            x: pl.Tensor[[16, 16], pl.FP32],
            event: pl.Scalar[pl.INDEX],
            cores: pl.Scalar[pl.INT32],
            y: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        ) -> pl.Tensor[[16, 16], pl.FP32]:
            pl.system.set_ffts(ffts)
            pl.system.bar_all()
            pl.system.bar_v()
            pl.system.sync_src(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=2)
            pl.system.sync_dst(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=2)
            pl.system.sync_set(event_id=3, pipe=pl.PipeType.MTE3, ffts_mode=1)
            pl.system.sync_wait(event, pipe=pl.PipeType.MTE2)
            pl.system.syncall(core_type="aiv_only")
            pl.system.syncall(mode="soft", core_type="mix", gm_workspace=ws, used_cores=cores)
            pl.system.syncall(mode="soft", core_type="mix", gm_workspace=ws, used_cores=0)
            pl.system.fence()
            y = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], y)
            pl.system.cacheinvalid(y, [1, 16], [event, 0])
            pl.system.cacheinvalid()
            return y

    text = text_of(Synced)
    assert lines(text, "set_ffts") == ["pto.set_ffts %arg0 : !pto.ptr<i64>"] and "%ffts" not in text
    assert lines(text, "pto.barrier") == ["pto.barrier <PIPE_ALL>", "pto.barrier <PIPE_V>"]
    assert lines(text, "_flag") == [
        "pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID2>]",
        "pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID2>]",
    ]
    assert lines(text, "pto.sync.") == [
        "pto.sync.set <PIPE_MTE3>, 3 {ffts_mode = 1 : i32}",
        "pto.sync.wait <PIPE_MTE2>, %arg4",
    ]
    hard, counted, launched = lines(text, "pto.syncall")
    assert hard == "pto.syncall() mode = #pto.sync_all_mode<hard>, core_type = #pto.sync_core_type<aiv_only>"
    assert "(%syncgm_pview, %arg5 : !pto.partition_tensor_view<16xi32>, i32) mode = #pto.sync_all_mode<soft>" in counted
    assert launched.count(",") == 1
    assert lines(text, "fence") == ["pto.fence.barrier_all #pto.fence_scope<gm>"]
    region, everything = lines(text, "cacheinvalid")
    assert region.endswith("single_cache_line : !pto.partition_tensor_view<1x16xf32>")
    assert everything == "pto.cmo.cacheinvalid all #pto.address_space<gm>"


def test_a_workspace_smaller_than_a_cache_line_is_refused():
    @pl.program
    class Small:
        @pl.function(type=pl.FunctionType.InCore)
        def synced(self, ws: pl.Tensor[[15], pl.INT32]) -> pl.Tensor[[15], pl.INT32]:
            pl.system.syncall(mode="soft", core_type="aiv_only", gm_workspace=ws, used_cores=0)
            return ws

    with pytest.raises(ValueError, match="at least 16 INT32 elements, got 15") as caught:
        text_of(Small)
    assert "pl.system.syncall" in str(caught.value)


@TARGETS
def test_a_triangle_is_written_in_the_syntax_of_every_dialect(target):
    @pl.function(type=pl.FunctionType.InCore)
    def triangle(y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        pl.store(pl.tile.tri(1, [16, 32], valid_shape=[9, 21], upper=True), [0, 0], y)

    compiled = pl.compile(triangle, target=target, skip_ptoas=True)
    (line,) = lines(text_of(ir.Program([triangle], "triangle")), "pto.ttri")
    assert line.startswith('"pto.ttri"(%c1_i32, %t) {upperOrLower = 1 : i32} : (i32, !pto.tile_buf<loc=vec')
    y = np.full((16, 32), 7, np.float32)
    compiled(y)
    assert (y[:9, :21] == np.triu(np.ones((9, 21)), 1)).all() and (y[9:] == 7).all()


def test_an_unsigned_scalar_is_written_with_its_bits():
    @pl.function(type=pl.FunctionType.InCore)
    def pick(x: pl.Tensor[[16, 16], pl.UINT32], y: pl.Out[pl.Tensor[[16, 16], pl.UINT32]]):
        t = pl.load(x, [0, 0], [16, 16])
        mask = pl.tile.cmps(pl.reinterpret_view(t, pl.INT32), 0, cmp_type=0)
        tmp = pl.tile.create([1, 8], pl.UINT32)
        pl.store(pl.tile.sels(mask, t, tmp, 0x8000000B), [0, 0], y)

    compiled = pl.compile(pick, target="a2a3", skip_ptoas=True)
    x = R.integers(0, 2, (16, 16)).astype(np.uint32)
    y = np.zeros_like(x)
    compiled(x, y)
    assert (y == np.where(x == 0, x, 0x8000000B)).all()


def test_pipes_between_cores():
    @pl.program
    class Pipes:
        @pl.function(type=pl.FunctionType.AIV)
        def consumer(self, y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
            ring = pl.reserve_buffer(name="ring", size=4096, base=0x1000)
            peer = pl.import_peer_buffer(name="back", peer_func="producer")
            pl.aiv_initialize_pipe(ring, peer, dir_mask=3, slot_size=1024, slot_num=4)
            t = pl.tpop_from_aic(shape=[16, 16], dtype=pl.FP32, split=1)
            pl.tpush_to_aic(t, split=1)
            y = pl.store(t, [0, 0], y)
            pl.tfree_to_aic(t)
            return y

    text = text_of(Pipes)
    (ring,) = lines(text, "reserve_buffer {")
    assert 'pto.reserve_buffer {name = "ring", size = 4096, location = #pto.address_space<vec>, ' in ring
    assert ring.endswith("auto = false, base = 4096} -> i32")
    (peer,) = lines(text, "import_reserved_buffer")
    assert peer.endswith('{name = "back", peer_func = @producer} -> i32')
    (pipe,) = lines(text, "initialize_pipe")
    assert pipe.startswith(
        "pto.aiv_initialize_pipe {dir_mask = 3, slot_size = 1024, slot_num = 4} (gm_slot_buffer = %arg1 : "
        "!pto.ptr<f32>, c2v_consumer_buf = "
    )
    (pop,) = lines(text, "tpop")
    assert "= pto.tpop_from_aic {split = 1} -> !pto.tile_buf<loc=vec" in pop
    assert lines(text, "tpush")[0].startswith("pto.tpush_to_aic(%t : !pto.tile_buf<loc=vec")
    assert lines(text, "tfree") == ["pto.tfree_from_aic {split = 1}"]


def test_a_prefetch_is_given_its_workspace_by_the_launch():
    @pl.program
    class Ahead:
        @pl.function(type=pl.FunctionType.InCore)
        def ahead(
            self, x: pl.Tensor[[1, 4096], pl.FP32], y: pl.Out[pl.Tensor[[1, 128], pl.FP32]]
        ) -> pl.Tensor[[1, 128], pl.FP32]:
            ctx = pl.prefetch.make_context()
            done = pl.prefetch.async_prefetch(x, ctx)
            pl.prefetch.wait(done, pl.prefetch.session(ctx))
            y = pl.store(pl.load(x, [0, 0], [1, 128]), [0, 0], y)
            return y

    text = text_of(Ahead)
    assert "%arg2: !pto.ptr<i8>)" in lines(text, "func.func")[0]
    assert lines(text, "make_prefetch")[0].endswith("(%arg2 : !pto.ptr<i8>) -> !pto.prefetch_async_context")
    assert "!pto.partition_tensor_view<1x4096xf32>, !pto.prefetch_async_context) -> !pto.async_event" in text
    assert lines(text, "wait_async_event")[0].endswith(": !pto.async_event, !pto.async_session) -> i1")


def test_without_addresses_one_allocation_is_one_buffer():
    @pl.program
    class Views:
        @pl.function(type=pl.FunctionType.InCore)
        def views(
            self, x: pl.Tensor[[16, 16], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]
        ) -> pl.Tensor[[16, 16], pl.FP32]:
            t = pl.load(x, [0, 0], [16, 16])
            y = pl.store(pl.tile.set_validshape(t, n, 16), [0, 0], y)
            return y

    planner = passes.PassContext([], memory_planner=passes.MemoryPlanner.PTOAS)
    with planner, pytest.raises(ValueError, match="PTOAS cannot place a buffer that is seen with several"):
        text_of(Views, emit_tile_addr=False)


def test_without_addresses_a_region_known_at_run_time_is_set_where_it_is_made():
    @pl.program
    class Ragged:
        @pl.function(type=pl.FunctionType.InCore)
        def ragged(
            self, x: pl.Tensor[[16, 16], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]
        ) -> pl.Tensor[[16, 16], pl.FP32]:
            t = pl.load(x, [0, 0], [16, 16], valid_shape=[n, 16])
            y = pl.store(t, [0, 0], y)
            return y

    with passes.PassContext([], memory_planner=passes.MemoryPlanner.PTOAS):
        text = text_of(Ragged, emit_tile_addr=False)
    (alloc,) = lines(text, "alloc_tile")
    assert alloc.startswith("%t = pto.alloc_tile valid_row = %c16_index valid_col = %c16_index : ")
    assert lines(text, "set_validshape")[0].startswith("pto.set_validshape %t, %arg2, %c16_index : ")


def test_source_paths_are_escaped():
    span = ir.Span('dir "a"\\b.py', 3, 1, 3, 9)
    x = ir.Var("x", ir.TensorType([16, 16], DataType.FP32), span)
    body = ir.SeqStmts([ir.ReturnStmt([], span)], span)
    function = ir.Function("k", [x], [], body, span, ir.FunctionType.InCore)
    text = codegen.PTOCodegen(backend.ASCEND910B).generate(ir.Program([function], "p", span), emit_source_loc=True)
    assert 'loc("dir \\"a\\"\\\\b.py":3:1)' in text
