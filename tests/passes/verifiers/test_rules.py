"""Each rule finds its fault, where it is, and nothing in a program without it."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir, passes
from pypto.dtypes import DataType
from pypto.errors import VerificationError
from pypto.passes.verifiers import RULES, rule_of

P = passes.IRProperty
I64, INDEX, BOOL, FP32 = (ir.ScalarType(getattr(DataType, n)) for n in ("INT64", "INDEX", "BOOL", "FP32"))
TENSOR = ir.TensorType([64, 64], DataType.FP32)


def found(program, *props):
    return passes.PropertyVerifierRegistry.verify(passes.IRPropertySet(props), program)


def messages(program, *props):
    return [d.message for d in found(program, *props)]


def program(body, params=(), results=(), kind=ir.FunctionType.Opaque, **more):
    return ir.Program([ir.Function("main", params, results, body, type=kind, **more)])


def index(*values):
    return [ir.ConstInt(v, DataType.INDEX) for v in values]


def test_every_rule_loads_and_has_a_name_of_its_own():
    names = [rule_of(p).name for p in RULES]
    assert len(set(names)) == len(names)


def test_a_property_without_a_rule_is_taken_on_trust():
    assert found(program(ir.SeqStmts([])), P.ClusterOutlined) == []


def test_one_walk_serves_all_rules(monkeypatch):
    from pypto.passes.verifiers import driver

    visits = []
    visit = driver._Driver.visit
    monkeypatch.setattr(driver._Driver, "visit", lambda self, op: (visits.append(op), visit(self, op))[1])
    a = ir.Var("a", I64)
    subject = program(ir.seq([ir.AssignStmt(ir.Var("b", I64), a), ir.ReturnStmt([a])]), [a], [I64])
    found(subject, P.SSAForm)
    once = len(visits)
    visits.clear()
    found(subject, *RULES)
    assert len(visits) <= once + 1


def carrying(iter_args, yielded, results, kind="for"):
    i = ir.Var("i", INDEX)
    body = ir.YieldStmt(yielded) if yielded is not None else ir.EvalStmt(i)
    if kind == "for":
        return ir.ForStmt(i, *index(0, 4, 1), iter_args, body, results)
    return ir.WhileStmt(ir.ConstBool(True), iter_args, body, results)


@pytest.mark.parametrize("kind", ["for", "while"])
@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((1, 1, 1), None),
        ((1, None, 1), "must have YieldStmt as its last statement"),
        ((1, 2, 1), "YieldStmt value count (2) != iter_args count (1)"),
        ((1, 1, 2), "iter_args count (1) != return_vars count (2)"),
    ],
)
def test_loops_yield_what_they_carry(kind, counts, message):
    a = ir.Var("a", I64)
    carried, yielded, returned = counts
    args = [ir.IterArg("c", I64, a) for _ in range(carried)]
    values = None if yielded is None else [a] * yielded
    loop = carrying(args, values, [ir.Var("r", I64) for _ in range(returned)], kind)
    if kind == "while" and yielded is None:
        loop = loop.replace(body=ir.EvalStmt(a))
    texts = messages(program(loop, [a]), P.SSAForm)
    assert texts == [] if message is None else message in texts[0]


def test_branches_yield_what_they_return():
    a, c = ir.Var("a", I64), ir.Var("c", BOOL)
    alone = ir.IfStmt(c, ir.YieldStmt([a]), None, [ir.Var("r", I64)])
    assert messages(program(alone, [a, c]), P.SSAForm) == ["IfStmt with return_vars must have else branch"]
    uneven = ir.IfStmt(c, ir.YieldStmt([a]), ir.YieldStmt([]), [ir.Var("r", I64)])
    assert messages(program(uneven, [a, c]), P.SSAForm) == ["YieldStmt value count (0) != return_vars count (1)"]


def test_scopes_end():
    a, i, t, r = ir.Var("a", I64), ir.Var("i", INDEX), ir.Var("t", I64), ir.Var("r", I64)
    arg = ir.IterArg("c", I64, a)
    loop = ir.ForStmt(i, *index(0, 4, 1), [arg], ir.seq([ir.AssignStmt(t, arg), ir.YieldStmt([t])]), [r])

    def reading(var):
        return program(ir.seq([loop, ir.ReturnStmt([var])]), [a], [I64])

    for var in (i, t, arg):
        assert messages(reading(var), P.SSAForm) == [f"Variable '{var.name_hint}' is used outside its defining scope"]
        assert len(messages(reading(var), P.UseAfterDef)) == 1
    assert messages(reading(r), P.SSAForm, P.UseAfterDef) == []


def test_a_variable_nothing_defines_is_found_in_ssa_form():
    a, free = ir.Var("a", I64), ir.Var("y", I64)
    subject = program(ir.seq([ir.AssignStmt(ir.Var("t", I64), a), ir.ReturnStmt([free])]), [a], [I64])
    assert messages(subject, P.SSAForm) == ["Variable 'y' is used where no definition of it comes before"]
    keep = passes.create_function_pass(lambda f: f, produced={P.SSAForm})
    with pytest.raises(VerificationError, match="Variable 'y' is used"):
        passes.PassPipeline([keep]).run(subject)


def test_before_ssa_form_what_a_body_assigns_outlives_it():
    a, c, t, i = ir.Var("a", I64), ir.Var("c", BOOL), ir.Var("t", I64), ir.Var("i", INDEX)
    for body in (ir.IfStmt(c, ir.AssignStmt(t, a)), ir.ForStmt(i, *index(0, 4, 1), [], ir.AssignStmt(t, a), [])):
        subject = program(ir.seq([body, ir.ReturnStmt([t])]), [a, c], [I64])
        assert messages(subject, P.UseAfterDef) == []
        assert len(messages(subject, P.SSAForm)) == 1


def test_extents_are_uses_but_for_those_of_parameters():
    n, rows = ir.Var("n", INDEX), ir.Var("rows", INDEX)
    x = ir.Var("x", ir.TensorType([rows, 64], DataType.FP32))
    ok = ir.AssignStmt(ir.Var("y", x.type), x)
    assert messages(program(ok, [x]), P.UseAfterDef) == []
    bad = ir.AssignStmt(ir.Var("y", ir.TensorType([n, 64], DataType.FP32)), x)
    assert messages(program(bad, [x]), P.UseAfterDef) == ["Variable 'n' is used before definition in function 'main'"]
    assert len(messages(program(ok, [x], attrs={"core_num": n}), P.UseAfterDef)) == 1


def test_findings_know_their_place_and_fail_with_a_report():
    a, x = ir.Var("a", I64), ir.Var("x", I64, ir.Span("kernel.py", 12, 5, 12, 6))
    twice = program(ir.seq([ir.AssignStmt(x, a), ir.AssignStmt(x, a), ir.ReturnStmt([x])]), [a], [I64])
    (finding,) = found(twice, P.SSAForm)
    assert (finding.rule_name, finding.error_code, finding.span.begin_line) == ("SSAVerify", 1, 12)
    assert finding.severity is passes.DiagnosticSeverity.Error
    with pytest.raises(VerificationError, match="IR Verification Report") as caught:
        passes.PropertyVerifierRegistry.verify_or_throw(passes.IRPropertySet([P.SSAForm]), twice)
    assert "kernel.py:12:5" in str(caught.value)
    report = passes.PropertyVerifierRegistry.generate_report([finding])
    assert report.splitlines()[:2] == ["IR Verification Report", "1 finding"]
    with pytest.raises(VerificationError, match="Verification failed after pass 'Mine'"):
        passes.verify_properties(passes.IRPropertySet([P.SSAForm]), twice, "Mine")


@pytest.mark.parametrize(
    ("type_a", "type_b", "code", "text"),
    [
        (I64, FP32, 102, "Dtype mismatch in IfStmt"),
        (I64, TENSOR, 101, "Type kind mismatch"),
        (TENSOR, ir.TensorType([64], DataType.FP32), 103, "Shape rank mismatch"),
        (TENSOR, ir.TensorType([64, 32], DataType.FP32), 104, "32 and 64 in dimension 1"),
        (ir.TensorType([ir.Var("n", INDEX), 64], DataType.FP32), TENSOR, 104, "equality is not provable"),
        (TENSOR, ir.TensorType([64, 64], DataType.FP32, None, ir.TensorView(pad=ir.PadValue.zero)), 109, "padding"),
        (
            ir.TileType([64, 64], DataType.FP32, memory_space=ir.MemorySpace.Vec),
            ir.TileType([64, 64], DataType.FP32, None, ir.TileView(stride=[128, 1]), ir.MemorySpace.Vec),
            111,
            "Tile view metadata mismatch",
        ),
        (ir.TupleType([I64, I64]), ir.TupleType([I64]), 105, "Tuple size mismatch"),
    ],
)
def test_branches_agree_on_types(type_a, type_b, code, text):
    here, there = ir.Var("here", type_a), ir.Var("there", type_b)
    branch = ir.IfStmt(ir.ConstBool(True), ir.YieldStmt([here]), ir.YieldStmt([there]), [ir.Var("r", type_a)])
    (finding,) = found(program(branch, [here, there]), P.TypeChecked)
    assert finding.error_code == code and text in finding.message
    same = branch.replace(else_body=ir.YieldStmt([here]))
    assert found(program(same, [here, there]), P.TypeChecked) == []


def test_conditions_are_booleans_and_ranges_scalars():
    a, t, i = ir.Var("a", I64), ir.Var("t", TENSOR), ir.Var("i", INDEX)
    nothing = ir.SeqStmts([])
    assert messages(program(ir.IfStmt(a, nothing), [a]), P.TypeChecked) == [
        "IfStmt condition dtype must be BOOL, not INT64"
    ]
    loop = ir.ForStmt(i, t, t, t, [], nothing, [])
    assert [d.error_code for d in found(program(loop, [t]), P.TypeChecked)] == [107, 107, 107]


@pl.program
class Writing:
    @pl.function
    def put(self, x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]) -> pl.Tensor[[64], pl.FP32]:
        r = pl.add(x, 1.0)
        return r

    @pl.function
    def good(
        self, x: pl.Tensor[[64], pl.FP32], y: pl.Tensor[[64], pl.FP32], c: pl.Scalar[pl.BOOL]
    ) -> pl.Tensor[[64], pl.FP32]:
        for _i in pl.range(4):
            y = self.put(x, y)
        if c:
            z = self.put(x, y)
        else:
            z = pl.exp(y)
        return z

    @pl.function
    def after(self, x: pl.Tensor[[64], pl.FP32], y: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
        _z = self.put(x, y)
        return y

    @pl.function
    def around(self, x: pl.Tensor[[64], pl.FP32], y: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
        for _i in pl.range(4):
            _a = pl.exp(y)
            _z = self.put(x, y)
        return x


def test_what_a_call_wrote_is_read_from_its_result():
    functions = {f.name: f for f in Writing.functions.values()}

    def check(name):
        return messages(ir.Program([functions["put"], functions[name]]), P.InOutUseValid)

    assert check("good") == []
    for name in ("after", "around"):
        assert check(name) == ["InOutUseDiscipline: 'y' is read after the call of 'put' that writes it"]


def test_out_parameters_keep_their_tensor():
    out = ir.Var("out", TENSOR)
    create = ir.Call(ir.Op("tensor.create"), [], None, None, TENSOR)
    subject = program(ir.AssignStmt(out, create), [(out, ir.ParamDirection.Out)])
    (text,) = messages(subject, P.OutParamNotShadowed)
    assert text.startswith("Out parameter 'out' is reassigned by 'tensor.create'")
    assert messages(program(ir.AssignStmt(out, create), [out]), P.OutParamNotShadowed) == []


def test_arrays_stay_where_they_are():
    array = ir.Var("a", ir.ArrayType(DataType.INT32, 8))
    nothing = ir.SeqStmts([])
    assert messages(program(nothing, [array]), P.ArrayNotEscaped) == [
        "Function 'main' has parameter 'a' of ArrayType"
    ]
    assert messages(program(nothing, [], [ir.TupleType([I64, array.type])]), P.ArrayNotEscaped) == [
        "Function 'main' has the return type ArrayType"
    ]


def test_incore_functions_compute_on_tiles_of_two_dimensions():
    x = ir.Var("x", TENSOR)
    tile = ir.Var("t", ir.TileType([2, 4, 8], DataType.FP32, memory_space=ir.MemorySpace.Vec))
    body = ir.seq([
        ir.AssignStmt(tile, ir.Var("u", tile.type)),
        ir.EvalStmt(ir.Call(ir.Op("tensor.add"), [x, x], None, None, TENSOR)),
        ir.EvalStmt(ir.Call(ir.Op("tensor.read"), [x], None, None, FP32)),
    ])  # fmt: skip
    incore = program(body, [x], kind=ir.FunctionType.InCore)
    assert messages(incore, P.IncoreTileOps) == ["Tensor operator 'tensor.add' remains in an InCore function"]
    assert messages(incore, P.TileOps2D) == ["Tile 't' has 3 dimensions"]
    assert messages(program(body, [x]), P.IncoreTileOps, P.TileOps2D) == []


def test_tiles_and_operands_have_their_memories():
    from pypto.ops import registry

    a = ir.Var("a", ir.TileType([16, 16], DataType.FP16, memory_space=ir.MemorySpace.Vec))
    call = registry.call("tile.matmul", a, a)
    subject = program(ir.AssignStmt(ir.Var("c", ir.TileType([16, 16], DataType.FP32)), call), [a],
                      kind=ir.FunctionType.InCore)  # fmt: skip
    texts = messages(subject, P.TileMemoryInferred)
    assert texts[0] == "Tile 'c' has no memory space"
    assert texts[1] == "tile.matmul: operand 'lhs' is in Vec, must be in Left"


def test_manual_dependencies_and_unknown_callees():
    call = ir.Call(ir.GlobalVar("nobody"), [], None, {"manual_dep_edges": []})
    subject = program(ir.EvalStmt(call), kind=ir.FunctionType.Orchestration)
    assert len(messages(subject, P.ManualDepsOnSubmitOnly)) == 1
    task = ir.ScalarType(DataType.TASK_ID)
    stray = ir.Submit(ir.GlobalVar("nobody"), [], [], {}, {"manual_dep_edges": []}, task)
    (text,) = messages(program(ir.EvalStmt(stray), kind=ir.FunctionType.Orchestration), P.ManualDepsOnSubmitOnly)
    assert text == "Submit of 'nobody' carries 'manual_dep_edges' beside its deps_"
    assert messages(subject, P.OrchestrationReferencesResolved) == ["Call of the undefined function 'nobody'"]


def test_pipelines_say_how_deep_they_are():
    i = ir.Var("i", INDEX)
    for kind, attrs in ((ir.ForKind.Pipeline, {}), (ir.ForKind.Sequential, {"pipeline_stages": 2})):
        loop = ir.ForStmt(i, *index(0, 4, 1), [], ir.SeqStmts([]), [], kind=kind, attrs=attrs)
        assert len(messages(program(loop), P.PipelineLoopValid)) == 1
    assert messages(program(loop), P.PipelineResolved) == []


def test_nested_regions_are_found():
    inner = ir.InCoreScopeStmt("", ir.SeqStmts([]))
    assert len(messages(program(ir.InCoreScopeStmt("", inner)), P.NoNestedInCore)) == 1
    assert messages(program(ir.seq([inner, inner])), P.NoNestedInCore) == []
