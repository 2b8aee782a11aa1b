"""The physical order of tile buffers."""

import pytest

from pypto.backend import ASCEND910B, ASCEND950
from pypto.backend.formats import tile_format
from pypto.dtypes import DataType
from pypto.ir.enums import MemorySpace, TileLayout
from pypto.ir.types import TileType, TileView

ROW, COL, NONE = TileLayout.row_major, TileLayout.col_major, TileLayout.none_box


def order(target, shape, space, view=None):
    made = tile_format(TileType(shape, DataType.FP16, None, view, space), target)
    return made.blayout, made.slayout, made.fractal


@pytest.mark.parametrize(
    ("shape", "space", "expected"),
    [
        ([16, 32], MemorySpace.Vec, (ROW, NONE, 512)),
        ([16, 1], MemorySpace.Vec, (COL, NONE, 512)),
        ([32, 64], MemorySpace.Mat, (COL, ROW, 512)),
        ([32, 64], MemorySpace.Left, (ROW, ROW, 512)),
        ([32, 64], MemorySpace.Right, (ROW, COL, 512)),
        ([32, 64], MemorySpace.Acc, (COL, ROW, 1024)),
        ([1, 64], MemorySpace.Bias, (ROW, NONE, 512)),
        ([1, 64], MemorySpace.Mat, (ROW, NONE, 512)),
    ],
)
def test_a_tile_without_a_view_has_its_memorys_order(shape, space, expected):
    assert order(ASCEND910B, shape, space) == expected


def test_left_differs_between_targets():
    assert order(ASCEND950, [32, 64], MemorySpace.Left) == (COL, ROW, 512)


def test_a_stated_order_is_kept_where_instructions_know_others():
    boxed = TileView(blayout=COL, slayout=ROW)
    assert order(ASCEND910B, [32, 64], MemorySpace.Vec, boxed) == (COL, ROW, 512)
    assert order(ASCEND910B, [32, 64], MemorySpace.Mat, TileView()) == (ROW, NONE, 512)
    assert order(ASCEND910B, [32, 64], MemorySpace.Left, boxed) == (ROW, ROW, 512)
