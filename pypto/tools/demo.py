"""``python -m pypto.tools.demo [FOLDER]``: run every example and print one line for each."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from ..errors import InternalError
from .examples import Example, run, table


def load_examples(folder: Path) -> list[Example]:
    """The example of every module in ``folder`` that has an ``example()``."""
    found = []
    for path in sorted(folder.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise InternalError(f"{path} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if hasattr(module, "example"):
            found.append(module.example())
    return found


def main() -> int:
    """0 when every example computes what it should, 1 otherwise."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("examples")
    examples = load_examples(folder)
    if not examples:
        print(f"no examples in {folder.resolve()}", file=sys.stderr)
        return 1
    outcomes = [run(e) for e in examples]
    print(table([o.row() for o in outcomes]))
    wrong = [o.example.name for o in outcomes if not o.ok]
    if wrong:
        print(f"wrong results: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
