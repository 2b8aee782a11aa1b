"""`DistributedWorker`: programs made ready to run many times, with the code of their sub-workers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..dtypes import DataType
from .sub_workers import Callback, unbound

if TYPE_CHECKING:
    from .compiled_program import CompiledProgram
    from .runner import RunConfig


class DistributedWorker:
    """Runs one program, or several: ``worker(*args)``, ``worker.run(program, *args)``; a context manager.

    ``callbacks`` has the code of the sub-workers whose body is ``...``, by name. Raises ValueError when one is missing,
    or names none of the programs' sub-workers.
    """

    def __init__(
        self,
        compiled: CompiledProgram | Sequence[CompiledProgram],
        *,
        extra_compiled: Sequence[CompiledProgram] = (),
        callbacks: Mapping[str, Callback] | None = None,
    ) -> None:
        self._programs = [*(compiled if isinstance(compiled, Sequence) else [compiled]), *extra_compiled]
        self._callbacks = dict(callbacks or {})
        self._closed = False
        known: set[str] = set()
        for program in self._programs:
            functions = {f.name: f for f in program.lowered.functions.values()}
            missing = unbound(functions, self._callbacks)
            if missing:
                fix = f"prepare(callbacks={{{missing[0]!r}: function}})"
                raise ValueError(f"the body of {', '.join(missing)} is bound at run time: {fix}")
            known |= functions.keys()
        unknown = sorted(self._callbacks.keys() - known)
        if unknown:
            raise ValueError(f"callbacks names {unknown[0]!r}, which no program has")

    def __call__(self, *args: Any, config: RunConfig | None = None) -> Any:
        """Run the program on arrays and numbers; what it returns. TypeError when there are several."""
        if len(self._programs) > 1:
            raise TypeError("the worker has several programs: worker.run(program, *args)")
        return self.run(self._programs[0], *args, config=config)

    def run(self, compiled: CompiledProgram, *args: Any, config: RunConfig | None = None) -> Any:
        """Run one of the programs. Raises ValueError for another, RuntimeError after `close`."""
        if self._closed:
            raise RuntimeError("the worker is closed")
        if not any(compiled is p for p in self._programs):
            raise ValueError(f"{compiled!r} is not one of the worker's programs: prepare(extra_compiled=[..])")
        return compiled.call(args, config, self._callbacks)

    def alloc_tensor(self, shape: Sequence[int], dtype: Any, *, init: Any = None) -> Any:
        """Memory for arguments of several runs, zero or a copy of ``init``.

        A torch tensor for a dtype of torch, an array for one of numpy or of the language. Raises ValueError for an
        ``init`` of another shape.
        """
        made = _zeros(tuple(shape), dtype)
        if init is not None:
            if tuple(init.shape) != tuple(made.shape):
                raise ValueError(f"init must have shape {list(made.shape)}, got {list(init.shape)}")
            made[...] = init
        return made

    def free_tensor(self, tensor: Any) -> None:
        """The memory is no longer needed: it ends with its last use, here as elsewhere."""

    def close(self) -> None:
        """End the worker; a second time is allowed."""
        self._closed = True

    def __enter__(self) -> DistributedWorker:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    import numpy as np

    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        return torch.zeros(shape, dtype=dtype)
    return np.zeros(shape, dtype.numpy if isinstance(dtype, DataType) else dtype)
