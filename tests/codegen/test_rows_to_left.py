"""A row moved to Left is the vector of a `gemv`: it is in whole blocks of 512 bytes, or refused at the user's line."""

import numpy as np
import pytest

import pypto.language as pl
from pypto.backend.targets import TARGETS
from pypto.errors import Diagnosed

TEXT = """import pypto.language as pl
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[1, 100], pl.FP16], w: pl.Tensor[[100, 32], pl.FP16], y: pl.Out[pl.Tensor[[1, 32], pl.FP32]]):
    a = pl.load(x, [0, 0], [1, {k}], valid_shape=[1, 100], target_memory=pl.Mem.Mat)
    b = pl.load(w, [0, 0], [{k}, 32], valid_shape=[100, 32], target_memory=pl.Mem.Mat)
    pl.store(pl.tile.gemv(a, b), [0, 0], y)
"""


def compiled(k, target):
    return pl.compile(pl.parse(TEXT.format(k=k)), target=target, dump_passes=False, skip_ptoas=True)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_a_vector_of_part_of_a_block_is_refused(target):
    with pytest.raises(ValueError, match="blocks of 512 bytes, 256 elements of FP16") as caught:
        compiled(128, target)
    assert isinstance(caught.value, Diagnosed) and "[1, 256]" in str(caught.value)
    assert caught.value.span is not None and caught.value.span.begin_line == 6


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_a_vector_of_whole_blocks_has_any_valid_depth(target):
    rng = np.random.default_rng(0)
    x, w = rng.integers(-3, 4, (1, 100)).astype(np.float16), rng.integers(-3, 4, (100, 32)).astype(np.float16)
    y = np.zeros((1, 32), np.float32)
    compiled(256, target)(x, w, y)
    np.testing.assert_array_equal(y, x.astype(np.float32) @ w.astype(np.float32))
