"""The tile of a matmul that the cube's memories hold and that costs the fewest cycles.

The cost is a roofline: loading operands and multiplying overlap, draining the accumulator follows, or overlaps too
where there are two accumulators. Every legal tile is weighed; those whose bound is worse than the best so far are
skipped, so the tile found is the cheapest of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from ...backend.formats import round_up
from ...backend.targets import ASCEND910B

_COSTS = ASCEND910B.costs


class Stationarity(Enum):
    """What stays in its memory while the rest of the output is computed."""

    OutputStationary = 0
    AStationary = 1
    BStationary = 2


@dataclass(slots=True)
class L0TileConfig:
    """A matmul ``[M, K] @ [K, N]`` and the memories it has; sizes in bytes, by default the 910B's.

    Tiles are multiples of ``align_*`` and at least ``min_*``. An accumulator has a multiple of ``l0c_align_m`` rows,
    and tiles take whole boxes of ``box_align_m`` rows and ``box_align_n`` columns. ``max_n`` bounds the columns of a
    tile; ``max_n_pipelined`` those of schedules that keep two of them in flight along N,
    ``max_n_nested_pipelined`` of those that keep four. 0 is no bound. ``allow_k_boundary``: the last block of K may
    be smaller than the others.
    """

    M: int = 0
    N: int = 0
    K: int = 0
    l0a_bytes: int = 64 * 1024
    l0b_bytes: int = 64 * 1024
    l0c_bytes: int = 128 * 1024
    bytes_a: int = 2
    bytes_b: int = 2
    bytes_c: int = 4
    min_m: int = 16
    min_n: int = 16
    min_k: int = 16
    align_m: int = 16
    align_n: int = 16
    align_k: int = 16
    l0c_align_m: int = 16
    box_align_m: int = 1
    box_align_n: int = 1
    max_n: int = 0
    max_n_pipelined: int = 0
    max_n_nested_pipelined: int = 0
    allow_a_stationary: bool = False
    allow_b_stationary: bool = False
    allow_double_buffer_c: bool = False
    allow_k_boundary: bool = False
    allow_padding: bool = False
    c_read: bool = False
    bw_a: float = _COSTS.l0a_bytes_per_cycle
    bw_b: float = _COSTS.l0b_bytes_per_cycle
    bw_drain: float = _COSTS.drain_bytes_per_cycle
    drain_fixed_cycles: float = _COSTS.drain_cycles
    drain_row_cycles: float = _COSTS.drain_row_cycles
    drain_penalty_cycles: float = _COSTS.drain_odd_fractal_cycles
    drain_c0_bytes: int = 32
    mad_head: float = _COSTS.mad_head_cycles
    mad_k_fractal_bytes: int = 32
    mad_fp32_passes: int = _COSTS.mad_passes_f32


@dataclass(frozen=True, slots=True)
class L0TileResult:
    """The tile chosen and how the output is walked.

    ``os_holds_a``: with the whole of K in one tile, rows are the outer loop. ``perf_hint`` says what is lost, if
    anything.
    """

    m: int
    n: int
    k: int
    stationarity: Stationarity
    os_holds_a: bool
    double_buffer_c: bool
    estimated_cost_cycles: int
    estimated_traffic_bytes: int
    perf_hint: str = ""


def choose_l0_tile(config: L0TileConfig) -> L0TileResult:
    """The cheapest tile. Raises ValueError when there is no legal one, or ``config`` makes no sense."""
    return _choose(astuple(config))


@lru_cache(maxsize=1024)
def _choose(settings: tuple[Any, ...]) -> L0TileResult:
    return _Chooser(L0TileConfig(*settings)).choose()


def _odd_part(value: int) -> int:
    return value // (value & -value)


class _Found(NamedTuple):
    """A tile; tuples compare by cost, then by what breaks ties."""

    wall: int
    computed: int
    blocks: int
    load: float
    area: int
    neg_k: int
    m: int
    n: int


class _Regime(NamedTuple):
    stationarity: Stationarity
    double_c: bool


class _Chooser:
    def __init__(self, config: L0TileConfig) -> None:
        self.c = config
        self._check()
        c = config
        self.k_unit = max(1, c.mad_k_fractal_bytes // c.bytes_a)
        self.passes = max(1, c.mad_fp32_passes) if c.bytes_a == 4 else max(1, c.bytes_a // 2)
        self.peels = c.allow_k_boundary and c.K % c.align_k == 0

    def _check(self) -> None:
        c = self.c
        if min(c.M, c.N, c.K) <= 0:
            raise ValueError(f"M, N, K must all be positive, got {c.M}, {c.N}, {c.K}")
        if not c.allow_padding:
            for name, size, least in (("M", c.M, c.min_m), ("N", c.N, c.min_n), ("K", c.K, c.min_k)):
                if size < least:
                    raise ValueError(f"allow_padding=false but {name}={size} is below the least tile, {least}")
        for name in ("max_n", "max_n_pipelined", "max_n_nested_pipelined"):
            bound = getattr(c, name)
            if bound and bound < c.min_n:
                raise ValueError(f"{name} must be zero (no bound) or at least min_n={c.min_n}, got {bound}")
        positive = [f.name for f in fields(c) if f.name.startswith(("bytes_", "align_", "min_", "bw_", "box_", "l0"))]
        for name in positive:
            if getattr(c, name) <= 0:
                raise ValueError(f"{name} must be positive, got {getattr(c, name)}")

    def choose(self) -> L0TileResult:
        c = self.c
        regime = _Regime(Stationarity.OutputStationary, False)
        best = self._search(regime)
        if best is None:
            raise ValueError(
                f"no legal tile for M={c.M}, N={c.N}, K={c.K}: K must be a multiple of {c.align_k} and a "
                f"{c.min_m}x{c.min_n}x{c.min_k} tile must fit"
            )
        if (best.m, best.n, -best.neg_k) != (c.M, c.N, c.K):
            for other in self._regimes():
                found = self._search(other, best.wall - 1)
                if found is not None and found.wall < best.wall:
                    best, regime = found, other
        return self._result(best, regime)

    def _regimes(self) -> Iterator[_Regime]:
        """What else than the plain schedule may be chosen, in order of preference."""
        c = self.c
        doubled = (False, True) if c.allow_double_buffer_c else (False,)
        for stationarity, allowed in (
            (Stationarity.OutputStationary, True),
            (Stationarity.AStationary, c.allow_a_stationary),
            (Stationarity.BStationary, c.allow_b_stationary),
        ):
            for double_c in doubled if allowed else ():
                if double_c or stationarity is not Stationarity.OutputStationary:
                    yield _Regime(stationarity, double_c)

    def _search(self, regime: _Regime, bound: int | None = None) -> _Found | None:
        """The cheapest tile of a schedule; of those that cost at most ``bound``, if given."""
        c = self.c
        room_a = c.l0a_bytes // (c.bytes_a * (1 if regime.stationarity is Stationarity.AStationary else 2))
        room_b = c.l0b_bytes // (c.bytes_b * (1 if regime.stationarity is Stationarity.BStationary else 2))
        room_c = c.l0c_bytes // (c.bytes_c * (2 if regime.double_c else 1))
        best: _Found | None = None
        limit = bound
        for m in self._steps(c.M, c.min_m, c.align_m):
            boxed_m = round_up(m, c.box_align_m)
            rows = round_up(boxed_m, c.l0c_align_m)
            for n in self._steps(min(c.N, c.max_n or c.N), c.min_n, c.align_n):
                boxed_n = round_up(n, c.box_align_n)
                if rows * boxed_n > room_c:
                    continue
                largest = min(room_a // boxed_m, room_b // boxed_n)
                found = self._best_k(regime, m, n, largest, limit)
                if found is not None and (best is None or found < best):
                    best, limit = found, found.wall
        return best

    def _steps(self, size: int, least: int, unit: int) -> range:
        """Extents a tile may have in a dimension, largest first: they make good bounds."""
        top = max(round_up(size, unit), least) if self.c.allow_padding else size
        return range(least + (top - least) // unit * unit, least - 1, -unit)

    def _legal_ks(self, largest: int, whole_k: bool) -> Iterator[int]:
        c = self.c
        top = max(round_up(c.K, c.align_k), c.min_k) if c.allow_padding else c.K
        top = min(largest, top) // c.align_k * c.align_k
        if whole_k:
            if c.min_k <= c.K <= top and c.K % c.align_k == 0:
                yield c.K
            return
        for k in range(c.min_k, top + 1, c.align_k):
            if c.allow_padding or self.peels or c.K % k == 0:
                yield k

    def _best_k(self, regime: _Regime, m: int, n: int, largest: int, limit: int | None) -> _Found | None:
        """The cheapest tile of ``m`` rows and ``n`` columns, if it costs at most ``limit``."""
        c = self.c
        if largest < c.min_k:
            return None
        held_a, held_b = self._held(m, n)
        if regime.double_c and self._inner_tiles(regime, m, n, held_a <= held_b) < 2:
            return None
        tiles = -(-c.M // m) * -(-c.N // n)
        drain = tiles * self._drain(m, n)
        split = self._streamed(m, n)
        whole = self._whole_load(regime, held_a, held_b)
        fractals = self.passes * -(-m // c.align_m) * -(-n // c.align_n)
        whole_k = regime.double_c or regime.stationarity is not Stationarity.OutputStationary
        if limit is not None:
            blocks, units = -(-c.K // largest), -(-c.K // self.k_unit)
            least = max(min(split, whole), float(tiles * (blocks * c.mad_head + fractals * units)))
            if self._wall(regime, least, drain, tiles) > limit:
                return None
        best: _Found | None = None
        for k in self._legal_ks(largest, whole_k):
            if k >= c.K and not self._in_flight(regime, n, held_a <= held_b):
                continue
            load = whole if k >= c.K else split
            mad = tiles * self._mad(k, fractals)
            wall = self._wall(regime, max(load, float(mad)), drain, tiles)
            blocks = -(-c.K // k)
            computed = -(-c.M // m) * m * -(-c.N // n) * n * blocks * k
            found = _Found(wall, computed, blocks, load, -(m * n), -k, m, n)
            if (limit is None or wall <= limit) and (best is None or found < best):
                best = found
        return best

    def _in_flight(self, regime: _Regime, n: int, rows_outer: bool) -> bool:
        """Whether as many tiles of ``n`` columns as the loops of a whole-K schedule keep at once are allowed."""
        c = self.c
        if regime.stationarity is Stationarity.BStationary:
            return True
        nested = regime.stationarity is Stationarity.OutputStationary and rows_outer
        bound = c.max_n_nested_pipelined if nested else c.max_n_pipelined
        return not bound or n <= bound

    def _inner_tiles(self, regime: _Regime, m: int, n: int, a_is_cheaper: bool) -> int:
        """Whole tiles along the inner loop."""
        return self.c.N // n if _rows_outer(regime.stationarity, a_is_cheaper) else self.c.M // m

    def _held(self, m: int, n: int) -> tuple[float, float]:
        """Cycles of loads when A, or B, is loaded once and the other again for each of its tiles."""
        c = self.c
        columns, rows = -(-c.N // n), -(-c.M // m)
        a, b = c.bytes_a * c.M * c.K, c.bytes_b * c.K * c.N
        return a / c.bw_a + (b * rows) / c.bw_b, (a * columns) / c.bw_a + b / c.bw_b

    def _streamed(self, m: int, n: int) -> float:
        c = self.c
        return (c.bytes_a * c.M * c.K * -(-c.N // n)) / c.bw_a + (c.bytes_b * c.K * c.N * -(-c.M // m)) / c.bw_b

    @staticmethod
    def _whole_load(regime: _Regime, held_a: float, held_b: float) -> float:
        if regime.stationarity is Stationarity.OutputStationary:
            return min(held_a, held_b)
        return held_a if regime.stationarity is Stationarity.AStationary else held_b

    def _drain(self, m: int, n: int) -> float:
        """Cycles to write one accumulator out: a row at a time, and rows of an odd number of fractals in pieces."""
        c = self.c
        fractals = -(-n // max(1, c.drain_c0_bytes // c.bytes_c))
        row = max(c.drain_row_cycles, c.bytes_c * n / c.bw_drain) + c.drain_penalty_cycles * (_odd_part(fractals) - 1)
        return c.drain_fixed_cycles + m * row

    def _mad(self, k: int, fractals: int) -> float:
        """Cycles to multiply one tile of the output, ``fractals`` a K fractal."""
        c, unit = self.c, self.k_unit
        full, tail = divmod(c.K, k)
        units = full * -(-k // unit) + -(-tail // unit)
        return (full + (tail > 0)) * c.mad_head + fractals * units

    @staticmethod
    def _wall(regime: _Regime, compute: float, drain: float, tiles: int) -> int:
        if not regime.double_c:
            return int(compute + drain + 0.5)
        # The first tile's product, or the last one's drain, has nothing to overlap with.
        return int(max(compute, drain) + min(compute, drain) / tiles + 0.5)

    def _result(self, found: _Found, regime: _Regime) -> L0TileResult:
        c = self.c
        m, n, k = found.m, found.n, -found.neg_k
        held_a, held_b = self._held(m, n)
        holds_a = held_a <= held_b
        outer = _rows_outer(regime.stationarity, holds_a)
        whole = k >= c.K
        columns, rows = -(-c.N // n), -(-c.M // m)
        traffic = (
            c.bytes_a * c.M * c.K * (1 if whole and outer else columns)
            + c.bytes_b * c.K * c.N * (1 if whole and not outer else rows)
            + (2 if c.c_read else 1) * c.bytes_c * c.M * c.N
        )
        padded = [f"{d} from {s} to {t}" for d, s, t in (("M", c.M, m), ("N", c.N, n), ("K", c.K, k)) if t > s]
        hint = f"the tile is larger than the matmul: pads {', '.join(padded)}" if padded else ""
        return L0TileResult(m, n, k, regime.stationarity, holds_a, regime.double_c, found.wall, traffic, hint)


def _rows_outer(stationarity: Stationarity, a_is_cheaper: bool) -> bool:
    if stationarity is Stationarity.OutputStationary:
        return a_is_cheaper
    return stationarity is Stationarity.AStationary
