"""The public names of `pypto.ir`."""

from __future__ import annotations

import sys

from pypto import ir as _module

sys.modules[__name__] = _module
