import numpy as np

import pypto.language as pl


@pl.function(type=pl.FunctionType.InCore)
def numbers(out: pl.Out[pl.Tensor[[1, 64], pl.INT32]]) -> pl.Tensor[[1, 64], pl.INT32]:
    return pl.store(pl.tile.ci(63, [1, 64], dtype=pl.INT32, descending=True), [0, 0], out)


@pl.function
def same(out: pl.Out[pl.Tensor[[1, 64], pl.INT32]]) -> pl.Tensor[[1, 64], pl.INT32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.assemble(out, pl.tensor.ci(63, [1, 64], dtype=pl.INT32, descending=True), [0, 0])
    return out


for function in (numbers, same):
    out = np.zeros((1, 64), np.int32)
    pl.compile(function)(out)
    assert (out[0] == np.arange(63, -1, -1)).all()
