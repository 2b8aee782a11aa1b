"""PTO operations that order what pipes of one core do, and its accesses to global memory."""

from __future__ import annotations

from . import asm
from .attrs import ENUMS, plain
from .ops import PtoOp

_PIPE, _EVENT = ENUMS["pipe"], ENUMS["event"]


class Barrier(PtoOp):
    """Wait until a pipe, or every pipe, has finished what it was given."""

    name = "pto.barrier"
    usage = "<PIPE_ALL>"
    template = r"<(?P<pipe>\w+)>"

    @classmethod
    def pieces(cls, parser, found):
        return [], (), {"pipe": _PIPE.named(parser, found, "pipe")}

    def parts(self):
        yield f"<{plain(self.attributes['pipe'])}>"


class _Flag(PtoOp):
    usage = "[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]"
    template = r"\[ <(?P<src>\w+)> , <(?P<dst>\w+)> , <(?P<event>\w+)> \]"

    @classmethod
    def pieces(cls, parser, found):
        pipes = {f"{end}_pipe": _PIPE.named(parser, found, end) for end in ("src", "dst")}
        return [], (), {**pipes, "event_id": _EVENT.named(parser, found, "event")}

    def parts(self):
        words = (plain(self.attributes[name]) for name in ("src_pipe", "dst_pipe", "event_id"))
        yield f"[{', '.join(f'<{word}>' for word in words)}]"


class SetFlag(_Flag):
    """Raise a flag when a pipe gets here."""

    name = "pto.set_flag"


class WaitFlag(_Flag):
    """Hold a pipe until another has raised the flag."""

    name = "pto.wait_flag"


class Fence(PtoOp):
    """Order accesses to global memory before and after."""

    name = "pto.fence.barrier_all"
    usage = "#pto.fence_scope<gm>"
    template = r"#pto\.fence_scope<(?P<scope>gm)>"

    def parts(self):
        yield "#pto.fence_scope<gm>"


class CacheInvalid(PtoOp):
    """Drop what the scalar unit's cache holds of global memory, or of the line a window starts in."""

    name = "pto.cmo.cacheinvalid"
    usage = "all #pto.address_space<gm>"
    template = r"all #pto\.address_space<(?P<space>gm)>|V:source single_cache_line : T:type"

    @classmethod
    def pieces(cls, parser, found):
        if found.group("source") is None:
            return [], (), {}
        return asm.operands(parser, found, "source", asm.types_in(parser, found, "type")), (), {}

    def parts(self):
        if not self.operands:
            yield "all #pto.address_space<gm>"
        else:
            yield from (self.operands[0], " single_cache_line : ", self.operands[0].type)


SYNC_OPS: tuple[type[PtoOp], ...] = (Barrier, SetFlag, WaitFlag, Fence, CacheInvalid)
