"""`pypto.testing`."""

import subprocess
import sys

import pytest

import pypto
from pypto import testing


@pytest.mark.parametrize(("name", "cls"), testing.ERRORS.items())
def test_each_kind_is_raised_and_raised_again_as_itself(name, cls):
    helper = {
        "Error": testing.raise_generic_error, "NotImplementedError": testing.raise_not_implemented_error,
    }.get(name) or getattr(testing, f"raise_{name.removesuffix('Error').lower()}_error")  # fmt: skip
    with pytest.raises(cls, match="^first$") as caught:
        helper("first")
    assert type(caught.value) is cls
    with pytest.raises(cls, match="^second$") as caught:
        testing.rethrow_with_message(name, "first", "second")
    assert type(caught.value) is cls and str(caught.value.__cause__) == "first"


def test_an_internal_check_names_the_users_place():
    with pytest.raises(pypto.InternalError, match=r"Check failed: rank \[model.py:4:2\]"):
        testing.raise_internal_error_with_span("rank", "model.py", 4, 2)


def test_what_operators_declare_of_their_core():
    assert testing.get_declared_core_affinity("tile.add") == "vector"
    assert testing.get_declared_core_affinity("tile.matmul") == "cube"
    assert testing.get_declared_core_affinity("pld.system.wait") is None
    assert testing.is_no_duplicate_op("pld.system.notify") and not testing.is_no_duplicate_op("tile.add")
    for ask in (testing.get_declared_core_affinity, testing.is_no_duplicate_op):
        with pytest.raises(ValueError, match="tile.nothing"):
            ask("tile.nothing")


def test_the_same_module_under_both_names():
    from pypto.pypto_core import testing as core

    assert core is testing


def test_operators_that_tests_of_the_registry_call_come_with_the_public_module():
    script = """
from pypto import ir
try:
    ir.get_op("test.op")
except ValueError:
    print("absent")
from pypto.pypto_core import testing
assert testing.raise_value_error
print(*ir.get_op("test.op").get_attr_keys())
one, place = ir.ConstInt(1, ir.DataType.INT32), ir.Span("kernel.py", 12, 15)
for name in ("test.deduce_raises_internal", "test.deduce_raises_type"):
    try:
        ir.create_op_call(name, [one], place)
    except Exception as error:
        print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "absent",
        "int_attr string_attr bool_attr",
        "InternalError test.deduce_raises_internal always fails [kernel.py:12:15]",
        "TypeError test.deduce_raises_type always fails at kernel.py:12:15",
    ]
