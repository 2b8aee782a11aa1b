"""The public names of `pypto.arith`."""

from __future__ import annotations

import sys

from pypto import arith as _module

sys.modules[__name__] = _module
