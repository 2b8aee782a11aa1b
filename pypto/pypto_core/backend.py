"""The public names of `pypto.backend`."""

from __future__ import annotations

import sys

from pypto import backend as _module

sys.modules[__name__] = _module
