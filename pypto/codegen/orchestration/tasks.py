"""Tasks: their arguments, what they wait for, where their results are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...errors import InternalError, user_error
from ...ir import expr as E
from ...ir.enums import ArgDirection, ParamDirection
from ...ir.expr import BinaryExpr, Call, Cast, ConstInt, Expr, Submit, Var
from ...ir.naming import written_name
from ...ir.node import IRNode
from ...ir.program import Function
from ...ir.types import CommCtxType, ScalarType, TensorType
from ...passes.auto_derive_task_dependencies import EDGES
from ...passes.vector_lanes import vector_lanes
from ..context import Op
from . import tensors
from .blocks import Handle
from .cpp import cpp
from .kernels import Launch, launch_spec, returned_params

if TYPE_CHECKING:
    from .builder import OrchestrationBuilder

_METHODS = {
    ArgDirection.Input: "input",
    ArgDirection.Output: "output",
    ArgDirection.OutputExisting: "output",
    ArgDirection.InOut: "inout",
    ArgDirection.NoDep: "no_dep",
}
_COMPARISONS = {E.Eq: "EQ", E.Ne: "NE", E.Gt: "GT", E.Lt: "LT", E.Ge: "GE", E.Le: "LE"}
_MIRRORED = {"EQ": "EQ", "NE": "NE", "GT": "LT", "LT": "GT", "GE": "LE", "LE": "GE"}
_NO_KERNEL = "INVALID_KERNEL_ID"


class Dependency(NamedTuple):
    """A task id to wait for; a ``guarded`` one may be of no task."""

    id: str
    guarded: bool


class Mixed(NamedTuple):
    """Kernels of one task: the cube's, the first vector core's, the second's."""

    name: str
    slots: Sequence[int | str]


class Predicate(NamedTuple):
    """An element of a tensor to compare with a number before a task is dispatched."""

    tensor: str
    indices: Sequence[str]
    op: str
    target: str


class TaskWriter:
    """Writes the task launches of one orchestration."""

    def __init__(self, builder: OrchestrationBuilder) -> None:
        self.builder = builder
        self._tasks = self._mixed = self._barriers = 0

    def launch(self, call: Call | Submit, awaited: Handle | None = None) -> list[Handle]:
        """Launch what ``call`` calls; its results, for a `Submit` followed by the task's id.

        ``awaited`` is the variable to keep the id in, when tasks wait for this one that are launched elsewhere.
        """
        names, launch = self.builder.names, self.builder.kernels.resolve(call)
        number, self._tasks = self._tasks, self._tasks + 1
        args = names.take(f"params_t{number}")
        callee = self.builder.kernels.function(call)
        created, outputs = self._created(args, callee, call)
        captured = isinstance(call, Submit) or bool(outputs) or awaited is not None
        outs = names.take(f"task_{number}_outs") if captured else ""
        mixed = self._mixed_kernels(launch)
        blocks, sync = launch_spec(call)
        self.builder.emit(
            Op(
                "task",
                args=args,
                title=_title(number, launch),
                created=created,
                arguments=[*self._arguments(launch), *(("output", o) for o in outputs)],
                dumps=self._dumps(launch),
                mixed=mixed,
                deps=self.dependencies(call),
                blocks=None if blocks is None else self.builder.scalars.text(blocks),
                blocks_method=self.builder.target.core_count_method,
                sync_start=sync,
                early=isinstance(call, Submit) and call.allow_early_resolve,
                predicate=self._predicate(call),
                outs=outs,
                submit=self._submit(launch, mixed, args),
            )
        )
        if awaited is not None:
            self.builder.emit(Op("set", target=awaited.text, value=cpp("method", outs, "task_id", [])))
        return self._results(call, callee, outputs, outs)

    # Arguments

    def _arguments(self, launch: Launch) -> list[tuple[str, str]]:
        """Tensors first, then scalars: the runtime keeps them apart."""
        tensors_first = [a for a in launch.arguments if isinstance(a.value.type, TensorType)]
        scalars = [a for a in launch.arguments if not isinstance(a.value.type, TensorType)]
        given = [(_METHODS[a.direction], self.builder.tensor(a.value).text) for a in tensors_first]
        return [*given, *(("scalar", self._slot(a.value)) for a in scalars)]

    def _slot(self, value: Expr) -> str:
        if isinstance(value.type, ScalarType):
            return self.builder.scalars.slot(value)
        return self.builder.tensor(value).text

    def _dumps(self, launch: Launch) -> list[str]:
        dumped = [self.builder.tensor(a.value).text for a in launch.arguments if a.dumped]
        return list(dict.fromkeys(dumped))

    def _created(self, args: str, callee: Function, call: Call | Submit) -> tuple[list[Op], dict[str, int]]:
        """Outputs the launch does not give: described, so that the runtime makes them. Their names and parameters."""
        ops: list[Op] = []
        outputs: dict[str, int] = {}
        if len(call.args) < len(callee.params) and isinstance(callee.params[-1].type, CommCtxType):
            raise _left_out(call, callee)
        for index in range(len(call.args), len(callee.params)):
            param, direction = callee.params[index], callee.param_directions[index]
            if direction is not ParamDirection.Out or not isinstance(param.type, TensorType):
                raise InternalError(f"the launch of {callee.name!r} lacks {param.name_hint!r}", call.span)
            name = self.builder.names.take(f"{args}_synth_out_{index}")
            ops.extend(tensors.create_info(self.builder, name, param.type, None))
            outputs[name] = index
        return ops, outputs

    # Kernels

    def _mixed_kernels(self, launch: Launch) -> Mixed | None:
        """The slots of a task that is not one kernel on one core; kernels are numbered in their order."""
        ids = {k.name: self.builder.kernels.id_of(k) for k in launch.kernels}
        both = launch.vector is not None and vector_lanes(launch.vector, self.builder.target) > 1
        if len(ids) == 1 and not both:
            return None
        cube = ids[launch.cube.name] if launch.cube is not None else _NO_KERNEL
        vector = ids[launch.vector.name] if launch.vector is not None else _NO_KERNEL
        number, self._mixed = self._mixed, self._mixed + 1
        return Mixed(
            self.builder.names.take(f"mixed_{number}"), (cube, vector, vector if both else _NO_KERNEL)
        )

    def _submit(self, launch: Launch, mixed: Mixed | None, args: str) -> str:
        if mixed is not None:
            return cpp("call", "rt_submit_task", [mixed.name, args])
        kernel = launch.kernels[0]
        name = "rt_submit_aic_task" if launch.cube is not None else "rt_submit_aiv_task"
        return cpp("call", name, [self.builder.kernels.id_of(kernel), args])

    # Dependencies

    def dependencies(self, call: Call | Submit) -> list[Dependency]:
        """The tasks to wait for, each once: the author's, and those a pass derived."""
        written = list(call.deps) if isinstance(call, Submit) else list(call.attrs.get("manual_dep_edges", ()))
        found: dict[Expr, None] = dict.fromkeys(written)
        edges = [(d, True) for d in found]
        edges += [(d, False) for d in call.attrs.get(EDGES, ()) if d not in found]
        return [x for d, by_author in edges for x in self._dependency(d, by_author, call)]

    def _dependency(self, dep: Expr, by_author: bool, call: IRNode) -> list[Dependency]:
        if not isinstance(dep, Var):
            return [Dependency(self.builder.scalars.text(dep), True)]
        collected = self.builder.fan_ins.dependencies(dep) if not by_author else None
        if collected is not None:
            return [Dependency(*found) for found in collected]
        known = self.builder.awaited.get(dep) or self.builder.values.get(dep)
        if known is None or not known.block.open:
            if by_author:
                raise self._unreachable(dep, call)
            return []
        handle = known if dep in self.builder.awaited else self.builder.handle(dep, call)
        if handle.extent:
            return [Dependency(cpp("element", handle.text, i), True) for i in range(handle.extent)]
        return [Dependency(handle.text, handle.guarded)]

    def _unreachable(self, dep: Var, call: IRNode) -> Exception:
        return self.builder.refused(
            f"deps={written_name(dep.name_hint)!r} cannot be honored: the scope that makes it has ended "
            "(each body of pl.range, and each side of an if, is a scope)",
            call,
            "launch this task inside the scope that produces it, or launch the producer before the scope",
        )

    def barrier(self, call: Call, var: Var) -> None:
        """A task that only waits; without anything to wait for at run time there is none."""
        names = self.builder.names
        number, self._barriers = self._barriers, self._barriers + 1
        args = names.take(f"params_phase_fence_barrier_{number}")
        outs = names.take(f"phase_fence_barrier_{number}_outs")
        deps = self.dependencies(call)
        name = names.take(var.name_hint)
        self.builder.emit(Op("barrier", args=args, outs=outs, deps=deps, name=name))
        self.builder.bind(var, Handle(name, self.builder.block, guarded=True))

    # Dispatch

    def _predicate(self, call: Call | Submit) -> Predicate | None:
        """``tensor[indices] OP number``, as the parser admitted it."""
        test = call.predicate if isinstance(call, Submit) else None
        if test is None:
            return None
        op = _COMPARISONS.get(type(test)) if isinstance(test, BinaryExpr) else None
        if op is None or not isinstance(test, BinaryExpr):
            raise InternalError("codegen met a predicate that is no comparison", test.span)
        left, right = _bare(test.left), _bare(test.right)
        if isinstance(left, ConstInt):
            left, right, op = right, left, _MIRRORED[op]
        if not isinstance(left, Call) or left.op.name != "tensor.read" or not isinstance(right, ConstInt):
            raise InternalError("codegen met a predicate that compares no element with a number", test.span)
        indices = tensors.indices_of(left)
        return Predicate(
            self.builder.tensor(left.args[0]).text,
            [self.builder.scalars.word(i) for i in indices],
            op,
            self.builder.scalars.text(right),
        )

    # Results

    def _results(self, call: Call | Submit, callee: Function, outputs: dict[str, int], outs: str) -> list[Handle]:
        """A task's results are the arguments it wrote, or what the runtime made."""
        if any(isinstance(t, ScalarType) for t in callee.return_types):
            raise self.builder.refused(
                f"task {written_name(callee.name)!r} returns a scalar, and tasks hand back tensors only",
                call,
                "compute it outside of the task, or write it to a tensor and read that",
            )
        made = {index: cpp("method", outs, "get_ref", [k]) for k, index in enumerate(outputs.values())}
        results = [self._result(call, callee, index, made) for index in returned_params(callee)]
        if isinstance(call, Submit):
            results.append(Handle(cpp("method", outs, "task_id", []), self.builder.block, fresh=True))
        return results

    def _result(self, call: Call | Submit, callee: Function, index: int | None, made: dict[int, str]) -> Handle:
        if index is None:
            return self._sole_output(call, callee, made)
        if index in made:
            return Handle(made[index], self.builder.block, fresh=True)
        value = call.args[index]
        if isinstance(value, Var):
            return self.builder.handle(value, call)
        return Handle(self.builder.scalars.text(value), self.builder.root)

    def _sole_output(self, call: Call | Submit, callee: Function, made: dict[int, str]) -> Handle:
        """The result of a kernel that returns a tensor without saying which: the only one it writes."""
        written = [i for i, d in enumerate(callee.param_directions) if d is not ParamDirection.In]
        if len(written) != 1 or len(returned_params(callee)) != 1:
            raise InternalError(f"{callee.name!r} does not say which parameter its results are", callee.span)
        return self._result(call, callee, written[0], made)


def _bare(expr: Expr) -> Expr:
    while isinstance(expr, Cast):
        expr = expr.operand
    if isinstance(expr, E.Neg) and isinstance(expr.operand, ConstInt):
        return ConstInt(-expr.operand.value, expr.dtype, expr.span)
    return expr


def _count(builder: OrchestrationBuilder, call: Call) -> str:
    """How many cores, or groups of them, there are: known to the runtime."""
    return cpp("call", _COUNTS[call.op.name], [])


def _count_into(builder: OrchestrationBuilder, call: Call, var: Var) -> None:
    builder.assign_scalar(var, _count(builder, call), natural=True)


_COUNTS = {
    "system.available_cluster_count": "rt_available_cluster_count",
    "system.available_aiv_count": "rt_available_aiv_count",
}
OPERATORS = dict.fromkeys(_COUNTS, _count_into)
SCALARS = dict.fromkeys(_COUNTS, _count)


def _title(number: int, launch: Launch) -> str:
    names = " + ".join(k.name for k in launch.kernels)
    if not launch.path:
        return cpp("task_title", number, names)
    return cpp("wrapper_title", "Group" if len(launch.kernels) > 1 else "Spmd", launch.path[0], names)


def _left_out(call: Call | Submit, callee: Function) -> Exception:
    """Contexts are a launch's last arguments: outputs that it leaves to the runtime would come before them."""
    contexts = sum(isinstance(p.type, CommCtxType) for p in callee.params)
    output = written_name(callee.params[len(call.args) - contexts].name_hint)
    return user_error(
        ValueError,
        f"this launch of {callee.name!r}, which is given windows of communication memory, leaves out its output "
        f"{output!r}",
        call.span,
        hint=f"make the tensor with pl.create_tensor and pass it as {output!r}",
    )
