"""The one line that says what died, how, and where."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from faultlens.diagnosis.evidence.children import has_survived, told_of
from faultlens.diagnosis.evidence.last_words import python_exception
from faultlens.diagnosis.evidence.limits import cpu_time_used_up, oom_kills
from faultlens.diagnosis.evidence.standing import AT_WORK, standing
from faultlens.inspection.frames import (
    is_main,
    is_nameless,
    is_notebook_cell,
    is_own,
    short_function,
    user_frame,
    without_dying,
)
from faultlens.records.crash import Crash, Frame
from faultlens.report.words import SENT
from faultlens.text.quantities import count, duration
from faultlens.text.safe import one_line
from faultlens.text.sizes import in_words as size

# Signals with which processes and people end programs; not the outcome of a fault inside.
_POLITE = frozenset({"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM"})


def headline(crash: Crash) -> str:
    child = told_of(crash)
    if child is not crash:
        then = "its parent lived on and" if has_survived(crash) else "then its parent"
        return f"child process {_who(child)} {_ending(child)}; {then} {_ending(crash)}"
    return f"{program_name(crash)} {_ending(crash)}"


def kind_of_end(crash: Crash) -> str:
    """One word: crash, killed, ended (asked to), hang, timeout (it worked), exception, exit or ok."""
    if crash.was_running:
        return "timeout" if standing(crash).state in AT_WORK else "hang"
    if crash.fault is None and crash.outcome.kind != "signal":
        return crash.outcome.kind
    signal = crash.outcome.signal or (crash.fault.signal if crash.fault else "")
    return "killed" if signal == "SIGKILL" else "ended" if signal in _POLITE else "crash"


def program_name(crash: Crash) -> str:
    path = next(iter(crash.program.command), None) or crash.program.executable or "the program"
    return one_line(PurePosixPath(path).name or path, 60)


def place(frame: Frame, crash: Crash) -> str:
    """ "train.py:37 (step)"."""
    return f"{line_of(frame, crash)} ({one_line(frame.function, 80)})"


def line_of(frame: Frame, crash: Crash) -> str:
    """ "train.py:37", with the path as the user would type it."""
    line = f":{frame.line}" if frame.line is not None else ""
    return f"{short_path(frame.file or '?', crash)}{line}"


def short_path(path: str, crash: Crash) -> str:
    if is_notebook_cell(path):
        return "notebook cell"
    directory = crash.program.directory
    if directory and PurePosixPath(path).is_relative_to(directory):
        path = str(PurePosixPath(path).relative_to(directory))
    return one_line(path, 200)


def memory_kill(crash: Crash) -> str | None:
    """What proves that the kernel killed for want of memory; None when nothing does."""
    for line in crash.kernel_log:
        if re.search(rf"[Kk]illed process {crash.pid}\b", line) and re.search(r"[Oo]ut of memory|oom", line):
            return "the kernel log names this process"
    kills = oom_kills(crash) or 0
    return f"the cgroup counted {count(kills, 'out-of-memory kill')} while it ran" if kills > 0 else None


def no_memory_kill(crash: Crash) -> bool:
    """Whether it is known that no process of the cgroup was killed for memory."""
    return oom_kills(crash) == 0


def _who(crash: Crash) -> str:
    return program_name(crash) + (f" ({crash.pid})" if crash.pid is not None else "")


def _ending(crash: Crash) -> str:
    outcome = crash.outcome
    if crash.was_running:
        return _still_running(crash)
    if crash.fault and crash.fault.seen == "endless":
        return f"met {crash.fault.signal} again and again{_where(crash)} and was ended"
    if crash.fault and outcome.kind != "signal":
        return f"met {crash.fault.signal}{_where(crash)} and then {_exit(crash)}"
    if outcome.kind == "signal":
        return _signal(crash)
    if outcome.kind == "exception":
        return _exception(crash)
    return _exit(crash)


def _signal(crash: Crash) -> str:
    signal = crash.outcome.signal or (crash.fault.signal if crash.fault else "a signal")
    for handed_on in crash.handed_on:  # "SIGTERM from process 7"
        if handed_on.startswith(signal):
            return f"was ended by {one_line(handed_on, 80)}{_where(crash, 'while in')}"
    fault = crash.fault
    if fault and fault.code in SENT and fault.sender_pid not in (None, 0, crash.pid):
        return f"was ended by {signal}, sent by process {fault.sender_pid}{_where(crash, 'while in')}"
    if signal == "SIGKILL":
        return _killed(crash)
    if signal == "SIGTERM" and (request := crash.stop_request):
        when = "as asked, for its memory" if request.limit_of == "program" else "before memory ran out"
        return f"was ended by SIGTERM, which faultlens sent {when}{_where(crash, 'while in')}"
    if signal in _POLITE:
        return f"was ended by {signal}{_where(crash, 'while in')}"
    exiting = " while shutting down" if crash.exiting else ""
    return f"died by {signal}{exiting}{_where(crash)}"


def _killed(crash: Crash) -> str:
    if memory_kill(crash):
        limit = crash.cgroup.memory_limit if crash.cgroup else None
        by = f"the memory limit of its cgroup, {size(limit)}" if limit else "the kernel, for want of memory"
        return f"was killed (SIGKILL) by {by}"
    if no_memory_kill(crash) and not cpu_time_used_up(crash):  # then, too, the kernel sends SIGKILL
        return "was killed (SIGKILL) from outside: the kernel killed nothing for memory in its cgroup"
    return "was killed (SIGKILL); by whom is not known"


def _still_running(crash: Crash) -> str:
    after = f" after {duration(crash.seconds)}" if crash.seconds is not None else " at its time limit"
    again = f", met {crash.fault.signal} again and again" if crash.fault else ""
    return f"was still running{after}{again} and was stopped{_where(crash)}"


def _exception(crash: Crash) -> str:
    error = python_exception(crash)
    if error is None:
        return "ended with a Python exception"
    frame = next((frame for frame in error.frames if is_own(frame)), None)
    where = f" in {place(frame, crash)}" if frame else ""
    message = f": {one_line(error.message, 160)}" if error.message else ""
    return f"ended with {error.type.rpartition('.')[2]}{where}{message}"


def _exit(crash: Crash) -> str:
    code = crash.outcome.exit_code
    if crash.outcome.kind == "ok" or code == 0:
        return "ended normally"
    if code is None:
        return "ended"
    looks_like_signal = ", which is not a signal" if 128 < code <= 128 + 64 else ""
    return f"exited with code {code}{looks_like_signal}"


def _where(crash: Crash, preposition: str = "in") -> str:
    """The user's line, then the native code and the thread in which the process stood."""
    frame = user_frame(crash)
    own = place(frame, crash) if frame else ""
    native = native_end(crash)
    where = " → ".join(part for part in (own, native) if part)
    return f" {preposition} {where}" if where else ""


def native_end(crash: Crash) -> str:
    """The native code that died, and on which thread; nothing where it is not known."""
    thread = crash.crashed_thread
    if thread is None:
        return ""
    frame = _telling(without_dying(thread.frames))
    parts = [] if frame is None or frame.kind == "python" else [native_place(frame)]
    if not is_main(thread, crash) and (name := thread.name or thread.python_name):
        parts.append(f"thread '{one_line(name, 40)}'")
    return ", ".join(parts)


def _telling(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame, or the one that called it where only that one has a name."""
    for frame in frames:
        if is_own(frame) or not is_nameless(frame):
            return frame if frame.kind == "native" else frames[0]
    return next(iter(frames), None)


def native_place(frame: Frame) -> str:
    """ "libtensorflow_cc.so.2, tensorflow::Foo::Compute"; an offset where the symbol may be wrong."""
    library = one_line(PurePosixPath(frame.library).name, 80) if frame.library else ""
    if not frame.approximate and not is_nameless(frame):
        return ", ".join(part for part in (library, one_line(short_function(frame.function), 120)) if part)
    if library and frame.offset is not None:
        return f"{library}+{frame.offset!r}"
    return library or (repr(frame.address) if frame.address is not None else "unknown code")
