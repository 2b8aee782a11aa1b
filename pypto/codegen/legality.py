"""Refuses, in the user's terms and at the user's line, what the target's instructions do not do.

The rules are those of the instruction declarations in `pypto.pto`, applied to the constructs a kernel is about to be
written as: what passes here also passes the verifier of PTO text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from ..backend.target import Target
from ..backend.targets import TARGETS
from ..errors import InternalError, user_error
from ..ir.expr import Call, Var, tensor_type_of
from ..ir.naming import written_name
from ..ir.types import TileType
from ..ops.registry import rebind
from .context import FunctionContext, Op, Value
from .places import Place, place_in, place_of, share_bytes

if TYPE_CHECKING:
    from ..pto.checks import ElementTypeError
    from ..pto.errors import PtoError


def check_legal(kernel: FunctionContext, target: Target, everything: bool = True) -> None:
    """Raise a ValueError at the user's call for the first construct ``target`` has no instruction for.

    Without ``everything``, element types and contracts between operands only: what PTOAS says in other words than the
    user's, or not at all.
    """
    from ..pto.checks import ContractError, ElementTypeError
    from ..pto.errors import PtoError

    checker = _Checker(target)
    for op in _walk((*kernel.prologue, *kernel.body)):
        try:
            checker.check(op)
        except PtoError as error:
            if everything or isinstance(error, (ContractError, ElementTypeError)):
                raise _refusal(op, error, target) from None


def check_parameter(tensor: Var, target: Target) -> None:
    """Raise a ValueError for a tensor of 4-bit elements that ``target`` neither loads nor stores."""
    dtype = tensor_type_of(tensor).dtype
    if dtype.bits != 4 or dtype in target.packed_dtypes:
        return
    name, chip = written_name(tensor.name_hint), f"{target.name} ({target.module_arch})"
    packed = " or ".join(d.name for d in target.packed_dtypes)
    limit = f"only {packed} is loaded and stored there" if packed else "its load/store ABI has whole bytes only"
    raise user_error(
        ValueError,
        f"tensor {name!r} of 4-bit dtype {dtype} is not supported on {chip}: {limit}",
        tensor.span,
        hint="keep the elements as pl.INT8" + (f", or as pl.{packed}" if packed else ""),
    )


def _walk(ops: Sequence[Op]) -> Iterator[Op]:
    for op in ops:
        yield op
        for part in ("body", "then_body", "else_body", "before", "after"):
            nested = op.__dict__.get(part)
            if nested:
                yield from _walk(nested)


class _Checker:
    """Applies the rules of tiles, views and instructions to codegen's constructs."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.layouts: dict[str, str] = {}
        """Layout of the tensor each view or window is of, by SSA name."""
        self.places: dict[str, Place] = {}
        self.owners: dict[Place | str, Place | str] = {}
        """The tile each tile of scales was bound to since it was filled, by where they are."""
        self.paired = False
        """Whether there are FP4 elements so far."""

    def check(self, op: Op) -> None:
        if self.paired:
            _check_pairs(op)
        rule = _RULES.get(op.kind)
        if rule is not None:
            rule(self, op)

    def tensor_view(self, op: Op) -> None:
        self.paired |= _PAIR in op.result.type
        self.layouts[op.result.name] = op.layout

    def window(self, op: Op) -> None:
        self.layouts[op.result.name] = self.layouts.get(op.source.name, "nd")

    def tile(self, op: Op) -> None:
        address = None if op.addr is None else _constant(op.addr)
        self.places[op.result.name] = place_of(_operand(op.result), op.result.name, address)
        self.paired |= _PAIR in op.result.type
        _check_tile(op.result.told, self.target)

    def subview(self, op: Op) -> None:
        from ..pto.tile_rules import check_subview

        offsets = [_constant(o) for o in op.offsets]
        source, result, place = _operand(op.source), _operand(op.result), self.places.get(op.source.name)
        if place is not None:
            self.places[op.result.name] = place_in(place, source, result, offsets)
        check_subview(source, result, tuple(int(s) for s in op.sizes), offsets)

    def reshape(self, op: Op) -> None:
        from ..pto.tile_rules import check_reshape

        place = self.places.get(op.source.name)
        if place is not None:
            self.places[op.result.name] = place
        check_reshape(_operand(op.source), _operand(op.result))

    def between_cores_or_ranks(self, op: Op) -> None:
        if op.mnemonic in _SIGNALS:
            from ..pto.comm_rules import check_signal

            check_signal(op.mnemonic, *(_operand(v) for v in op.operands))
        elif op.mnemonic in _PUSHES:
            from ..pto.comm_rules import check_piped

            pushed = op.call.args[0] if op.call is not None else None
            called = f"'{written_name(pushed.name_hint)}'" if isinstance(pushed, Var) else "the tile"
            check_piped(op.mnemonic, _operand(op.operands[0]), called)

    def transfer(self, op: Op) -> None:
        from ..pto.comm_rules import check_transfer
        from ..pto.shapes import operand_of

        dst, src = op.operands
        layouts = self.layouts.get(dst.name), self.layouts.get(src.name)
        # A transfer sets the extents of its last chunk, so what its tiles were allocated with says nothing.
        stages = [operand_of(v.type) for v in op.stages]
        check_transfer(op.mnemonic, _operand(dst), _operand(src), stages, layouts)

    def instruction(self, op: Op) -> None:
        window = next((v.name for v in (*op.ins, *op.outs) if v.name in self.layouts), None)
        attrs = tuple(op.attrs)
        ins, outs = tuple(v.told for v in op.ins), tuple(v.told for v in op.outs)
        op.roles, error = _verdict(op.mnemonic, ins, outs, attrs, self.layouts.get(window or ""), self.target)
        if error is not None:
            raise error
        if op.mnemonic == "pto.tget_scale_addr":
            self._bind_scales(op.outs[0].name, op.ins[0].name)
        elif op.mnemonic == "pto.tmov":
            self.owners.pop(self._where(op.outs[0].name), None)
        self._apart(op)

    def _apart(self, op: Op) -> None:
        """Raise ContractError for operands that share bytes and must not."""
        from ..pto.checks import ContractError, apart
        from ..pto.instructions import INSTRUCTIONS

        spec = INSTRUCTIONS.get(op.mnemonic.removeprefix("pto."))
        if spec is None:
            return
        places = {role: self.places.get(value.name) for role, value in zip(op.roles, (*op.ins, *op.outs))}
        for first, second in apart(spec, self.target.module_arch):
            left, right = places.get(first), places.get(second)
            if left is not None and right is not None and share_bytes(left, right):
                names = _argument_names(op, op.call) if op.call is not None else {}
                raise ContractError(
                    f"{names.get(first, first)} overlaps {names.get(second, second)} in memory",
                    hint=f"give {names.get(first, first)} a tile of its own",
                )

    def _where(self, name: str) -> Place | str:
        return self.places.get(name, name)

    def _bind_scales(self, scales: str, data: str) -> None:
        """Scales stand where the cube looks for those of one tile, to which they were moved before they were bound."""
        from ..pto.errors import PtoError

        bound = self._where(data)
        if self.owners.setdefault(self._where(scales), bound) != bound:
            raise PtoError(
                "these scales were bound to another tile before, and stand where the cube looks for that one's",
                hint="move the scales anew for each tile they belong to",
            )


_PAIR = "f4E2M1x2"
_OF_PAIRS = frozenset({"make_tensor_view", "partition_view", "alloc_tile", "set_validshape"})
_ON_PAIRS = frozenset({"pto.tload", "pto.tstore", "pto.tprefetch", "pto.tcvt"})


def _check_pairs(op: Op) -> None:
    """FP4 elements share bytes: they are loaded, stored and cast, and nothing else."""
    from ..pto.errors import PtoError

    if op.kind in _OF_PAIRS or op.__dict__.get("mnemonic") in _ON_PAIRS:
        return
    groups = [[found] if isinstance(found, Value) else found for found in op.__dict__.values()]
    parts = [part for group in groups if isinstance(group, (list, tuple)) for part in group]
    if any(isinstance(part, Value) and _PAIR in part.type for part in parts):
        raise PtoError(
            "FP4 elements share bytes: they are loaded, stored and cast only",
            hint="cast the tile first: pl.cast(tile, pl.BF16)",
        )


@lru_cache(maxsize=4096)
def _verdict(
    mnemonic: str,
    ins: tuple[str, ...],
    outs: tuple[str, ...],
    attrs: tuple[tuple[str, str], ...],
    layout: str | None,
    target: Target,
) -> tuple[tuple[str, ...], PtoError | None]:
    """The names an instruction gives its operands, and the error it raises: both follow from the text of its types."""
    from ..pto.errors import PtoError
    from ..pto.instructions import INSTRUCTIONS
    from ..pto.shapes import operand_of
    from ..pto.tile_rules import check_window_layout

    spec = INSTRUCTIONS.get(mnemonic.removeprefix("pto."))
    if spec is None:
        return (), None
    types = [operand_of(text) for text in (*ins, *outs)]
    shapes = [_shape_of(t) for t in types]
    roles = spec.assign(tuple(shapes[: len(ins)]), tuple(shapes[len(ins) :]))
    if roles is None:
        raise InternalError(f"codegen gives {mnemonic} operands that do not fit {spec.usage()}")
    names = tuple(role.name for role in roles)
    site = _site(spec, dict(zip(names, types)), attrs, target)
    try:
        for rule in spec.checks:
            rule(site)
        if layout is not None and spec.mnemonic in ("tload", "tstore"):
            check_window_layout(site, layout)
    except PtoError as error:
        return names, error
    return names, None


_SIGNALS = frozenset({"pto.comm.tnotify", "pto.comm.twait", "pto.comm.ttest"})
_PUSHES = frozenset({"pto.tpush_to_aiv", "pto.tpush_to_aic"})
_RULES: dict[str, Any] = {
    "apply": _Checker.between_cores_or_ranks,
    "transfer": _Checker.transfer,
    "make_tensor_view": _Checker.tensor_view,
    "partition_view": _Checker.window,
    "alloc_tile": _Checker.tile,
    "subview": _Checker.subview,
    "treshape": _Checker.reshape,
    "dps": _Checker.instruction,
    "dps_apart": _Checker.instruction,
    "dps_masked": _Checker.instruction,
    "generic": _Checker.instruction,
}


def _site(spec: Any, types: dict[str, Any], attrs: Sequence[tuple[str, str]], target: Target) -> Any:
    from ..pto.spec import Site

    values = {attr.name: attr.default for attr in spec.attrs.values()}
    values.update((name, _attribute(text)) for name, text in attrs)
    return Site(spec, types, values, target)


@lru_cache(maxsize=1024)
def _attribute(text: str) -> Any:
    """The plain value of an attribute as codegen writes it: ``#pto<kind case>``, a boolean, a number, a string."""
    if text.startswith("#pto"):
        return re.split(r"[ .<>]+", text.strip("<> "))[-1]
    if text in ("true", "false"):
        return text == "true"
    number = re.match(r"-?\d+", text)
    return int(number.group()) if number else text.strip('"')


def _operand(value: Value) -> Any:
    from ..pto.shapes import operand_of

    return operand_of(value.told)


def _shape_of(found: Any) -> str:
    from ..pto.shapes import Tile, View

    return "tile" if isinstance(found, Tile) else "view" if isinstance(found, View) else "scalar"


@lru_cache(maxsize=1024)
def _check_tile(text: str, target: Target) -> None:
    from ..pto.shapes import parse_tile
    from ..pto.tile_rules import check_tile

    check_tile(parse_tile(text.partition("<")[2][:-1]), target)


def _constant(value: Value) -> int | None:
    """A constant's value, from the name codegen gives constants: ``%c16_index``."""
    found = re.fullmatch(r"%c(\d+)_(?:index|i64)", value.name)
    return int(found.group(1)) if found else None


# Messages.


@cache
def _dtype_names() -> tuple[re.Pattern[str], dict[str, str]]:
    from ..pto.elements import DATA_TYPES

    names = {name: dtype.name for name, dtype in DATA_TYPES.items() if name != "index"}
    words = "|".join(re.escape(n) for n in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<![\w.!])(?:{words})(?!\w)"), names


def _in_user_words(op: Op, reason: str) -> str:
    """A rule's reason with the operator's name and arguments for the instruction's, and `pl` dtypes for PTO's."""
    call: Call | None = op.call
    text = re.sub(r"^'pto\.[\w.]+'(?: op)?:? ?| \(!pto\.tile_buf<[^>]*>\)$", "", reason)
    pattern, names = _dtype_names()
    text = pattern.sub(lambda m: names[m.group()], text)
    for known in TARGETS:
        text = re.sub(rf"\b{known.module_arch}\b", known.name, text)
    words = _argument_names(op, call) if call is not None else {}
    return re.sub(r"'(\w+)'", lambda m: f"'{words[m.group(1)]}'" if m.group(1) in words else m.group(), text)


def _argument_names(op: Op, call: Call) -> dict[str, str]:
    """The operator's arguments and result by the names the instruction gives them."""
    decl = call.op.decl
    words = {"dst": "result"}
    if decl.pto is not None:
        bound = rebind(call)
        given = [n for n in decl.pto.operands if bound[n] is not None]
        words |= dict(zip(op.roles, given)) if len(given) == len(op.__dict__.get("ins", ())) else {}
        if decl.pto.out != "result":
            words["dst"] = decl.pto.out
    return words


def _refusal(op: Op, error: PtoError, target: Target) -> Exception:
    from ..pto.checks import ElementTypeError

    call: Call | None = op.call
    if isinstance(error, ElementTypeError) and call is not None:
        text = _about_element_type(op, call, error)
        elsewhere = _only_elsewhere(op, error, target)
        return user_error(ValueError, f"{text} on {target.name}{elsewhere}", call.span, hint=_hint(op, call, target))
    text = _in_user_words(op, error.message)
    if call is None:
        return user_error(ValueError, f"{text}, on {target.name}", hint=error.hint)
    hint = error.hint or _hint(op, call, target)
    return user_error(ValueError, f"{call.op.name} on {target.name}: {text}", call.span, hint=hint)


def _about_element_type(op: Op, call: Call, error: ElementTypeError) -> str:
    """What the operator takes in place of the element type it was given; the result's is that of its first tile."""
    _, names = _dtype_names()
    takes = _one_of([names[n] for n in sorted(error.allowed, key=list(names).index)])
    found = names[error.found]
    argument = _argument_names(op, call).get(error.operand, error.operand)
    first = next((a.type for a in call.args if isinstance(a.type, TileType)), None)
    if argument == "result" and first is not None and first.dtype.name == found:
        return f"{call.op.name} takes tiles of {takes}, not {found},"
    return f"{call.op.name} takes {takes} for {argument!r}, not {found},"


def _only_elsewhere(op: Op, error: ElementTypeError, target: Target) -> str:
    """The other targets' backends that take the element type, for the end of a message."""
    from ..pto.checks import element_types
    from ..pto.instructions import INSTRUCTIONS

    spec = INSTRUCTIONS[op.mnemonic.removeprefix("pto.")]
    archs = [t.module_arch for t in TARGETS if error.found in (element_types(spec, t.module_arch, error.operand) or ())]
    if not archs:
        return ""
    others = " and ".join(f"'{arch}'" for arch in archs)
    return f"; not supported on the '{target.module_arch}' backend, only supported on the {others} backend"


def _one_of(words: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _hint(op: Op, call: Call, target: Target) -> str | None:
    """A cast that gives an element type the instruction takes, where one instruction casts to it."""
    from ..pto.checks import element_types, exists_on
    from ..pto.instructions import INSTRUCTIONS

    spec = INSTRUCTIONS.get(op.mnemonic.removeprefix("pto.")) if op.kind == "dps" else None
    if spec is None:
        return None
    if not exists_on(spec, target.module_arch):
        return "compile for the other target, or write it with operators this one has"
    for arg in call.args:
        if not isinstance(arg.type, TileType):
            continue
        dtype = arg.type.dtype
        for operand in ("dst", "src", "src0"):
            allowed = element_types(spec, target.module_arch, operand)
            if allowed is None or dtype.mlir in allowed:
                continue
            wider = [d for d in target.casts.get(dtype, ()) if d.mlir in allowed]
            if wider:
                return f"cast the operands first: pl.cast(x, pl.{wider[0].name}) takes one instruction on {target.name}"
    return None
