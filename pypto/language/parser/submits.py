"""Task launches: ``pl.submit`` and ``pl.spmd_submit``."""

from __future__ import annotations

from .control_flow import ControlFlowMixin


class SubmitsMixin(ControlFlowMixin):
    """Parses task launches."""
