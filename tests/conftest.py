"""Whatever a test compiles is printed, read back and compared after every pass; each test selects its own backend."""

import os
from collections.abc import Iterator

import pytest

os.environ.setdefault("PYPTO_VERIFY_LEVEL", "roundtrip")


@pytest.fixture(autouse=True)
def no_backend_left_selected() -> Iterator[None]:
    from pypto import backend

    backend.reset_for_testing()
    yield
    backend.reset_for_testing()


@pytest.fixture
def on_910b() -> None:
    from pypto import backend

    backend.set_backend_type(backend.BackendType.Ascend910B)


@pytest.fixture
def on_950() -> None:
    from pypto import backend

    backend.set_backend_type(backend.BackendType.Ascend950)
