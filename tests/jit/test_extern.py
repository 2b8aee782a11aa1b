"""Kernels written in C++: declared with `@pl.function(external_source=..)` and with `@pl.jit.extern`."""

import json

import numpy as np
import pytest

import pypto.language as pl
from pypto import codegen, ir, passes
from pypto.errors import KernelValueError, ParserSyntaxError, ParserTypeError

T = pl.Tensor[[64, 64], pl.FP32]
X = np.zeros((64, 64), np.float32)
HEAD = """
import pypto.language as pl
T = pl.Tensor[[64, 64], pl.FP32]
"""


@pytest.fixture
def cpp(tmp_path):
    path = tmp_path / "kernel.cpp"
    path.write_text('extern "C" void kernel_entry(long* args) {}\n')
    return path


def both_cores(path, **options):
    @pl.jit.extern(core_type="mixed", aic_source=path, aiv_source=path, **options)
    def mixed(a: pl.Tensor, out: pl.Out[pl.Tensor]) -> pl.Tensor: ...

    @pl.jit
    def entry(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = mixed(a, out)
        return out

    return entry


def vector_only(path, **options):
    @pl.jit.extern(core_type="aiv", source=path, **options)
    def relu(a: T, out: pl.Out[T]) -> T: ...

    @pl.jit
    def entry(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = relu(a, out)
        return out

    return entry


def table(folder):
    text = (folder / "kernel_config.py").read_text()
    text = text.replace("from simpler.task_interface import ArgDirection as _D", "class _D: IN, OUT = 'IN', 'OUT'")
    found: dict = {"__file__": str(folder / "kernel_config.py")}
    exec(text, found)
    return found["KERNELS"]


def test_a_kernel_of_both_cores_is_a_function_for_each_and_their_group(cpp):
    made = both_cores(cpp).specialize(X, X)
    kinds = {f.name: f.func_type for f in made.functions.values()}
    assert kinds == {
        "mixed_aic": ir.FunctionType.AIC, "mixed_aiv": ir.FunctionType.AIV, "mixed": ir.FunctionType.Group,
        "entry": ir.FunctionType.Orchestration,
    }  # fmt: skip
    assert made.get_function("mixed_aiv").external_source == str(cpp)
    ir.assert_structural_equal(pl.parse_program(made.as_python()), made)


@pytest.mark.parametrize(("both", "slots"), [(False, "{0, 1, INVALID_KERNEL_ID}"), (True, "{0, 1, 1}")])
def test_the_cores_are_launched_together(cpp, both, slots):
    with passes.PassContext(verification_level=passes.VerificationLevel.ROUNDTRIP):
        lowered = both_cores(cpp, dual_aiv_dispatch=both).lower(X, X)
    code = codegen.generate_orchestration(lowered, lowered.get_function("entry")).code
    assert f"MixedKernels mixed_0 = {slots};" in code
    assert "add_input(ext_a)" in code and "add_output(ext_out)" in code


def test_the_table_says_where_the_source_and_its_headers_are(cpp, tmp_path):
    headers = tmp_path / "headers"
    headers.mkdir()
    made = vector_only(cpp, include_dirs=[headers]).specialize(X, X)
    assert json.loads(made.get_function("relu").attrs["external_include_dirs"]) == [str(headers)]
    compiled = pl.compile(made, output_dir=tmp_path / "out", skip_ptoas=True)
    (kernel,) = table(tmp_path / "out")
    assert (kernel["name"], kernel["core_type"], kernel["source"]) == ("relu", "aiv", str(cpp))
    assert kernel["external"] is True and kernel["extra_include_dirs"] == [str(headers)]
    assert compiled.pto == {} and not (tmp_path / "out" / "kernels").exists()


def test_a_kernel_called_with_two_shapes_is_declared_for_each(cpp):
    @pl.jit.extern(core_type="mixed", aic_source=cpp, aiv_source=cpp)
    def mixed(a: pl.Tensor, out: pl.Out[pl.Tensor]): ...

    @pl.jit
    def entry(a: pl.Tensor, b: pl.Tensor, x: pl.Out[pl.Tensor], y: pl.Out[pl.Tensor]):
        x = mixed(a, x)
        y = mixed(b, y)
        return x, y

    made = entry.specialize(X, X[:32], X, X[:32])
    shapes = {f.name: f.params[0].type.shape[0].value for f in made.functions.values()}
    assert shapes == {
        "mixed_aic": 64, "mixed_aiv": 64, "mixed": 64, "mixed_aic_1": 32, "mixed_aiv_1": 32, "mixed_1": 32, "entry": 64,
    }  # fmt: skip


def test_several_results_are_the_tensors_written_in_order(cpp):
    @pl.jit.extern(core_type="mixed", aic_source=cpp, aiv_source=cpp)
    def halves(a: pl.Tensor, low: pl.Out[pl.Tensor], high: pl.InOut[pl.Tensor]): ...

    @pl.jit.extern(core_type="aiv", source=cpp)
    def use(a: pl.Tensor, out: pl.Out[pl.Tensor]): ...

    @pl.jit
    def entry(a: pl.Tensor, low: pl.Out[pl.Tensor], high: pl.InOut[pl.Tensor], out: pl.Out[pl.Tensor]):
        low, high = halves(a, low, high)
        out = use(high, out)
        return low, high, out

    lowered = entry.lower(X, X, X, X)
    code = codegen.generate_orchestration(lowered, lowered.get_function("entry")).code
    assert "params_t1.add_input(ext_high);" in code


def test_the_simulator_says_that_it_runs_no_cpp(cpp):
    with pytest.raises(KernelValueError, match="'relu' is written in C.., which only a device runs"):
        vector_only(cpp)(X, X.copy())


def test_paths_are_beside_the_file_of_the_declaration(cpp, tmp_path):
    (tmp_path / "headers").mkdir()
    text = (
        "import pypto.language as pl\n"
        "@pl.jit.extern(core_type='aiv', source='kernel.cpp', include_dirs=['headers'])\n"
        "def ext(a: pl.Tensor, out: pl.Out[pl.Tensor]): ...\n"
    )
    names: dict = {}
    exec(compile(text, str(tmp_path / "declared.py"), "exec"), names)
    assert names["ext"].options.external_source == str(cpp)
    assert json.loads(names["ext"].options.attrs["external_include_dirs"]) == [str(tmp_path / "headers")]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"core_type": "cube", "source": "k.cpp"}, ValueError, "core_type must be 'aic', 'aiv' or 'mixed'"),
        ({"core_type": "mixed", "aic_source": "k.cpp"}, ValueError, "requires both aic_source= and aiv_source="),
        ({"core_type": "aiv"}, ValueError, "requires source="),
        ({"core_type": "aic", "source": "k.cpp", "aiv_source": "k.cpp"}, ValueError, "requires source="),
        ({"core_type": "aiv", "source": "k.cpp"}, ValueError, "source file not found: .*k.cpp"),
        (
            {"core_type": "aiv", "source": "k.cpp", "dual_aiv_dispatch": True},
            ValueError,
            "requires core_type='mixed'",
        ),
        ({"core_type": "aiv", "source": __file__, "include_dirs": "here"}, TypeError, "must be a sequence of paths"),
        (
            {"core_type": "aiv", "source": __file__, "include_dirs": ["nowhere"]},
            ValueError,
            "include directory not found: .*nowhere",
        ),
    ],
)
def test_refused_declarations_under_jit(options, error, message):
    with pytest.raises(error, match=message):

        @pl.jit.extern(**options)
        def k(a: pl.Tensor, out: pl.Out[pl.Tensor]): ...


def declared(cpp, function, body="...", results=" -> T", params="a: T, out: pl.Out[T]"):
    return pl.parse(f"{HEAD}\n@pl.function({function.format(cpp)})\ndef k({params}){results}: {body}\n")


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"function": "type=pl.FunctionType.InCore, external_source='{}'"},
            ParserTypeError,
            r"external_source is only valid on FunctionType\.AIC and FunctionType\.AIV, 'k' is InCore",
        ),
        ({"body": "return out"}, ParserSyntaxError, "'k' must have an empty body"),
        (
            {"function": "type=pl.FunctionType.AIV, external_source='{}x'"},
            ValueError,
            "file not found: .*kernel.cppx",
        ),
        (
            {"results": " -> tuple[T, T]"},
            ParserTypeError,
            r"'k' declares 2 result\(s\) and writes 1 tensor\(s\)",
        ),
    ],
)
def test_refused_declarations_in_the_language(cpp, changes, error, message):
    given = {"function": "type=pl.FunctionType.AIV, external_source='{}'", **changes}
    with pytest.raises(error, match=message):
        declared(cpp, **given)


def test_a_group_is_all_cpp_or_none(cpp):
    text = f"""{HEAD}
@pl.program
class P:
    @pl.function(type=pl.FunctionType.AIC, external_source={str(cpp)!r})
    def a(self, x: T, out: pl.Out[T]) -> T: ...

    @pl.function(type=pl.FunctionType.AIV)
    def b(self, x: T, out: pl.Out[T]) -> T:
        return pl.store(pl.load(x, [0, 0], [64, 64]), [0, 0], out)

    @pl.function(type=pl.FunctionType.Group)
    def both(self, x: T, out: pl.Out[T]) -> T:
        r = self.a(x, out)
        self.b(x, out)
        return r
"""
    with pytest.raises(KernelValueError, match="launches 'a', which is written in C.., together with kernels that are"):
        pl.compile(pl.parse(text), skip_ptoas=True)
