"""Ways between on-chip memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...backend.target import Target
from ...errors import Diagnosed, user_error
from ...ir.enums import MemorySpace
from ...ir.span import Span
from .demand import Allowed

_UNREACHABLE = 100
_WAY_OUT = {
    MemorySpace.Acc: "an accumulator is only ever written by the cube: start it with pl.matmul, then pl.matmul_acc",
    MemorySpace.Vec: "store the cube's result to a tensor, and load and process it in a scope of its own: "
    "with pl.at(level=pl.Level.CORE_GROUP)",
}
_TO_CUBE = (
    "store the value to a tensor (pl.store) and load it with target_memory=pl.Mem.Mat in the scope that multiplies it"
)


class Moves:
    """The moves of ``target``; without a target every pair of memories is taken to have one.

    Nothing moves into Acc: only the cube writes there.
    """

    def __init__(self, target: Target | None) -> None:
        self.target = target

    def path(self, source: MemorySpace, destination: MemorySpace) -> list[MemorySpace] | None:
        """The memories after ``source`` on the way to ``destination``, staying on chip; None when there is none."""
        if source is destination:
            return []
        if destination is MemorySpace.Acc:
            return None
        if self.target is None:
            return [destination]
        paths: list[list[MemorySpace]] = [[source]]
        seen = {source, MemorySpace.DDR}
        for path in paths:
            for space in self.target.moves.get(path[-1], ()):
                if space is destination:
                    return [*path[1:], space]
                if space not in seen:
                    seen.add(space)
                    paths.append([*path, space])
        return None

    def nearest(self, source: MemorySpace, allowed: Allowed) -> list[MemorySpace] | None:
        """The shortest way from ``source`` into one of ``allowed``; earlier ones win ties."""
        found: list[MemorySpace] | None = None
        for space in allowed:
            path = self.path(source, space)
            if path is not None and (found is None or len(path) < len(found)):
                found = path
        return found

    def cheapest(self, candidates: Iterable[MemorySpace], wants: Sequence[Allowed]) -> MemorySpace:
        """The candidate from which the consumers need the fewest moves; earlier ones win ties."""

        def cost(space: MemorySpace) -> int:
            paths = [self.nearest(space, allowed) for allowed in wants]
            return sum(_UNREACHABLE if path is None else len(path) for path in paths)

        return min(candidates, key=cost)

    def refuse(self, what: str, source: MemorySpace, allowed: Allowed, span: Span) -> Diagnosed:
        """The error for a tile that cannot get where it is needed."""
        wanted = " or ".join(s.name for s in allowed)
        where = f" on {self.target.name}" if self.target is not None else ""
        hint = _WAY_OUT.get(allowed[0], _TO_CUBE) if allowed[0] is not source else _TO_CUBE
        return user_error(
            ValueError,
            f"{what} is in {source.name} and is needed in {wanted}, and nothing moves it there{where}",
            span,
            hint,
        )
