"""The distributed operators: importing the module makes their declarations known.

`tensor`, `tile` and `system` hold the functions of ``pld.tensor`` and so on, `SHORT` those that ``pld`` itself has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..ir.expr import Expr
from ..ir.types import TileType
from . import dist_builtin, dist_collectives, dist_remote, dist_system, dist_transfer, dist_windows
from .functions import Namespace, Selected
from .registry import OpTypeError

__all__ = [
    "SHORT", "dist_builtin", "dist_collectives", "dist_remote", "dist_system", "dist_transfer", "dist_windows",
    "system", "tensor", "tile",
]  # fmt: skip

tensor = Namespace("pld.tensor", {"alloc_window_buffer": dist_windows.choose_alloc})
tile = Namespace("pld.tile", {})
system = Namespace("pld.system", {})


def _remote_store(level: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Push a tile or a computed tensor into a peer's slice: the operator of the first argument's level."""
    names = ("src", "target", "peer", "offsets")
    if len(args) > len(names):
        raise OpTypeError(f"{level}.remote_store takes at most 4 positional arguments, got {len(args)}")
    values: dict[str, Any] = dict(zip(names, args))
    for name, given in kwargs.items():
        if name == "src_tile":
            name = "src"
        if name in values:
            raise OpTypeError(f"{level}.remote_store got multiple values for {name!r}")
        values[name] = given
    src = values.get("src")
    if isinstance(src, Expr) and isinstance(src.type, TileType):
        values["src_tile"] = values.pop("src")
        return "tile.remote_store", values
    return "tensor.remote_store", values


SHORT: Final[dict[str, Callable[..., Any]]] = {
    "alloc_window_buffer": tensor.alloc_window_buffer,
    "window": tensor.window,
    "world_size": system.world_size,
    "get_comm_ctx": system.get_comm_ctx,
    "rank": system.rank,
    "nranks": system.nranks,
    "remote_load": tile.remote_load,
    "remote_store": Selected("pld", "remote_store", _remote_store),
}
"""Functions reachable as ``pld.<name>``; transfers, signals and collectives are named with their level."""
