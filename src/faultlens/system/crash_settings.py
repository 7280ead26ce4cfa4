"""What the system does with a crash: core files, who may look at a process, whether the kernel log can be read."""

from __future__ import annotations

import os
import re

from faultlens.records.crash import Record
from faultlens.system.procfs import read_fields, read_number, read_text


class CrashSettings(Record, frozen=True):
    core_pattern: str | None = None
    core_program_exists: bool = True  # of a pattern that pipes the core to a program
    ptrace_scope: int | None = None  # None: the kernel has no Yama
    kernel_log_readable: bool = False
    seccomp: bool = False  # a filter of system calls is in force


def own_crash_settings() -> CrashSettings:
    pattern = (read_text("/proc/sys/kernel/core_pattern") or "").strip() or None
    program = re.match(r"\|\s*(\S+)", pattern or "")
    return CrashSettings(
        core_pattern=pattern,
        core_program_exists=program is None or os.path.exists(program[1]),
        ptrace_scope=read_number("/proc/sys/kernel/yama/ptrace_scope"),
        kernel_log_readable=_can_read("/dev/kmsg"),
        seccomp=read_fields("/proc/self/status", ":").get("Seccomp") == "2",
    )


def _can_read(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True
