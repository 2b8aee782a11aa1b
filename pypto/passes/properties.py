"""What can be true of a program between passes, and which of it the pipeline re-checks by itself."""

from __future__ import annotations

from enum import Enum

from .enum_set import EnumSet


class IRProperty(Enum):
    """A property of a program that a pass may require, produce or invalidate, and a verifier can check."""

    SSAForm = 0
    TypeChecked = 1
    NoNestedCalls = 2
    NormalizedStmtStructure = 3
    NoRedundantBlocks = 4
    SplitIncoreOrch = 5
    HasMemRefs = 6
    IncoreTileOps = 7
    AllocatedMemoryAddr = 8
    MixedKernelExpanded = 9
    ClusterOutlined = 10
    TileOps2D = 11
    TileMemoryInferred = 12
    BreakContinueValid = 13
    UseAfterDef = 14
    HierarchyOutlined = 15
    StructuredCtrlFlow = 16
    VectorKernelSplit = 17
    OutParamNotShadowed = 18
    NoNestedInCore = 19
    InOutUseValid = 20
    PipelineLoopValid = 21
    PipelineResolved = 22
    CallDirectionsResolved = 23
    TileTypeCoherence = 24
    InlineFunctionsEliminated = 25
    OrchestrationReferencesResolved = 26
    TensorViewCanonical = 27
    ArrayNotEscaped = 28
    CommDomainScopesMaterialized = 29
    DistTensorCtxMaterialized = 30
    RuntimeScopesMaterialized = 31
    AssignTypeSymmetry = 32
    ManualDepsOnSubmitOnly = 33
    ReturnParamsExplicit = 34
    UnrollResolved = 35
    AivSplitValid = 36
    HardSyncallOccupancyValid = 37
    IterArgCarryClassified = 38
    AccToGmStoreValid = 39
    AtomicAddDtypeValid = 40


P = IRProperty


class IRPropertySet(EnumSet[IRProperty]):
    """A mutable set of properties."""

    __slots__ = ()


STRUCTURAL = frozenset(
    {
        P.TypeChecked,
        P.BreakContinueValid,
        P.NoRedundantBlocks,
        P.UseAfterDef,
        P.OutParamNotShadowed,
        P.NoNestedInCore,
        P.InOutUseValid,
        P.PipelineLoopValid,
        P.ArrayNotEscaped,
        P.ManualDepsOnSubmitOnly,
        P.AtomicAddDtypeValid,
    }
)
"""What holds of every program, before, between and after passes; no pass declares these."""

VERIFIED = frozenset(
    {
        P.SSAForm,
        P.TypeChecked,
        P.MixedKernelExpanded,
        P.AllocatedMemoryAddr,
        P.BreakContinueValid,
        P.NoRedundantBlocks,
        P.InOutUseValid,
        P.CallDirectionsResolved,
        P.ManualDepsOnSubmitOnly,
        P.ReturnParamsExplicit,
        P.AivSplitValid,
        P.HardSyncallOccupancyValid,
        P.IterArgCarryClassified,
        P.RuntimeScopesMaterialized,
        P.AccToGmStoreValid,
        P.AtomicAddDtypeValid,
        P.TileMemoryInferred,
        P.DistTensorCtxMaterialized,
    }
)
"""What the pipeline checks by itself at level BASIC, once for each time it is produced."""

DEFAULT_VERIFY = frozenset(
    {
        P.SSAForm,
        P.TypeChecked,
        P.NoNestedCalls,
        P.BreakContinueValid,
        P.NoRedundantBlocks,
        P.UseAfterDef,
        P.OutParamNotShadowed,
        P.NoNestedInCore,
        P.TileTypeCoherence,
        P.ArrayNotEscaped,
    }
)
"""What `run_verifier` checks unless told otherwise."""


def get_structural_properties() -> IRPropertySet:
    return IRPropertySet(STRUCTURAL)


def get_verified_properties() -> IRPropertySet:
    return IRPropertySet(VERIFIED)


def get_default_verify_properties() -> IRPropertySet:
    return IRPropertySet(DEFAULT_VERIFY)
