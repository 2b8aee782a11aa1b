"""Rewrites the body of an InCore function as its `Plan` says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import InternalError, user_error
from ...ir.enums import MemorySpace, ParamDirection
from ...ir.expr import Call, Expr, IterArg, TupleGetItemExpr, Var, index_const
from ...ir.naming import written_name
from ...ir.node import NodeList, updated
from ...ir.program import Function
from ...ir.span import Span
from ...ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    last_yield,
    seq,
)
from ...ir.types import TensorType, TileType, TupleType, Type
from ...ops.registry import Bound, decl_of, get_decl, rebind
from ...ops.rules import all_same, dim_text, dims_text, value as static_value
from ..emitting import EmittingRewriter, build, kind_of
from ..operand_roles import Role, computes_tile, role_of
from . import expand_clone as expand_clone, rules_comm as rules_comm, rules_index as rules_index
from .plan import MAT, VEC, Plan, is_tensor
from .rules import RULES


class _Read(Bound):
    """Arguments that note which of them were asked for."""

    __slots__ = ("_asked",)

    def __init__(self, bound: Bound, asked: set[str]) -> None:
        super().__init__(bound.decl, bound.values, bound.span)
        self._asked = asked

    def __getitem__(self, name: str) -> Any:
        self._asked.add(name)
        return super().__getitem__(name)

    def dims(self, name: str) -> Sequence[Expr]:
        self._asked.add(name)
        return super().dims(name)


MAT_BRIDGE = "__compiler_tensor_to_tile_mat_bridge"
"""Marks a load into Mat that this pass made, as opposed to one the author wrote."""


class Converter(EmittingRewriter):
    """Turns tensor operators into loads, tile operators and stores.

    A tensor that becomes a tile has *versions*: the tile variables that hold it, by memory. One that stays in global
    memory may have versions too: copies loaded at its definition.
    """

    def __init__(self, function: Function, plan: Plan) -> None:
        super().__init__()
        self.function, self.plan = function, plan
        self.outputs: dict[int, Var] = {}
        """Parameters added for returned tiles, by the index of the return value."""
        self.result: Var | None = None
        """The variable the statement at hand defines; None inside a nested call."""
        self.stored = False
        """Whether a nested call's value is only written out."""
        self._versions: dict[Var, dict[MemorySpace, Expr]] = {}
        self._targets: list[Sequence[Var]] = []
        self._regions: dict[Var, Sequence[Expr]] = {}
        self.uneven = False
        self._read: set[str] = set()
        """What the rule at hand has read of its call."""
        """Whether tiles of different valid regions meet."""
        """Valid regions of loop carries and branch results."""
        for created, index in plan.outputs.items():
            self.vars[created] = self.outputs[index] = Var(f"ret{index}__out", created.type, created.span)

    def convert(self) -> Function:
        """The function with its body rewritten and parameters added for returned tiles."""
        function = self.function
        body = self._body(function.body, function.params)
        added = [self.outputs[i] for i in sorted(self.outputs)]
        if body is function.body and not added:
            return function
        return function.with_params(
            [*function.directed_params(), *((param, ParamDirection.Out) for param in added)], body=body
        )

    # Values

    def is_tile(self, value: Expr) -> bool:
        """Whether ``value`` is computed on chip rather than kept in global memory."""
        if isinstance(value, Call) and is_tensor(value):
            target = value.args[0] if value.op.name == "tensor.assemble" else None
            return self.is_tile(target) if target is not None else computes_tile(value.op.name)
        return value in self.plan.tiles if isinstance(value, Var) else isinstance(value.type, TileType)

    def on_chip(self, value: Expr) -> bool:
        """Whether a tile of ``value`` is at hand."""
        return isinstance(value, Var) and value in self._versions

    def tile(self, value: Expr, space: MemorySpace = VEC, stored: bool = False) -> Expr:
        """``value`` as a tile, preferably in ``space``; a tensor in global memory is loaded here.

        ``stored`` says that it is only written out again.
        """
        if not is_tensor(value):
            return self.rewrite(value)
        versions = self._versions.get(value) if isinstance(value, Var) else None
        if versions is not None:
            return versions.get(space) or next(iter(versions.values()))
        outer, self.result, self.stored = self.result, None, stored
        made = self.rewrite(value)
        self.result, self.stored = outer, False
        if isinstance(made.type, TileType):
            return self.emit("value__tile", made)
        return self.load(made, space, self.span)

    def matrix(self, value: Expr, transposed: bool, name: str) -> Expr:
        """``value`` as a matmul operand."""
        operand = self.tile(value, MAT)
        if not transposed:
            return operand
        if kind_of(operand).memory_space is not MAT:
            operand = self.emit(f"{name}__mat", build("tile.move", operand, span=self.span, target_memory=MAT))
        return self.emit(f"{name}__t", build("tile.transpose_view", operand, span=self.span))

    def load(self, tensor: Expr, space: MemorySpace, span: Span) -> Var:
        """All of ``tensor`` as a new tile in ``space``."""
        self._check_static(tensor, span)
        zeros = [index_const(0)] * len(kind_of(tensor).shape)
        call = self.load_call(tensor, zeros, kind_of(tensor).shape, kind_of(tensor).valid_shape, space, span)
        if space is MAT:
            return self.emit(f"{tensor.name_hint if isinstance(tensor, Var) else 'value_'}_mat", call, span)
        return self.emit(f"{written_name(tensor.name_hint) if isinstance(tensor, Var) else 'value'}__tile", call, span)

    def _check_static(self, tensor: Expr, span: Span) -> None:
        shape = kind_of(tensor).shape
        dynamic = next((i for i, d in enumerate(shape) if static_value(d) is None), None)
        if dynamic is None:
            return
        name = written_name(tensor.name_hint) if isinstance(tensor, Var) else "a tensor"
        window = ["32" if i == dynamic else dim_text(d) for i, d in enumerate(shape)]
        part = [f"pl.min(32, {dim_text(shape[dynamic])} - i)" if i == dynamic else w for i, w in enumerate(window)]
        offset = ["i" if i == dynamic else "0" for i in range(len(shape))]
        raise user_error(
            ValueError,
            f"{name!r} of shape {dims_text(shape)} is used whole, and a tile needs constant extents",
            span,
            f"work on blocks: pl.slice({name}, [{', '.join(window)}], [{', '.join(offset)}], "
            f"valid_shape=[{', '.join(part)}])",
        )

    def load_call(
        self, tensor: Expr, offsets: Any, shape: Any, valid: Any, space: MemorySpace, span: Span, **kwargs: Any
    ) -> Call:
        """A load of the window of ``tensor`` at ``offsets``."""
        window = (list(v) if isinstance(v, tuple) else v for v in (offsets, shape, valid))
        call = build("tile.load", tensor, *window, span=span, target_memory=space, **kwargs)
        return call.replace(attrs={MAT_BRIDGE: True}) if space is MAT else call

    # Statements

    def _body(self, body: Stmt, defined: Iterable[Var] = ()) -> Stmt:
        """A region in which the variables ``defined`` come into being."""
        loads = self._loads(defined, None)
        made = self.rewrite(body)
        return seq([*loads, made], body.span) if loads else made

    def _loads(self, defined: Iterable[Var], span: Span | None) -> list[Stmt]:
        """Loads of those of ``defined`` that are in global memory and wanted on chip."""
        made: list[Stmt] = []
        for var in defined:
            for space in self.plan.loads.get(var, ()):
                at = span or var.span
                emitted, loaded = self.collect(lambda v=var, s=space, p=at: self.load(self.vars.get(v, v), s, p))
                made.extend(emitted)
                self._versions.setdefault(var, {})[space] = loaded
        return made

    def _with_loads(self, stmts: list[Stmt], defined: Iterable[Var], span: Span) -> Stmt:
        loads = self._loads(defined, span)
        return seq([*stmts, *loads]) if loads or len(stmts) != 1 else stmts[0]

    def rewrite_assign(self, op: AssignStmt) -> Stmt:
        self.result = op.var
        value = op.value
        if isinstance(value, Var) and op.var in self.plan.tiles:
            return seq(self._alias(op, value))
        if isinstance(value, TupleGetItemExpr) and op.var in self.plan.tiles:
            element = TupleGetItemExpr(self.rewrite(value.tuple), value.index, value.span)
            return op.replace(value=element, var=self._bind(op.var, element, VEC))
        if isinstance(value, Call) and self._converts(value):
            return self._with_loads(self._assign_converted(op, value), (op.var,), op.span)
        made = op.replace(value=self.rewrite(value), var=self.define(op.var))
        return self._with_loads([made], (op.var,), op.span)

    def _alias(self, op: AssignStmt, source: Var) -> list[Stmt]:
        made: list[Stmt] = []
        versions = self._versions[source]
        wanted = [s for s in self.plan.spaces[op.var] if s in versions] or list(versions)[:1]
        for space in wanted:
            var = Var(op.var.name_hint, versions[space].type, op.var.span)
            self._versions.setdefault(op.var, {})[space] = var
            made.append(op.replace(value=versions[space], var=var))
        return made

    def _assign_converted(self, op: AssignStmt, call: Call) -> list[Stmt]:
        made: list[Stmt] = []
        for space in self._spaces(op.var, call):
            emitted, value = self.collect(lambda s=space: self._convert(call, s))
            made.extend(emitted)
            if op.var not in self.plan.outputs:
                made.append(op.replace(value=value, var=self._bind(op.var, value, space)))
        return made

    def _spaces(self, var: Var, call: Call) -> Sequence[MemorySpace]:
        """The memories to make the result for: several only where it is read from global memory or a view of it."""
        decl = decl_of(call)
        for i, arg in enumerate(call.args):
            role = role_of(decl, i) if isinstance(arg, Var) and is_tensor(arg) else None
            if role in (Role.VIEW, Role.WINDOW):
                spaces = self.plan.spaces.get(var, (VEC,))
                if role is Role.WINDOW and not self.is_tile(arg):
                    return spaces
                have = self._versions.get(arg, {})
                return [s for s in spaces if s in have] or spaces[:1]
        return (VEC,)

    def _bind(self, var: Var, value: Expr, space: MemorySpace) -> Var:
        if isinstance(value.type, TileType):
            made = Var(f"{written_name(var.name_hint)}__tile", value.type, value.span)
            self._versions.setdefault(var, {})[kind_of(value).memory_space or space] = made
            return made
        if isinstance(value.type, (TensorType, TupleType)):
            made = self.vars[var] = Var(var.name_hint, value.type, var.span)
            return made
        return self.define(var)

    def rewrite_eval(self, op: EvalStmt) -> Stmt:
        self.result = None
        return op.replace(expr=self.rewrite(op.expr))

    # Operators

    def _converts(self, call: Call) -> bool:
        return call.op.decl is not None and (call.op.name.startswith("tensor.") or call.op.name in RULES)

    def visit_call(self, op: Call) -> Expr:
        return self._convert(op, VEC) if self._converts(op) else self.generic(op)

    def visit_var(self, op: Var) -> Any:
        made = self.vars.get(op)
        if made is not None:
            return made
        if op in self.plan.tiles:
            raise user_error(
                ValueError,
                f"{written_name(op.name_hint)!r} is computed on chip and has no place in global memory, which "
                "its use here needs",
                self.span,
                "write it to a tensor first: out = pl.assemble(out, value, offsets)",
            )
        return op

    def _convert(self, call: Call, space: MemorySpace) -> Expr:
        rule = RULES.get(call.op.name)
        if rule is None:
            return self.one_to_one(call, space)
        outer, self._read = self._read, set()
        made = rule(self, call, space)
        if not (isinstance(made, Call) and made.op is call.op):
            self._check_read(call)
        self._read = outer
        return made

    def bound(self, call: Call) -> Bound:
        """The arguments of the call that a rule converts; what it reads of them counts as converted."""
        return _Read(rebind(call), self._read)

    def keywords(self, call: Call) -> dict[str, Any]:
        """All keywords of the call that a rule converts, to hand on."""
        self._read.update(call.kwargs)
        return call.kwargs

    def arguments(self, call: Call) -> Sequence[Expr]:
        """All arguments of the call that a rule converts, to hand on."""
        self._read.update(p.name for p in call.op.decl.args)
        return call.args

    def _check_read(self, call: Call) -> None:
        """Raise KernelNotImplementedError for a keyword or optional argument that the tiles do not know of."""
        bound = rebind(call)
        for param in bound.decl.params:
            given = bound.values[param.name]
            if not param.optional or param.name in self._read or given is None or given == param.default:
                continue
            raise user_error(
                NotImplementedError,
                f"{call.op.name} has no form on chip that takes {param.name}",
                call.span,
                f"leave {param.name} out",
            )

    def one_to_one(self, call: Call, space: MemorySpace = VEC) -> Expr:
        """The tile operator that the declaration names, applied to the same arguments."""
        decl = decl_of(call)
        self._read.update(call.op.decl.by_name)
        if decl is None or decl.tile_form is None:
            raise InternalError(f"{call.op.name} has no registered tile conversion", call.span)
        args = [self.tile(a, space if role_of(decl, i) is Role.VIEW else VEC) for i, a in enumerate(call.args)]
        form = get_decl(decl.tile_form)
        if form is None:
            raise InternalError(f"{call.op.name} has an unknown tile conversion, {decl.tile_form}", call.span)
        named = {p.name: a for p, a in zip(form.args, args)}
        kwargs = self.rewrite_mapping(call.kwargs)
        made = build(form.name, span=call.span, **named, **kwargs)
        wanted = getattr(call.type, "dtype", None)
        if args and isinstance(args[0].type, TileType) and getattr(made.type, "dtype", None) is not wanted:
            # The operator computes in a dtype wider than its operand's.
            cast = build("tile.cast", args[0], span=call.span, target_type=wanted)
            named[form.args[0].name] = self.emit("operand__cast", cast)
            made = build(form.name, span=call.span, **named, **kwargs)
        return made.replace(attrs=self.rewrite_mapping(call.attrs)) if call.attrs else made

    # Control flow

    def rewrite_for(self, op: ForStmt) -> Stmt:
        start, stop, step = (self.rewrite(e) for e in (op.start, op.stop, op.step))
        carried = self.rewrite_list(op.iter_args, self._carry)
        attrs = self.rewrite_mapping(op.attrs)
        body = self._loop_body(op)
        results = self._results(op.return_vars, [a.type for a in carried])
        made = op.replace(
            start=start, stop=stop, step=step, iter_args=carried, body=body, return_vars=results, attrs=attrs
        )
        return self._with_loads([made], op.return_vars, op.span)

    def rewrite_while(self, op: WhileStmt) -> Stmt:
        carried = self.rewrite_list(op.iter_args, self._carry)
        condition = self.rewrite(op.condition)
        body = self._loop_body(op)
        results = self._results(op.return_vars, [a.type for a in carried])
        made = op.replace(iter_args=carried, condition=condition, body=body, return_vars=results)
        return self._with_loads([made], op.return_vars, op.span)

    def _carry(self, arg: IterArg) -> Var:
        if arg not in self.plan.tiles:
            return self.define(arg)
        space = self.plan.spaces[arg][0]
        init = self.tile(arg.init_value, space)
        made = IterArg(arg.name_hint, init.type, init, arg.span)
        self._versions[arg] = {space: made}
        return made

    def _loop_body(self, op: ForStmt | WhileStmt) -> Stmt:
        self._targets.append(op.iter_args)
        body = self._body(op.body, op.iter_args)
        self._targets.pop()
        return body

    def _results(self, variables: NodeList, types: Sequence[Type]) -> NodeList:
        made = []
        for var, found in zip(variables, types):
            if var in self.plan.tiles:
                result = Var(var.name_hint, found, var.span)
                self._versions[var] = {self.plan.spaces[var][0]: result}
                made.append(result)
            else:
                made.append(self.define(var))
        return updated(variables, made)

    def rewrite_if(self, op: IfStmt) -> Stmt:
        condition = self.rewrite(op.condition)
        self._targets.append(op.return_vars)
        then_body = self._body(op.then_body)
        else_body = self._body(op.else_body) if op.else_body is not None else None
        self._targets.pop()
        types = [v.type for v in _yielded(then_body)] if op.return_vars else []
        results = self._results(op.return_vars, types)
        made = op.replace(condition=condition, then_body=then_body, else_body=else_body, return_vars=results)
        return self._with_loads([made], op.return_vars, op.span)

    def rewrite_yield(self, op: YieldStmt) -> Stmt:
        targets = self._targets[-1] if self._targets else ()
        values = []
        for i, value in enumerate(op.values):
            target = targets[i] if i < len(targets) else None
            if target is not None and target in self.plan.tiles:
                tile = self.tile(value, self.plan.spaces[target][0])
                self.uneven = self.uneven or self._is_uneven(target, tile)
                values.append(tile)
            else:
                values.append(self.rewrite(value))
        return op.replace(values=updated(op.values, values))

    def _is_uneven(self, target: Var, tile: Expr) -> bool:
        """Whether a tile comes back to a loop, or out of a branch, with another valid region."""
        known = next(iter(self._versions[target].values()), None) if target in self._versions else None
        before = self._regions.setdefault(target, kind_of(known or tile).valid_shape)
        return not all_same(before, kind_of(tile).valid_shape)

    def rewrite_return(self, op: ReturnStmt) -> Stmt:
        values = [self._returned(i, value) for i, value in enumerate(op.value)]
        return op.replace(value=updated(op.value, values))

    def _returned(self, index: int, value: Expr) -> Expr:
        if not is_tensor(value) or (isinstance(value, Var) and not self.is_tile(value)):
            return self.rewrite(value)
        self.result, self.stored = None, True
        made = self.tile(value) if isinstance(value, Var) else self.rewrite(value)
        self.stored = False
        if not isinstance(made.type, TileType):
            return made
        out = self.outputs.get(index)
        if out is None:
            out_type = TensorType(kind_of(value).shape, kind_of(value).dtype)
            out = self.outputs[index] = Var(f"ret{index}__out", out_type, value.span)
        if not isinstance(made, Var):
            made = self.emit(f"ret{index}__tile", made)
        zeros = [index_const(0)] * len(kind_of(out).shape)
        return self.emit(f"ret{index}__store", build("tile.store", made, zeros, out, span=self.span))


def _yielded(body: Stmt) -> Sequence[Expr]:
    last = last_yield(body)
    if last is None:
        raise InternalError("a branch with results does not end in a yield", body.span)
    return last.values
