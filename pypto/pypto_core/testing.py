"""The public names of `pypto.testing`."""

from __future__ import annotations

import sys

from pypto import testing as _module

sys.modules[__name__] = _module
