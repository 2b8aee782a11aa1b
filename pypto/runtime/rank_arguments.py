"""The arguments of one rank's run: checked against the parameters, shared where they are windows, and handed back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from ..errors import Location, user_error
from ..ir.enums import ParamDirection
from ..ir.expr import Var
from ..ir.naming import written_name
from ..ir.program import Function
from ..ir.types import DistributedTensorType, ScalarType, TensorType
from ..passes.pipe_workspace import without_buffer
from .arrays import ArrayArg, bind_array, bind_scalar, is_torch, like_caller, new_array

if TYPE_CHECKING:
    from ..simulator.trace import Trace

LEFT_OUT: Final = object()


def all_arguments(function: Function, args: Sequence[Any]) -> list[Any]:
    """One argument a parameter, `LEFT_OUT` for those to be made. Raises TypeError for another number of arguments."""
    params = function.caller_params()
    outs = [d is ParamDirection.Out for _, d in params]
    if len(args) == len(outs):
        return list(args)
    if function.return_types and len(args) == len(outs) - sum(outs):
        given = iter(args)
        return [LEFT_OUT if out else next(given) for out in outs]
    names = ", ".join(written_name(p.name_hint) for p, _ in params)
    count = f"{len(outs)} argument{'s' if len(outs) != 1 else ''} ({names})"
    if function.return_types and any(outs):
        made = ", ".join(written_name(p.name_hint) for (p, _), out in zip(params, outs) if out)
        count += f" or {len(outs) - sum(outs)} without {made}"
    raise user_error(TypeError, f"{function.name} takes {count}, got {len(args)}", function.span)


class RankArguments:
    """What one rank runs a function on: ``values``, arrays and numbers, and ``dims``, the symbols of their shapes.

    ``bound`` are the caller's arrays with them, and ``torch`` says whether one is a torch tensor.
    ``made`` are the arrays of the parameters that were left out.
    """

    def __init__(self, function: Function, given: Sequence[Any]) -> None:
        """Raises TypeError or ValueError for an argument that does not fit its parameter, naming it."""
        self.dims: dict[Var, int] = {}
        bound: list[Any] = []
        params, written = [p for p, _ in function.caller_params()], without_buffer(function)
        for (param, direction), value in zip(written.caller_params(), all_arguments(written, given)):
            is_tensor = isinstance(param.type, TensorType)
            array = bind_array(param, value, self.dims) if is_tensor and value is not LEFT_OUT else value
            if direction is not ParamDirection.In and isinstance(array, ArrayArg) and not array.writeable:
                name = written_name(param.name_hint)
                raise user_error(
                    ValueError, f"argument {name!r} is read-only, and {function.name} writes it", param.span,
                    hint="pass an array of its own: .copy()",
                )  # fmt: skip
            bound.append(array if is_tensor else bind_scalar(param, value))
            if isinstance(param.type, ScalarType) and param.type.dtype.is_int():
                self.dims[param] = bound[-1]
        self.torch = any(is_torch(a) for a in given)
        bound += [LEFT_OUT] * (len(params) - len(bound))
        self.made = {p: new_array(p, self.dims) for p, b in zip(params, bound) if b is LEFT_OUT}
        self.bound = [self.made[p] if b is LEFT_OUT else b for p, b in zip(params, bound)]
        self.values = [b.array if isinstance(b, ArrayArg) else b for b in self.bound]

    def watch(self, trace: Trace) -> None:
        """Tell a sanitized run which memory nothing has written yet."""
        for param, array in self.made.items():
            trace.add_fresh(array, f"{written_name(param.name_hint)!r}, which the call leaves out,")

    def check_results(self, returned: Sequence[Any], trace: Trace) -> None:
        """After a sanitized run: what the caller is given was written. Raises PtoError."""
        for param, array in self.made.items():
            if any(value is array for value in returned):
                trace.require(array, None, "returns", Location.of(param.span))

    def results(self, returned: Sequence[Any]) -> Any:
        """Bring results to the caller's arrays; what the caller is given: those arrays, or new ones."""
        for b, value in zip(self.bound, self.values):
            if isinstance(b, ArrayArg):
                if value is not b.array:
                    b.array[...] = value
                b.write_back()
        given = {id(v): b.given for b, v in zip(self.bound, self.values) if isinstance(b, ArrayArg)}
        made = [given[id(r)] if id(r) in given else like_caller(r, self.torch) if hasattr(r, "shape") else r
                for r in returned]  # fmt: skip
        return None if not made else made[0] if len(made) == 1 else tuple(made)


class _Given(NamedTuple):
    """An array of the caller, for a parameter of one rank."""

    rank: int
    param: Var
    array: np.ndarray
    written: bool


def check_apart(function: Function, ranks: Sequence[RankArguments]) -> None:
    """Raise ValueError where memory that ``function`` writes for one parameter belongs to another one, too.

    What such a run would give depends on where elements lie and when they are moved. Ranks share windows, nothing else.
    """
    given = [g for number, rank in enumerate(ranks) for g in _given(function, number, rank)]
    for first, second in combinations(given, 2):
        if (first.written or second.written) and _share(first.array, second.array):
            one, other = (written_name(g.param.name_hint) for g in (first, second))
            of_rank = [f" of rank {g.rank}" if first.rank != second.rank else "" for g in (first, second)]
            which = " and ".join(name for g, name in zip((first, second), (one, other)) if g.written)
            raise user_error(
                ValueError,
                f"arguments {one!r}{of_rank[0]} and {other!r}{of_rank[1]} share memory, and {function.name} writes "
                f"{which if one != other else one}",
                (second if second.written else first).param.span,
                hint=f"give {other!r} memory of its own: .copy()",
            )


def _given(function: Function, number: int, rank: RankArguments) -> Iterator[_Given]:
    for (param, direction), bound in zip(function.caller_params(), rank.bound):
        if isinstance(bound, ArrayArg):
            window = isinstance(param.type, DistributedTensorType)
            yield _Given(number, param, bound.source, window or direction is not ParamDirection.In)


def _share(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays have an element in common; where that is too hard to say, whether they reach as far."""
    if not np.may_share_memory(one, other):
        return False
    try:
        return np.shares_memory(one, other, max_work=1_000_000)  # pyright: ignore[reportArgumentType]
    except np.exceptions.TooHardError:
        return True


def share_windows(function: Function, ranks: Sequence[RankArguments]) -> None:
    """Make each distributed tensor of the ranks one window, and add the contexts ``function`` takes.

    Raises ValueError where their slices differ in shape.
    """
    from ..simulator.ranks import Window, context_of

    params = function.caller_params()
    windows = [i for i, (p, _) in enumerate(params) if isinstance(p.type, DistributedTensorType)]
    for i in windows:
        window = Window.of(written_name(params[i][0].name_hint), [rank.values[i] for rank in ranks])
        for rank, own in zip(ranks, window.slices):
            rank.values[i] = own
    contexts = len(function.params) - len(params)
    for rank in ranks:
        rank.values += [context_of(rank.values[i]) for i in windows[:contexts]]
