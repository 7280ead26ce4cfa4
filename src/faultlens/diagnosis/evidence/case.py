"""One crash as the causes see it: the record, and what can be derived from it by looking once."""

from __future__ import annotations

import re
from functools import cached_property
from typing import NamedTuple

from faultlens.diagnosis.evidence import accesses, addresses, arguments, call_arguments, fenced, messages, ops
from faultlens.diagnosis.evidence.arguments import Given
from faultlens.diagnosis.evidence.kernels import in_words, kernel_at_fault
from faultlens.diagnosis.evidence.last_words import python_exception
from faultlens.diagnosis.evidence.messages import CheckFailure, Termination
from faultlens.diagnosis.evidence.tracebacks import PythonException, dumped_frames
from faultlens.diagnosis.evidence.wordings import Wording
from faultlens.inspection.frames import is_nameless, is_own, user_frame, without_dying
from faultlens.inspection.owners import Owner, custom_libraries, owner_of
from faultlens.records.crash import CppException, Crash, Fault, FencedBlock, Frame, Kernel, Variable
from faultlens.records.diagnosis import Evidence, Location

# An exception that was thrown longer ago than this was caught, and has nothing to do with the end.
RECENT_THROW_S = 3.0
_DYING = 12  # frames that carry out an abort, at most
_CPP_RUNTIME = re.compile(r"/lib(?:std)?c\+\+")


class Mention(NamedTuple):
    """A line of the user's sources."""

    file: str
    line: int
    text: str


class Case:
    def __init__(self, crash: Crash) -> None:
        self.crash = crash

    # ------------------------------------------------------------------------------------ the fault

    @property
    def fault(self) -> Fault | None:
        return self.crash.fault

    @property
    def signal(self) -> str | None:
        """The signal of the fault, or the one the process ended by."""
        return self.crash.fault.signal if self.crash.fault else self.crash.outcome.signal

    @cached_property
    def is_native_crash(self) -> bool:
        """The CPU or the program's own code raised a fatal signal: not sent by anybody."""
        return self.fault is not None and not self.sent

    @cached_property
    def sent(self) -> bool:
        """The signal was sent, by another process or by kill(); abort() does not count."""
        fault = self.fault
        if fault is None or fault.code not in ("SI_USER", "SI_TKILL", "SI_QUEUE"):
            return False
        return not self.aborted

    @cached_property
    def aborted(self) -> bool:
        # abort() sends the signal to its own thread: SI_TKILL.
        if self.fault is None or self.fault.signal != "SIGABRT" or self.fault.code in ("SI_USER", "SI_QUEUE"):
            return False
        thread = self.crash.crashed_thread
        names = {frame.function.split("(")[0] for frame in (thread.frames if thread else ())[:12]}
        return not thread or not thread.frames or bool(names & {"abort", "__assert_fail", "__fortify_fail", "gsignal"})

    @cached_property
    def is_null(self) -> bool:
        """Null, or so near to it that nothing can be there."""
        return self.fault is not None and addresses.is_null(self.fault)

    @cached_property
    def small_number(self) -> int | None:
        """What was used as a pointer, where it is near null and not null."""
        return accesses.small_number(self.fault) if self.fault is not None and self.is_null else None

    @property
    def bad_pointer(self) -> str:
        """What was followed, where `is_null` holds."""
        number = self.small_number
        return "a null pointer" if number is None else f"a small number ({number:#x}) that is not an address"

    @cached_property
    def hits_stack_end(self) -> bool:
        return self.fault is not None and addresses.hits_stack_end(self.crash, self.fault)

    @cached_property
    def block(self) -> FencedBlock | None:
        """The fenced block that was misused: proof of what went wrong."""
        return fenced.block_of(self.crash)

    # ------------------------------------------------------------------------------------- the stack

    @cached_property
    def stack(self) -> tuple[Frame, ...]:
        """The crashed thread, without the innermost frames that only carry out an abort."""
        thread = self.crash.crashed_thread
        return tuple(without_dying(thread.frames)) if thread else ()

    @cached_property
    def native_stack(self) -> tuple[Frame, ...]:
        """The native frames down to the first Python one: what the last Python call did."""
        frames: list[Frame] = []
        for frame in self.stack:
            if frame.kind == "python":
                break
            frames.append(frame)
        return tuple(frames)

    @cached_property
    def culprit(self) -> Frame | None:
        """The innermost native frame outside of the C and C++ runtimes."""
        return next((frame for frame in self.native_stack if owner_of(frame) != "system"), None)

    @cached_property
    def owner(self) -> Owner:
        return owner_of(self.culprit) if self.culprit else "unknown"

    @cached_property
    def custom_frame(self) -> Frame | None:
        """The innermost frame of native code that the user built."""
        return next((frame for frame in self.native_stack if owner_of(frame) == "custom"), None)

    @cached_property
    def custom_libraries(self) -> tuple[str, ...]:
        return custom_libraries(self.crash)

    def calls(self, pattern: str) -> Frame | None:
        """The innermost frame of the crashed thread whose function matches."""
        expression = re.compile(pattern)
        return next((frame for frame in self.stack if expression.search(frame.function)), None)

    # ---------------------------------------------------------------------------------- the messages

    @cached_property
    def check(self) -> CheckFailure | None:
        return messages.check_failure(self.crash) if self.signal in ("SIGABRT", "SIGTRAP", "SIGILL") else None

    @cached_property
    def termination(self) -> Termination | None:
        """What the C++ runtime said before it aborted; of a stack without it, such words are somebody else's."""
        thread = self.crash.crashed_thread
        frames = thread.frames[:_DYING] if thread else ()
        if self.signal not in (None, "SIGABRT") or (frames and not any(map(_is_cpp_runtime, frames))):
            return None
        return messages.termination(self.crash)

    @cached_property
    def exception(self) -> PythonException | None:
        """The uncaught Python exception that ended the program, or that came before its crash."""
        return python_exception(self.crash)

    @cached_property
    def thrown(self) -> CppException | None:
        """The C++ exception that led to the end, if one did."""
        thread = self.crash.crashed_thread
        if self.termination is not None and self.termination.type is None:
            return None  # "without an active exception": whatever was thrown before had been caught
        for exception in self.crash.exceptions:
            if exception.seconds_before <= RECENT_THROW_S and (thread is None or exception.thread == thread.id):
                return exception
        return None

    @cached_property
    def only_words(self) -> bool:
        """It died, and nothing was seen of that but the status and what was printed."""
        crash = self.crash
        return crash.fault is None and crash.outcome.kind == "signal" and not crash.threads and not crash.was_running

    def last_line_saying(self, pattern: re.Pattern[str]) -> str | None:
        return messages.line_saying(self.crash, pattern)

    def said(self, pattern: str | re.Pattern[str]) -> str | None:
        return messages.said(self.crash, pattern)

    # ------------------------------------------------------------------------------ the user's code

    @cached_property
    def kernel(self) -> Kernel | None:
        """The op in flight that the crash is about."""
        return kernel_at_fault(self.crash)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Of the user's line, and of the lines that called it: a name there often means the same."""
        threads = (self.crash.launching_thread, self.crash.crashed_thread)
        frames = [frame for thread in threads if thread for frame in thread.frames if frame.variables]
        return tuple({each.name: each for frame in reversed(frames) for each in frame.variables}.values())

    @cached_property
    def given(self) -> Given | None:
        """What the op was given, as far as it is known."""
        if self.kernel is None:
            return arguments.as_written(self.op, self.crash.sources, self.location, self.variables)
        return arguments.given(self.kernel, self.crash.sources, self.location)

    @cached_property
    def location(self) -> Location | None:
        """The line that wrote the op of a graph, else the line that was running."""
        raised = self.exception if self.fault is None and self.crash.outcome.kind == "exception" else None
        written = self.kernel.written if self.kernel else raised.written if raised else None
        return location_of(written) or self.running

    @cached_property
    def called_from(self) -> Location | None:
        """The line that was running, where the one to look at is another."""
        return self.running if self.running != self.location else None

    @cached_property
    def running(self) -> Location | None:
        """The innermost line of the user's own code on the stack that launched the work."""
        frame = user_frame(self.crash)
        if frame is None and self.exception is not None:
            frame = next((frame for frame in self.exception.frames if is_own(frame)), None)
        if frame is None and self.only_words:
            frame = next(filter(is_own, dumped_frames(self.crash.output.stderr or "")), None)
        return location_of(frame)

    @cached_property
    def op(self) -> str | None:
        return ops.op_at_fault(self.crash)

    @cached_property
    def called(self) -> str | None:
        """The function that the user's line called: what to name where no op is to be seen."""
        return call_arguments.called_at(user_frame(self.crash), self.crash.sources) if self.is_native_crash else None

    def called_on(self, line: Location) -> str | None:
        """The only function that another line calls."""
        place = (line.file, line.line)
        here = (frame for thread in self.crash.threads for frame in thread.frames if (frame.file, frame.line) == place)
        frame = next(here, Frame(kind="python", function=line.function, file=line.file, line=line.line))
        return call_arguments.called_at(frame, self.crash.sources)

    def mentions(self, wording: Wording) -> Mention | None:
        """The last line of the user's sources that matches, comments left out."""
        expression = re.compile(wording.value)
        found = None
        for file, text in self.crash.sources.items():
            for number, line in enumerate(text.splitlines(), 1):
                if expression.search(line.split("#")[0]):
                    found = Mention(file, number, line.strip())
        return found

    # -------------------------------------------------------------------------------------- evidence

    @cached_property
    def fault_evidence(self) -> tuple[Evidence, ...]:
        """The signal, and where it happened: the facts that most verdicts rest on."""
        fault = self.fault
        if fault is None:
            return ()
        where = f" at address {fault.address:#x}" if fault.address is not None else ""
        access = f", {fault.access} access" if fault.access else ""
        facts = [Evidence(fact=f"{fault.signal} ({fault.code}){where}{access}", source="siginfo")]
        if fault.seen == "endless":
            fact = "a handler of the program returns to this instruction, which then faults again, without end"
            facts.append(Evidence(fact=fact, source="agent"))
        if self.culprit:
            library = (self.culprit.library or "").rpartition("/")[2]
            function = "" if is_nameless(self.culprit) else f"{ops.native_place(self.culprit)} of "
            facts.append(Evidence(fact=f"died in {function}{library}", source="native stack"))
        if self.kernel:
            facts.append(Evidence(fact=in_words(self.kernel), source="kernels in flight"))
        return tuple(facts)


def _is_cpp_runtime(frame: Frame) -> bool:
    return bool(_CPP_RUNTIME.search(frame.library or "") or "terminate" in frame.function)


def location_of(frame: Frame | None) -> Location | None:
    if frame is None or frame.file is None or frame.line is None:
        return None
    return Location(file=frame.file, line=frame.line, function=frame.function)
