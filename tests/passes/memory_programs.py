"""Reading places out of lowered programs, for the tests of the memory passes."""

from __future__ import annotations

from pypto import ir
from pypto.passes.memory_model import allocations


def statements(program, name=None):
    """Every statement of a function, nested ones too, in order."""
    found = []

    def visit(stmt):
        for s in ir.flatten_to_stmts(stmt):
            found.append(s)
            for part in ("body", "then_body", "else_body"):
                inner = getattr(s, part, None)
                if isinstance(inner, ir.Stmt):
                    visit(inner)

    visit(the(program, name).body)
    return found


def the(program, name=None):
    """The function called ``name``, or the only one."""
    return program.get_function(name) if name else next(iter(program.functions.values()))


def variables(program, name=None):
    """Parameters, assigned, loop-carried and result variables by name."""
    found = {v.name_hint: v for v in the(program, name).params}
    for s in statements(program, name):
        defined = [s.var] if hasattr(s, "var") else []
        for v in (*getattr(s, "iter_args", ()), *getattr(s, "return_vars", ()), *defined):
            found[v.name_hint] = v
    return found


def offset(memref):
    return getattr(memref.byte_offset, "value", memref.byte_offset)


def places(program, name=None):
    """(allocation, byte offset, bytes) of every tile by variable name."""
    return {
        n: (v.type.memref.base.name_hint, offset(v.type.memref), v.type.memref.size)
        for n, v in variables(program, name).items()
        if isinstance(v.type, ir.TileType) and v.type.memref is not None
    }


def bases(program, name=None):
    """The allocation of every tile by variable name."""
    return {n: base for n, (base, _, _) in places(program, name).items()}


def allocated(program, name=None):
    """Memory and bytes of every allocation by name, in order."""
    return {base.name_hint: (a.space.name, a.size) for base, a in allocations(the(program, name).body).items()}


def operators(program, name=None):
    """Names of the operators called, allocations left out."""
    values = [getattr(s, "value", None) for s in statements(program, name)]
    names = [v.op.name for v in values if isinstance(v, ir.Call)]
    return [n for n in names if n != "tile.alloc"]
