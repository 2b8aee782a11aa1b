"""Enumerations of the IR. Member names and numeric codes are part of the public API."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Final


class MemorySpace(Enum):
    """Where a value lives. ``DDR`` is global memory, ``ScalarLocal`` a core's own stack."""

    DDR = 0
    Vec = 1
    Mat = 2
    Left = 3
    Right = 4
    Acc = 5
    Bias = 6
    ScalarLocal = 7
    LeftScale = 8
    RightScale = 9
    Scaling = 10


class TensorLayout(Enum):
    """Order of a tensor's elements in global memory."""

    ND = 0
    DN = 1
    NZ = 2
    MX_A_ZZ = 3
    MX_B_NN = 4


class TileLayout(Enum):
    """Block (``blayout``) and in-box (``slayout``) order of a tile buffer."""

    none_box = 0
    row_major = 1
    col_major = 2


class PadValue(Enum):
    """What elements outside the valid region hold."""

    null = 0
    zero = 1
    max = 2
    min = 3


class CompactMode(Enum):
    """Whether a partial boxed tile is packed to its valid region."""

    null = 0
    normal = 1


class ForKind(Enum):
    """Execution order of a counted loop."""

    Sequential = 0
    Parallel = 1
    Unroll = 2
    Pipeline = 3


class FunctionType(Enum):
    """What kind of core or stage runs a function."""

    Opaque = 0
    Orchestration = 1
    InCore = 2
    AIC = 3
    AIV = 4
    Group = 5
    Spmd = 6
    Inline = 7
    Graph = 8


class Level(Enum):
    """Machine level of a function or region, innermost first. Aliases name the same level."""

    AIV = 0
    AIC = 1
    CORE_GROUP = 2
    CHIP_DIE = 3
    CHIP = 4
    HOST = 5
    CLUSTER_0 = 6
    CLUSTER_1 = 7
    CLUSTER_2 = 8
    GLOBAL = 9
    L2CACHE = 3
    PROCESSOR = 4
    UMA = 4
    NODE = 5
    POD = 6
    CLOS1 = 7
    CLOS2 = 8


_LINQU_LEVEL = {
    Level.AIV: 0,
    Level.AIC: 0,
    Level.CORE_GROUP: 0,
    Level.CHIP_DIE: 1,
    Level.CHIP: 2,
    Level.HOST: 3,
    Level.CLUSTER_0: 4,
    Level.CLUSTER_1: 5,
    Level.CLUSTER_2: 6,
    Level.GLOBAL: 7,
}


def level_to_linqu_level(level: Level) -> int:
    """The runtime's level number (0 core group .. 7 global) of ``level``."""
    return _LINQU_LEVEL[level]


class Role(Enum):
    """Whether a function directs work at its level or does it."""

    Orchestrator = 0
    SubWorker = 1


class ParamDirection(Enum):
    """How a function uses a parameter."""

    In = 0
    Out = 1
    InOut = 2


class ArgDirection(Enum):
    """How a task uses an argument, as the runtime is told."""

    Input = 0
    Output = 1
    InOut = 2
    OutputExisting = 3
    NoDep = 4
    Scalar = 5


class SplitMode(Enum):
    """How a core group's two vector lanes divide a tile."""

    NONE = 0
    UP_DOWN = 1
    LEFT_RIGHT = 2


class ScopeKind(Enum):
    """Concrete kind of a scope statement."""

    InCore = 0
    Cluster = 1
    Hierarchy = 2
    Spmd = 3
    SplitAiv = 4
    Runtime = 5
    CommDomain = 6


class InlineLanguage(Enum):
    """Language of a verbatim function body."""

    Python = 0


class CoreType(Enum):
    """Core that executes a kernel."""

    VECTOR = 0
    CUBE = 1


class PipeType(IntEnum):
    """Hardware pipe of a core."""

    MTE1 = 0
    MTE2 = 1
    MTE3 = 2
    M = 3
    V = 4
    S = 5
    FIX = 6
    ALL = 7


class AtomicType(IntEnum):
    """Read-modify-write mode of a store."""

    None_ = 0
    Add = 1


class NotifyOp(IntEnum):
    """What a notification does to the peer's signal element."""

    AtomicAdd = 0
    Set = 1


class WaitCmp(IntEnum):
    """The comparison a wait makes: signal element against expected value."""

    Eq = 0
    Ge = 1


class ReduceOp(IntEnum):
    """How a collective combines the ranks' elements."""

    Sum = 0
    Max = 1
    Min = 2
    Prod = 3


DISTRIBUTED: Final = frozenset({NotifyOp, WaitCmp, ReduceOp})
"""Enumerations that belong to the distributed part of the language."""
