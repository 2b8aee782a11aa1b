"""The intermediate representation as data.

Names of the public API that belong to later stages (``ir.op``, ``ir.compile``, ``ir.IRBuilder`` ...) are looked up
where they are defined, on first use.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from ..dtypes import DataType
from . import comm_layout as comm_layout
from .enums import *
from .enums import MemorySpace as Mem
from .expr import (
    COMPARISONS,
    LOGICAL,
    Abs,
    Add,
    And,
    BinaryExpr,
    BitAnd,
    BitNot,
    BitOr,
    BitShiftLeft,
    BitShiftRight,
    BitXor,
    Call,
    Cast,
    ConstBool,
    ConstFloat,
    ConstInt,
    Eq,
    Expr,
    FloatDiv,
    FloorDiv,
    FloorMod,
    Ge,
    GlobalVar,
    Gt,
    IterArg,
    Le,
    Lt,
    MakeTuple,
    Max,
    Min,
    Mul,
    Ne,
    Neg,
    Not,
    Op,
    Or,
    Pow,
    Sub,
    Submit,
    TupleGetItemExpr,
    UnaryExpr,
    Var,
    Xor,
    const_value,
    index_const,
)
from .memref import MemRef, WindowBuffer
from .node import IRNode
from .program import Function, Program, is_incore_type, is_orchestration_like
from .span import Span
from .stmt import (
    AssignStmt,
    BreakStmt,
    ClusterScopeStmt,
    CommDomainScopeStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    HierarchyScopeStmt,
    IfStmt,
    InCoreScopeStmt,
    InlineStmt,
    ReturnStmt,
    RuntimeScopeStmt,
    ScopeStmt,
    SeqStmts,
    SplitAivScopeStmt,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    attach_leading_comments,
    flatten_to_stmts,
    seq,
)
from .types import (
    ArrayType,
    AsyncEventType,
    AsyncSessionType,
    CommCtxType,
    DistributedTensorType,
    PrefetchAsyncContextType,
    PtrType,
    ScalarType,
    ShapedType,
    TensorType,
    TensorView,
    TileType,
    TileView,
    TupleType,
    Type,
    UnknownType,
    WindowBufferType,
    dim_list,
    implicit_layout,
    implicit_view,
    same_dims,
    static_dims,
)

_ELSEWHERE = {
    "python_print": ".printer",
    "python_print_type": ".printer",
    "structural_equal": ".structural",
    "structural_hash": ".structural",
    "assert_structural_equal": ".structural",
    "get_op": "..ops.query",
    "is_op_registered": "..ops.query",
    "create_op_call": "..ops.query",
    "get_op_memory_spec": "..ops.query",
    "get_op_arg_effect": "..ops.query",
    "get_op_write_channel": "..ops.query",
    "op_has_declared_arg_effect": "..ops.query",
    "op_has_declared_arg_effects": "..ops.query",
    "ArgEffect": "..ops.registry",
    "WriteChannel": "..ops.registry",
    "IRVisitor": ".functor",
    "IRMutator": ".functor",
    "ParentStmtAnalysis": ".functor",
    "collect_def_vars": ".functor",
    "deep_clone": ".functor",
    "find_yield_stmt": ".functor",
    "get_last_yield_stmt": ".functor",
    "substitute_expr": ".functor",
    "substitute_stmt": ".functor",
    "serialize": ".serialization",
    "deserialize": ".serialization",
    "serialize_to_file": ".serialization",
    "deserialize_from_file": ".serialization",
    "IRBuilder": ".builder",
    "cast": ".scalar",
    **dict.fromkeys(
        ("input", "output", "inout", "output_existing", "no_dep", "scalar_dir", "make_call"), ".directions"
    ),
    "compile": "..runtime.ir_compile",
    "PassManager": ".pass_manager",
    "OptimizationStrategy": ".pass_manager",
    "PassDumpLevel": ".pass_manager",
    "VerificationLevel": "..passes",
    "PassContext": "..passes",
    "make_roundtrip_instrument": ".instruments",
}
_SCALAR_FUNCTIONS = frozenset(
    ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "min_", "max_", "eq", "ne", "lt", "le", "gt", "ge",
     "and_", "or_", "xor", "bit_and", "bit_or", "bit_xor", "bit_shift_left", "bit_shift_right", "neg", "abs_", "not_",
     "bit_not")
)  # fmt: skip
_MODULES = frozenset({"op", "printer", "structural", "tensor_view_semantics", "pass_manager", "instruments", "builder",
                      "compiled_program", "directions", "utils"})  # fmt: skip


null = PadValue.null
DYNAMIC_DIM = -1
"""A dimension only known at run time, where an integer has to say so."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _SCALAR_FUNCTIONS:
        from .scalar import FUNCTIONS

        return FUNCTIONS[name]
    module = _ELSEWHERE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(module, __name__), name)


class _Package(ModuleType):
    """``ir.compile`` is a function, and the import path of more: importing the module must not hide the function."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "compile" and isinstance(value, ModuleType):
            value = value.compile
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
