"""The function parser under its public import path."""

from __future__ import annotations

from .function_parser import FunctionParser
from .regions import reads_block_index


class ASTParser(FunctionParser):
    """`FunctionParser`, as tools know it."""

    _spmd_body_reads_block_idx = staticmethod(reads_block_index)
