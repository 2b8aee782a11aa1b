import numpy as np

import pypto.language as pl


@pl.function(type=pl.FunctionType.InCore)
def copy(
    x: pl.Tensor[[1, 1024], pl.FP32], y: pl.Out[pl.Tensor[[1, 1024], pl.FP32]]
) -> pl.Tensor[[1, 1024], pl.FP32]:
    context = pl.prefetch.make_context()
    event = pl.prefetch.async_prefetch(x, context)
    session = pl.prefetch.session(context)
    pl.prefetch.wait(event, session)
    return pl.store(pl.load(x, [0, 0], [1, 1024]), [0, 0], y)


x, y = np.ones((1, 1024), np.float32), np.zeros((1, 1024), np.float32)
pl.compile(copy)(x, y)
assert (y == x).all()
