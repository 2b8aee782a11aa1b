"""Where PTOAS is on this machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

# ptoas.sh brings its own interpreter and libraries, so it goes before the bare programs; a folder
# called ptoas is the Python package of the same release.
ROOT_LAYOUTS = ("ptoas.sh", "ptoas", "bin/ptoas")


def find_ptoas_binary() -> Path | None:
    """The executable below ``PTOAS_ROOT`` when that is set, and only there; otherwise ``ptoas`` on ``PATH``."""
    root = os.environ.get("PTOAS_ROOT")
    if root:
        candidates = (Path(root).expanduser() / layout for layout in ROOT_LAYOUTS)
        return next((path for path in candidates if path.is_file() and os.access(path, os.X_OK)), None)
    found = shutil.which("ptoas")
    return Path(found) if found else None


def absence() -> str:
    """Why there is no PTOAS, and how to get kernel C++."""
    from .versions import pinned_versions

    version = pinned_versions()["PTOAS_VERSION"]
    root = os.environ.get("PTOAS_ROOT")
    if root:
        where = f"PTOAS_ROOT={root} holds none of {', '.join(ROOT_LAYOUTS)}"
    else:
        where = "PTOAS_ROOT is not set and PATH has no ptoas"
    return (
        f"no PTOAS: {where}. Kernels are compiled to PTO text and run in the simulator. "
        f"For kernel C++ unpack PTOAS {version} (toolchain/install_ptoas.sh does it) and set PTOAS_ROOT."
    )
