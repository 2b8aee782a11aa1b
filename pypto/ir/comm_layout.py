"""The communication context a kernel is given: offsets in bytes of what it reads of it.

``RANK_ID_OFFSET`` and ``RANK_NUM_OFFSET`` hold 32-bit integers; from ``WINDOWS_IN_OFFSET`` on there is the address of
each rank's window, ``WINDOW_SLOT_STRIDE`` bytes apart.
"""

from __future__ import annotations

from typing import Final

RANK_ID_OFFSET: Final = 16
RANK_NUM_OFFSET: Final = 20
WINDOWS_IN_OFFSET: Final = 32
WINDOWS_OUT_OFFSET: Final = 544
WINDOW_SLOT_STRIDE: Final = 8
COMM_CTX_SIZE: Final = 1056
MAX_RANKS: Final = (WINDOWS_OUT_OFFSET - WINDOWS_IN_OFFSET) // WINDOW_SLOT_STRIDE
