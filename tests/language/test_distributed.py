"""Programs of several ranks: annotations, windows by name, devices, and printed text that parses back."""

import subprocess
import sys

import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir, passes
from pypto.dtypes import DataType
from pypto.errors import InvalidOperationError, ParserSyntaxError, ParserTypeError
from pypto.ir.enums import NotifyOp, ReduceOp, TensorLayout
from pypto.ir.expr import Call, ConstInt, Var
from pypto.ir.types import CommCtxType, DistributedTensorType, PtrType, TensorType
from pypto.ir.visitor import walk

HEAD = """
import pypto.language as pl
import pypto.language.distributed as pld

@pl.program
class P:
"""
HOST = """
    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: pl.Tensor[[64], pl.FP32]):
        {}
        return 0
"""
CORE = """
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[16, 64], pl.FP32], data: pl.InOut[pld.DistributedTensor[[16, 64], pl.FP32]],
               signal: pl.InOut[pld.DistributedTensor[[4, 1], pl.INT32]], peer: pl.Scalar[pl.INT32]):
        {}
"""


def host(*lines):
    return pl.parse_program(HEAD + HOST.format("\n        ".join(lines)))


def core(*lines):
    return pl.parse_program(HEAD + CORE.format("\n        ".join(lines)))


def calls(program, name):
    found = [n for f in program.functions.values() for n in walk(f) if isinstance(n, Call) and n.op.name == name]
    assert found, f"no call of {name}"
    return found


def comes_back(program):
    """The printed program parses to the same one and prints the same."""
    text = str(program)
    again = pl.parse_program(text)
    ir.assert_structural_equal(program, again)
    assert str(again) == text
    return text


# Annotations.


def test_a_window_tensor_is_a_type_of_its_own():
    made = core("pass").get_function("kernel")
    x, data, signal, _ = (p.type for p in made.params)
    assert type(x) is TensorType and type(data) is DistributedTensorType
    assert (signal.dtype, data.window_buffer) == (DataType.INT32, None)


def test_layouts_notes_of_dumps_and_contexts():
    f = pl.parse(
        "import pypto.language as pl\n"
        "import pypto.language.distributed as pld\n"
        "@pl.function\n"
        "def f(a: pld.DistributedTensor[[64, 64], pl.FP16, pl.NZ],\n"
        "      b: pld.DistributedTensor[[64], pl.FP32, 'window_buffer=wbuf'],\n"
        "      c: pld.CommCtx, d: pld.CommCtxType):\n"
        "    return pld.rank(c)\n"
    )
    a, b, c, d = (p.type for p in f.params)
    assert a.layout is TensorLayout.NZ and b.tensor_view is None and type(b) is DistributedTensorType
    assert c == d == CommCtxType()


def test_only_windows_carry_the_note():
    with pytest.raises(TypeError, match="Tensor does not take 'window_buffer=w'"):
        pl.Tensor[[64], pl.FP32, "window_buffer=w"]
    with pytest.raises(TypeError, match="DistributedTensor does not take 'w'"):
        pld.DistributedTensor[[64], pl.FP32, "w"]
    text = "import pypto.language as pl\n@pl.function\ndef f(x: 'pl.Tensor[[64], pl.FP32, NOTE]'): return x\n"
    with pytest.raises(ParserTypeError):
        pl.parse(text.replace("NOTE", '"window_buffer=w"'))


# Host functions.


def test_a_window_is_named_after_its_variable():
    made = host("buf = pld.alloc_window_buffer([4, pld.world_size()], dtype=pl.INT32)", "n = pld.world_size()")
    call = calls(made, "pld.tensor.alloc_window_buffer")[0]
    assert call.kwargs == {"name": "buf"} and call.type == PtrType()
    assert len(calls(made, "pld.system.world_size")) == 2


def test_the_name_of_a_window_outlives_its_variables():
    made = passes.convert_to_ssa()(
        host("buf = pld.alloc_window_buffer(64)", "w = pld.window(buf, [16], dtype=pl.FP32)")
    )
    text = comes_back(made)
    assert 'pld.tensor.alloc_window_buffer(64, "buf")' in text and "buf__ssa_v0" in text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a, b = pld.alloc_window_buffer(8), 0", "must appear as the RHS of a simple assignment"),
        ("pld.alloc_window_buffer(8)", "must appear as the RHS of a simple assignment"),
        ("w = pld.window(pld.alloc_window_buffer(8), [2], dtype=pl.FP32)", "must appear as the RHS"),
        ("b = pld.alloc_window_buffer(8, name='c')", "'name' kwarg cannot be passed explicitly"),
        ("b = pld.alloc_window_buffer(8, dtype=pl.FP32)", "dtype= is only valid when"),
        ("b = pld.alloc_window_buffer([8])", "a shape requires dtype="),
        ("b = pld.alloc_window_buffer([8, 0], dtype=pl.FP32)", "all dimensions must be positive"),
        ("b = pld.alloc_window_buffer(0)", "positive size in bytes, got 0"),
        ("b = pld.alloc_window_buffer(8); b = pld.alloc_window_buffer(8)", "window 'b' is already declared"),
    ],
)
def test_a_bad_allocation(line, message):
    with pytest.raises(ParserSyntaxError, match=message) as info:
        host(line)
    assert "alloc_window_buffer" in str(info.value) and "^" in str(info.value)


def test_one_name_is_one_window_of_the_program():
    second = HOST.replace("def host", "def other").format("buf = pld.alloc_window_buffer(8)")
    with pytest.raises(ParserSyntaxError, match="window 'buf' is already declared in this program"):
        pl.parse_program(HEAD + HOST.format("buf = pld.alloc_window_buffer(8)") + second)
    assert host("buf = pld.alloc_window_buffer(8)") and host("buf = pld.alloc_window_buffer(8)")


@pytest.mark.parametrize("call", ["pld.world_size()", "pld.alloc_window_buffer(8)"])
def test_the_host_alone_counts_ranks_and_allocates(call):
    with pytest.raises(ParserSyntaxError, match="can be called only in a HOST-level function"):
        core(f"n = {call}")
    for region, words in (
        ("pl.at(level=pl.Level.CORE_GROUP)", "an InCore region"),
        ("pl.cluster()", "a Cluster region"),
    ):
        with pytest.raises(ParserSyntaxError, match=f"cannot be called inside {words}"):
            host(f"with {region}:", f"    n = {call}")
    assert host("for i in pl.range(2):", f"    n = {call}")


def test_a_window_needs_a_buffer():
    with pytest.raises(InvalidOperationError, match="buf must be a Ptr handle"):
        host("w = pld.window(x, [16], dtype=pl.FP32)")


# Devices.

CHIP = """
    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, x: pl.Tensor[[64], pl.FP32]):
        return x
    @pl.function(level=pl.Level.CHIP, role=pl.Role.Orchestrator)
    def die(self, x: pl.Tensor[[64], pl.FP32]):
        return x
    @pl.function
    def plain(self, x: pl.Tensor[[64], pl.FP32]):
        return x
"""


def dispatch(*lines):
    return pl.parse_program(HEAD + CHIP + HOST.format("\n        ".join(lines)))


@pytest.mark.parametrize("callee", ["chip", "die"])
def test_a_call_of_an_orchestrator_says_where_it_runs(callee):
    made = dispatch(
        "for r in pl.range(pld.world_size()):", f"    self.{callee}(x, device=r)", f"self.{callee}(x, device=2)"
    )
    inside, fixed = calls(made, callee)
    assert isinstance(inside.attrs["device"], Var) and inside.attrs["device"].name_hint == "r"
    assert isinstance(fixed.attrs["device"], ConstInt) and fixed.attrs["device"].value == 2
    assert f"self.{callee}(x, device=r)" in comes_back(made)


def test_the_device_follows_the_loop_variable():
    made = passes.convert_to_ssa()(dispatch("for r in pl.range(4):", "    self.chip(x, device=r + 1)"))
    loop = next(n for f in made.functions.values() for n in walk(f) if isinstance(n, ir.ForStmt))
    assert calls(made, "chip")[0].attrs["device"].left is loop.loop_var
    comes_back(made)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("self.plain(x, device=0)", "no parameter 'device'"),
        ("self.chip(x, device=0.5)", "'device' must be an integer, got Scalar"),
        ("self.chip(x, device=x)", "'device' must be an integer, got Tensor"),
        ("self.chip(x, devise=0)", "no parameter 'devise'"),
    ],
)
def test_a_bad_device(line, message):
    with pytest.raises(ParserTypeError, match=message):
        dispatch(line)


def test_a_parameter_called_device_is_a_parameter():
    text = CHIP.replace(
        "def chip(self, x: pl.Tensor[[64], pl.FP32])", "def chip(self, device: pl.Tensor[[64], pl.FP32])"
    )
    made = pl.parse_program(HEAD + text.replace("return x", "return device", 1) + HOST.format("self.chip(device=x)"))
    assert not calls(made, "chip")[0].attrs


# Kernels.


def test_every_kernel_operator_comes_back():
    text = comes_back(
        core(
            "ctx = pld.get_comm_ctx(data)",
            "me, n = pld.rank(ctx), pld.nranks(ctx)",
            "t = pld.remote_load(data, (me + 1) % n, offsets=[0, 0], shape=[16, 32], valid_shape=[9, 32])",
            "pld.remote_store(t, data, peer, [0, 32], atomic=pld.AtomicType.Add)",
            "pld.system.notify(signal, peer, [me, 0], 1)",
            "pld.system.notify(signal, peer, [me, 0], me, op=pld.NotifyOp.Set)",
            "pld.system.wait(signal, [0, 0], -1, cmp=pld.WaitCmp.Eq)",
            "pld.system.defer_wait(signal=signal, offsets=[0, 0], expected=n, cmp=pld.WaitCmp.Ge)",
            "pld.tensor.put(data, peer, x, chunk_rows=4, chunk_cols=64, pipeline=True)",
            "pld.tensor.put(data, peer, x, [8, 0], [0, 0], [8, 64], atomic=pld.AtomicType.Add)",
            "pld.tensor.get(x, peer, data, dst_offsets=[0, 0], src_offsets=[8, 0], shape=[n, 64], chunk_rows=8)",
        )
    )
    assert text.startswith(
        "# pypto.program: P\nimport pypto.language as pl\nimport pypto.language.distributed as pld\n"
    )
    assert "op=pld.NotifyOp.Set" in text and "cmp=pld.WaitCmp.Eq" in text


def test_staged_transfers_come_back():
    stages = ["a = pl.create_tile([4, 64], dtype=pl.FP32)", "b = pl.create_tile([4, 64], dtype=pl.FP32)"]
    made = core(
        *stages,
        "pld.tile.put(data, peer, x, a)",
        "pld.tile.put(data, peer, x, a, [1, 0], [0, 0], [8, 64])",
        "pld.tile.put(data, peer, x, a, b, atomic=pld.AtomicType.Add)",
        "pld.tile.get(x, peer, data, a, b, [1, 0], [0, 0], [8, 64])",
    )
    assert [len(c.args) for c in calls(made, "pld.tile.put")] == [4, 7, 5]
    comes_back(made)


def test_collectives_come_back():
    made = core(
        "signal = pld.tensor.barrier(signal)",
        "data = pld.tensor.broadcast(data, signal, root=1)",
        "data = pld.tensor.reduce_scatter(data, signal)",
        "data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Max, mode='ring')",
        "data = pld.tensor.allgather(pl.tensor.slice(x, [1, 64], [0, 0]), data, signal)",
        "data = pld.tensor.all_to_all(x, data, signal)",
        "return data",
    )
    text = comes_back(made)
    assert 'op=pld.ReduceOp.Max, mode="ring"' in text
    assert calls(made, "pld.tensor.allreduce")[0].kwargs["op"] is ReduceOp.Max


def test_a_function_on_its_own_comes_back():
    @pl.function
    def f(data: pld.DistributedTensor[[8], pl.FP32], ctx: pld.CommCtx):
        return pld.system.rank(ctx)

    text = str(f)
    assert "ctx: pld.CommCtx" in text
    ir.assert_structural_equal(pl.parse(text), f)


def test_serialized_programs_keep_enumerations():
    made = core("pld.system.notify(signal, peer, [0, 0], 1, op=pld.NotifyOp.Set)")
    back = ir.deserialize(ir.serialize(made))
    ir.assert_structural_equal(back, made)
    assert calls(back, "pld.system.notify")[0].kwargs["op"] is NotifyOp.Set


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("pld.tile.push(x)", r"Unknown operation 'pld\.tile\.push'"),
        ("pld.put(data, peer, x)", r"(?s)Unknown operation 'pld\.put'.*write its level too: pld\.tensor\.put"),
        ("t = pld.remote_load(x, peer, [0, 0], [8, 8])", "target must be a window-bound DistributedTensor"),
        ("t = pld.remote_load(data, peer=peer, offsets=[0, 0])", "missing required positional argument 'shape'"),
        ("t = pld.remote_load(data, peer, [0, 0], [8, 8], pad=1)", "unexpected keyword argument 'pad'"),
        ("b = pld.tensor.put(data, peer, x)", "has no value to assign"),
        ("pld.tensor.allreduce(data, None)", "signal cannot be None"),
        ("pld.system.wait(signal, [0, 0], 1, cmp=pl.AtomicType.Add)", "cmp must be WaitCmp.Eq or WaitCmp.Ge"),
    ],
)
def test_a_bad_call_points_at_itself(line, message):
    with pytest.raises(InvalidOperationError, match=message) as info:
        core(line)
    assert line in str(info.value) and "^" in str(info.value)


def test_the_language_does_not_load_distributed_operators():
    code = (
        "import sys, pypto.language\n"
        "before = 'pypto.ops.distributed' in sys.modules\n"
        "from pypto import ir\n"
        "print(before, ir.get_op('pld.tensor.put').name)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "pld.tensor.put"]
