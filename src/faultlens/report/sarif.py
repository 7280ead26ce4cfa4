"""The report as a SARIF 2.1.0 log: the catalogue as rules, each diagnosis as a result at the user's line."""

from __future__ import annotations

from pathlib import PurePosixPath

from faultlens.diagnosis.causes import catalogue
from faultlens.records.crash import Crash, Frame
from faultlens.records.diagnosis import Diagnosis
from faultlens.records.report_file import Report
from faultlens.report import sarif_log
from faultlens.report.headline import headline
from faultlens.report.sarif_log import TEXT, Json
from faultlens.report.threads import function_name, shown_threads, thread_in_words
from faultlens.report.verdict import certainty, frame_at, is_unknown, subject, sure
from faultlens.text.safe import one_line

_FRAMES = 60
_LARGEST_LINE = (1 << 31) - 1  # readers keep line numbers in 32 bits


def document(report: Report) -> bytes:
    return sarif_log.written(log(report))


def log(report: Report) -> Json:
    rules = [sarif_log.rule(cause, "error", tags=[cause.family]) for cause in catalogue()]
    known = {rule["id"] for rule in rules}
    for diagnosis in report.diagnoses:  # "unknown", and causes that another release knew
        if one_line(diagnosis.code, 12) not in known:
            known.add(one_line(diagnosis.code, 12))
            rules.append(_foreign_rule(diagnosis))
    places = sarif_log.places_of(rules)
    results = [_result(report, rank, places) for rank in range(len(report.diagnoses))]
    return sarif_log.log(rules, _invocation(report), results)


def _foreign_rule(diagnosis: Diagnosis) -> Json:
    name = one_line(diagnosis.cause, 60)
    return {
        "id": one_line(diagnosis.code, 12),
        "name": sarif_log.rule_name(name),
        "shortDescription": {"text": name},
        "help": {"text": "Not in the catalogue of this release."}
        if not is_unknown(diagnosis)
        else {"text": "The recorded facts do not decide what caused this; the message says what would."},
    }


# ---------------------------------------------------------------------------------------------- results


def _result(report: Report, rank: int, rules: dict[str, int]) -> Json:
    diagnosis = report.diagnoses[rank]
    crash = subject(report)
    code = one_line(diagnosis.code, 12)
    result: Json = {
        "ruleId": code,
        "ruleIndex": rules[code],
        "kind": "fail",
        "level": "error" if rank == 0 else "note",
        "rank": round(100 * certainty(diagnosis), 1),
        "message": {"text": _message(diagnosis)},
        "properties": {"cause": one_line(diagnosis.cause, 60), "confidence": certainty(diagnosis)},
    }
    if diagnosis.op:
        result["properties"]["op"] = one_line(diagnosis.op, 120)
    if diagnosis.location:
        where = _location(frame_at(diagnosis.location, crash), crash)
        result["locations"] = [where]
    if diagnosis.called_from:
        caller = _location(frame_at(diagnosis.called_from, crash), crash)
        result["relatedLocations"] = [caller | {"id": 1, "message": {"text": "called from here"}}]
    if rank == 0 and (stacks := _stacks(crash)):
        result["stacks"] = stacks
    return result


def _message(diagnosis: Diagnosis) -> str:
    """What happened, then why, then what to do: one statement a line."""
    doubt = f" ({sure(diagnosis)})" if sure(diagnosis) else ""
    lines = [one_line(diagnosis.title, TEXT) + doubt]
    lines += [f"because: {one_line(item.fact, TEXT)} [{one_line(item.source, 80)}]" for item in diagnosis.evidence[:20]]
    verb = "next" if is_unknown(diagnosis) else "fix"
    for fix in diagnosis.fixes[:10]:
        detail = f": {one_line(fix.detail, TEXT)}" if fix.detail else ""
        command = f": {one_line(fix.command, TEXT)}" if fix.command else ""
        lines.append(f"{verb}: {one_line(fix.title, TEXT)}{detail}{command} ({fix.grade})")
    return "\n".join(lines)


def _location(frame: Frame, crash: Crash) -> Json:
    location: Json = {"logicalLocations": [{"name": one_line(frame.function, 200) or "?", "kind": "function"}]}
    if frame.file is not None and not frame.file.startswith("<"):
        physical: Json = {"artifactLocation": {"uri": sarif_log.uri(frame.file, crash.program.directory)}}
        if frame.line is not None and 1 <= frame.line <= _LARGEST_LINE:
            physical["region"] = _region(frame, frame.line, crash)
        location["physicalLocation"] = physical
    return location


def _region(frame: Frame, line: int, crash: Crash) -> Json:
    lines = crash.sources.get(frame.file or "", "").split("\n")
    return {"startLine": line} | sarif_log.snippet(lines[line - 1] if line <= len(lines) else "")


def _stacks(crash: Crash) -> list[Json]:
    return [
        {
            "message": {"text": one_line(thread_in_words(thread, crash), 200)},
            "frames": [_frame(frame, crash) for frame in thread.frames[:_FRAMES]],
        }
        for thread in shown_threads(crash)
        if thread.frames
    ]


def _frame(frame: Frame, crash: Crash) -> Json:
    library = PurePosixPath(frame.library).name if frame.library else ""
    found: Json = {"location": {"message": {"text": function_name(frame) or "?"}}}
    if frame.kind == "python":
        found["location"] |= _location(frame, crash)
    if library:
        found["module"] = one_line(library, 200)
    return found


def _invocation(report: Report) -> Json:
    """How the program ended; the command line is left out, which may hold secrets."""
    outcome = report.crash.outcome
    invocation: Json = {
        "executionSuccessful": outcome.kind == "ok",
        "exitCodeDescription": one_line(headline(report.crash), TEXT),
    }
    if outcome.exit_code is not None:
        invocation["exitCode"] = min(max(outcome.exit_code, -_LARGEST_LINE), _LARGEST_LINE)
    if outcome.signal:
        invocation["exitSignalName"] = one_line(outcome.signal, 20)
    return invocation
