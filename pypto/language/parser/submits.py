"""Task launches: ``pl.submit`` and ``pl.spmd_submit``."""

from __future__ import annotations

import ast
from typing import Any, Final

from ...dtypes import DataType
from ...errors import ParserSyntaxError, ParserTypeError
from ...ir.enums import FunctionType
from ...ir.expr import Expr, Submit, Var
from ...ir.program import Function
from ...ir.types import ScalarType, TensorType, TupleType, Type
from .. import forms
from .calls import OP_HOOKS, form_value
from .regions import RegionsMixin
from .signatures import Signature, deduce_call_type

_COMMON: Final = frozenset({"deps", "dumps", "allow_early_resolve", "predicate", "attrs"})
_SPMD: Final = _COMMON | {"core_num", "sync_start"}


class SubmitsMixin(RegionsMixin):
    """Parses task launches."""

    def submit(self, node: ast.Call) -> Expr:
        return self._launch("submit", node, _COMMON)

    def spmd_submit(self, node: ast.Call) -> Expr:
        return self._launch("spmd_submit", node, _SPMD)

    def _launch(self, form: str, node: ast.Call, allowed: frozenset[str]) -> Expr:
        if not node.args:
            self.fail(
                ParserSyntaxError, f"pl.{form}() needs the kernel to launch", node, f"write pl.{form}(self.kernel, ..)"
            )
        kernel = self.value(node.args[0]) if self.own_method(node.args[0]) is None else None
        if hasattr(kernel, "specialize_call"):
            function, node = self.specialize(kernel, node, skip=1, reserved=allowed)
            signature = self.external(function, node.args[0])
        else:
            signature = self._kernel(node.args[0], form)
        options = {k.arg: k.value for k in node.keywords if k.arg in allowed}
        args, overrides = self.launch_arguments(signature, node, skip=1, reserved=frozenset(options) & allowed)
        deps = self.dependencies(options["deps"]) if "deps" in options else []
        self._check_cluster(options)
        predicate = self.predicate(options["predicate"], deps) if "predicate" in options else None
        attrs = self.call_attrs(options.get("attrs"), len(args))
        if overrides:
            attrs["arg_direction_overrides"] = overrides
        dumps = self._dumps(options.get("dumps"), args)
        if dumps:
            attrs["dump_vars"] = dumps
        core_num = None
        if form == "spmd_submit":
            if "core_num" not in options:
                self.fail(ParserSyntaxError, "pl.spmd_submit() requires the core_num keyword", node, "write core_num=8")
            core_num = self.core_num(options["core_num"])
        return Submit(
            signature.global_var,
            args,
            deps,
            {},
            attrs,
            self._launch_type(signature, args),
            self.span(node),
            core_num=core_num,
            sync_start=self.flag(options, "sync_start"),
            allow_early_resolve=self.flag(options, "allow_early_resolve"),
            predicate=predicate,
        )

    def _kernel(self, node: ast.expr, form: str) -> Signature:
        name = self.own_method(node)
        if name is not None:
            return self.program_signature(name, node)
        value = self.value(node)
        if isinstance(value, Function):
            return self.external(value, node)
        self.fail(
            ParserSyntaxError,
            f"pl.{form}() launches a function of the program",
            node,
            f"write pl.{form}(self.kernel, ..)",
        )

    def _check_cluster(self, options: dict[str, ast.expr]) -> None:
        if "cluster" not in self.regions:
            return
        found = [
            n for n in ("deps", "dumps", "allow_early_resolve", "predicate", "core_num", "sync_start") if n in options
        ]
        if found:
            names = ", ".join(f"{n}=" for n in found)
            self.fail(
                ParserSyntaxError,
                f"a launch inside pl.cluster() cannot carry per-task dispatch metadata: {names}",
                options[found[0]],
            )

    def _launch_type(self, signature: Signature, args: list[Expr]) -> Type:
        declared = self.declared_results(signature)
        results: list[Type] = []
        if declared:
            made = deduce_call_type(
                Signature(signature.name, signature.global_var, signature.params, declared, signature.func_type), args
            )
            results = list(made.types) if isinstance(made, TupleType) else [made]
        return TupleType([*results, ScalarType(DataType.TASK_ID)])

    def declared_results(self, signature: Signature) -> list[Type]:
        """What the kernel declares to return; results of a kernel without annotation are not part of a launch."""
        return list(signature.declared or ())

    def _dumps(self, node: ast.expr | None, args: list[Expr]) -> list[Var]:
        found = []
        if node is not None:
            if not isinstance(node, (ast.List, ast.Tuple)):
                self.fail(ParserTypeError, "dumps= must be a list literal", node, "write dumps=[x]")
            for element in node.elts:
                value = self.value(element)
                if not isinstance(value, Var) or not isinstance(value.type, TensorType):
                    self.fail(ParserTypeError, f"dumps= entry '{ast.unparse(element)}' is not a tensor", element)
                if all(value is not a for a in args):
                    self.fail(
                        ParserTypeError,
                        f"dumps= entry '{ast.unparse(element)}' is not an argument of this submit",
                        element,
                    )
                found.append(value)
        tagged = [a for a in args if isinstance(a, Var) and a in self.dump_tags]
        made: list[Var] = []
        for var in [*found, *tagged]:
            if all(var is not m for m in made):
                made.append(var)
        return made


def _task_dummy(self: Any, op: Any, node: ast.Call) -> Expr:
    """``pl.system.task_dummy(deps=[..])``: a task that only waits."""
    options = {k.arg: k.value for k in node.keywords}
    if node.args or options.keys() - {"deps", "attrs"}:
        self.fail(ParserTypeError, "pl.system.task_dummy() takes deps= only", node, "write task_dummy(deps=[tid])")
    if "deps" not in options:
        self.fail(
            ParserTypeError, "pl.system.task_dummy() requires keyword argument 'deps'", node, "write deps=[] for none"
        )
    made = op.build([], {}, self.span(node))
    own = {"dummy_task": True, "manual_dep_edges": self.dependencies(options["deps"])}
    noted = self.attr_dict(options["attrs"]) if "attrs" in options else {}
    return made.replace(attrs={**noted, **own})


OP_HOOKS["task_dummy"] = _task_dummy


def _dim(self: Any, op: Any, node: ast.Call) -> Expr:
    """``pl.tensor.dim(x, i)``: the dimension x's type names, where the signature declares it."""
    made = self.apply_operator(op, node)
    if self.func_type is not FunctionType.Orchestration:
        return made
    tensor, axis = made.args[0].type, getattr(made.args[1], "value", None)
    dim = tensor.shape[axis] if axis is not None else None
    return dim if isinstance(dim, Var) else made


OP_HOOKS["dim"] = _dim


@form_value(forms.submit)
def _submit(self: Any, node: ast.Call) -> Expr:
    return self.submit(node)


@form_value(forms.spmd_submit)
def _spmd_submit(self: Any, node: ast.Call) -> Expr:
    return self.spmd_submit(node)
