"""PTO operations between ranks and to the L2 cache: signals, bulk transfers, asynchronous prefetches."""

from __future__ import annotations

import re

from xdsl.ir import Attribute
from xdsl.parser import Parser

from . import asm
from .attrs import ENUMS
from .ops import PtoOp, TemplateOp, commas
from .scalar_types import scalar_type

I1 = scalar_type("i1")


def _enum(name: str, kind: str) -> str:
    """The template of an attribute ``{name = #pto<kind case>}``, in either spelling."""
    return rf"\{{ {name} = #pto(?:\.{kind}<|<{kind}\s) (?P<{name}>\w+) > \}}"


def _values(parser: Parser, found: re.Match[str], *names: str):
    """Operands of a match that are there, each with the type in the group ``name_type``."""
    made = []
    for name in names:
        if found.group(name) is not None:
            made += asm.operands(parser, found, name, asm.types_in(parser, found, f"{name}_type"))
    return made


class _Signal(PtoOp):
    """An operation on 32-bit signals, all elements of a window, and a number."""

    attribute: str
    kind: str

    @classmethod
    def pieces(cls, parser, found):
        case = ENUMS[cls.kind].named(parser, found, cls.attribute, f"{cls.attribute} must be")
        results = (I1,) if cls is PollSignal else ()
        return _values(parser, found, "signal", "value"), results, {cls.attribute: case}

    def parts(self):
        signal, value = self.operands
        yield from ("(", signal, ", ", value, " : ", signal.type, ", ", value.type, ") {")
        yield from (f"{self.attribute} = ", self.attributes[self.attribute], "}")
        if self.results:
            yield " -> i1"


_SIGNAL = r"\( V:signal , V:value : T:signal_type , T:value_type \) "


class Notify(_Signal):
    """Set a signal, or add to it, as one step that no other rank sees half of."""

    name = "pto.comm.tnotify"
    usage = "(%signal, %value : !pto.partition_tensor_view<1xi32>, i32) {notifyOp = #pto<notify_op set>}"
    attribute, kind = "notifyOp", "notify_op"
    template = _SIGNAL + _enum("notifyOp", "notify_op")


class WaitSignal(_Signal):
    """Hold the core until every signal compares so."""

    name = "pto.comm.twait"
    usage = "(%signal, %value : !pto.partition_tensor_view<1xi32>, i32) {cmp = #pto<wait_cmp ge>}"
    attribute, kind = "cmp", "wait_cmp"
    template = _SIGNAL + _enum("cmp", "wait_cmp")


class PollSignal(_Signal):
    """Whether every signal compares so now."""

    name = "pto.comm.ttest"
    usage = "(%signal, %value : !pto.partition_tensor_view<1xi32>, i32) {cmp = #pto<wait_cmp ge>} -> i1"
    attribute, kind = "cmp", "wait_cmp"
    template = _SIGNAL + _enum("cmp", "wait_cmp") + " -> i1"


class _Transfer(PtoOp):
    template = (
        r"\( V:dst , V:src , buf \( V:ping (?:, V:pong )?\) : "
        r"T:dst_type , T:src_type , T:ping_type (?:, T:pong_type )?\) (?:" + _enum("atomicType", "atomic_type") + ")?"
    )

    @classmethod
    def pieces(cls, parser, found):
        if (found.group("pong") is None) != (found.group("pong_type") is None):
            parser.raise_error("a staging tile without its type", found.start("ping"), found.end("ping"))
        attributes: dict[str, Attribute] = {}
        if found.group("atomicType") is not None:
            attributes["atomicType"] = ENUMS["atomic_type"].named(parser, found, "atomicType", "atomicType must be")
            if cls is Get:
                parser.raise_error(f"{cls.name} has no attribute 'atomicType'", found.start("atomicType"))
        return _values(parser, found, "dst", "src", "ping", "pong"), (), attributes

    def parts(self):
        dst, src, *stages = self.operands
        yield from ("(", dst, ", ", src, ", buf(", *commas(stages), ") : ")
        yield from (*commas([value.type for value in self.operands]), ")")
        if self.attributes:
            yield from (" {atomicType = ", self.attributes["atomicType"], "}")


class Put(_Transfer):
    """Copy local global memory to a peer's, or combine it with what is there, through staging tiles."""

    name = "pto.comm.tput"
    usage = "(%dst, %src, buf(%ping[, %pong]) : types) {atomicType = #pto<atomic_type atomic_none>}"


class Get(_Transfer):
    """Copy a peer's global memory to local, through staging tiles."""

    name = "pto.comm.tget"
    usage = "(%dst, %src, buf(%ping[, %pong]) : types)"


class MakePrefetchContext(TemplateOp):
    """State of asynchronous prefetches, in a workspace of global memory."""

    name = "pto.make_prefetch_async_context"
    usage = "(%workspace : !pto.ptr<i8>) -> !pto.prefetch_async_context"
    template = r"\( V:ptr : T:ptr_type \) -> T:result"


class PrefetchSession(TemplateOp):
    """The session in which a context's prefetches are awaited."""

    name = "pto.get_prefetch_async_session"
    usage = "%context : !pto.prefetch_async_context -> !pto.async_session"
    template = r"V:ctx : T:ctx_type -> T:result"


class _Pair(TemplateOp):
    template = r"\( V:first , V:second : T:first_type , T:second_type \) -> T:result"


class PrefetchAsync(_Pair):
    """Start bringing a window into the L2 cache."""

    name = "pto.tprefetch_async"
    usage = "(%window, %context : !pto.partition_tensor_view<..>, !pto.prefetch_async_context) -> !pto.async_event"


class WaitEvent(_Pair):
    """Hold the core until an asynchronous transfer has finished."""

    name = "pto.comm.wait_async_event"
    usage = "(%event, %session : !pto.async_event, !pto.async_session) -> i1"


COMM_OPS: tuple[type[PtoOp], ...] = (
    Notify, WaitSignal, PollSignal, Put, Get, MakePrefetchContext, PrefetchSession, PrefetchAsync, WaitEvent,
)  # fmt: skip
