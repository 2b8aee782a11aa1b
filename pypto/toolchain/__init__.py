"""External tools: PTOAS, which turns PTO text into kernel C++."""

from .locate import find_ptoas_binary
from .ptoas import DEFAULT_TIMEOUT, Ptoas, PtoasError, PtoasVersionError, find_ptoas
from .versions import Version, pinned_versions

__all__ = [
    "DEFAULT_TIMEOUT",
    "Ptoas",
    "PtoasError",
    "PtoasVersionError",
    "Version",
    "find_ptoas",
    "find_ptoas_binary",
    "pinned_versions",
]
