"""The operator reference and the stubs say what the declarations say."""

import subprocess
import sys
from pathlib import Path

import pytest

from pypto.ops.registry import all_decls, get_decl, python_name
from pypto.tools import docs, stubs

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / docs.PAGE).read_text(encoding="utf-8")
KERNELS = '''# pyright: reportInvalidTypeArguments=false
import pypto.language as pl

ROWS, COLS = 32, 128


@pl.function(type=pl.FunctionType.InCore)
def kernel(
    x: pl.Tensor[[ROWS, COLS], pl.FP32], n: pl.Scalar[pl.INT32], y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]
) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
    tile = pl.load(x, [0, 0], [ROWS, COLS])
    for i in pl.range(n):
        tile = pl.add(tile, pl.mul(tile, 2.0))
    total = pl.tile.row_sum(tile, pl.tile.create([ROWS, COLS], pl.FP32))
    half = pl.cast(tile, pl.FP16, mode="rint")
    y = pl.store(pl.row_expand_add(pl.cast(half, pl.FP32), total), [0, 0], y)
    return y


@pl.function
def on_tensors(x: pl.Tensor[[ROWS, COLS], pl.FP32]) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.mul(pl.exp(x), 0.5)
    return out
'''
WRONG = '''# pyright: reportInvalidTypeArguments=false
import pypto.language as pl


def kernel(x: pl.Tensor[[16, 16], pl.FP32]):
    pl.tile.add(pl.load(x, [0, 0], [16, 16]))
    pl.relu("text")
    pl.tile.no_such_operator(x)
'''


def declared():
    return [d for d in all_decls() if d.name.split(".")[0] not in ("pld", "builtin", "dist", "test")]


def test_the_operator_reference_is_up_to_date():
    assert docs.operator_reference(declared(), docs.written_examples(PAGE)) == PAGE, "run make docs"


WITHOUT_EXAMPLE = {
    **dict.fromkeys(("tile.aic_gather", "tile.aiv_shard", "tensor.get_subblock_idx"), "made from the other form"),
    **dict.fromkeys(("tile.alloc", "tile.tget_scale_addr"), "inserted by passes"),
    **dict.fromkeys(("tile.random", "tensor.random"), "the simulator has no published generator to follow"),
}


def test_every_operator_has_an_example_that_uses_it():
    shown = docs.written_examples(PAGE)
    assert {d.name for d in declared() if not d.internal} - shown.keys() == WITHOUT_EXAMPLE.keys()
    for name, text in shown.items():
        assert f"pl.{name.partition('.')[0]}.{python_name(name)}(" in text or name == "array.update_element"


def test_the_page_shows_every_example_file_as_it_is():
    shown = set(docs.written_examples(PAGE).values())
    for path in (ROOT / docs.EXAMPLES).glob("*.py"):
        assert path.read_text(encoding="utf-8") in shown, path.name


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("tile.add", "- Ascend910B: `result` INT16, INT32, FP16, FP32"),
        ("tile.add", "- Ascend950: `result` INT8, INT16, INT32, FP16, BF16, FP32"),
        ("tile.histogram", "- Ascend910B: not there"),
        ("tile.ands", "- Ascend910B: `result` INT8, INT16, INT32, UINT8, UINT16, UINT32"),
        ("tensor.add", "- Ascend910B: `result` INT16, INT32, FP16, FP32"),
    ],
)
def test_element_types_of_each_target_come_from_the_instruction(name, line):
    decl = get_decl(name)
    assert decl is not None
    assert line in docs.operator_section(decl, None)


def test_the_stub_is_up_to_date():
    assert stubs.TARGET.read_text(encoding="utf-8") == stubs.stub(), "run python -m pypto.tools.stubs"


def test_checking_the_stub_needs_no_writing(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["stubs", "--check"])
    stubs.main()
    monkeypatch.setattr(stubs, "TARGET", tmp_path / "old.pyi")
    with pytest.raises(SystemExit, match="out of date"):
        stubs.main()


def pyright(path):
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(path)]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, timeout=300)


def test_a_type_checker_accepts_kernels_and_finds_mistakes(tmp_path):
    good, bad = tmp_path / "kernels.py", tmp_path / "mistakes.py"
    (tmp_path / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{ROOT}"]}}')
    good.write_text(KERNELS)
    bad.write_text(WRONG)
    done = pyright(tmp_path)
    said = done.stdout
    assert "kernels.py:" not in said, said
    for words in ('Argument missing for parameter "rhs"', '"Literal[\'text\']" is not assignable', "no_such_operator"):
        assert words in said, said
