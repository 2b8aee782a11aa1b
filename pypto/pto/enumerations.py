"""The enumerations of PTO attributes: their cases, and other spellings of some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_PRECISION = "default high_precision"

ENUMERATIONS: Mapping[str, tuple[Sequence[str], Mapping[str, str]]] = {
    name: (cases.split() if isinstance(cases, str) else cases, aliases)
    for name, cases, aliases in (
        ("layout", "nd dn nz mx_a_zz mx_b_nn", {}),
        ("kernel_kind", "cube vector", {}),
        ("address_space", "zero gm mat left right acc vec bias scaling", {}),
        ("round_mode", "NONE RINT ROUND FLOOR CEIL TRUNC ODD CAST_RINT", {}),
        ("saturation_mode", "OFF ON", {}),
        (
            "cmp",
            "eq ne lt le gt ge",
            {"equal": "eq", "not_equal": "ne", "less_than": "lt", "less_equal": "le", "greater_than": "gt"},
        ),
        ("atomic_type", "atomic_none atomic_add atomic_max atomic_min", {}),
        ("notify_op", "atomic_add set", {}),
        ("wait_cmp", "eq ne gt ge lt le", {}),
        ("relu_pre_mode", "no_relu normal_relu", {}),
        ("acc_to_vec_mode", "single_mode_vec0 single_mode_vec1 dual_mode_split_m dual_mode_split_n", {}),
        ("st_phase", "unspecified partial final", {}),
        ("acc_phase", "unspecified partial final", {}),
        ("pad_value", "null zero max min", {}),
        ("pad_mode", "PadNull PadFirstElem PadValue", {}),
        ("quant_type", "INT8_SYM INT8_ASYM MXFP8 MXFP4_E2M1", {}),
        ("quant_scale_alg", "ocp nv", {}),
        ("mx_group_axis", "axis0 axis1", {}),
        ("print_format", "width8_precision4 width8_precision2 width10_precision6", {}),
        ("mask_pattern", "P0101 P1010 P0001 P0010 P0100 P1000 P1111", {}),
        ("coalesce", "row elem", {}),
        ("gather_oob", "undefined clamp wrap zero", {}),
        ("scatter_oob", "undefined skip clamp wrap", {}),
        ("scatter_atomic_op", "none add max min", {}),
        ("scatter_conflict", "default last", {}),
        ("div_precision", _PRECISION, {}),
        ("exp_precision", _PRECISION, {}),
        ("log_precision", _PRECISION, {}),
        ("sqrt_precision", _PRECISION, {}),
        ("rsqrt_precision", _PRECISION, {}),
        ("recip_precision", _PRECISION, {}),
        ("pow_precision", _PRECISION, {}),
        ("rem_precision", _PRECISION, {}),
        ("fmod_precision", _PRECISION, {}),
        (
            "pipe",
            "PIPE_S PIPE_V PIPE_M PIPE_MTE1 PIPE_MTE2 PIPE_MTE3 PIPE_ALL PIPE_MTE4 PIPE_MTE5 PIPE_V2 PIPE_FIX",
            {},
        ),
        ("sync_all_mode", "hard soft", {}),
        ("sync_core_type", "aiv_only aic_only mix", {}),
        ("event", [f"EVENT_ID{number}" for number in range(8)], {}),
    )
}
"""Cases and aliases of each enumeration, by the name of its attribute."""
