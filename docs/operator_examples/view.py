import numpy as np

import pypto.language as pl


@pl.function
def folded(x: pl.Tensor[[32, 64], pl.FP32]) -> pl.Tensor[[64, 32], pl.FP32]:
    narrow = pl.tensor.view(x, [64, 32])
    with pl.at(level=pl.Level.CORE_GROUP):
        result = pl.tensor.add(narrow, narrow)
    return result


x = np.arange(2048, dtype=np.float32).reshape(32, 64)
assert (np.asarray(pl.compile(folded)(x)) == 2 * x.reshape(64, 32)).all()
