"""What a sanitized run checks around every instruction, besides reads of elements nothing wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pypto.pto.checks import apart, in_place
from pypto.pto.errors import PtoError
from pypto.pto.spec import Site

from .tile import CheckedTile, SimTile


def _overlap(left: SimTile, right: SimTile) -> bool:
    return left.base is right.base and np.shares_memory(left.elements, right.elements)


def _same_place(source: SimTile, result: SimTile) -> bool:
    """Whether each element of the result takes the bytes of the same element of the source, or in one row fewer.

    Of several rows, narrower elements would take the bytes of rows still to be read: instructions do the tails last.
    """
    wide, narrow = source.type.numpy.itemsize, result.type.numpy.itemsize
    if source.addr != result.addr or wide < narrow:
        return False
    return source.type.rows == result.type.rows == 1 or (wide == narrow and source.strides == result.strides)


def watch(site: Site, names: tuple[str, ...], run: Callable[..., None]) -> Callable[..., None]:
    """``run`` with checks of its operands, ``names``: alignment, and overlaps that the hardware gets wrong.

    Operands ``run`` does not take, its scratch, are passed too; their contents are lost.
    """
    spec = site.spec
    used = [position for position, name in enumerate(names) if name in spec.uses]
    scratch = [position for position, name in enumerate(names) if name not in spec.uses]
    outs = {operand.name for operand in spec.outs}
    vector = site.pipe == "V"
    pairs, shared = apart(spec, site.arch), in_place(spec)

    def watched(*values: Any) -> None:
        tiles = [(name, value) for name, value in zip(names, values, strict=True) if isinstance(value, SimTile)]
        if vector:
            for name, tile in tiles:
                if tile.addr % tile.base.alignment:
                    raise PtoError(
                        f"'pto.{spec.mnemonic}': '{name}' starts at {tile.addr} in {tile.base.name}, "
                        f"not a multiple of {tile.base.alignment} bytes"
                    )
        for name, tile in tiles:
            if name in outs:
                _check_result(site, name, tile, tiles, shared)
        _check_apart(site, pairs, tiles)
        for position in scratch:
            if isinstance(values[position], CheckedTile):
                values[position].forget()
        run(*[values[position] for position in used])

    return watched


def _check_result(
    site: Site, name: str, result: SimTile, tiles: list[tuple[str, SimTile]], shared: frozenset[str]
) -> None:
    for other, source in tiles:
        if other == name or other not in site.spec.uses:
            continue
        if source is result and other not in shared:
            raise PtoError(f"'pto.{site.spec.mnemonic}' cannot work in place, but '{name}' is also '{other}'")
        if source is not result and _overlap(source, result) and not (other in shared and _same_place(source, result)):
            raise PtoError(
                f"'pto.{site.spec.mnemonic}': '{name}' at {result.addr} overwrites part of '{other}' at "
                f"{source.addr} in {result.base.name} while it is read"
            )


def _check_apart(site: Site, pairs: Sequence[tuple[str, str]], tiles: list[tuple[str, SimTile]]) -> None:
    by_name = dict(tiles)
    for first, second in pairs:
        left, right = by_name.get(first), by_name.get(second)
        if left is not None and right is not None and (left is right or _overlap(left, right)):
            scratch = "scratch " if site.spec.by_name[first].scratch else ""
            raise PtoError(
                f"'pto.{site.spec.mnemonic}': {scratch}'{first}' at {left.addr} overlaps '{second}' at "
                f"{right.addr} in {right.base.name}"
            )
