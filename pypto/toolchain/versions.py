"""Versions of the external tools, as ``toolchain/versions.env`` pins them."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from .._resources import resource_dir


class Version(NamedTuple):
    """A release number; missing parts are 0, so 0.61 equals 0.61.0."""

    major: int
    minor: int
    patch: int = 0

    @classmethod
    def find(cls, text: str) -> Version | None:
        """First release number in ``text``, with or without a leading ``v``."""
        match = re.search(r"(?<![\d.])(\d+)\.(\d+)(?:\.(\d+))?", text)
        return cls(int(match[1]), int(match[2]), int(match[3] or 0)) if match else None

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}" + (f".{self.patch}" if self.patch else "")


@cache
def pinned_versions() -> dict[str, str]:
    """Every ``KEY=value`` of ``versions.env``."""
    text = (resource_dir("toolchain") / "versions.env").read_text(encoding="utf-8")
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, value in pairs}
