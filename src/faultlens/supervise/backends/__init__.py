"""The ways to see how a program dies, behind one protocol: the supervisor does not ask which one it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from faultlens.supervise.backends.base import Backend
    from faultlens.supervise.options import Options


def backend_of(options: Options, guard_table: Path | None) -> Backend:
    """Only the one that is used is imported."""
    if options.capture == "agent":
        from faultlens.supervise.backends.agent import AgentBackend

        return AgentBackend(options, guard_table)
    if options.capture == "tracer":
        from faultlens.supervise.backends.ptrace import PtraceBackend

        return PtraceBackend(options, guard_table)
    from faultlens.supervise.backends.status import StatusBackend

    return StatusBackend(options, guard_table)
