"""The data folders: inside the package when installed from a wheel, beside it in a checkout."""

from __future__ import annotations

import importlib.resources
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import InternalError

if TYPE_CHECKING:
    from importlib.abc import Traversable


def resource_dir(name: str) -> Traversable:
    """Folder ``codegen_templates`` or ``toolchain``. Raises InternalError when the installation lacks it."""
    package = importlib.resources.files("pypto")
    packed = package / "_data" / name
    if packed.is_dir():
        return packed
    beside = Path(str(package)).parent / name
    if beside.is_dir():
        return beside
    raise InternalError(f"the pypto installation at {package} has no {name} folder")
