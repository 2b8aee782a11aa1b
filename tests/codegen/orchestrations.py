"""Orchestrations as passes leave them, written by hand, and the C++ statements they become."""


import text_programs
from text_programs import method

from pypto import codegen
from pypto.ir import FunctionType

T = "pl.Tensor[[16, 16], pl.FP32]"
KERNELS = f"""
    @pl.function(type=pl.FunctionType.AIV)
    def copy(self, src: {T}, dst: pl.Out[{T}]) -> {T}:
        return dst
    @pl.function(type=pl.FunctionType.AIV)
    def update(self, src: {T}, dst: pl.InOut[{T}]) -> {T}:
        return dst
    @pl.function(type=pl.FunctionType.AIV)
    def split(self, src: {T}, low: pl.Out[{T}], high: pl.Out[{T}]) -> tuple[{T}, {T}]:
        return low, high
    @pl.function(type=pl.FunctionType.AIV)
    def scale(self, src: {T}, factor: pl.Scalar[pl.FP32], count: pl.Scalar[pl.INT32], dst: pl.Out[{T}]) -> {T}:
        return dst
    @pl.function(type=pl.FunctionType.AIC)
    def cube(self, src: {T}, dst: pl.Out[{T}]) -> {T}:
        return dst
"""
COPY = '{"arg_directions": [pl.adir.input, pl.adir.output_existing]}'
UPDATE = '{"arg_directions": [pl.adir.input, pl.adir.inout]}'


def program(body, parameters=f"x: {T}, out: pl.Out[{T}]", kernels=KERNELS):
    """A program whose Orchestration function ``main`` consists of ``body``."""
    decorator = "@pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)"
    return text_programs.program(kernels, method("main", parameters, body, decorator=decorator))


def generate(made):
    main = next(f for f in made.functions.values() if f.func_type is FunctionType.Orchestration)
    return codegen.generate_orchestration(made, main)


def statements(body, **options):
    """The entry function's statements after its parameters, one a line, without indentation and blank lines."""
    return entry(generate(program(body, **options)).code)


def entry(code):
    lines = [line.strip() for line in code.split("aicpu_orchestration_entry")[1].splitlines()[1:]]
    kept = [x for x in lines if x and "orch_args" not in x and not x.startswith("//")]
    return kept[: kept.index('}  // extern "C"') - 1]
