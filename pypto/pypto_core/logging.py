"""The public names of `pypto.logging`."""

from __future__ import annotations

import sys

from pypto import logging as _module

sys.modules[__name__] = _module
