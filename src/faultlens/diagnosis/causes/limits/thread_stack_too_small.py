from __future__ import annotations

from faultlens.diagnosis.causes.base import PROVEN, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.stacks import has_small_stack, stack_bytes
from faultlens.diagnosis.evidence.wordings import Wording
from faultlens.text.sizes import in_words


class ThreadStackTooSmall(Cause):
    """
    ## What it is
    A thread was given a small stack (`threading.stack_size`, `pthread_attr_setstacksize`, a small `ulimit -s`,
    musl's default of 128 KiB) and ran out of it in code that is fine on an ordinary thread with 8 MiB.

    ## How it looks
    SIGSEGV (`SEGV_ACCERR`, in the guard page) on a thread that is not the main one. faulthandler prints nothing.

    ## How to prove it
    The address is in the guard page below the stack of the thread, and the mapping of that stack is small.

    ## How to fix it
    Do not set the stack size, or set it to 8 MiB: TensorFlow's graph code is recursive and needs it. The memory is
    only reserved, not used.
    """

    slug = "thread-stack-too-small"
    code = "FL207"
    headline = "A thread with a small stack ran out of it"

    def examine(self, case: Case) -> Finding | None:
        if not case.hits_stack_end or not has_small_stack(case):
            return None
        thread, size, mention = case.crash.crashed_thread, stack_bytes(case), case.mentions(Wording.SETS_STACK_SIZE)
        name = (thread and (thread.python_name or thread.name)) or "a thread"
        return Finding(
            strength=PROVEN if size and mention else STRONG,
            title=f"thread {name} ran out of its stack" + (f" of {in_words(size)}" if size else ""),
            op=case.op,
            evidence=evidence(
                *case.fault_evidence[:1],
                ("the access went past the end of the thread's stack", "registers and /proc/PID/maps"),
                (f"its stack is {in_words(size)} large; 8 MiB are usual", "/proc/PID/maps") if size else None,
                (f"the size is set at {mention.file}:{mention.line}: {mention.text}", "source") if mention else None,
            ),
            fixes=(
                safe("give the thread an ordinary stack", "threading.stack_size(8 << 20), or leave it at its default"),
                consider("do the deep work on another thread", "the main thread has the stack that ulimit -s allows"),
            ),
        )
