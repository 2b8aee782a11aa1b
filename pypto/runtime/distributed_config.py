"""`DistributedConfig`: the devices a host program runs on."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class DistributedConfig:
    """The devices of a program whose entry is a host function.

    ``device_ids`` are the cards, in the order of the ranks that run on them: ``device=r`` is the card
    ``device_ids[r]``, and `pld.world_size()` how many there are. ``num_sub_workers`` processes for sub-workers,
    ``runtime``, and ``aicpu_thread_num`` (0 for the chip's default, else at least 2) are for a device runtime: they are
    checked here and without effect in the simulator.

    Raises ValueError for no devices, one named twice, and negative numbers.
    """

    device_ids: list[int] = field(default_factory=lambda: [0])
    num_sub_workers: int = 0
    runtime: str = "tensormap_and_ringbuffer"
    aicpu_thread_num: int = 0

    def __post_init__(self) -> None:
        ids = self.device_ids = list(self.device_ids)
        if not ids:
            raise ValueError("device_ids must not be empty: a program runs on one device or more")
        if len(set(ids)) != len(ids):
            raise ValueError(f"device_ids must be distinct, one for each rank, got {ids}")
        if min(ids) < 0:
            raise ValueError(f"device_ids must be non-negative, got {ids}")
        if self.num_sub_workers < 0:
            raise ValueError(f"num_sub_workers must be non-negative, got {self.num_sub_workers}")
        if self.aicpu_thread_num < 0 or self.aicpu_thread_num == 1:
            raise ValueError(
                f"aicpu_thread_num must be 0, for the chip's default, or at least 2, got {self.aicpu_thread_num}"
            )

    @property
    def world_size(self) -> int:
        """How many ranks there are."""
        return len(self.device_ids)
