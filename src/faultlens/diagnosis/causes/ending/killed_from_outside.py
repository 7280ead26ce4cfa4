from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, WEAK, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.limits import cpu_time_used_up, oom_kills
from faultlens.diagnosis.evidence.saving import left_behind, save_with_faultlens
from faultlens.diagnosis.evidence.senders import ended_by, line_that_sends, sender
from faultlens.diagnosis.evidence.stopping import asked_by_us
from faultlens.records.diagnosis import Evidence, Fix

# Signals that nobody but a person, a scheduler or a supervisor sends, and who does so most often.
_SENDERS = {
    "SIGTERM": "a scheduler, `kill`, `timeout` or the container's stop",
    "SIGKILL": "`kill -9`, a scheduler after its grace period, a watchdog",
    "SIGHUP": "the terminal or ssh session that was closed",
    "SIGINT": "Ctrl-C, or a notebook's stop button",
    "SIGQUIT": "Ctrl-\\, or a supervisor that asks for a core file",
    "SIGUSR1": "a batch system that announces preemption or the end of the time",
    "SIGUSR2": "a batch system that announces preemption or the end of the time",
    "SIGPIPE": "the kernel, because the reader of its output had gone",
}
# Those that a Python handler can serve. With one for SIGSEGV and its kind a real fault would never end.
_SERVED = ("SIGTERM", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGALRM")


class KilledFromOutside(Cause):
    """
    ## What it is
    Another process sent the signal: a scheduler (SLURM, Kubernetes), a person, a watchdog, the terminal that was
    closed. The program itself did nothing wrong at that moment.

    ## How it looks
    SIGTERM, SIGKILL, SIGHUP or SIGINT without any message of the program. A fatal signal such as SIGSEGV or SIGABRT
    can be sent as well; it then carries the number of the sending process instead of an address.

    ## How to prove it
    `si_code` is `SI_USER` and `si_pid` is another process. For SIGKILL no such record exists: what remains is that
    the `oom_kill` counter of the control group did not move, the kernel log is silent and no CPU-time limit was
    reached.

    ## How to fix it
    Ask who sends it: the job's time or memory limit in the scheduler, `dmesg`, the log of systemd-oomd or earlyoom,
    the pod's events. Use `nohup`, `tmux` or `setsid` against SIGHUP. Handle SIGTERM to save a checkpoint before the
    end.
    """

    slug = "killed-from-outside"
    code = "FL103"
    headline = "Another process sent the signal that ended the program"

    def examine(self, case: Case) -> Finding | None:
        if sender(case) == "another process":
            return _recorded(case)
        name = ended_by(case)
        if case.fault is not None or name not in _SENDERS or asked_by_us(case, name):
            return None
        handed_on = next((line for line in case.crash.handed_on if line.startswith(f"{name} ")), None)
        return Finding(
            strength=PROVEN if handed_on else _without_record(case, name),
            title=f"{name} was sent to the program, most often by {_SENDERS[name]}",
            evidence=evidence(
                (
                    f"ended by {name}" if case.crash.outcome.signal else f"a process that it ran ended by {name}",
                    "wait status",
                ),
                (f"{handed_on}, sent to faultlens and handed on", "siginfo") if handed_on else None,
                ("no fault happened in the program", "agent"),
                _no_memory_kill(case) if name == "SIGKILL" else None,
                *left_behind(case),
            ),
            fixes=_fixes(case, name),
            against=_against(case, name),
        )


def _recorded(case: Case) -> Finding:
    assert case.fault is not None
    fault = case.fault
    return Finding(
        strength=PROVEN,
        title=f"process {fault.sender_pid} sent {fault.signal} to the program",
        evidence=evidence(
            (f"{fault.signal} with si_code {fault.code}: sent by a process, no fault of the CPU", "siginfo"),
            (f"the sender is process {fault.sender_pid}, the program is process {case.crash.pid}", "siginfo"),
            *left_behind(case),
        ),
        fixes=_fixes(case, fault.signal),
    )


def _without_record(case: Case, name: str) -> float:
    # It cannot be excluded that the program sent the signal to itself, from code that is not among the sources.
    usual = LIKELY + 0.05
    if name != "SIGKILL":
        return usual
    if oom_kills(case.crash):
        return WEAK
    return usual if oom_kills(case.crash) == 0 and not cpu_time_used_up(case.crash) else POSSIBLE


def _against(case: Case, name: str) -> tuple[str, ...]:
    line = line_that_sends(case, name)
    return (f"the program itself has a line that sends signals: {line}",) if line else ()


def _no_memory_kill(case: Case) -> Evidence:
    kills = oom_kills(case.crash)
    if kills is None:
        return Evidence(fact="whether the kernel killed it for memory was not counted", source="cgroup counter")
    moved = f"went up by {kills}" if kills else "did not go up: the kernel killed nothing in it for memory"
    return Evidence(fact=f"the oom_kill counter of the control group {moved}", source="cgroup counter")


def _fixes(case: Case, name: str) -> tuple[Fix, ...]:
    fixes = [
        *save_with_faultlens(case),
        consider("find out who sends the signal", "time limit of the job, scheduler and container events, cron jobs"),
    ]
    if name == "SIGHUP":
        fixes.insert(0, safe("start it with nohup, setsid or inside tmux", "so that it survives the closing terminal"))
    elif name == "SIGPIPE":
        fixes.insert(0, safe("leave SIGPIPE ignored, as Python does, and handle BrokenPipeError"))
    elif name in _SERVED:
        fixes.append(safe(f"save a checkpoint on {name}", f"signal.signal(signal.{name}, handler) in the main thread"))
    return tuple(fixes)
