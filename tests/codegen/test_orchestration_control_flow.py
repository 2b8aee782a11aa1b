"""Loops, branches, scopes, arrays and scalars of an orchestration."""

import pytest
from orchestrations import COPY, UPDATE, T, program, statements

import pypto.language as pl
from pypto import codegen
from pypto.errors import Diagnosed, InternalError, VerificationError

NUMBERS = f"x: {T}, n: pl.Scalar[pl.INDEX], out: pl.Out[{T}]"


@pytest.mark.parametrize(
    "bounds, header",
    [
        ("0, n, 1", "for (int64_t i = 0; i < n; i += 1) {"),
        ("n, 8, 3", "for (int64_t i = n; i < 8; i += 3) {"),
        ("4, 0, -1", "for (int64_t i = 4; i > 0; i += -1) {"),
        ("0, 8, n", "for (int64_t i = 0; ((n > 0) ? i < 8 : ((n < 0) && i > 8)); i += n) {"),
    ],
)
def test_a_loop_counts_in_the_direction_of_its_step(bounds, header):
    found = statements(f"for i in pl.range({bounds}):\n    self.copy(x, out, attrs={UPDATE})", parameters=NUMBERS)
    assert found[0] == header


def test_a_carried_tensor_that_stays_the_same_has_no_variable():
    body = f"""
        for i, (acc,) in pl.range(4, init_values=(out,), attrs={{"iter_arg_rebind_0": False}}):
            done = self.update(x, acc, attrs={UPDATE})
            last = pl.yield_(done)
        self.copy(last, out, attrs={UPDATE})
    """
    found = statements(body)
    assert [x for x in found if x.startswith("params_t")] == [
        "params_t0.add_input(ext_x);", "params_t0.add_inout(ext_out);",
        "params_t1.add_input(ext_out);", "params_t1.add_inout(ext_out);",
    ]  # fmt: skip
    assert not any(x.startswith("ChipTensor") for x in found)


def test_a_carried_tensor_that_changes_is_a_variable_assigned_at_the_yield():
    body = f"""
        acc0 = pl.create_tensor([16, 16], dtype=pl.FP32)
        for i, (acc,) in pl.range(4, init_values=(acc0,), attrs={{"iter_arg_rebind_0": True}}):
            fresh = pl.create_tensor([16, 16], dtype=pl.FP32)
            done = self.copy(acc, fresh, attrs={COPY})
            last = pl.yield_(done)
        self.copy(last, out, attrs={UPDATE})
    """
    found = statements(body)
    assert "ChipTensor last = acc0;" in found
    assert found.index("params_t0.add_input(last);") < found.index("last = fresh;")
    assert "params_t1.add_input(last);" in found


def test_exchanged_values_are_read_before_either_is_assigned():
    body = """
        for i, (a, b) in pl.range(4, init_values=(x, y),
                                  attrs={"iter_arg_rebind_0": True, "iter_arg_rebind_1": True}):
            c, d = pl.yield_(b, a)
    """
    found = statements(body, parameters=f"x: {T}, y: {T}, out: pl.Out[{T}]")
    assert found[:2] == ["ChipTensor c = ext_x;", "ChipTensor d = ext_y;"]
    assert found[3:7] == ["ChipTensor c_next = d;", "ChipTensor d_next = c;", "c = c_next;", "d = d_next;"]


def test_a_copy_of_a_carried_tensor_keeps_its_value():
    body = f"""
        for i, (acc,) in pl.range(4, init_values=(x,), attrs={{"iter_arg_rebind_0": True}}):
            snap: {T} = acc
            self.copy(snap, out, attrs={UPDATE})
            last = pl.yield_(x)
        same: {T} = last
        self.copy(same, out, attrs={UPDATE})
    """
    found = statements(body)
    assert "ChipTensor snap = last;" in found
    assert "params_t1.add_input(last);" in found


def test_a_program_whose_carried_values_nobody_classified_is_refused():
    with pytest.raises(VerificationError, match="carries 'acc' and has no iter_arg_rebind_0"):
        statements("for i, (acc,) in pl.range(4, init_values=(x,)):\n    last = pl.yield_(acc)")


def test_a_wrong_classification_is_a_defect():
    body = """
        for i, (acc,) in pl.range(4, init_values=(x,), attrs={"iter_arg_rebind_0": False}):
            last = pl.yield_(out)
    """
    with pytest.raises(InternalError, match="not classified so"):
        statements(body)


def test_while_loops_carry_scalars_in_variables():
    body = f"""
        for (k,) in pl.while_(init_values=(0,)):
            pl.cond(k < n)
            self.copy(x, out, attrs={UPDATE})
            last = pl.yield_(k + 2)
    """
    found = statements(body, parameters=NUMBERS)
    assert found[:2] == ["int64_t last = 0;", "while ((last < n)) {"]
    assert "last = (last + 2);" in found


def test_merged_values_are_assigned_on_both_sides():
    body = f"""
        if n > 0:
            done = self.copy(x, out, attrs={COPY})
            big, kept = pl.yield_(1, done)
        else:
            big, kept = pl.yield_(0, x)
        self.scale(kept, 2.0, pl.cast(big, pl.INT32), out, attrs={{"arg_directions": [pl.adir.input,
                   pl.adir.scalar, pl.adir.scalar, pl.adir.inout]}})
    """
    found = statements(body, parameters=NUMBERS)
    assert found[:3] == ["int64_t big = 0;", "ChipTensor kept = ext_out;", "if ((n > 0)) {"]
    assert found[7:13] == ["big = 1;", "kept = ext_out;", "} else {", "big = 0;", "kept = ext_x;", "}"]
    assert "params_t1.add_input(kept);" in found


def test_allocations_of_a_manual_scope_outlive_it():
    body = f"""
        with pl.scope(mode=pl.ScopeMode.MANUAL):
            buf = pl.create_tensor([16, 16], dtype=pl.FP32)
            done = self.copy(x, buf, attrs={COPY})
        self.copy(done, out, attrs={COPY})
    """
    found = statements(body)
    scope = found.index("PTO2_SCOPE(PTO2ScopeMode::MANUAL) {")
    assert found.index("const ChipTensor& buf = alloc_0.get_ref(0);") < scope
    assert "params_t1.add_input(buf);" in found[scope:]


def test_carried_and_merged_variables_of_a_manual_scope_outlive_it():
    body = f"""
        with pl.scope(mode=pl.ScopeMode.MANUAL):
            for i, (acc,) in pl.range(4, init_values=(x,), attrs={{"iter_arg_rebind_0": True}}):
                last = pl.yield_(out)
            for j, (one,) in pl.range(4, init_values=(last,), attrs={{"iter_arg_rebind_0": True}}):
                two = pl.yield_(x)
            if n > 0:
                kept = pl.yield_(two)
            else:
                kept = pl.yield_(last)
        self.copy(kept, out, attrs={COPY})
    """
    found = statements(body, parameters=NUMBERS)
    scope = found.index("PTO2_SCOPE(PTO2ScopeMode::MANUAL) {")
    assert found[:scope] == ["ChipTensor last = ext_x;", "ChipTensor two = last;", "ChipTensor kept = two;"]
    assert "two = last;" in found[scope:]


def test_what_is_made_in_a_scope_is_refused_after_it():
    body = f"""
        with pl.scope():
            buf = pl.create_tensor([16, 16], dtype=pl.FP32)
        self.copy(buf, out, attrs={COPY})
    """
    with pytest.raises(ValueError, match="'buf' is made in a scope that has ended") as caught:
        statements(body)
    assert isinstance(caught.value, Diagnosed)


# Arrays


def test_arrays_are_written_in_place_and_start_out_empty():
    body = """
        numbers = pl.array.create(4, pl.INT32)
        ids = pl.array.create(4, pl.TASK_ID)
        numbers[1] = 7
        v = numbers[1]
        numbers[v] = v
    """
    assert statements(body) == [
        "int32_t numbers[4] = {0};",
        "PTO2TaskId ids[4];",
        "for (int64_t __init_i = 0; __init_i < 4; ++__init_i) ids[__init_i] = PTO2TaskId::invalid();",
        "numbers[1] = 7;",
        "int32_t v = numbers[1];",
        "numbers[v] = v;",
    ]


def test_an_array_is_carried_in_place_and_takes_over_the_contents_of_another():
    body = """
        a = pl.array.create(4, pl.INT64)
        for i, (b,) in pl.range(4, init_values=(a,), attrs={"iter_arg_rebind_0": True}):
            c = pl.array.create(4, pl.INT64)
            d = pl.array.update_element(c, i, i)
            e = pl.yield_(d)
        v = e[0]
    """
    found = statements(body)
    assert "for (int64_t __yield_i = 0; __yield_i < 4; ++__yield_i) a[__yield_i] = c[__yield_i];" in found
    assert found[-1] == "int64_t v = a[0];"


def test_reading_an_array_as_it_was_before_it_was_written_to_is_refused():
    body = """
        a = pl.array.create(4, pl.INT64)
        b = pl.array.update_element(a, 0, 1)
        v = a[0]
    """
    with pytest.raises(ValueError, match="'a' is an array as it was before it was written to") as caught:
        statements(body)
    assert isinstance(caught.value, Diagnosed)
    assert "v = a[0]" in str(caught.value)


def test_arrays_that_change_places_are_refused():
    body = """
        a = pl.array.create(4, pl.INT64)
        b = pl.array.create(4, pl.INT64)
        for i, (c, d) in pl.range(4, init_values=(a, b),
                                  attrs={"iter_arg_rebind_0": True, "iter_arg_rebind_1": True}):
            e, f = pl.yield_(d, c)
    """
    with pytest.raises(ValueError, match="arrays are exchanged between iterations"):
        statements(body)


def test_an_array_both_sides_of_a_branch_write_has_the_contents_of_the_side_taken():
    body = """
        a = pl.array.create(4, pl.INT64)
        if n > 0:
            b = pl.array.update_element(a, 0, 1)
            c = pl.yield_(b)
        else:
            c = pl.yield_(a)
        v = c[0]
    """
    assert statements(body, parameters=NUMBERS)[1:] == ["if ((n > 0)) {", "a[0] = 1;", "}", "int64_t v = a[0];"]
    with pytest.raises(ValueError, match="'a' is an array as it was"):
        statements(body.replace("v = c[0]", "v = a[0]"), parameters=NUMBERS)


def test_a_loop_that_writes_to_an_array_it_does_not_carry_is_a_defect():
    body = """
        a = pl.array.create(4, pl.INT64)
        for i in pl.range(4):
            b = pl.array.update_element(a, i, i)
    """
    with pytest.raises(InternalError, match="a loop that does not carry it"):
        statements(body)


def test_parallel_tasks_are_fenced_by_an_array_of_their_ids():
    body = f"""
        with pl.scope(mode=pl.ScopeMode.MANUAL):
            none = pl.system.task_invalid()
            for i, (outer,) in pl.range(2, init_values=(none,),
                                        attrs={{"iter_arg_rebind_0": True, "iter_arg_array_size_0": 3}}):
                for j, (inner,) in pl.parallel(3, init_values=(outer,),
                                               attrs={{"iter_arg_rebind_0": True, "iter_arg_array_size_0": 3}}):
                    a, tid = pl.submit(self.copy, x, out, deps=[inner], attrs={COPY})
                    phase = pl.yield_(tid)
                whole = pl.yield_(phase)
    """
    found = statements(body)
    fill = "for (int64_t __init_i = 0; __init_i < 3; ++__init_i)"
    assert f"{fill} whole[__init_i] = none;" in found
    assert f"{fill} phase[__init_i] = whole[__init_i];" in found
    assert "if (whole[2].is_valid()) params_t0_deps[params_t0_deps_count++] = whole[2];" in found
    assert "phase[j] = tid;" in found
    assert "for (int64_t __yield_i = 0; __yield_i < 3; ++__yield_i) whole[__yield_i] = phase[__yield_i];" in found


def test_values_of_a_wrong_dtype_have_no_variable():
    with pytest.raises(ValueError, match="no scalars of fp16") as caught:
        statements(f"self.copy(x, out, attrs={COPY})", parameters=f"x: {T}, h: pl.Scalar[pl.FP16], out: pl.Out[{T}]")
    assert isinstance(caught.value, Diagnosed)


# Scalars


@pytest.mark.parametrize(
    "written, text",
    [
        ("n + 2 * n", "(n + (2 * n))"),
        ("pl.max(n, 3)", "std::max<int64_t>(n, 3)"),
        ("n // 2", "floor_div(n, 2)"),
        ("n % 3", "floor_mod(n, 3)"),
        ("-n", "(-n)"),
        ("pl.cast(n, pl.INT32)", "static_cast<int32_t>(n)"),
        ("n << 3", "(n << 3)"),
    ],
)
def test_scalar_expressions(written, text):
    found = statements(f"v = {written}", parameters=NUMBERS)
    assert found[-1].endswith(f" v = {text};")


def test_divisions_of_what_is_never_negative_need_no_helper():
    body = f"""
        for i in pl.range(2, n):
            k = (i * 4 + 1) // 2
            m = (i - 4) // 2
            self.copy(x, out, attrs={UPDATE})
    """
    made = program(body, parameters=NUMBERS)
    main = made.get_function("main")
    code = codegen.generate_orchestration(made, main).code
    assert "int64_t k = (((i * 4) + 1) / 2);" in code
    assert "int64_t m = floor_div((i - 4), 2);" in code
    assert "static inline int64_t floor_div(int64_t a, int64_t b) {" in code
    assert "floor_mod" not in code


def test_names_that_c_has_for_itself_are_changed():
    found = statements("switch = n + 1\nparams_t0 = switch", parameters=NUMBERS)
    assert found[0] == "int64_t switch_1 = (n + 1);"


def test_a_dynamic_extent_is_read_from_the_first_argument_that_has_it():
    m = pl.dynamic("M")

    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)
        def main(self, a: pl.Tensor[[8, m], pl.FP32], b: pl.Tensor[[m, 4], pl.FP32]):
            with pl.scope():
                t = pl.create_tensor([m, 4], dtype=pl.FP32)  # noqa: F841
                for i in pl.range(pl.tensor.dim(b, 0)):
                    d = i + 1  # noqa: F841

    code = codegen.generate_orchestration(P, P.get_function("main")).code
    assert code.count("int64_t M = (int64_t)orch_args.tensor(0).ref().shapes[1];") == 1
    assert "uint32_t t_ci_shapes[2] = {static_cast<uint32_t>(M), 4};" in code
    assert "for (int64_t i = 0; i < M; i += 1) {" in code
