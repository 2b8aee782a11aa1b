"""Every operator: importing the package makes all declarations known."""

from . import (
    array,
    kinds,
    system,
    tensor_compute,
    tensor_elementwise,
    tensor_index,
    tensor_memory,
    tile_cross,
    tile_elementwise,
    tile_expand,
    tile_gather,
    tile_generate,
    tile_layout,
    tile_matmul,
    tile_memory,
    tile_mx,
    tile_reduce,
    tile_scatter,
    tile_sort,
)
