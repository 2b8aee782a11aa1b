"""Reasoning about integer expressions: constant folding, bounds, residues, simplification, proofs."""

from __future__ import annotations

from .analyzer import Analyzer
from .bounds import ConstIntBound, ConstIntBoundAnalyzer
from .canonical import CanonicalSimplifier
from .const_fold import fold_const
from .int_set import IntSet, IntSetAnalyzer
from .integers import extended_euclidean, floordiv, floormod, gcd, lcm
from .modular import ModularSet, ModularSetAnalyzer
from .rewrite import RewriteSimplifier
from .transitive import CompareResult, TransitiveComparisonAnalyzer

__all__ = [
    "Analyzer",
    "CanonicalSimplifier",
    "CompareResult",
    "ConstIntBound",
    "ConstIntBoundAnalyzer",
    "IntSet",
    "IntSetAnalyzer",
    "ModularSet",
    "ModularSetAnalyzer",
    "RewriteSimplifier",
    "TransitiveComparisonAnalyzer",
    "extended_euclidean",
    "floordiv",
    "floormod",
    "fold_const",
    "gcd",
    "lcm",
]  # fmt: skip
