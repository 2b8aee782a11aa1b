"""The public names of `pypto.passes`."""

from __future__ import annotations

import sys

from pypto import passes as _module

sys.modules[__name__] = _module
