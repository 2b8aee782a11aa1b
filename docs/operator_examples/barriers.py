import numpy as np

import pypto.language as pl


@pl.function(type=pl.FunctionType.InCore)
def copy(
    x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
) -> pl.Tensor[[16, 64], pl.FP32]:
    t = pl.load(x, [0, 0], [16, 64])
    pl.system.sync_src(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)
    pl.system.sync_dst(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)
    doubled = pl.tile.add(t, t)
    pl.system.bar_v()
    pl.tile.print(doubled)
    out = pl.store(doubled, [0, 0], out)
    pl.system.cacheinvalid(out, [16, 64], [0, 0])
    pl.system.fence()
    pl.system.bar_all()
    return out


x, out = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
pl.compile(copy)(x, out)
assert (out == 2 * x).all()
