"""Do several threads run the same custom native code on shared data?"""

from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, STRONG, WEAK, Finding, consider
from faultlens.diagnosis.causes.native.base import NativeCause
from faultlens.diagnosis.evidence import accesses, foreign_calls, messages, native_code
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import Use, sources_of
from faultlens.inspection.frames import short_function
from faultlens.records.crash import Fault, Frame
from faultlens.records.diagnosis import Fix


class NativeDataRace(NativeCause):
    """
    ## What it is
    Two threads change the same data in custom native code without a lock. TensorFlow runs one kernel object on
    several threads at once (parallel `map`, branches of a graph), and ctypes releases the GIL during a call.

    ## How it looks
    A different death each time: a damaged heap, a wild pointer, a null pointer. Two or more threads are inside the
    same function. With one thread it works.

    ## How to prove it
    Run it with one thread (`num_parallel_calls=1`, `inter_op_parallelism_threads=1`): it must stop crashing. Built
    with `-fsanitize=thread`, the library reports both accesses.

    ## How to fix it
    Protect members and globals of the op with a `mutex`, or keep the state per call. Hold a `threading.Lock` around
    the ctypes call.
    """

    slug = "native-data-race"
    code = "FL610"
    headline = "threads raced inside custom native code"

    def examine(self, case: Case) -> Finding | None:
        frame, fault = native_code.suspect(case), case.fault
        if frame is None or fault is None or fault.signal not in ("SIGSEGV", "SIGABRT", "SIGBUS") or case.check:
            return None
        others = native_code.others_inside(case, frame)
        also = [other for other in case.crash.also_faulted if other.thread != fault.thread]
        started, own = native_code.on_started_thread(case), native_code.on_own_thread(case)
        parallel, container = native_code.run_in_parallel(case), native_code.in_container(case)
        absurd = bool(others and case.thrown and case.thrown.type in native_code.SIZE_ERRORS)
        if not (others or started or own or parallel) or (case.termination is not None and not absurd):
            return None
        damaged = (
            native_code.in_heap_code(case) is not None
            or case.said(messages.HEAP_OVERFLOW)
            or case.said(messages.DOUBLE_FREE)
            or absurd
            or accesses.is_wild(fault)
            or container
        )
        unrelated = bool(accesses.misaligned(fault)) or case.said(messages.STACK_SMASHED)
        strength = STRONG + 0.02 if others else LIKELY + 0.1 if started else LIKELY + 0.05
        if others and accesses.ran_off(case.crash, fault.address or 0):
            strength = POSSIBLE  # it walked off the end of its own buffer: being in company proves nothing
        if unrelated or not damaged:
            strength = LIKELY - 0.03 if others and not unrelated else POSSIBLE - 0.1 if started else WEAK
        if parallel and not others and not unrelated:
            strength = _in_parallel(case, fault, container is not None, bool(damaged))
        if started and not (others or damaged) and (elsewhere := _frees_elsewhere(case, fault)):
            return self._freed_meanwhile(case, frame, elsewhere)
        if own and not others and sources_of(case.crash).release:
            strength = min(strength, POSSIBLE - 0.1)
        return self.blame(
            case,
            frame,
            strength,
            "was run by several threads at once, on data that they share",
            (f"{len(others)} other threads were inside the same function", "native stacks") if others else None,
            ("TensorFlow ran the one kernel on several threads at once: a parallel map", "source")
            if parallel
            else None,
            (f"{short_function(container.function)} died over its own nodes: no index leads there", "native stack")
            if container
            else None,
            ("the program starts threads that run this function", "source") if started else None,
            ("it died on a thread that the library itself had started", "native stack") if own else None,
            ("shared memory was damaged: the heap or a pointer in it", "siginfo") if damaged else None,
            (f"{len(also) + 1} threads crashed at the same time", "siginfo") if also else None,
            fix=_guard(case),
        )

    def _freed_meanwhile(self, case: Case, frame: Frame, other: Use) -> Finding:
        return self.blame(
            case,
            frame,
            LIKELY,
            f"used memory that is gone while another thread calls {other.name}, without a lock between them",
            (f"{other.place}: {other.name} of the same library is called on another thread", "source"),
            ("the program starts threads that run this function", "source"),
            fix=_guard(case),
        )


def _in_parallel(case: Case, fault: Fault, container: bool, damaged: bool) -> float:
    """Nobody else was seen inside at that moment; the kernel is shared all the same."""
    if container:
        return LIKELY + 0.1
    address = accesses.target(fault)
    indexed = accesses.started_inside(case.crash, fault) or (address and accesses.ran_off(case.crash, address))
    if damaged:
        return LIKELY - 0.03
    return WEAK if indexed or address is None or case.is_null else POSSIBLE + 0.05


def _frees_elsewhere(case: Case, fault: Fault) -> Use | None:
    """The memory vanished under this thread, and another one calls into the library as well."""
    address, entry, sources = accesses.target(fault), foreign_calls.called(case), sources_of(case.crash)
    if address is None or entry is None or not accesses.is_hole(case.crash, address):
        return None
    if not accesses.is_near(case.crash, address) or foreign_calls.handed_in(case):
        return None
    mine = {use.receiver for use in sources.foreign if use.name == entry.function}
    others = (use for use in sources.foreign if use.within not in sources.thread_targets and use.receiver in mine)
    begun = sources.threads.line if sources.threads else 0
    return next((use for use in others if use.line > begun or use.within != "<module>"), None)


def _guard(case: Case) -> Fix:
    of_op = "a mutex member of the kernel, mutex_lock in Compute"
    of_library = "std::mutex in the library, or one threading.Lock around its calls in Python"
    how = of_op if native_code.is_op(case) else of_library
    return consider("guard the shared data with a mutex, or keep it per call", how)
