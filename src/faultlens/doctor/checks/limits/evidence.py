from __future__ import annotations

from collections.abc import Iterator

from faultlens.doctor.check import Check
from faultlens.records.crash import Limit
from faultlens.records.finding import Examination
from faultlens.system.crash_settings import CrashSettings, own_crash_settings
from faultlens.target_env.target import TargetEnvironment
from faultlens.text.sizes import in_words

ONLY_PARENTS, ONLY_ADMINISTRATORS = 1, 2  # of kernel.yama.ptrace_scope


class CrashEvidence(Check):
    """
    What a crash would leave behind: core files (`core_pattern`, `ulimit -c`), the kernel log, and whether a crashed
    process may be looked at. Nothing of this makes a program crash, and `faultlens run` needs no core file, so there is
    never a finding: the details say what would not be seen.
    """

    name = "evidence"
    looks_at = "core_pattern, ulimit -c, ptrace scope and the kernel log: what a crash would leave behind"
    position = 80

    def examine(self, target: TargetEnvironment) -> Examination:
        return self.judge(own_crash_settings(), target.limits.get("RLIMIT_CORE"))

    def judge(self, settings: CrashSettings, core: Limit | None) -> Examination:
        cores = _cores(settings, core)
        log = "kernel log readable" if settings.kernel_log_readable else "kernel log not readable"
        return self.fine(f"{cores}; {log}; `faultlens run` needs neither", _details(settings, core))


def _cores(settings: CrashSettings, core: Limit | None) -> str:
    pattern = settings.core_pattern
    if pattern is None:
        return "no core files"
    if pattern.startswith("|"):
        program = pattern[1:].split()[0] if pattern[1:].split() else "a program"
        return f"core files go to {program}" if settings.core_program_exists else f"no core files: {program} is missing"
    return "no core files (ulimit -c 0)" if core is not None and core.soft == 0 else f"core files: {pattern}"


def _details(settings: CrashSettings, core: Limit | None) -> Iterator[str]:
    if settings.core_pattern is not None:
        yield f"kernel.core_pattern: {settings.core_pattern}"
    if core is not None:
        yield f"RLIMIT_CORE: {'unlimited' if core.soft is None else in_words(core.soft)}"
    if settings.ptrace_scope is not None:
        yield f"kernel.yama.ptrace_scope: {settings.ptrace_scope}" + _SCOPES.get(settings.ptrace_scope, "")
    if not settings.kernel_log_readable:
        yield "/dev/kmsg may not be read: out-of-memory kills are told by the control group's counter alone"
    if settings.seccomp:
        yield "a seccomp filter is in force: where it forbids ptrace, native stacks of other threads are not seen"


_SCOPES = {
    ONLY_PARENTS: " (a process may look at its children: enough for `faultlens run`)",
    ONLY_ADMINISTRATORS: " (only root may look at processes: native stacks of other threads are not seen)",
    3: " (nobody may look at processes: native stacks of other threads are not seen)",
}
