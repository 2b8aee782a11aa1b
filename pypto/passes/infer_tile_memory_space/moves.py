"""Ways between on-chip memories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...backend.target import Target
from ...errors import Diagnosed, user_error
from ...ir.enums import MemorySpace
from ...ir.span import Span
from .demand import Allowed

_UNREACHABLE = 100
_PIPES = {
    MemorySpace.Acc: (MemorySpace.Vec,),
    MemorySpace.Mat: (MemorySpace.Vec,),
    MemorySpace.Vec: (MemorySpace.Mat,),
}
"""Where a pipe between the cores of a group takes a tile; ExpandMixedKernel makes one for such a move. What is in Mat
is loaded again."""
_CROSSING_COSTS = {MemorySpace.Acc: 4, MemorySpace.Vec: 4, MemorySpace.Mat: 8}
"""What a crossing from each memory counts, in moves within a core."""
_WAY_OUT = {
    MemorySpace.Acc: "an accumulator is only ever written by the cube: start it with pl.matmul, then pl.matmul_acc; "
    "what the vector cores need of a tensor, they load themselves",
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
        return self._search(source, destination, {}) or self._search(source, destination, _PIPES)

    def _search(
        self, source: MemorySpace, destination: MemorySpace, pipes: Mapping[MemorySpace, Sequence[MemorySpace]]
    ) -> list[MemorySpace] | None:
        moves = self.target.moves if self.target is not None else {}
        paths: list[list[MemorySpace]] = [[source]]
        seen = {source, MemorySpace.DDR}
        for path in paths:
            for space in (*moves.get(path[-1], ()), *pipes.get(path[-1], ())):
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
            return sum(_UNREACHABLE if path is None else self._cost(space, path) for path in paths)

        return min(candidates, key=cost)

    def _cost(self, source: MemorySpace, path: Sequence[MemorySpace]) -> int:
        if self.target is None:
            return len(path)
        steps = zip((source, *path), path)
        return sum(_CROSSING_COSTS.get(a, 1) if is_crossing(a, b) else 1 for a, b in steps)

    def crosses(self, path: Sequence[MemorySpace]) -> bool:
        """Whether a way, its start included, begins between the cores."""
        return len(path) > 1 and is_crossing(path[0], path[1])

    def asked(self, source: MemorySpace, allowed: Allowed) -> list[MemorySpace] | None:
        """The way to take although no target has it: who writes the move as an instruction, or runs it, refuses it."""
        return list(allowed) if source is MemorySpace.Mat and list(allowed) == [MemorySpace.Acc] else None

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


    def is_reload(self, source: MemorySpace, destination: MemorySpace) -> bool:
        """Whether the vector cores have to load for themselves what the cube has."""
        if self.target is None or source is not MemorySpace.Mat or destination is not MemorySpace.Vec:
            return False
        return not self.target.can_move(source, destination)


def is_crossing(source: MemorySpace, destination: MemorySpace) -> bool:
    """Whether the two memories belong to different cores."""
    return (source is MemorySpace.Vec) is not (destination is MemorySpace.Vec)

