"""`pl.adir`: how a launch uses each argument, as printed in ``attrs={"arg_directions": [..]}``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Final

from ..ir import directions
from ..ir.enums import ArgDirection

NAME_TO_DIRECTION: Final[dict[str, ArgDirection]] = {
    name: getattr(directions, name) for name in ("input", "output", "inout", "output_existing", "no_dep", "scalar")
}
DIRECTION_TO_NAME: Final = {direction: name for name, direction in NAME_TO_DIRECTION.items()}


class _Directions(SimpleNamespace):
    """The argument directions by name."""


adir: Final = _Directions(**NAME_TO_DIRECTION)
