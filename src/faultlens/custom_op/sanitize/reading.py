"""What a run left behind, read: reports of sanitizers, outputs that were not written, the program's own death."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from faultlens.custom_op.sanitize.debug_lines import lines_at, with_lines
from faultlens.custom_op.sanitize.findings import Op, finding_of, line_for, span_of
from faultlens.custom_op.sanitize.parsers import (
    asan,
    compute_sanitizer,
    gwp_asan,
    outputs,
    python_lines,
    tsan,
    ubsan,
    valgrind,
)
from faultlens.custom_op.sanitize.passes import ENDED_BY_IT
from faultlens.custom_op.sanitize.reports import Frame
from faultlens.custom_op.sanitize.rules import RULES
from faultlens.custom_op.sanitize.running import Run
from faultlens.errors import FaultlensError
from faultlens.records.crash import Crash
from faultlens.records.diagnosis import Evidence, Fix
from faultlens.records.op_finding import OpFinding, Span

# One line for each tool whose reports come in files of their own.
PARSERS = {
    "asan": asan.parse,
    "ubsan": ubsan.parse,
    "tsan": tsan.parse,
    "valgrind": valgrind.parse,
    "computesan": compute_sanitizer.parse,
}
GAVE_UP = (
    f"the sanitizer gave up: the program ended with exit status {ENDED_BY_IT}, which is the sanitizer's own, "
    "and there is no report of the reason"
)
_FAULTS = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP")
_UNABLE = re.compile(
    r"^(?:==\d+==)?(?:FATAL: |Shadow memory range|LeakSanitizer has encountered a fatal error).*$"
    r"|(?<=^========= Error: )(?:Device not supported|No attachable process|Target application terminated).*$",
    re.M,
)
_REPORT = re.compile(r"^(?:==\d+==ERROR: |SUMMARY: |WARNING: ThreadSanitizer|\S+: runtime error: )", re.M)
_PID = re.compile(r"\d+")
_MAY_FOLLOW = ("wild-access", "died", "stack-exhausted")
_HEAP = re.compile(r"native-heap|heap-|double-free|use-after")


def findings_of(run: Run, sources: Sequence[Path], library: Path | None) -> list[OpFinding]:
    op = Op(sources, library)
    found = [each for pid in _processes(run) for each in _of_process(run, pid, op, library)]
    return [*found, *_of_death(run.crash, op, bool(found))]


def failure_of(run: Run) -> str | None:
    """Why a sanitizer could not work here, in its own words."""
    found = _UNABLE.search(run.text("*san.*"))
    return found[0] if found else None


def gave_up(run: Run) -> bool:
    """The sanitizer's runtime ended the program, and wrote no report: as it does when it dies itself."""
    ended_by_it = run.crash.outcome.kind == "exit" and run.crash.outcome.exit_code == ENDED_BY_IT
    pid = run.crash.pid or "*"  # others, a compiler that it starts, may have reports of their own
    return ended_by_it and not _REPORT.search(run.text(f"{pid}.*") + "\n" + run.text(f"*.{pid}"))


def _processes(run: Run) -> list[str]:
    return sorted({number[0] for path in run.folder.iterdir() if (number := _PID.search(path.name))})


def _of_process(run: Run, pid: str, op: Op, library: Path | None) -> Iterator[OpFinding]:
    noted = python_lines.parse(run.text(f"{pid}.python"))
    for name, parse in PARSERS.items():
        damaged = False
        for reported in parse(run.text(f"{pid}.{name}") + "\n" + run.text(f"{name}.{pid}")):
            if finding := finding_of(reported, op, line_for(reported, noted)):
                # Once memory is damaged, what follows may be no mistake of its own.
                yield replace(finding, severity="note") if damaged and reported.rule in _MAY_FOLLOW else finding
                damaged = damaged or reported.damages
    lines = [note.location for note in noted if note.kind == "outputs"]
    for number, unwritten in enumerate(outputs.parse(run.text(f"{pid}.outputs"))):
        rule = RULES[unwritten.rule]
        yield OpFinding(
            code=rule.code,
            rule=unwritten.rule,
            severity=rule.severity,
            title=unwritten.words,
            span=next((span_of(frame) for frame in lines_at(library, unwritten.address) if op.owns(frame)), None),
            op=unwritten.op,
            evidence=(Evidence(unwritten.fact, "a pattern in the output's memory"),),
            fixes=(Fix(rule.fix),),
            called_from=lines[number] if number < len(lines) else None,
        )


# ------------------------------------------------------------------------------------------------ its death


def ending_of(crash: Crash) -> str:
    outcome = crash.outcome
    if outcome.kind == "timeout":
        return "the program did not end, and was stopped"
    if outcome.kind == "signal":
        return f"the program died by {outcome.signal}"
    return f"the program ended with exit status {outcome.exit_code or 0}"


def _of_death(crash: Crash, op: Op, explained: bool) -> Iterator[OpFinding]:
    """Deaths that no sanitizer has told of, with the verdict that `faultlens run` would give. Whoever kills the program
    from outside (its time limit, the kernel for its memory) does not accuse the op."""
    fenced = crash.hunt is not None and crash.hunt.block is not None
    if not fenced and (crash.outcome.kind != "signal" or crash.outcome.signal not in _FAULTS or explained):
        return
    from faultlens.report.make import make_report

    report = make_report(crash)
    best = report.diagnoses[0] if report.diagnoses else None
    called_from = (best.called_from or best.location) if best else None
    for reported in gwp_asan.parse(crash.output.stderr or ""):
        if finding := finding_of(with_lines(reported), op, called_from):
            yield finding
            return
    rule = "heap-damage" if best and _HEAP.search(best.cause) else "died"
    yield OpFinding(
        code=RULES[rule].code,
        rule=rule,
        severity="error",
        title=best.title if best else ending_of(crash),
        span=_own_frame(crash, op),
        op=(best.op or "") if best else "",
        evidence=best.evidence if best else (),
        fixes=(*((Fix(RULES[rule].fix),) if RULES[rule].fix else ()), *(best.fixes if best else ())),
        called_from=called_from,
        report=_kept(report),
    )


def _own_frame(crash: Crash, op: Op) -> Span | None:
    """The innermost line of the op on the stack of the thread that died."""
    thread = next((thread for thread in crash.threads if thread.crashed), None)
    frames = (
        [Frame(frame.function or "", frame.file or "", frame.line or 0) for frame in thread.frames] if thread else []
    )
    return next((span_of(frame) for frame in frames if not frame.file.endswith(".py") and op.owns(frame)), None)


def _kept(report: object) -> str | None:
    from faultlens.records.report_file import Report
    from faultlens.store import folder

    assert isinstance(report, Report)
    try:
        return folder.identity(folder.save(report))
    except (FaultlensError, OSError):
        return None
