"""The kernels an orchestration launches, and what a launch of a Group or Spmd function comes down to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...errors import InternalError, user_error
from ...ir.enums import ArgDirection, CoreType, FunctionType, ParamDirection
from ...ir.expr import Call, Expr, GlobalVar, Submit, TupleGetItemExpr, Var
from ...ir.node import IRNode
from ...ir.program import Function, Program, is_incore_type
from ...ir.stmt import AssignStmt, ReturnStmt, Stmt, flatten_to_stmts, leaf_value
from ...ir.types import TensorType
from ...passes.pipe_workspace import buffer_of, workspace_elements
from ..module import kernel_kind

_NAMES = {ParamDirection.In: "IN", ParamDirection.Out: "OUT", ParamDirection.InOut: "INOUT"}


class Argument(NamedTuple):
    """An argument of a kernel, as the launch gives it; ``direction`` is how the task uses it."""

    value: Expr
    direction: ArgDirection
    dumped: bool = False


class Launch(NamedTuple):
    """Kernels that run as one task: a cube kernel, a vector kernel, or both, on the same arguments.

    ``path`` names the functions between the launch and the kernels.
    """

    path: tuple[str, ...]
    cube: Function | None
    vector: Function | None
    arguments: Sequence[Argument]

    @property
    def kernels(self) -> list[Function]:
        return [k for k in (self.cube, self.vector) if k is not None]


class Workspace(NamedTuple):
    """The buffer of a launch's pipes: elements a block, and the number of blocks where that is not 1."""

    elements: int
    blocks: Expr | None


def launch_spec(call: Call | Submit) -> tuple[Expr | None, bool]:
    """How many blocks run a task, and whether they start together."""
    if isinstance(call, Submit) and call.core_num is not None:
        return call.core_num, call.sync_start
    return call.attrs.get("core_num"), bool(call.attrs.get("sync_start"))


class Kernels:
    """Numbers kernels in the order of their first launch."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._functions = {f.name: f for f in program.functions.values()}
        self.ids: dict[str, int] = {}
        self.core_types: dict[str, CoreType] = {}
        self.signatures: dict[str, list[str]] = {}

    def function(self, call: Call | Submit) -> Function:
        found = self._functions.get(call.op.name)
        if found is None:
            raise InternalError(f"no function {call.op.name!r} in the program", call.span)
        return found

    def workspaces(self, nodes: Iterable[IRNode]) -> dict[Expr, Workspace]:
        """What stands for a buffer of pipes in launches among ``nodes``, and the room that each block needs in it."""
        found: dict[Expr, Workspace] = {}
        for call in nodes:
            if isinstance(call, (Call, Submit)) and isinstance(call.op, GlobalVar):
                callee = self.function(call)
                buffer = buffer_of(callee)
                place = callee.params.index(buffer) if buffer is not None else len(call.args)
                if place < len(call.args):
                    room = Workspace(workspace_elements(callee, self._program), launch_spec(call)[0])
                    found[call.args[place]] = room
        return found

    def id_of(self, kernel: Function) -> int:
        """The number of ``kernel``."""
        if kernel.name not in self.ids:
            self.ids[kernel.name] = len(self.ids)
            self.core_types[kernel.name] = core_type(kernel)
            self.signatures[kernel.name] = signature(kernel)
        return self.ids[kernel.name]

    def resolve(self, call: Call | Submit) -> Launch:
        """What ``call`` launches. Raises the user's error for a function that is no kernel."""
        return self._resolve(call, _arguments(call), ())

    def _resolve(self, call: Call | Submit, arguments: Sequence[Argument], path: tuple[str, ...]) -> Launch:
        callee = self.function(call)
        if is_incore_type(callee.func_type):
            cube = core_type(callee) is CoreType.CUBE
            return Launch(path, callee if cube else None, None if cube else callee, arguments)
        if callee.func_type not in (FunctionType.Group, FunctionType.Spmd):
            raise user_error(
                ValueError,
                f"an orchestration launches kernels, and {callee.name!r} is a function of type "
                f"{callee.func_type.name}",
                call.span,
                hint="make it a kernel, or pl.FunctionType.Inline",
            )
        inner = [
            self._resolve(c, given, (*path, callee.name)) for c, given in self._calls(callee, arguments)
        ]
        if not inner:
            raise InternalError(f"{callee.name!r} launches nothing", callee.span)
        return _together(inner, call)

    def _calls(self, wrapper: Function, given: Sequence[Argument]) -> list[tuple[Call | Submit, list[Argument]]]:
        """The calls in a wrapper's body with what they are given, in terms of the launch's arguments."""
        known: dict[Expr, Argument] = dict(zip(wrapper.params, given))
        results: dict[Expr, list[Argument | None]] = {}
        found: list[tuple[Call | Submit, list[Argument]]] = []
        for stmt in flatten_to_stmts(wrapper.body):
            call = _launched(stmt)
            if call is not None:
                inner = self.function(call)
                dumps = call.attrs.get("dump_vars", ())
                arguments = [
                    _through(known, arg, direction, any(arg is d for d in dumps))
                    for arg, direction in zip(call.args, inner.param_directions)
                ]
                found.append((call, arguments))
                if isinstance(stmt, AssignStmt):
                    results[stmt.var] = [None if i is None else arguments[i] for i in returned_params(inner)]
            elif isinstance(stmt, AssignStmt) and stmt.value in known:
                known[stmt.var] = known[stmt.value]
            if isinstance(stmt, AssignStmt):
                argument = _one_of(results, stmt)
                if argument is not None:
                    known[stmt.var] = argument
        return found


def _one_of(results: Mapping[Expr, Sequence[Argument | None]], stmt: AssignStmt) -> Argument | None:
    """The argument that a variable assigned a launch's only result, or one of several, stands for."""
    value = stmt.value
    if isinstance(value, TupleGetItemExpr):
        given = results.get(value.tuple, ())
        return given[value.index] if value.index < len(given) else None
    given = results.get(stmt.var, ())
    return given[0] if len(given) == 1 else None


def _launched(stmt: Stmt) -> Call | Submit | None:
    value = leaf_value(stmt)
    if isinstance(stmt, ReturnStmt) and len(stmt.values) == 1:
        value = stmt.values[0]
    return value if isinstance(value, (Call, Submit)) and isinstance(value.op, GlobalVar) else None


def _arguments(call: Call | Submit) -> list[Argument]:
    directions = call.attrs.get("arg_directions")
    if directions is None and call.args:
        raise InternalError(f"the launch of {call.op.name!r} does not say how it uses its arguments", call.span)
    dumps = call.attrs.get("dump_vars", ())
    return [Argument(a, d, any(a is v for v in dumps)) for a, d in zip(call.args, directions or ())]


def _through(known: Mapping[Expr, Argument], arg: Expr, direction: ParamDirection, dumped: bool) -> Argument:
    """An argument of a call in a wrapper: what the launch gives for it, used as the called function does."""
    if not isinstance(arg, Var):
        return Argument(arg, ArgDirection.Scalar)
    if arg not in known:
        raise InternalError(f"a wrapper passes {arg.name_hint!r}, which is none of its parameters", arg.span)
    outer = known[arg]
    reads = direction is ParamDirection.In and outer.direction in (ArgDirection.InOut, ArgDirection.OutputExisting)
    used = ArgDirection.Input if reads and isinstance(arg.type, TensorType) else outer.direction
    return Argument(outer.value, used, outer.dumped or dumped)


def _together(launches: Sequence[Launch], call: Call | Submit) -> Launch:
    """Launches of a wrapper as one task. Raises the user's error when they cannot be."""
    if len(launches) == 1:
        return launches[0]
    cubes, vectors = [x for x in launches if x.cube], [x for x in launches if x.vector]
    if len(launches) > 2 or len(cubes) != 1 or len(vectors) != 1:
        raise user_error(
            ValueError,
            f"{call.op.name!r} runs {len(cubes)} cube and {len(vectors)} vector kernels, and one task runs one of each",
            call.span,
            hint="launch the others as tasks of their own",
        )
    cube, vector = cubes[0], vectors[0]
    same = len(cube.arguments) == len(vector.arguments) and all(
        a.value is b.value for a, b in zip(cube.arguments, vector.arguments)
    )
    if not same:
        raise user_error(
            ValueError,
            f"the kernels of {call.op.name!r} take different arguments, and one task has one list of them",
            call.span,
            hint="give both kernels the same parameters",
        )
    merged = [_stronger(a, b) for a, b in zip(cube.arguments, vector.arguments)]
    return Launch(cube.path, cube.cube, vector.vector, merged)


_STRENGTH = (
    ArgDirection.Scalar,
    ArgDirection.NoDep,
    ArgDirection.Input,
    ArgDirection.Output,
    ArgDirection.OutputExisting,
    ArgDirection.InOut,
)


def _stronger(a: Argument, b: Argument) -> Argument:
    """An argument two kernels use: as the one that asks for more."""
    strongest = max(a, b, key=lambda x: _STRENGTH.index(x.direction))
    return strongest._replace(dumped=a.dumped or b.dumped)


def core_type(kernel: Function) -> CoreType:
    """The core that runs ``kernel``."""
    return CoreType.CUBE if kernel_kind(kernel) == "cube" else CoreType.VECTOR


def signature(function: Function) -> list[str]:
    """How each tensor parameter is used, in order."""
    return [_NAMES[d] for p, d in function.directed_params() if isinstance(p.type, TensorType)]


def returned_params(function: Function) -> list[int | None]:
    """For each value a function returns, which parameter it is; None for one that is none."""
    body = flatten_to_stmts(function.body)
    last = body[-1] if body else None
    if not isinstance(last, ReturnStmt):
        return []
    index = {p: i for i, p in enumerate(function.params)}
    return [index.get(v) if isinstance(v, Var) else None for v in last.values]
