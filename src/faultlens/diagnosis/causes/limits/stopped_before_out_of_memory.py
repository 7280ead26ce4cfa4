from __future__ import annotations

from pathlib import PurePosixPath

from faultlens.diagnosis.causes.base import LIKELY, PROVEN, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case, location_of
from faultlens.diagnosis.evidence.held import held_evidence
from faultlens.diagnosis.evidence.memory_death import last_line
from faultlens.diagnosis.evidence.saving import left_behind
from faultlens.diagnosis.evidence.senders import ended_by
from faultlens.diagnosis.evidence.stopping import request_in_words, sent_by_others
from faultlens.records.crash import Crash, StopRequest
from faultlens.records.diagnosis import Fix
from faultlens.text.safe import one_line
from faultlens.text.sizes import in_words


class StoppedBeforeOutOfMemory(Cause):
    """
    ## What it is
    The program was run with `faultlens run --stop-before-oom`, and faultlens itself asked it to end with SIGTERM. With
    a share (`95%`), because so much of the memory of the machine or the control group was used, by whomever: when
    nothing is left the kernel kills, without a chance to save. With a size (`7GiB`), because the program and the
    processes below it held so much themselves.

    ## How it looks
    The program ends by SIGTERM, or as its own handler for SIGTERM ends it. faultlens says on stderr when it asked and
    how much memory was used of which limit.

    ## How to prove it
    The report holds the request, with its time, the memory timeline up to it, and what held the memory shortly before.

    ## How to fix it
    See in the timeline whether memory grew until the end (something is kept from step to step) or was taken at once
    (batches, buffers). A program that saves with `SafeCheckpoint` goes on where it stood when it is started again; any
    other begins anew and comes to the same point. Where the memory is really needed, raise the limit, or name a larger
    share or size, such as `--stop-before-oom=98%`.
    """

    slug = "stopped-before-out-of-memory"
    code = "FL211"
    headline = "faultlens asked it to end before memory ran out, or at a size"

    def examine(self, case: Case) -> Finding | None:
        request, outcome = case.crash.stop_request, case.crash.outcome
        by_signal = ended_by(case) == "SIGTERM"
        if request is None or case.fault is not None or not (by_signal or outcome.kind == "exit"):
            return None
        others = sent_by_others(case)
        return Finding(
            strength=PROVEN if by_signal and not others else LIKELY + 0.1,
            title=_title(request),
            location=location_of(last_line(case.crash)),
            evidence=evidence(
                (request_in_words(request), "--stop-before-oom"),
                _others_hold(case.crash, request),
                ("ended by SIGTERM" if by_signal else f"exit code {outcome.exit_code}, after SIGTERM", "wait status"),
                *held_evidence(case.crash),
                *left_behind(case),
            ),
            fixes=_fixes(case.crash, request),
            against=(f"{others} was handed on as well",) if others else (),
        )


def _title(request: StopRequest) -> str:
    if request.limit_of == "program":
        return f"stopped by faultlens as asked: its memory reached {in_words(request.limit)}"
    share = f"{request.used / max(request.limit, 1):.0%} of the {request.limit_of}'s {in_words(request.limit)}"
    return f"stopped by faultlens before memory ran out: {share} was used"


def _others_hold(crash: Crash, request: StopRequest) -> tuple[str, str] | None:
    """Then a smaller program helps nobody."""
    own = max((sample.rss or 0 for sample in crash.timeline), default=0)
    if request.limit_of != "machine" or not own or own >= request.used / 2:
        return None
    return f"the program itself never held more than {in_words(own)}: others use the rest", "memory timeline"


def _saved_when_asked(crash: Crash, request: StopRequest) -> str | None:
    """Without it, it would begin anew, and come to the same point."""
    marks = crash.progress.marks if crash.progress else ()
    saved = [mark.text for mark in marks if mark.kind == "saved" and mark.seconds >= request.seconds]
    return one_line(PurePosixPath(saved[-1]).name, 80) if saved else None


def _fixes(crash: Crash, request: StopRequest) -> tuple[Fix, ...]:
    saved = _saved_when_asked(crash, request)
    if request.limit_of == "program":
        more = consider("name a larger size if it needs more", "--stop-before-oom=SIZE counts the program alone")
    elif request.limit_of == "control group":
        more = consider(f"raise the limit of {in_words(request.limit)}")
    else:
        more = consider("use a larger machine, or run less beside it")
    return (
        *([safe(f"start it again from {saved}", "it was saved after faultlens had asked")] if saved else []),
        consider("use less memory", "look at the memory timeline: steady growth means something is kept alive"),
        more,
    )
