"""Was a native thread still alive while the process tore itself down?"""

from __future__ import annotations

import re

from msgspec.structs import replace

from faultlens.diagnosis.causes.base import LIKELY, SAID, STRONG, Finding, Words, consider
from faultlens.diagnosis.causes.native.base import NativeCause
from faultlens.diagnosis.evidence import native_code
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import Use, sources_of
from faultlens.inspection.frames import is_main, short_function
from faultlens.records.crash import Frame

_TEARS_DOWN = r"__run_exit_handlers|_dl_fini|__cxa_finalize|Py_FinalizeEx|^exit\b"
_UNJOINED = "terminate without an exception: a std::thread was destroyed before it was joined"
_FORCED_END = r"FATAL: exception not rethrown"
_STARTS = re.compile(r"(?:^|_)(?:start|init|begin|launch|run|spawn|enable|open|create)(?:_|$)")


class NativeThreadAtExit(NativeCause):
    """
    ## What it is
    The program was done and shutting down while a thread that native code had started was still running. Either the
    thread used objects that were destroyed already, or the destructor of a `std::thread` that nobody joined ended
    the process. Such a destructor ends it in the middle of the program, too, where the object goes out of scope.

    ## How it looks
    All work is done, then SIGABRT with `terminate called without an active exception`, or SIGSEGV on a native
    thread while the main thread is in exit handlers.

    ## How to prove it
    The process had begun to exit; the crashed stack is below `__run_exit_handlers`, or belongs to a thread of the
    library.

    ## How to fix it
    Stop and join the thread before the process exits: offer a `stop()` and register it with `atexit`, or join it in
    the destructor of its owner. Detaching it only hides the problem.
    """

    slug = "native-thread-at-exit"
    code = "FL616"
    headline = "a native thread was alive when the process shut down"
    words = Words(
        re.compile(rf"^terminate called without an active exception|{_FORCED_END}"),
        "a native thread was destroyed while it ran, most likely at exit: {said}",
        consider("stop and join the thread before the process exits", "register its stop function with atexit"),
        SAID - 0.1,
        unless=re.compile("pure virtual method called"),
    )

    def examine(self, case: Case) -> Finding | None:
        if case.fault is None or case.sent or case.thrown is not None:
            return None
        thread, frame = case.crash.crashed_thread, native_code.suspect(case)
        exiting = case.crash.exiting or case.calls(_TEARS_DOWN) is not None
        unjoined = case.termination is not None and case.termination.type is None
        forced = case.said(_FORCED_END)
        off_main = thread is not None and not is_main(thread, case.crash)
        if frame is None or not (unjoined or (exiting and (forced or off_main))):
            return None
        strength = STRONG + 0.03 if exiting and (unjoined or forced or frame is case.culprit) else LIKELY
        if not exiting:
            return self._destroyed(case, native_code.author(case, frame))
        found = self.blame(
            case,
            native_code.author(case, frame),
            strength,
            "left a thread behind that was alive when the process shut down",
            ("the process had begun to shut down", "process state"),
            (_UNJOINED, "stderr") if unjoined else None,
            ("the crash was on a thread of native code, while the main thread was leaving", "native stacks")
            if off_main
            else None,
            fix=consider("stop and join the thread before the process exits", "register its stop function with atexit"),
        )
        starter = _starter(case) if case.location is None and found.location is None else None
        return replace(found, location=starter.location, op=found.op or starter.name) if starter else found

    def _destroyed(self, case: Case, frame: Frame) -> Finding:
        """In the middle of the program: the destructor of a std::thread ends the process, if nobody joined it."""
        destructor = case.calls(r"std::thread::~thread|std::jthread|std::vector<std::thread")
        return self.blame(
            case,
            frame,
            STRONG if destructor else LIKELY - 0.1,
            "destroyed a std::thread that was neither joined nor detached",
            (_UNJOINED, "stderr"),
            (f"{short_function(destructor.function)} is on the stack", "native stack") if destructor else None,
            fix=consider("join the thread before its object goes out of scope", "t.join(), or std::jthread"),
        )


def _starter(case: Case) -> Use | None:
    """The only call of the library that sounds like the one that started the thread."""
    calls = [use for use in sources_of(case.crash).foreign if _STARTS.search(use.name)]
    return calls[0] if len(calls) == 1 else None
