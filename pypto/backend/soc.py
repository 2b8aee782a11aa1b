"""The parts of a chip as objects: memories in cores, cores in clusters, clusters in dies, dies in an SoC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..ir.enums import CoreType, MemorySpace
from .target import Target


@dataclass(frozen=True)
class Mem:
    """A memory of a core: size and allocation alignment in bytes."""

    mem_type: MemorySpace
    mem_size: int
    alignment: int


class Core:
    """A core and its memories."""

    __slots__ = ("core_type", "mems")

    def __init__(self, core_type: CoreType, mems: Sequence[Mem]) -> None:
        self.core_type = core_type
        self.mems = list(mems)


class Cluster:
    """Cores that work together: ``count`` of one core, or a mapping of cores to their counts."""

    __slots__ = ("core_counts",)

    def __init__(self, cores: Core | Mapping[Core, int], count: int = 1) -> None:
        self.core_counts = {cores: count} if isinstance(cores, Core) else dict(cores)

    def total_core_count(self) -> int:
        return sum(self.core_counts.values())


class Die:
    """Clusters on one die: ``count`` of one cluster, or a mapping of clusters to their counts."""

    __slots__ = ("cluster_counts",)

    def __init__(self, clusters: Cluster | Mapping[Cluster, int], count: int = 1) -> None:
        self.cluster_counts = {clusters: count} if isinstance(clusters, Cluster) else dict(clusters)

    def total_cluster_count(self) -> int:
        return sum(self.cluster_counts.values())

    def total_core_count(self) -> int:
        return sum(cluster.total_core_count() * count for cluster, count in self.cluster_counts.items())


class SoC:
    """A chip: ``count`` of one die, or a mapping of dies to their counts."""

    __slots__ = ("die_counts",)

    def __init__(self, dies: Die | Mapping[Die, int], count: int = 1) -> None:
        self.die_counts = {dies: count} if isinstance(dies, Die) else dict(dies)

    def total_die_count(self) -> int:
        return sum(self.die_counts.values())

    def total_cluster_count(self) -> int:
        return sum(die.total_cluster_count() * count for die, count in self.die_counts.items())

    def total_core_count(self) -> int:
        return sum(die.total_core_count() * count for die, count in self.die_counts.items())


def soc_of(target: Target) -> SoC:
    """The chip of ``target``; memory sizes are the usable ones."""

    def core(core_type: CoreType) -> Core:
        mine = [m for m in target.memories.values() if m.core is core_type]
        return Core(core_type, [Mem(m.space, m.usable, m.alignment) for m in mine])

    group = Cluster({core(CoreType.CUBE): target.cubes_per_group, core(CoreType.VECTOR): target.vectors_per_group})
    return SoC(Die(group, target.groups_per_die), target.dies)
