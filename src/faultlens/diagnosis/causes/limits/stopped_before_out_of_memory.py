from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, PROVEN, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case, location_of
from faultlens.diagnosis.evidence.held import held_evidence
from faultlens.diagnosis.evidence.memory_death import last_line
from faultlens.diagnosis.evidence.saving import left_behind
from faultlens.diagnosis.evidence.senders import ended_by
from faultlens.diagnosis.evidence.stopping import request_in_words, sent_by_others
from faultlens.text.sizes import in_words


class StoppedBeforeOutOfMemory(Cause):
    """
    ## What it is
    The program was run with `faultlens run --stop-before-oom`, its memory came near to what it may have, and faultlens
    itself asked it to end with SIGTERM. The kernel would have killed it a little later, without a chance to save.

    ## How it looks
    The program ends by SIGTERM, or as its own handler for SIGTERM ends it. faultlens says on stderr when it asked and
    how much memory was used of which limit.

    ## How to prove it
    The report holds the request, with its time, the memory timeline up to it, and what held the memory shortly before.

    ## How to fix it
    See in the timeline whether memory grew until the end (something is kept from step to step) or was taken at once
    (batches, buffers). Start the program again: `SafeCheckpoint` goes on where it stood. Where the memory is really
    needed, raise the limit; where the program needs less than what is kept free, give a larger share, such as
    `--stop-before-oom=98%`.
    """

    slug = "stopped-before-out-of-memory"
    code = "FL211"
    headline = "faultlens asked it to end before memory ran out"

    def examine(self, case: Case) -> Finding | None:
        request, outcome = case.crash.stop_request, case.crash.outcome
        by_signal = ended_by(case) == "SIGTERM"
        if request is None or case.fault is not None or not (by_signal or outcome.kind == "exit"):
            return None
        others = sent_by_others(case)
        limit = f"the {request.limit_of}'s {in_words(request.limit)}"
        return Finding(
            strength=PROVEN if by_signal and not others else LIKELY + 0.1,
            title="stopped by faultlens before the kernel would have killed it:"
            f" memory was at {request.used / max(request.limit, 1):.0%} of {limit}",
            location=location_of(last_line(case.crash)),
            evidence=evidence(
                (request_in_words(request), "--stop-before-oom"),
                ("ended by SIGTERM" if by_signal else f"exit code {outcome.exit_code}, after SIGTERM", "wait status"),
                *held_evidence(case.crash),
                *left_behind(case),
            ),
            fixes=(
                safe("start it again", "SafeCheckpoint goes on from the state that was saved"),
                consider("use less memory", "look at the memory timeline: steady growth means something is kept alive"),
                consider(f"raise the limit of {in_words(request.limit)}")
                if request.limit_of == "control group"
                else consider("use a larger machine, or run less beside it"),
            ),
            against=(f"{others} was handed on as well",) if others else (),
        )
