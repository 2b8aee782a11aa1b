"""Programs whose kernels run on the cube and on the vector lanes at once; the tests say what is wrong with some."""

from __future__ import annotations

import pypto.language as pl
from pypto.ir.program import Program

F16, F32, MAT, VEC = pl.FP16, pl.FP32, pl.MemorySpace.Mat, pl.MemorySpace.Vec
SLOT = 1024


def cube_to_vector(
    split: int = 0, rounds: int = 1, slots: int = 2, *, pops: int = 0, cube_pipe: int = 0, vector_slot: int = SLOT
) -> Program:
    """Each round the cube multiplies 16 rows of x by w and the lanes add 1; ``pops`` is ``rounds`` unless given."""
    rows, cols = 8 if split == 1 else 16, 8 if split == 2 else 16
    down, across = 8 if split == 1 else 0, 8 if split == 2 else 0
    extent, count, ring = rounds * 16, pops or rounds, slots * vector_slot

    @pl.program
    class Product:
        @pl.function(type=pl.FunctionType.AIC)
        def cube(
            self,
            x: pl.Tensor[[extent, 16], F16],
            w: pl.Tensor[[16, 16], F16],
            y: pl.Out[pl.Tensor[[extent, 16], F32]],
        ):
            there = pl.import_peer_buffer(name="products", peer_func="vector")
            pl.aic_initialize_pipe(dir_mask=1, slot_size=SLOT, slot_num=slots, c2v_consumer_buf=there, id=cube_pipe)
            right = pl.move(pl.load(w, [0, 0], [16, 16], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
            for i in pl.range(rounds):
                rows_in = pl.load(x, [i * 16, 0], [16, 16], target_memory=pl.Mem.Mat)
                left = pl.move(rows_in, target_memory=pl.Mem.Left)
                pl.tpush_to_aiv(pl.matmul(left, right), split=split, id=cube_pipe)

        @pl.function(type=pl.FunctionType.AIV)
        def vector(
            self,
            x: pl.Tensor[[extent, 16], F16],
            w: pl.Tensor[[16, 16], F16],
            y: pl.Out[pl.Tensor[[extent, 16], F32]],
        ) -> pl.Tensor[[extent, 16], F32]:
            here = pl.reserve_buffer(name="products", size=ring)
            pl.aiv_initialize_pipe(dir_mask=1, slot_size=vector_slot, slot_num=slots, c2v_consumer_buf=here)
            lane = pl.tile.get_subblock_idx()
            for i in pl.range(count):
                share: pl.Tile[[rows, cols], F32, VEC] = pl.tpop_from_aic(split=split)
                more = pl.add(share, 1.0)
                pl.tfree_to_aic(share)
                y = pl.store(more, [i * 16 + lane * down, lane * across], y)
            return y

        @pl.function(type=pl.FunctionType.Group)
        def both(
            self,
            x: pl.Tensor[[extent, 16], F16],
            w: pl.Tensor[[16, 16], F16],
            y: pl.Out[pl.Tensor[[extent, 16], F32]],
        ) -> pl.Tensor[[extent, 16], F32]:
            self.cube(x, w, y)
            y = self.vector(x, w, y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            x: pl.Tensor[[extent, 16], F16],
            w: pl.Tensor[[16, 16], F16],
            y: pl.Out[pl.Tensor[[extent, 16], F32]],
        ) -> pl.Tensor[[extent, 16], F32]:
            y = self.both(x, w, y)
            return y

    return Product


def vector_to_cube(split: int = 0) -> Program:
    """The lanes double x, in shares unless ``split`` is 0, and the cube multiplies it by w."""
    rows, cols = 16 if split == 1 else 32, 16 if split == 2 else 32
    down, across = 16 if split == 1 else 0, 16 if split == 2 else 0

    @pl.program
    class Doubled:
        @pl.function(type=pl.FunctionType.AIC)
        def cube(
            self, x: pl.Tensor[[32, 32], F32], w: pl.Tensor[[32, 32], F32], y: pl.Out[pl.Tensor[[32, 32], F32]]
        ) -> pl.Tensor[[32, 32], F32]:
            here = pl.reserve_buffer(name="doubled", size=8 * SLOT)
            pl.aic_initialize_pipe(dir_mask=2, slot_size=4 * SLOT, slot_num=2, v2c_consumer_buf=here)
            twice: pl.Tile[[32, 32], F32, MAT] = pl.tpop_from_aiv(split=split)
            left = pl.move(twice, target_memory=pl.Mem.Left)
            pl.tfree_to_aiv(twice)
            right = pl.move(pl.load(w, [0, 0], [32, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
            y = pl.store(pl.matmul(left, right), [0, 0], y)
            return y

        @pl.function(type=pl.FunctionType.AIV)
        def vector(self, x: pl.Tensor[[32, 32], F32], w: pl.Tensor[[32, 32], F32], y: pl.Tensor[[32, 32], F32]):
            there = pl.import_peer_buffer(name="doubled", peer_func="cube")
            pl.aiv_initialize_pipe(dir_mask=2, slot_size=4 * SLOT, slot_num=2, v2c_consumer_buf=there)
            lane = pl.tile.get_subblock_idx()
            share = pl.load(x, [lane * down, lane * across], [rows, cols])
            pl.tpush_to_aic(pl.add(share, share), split=split)

        @pl.function(type=pl.FunctionType.Group)
        def both(
            self, x: pl.Tensor[[32, 32], F32], w: pl.Tensor[[32, 32], F32], y: pl.Out[pl.Tensor[[32, 32], F32]]
        ) -> pl.Tensor[[32, 32], F32]:
            y2 = self.cube(x, w, y)
            self.vector(x, w, y)
            return y2

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[32, 32], F32], w: pl.Tensor[[32, 32], F32], y: pl.Out[pl.Tensor[[32, 32], F32]]
        ) -> pl.Tensor[[32, 32], F32]:
            y = self.both(x, w, y)
            return y

    return Doubled


def ragged(split: int) -> Program:
    """The cube multiplies to 24 valid columns of 32, and each lane stores what is valid of its share plus 1."""
    rows, down = (8, 8) if split else (16, 0)

    @pl.program
    class Ragged:
        @pl.function(type=pl.FunctionType.AIC)
        def cube(
            self, x: pl.Tensor[[16, 16], F16], w: pl.Tensor[[16, 24], F16], y: pl.Out[pl.Tensor[[16, 24], F32]]
        ):
            there = pl.import_peer_buffer(name="products", peer_func="vector")
            pl.aic_initialize_pipe(dir_mask=1, slot_size=2 * SLOT, slot_num=2, c2v_consumer_buf=there)
            left = pl.move(pl.load(x, [0, 0], [16, 16], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
            wide = pl.load(w, [0, 0], [16, 32], valid_shape=[16, 24], target_memory=pl.Mem.Mat)
            pl.tpush_to_aiv(pl.matmul(left, pl.move(wide, target_memory=pl.Mem.Right)), split=split)

        @pl.function(type=pl.FunctionType.AIV)
        def vector(
            self, x: pl.Tensor[[16, 16], F16], w: pl.Tensor[[16, 24], F16], y: pl.Out[pl.Tensor[[16, 24], F32]]
        ) -> pl.Tensor[[16, 24], F32]:
            here = pl.reserve_buffer(name="products", size=4 * SLOT)
            pl.aiv_initialize_pipe(dir_mask=1, slot_size=2 * SLOT, slot_num=2, c2v_consumer_buf=here)
            lane = pl.tile.get_subblock_idx()
            share: pl.Tile[[rows, 32], F32, VEC, pl.TileView(valid_shape=[rows, 24])] = pl.tpop_from_aic(split=split)
            more = pl.add(share, 1.0)
            pl.tfree_to_aic(share)
            y = pl.store(more, [lane * down, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Group)
        def both(
            self, x: pl.Tensor[[16, 16], F16], w: pl.Tensor[[16, 24], F16], y: pl.Out[pl.Tensor[[16, 24], F32]]
        ) -> pl.Tensor[[16, 24], F32]:
            self.cube(x, w, y)
            y = self.vector(x, w, y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[16, 16], F16], w: pl.Tensor[[16, 24], F16], y: pl.Out[pl.Tensor[[16, 24], F32]]
        ) -> pl.Tensor[[16, 24], F32]:
            y = self.both(x, w, y)
            return y

    return Ragged
