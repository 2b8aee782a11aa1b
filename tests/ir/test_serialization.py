"""IR to bytes and back."""

import json
import math

import pytest

import pypto.language as pl
from pypto import DataType, ir


@pl.program
class Pair:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self, x: pl.Tensor[[16, 32], pl.BF16], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        # widen
        t = pl.cast(pl.load(x, [0, 0], [16, 32], valid_shape=[n, 32]), pl.FP32)
        for i in pl.range(0, n):
            if i > 2:
                t = pl.add(t, 0.5)
        y = pl.store(t, [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[16, 32], pl.BF16], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        y = self.kernel(x, 7, y)
        return y


def round_trip(node):
    return ir.deserialize(ir.serialize(node))


def test_a_program_comes_back_equal_with_spans_and_comments():
    made = round_trip(Pair)
    ir.assert_structural_equal(made, Pair)
    kernel, original = made.get_function("kernel"), Pair.get_function("kernel")
    assert kernel.span.to_string() == original.span.to_string()
    first, first_original = (ir.flatten_to_stmts(f.body)[0] for f in (kernel, original))
    assert first.leading_comments == first_original.leading_comments
    assert str(made) == str(Pair)


def test_what_was_shared_is_shared_and_variables_are_new():
    x = ir.Var("x", ir.ScalarType(DataType.INT64))
    made = round_trip(x + x)
    assert made.left is made.right and made.left is not x and made.left.unique_id != x.unique_id
    assert made.left.type is ir.ScalarType(DataType.INT64)


def test_operators_keep_their_declaration():
    call = ir.flatten_to_stmts(round_trip(Pair).get_function("kernel").body)[0].value
    assert call.op is ir.get_op(call.op.name)


@pytest.mark.parametrize("value", [0.1, -0.0, math.inf, -math.inf, math.nan, 1e-300])
def test_floats_are_exact(value):
    made = round_trip(ir.ConstFloat(value, DataType.FP32)).value
    assert made == value or (math.isnan(made) and math.isnan(value))
    assert math.copysign(1, made) == math.copysign(1, value)


def test_files(tmp_path):
    path = str(tmp_path / "program.json")
    ir.serialize_to_file(Pair, path)
    ir.assert_structural_equal(ir.deserialize_from_file(path), Pair)
    with pytest.raises(ValueError, match="cannot read"):
        ir.deserialize_from_file(str(tmp_path / "absent"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x00\x01", "no serialized IR"),
        (b"[]", "no serialized IR"),
        (b'{"format": "pypto-ir", "version": 99}', "version 99, this reads version 1"),
        (b'{"format": "pypto-ir", "version": 1, "files": [], "objects": [["X", [], null]], "root": null}', "damaged"),
    ],
)
def test_other_bytes_are_refused(data, message):
    with pytest.raises(ValueError, match=message):
        ir.deserialize(data)


def test_the_format_is_plain_json():
    stored = json.loads(ir.serialize(ir.ConstInt(3, DataType.INT32)))
    assert stored["format"] == "pypto-ir" and stored["version"] == 1
    assert [name for name, *_ in stored["objects"]] == ["ScalarType", "ConstInt"]
