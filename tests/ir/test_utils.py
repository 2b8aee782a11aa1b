"""Helpers of tools that build IR."""

import os
import warnings

import pypto
from pypto.ir import utils

HERE = os.path.dirname(os.path.abspath(pypto.__file__))


def level_in(path):
    namespace = {"probe": utils.caller_warning_stacklevel}
    exec(compile("def outer():\n    return inner()\ndef inner():\n    return probe()\n", path, "exec"), namespace)
    return namespace["outer"]()


def test_a_warning_names_the_first_line_outside_the_package():
    assert level_in(f"{HERE}_kernels{os.sep}k.py") == 1
    assert level_in(os.path.join(HERE, "ops", "made_up.py")) == 3


def test_the_level_is_the_one_warnings_takes():
    text = "import warnings\ndef tell():\n    warnings.warn('so', stacklevel=probe())\n"
    namespace = {"probe": utils.caller_warning_stacklevel}
    exec(compile(text, os.path.join(HERE, "made_up.py"), "exec"), namespace)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        namespace["tell"]()
    assert caught[0].filename == __file__
