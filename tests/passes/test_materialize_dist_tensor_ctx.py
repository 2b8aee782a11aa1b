"""Communication contexts are parameters, passed on from the host to the cores."""

from __future__ import annotations

import pytest
from text_programs import ORCHESTRATION, method, program

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import codegen, ir, passes
from pypto.ir.pass_manager import PassManager
from pypto.ir.visitor import walk

from .checking import check, findings, run, unchanged

CTX = passes.materialize_dist_tensor_ctx


@pl.program
class Chip:
    @pl.function(type=pl.FunctionType.InCore)
    def swap(
        self,
        a: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]],
        n: pl.Scalar[pl.INT32],
        b: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]],
    ) -> tuple[pld.DistributedTensor[[4, 8], pl.FP32], pld.DistributedTensor[[4, 8], pl.FP32]]:
        ctx = pld.system.get_comm_ctx(b)
        me = pld.system.rank(ctx)
        pld.system.notify(a, me, [0, 0], n)
        return b, a

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]],
        y: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]],
        n: pl.Scalar[pl.INT32],
    ):
        both = self.swap(x, n, y)
        flat = pl.tensor.view(both[0], [32, 1])
        again = pl.tensor.view(flat, [4, 8])
        other = both[1]
        self.swap(again, n, other)


def test_contexts_follow_the_windows_they_belong_to():
    @pl.program
    class Expected:
        @pl.function(type=pl.FunctionType.InCore)
        def swap(
            self,
            a: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]],
            n: pl.Scalar[pl.INT32],
            b: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]],
            a_ctx: pld.CommCtx,
            b_ctx: pld.CommCtx,
        ) -> tuple[pld.DistributedTensor[[4, 8], pl.FP32], pld.DistributedTensor[[4, 8], pl.FP32]]:
            ctx = b_ctx
            me = pld.system.rank(ctx)
            pld.system.notify(a, me, [0, 0], n)
            return b, a

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            x: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]],
            y: pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]],
            n: pl.Scalar[pl.INT32],
            x_ctx: pld.CommCtx,
            y_ctx: pld.CommCtx,
        ):
            both = self.swap(x, n, y, x_ctx, y_ctx)
            flat = pl.tensor.view(both[0], [32, 1])
            again = pl.tensor.view(flat, [4, 8])
            other = both[1]
            self.swap(again, n, other, y_ctx, x_ctx)

    check(Chip, Expected, CTX)


def test_a_context_is_a_scalar_argument_of_its_launch():
    after = run(Chip, passes.derive_call_directions, CTX)
    calls = [n for n in walk(after.get_function("main")) if isinstance(n, ir.Call) and n.op.name == "swap"]
    assert all(c.arg_directions[-2:] == [ir.ArgDirection.Scalar] * 2 for c in calls)
    assert all(len(c.arg_directions) == len(c.args) == 5 for c in calls)


def test_a_name_in_use_is_not_taken():
    @pl.program
    class Taken:
        @pl.function(type=pl.FunctionType.InCore)
        def look(self, w: pld.DistributedTensor[[4, 8], pl.FP32]):
            w_ctx = pld.system.get_comm_ctx(w)
            n = pld.system.nranks(w_ctx)
            pld.system.wait(w, [0, 0], n, cmp=pld.WaitCmp.Ge)

    after = run(Taken, CTX)
    assert [p.name_hint for p in after.get_function("look").params] == ["w", "w_ctx_1"]


@pl.program
class Host:
    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, data: pld.DistributedTensor[[4, 8], pl.FP32]):
        pld.system.wait(data, [0, 0], 1, cmp=pld.WaitCmp.Ge)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(self):
        buf = pld.alloc_window_buffer([4, 8], dtype=pl.FP32)
        data = pld.window(buf, [4, 8], dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            self.chip(data, device=r)
        return 0


def test_the_host_asks_for_the_context_of_a_window_before_a_launch():
    after = run(Host, CTX)
    loop = next(n for n in walk(after.get_function("main")) if isinstance(n, ir.ForStmt))
    query, launch = loop.body.stmts
    assert query.var.name_hint == "data_ctx" and query.value.op.name == "pld.system.get_comm_ctx"
    assert launch.expr.args[1] is query.var and launch.expr.attrs["device"] is loop.loop_var
    assert findings(after, passes.IRProperty.DistTensorCtxMaterialized) == []
    unchanged(after, CTX)


def test_without_distributed_tensors_nothing_changes():
    @pl.program
    class Plain:
        @pl.function(type=pl.FunctionType.InCore)
        def copy(self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
            pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], y)

    unchanged(Plain, CTX)


def chip(body: str) -> ir.Program:
    window = "pld.DistributedTensor[[4, 8], pl.FP32]"
    params = f"x: pl.InOut[{window}], c: pl.Scalar[pl.BOOL], y: pl.InOut[{window}]"
    return program(
        method("use", f"w: {window}", "pld.system.wait(w, [0, 0], 1, cmp=pld.WaitCmp.Ge)"),
        method("main", params, body, decorator=ORCHESTRATION),
    )


@pytest.mark.parametrize(
    "body, message",
    [
        ("w = x\nfor _ in pl.range(2):\n    self.use(w)\n    w = y\nself.use(w)", "Rebinding loop-carried"),
        ("w = x\nif c:\n    w = y\nself.use(w)", "Assigning a different DistributedTensor in each branch"),
    ],
)
def test_a_variable_of_two_windows_is_refused(body, message):
    with pytest.raises(ValueError, match=message) as error:
        CTX()(passes.convert_to_ssa()(chip(body)))
    assert "'x'" in str(error.value) and "'y'" in str(error.value)


def test_an_output_of_a_kernel_with_windows_is_not_left_to_the_runtime():
    @pl.program
    class Left:
        @pl.function(type=pl.FunctionType.InCore)
        def producer(
            self,
            x: pl.Tensor[[64], pl.FP32],
            signal: pld.DistributedTensor[[1], pl.INT32],
            made: pl.Out[pl.Tensor[[64], pl.FP32]],
        ) -> pl.Tensor[[64], pl.FP32]:
            return pl.store(pl.load(x, [0], [64]), [0], made)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[64], pl.FP32], signal: pld.DistributedTensor[[1], pl.INT32]
        ) -> pl.Tensor[[64], pl.FP32]:
            with pl.manual_scope():
                y, _task = pl.submit(self.producer, x, signal)
            return y

    lowered = PassManager().run_passes(Left)
    main = lowered.get_function("main")
    assert main is not None
    with pytest.raises(ValueError, match="leaves out its output 'made'") as caught:
        codegen.generate_orchestration(lowered, main)
    assert "pl.submit(self.producer, x, signal)" in str(caught.value) and "pl.create_tensor" in str(caught.value)
