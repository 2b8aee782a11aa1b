"""Run kernels of a shared library: ``library``, and on standard input lines of digest, recorded and result file.

Each runs in a fork, so that one that crashes or does not end leaves the others alone; how they ended is printed.
"""

import ctypes
import os
import signal
import sys
import tempfile

import numpy as np

_SECONDS = 60


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    for line in sys.stdin.read().splitlines():
        digest, recorded, result = line.split("\t")
        with tempfile.TemporaryFile() as said:
            child = os.fork()
            if child == 0:
                os.dup2(said.fileno(), 2)
                os.dup2(said.fileno(), 1)
                signal.alarm(_SECONDS)
                _run(library, digest, recorded, result)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            said.seek(0)
            last = (said.read().decode(errors="replace").strip().splitlines() or [""])[-1]
        ended = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"status {status >> 8}"
        print(digest, f"{ended} {last[-160:]}", sep="\t", flush=True)


def _run(library: ctypes.CDLL, digest: str, recorded: str, result: str) -> None:
    before = np.load(recorded)
    block, blocks, lane = (int(n) for n in before["place"])
    os.environ["PTO_CPU_SIM_NUM_CORES"] = str(blocks)
    args = [np.array(before[f"a{i}"]) for i in range(len(before["types"]))]
    pointers = (ctypes.c_void_p * max(len(args), 1))(*(a.ctypes.data for a in args))
    getattr(library, f"run_{digest}")(pointers, block, lane)
    np.savez(result, **{f"b{i}": a for i, a in enumerate(args)})


if __name__ == "__main__":
    main()
