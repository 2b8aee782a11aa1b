"""The public names of `pypto.codegen`."""

from __future__ import annotations

import sys

from pypto import codegen as _module

sys.modules[__name__] = _module
