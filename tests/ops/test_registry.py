"""Declarations: what they must state, how calls bind to them, what a wrong call says."""

import inspect

import pytest
from operands import tensor, tile

import pypto.language as pl
from pypto.dtypes import DataType
from pypto.ir.enums import AtomicType, MemorySpace, PadValue
from pypto.ir.expr import ConstFloat, ConstInt, MakeTuple, Var
from pypto.ir.span import Span
from pypto.ir.structural import assert_structural_equal
from pypto.ir.types import ScalarType, UnknownType
from pypto.ops import registry
from pypto.ops.registry import ArgEffect, Core, OpError, OpTypeError, all_decls, build_ir_call, call, get_decl, rebind
from pypto.ops.signature import parse_param, split_signature

FP32, INT32 = DataType.FP32, DataType.INT32


# Completeness.

WITHOUT_A_LOWERING = {
    "tensor.assemble", "tensor.cmp", "tensor.dim", "tensor.expand_clone", "tensor.paged_gather", "tile.aic_gather",
    "tile.aiv_shard",
}  # fmt: skip


ALWAYS_LOADED = [d for d in all_decls() if not d.name.startswith(("pld.", "builtin.", "dist."))]


@pytest.mark.parametrize("decl", ALWAYS_LOADED, ids=lambda d: d.name)
def test_every_operator_is_fully_declared(decl):
    assert decl.doc.strip(), "a user reads the documentation"
    for param in decl.args:
        assert param.effect is not None
    for name, spaces in decl.spaces.items():
        assert spaces and "tile" in decl.param(name).kinds
    if decl.name.startswith("tile.") and any(p.effect is not ArgEffect.Read for p in decl.args):
        written = [p.name for p in decl.args if p.effect is not ArgEffect.Read]
        scratch = {"tmp", "tmp_tile", "executed", "scratch"}
        assert set(written) <= scratch or decl.reuses in written or not decl.pure
    lowered = decl.pto is not None or decl.tile_form is not None
    assert lowered or decl.name in WITHOUT_A_LOWERING


def test_a_tensor_operators_tile_form_exists():
    for decl in all_decls():
        if decl.tile_form is not None:
            assert get_decl(decl.tile_form) is not None, decl.name
        if decl.scalar_form is not None:
            assert get_decl(decl.scalar_form) is not None, decl.name


def test_pto_mnemonics_and_operands_are_those_of_the_instruction_set():
    from pypto.pto import instructions  # noqa: F401

    for decl in all_decls():
        if decl.pto is not None and decl.pto.form == "dps":
            assert decl.pto.mnemonic.startswith("pto."), decl.name
            assert decl.pto.operands, decl.name


def test_operators_that_run_on_a_core_say_which():
    assert get_decl("tile.add").core is Core.VECTOR
    assert get_decl("tile.matmul").core is Core.CUBE
    assert get_decl("tile.move").core is Core.MOVE
    assert get_decl("tile.reshape").core is Core.SHARED


@pytest.mark.parametrize(
    ("signature", "facts", "message"),
    [
        ("tile: tile", {}, "needs an effect"),
        ("in tile", {}, "needs an effect"),
        ("in tile: tile", {"spaces": {"other": ()}}, "parameters it lacks: .'other'"),
        ("in tile: tile", {"elided": "other"}, "lacks: .'other'"),
        ("in tile: tile", {"reuses": "tile"}, "only reads it"),
        ("in tile: tile", {"channel": registry.WriteChannel.Dma}, "writes no argument"),
        ("in tile: tile", {"result_space": "nowhere"}, "lacks: .'nowhere'"),
        ("in tile: tile", {"pto": registry.Pto("pto.x", ("tmp",))}, "lacks: .'tmp'"),
    ],
)
def test_a_contradictory_declaration_is_refused(signature, facts, message):
    with pytest.raises(ValueError, match=message):
        registry.declare("tile.never_declared", signature, registry.no_result, "nothing", **facts)
    assert get_decl("tile.never_declared") is None


def test_an_operator_is_declared_once():
    with pytest.raises(ValueError, match="declared twice"):
        registry.declare("tile.add", "in lhs: tile", registry.no_result, "again")


# Binding.


def test_lists_become_index_tuples_and_numbers_scalars():
    made = call("tile.load", tensor(64, 64), [0, 8], [16, 16])
    assert [type(a) for a in made.args[1:]] == [MakeTuple] * 3
    assert [d.value for d in made.args[1].elements] == [0, 8]
    assert made.args[1].elements[0].type is ScalarType(DataType.INDEX)


def test_attributes_at_their_default_are_not_stored():
    store = call("tile.store", tile(8, 8), [0, 0], tensor(8, 8))
    assert store.kwargs == {}
    adding = call("tile.store", tile(8, 8), [0, 0], tensor(8, 8), atomic=AtomicType.Add)
    assert adding.kwargs == {"atomic": AtomicType.Add}
    assert registry.arg_effect(store, 2) is ArgEffect.Write
    assert registry.arg_effect(adding, 2) is ArgEffect.ReadWrite
    assert registry.arg_effect(store, 9) is ArgEffect.Read


def test_always_stored_attributes_keep_their_code():
    assert call("tile.cast", tile(8, 8), DataType.FP16).kwargs == {"target_type": DataType.FP16, "mode": 2}
    assert call("tile.cast", tile(8, 8), DataType.FP16, mode="floor").kwargs["mode"] == 3


def test_an_argument_left_out_before_another_is_an_empty_tuple():
    made = call("tile.slice", tile(4, 8, 8), [1, 8, 8], [0, 0, 0], drop_dims=[0])
    assert len(made.args) == 5 and made.args[3].elements == []
    bound = rebind(made)
    assert bound["valid_shape"] is None and [d.value for d in bound.dims("drop_dims")] == [0]
    again = registry.call_of(bound, made.type)
    assert len(again.args) == 5


def test_an_empty_list_stands_for_an_argument_left_out():
    assert len(call("tile.slice", tile(8, 8), [4, 8], [0, 0], drop_dims=[]).args) == 3


def test_rebind_gives_defaults_and_reinfer_the_type_of_new_arguments():
    made = call("tile.adds", tile(8, 8), 1)
    assert set(rebind(made).values) == {"lhs", "rhs"}
    wider = registry.reinfer(made, [tile(16, 8), made.args[1]])
    assert [d.value for d in wider.type.shape] == [16, 8]


def test_the_span_is_on_the_call_and_its_tuples():
    span = Span("kernel.py", 7, 5)
    made = call("tile.load", tensor(8, 8), [0, 0], [8, 8], span=span)
    assert made.span is span and made.args[1].span is span


# Scalar operands.


@pytest.mark.parametrize(
    ("dtype", "number", "cls", "stored"),
    [
        (DataType.INT16, 5, ConstInt, DataType.INT16),
        (DataType.FP16, 5, ConstFloat, DataType.FP16),
        (DataType.FP16, -2.5, ConstFloat, DataType.FP16),
        (DataType.INT32, 2.5, ConstFloat, DataType.FP32),
    ],
)
def test_a_literal_takes_the_elements_dtype(dtype, number, cls, stored):
    operand = call("tile.muls", tile(8, 8, dtype=dtype), number).args[1]
    assert isinstance(operand, cls) and operand.type.dtype is stored and operand.value == number


def test_an_index_constant_is_a_literal_and_a_typed_one_is_not():
    assert call("tile.adds", tile(8, 8), ConstInt(3, DataType.INDEX)).args[1].type.dtype is FP32
    typed = ConstInt(3, INT32)
    assert call("tile.adds", tile(8, 8, dtype=DataType.INT16), typed).args[1] is typed


def test_an_index_value_is_refused_with_the_cast():
    with pytest.raises(ValueError, match=r"'rhs' is an index value\n  hint: .*pl.cast\(rhs, pl.FP32\)"):
        call("tile.adds", tile(8, 8), Var("i", ScalarType(DataType.INDEX)))


def test_a_scalar_operand_selects_the_scalar_form():
    assert call("tile.add", tile(8, 8), 1.0).op.name == "tile.adds"
    assert call("tensor.div", tensor(8), rhs=2).op.name == "tensor.divs"
    assert call("tile.add", tile(8, 8), tile(8, 8)).op.name == "tile.add"
    with pytest.raises(TypeError, match="'high_precision' requires a Tile rhs"):
        call("tile.div", tile(8, 8), 2.0, high_precision=True)


# Wrong calls.


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, r"requires 2 args, missing required positional argument 'lhs': .*, add\(lhs, rhs\)"),
        ((1, 2, 3), {}, "takes exactly 2 positional arguments, got 3"),
        (("t", "t"), {"rhs": "t"}, "multiple values for 'rhs'"),
        (("t",), {"rsh": "t"}, "unexpected keyword argument 'rsh'; did you mean 'rhs'?"),
        (("t", "x"), {}, "requires rhs to be a TileType"),
        (("t", None), {}, "missing required positional argument 'rhs'"),
        (("t", "text"), {}, "requires rhs to be a TileType, got str"),
    ],
)
def test_a_wrong_call_names_the_problem(args, kwargs, message):
    known = {"t": tile(8, 8), "x": tensor(8, 8)}
    real = [known.get(a, a) if isinstance(a, str) else a for a in args]
    with pytest.raises(TypeError, match=message) as info:
        call("tile.add", *real, **{k: known[v] for k, v in kwargs.items()})
    assert isinstance(info.value, OpTypeError) and isinstance(info.value, ValueError)


def test_a_list_must_hold_integers():
    with pytest.raises(TypeError, match="'offsets' must hold integers"):
        call("tile.load", tensor(8, 8), [0, 1.5], [8, 8])
    with pytest.raises(TypeError, match="'offsets' must hold integers"):
        call("tile.load", tensor(8, 8), [0, Var("f", ScalarType(FP32))], [8, 8])


def test_a_keyword_of_another_type_is_refused():
    with pytest.raises(TypeError, match="'target_memory' has incompatible type str: it must be MemorySpace"):
        call("tile.move", tile(8, 8), target_memory="Mat")
    with pytest.raises(ValueError, match="Invalid rounding mode 'up'"):
        call("tile.cast", tile(8, 8), DataType.FP16, mode="up")


def test_there_is_no_such_operator():
    with pytest.raises(TypeError, match="no operator 'tile.addd'"):
        call("tile.addd", tile(8, 8))


# How parameters are given.


def declared(name, signature, **facts):
    params = tuple(parse_param(name, p) for p in split_signature(signature))
    return registry.OpDecl(f"test.{name}", params, registry.no_result, "Test.", **facts)


def test_a_keyword_only_parameter_is_not_given_by_position():
    decl = declared("key", "in x: tile, key mode: int = 0")
    assert registry.build_call(decl, [tile(8)], {"mode": 3}).kwargs == {"mode": 3}
    with pytest.raises(TypeError, match="takes at most 1 positional argument, got 2"):
        registry.build_call(decl, [tile(8), 3], {})


def test_an_attribute_stored_always_may_be_left_out():
    decl = declared("plus", "in x: tile, attr mode: int+ = 2, attr other: int = 1")
    assert build_ir_call(decl, [tile(8)], {}).kwargs == {"mode": 2}


def test_none_is_not_always_leaving_out():
    decl = declared("none", "in x: tile, in y: tile?!, in z: tile?")
    assert len(registry.build_call(decl, [tile(8)], {"z": None}).args) == 1
    with pytest.raises(TypeError, match="y cannot be None"):
        registry.build_call(decl, [tile(8), None], {})


def test_an_elided_argument_leaves_no_gap():
    decl = declared("elided", "in x: tile, out y: tile?, in at: dims?", elided="y")
    short, full = (registry.build_call(decl, a, {}) for a in ([tile(8), [0]], [tile(8), tile(8), [0]]))
    assert (len(short.args), len(full.args)) == (2, 3)
    assert [rebind(c)["at"] is c.args[-1] for c in (short, full)] == [True, True]
    effects = [[registry.arg_effect(c, i) for i in range(len(c.args))] for c in (short, full)]
    assert effects == [[ArgEffect.Read, ArgEffect.Read], [ArgEffect.Read, ArgEffect.Write, ArgEffect.Read]]


# As the IR states calls.


def test_an_ir_call_takes_attributes_as_they_are_stored():
    decl = get_decl("tile.cast")
    with pytest.raises(OpError, match="requires a 'mode' kwarg"):
        build_ir_call(decl, [tile(8, 8)], {"target_type": DataType.FP16})
    made = build_ir_call(decl, [tile(8, 8)], {"target_type": DataType.FP16, "mode": 1})
    assert made.kwargs["mode"] == 1
    slicing = get_decl("tile.slice")
    operands = [tile(8, 8), *(call("tile.slice", tile(8, 8), [4, 8], [0, 0]).args[1:])]
    with pytest.raises(TypeError, match="'pad_value' has incompatible type int"):
        build_ir_call(slicing, operands, {"pad_value": 0})
    assert call("tile.slice", tile(8, 8), [4, 8], [0, 0], [2, 8], pad_value=0).type.tile_view.pad is PadValue.zero


def test_an_ir_call_counts_arguments_only():
    with pytest.raises(TypeError, match="takes exactly 1 positional argument, got 2"):
        build_ir_call(get_decl("tile.exp"), [tile(8, 8), tile(8, 8)], {})


def test_operators_without_a_value_have_the_unknown_type():
    assert isinstance(call("tile.write", tile(8, 8), [0, 0], 1.0).type, UnknownType)


def test_results_are_in_the_memory_their_operator_writes():
    assert call("tile.exp", tile(8, 8)).type.memory_space is MemorySpace.Vec
    assert call("tile.matmul", tile(16, 16), tile(16, 16)).type.memory_space is MemorySpace.Acc
    assert call("tile.reshape", tile(8, 8, space=MemorySpace.Mat), [64, 1]).type.memory_space is MemorySpace.Mat


def test_an_argument_that_is_only_given_by_name():
    src, acc = tensor(256, 128), tile(16, 128, space=MemorySpace.Mat)
    decl = get_decl("tile.gather_row")
    assert decl is not None and [p.name for p in decl.positional][5] == "transpose"
    made = call("tile.gather_row", acc, src, [0, 0], [0, 0], [4, 128], False, valid_shape=[3, 128])
    assert len(made.args) == 6 and made.kwargs["transpose"] is False
    with pytest.raises(OpTypeError, match="takes at most 6 positional arguments, got 7"):
        call("tile.gather_row", acc, src, [0, 0], [0, 0], [4, 128], False, [3, 128])
    assert parse_param("test.x", "in* extra: dims?").keyword_only
    with pytest.raises(OpError, match="valid_shape to have the same rank as shapes, got \\[\\]"):
        call("tile.gather_row", acc, src, [0, 0], [0, 0], [4, 128], valid_shape=[])
    with pytest.raises(OpError, match="takes valid_shape for Mat only"):
        call("tile.mgather", src, tile(1, 16, dtype=DataType.INT32), valid_shape=[])


def test_gathers_show_by_name_what_is_only_given_by_name():
    text = """import pypto.language as pl
@pl.function(type=pl.FunctionType.InCore)
def rows(src: pl.Tensor[[256, 128], pl.FP16]):
    kv: pl.Tile[[16, 128], pl.FP16, pl.Mem.Mat] = pl.tile.create([16, 128], pl.FP16, target_memory=pl.Mem.Mat)
    kv_1 = pl.tile.gather_row(kv, src, [0, 0], [0, 0], [4, 128], valid_shape=[3, 128])
"""
    printed = str(pl.parse(text))
    assert "[0, 0], [0, 0], [4, 128], valid_shape=[3, 128], transpose=False)" in printed
    assert_structural_equal(pl.parse(printed), pl.parse(text))
    signature = inspect.signature(pl.tile.gather_row)
    assert signature.parameters["valid_shape"].kind is inspect.Parameter.KEYWORD_ONLY
