"""How a program is to be supervised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from faultlens.guard_alloc.hunting import HuntOptions
    from faultlens.supervise.oom_stop import StopAt


class Options(NamedTuple):
    capture: Literal["agent", "tracer", "status"] = "agent"
    timeout: float | None = None
    follow_children: bool = True
    redact: bool = True
    contents: bool = True  # of tensors may be kept
    stop_at: StopAt | None = None  # how much memory may be used before the program is asked to end
    hunt: HuntOptions | None = None  # how the program's blocks are guarded
    variables: Mapping[str, str] | None = None  # for the program alone
