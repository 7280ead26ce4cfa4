"""From a report to a small program that dies the same way, seen to do so.

First the op at fault is called with the inputs that were recorded; where that does not die, the user's script is run
again. What dies is made smaller as long as there is time, and then started anew three times for the proof."""

from __future__ import annotations

from msgspec.structs import replace

from faultlens.diagnosis.signature import Signature, same_death, signature_of
from faultlens.records.crash import Crash
from faultlens.records.report_file import Report
from faultlens.report.verdict import subject
from faultlens.repro.by_op import by_op
from faultlens.repro.by_script import by_script
from faultlens.repro.surroundings import surroundings_of
from faultlens.repro.task import Found, MayRun, NotReproducedError, Options, Task, Tell
from faultlens.sandbox.trial.trial import captured

PROOFS = 3


def reproduce(crash: Crash, options: Options, may_run: MayRun, tell: Tell) -> Found:
    wanted = wanted_death(crash)
    surroundings = surroundings_of(crash, options)
    reasons = []
    with Task(crash, wanted, surroundings, options, may_run, tell) as task:
        for strategy in (by_op, by_script):
            try:
                found = _most_reliable(task, strategy(task))
            except NotReproducedError as reason:
                reasons.append(str(reason))
                continue
            if found.same:
                return found
            reasons.append(f"What died when {found.name} was tried did not die when it was started anew.")
    raise NotReproducedError(" ".join(reasons))


def crash_to_reproduce(report: Report) -> Crash:
    """The one the report is about. A process below the program has died by what the program does: that is run again."""
    crash, program = subject(report), report.crash.program
    if crash is report.crash:
        return crash
    program = replace(program, python=crash.program.python or program.python)
    return replace(
        crash,
        program=program,
        sources={**crash.sources, **report.crash.sources},
        source_digests={**crash.source_digests, **report.crash.source_digests},
    )


def wanted_death(crash: Crash) -> Signature:
    """How a reproducer has to die; NotReproducedError for ends that no script brings about by itself."""
    outcome, fault = crash.outcome, crash.fault
    if crash.was_running:
        raise NotReproducedError("A program that hangs does not die: there is nothing to compare a reproducer with.")
    if outcome.signal == "SIGKILL":
        raise NotReproducedError("It was killed (SIGKILL), which leaves nothing to compare a reproducer with.")
    if fault and fault.code in ("SI_USER", "SI_QUEUE") and fault.sender_pid not in (None, crash.pid):
        raise NotReproducedError(f"{fault.signal} was sent by another process, which no script of its own does.")
    wanted = signature_of(crash)
    if wanted.signal is None and wanted.exception is None:
        ended = "normally" if outcome.kind == "ok" else f"by itself, with exit code {outcome.exit_code}"
        raise NotReproducedError(f"The program ended {ended}: there is no crash to reproduce.")
    return wanted


def _most_reliable(task: Task, candidates: list[Found]) -> Found:
    """The first that dies every time; else the one that does most often, the smallest of equals."""
    best = candidates[0]
    for candidate in candidates:
        found = _proven(task, candidate)
        best = found if found.same > best.same else best
        if best.same == PROOFS:
            break
    return best


def _proven(task: Task, candidate: Found) -> Found:
    """Started anew each time, and captured as `faultlens run` does it."""
    found = candidate
    for number in range(1, PROOFS + 1):
        task.tell(f"proof {number} of {PROOFS}")
        crash = captured(candidate.files, task.surroundings, task.patient_bounds())
        found = found._replace(runs=number)
        if same_death(task.wanted, signature_of(crash)):
            found = found._replace(same=found.same + 1, proof=crash)
        if not found.same:  # another candidate may do better
            break
    return found
