"""Operators between cores: a program of a cube kernel and a vector kernel, run as a group."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from operator_harness import Case, fixed, run_op
from operator_values import assert_same

from pypto.backend import Target
from pypto.dtypes import DataType

D = DataType
_FACTORS = {D.FP32: D.FP16, D.INT32: D.INT8}
"""What the cube multiplies to make each dtype."""

_GROUP = '''
    @pl.function(type=pl.FunctionType.Group)
    def both({params}) -> {result}:
        {calls}

    @pl.function(type=pl.FunctionType.Orchestration)
    def main({params}) -> {result}:
        y = self.both({names})
        return y
'''

_TO_VECTOR = '''
@pl.program
class Program:
    @pl.function(type=pl.FunctionType.AIC)
    def cube({params}):
        there = pl.import_peer_buffer(name="products", peer_func="vector")
        pl.aic_initialize_pipe(dir_mask=1, slot_size=2048, slot_num=2, c2v_consumer_buf=there)
        right = pl.move(pl.load(w, [0, 0], [{K}, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        for i in pl.range(3):
            x_mat = pl.load(x, [i * 16, 0], [16, {K}], target_memory=pl.Mem.Mat)
            pl.tpush_to_aiv(pl.matmul(pl.move(x_mat, target_memory=pl.Mem.Left), right), split={split})

    @pl.function(type=pl.FunctionType.AIV)
    def vector({params}) -> {result}:
        here = pl.reserve_buffer(name="products", size=4096)
        pl.aiv_initialize_pipe(dir_mask=1, slot_size=2048, slot_num=2, c2v_consumer_buf=here)
        lane = pl.tile.get_subblock_idx()
        for i in pl.range(3):
            share: pl.Tile[[{rows}, {cols}], pl.{T}, pl.MemorySpace.Vec] = pl.tpop_from_aic(split={split})
            twice = pl.add(share, share)
            pl.tfree_to_aic(share)
            y = pl.store(twice, [i * 16 + lane * {down}, lane * {across}], y)
        return y
'''

_TO_CUBE = '''
@pl.program
class Program:
    @pl.function(type=pl.FunctionType.AIC)
    def cube({params}) -> {result}:
        here = pl.reserve_buffer(name="doubled", size=8192)
        pl.aic_initialize_pipe(dir_mask=2, slot_size=4096, slot_num=2, v2c_consumer_buf=here)
        right = pl.move(pl.load(w, [0, 0], [32, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        for i in pl.range(3):
            twice: pl.Tile[[32, 32], pl.{T}, pl.MemorySpace.Mat] = pl.tpop_from_aiv(split={split})
            left = pl.move(twice, target_memory=pl.Mem.Left)
            pl.tfree_to_aiv(twice)
            y = pl.store(pl.matmul(left, right), [i * 32, 0], y)
        return y

    @pl.function(type=pl.FunctionType.AIV)
    def vector({params}):
        there = pl.import_peer_buffer(name="doubled", peer_func="cube")
        pl.aiv_initialize_pipe(dir_mask=2, slot_size=4096, slot_num=2, v2c_consumer_buf=there)
        lane = pl.tile.get_subblock_idx()
        for i in pl.range(3):
            share = pl.load(x, [i * 32 + lane * {down}, lane * {across}], [{rows}, {cols}])
            pl.tpush_to_aic(pl.add(share, share), split={split})
'''

_EVENTS = '''
@pl.program
class Program:
    @pl.function(type=pl.FunctionType.AIC)
    def cube({params}) -> {result}:
        pl.system.set_ffts(ffts)
        pl.system.sync_wait(3, pipe=pl.PipeType.MTE2)
        left = pl.move(pl.load(middle, [0, 0], [16, 16], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
        right = pl.move(pl.load(w, [0, 0], [16, 16], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        y = pl.store(pl.matmul(left, right), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.AIV)
    def vector({params}) -> {middle}:
        pl.func_attr({{"dual_aiv_dispatch": True}})
        pl.system.set_ffts(ffts)
        lane = pl.tile.get_subblock_idx()
        share = pl.load(x, [lane * 8, 0], [8, 16])
        middle = pl.store(pl.add(share, share), [lane * 8, 0], middle)
        pl.system.sync_set(3, pipe=pl.PipeType.MTE3, ffts_mode=2)
        return middle
'''

_MEETING = '''
@pl.program
class Program:
    @pl.function(type=pl.FunctionType.AIV)
    def kernel({params}) -> {result}:
        i = pl.tile.get_block_idx()
        n = pl.tile.get_block_num()
        row = pl.load(x, [i, 0], [1, 16])
        middle = pl.store(pl.add(row, row), [i, 0], middle)
        pl.system.syncall(mode="soft", core_type="aiv_only", gm_workspace=work, used_cores=4)
        y = pl.store(pl.load(middle, [n - 1 - i, 0], [1, 16]), [i, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main({params}) -> {result}:
        with pl.spmd(4):
            y = self.kernel({names})
        return y
'''

_SHARD = '''
@pl.function
def kernel(x: {f16}, w: {f16}, y: pl.Out[{f32}]) -> {f32}:
    with pl.at(level=pl.Level.CORE_GROUP):
        product = pl.matmul(x, w, out_dtype=pl.FP32)
        for lane in pl.split_aiv(2, mode=pl.SplitMode.{mode}):
            share = pl.aiv_shard(product)
            y = pl.assemble(y, pl.add(share, share), {at})
    return y
'''

_GATHER = '''
@pl.function
def kernel(x: {f32}, w: {f32}, y: pl.Out[{f32}]) -> {f32}:
    with pl.at(level=pl.Level.CORE_GROUP):
        for lane in pl.split_aiv(2, mode=pl.SplitMode.{mode}):
            share = pl.slice(x, {shape}, {at})
            whole = pl.aic_gather(pl.add(share, share))
        y = pl.assemble(y, pl.matmul(whole, w, out_dtype=pl.FP32), [0, 0])
    return y
'''
_TILES = {"f16": "pl.Tensor[[32, 32], pl.FP16]", "f32": "pl.Tensor[[32, 32], pl.FP32]"}
_LANES = {
    1: {"mode": "UP_DOWN", "shape": "[16, 32]", "at": "[lane * 16, 0]"},
    2: {"mode": "LEFT_RIGHT", "shape": "[32, 16]", "at": "[0, lane * 16]"},
}


def _text(body: str, params: dict[str, str], calls: str = "", **names: object) -> str:
    """A program; ``params`` are types by name, the last one the result."""
    last = list(params)[-1]
    types = {n: f"pl.Out[{t}]" if n in (last, "middle") else t for n, t in params.items()}
    shown = ", ".join(["self", *(f"{n}: {t}" for n, t in types.items())])
    more = dict(params=shown, result=params[last], names=", ".join(params), middle=params.get("middle", ""), **names)
    calls = calls.format(**more).replace("\n", "\n        ")
    return body.format(**more) + (_GROUP.format(**{**more, "calls": calls}) if calls else "")


def _shares(split: int, tall: int) -> dict[str, int]:
    return dict(
        split=split,
        rows=tall // 2 if split == 1 else tall,
        cols=16 if split == 2 else 32,
        down=tall // 2 if split == 1 else 0,
        across=16 if split == 2 else 0,
    )


def _numbers(dtype: DataType, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Small whole numbers, negative ones too: sums of products of them are exact."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(dtype.numpy)


def _to_vector(op: str, split: int, dtype: DataType, target: Target) -> None:
    factor = _FACTORS[dtype]
    depth = 32 if factor is D.INT8 else 16
    params = {
        "x": f"pl.Tensor[[48, {depth}], pl.{factor.name}]",
        "w": f"pl.Tensor[[{depth}, 32], pl.{factor.name}]",
        "y": f"pl.Tensor[[48, 32], pl.{dtype.name}]",
    }
    calls = "self.cube({names})\ny = self.vector({names})\nreturn y"
    text = _text(_TO_VECTOR, params, calls, K=depth, T=dtype.name, **_shares(split, 16))
    x, w = _numbers(factor, (48, depth), 1), _numbers(factor, (depth, 32), 2)
    y = np.zeros((48, 32), dtype.numpy)
    run_op(op, text, [x, w, y], target)
    assert_same(y, 2 * (x.astype(dtype.numpy) @ w.astype(dtype.numpy)))


def _to_cube(op: str, split: int, dtype: DataType, target: Target) -> None:
    params = {
        "x": f"pl.Tensor[[96, 32], pl.{dtype.name}]",
        "w": f"pl.Tensor[[32, 32], pl.{dtype.name}]",
        "y": "pl.Tensor[[96, 32], pl.FP32]",
    }
    calls = "out = self.cube({names})\nself.vector({names})\nreturn out"
    text = _text(_TO_CUBE, params, calls, T=dtype.name, **_shares(split, 32))
    x, w = _numbers(dtype, (96, 32), 3), _numbers(dtype, (32, 32), 4)
    y = np.zeros((96, 32), np.float32)
    run_op(op, text, [x, w, y], target)
    assert_same(y, 2 * (x.astype(np.float32) @ w.astype(np.float32)))


def _events(op: str, dtype: DataType, target: Target) -> None:
    tile = "pl.Tensor[[16, 16], pl.FP32]"
    params = {"ffts": "pl.Tensor[[256], pl.INT64]", "x": tile, "w": tile, "middle": tile, "y": tile}
    calls = "out = self.cube({names})\nself.vector({names})\nreturn out"
    x, w = _numbers(dtype, (16, 16), 5), _numbers(dtype, (16, 16), 6)
    middle, y = np.zeros((2, 16, 16), np.float32)
    run_op(op, _text(_EVENTS, params, calls), [np.zeros(256, np.int64), x, w, middle, y], target)
    assert_same(y, 2 * x @ w)


def _meeting(op: str, dtype: DataType, target: Target) -> None:
    rows = "pl.Tensor[[4, 16], pl.FP32]"
    params = {"x": rows, "work": "pl.Tensor[[16], pl.INT32]", "middle": rows, "y": rows}
    x = _numbers(dtype, (4, 16), 7)
    middle, y = np.zeros((2, 4, 16), np.float32)
    run_op(op, _text(_MEETING, params), [x, np.zeros(16, np.int32), middle, y], target)
    assert_same(y, 2 * x[::-1])


def _region(op: str, text: str, split: int, dtype: DataType, target: Target) -> None:
    """A scope of both cores: what `pl.split_aiv` regions hand over is divided by rows or by columns."""
    x, w = _numbers(dtype, (32, 32), 8), _numbers(dtype, (32, 32), 9)
    y = np.zeros((32, 32), np.float32)
    run_op(op, text.format(**_TILES, **_LANES[split]), [x, w, y], target)
    assert_same(y, 2 * (x.astype(np.float32) @ w.astype(np.float32)))


def _cases(op: str, run: Callable[..., None], dtypes: tuple[DataType, ...], splits: tuple[int, ...]) -> list[Case]:
    return [Case(op, f"split {split}", partial(run, op, split), fixed(*dtypes)) for split in splits]


_PRODUCTS, _OPERANDS = (D.FP32, D.INT32), (D.FP16, D.FP32)
CASES = [
    *_cases("tile.tpush_to_aiv", _to_vector, _PRODUCTS, (0, 1, 2)),
    *_cases("tile.tpop_from_aic", _to_vector, _PRODUCTS, (0, 1, 2)),
    *_cases("tile.tpush_to_aic", _to_cube, _OPERANDS, (0, 1, 2)),
    *_cases("tile.tpop_from_aiv", _to_cube, _OPERANDS, (0, 1, 2)),
    *(case for op in ("aic_initialize_pipe", "aiv_initialize_pipe", "reserve_buffer", "import_peer_buffer",
                      "tfree_to_aic") for case in _cases(f"system.{op}", _to_vector, (D.FP32,), (1,))),
    *_cases("system.tfree_to_aiv", _to_cube, (D.FP32,), (1,)),
    *(Case(f"system.{op}", "", partial(_events, f"system.{op}"), fixed(D.FP32))
      for op in ("set_ffts", "sync_set", "sync_wait")),
    *(Case("tensor.aiv_shard", f"split {split}", partial(_region, "tensor.aiv_shard", _SHARD, split), fixed(D.FP16))
      for split in _LANES),
    *(Case("tensor.aic_gather", f"split {split}", partial(_region, "tensor.aic_gather", _GATHER, split), fixed(D.FP32))
      for split in _LANES),
    Case("system.syncall", "", partial(_meeting, "system.syncall"), fixed(D.FP32)),
]  # fmt: skip
