"""Every operator: importing the package makes all declarations known."""

from . import kinds  # noqa: F401  (conversions the declarations name)
from . import (  # noqa: F401
    tensor_compute,
    tensor_elementwise,
    tensor_memory,
    tile_elementwise,
    tile_expand,
    tile_layout,
    tile_matmul,
    tile_memory,
    tile_reduce,
)
