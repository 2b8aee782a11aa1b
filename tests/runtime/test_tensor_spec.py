"""TensorSpec: the tensors a script describes."""

import pytest

from pypto.runtime import TensorSpec

torch = pytest.importorskip("torch")


def test_tensors_are_made_as_described():
    zeros = TensorSpec("out", [2, 3], torch.float32, is_output=True).create_tensor()
    assert zeros.shape == (2, 3) and zeros.dtype is torch.float32 and not zeros.any()
    assert (TensorSpec("n", [4], torch.int32, init_value=7).create_tensor() == 7).all()
    drawn = TensorSpec("x", [5, 4], torch.bfloat16, init_value=torch.randn).create_tensor()
    assert drawn.shape == (5, 4) and drawn.dtype is torch.bfloat16
    counted = TensorSpec("i", [3], torch.int64, init_value=lambda: torch.arange(3)).create_tensor()
    assert counted.tolist() == [0, 1, 2]
    sized = TensorSpec("s", [2, 2], torch.float32, init_value=lambda shape: torch.ones(shape)).create_tensor()
    assert sized.tolist() == [[1, 1], [1, 1]]


def test_a_given_tensor_is_copied():
    given = torch.arange(3)
    made = TensorSpec("i", [3], torch.int64, init_value=given).create_tensor()
    made += 1
    assert given.tolist() == [0, 1, 2]


def test_a_tensor_of_another_shape_is_refused():
    spec = TensorSpec("x", [4], torch.float32, init_value=lambda: torch.zeros(3))
    with pytest.raises(ValueError, match=r"init_value of 'x' gives shape \[3\], the tensor has \[4\]"):
        spec.create_tensor()
