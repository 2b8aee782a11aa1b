"""Run a command with a time limit and leave nothing of it behind.

Run as a script: ``_guard.py SECONDS COMMAND...``. Exits with the command's status, or 124 after the
limit. PTOAS is a tree of launchers and compilers, so the whole process group is ended.
"""

import contextlib
import os
import signal
import subprocess
import sys


def main() -> int:
    process = subprocess.Popen(sys.argv[2:], start_new_session=True)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    try:
        status = process.wait(float(sys.argv[1]))
        return status if status >= 0 else 128 - status
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        return 124
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
