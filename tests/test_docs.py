"""Every Python block on the top-level documentation pages runs; the pages of passes have tests of their own."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCKS = [
    pytest.param(path, number, text, id=f"{path.relative_to(ROOT)}-{number}")
    for path in sorted((ROOT / "docs").glob("*.md"))
    for number, text in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL))
]


@pytest.mark.parametrize(("page", "number", "text"), BLOCKS)
def test_a_block_runs(page, number, text, tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    path = tmp_path / f"{page.stem}_{number}.py"
    path.write_text(text, encoding="utf-8")
    exec(compile(text, str(path), "exec"), {"__name__": "__docs__"})


def test_there_are_blocks():
    assert len(BLOCKS) >= 5
