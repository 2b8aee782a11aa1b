import numpy as np

import pypto.language as pl


@pl.function(type=pl.FunctionType.InCore)
def rows_in_order(
    x: pl.Tensor[[3, 16], pl.FP32], out: pl.Out[pl.Tensor[[3, 16], pl.FP32]]
) -> pl.Tensor[[3, 16], pl.FP32]:
    order = pl.array.create(3, pl.INT32)
    order = pl.array.update_element(order, 0, 2)
    order[1] = 0  # the same, as a subscript
    order[2] = 1
    for i in pl.range(3):
        row = pl.array.get_element(order, i)
        out = pl.store(pl.load(x, [row, 0], [1, 16]), [i, 0], out)
    return out


x, out = np.arange(48, dtype=np.float32).reshape(3, 16), np.zeros((3, 16), np.float32)
pl.compile(rows_in_order)(x, out)
assert (out == x[[2, 0, 1]]).all()
