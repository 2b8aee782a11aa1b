"""Whatever a test compiles is printed, read back and compared after every pass."""

import os

os.environ.setdefault("PYPTO_VERIFY_LEVEL", "roundtrip")
