"""What a report says of a crash, held against its truth."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
from crash_cases import QUIET, Case, Run

from faultlens.diagnosis.causes import family_title, find
from faultlens.diagnosis.evidence.children import subject_of
from faultlens.errors import FaultlensError
from faultlens.records import report_file

GRADES = {
    "outcome": "how it ended",
    "cause": "cause named first",
    "cause_top3": "cause among the first three",
    "location": "line of the user's code",
    "op": "op or API",
    "status": "ended as without faultlens",
    "explained": "two pieces of evidence and a fix",
}


def graded(case: Case, run: Run, alone: str | None) -> dict[str, Any]:
    """One case of a results file. A grade is None where it does not apply."""
    report = run.report or {}
    diagnoses = report.get("diagnoses") or []
    best = diagnoses[0] if diagnoses else {}
    said = [each.get("cause") for each in diagnoses]
    return {
        "family": family(case.causes[0]),
        "method": method(report),
        "truth": {"outcome": case.outcomes, "causes": case.causes, "op": case.op, "location": case.location},
        "said": {
            "outcome": _ending(report),
            "cause": best.get("cause"),
            "confidence": best.get("confidence"),
            "location": _place(best),
            "op": best.get("op"),
            "others": said[1:],
        },
        "alone": alone,
        "status": run.status,
        "seconds": run.seconds,
        **({"problem": run.problem} if run.problem else {}),
        **({"kernel": kernel(report)} if case.op and any("signal:" in each for each in case.outcomes) else {}),
        "grades": {
            "outcome": _ending(report) in [_as_told(each) for each in case.outcomes],
            "cause": _cause(case, run, said[:1]),
            "cause_top3": _cause(case, run, said[:3]),
            "location": _right_place(case, best),
            "op": any(_same_op(best.get("op") or "", name) for name in case.op) if case.op else None,
            "status": _status(case, run.status, alone),
            "explained": _explained(case, run, best),
        },
    }


def family(slug: str) -> str:
    cause = find(slug)
    return family_title(cause.family) if cause else "Other"


def method(report: dict[str, Any]) -> str | None:
    """How the process that is explained was looked at."""
    try:
        return str(subject_of(report_file.from_json(msgspec.json.encode(report)).crash).method)
    except FaultlensError:  # of another tool
        return None


def kernel(report: dict[str, Any]) -> dict[str, Any]:
    """Was an op found in flight, and were all of its inputs read?"""
    kernels = (report.get("crash") or {}).get("kernels") or []
    found = next((each for each in kernels if each.get("at_fault")), None)
    read = bool(found) and all(tensor is not None for tensor in found.get("inputs", []))
    return {"op": found and found["op"], "inputs": read}


def _ending(report: dict[str, Any]) -> str | None:
    told = report.get("outcome") or {}
    kind, code = told.get("kind"), told.get("exit_code")
    if kind == "signal":
        return f"signal:{told.get('signal')}"
    if kind == "exit":
        return "ok" if code == 0 else f"exit:{code}"
    return kind


def _as_told(outcome: str) -> str:
    return "ok" if outcome in (*QUIET, "exit:0") else outcome


def _cause(case: Case, run: Run, said: list[Any]) -> bool:
    if run.report is None:
        return False
    return any(cause in case.causes for cause in said) or (case.quiet and not said)


def _place(diagnosis: dict[str, Any]) -> str | None:
    where = diagnosis.get("location")
    return f"{Path(str(where.get('file'))).name}:{where.get('line')}" if where else None


def _right_place(case: Case, diagnosis: dict[str, Any]) -> bool | None:
    if case.location is None:
        return None
    return _place(diagnosis) in [f"{case.location['file']}:{line}" for line in case.location["lines"]]


def _same_op(said: str, accepted: str) -> bool:
    """Spelt in either way, with or without its module."""
    one, other = (re.sub(r"[^a-z0-9]", "", name.lower()) for name in (said, accepted))
    return one == other != "" or (len(one) > 2 and (one in other or other in one))


def _status(case: Case, status: str, alone: str | None) -> bool | None:
    if alone is None or "hang" in case.outcomes:
        return None
    return case.ends_so(status) if len(case.outcomes) > 1 else status == alone


def _explained(case: Case, run: Run, best: dict[str, Any]) -> bool | None:
    if not best:
        return None if case.quiet and run.report is not None else False
    return len(best.get("evidence") or ()) >= 2 and len(best.get("fixes") or ()) >= 1
