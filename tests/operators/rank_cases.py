"""Operators between ranks: each kernel runs on three of them, every rank a neighbour of the next."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from operator_harness import Case, compile_text, fixed, instruction_dtypes
from operator_values import NUMPY, Array, assert_same, fill, mixed, small

from pypto.backend import Target
from pypto.dtypes import DataType
from pypto.ir.program import summarize

RANKS = 3
_HEAD = """ctx = pld.get_comm_ctx(w)
me = pld.rank(ctx)
peer = (me + 1) % pld.nranks(ctx)
"""


@dataclass(frozen=True)
class Ranks:
    """A kernel on `RANKS` ranks: ``body`` reads tensor ``x``, has window ``w`` and signals ``s``, writes ``y``.

    ``peer`` in it is the following rank, ``me`` this one, T the dtype under test. ``reference`` takes the ranks'
    ``x``, ``w``, ``s`` and ``y`` as they were, and changes the last three to what they are afterwards.
    """

    op: str
    body: str
    reference: Callable[[list[Array], list[Array], list[Array], list[Array]], None]
    x: tuple[int, ...] = (8, 64)
    w: tuple[int, ...] = (8, 64)
    s: tuple[int, ...] = (4,)
    y: tuple[int, ...] = (8, 64)
    make: Callable[..., Array] = mixed
    out: DataType | None = None

    def text(self, dtype: DataType) -> str:
        own, out = f"pl.{dtype.name}", f"pl.{(self.out or dtype).name}"
        params = (
            f"x: pl.Tensor[{list(self.x)}, {own}], w: pld.DistributedTensor[{list(self.w)}, {own}], "
            f"s: pld.DistributedTensor[{list(self.s)}, pl.INT32], y: pl.Out[pl.Tensor[{list(self.y)}, {out}]]"
        )
        body = "\n".join(f"    {line}" for line in (_HEAD + self.body.strip("\n")).replace("{T}", own).split("\n"))
        head = f"@pl.function(type=pl.FunctionType.InCore)\ndef k({params}):"
        return f"import pypto.language.distributed as pld\n{head}\n{body}\n"

    def run(self, dtype: DataType, target: Target) -> None:
        rng = np.random.default_rng([zlib.crc32(self.op.encode()), dtype.code()])
        own, out = NUMPY[dtype], NUMPY[self.out or dtype]
        compiled = compile_text(self.text(dtype), target)
        used = set().union(*(summarize(f).ops for f in compiled.program.functions.values()))
        assert self.op in used, f"the kernel does not use {self.op} but {sorted(used)}"
        given = [self._arrays(own, out, rng) for _ in range(RANKS)]
        for order in ([0, 1, 2], [2, 0, 1]):
            args = [[a.copy() for a in arrays] for arrays in given]
            want = [[a.copy() for a in arrays] for arrays in given]
            with np.errstate(all="ignore"):
                self.reference(*(list(part) for part in zip(*want)))
            compiled.run_ranks(args, order)
            for rank in range(RANKS):
                for name, got, expected in zip("xwsy", args[rank], want[rank]):
                    assert_same(got, expected, 0, f"{self.op} {dtype.name}: {name} of rank {rank}, order {order}")

    def _arrays(self, own: np.dtype, out: np.dtype, rng: np.random.Generator) -> list[Array]:
        def made(shape: Sequence[int], along: int) -> Array:
            flat = (int(np.prod(shape[:-1])), shape[-1])
            return self.make(own, flat, rng, along).reshape(shape)

        return [made(self.x, 0), made(self.w, 1), np.zeros(self.s, np.int32), fill(out, self.y)]

    def case(self, dtypes: Callable[[Target], Sequence[DataType]], name: str = "") -> Case:
        return Case(self.op, name, self.run, dtypes)


def _following(rank: int) -> int:
    return (rank + 1) % RANKS


def _loaded(x: list[Array], w: list[Array], s: list[Array], y: list[Array]) -> None:
    for rank in range(RANKS):
        y[rank][1:4, 16:48] = w[_following(rank)][2:5, 8:40]


def _stored(x: list[Array], w: list[Array], s: list[Array], y: list[Array]) -> None:
    for rank in range(RANKS):
        w[_following(rank)][1, 2:5, :32] = x[rank][:3, 16:48]


def _added(x: list[Array], w: list[Array], s: list[Array], y: list[Array]) -> None:
    for rank in range(RANKS):
        w[_following(rank)][...] = w[_following(rank)] + x[rank]


def _doubled(x: list[Array], w: list[Array], s: list[Array], y: list[Array]) -> None:
    for rank in range(RANKS):
        w[_following(rank)][...] = x[rank] + x[rank]


def _put(x: list[Array], w: list[Array], s: list[Array], y: list[Array]) -> None:
    for rank in range(RANKS):
        w[_following(rank)][...] = x[rank]


def _got(x: list[Array], w: list[Array], s: list[Array], y: list[Array]) -> None:
    for rank in range(RANKS):
        y[rank][...] = w[_following(rank)]


def _told(x: list[Array], w: list[Array], s: list[Array], y: list[Array]) -> None:
    for rank in range(RANKS):
        s[rank][:] = 0, 7, 0, 0
        y[rank][...] = 7


def _known(x: list[Array], w: list[Array], s: list[Array], y: list[Array]) -> None:
    for rank in range(RANKS):
        y[rank][...] = rank, RANKS


def _asked(x: list[Array], w: list[Array], s: list[Array], y: list[Array]) -> None:
    for rank in range(RANKS):
        y[rank][...] = 1, 0, 1


def _moved(target: Target) -> tuple[DataType, ...]:
    return instruction_dtypes("tile.load", target)


def _atomic(target: Target) -> list[DataType]:
    return [d for d in NUMPY if d in target.atomic_add_dtypes]


_INT = fixed(DataType.INT32)
_TELL = "pld.system.notify(s, peer, [1], 7, op=pld.NotifyOp.Set)\npld.system.wait(s, [1], 7, cmp=pld.WaitCmp.Ge)\n"
_ASK = """one: pl.Scalar[pl.BOOL] = pld.system.test(s, [0], 0, cmp=pld.WaitCmp.Eq)
two: pl.Scalar[pl.BOOL] = pld.system.test(s, [3], 1, cmp=pld.WaitCmp.Ge)
three: pl.Scalar[pl.BOOL] = pld.system.test(s, [3], -1, cmp=pld.WaitCmp.Ge)
pl.write(y, [0], pl.cast(one, pl.INT32))
pl.write(y, [1], pl.cast(two, pl.INT32))
pl.write(y, [2], pl.cast(three, pl.INT32))
"""
_KNOW = "pl.write(y, [0], me)\npl.write(y, [1], pld.nranks(ctx))\n"
_CHUNKS = "chunk_rows=3, chunk_cols=32"
_STAGE = "stage = pl.tile.create([4, 32], {T}, target_memory=pl.Mem.Vec)\n"

CASES = [
    Ranks("pld.tile.remote_load", "pl.store(pld.tile.remote_load(w, peer, [2, 8], [3, 32]), [1, 16], y)",
          _loaded).case(_moved),
    Ranks("pld.tile.remote_store", "pld.tile.remote_store(pl.load(x, [0, 16], [3, 32]), w, peer, [1, 2, 0])", _stored,
          w=(2, 8, 64)).case(_moved),
    Ranks("pld.tile.remote_store",
          "pld.tile.remote_store(pl.load(x, [0, 0], [8, 64]), w, peer, [0, 0], atomic=pld.AtomicType.Add)", _added,
          make=small).case(_atomic, "atomic"),
    Ranks("pld.tensor.remote_store", "pld.tensor.remote_store(pl.tensor.add(x, x), w, peer, [0, 0])", _doubled).case(
        fixed(DataType.FP32, DataType.INT32)),
    Ranks("pld.tensor.put", "pld.tensor.put(w, peer, x)", _put).case(_moved),
    Ranks("pld.tensor.put", f"pld.tensor.put(w, peer, x, atomic=pld.AtomicType.Add, {_CHUNKS})", _added,
          make=small).case(_atomic, "atomic"),
    Ranks("pld.tensor.get", f"pld.tensor.get(y, peer, w, {_CHUNKS}, pipeline=True)", _got).case(_moved),
    Ranks("pld.tile.put", f"{_STAGE}pld.tile.put(w, peer, x, stage)", _put).case(_INT),
    Ranks("pld.tile.get", f"{_STAGE}pld.tile.get(y, peer, w, stage)", _got).case(_INT),
    Ranks("pld.system.notify", f"{_TELL}pl.write(y, [0], pl.read(s, [1]))", _told, y=(1,)).case(_INT),
    Ranks("pld.system.wait", f"{_TELL}pl.write(y, [0], pl.read(s, [1]))", _told, y=(1,)).case(_INT),
    Ranks("pld.system.test", _ASK, _asked, y=(3,)).case(_INT),
    Ranks("pld.system.rank", _KNOW, _known, y=(2,)).case(_INT),
    Ranks("pld.system.nranks", _KNOW, _known, y=(2,)).case(_INT),
    Ranks("pld.system.get_comm_ctx", _KNOW, _known, y=(2,)).case(_INT),
]  # fmt: skip
