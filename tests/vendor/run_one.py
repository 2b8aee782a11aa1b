"""Run one kernel of a shared library on recorded arguments: ``library digest recorded.npz result.npz``."""

import ctypes
import sys

import numpy as np


def main() -> None:
    library, digest, recorded, result = sys.argv[1:]
    before = np.load(recorded)
    args = [np.array(before[f"a{i}"]) for i in range(len(before["types"]))]
    pointers = (ctypes.c_void_p * max(len(args), 1))(*(a.ctypes.data for a in args))
    getattr(ctypes.CDLL(library), f"run_{digest}")(pointers)
    np.savez(result, **{f"b{i}": a for i, a in enumerate(args)})


if __name__ == "__main__":
    main()
