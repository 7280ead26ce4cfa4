"""What `faultlens run --hunt` puts around a program, and how much of it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from faultlens import guard_alloc
from faultlens.errors import FaultlensError
from faultlens.system.procfs import read_text

# One of so many allocations is looked at more closely, and of these so many a second are guarded, of either kind: the
# cost of a guarded block is mostly unwinding, and must not grow with how much a program allocates.
EVERY, ALIGNED_EVERY = 256, 16
PER_SECOND, AT_ONCE = 50, 1000
SELDOM = 65536  # of the others, where every tensor is guarded
ALL_SLOTS = 8192  # two mappings each: a process may have 65,530
RUNGS = ("fence", "tensors", "malloc", "all")
_DEBUG_LIBRARY = "libc_malloc_debug.so.0"


class HuntOptions(NamedTuple):
    everything: bool = False  # all allocations are guarded, as long as there is room
    tensors: bool = False  # every aligned one, and TensorFlow allocates each tensor, not from a pool of its own
    malloc: bool = False  # glibc's own checks as well


def read_options(text: str) -> HuntOptions:
    """ "fence", "tensors,malloc"."""
    words = [word.strip() for word in text.split(",")]
    if unknown := [word for word in words if word not in RUNGS]:
        raise FaultlensError(
            f"--hunt={unknown[0]} is not known.",
            f"Choose of {', '.join(RUNGS)} (with commas between them), or leave the value out.",
        )
    everything = "all" in words
    return HuntOptions(everything, tensors=everything or "tensors" in words, malloc="malloc" in words)


class Hunting:
    """The supervisor's side: makes the table, in memory without a name, and says what the program needs to find it."""

    def __init__(self, options: HuntOptions, follow_children: bool) -> None:
        self._options = options
        self._descriptor = os.memfd_create("faultlens-fence", os.MFD_CLOEXEC)
        only_this, table = not follow_children, self._descriptor
        if options.everything:
            guard_alloc.prepare(table, 1, slots=ALL_SLOTS, spare_start=True, only_this=only_this)
        elif options.tensors:
            guard_alloc.prepare(table, SELDOM, 1, slots=ALL_SLOTS, only_this=only_this)
        else:
            guard_alloc.prepare(
                table, EVERY, ALIGNED_EVERY, per_second=PER_SECOND, at_once=AT_ONCE, only_this=only_this
            )

    @property
    def table(self) -> Path:
        return Path(f"/proc/{os.getpid()}/fd/{self._descriptor}")

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        extended = {**base, **guard_alloc.variables(str(self.table), base)}
        if self._options.tensors:
            extended.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
        if self._options.malloc:
            extended.setdefault("MALLOC_CHECK_", "3")
            if library := malloc_checks():
                extended["LD_PRELOAD"] += f":{library}"
        return extended


def problem() -> str | None:
    """Why nothing can be guarded here, if so."""
    if not guard_alloc.LIBRARY.exists():
        return "the fence was not built (no C compiler at install time)"
    if set(str(guard_alloc.LIBRARY)) & set(": $"):
        return "faultlens is installed under a path with a blank, a colon or a dollar sign"
    return None


def malloc_checks() -> str | None:
    """The library that has had glibc's checks since 2.34, beside the C library."""
    found = re.search(r"(/\S*/)libc\.so\.6$", read_text("/proc/self/maps") or "", re.M)
    library = found and found[1] + _DEBUG_LIBRARY
    return library if library and os.path.exists(library) else None
