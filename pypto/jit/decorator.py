"""`@pl.jit` and its variants: functions that are compiled for the arguments they are called with."""

from __future__ import annotations

import ast
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import FunctionType as PyFunction
from typing import TYPE_CHECKING, Any, NoReturn

from ..dtypes import DataType, of_numpy_name
from ..errors import ParserError, ParserTypeError
from ..ir.enums import FunctionType, Level, Role, TensorLayout
from ..ir.expr import ConstInt, Expr, Var
from ..ir.program import Function, Program
from ..ir.types import DistributedTensorType, ScalarType, TensorType, Type
from ..language.decorators import Closure, _enclosing
from ..language.dynamic import RUNTIME, DynVar
from ..language.parser.expr_evaluator import ExprEvaluator
from ..language.parser.function_parser import FunctionOptions, FunctionParser
from ..language.parser.source import locate_function
from ..language.parser.type_parts import last_name
from ..language.parser.type_resolver import direction_of
from ..passes.block_nz_tensor_views.shapes import block_shape
from . import specializer
from .cache import config_key
from .captured import Captured, Names, captured, names_of
from .pickling import reduce_jit
from .specializer import DynamicDims, TensorMeta, constant_of, is_bare, key_of, number_type

if TYPE_CHECKING:
    from ..runtime import CompiledProgram, RunConfig

_KINDS = {
    "entry": (FunctionType.Orchestration, None, None),
    "host": (FunctionType.Opaque, Level.HOST, Role.Orchestrator),
    "incore": (FunctionType.InCore, None, None),
    "inline": (FunctionType.Inline, None, None),
    "opaque": (FunctionType.Opaque, None, None),
}


class JITFunction:
    """A function compiled for the shapes, dtypes and numbers of each call, once for every combination.

    - ``kernel(*args, config=RunConfig(..))`` compiles and runs; ``pl.Out`` arrays are filled in place.
    - ``kernel.compile(*args)`` gives the `pypto.runtime.CompiledProgram`, ``kernel.lower(*args)`` the program after the
      passes, ``kernel.specialize(*args)`` the program as written, with its types.
    - Without tensors, these take extents from annotations (``pl.Tensor[[M, 128], pl.FP32]``); numbers come by keyword,
      as does ``pl.RUNTIME`` for a number that each run gives.

    Functions under ``jit.incore``, ``jit.inline`` and ``jit.opaque`` that it calls by name become part of its program.
    Raises TypeError for arguments that do not fit the signature, and the user's error at the user's line.
    """

    def __init__(self, fn: PyFunction, kind: str, options: FunctionOptions, closure: Mapping[str, Any]) -> None:
        self.__name__ = self.name = fn.__name__
        self.__doc__ = fn.__doc__
        self.__module__, self.__qualname__ = fn.__module__, fn.__qualname__
        self.__wrapped__ = fn
        self.kind, self.options, self.closure = kind, options, closure
        self.signature = inspect.signature(fn)
        self.parameters = list(self.signature.parameters)
        self._compiled: dict[Any, CompiledProgram] = {}
        self._dims: dict[str, dict[int, DynVar]] = {}
        self._meaning: Any = None

    # What it is

    @cached_property
    def _located(self) -> Any:
        return locate_function(self.__wrapped__)

    @property
    def source(self) -> Any:
        return self._located[0]

    @property
    def node(self) -> ast.FunctionDef:
        return self._located[1]

    @cached_property
    def names(self) -> Names:
        """What the function looks up around it."""
        return names_of(self.node)

    def meaning(self, keys: Captured) -> Any:
        """The key of what the names in the function mean. What was learnt before is forgotten where it has changed."""
        found = keys.names(self.names, self.closure)
        if found != self._meaning:
            self._forget()
            self._meaning = found
        return found

    def _forget(self) -> None:
        """Forget what follows from the meaning of names."""
        self._dims = {}
        for learnt in ("dims", "handed_on", "_resolver"):
            self.__dict__.pop(learnt, None)

    @cached_property
    def dims(self) -> DynamicDims:
        """Dimensions that each run decides."""
        return DynamicDims(self)

    @cached_property
    def _evaluator(self) -> ExprEvaluator:
        return ExprEvaluator(self.closure, self.source.spans())

    def evaluate(self, node: ast.expr) -> tuple[bool, Any]:
        """Whether Python knows the value of ``node`` where the function is defined, and the value."""
        return self._evaluator.try_eval_expr(node)

    def annotation(self, param: str) -> ast.expr | None:
        """What a parameter's annotation says besides its direction."""
        found = next(a.annotation for a in self.node.args.args if a.arg == param)
        return None if found is None else direction_of(found)[1]

    def fail(
        self, message: str, node: ast.AST, hint: str | None = None, cls: type[ParserError] = ParserTypeError
    ) -> NoReturn:
        raise cls(message, self.source.spans().get_span(node), hint, source_lines=self.source.lines)

    @cached_property
    def _resolver(self) -> FunctionParser:
        return FunctionParser(self.source, self.node, self.closure, self.options)

    def declared_type(self, param: str) -> Type | None:
        """The type an annotation gives a parameter; None for a bare tensor, or no annotation."""
        inner = self.annotation(param)
        if inner is None or is_bare(inner):
            return None
        if isinstance(inner, ast.Name) and inner.id in ("int", "float", "bool"):
            return None
        found, made = self.evaluate(inner)
        if found and isinstance(made, DataType):
            return ScalarType(made)
        return self._resolver.types.resolve_param_type(inner)[0]

    def declared_dims(self, param: str) -> dict[int, DynVar]:
        """Dimensions of a tensor parameter that each run decides, by axis: from annotation, body and callees."""
        found = self._dims.get(param)
        if found is None:
            found = self._dims[param] = {}  # Asked again meanwhile, by functions that call each other: nothing new.
            t = self.declared_type(param)
            stated = enumerate(t.shape) if isinstance(t, TensorType) else ()
            found.update(self.dims.of(param))
            found.update({axis: DynVar.of(dim) for axis, dim in stated if isinstance(dim, Var)})
        return found

    @cached_property
    def handed_on(self) -> dict[str, list[tuple[JITFunction, str]]]:
        """For each parameter, the parameters of other functions it is passed to by name."""
        found: dict[str, list[tuple[JITFunction, str]]] = {}
        for call in self._calls():
            callee = self.closure.get(call.func.id) if isinstance(call.func, ast.Name) else None
            if isinstance(callee, JITFunction) and callee is not self:
                for name, arg in callee.by_name(call.args, ((k.arg, k.value) for k in call.keywords)):
                    if isinstance(arg, ast.Name) and arg.id in self.parameters:
                        found.setdefault(arg.id, []).append((callee, name))
        return found

    def by_name(self, args: Iterable[Any], named: Iterable[tuple[str | None, Any]]) -> Iterator[tuple[str, Any]]:
        """Arguments of a call, with the parameters they are for."""
        yield from zip(self.parameters, args)
        for name, value in named:
            if name is not None and name in self.parameters:
                yield name, value

    def _calls(self) -> Iterator[ast.Call]:
        for node in ast.walk(self.node):
            if isinstance(node, ast.Call):
                if last_name(node.func) in ("submit", "spmd_submit") and node.args:
                    yield ast.Call(node.args[0], node.args[1:], node.keywords)
                else:
                    yield node

    # Part of another program

    def specialize_call(self, caller: FunctionParser, args: Sequence[Any], named: Mapping[str, Any], node: ast.Call
                        ) -> Function:  # fmt: skip
        """The function for the arguments of a call in a kernel; what the parser of calls asks for."""
        if self.kind == "host" or (self.kind == "entry" and caller.options.level is not Level.HOST):
            self._refuse_call(caller, node)
        given = dict(self.by_name(args, named.items()))
        missing = [p for p in self.parameters if p not in given]
        if missing or len(args) > len(self.parameters):
            caller.fail(
                ParserTypeError,
                f"'{self.name}' takes {len(self.parameters)} argument(s), got {len(args) + len(named)}",
                node,
                f"call {self.name}({', '.join(self.parameters)})",
            )
        types: dict[str, Type] = {}
        constants: dict[str, Any] = {}
        for name, value in given.items():
            types[name] = self._argument_type(name, caller.as_expr(value, node), caller)
            number = constant_of(value)
            if number is not None:
                constants[name] = number
        return specializer.specialize(self, types, constants, caller.specialized)

    def _refuse_call(self, caller: FunctionParser, node: ast.Call) -> NoReturn:
        hint = "put what both need under @pl.jit.incore, @pl.jit.inline or @pl.jit.opaque"
        if self.kind == "entry":
            hint += "; @pl.jit.host calls @pl.jit functions"
        caller.fail(ParserTypeError, f"'{self.name}' is an entry function and cannot be called in a kernel", node, hint)

    def _argument_type(self, name: str, value: Expr, caller: FunctionParser) -> Type:
        if not isinstance(value.type, TensorType):
            declared = self.declared_type(name)
            return value.type if declared is None else declared
        known = {d for p, _ in caller.params if isinstance(p.type, TensorType) for d in p.type.shape}
        made = specializer.parameter_type(name, value, {d for d in known if isinstance(d, Var)})
        assert isinstance(made, TensorType)
        dims = list(made.shape)
        for axis, dim in self.dims.of(name).items():
            dims[axis] = dim.var
        return type(made)(dims, made.dtype, None, made.tensor_view)

    def parsed(
        self, types: Mapping[str, Type], constants: Mapping[str, Any], made: dict[Any, Function]
    ) -> tuple[Function, Iterable[Function]]:
        """The function for these types and values, and those it calls."""
        return specializer.parse(self, types, constants, made)

    # Called from Python

    def __call__(self, *args: Any, config: RunConfig | None = None, **named: Any) -> Any:
        """Compile for these arguments unless that was done, and run."""
        bound = self._bind(args, named, marker=False)
        return self._compile(bound, config)(*(self._stored(name, value) for name, value in bound.items()))

    def compile(self, *args: Any, config: RunConfig | None = None, **named: Any) -> CompiledProgram:
        """The compiled program for these arguments: the same object for the same shapes, dtypes and numbers."""
        return self._compile(self._bind(args, named), config)

    def specialize(self, *args: Any, **named: Any) -> Program:
        """The program for these arguments before any pass."""
        types, constants = self._types(self._bind(args, named))
        return specializer.program_of(self, types, constants)

    def lower(self, *args: Any, config: RunConfig | None = None, **named: Any) -> Program:
        """The program for these arguments after all passes; nothing is written, and nothing kept."""
        from ..runtime.ir_compile import run_pass_pipeline

        source = self.specialize(*args, **named)
        settings = {} if config is None else config.pass_settings()
        target = None if config is None else config.target
        return run_pass_pipeline(source, target=target, **settings).transformed_program

    def _bind(self, args: Sequence[Any], named: Mapping[str, Any], marker: bool = True) -> dict[str, Any]:
        """Arguments by parameter, in order. Without any tensor, tensors are left to the annotations."""
        captured(self)
        args, named = [_number(v) for v in args], {name: _number(v) for name, v in named.items()}
        if marker and not args and not any(_is_tensor(v) for v in named.values()):
            unknown = [n for n in named if n not in self.parameters]
            if unknown:
                raise TypeError(f"{self.name}() got an unexpected keyword argument {unknown[0]!r}")
            return {p: self._from_signature(p, named) for p in self.parameters}
        bound = self.signature.bind(*args, **named)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            if value is RUNTIME:
                raise TypeError(
                    f"{self.name}(): {name!r} received pl.RUNTIME, which only compile() without tensors takes: "
                    "give its value"
                )
        return dict(bound.arguments)

    def _from_signature(self, param: str, named: Mapping[str, Any]) -> Any:
        value = named.get(param, self.signature.parameters[param].default)
        if value is not inspect.Parameter.empty:
            return value
        if is_bare(self.annotation(param)):
            raise TypeError(
                f"{self.name}(): parameter {param!r} is a bare 'pl.Tensor': its shape is known from an argument only. "
                "Pass arrays, as in lower(*sample_tensors), or annotate it pl.Tensor[[M, 128], pl.FP32]"
            )
        declared = self.declared_type(param)
        if isinstance(declared, TensorType):
            return declared
        raise TypeError(
            f"{self.name}(): scalar parameter {param!r} has no value: pass {param}=<number>, or {param}=pl.RUNTIME to "
            "give it when the program runs"
        )

    def _types(self, bound: Mapping[str, Any]) -> tuple[dict[str, Type], dict[str, Any]]:
        """The type of each parameter, and the numbers that are part of the program."""
        types: dict[str, Type] = {}
        constants: dict[str, Any] = {}
        for name, value in bound.items():
            if isinstance(value, TensorType):
                types[name] = value
            elif _is_tensor(value):
                types[name] = self._tensor_type(name, value)
            elif value is RUNTIME or isinstance(value, (bool, int, float)):
                types[name] = self.declared_type(name) or number_type(value)
                if value is not RUNTIME:
                    constants[name] = value
            else:
                raise TypeError(
                    f"{self.name}(): argument {name!r} is a {type(value).__name__}; it must be an array, a number, or "
                    "pl.RUNTIME for a number that each run gives"
                )
        return types, constants

    def _tensor_type(self, name: str, value: Any) -> Type:
        meta = meta_of(value)
        shape: list[int | DynVar] = list(meta.shape)
        declared, blocks = self.declared_type(name), self._blocks(name)
        if isinstance(declared, TensorType) and blocks is not None and _fits(shape, blocks):
            matrix = [d.value for d in declared.shape[-2:] if isinstance(d, ConstInt)]
            shape = [*shape[: len(declared.shape) - 2], *matrix]
        for axis, dim in self.declared_dims(name).items():
            if axis < len(shape):
                shape[axis] = dim
        distributed = last_name(self.annotation(name)) == "DistributedTensor"
        cls = DistributedTensorType if distributed else TensorType
        return TensorMeta(tuple(shape), meta.dtype).as_type(cls)

    def _blocks(self, name: str) -> list[int | None] | None:
        """The shape in which an NZ parameter is stored, None for an extent that is not known; None for any other."""
        declared = self.declared_type(name)
        if not isinstance(declared, TensorType) or declared.layout is not TensorLayout.NZ or len(declared.shape) > 3:
            return None
        found = next((a for a in self.node.args.args if a.arg == name), self.node)
        blocked = block_shape(declared, repr(name), self.source.spans().get_span(found))
        return [d.value if isinstance(d, ConstInt) else None for d in blocked.shape]

    def _stored(self, name: str, value: Any) -> Any:
        """An argument as the program takes it: the bytes of an NZ one may come in the shape that is annotated, too."""
        blocks = self._blocks(name) if _is_tensor(value) else None
        if blocks is None or len(value.shape) == 5:
            return value
        if not _in_order(value):
            self.fail(f"argument '{name}' of '{self.name}' is not contiguous, and its bytes are in NZ order", self.node,
                      "pass what pypto.layouts.to_nz made, as it is or reshaped", ParserTypeError)  # fmt: skip
        return value.reshape([value.shape[0] if len(value.shape) == 3 else 1, *blocks[1:]])

    def _compile(self, bound: Mapping[str, Any], config: RunConfig | None) -> CompiledProgram:
        from ..runtime import RunConfig
        from ..runtime.ir_compile import compile

        used = config or RunConfig()
        types, constants = self._types(bound)
        key = key_of(types, constants), config_key(used), self._meaning
        found = self._compiled.get(key)
        if found is None:
            program = specializer.program_of(self, types, constants)
            found = self._compiled[key] = compile(program, **used.compile_settings())
        return found

    def __reduce__(self) -> Any:
        return reduce_jit(self)

    def __copy__(self) -> JITFunction:
        return self

    def __deepcopy__(self, memo: Any) -> JITFunction:
        return self

    def __repr__(self) -> str:
        return f"<pl.jit function {self.name}>"


def meta_of(value: Any) -> TensorMeta:
    """Extents and dtype of an array. TypeError for a dtype the language lacks."""
    shape, dtype = tuple(int(n) for n in value.shape), str(value.dtype).rpartition(".")[2]
    if dtype == "float4_e2m1fn_x2":
        if not shape or shape[-1] == 0:
            raise TypeError(f"an array of packed FP4 pairs needs elements, got shape {list(shape)}")
        return TensorMeta((*shape[:-1], 2 * shape[-1]), DataType.FP4)
    found = of_numpy_name(dtype)
    if found is None:
        raise TypeError(f"no element type of the language is {dtype}")
    return TensorMeta(shape, found)


def _in_order(value: Any) -> bool:
    """Whether the elements of an array follow each other in memory."""
    from ..runtime.arrays import as_numpy

    return as_numpy(value).flags.c_contiguous


def _fits(shape: Sequence[Any], blocks: Sequence[int | None]) -> bool:
    return len(shape) == len(blocks) and all(want in (None, got) for got, want in zip(shape, blocks))


def _number(value: Any) -> Any:
    """A scalar of numpy or ml_dtypes, or an array of no dimensions, as the Python number it holds."""
    return value.item() if _is_tensor(value) and value.shape == () and hasattr(value, "item") else value


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


class _Jit:
    """``pl.jit``, with the variants for the functions an entry calls."""

    def __call__(self, fn: Any = None, *, auto_scope: bool = True) -> Any:
        """An entry: control flow that launches kernels and regions under ``pl.at`` on one chip."""
        return _decorator("entry", fn, sys._getframe(1), auto_scope=auto_scope)

    def host(self, fn: Any = None, *, auto_scope: bool = True) -> Any:
        """An entry on the host that launches ``@pl.jit`` functions on the chips."""
        return _decorator("host", fn, sys._getframe(1), auto_scope=auto_scope)

    def incore(self, fn: Any = None, *, level: Level | None = None) -> Any:
        """A kernel."""
        return _decorator("incore", fn, sys._getframe(1), level=level)

    def inline(self, fn: Any = None, *, auto_scope: bool = True) -> Any:
        """A function whose statements stand in for each call of it."""
        return _decorator("inline", fn, sys._getframe(1), auto_scope=auto_scope)

    def opaque(self, fn: Any = None) -> Any:
        """A function of its own that may hold control flow and regions under ``pl.at``."""
        return _decorator("opaque", fn, sys._getframe(1))

    def extern(
        self,
        *,
        core_type: str,
        source: str | os.PathLike[str] | None = None,
        aic_source: str | os.PathLike[str] | None = None,
        aiv_source: str | os.PathLike[str] | None = None,
        include_dirs: Sequence[str | os.PathLike[str]] = (),
        dual_aiv_dispatch: bool = False,
    ) -> Callable[[PyFunction], JITFunction]:
        """A kernel written in C++, declared with the body ``...``: it returns the tensors it writes, in order.

        ``core_type`` says where ``source`` runs: ``"aic"``, the cube, or ``"aiv"``, a vector core. A ``"mixed"`` one
        has ``aic_source`` and ``aiv_source``, launched together; with ``dual_aiv_dispatch`` on both vector cores.
        Files, and folders of headers in ``include_dirs``, are absolute or beside the file of the declaration.
        """
        from .extern import declare

        make = declare(core_type, source, aic_source, aiv_source, include_dirs, dual_aiv_dispatch)
        frame = sys._getframe(1)

        return lambda fn: make(fn, _names_around(fn, frame, "pl.jit.extern"))


def _names_around(fn: Any, frame: Any, decorator: str) -> Closure:
    """What the names of a function to decorate mean. Raises TypeError for anything else."""
    if not isinstance(fn, PyFunction):
        raise TypeError(f"@{decorator} decorates a function, got {type(fn).__name__}")
    return Closure(fn, _enclosing(fn, frame))


def _decorator(kind: str, fn: Any, frame: Any, *, level: Level | None = None, auto_scope: bool = True) -> Any:
    if fn is None:
        return lambda f: _decorator(kind, f, frame, level=level, auto_scope=auto_scope)
    closure = _names_around(fn, frame, "pl.jit")
    function_type, own_level, role = _KINDS[kind]
    options = FunctionOptions(function_type, level=level or own_level, role=role, auto_scope=auto_scope)
    return JITFunction(fn, kind, options, closure)


jit: Callable[..., Any] | Any = _Jit()
