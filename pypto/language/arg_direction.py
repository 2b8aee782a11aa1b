"""`pl.adir`: how a launch uses each argument, as printed in ``attrs={"arg_directions": [..]}``."""

from __future__ import annotations

from typing import Final

from ..ir.enums import ArgDirection

NAME_TO_DIRECTION: Final = {
    "input": ArgDirection.Input,
    "output": ArgDirection.Output,
    "inout": ArgDirection.InOut,
    "output_existing": ArgDirection.OutputExisting,
    "no_dep": ArgDirection.NoDep,
    "scalar": ArgDirection.Scalar,
}
DIRECTION_TO_NAME: Final = {direction: name for name, direction in NAME_TO_DIRECTION.items()}


class _Adir:
    """The argument directions by name."""

    input = ArgDirection.Input
    output = ArgDirection.Output
    inout = ArgDirection.InOut
    output_existing = ArgDirection.OutputExisting
    no_dep = ArgDirection.NoDep
    scalar = ArgDirection.Scalar


adir: Final = _Adir()
