"""The verdict on the page: its proof with links to the facts, fixes, rivals, and what was ruled out."""

from __future__ import annotations

from typing import Any, NamedTuple

from markupsafe import Markup

from faultlens.diagnosis.causes import find
from faultlens.records.diagnosis import Diagnosis, Evidence, Fix
from faultlens.records.report_file import Report
from faultlens.report.headline import line_of, short_path
from faultlens.report.html.anchors import anchor_of
from faultlens.report.inline import Run, runs
from faultlens.report.some import some
from faultlens.report.verdict import called_from, certainty, is_unknown, subject, sure, tempting
from faultlens.text.safe import one_line

TEXT = 600  # characters of one sentence
_EVIDENCE, _FIXES = 30, 12
_RULED_OUT_OPEN, _RULED_OUT = 5, 80


class Proof(NamedTuple):
    words: list[Run]
    source: str
    anchor: str | None


class Remedy(NamedTuple):
    title: list[Run]
    detail: list[Run]
    grade: str
    command: str


def verdict_section(report: Report, found: Diagnosis, sections: dict[str, str]) -> dict[str, Any]:
    crash = subject(report)
    cause = find(found.cause)
    location = found.location
    caller = called_from(report)
    return {
        "code": one_line(found.code, 12),
        "cause": one_line(found.cause, 60),
        "title": runs(found.title, TEXT),
        "plain_title": found.title,
        "unknown": is_unknown(found),
        "sure": sure(found),
        "percent": f"{certainty(found):.0%}",
        "location": f"{short_path(location.file, crash)}:{location.line}" if location else "",
        "function": location.function if location else "",
        "caller": line_of(caller, crash) if caller else "",
        "calling": caller.function if caller else "",
        "op": found.op or "",
        "evidence": some([_proof(item, sections) for item in found.evidence], _EVIDENCE),
        "fixes": some([_remedy(fix) for fix in found.fixes], _FIXES),
        "headline": cause.headline if cause else "",
        "explanation": _prose(cause.explanation) if cause else "",
    }


def _proof(item: Evidence, sections: dict[str, str]) -> Proof:
    return Proof(runs(item.fact, TEXT), one_line(item.source, 80), anchor_of(item.source, sections))


def _remedy(fix: Fix) -> Remedy:
    return Remedy(runs(fix.title, TEXT), runs(fix.detail, 2 * TEXT), fix.grade, one_line(fix.command, 2 * TEXT))


def rival(other: Diagnosis) -> dict[str, Any]:
    return {"code": one_line(other.code, 12), "title": runs(other.title, TEXT), "sure": sure(other)}


def ruled_out(report: Report) -> dict[str, Any]:
    others = [(one_line(other.cause, 60), runs(other.because, TEXT)) for other in tempting(report, _RULED_OUT)]
    shown = _RULED_OUT_OPEN if len(others) > _RULED_OUT_OPEN + 2 else len(others)  # a fold of one or two saves nothing
    return {
        "open": others[:shown],
        "folded": others[shown:],
        "more": len(report.ruled_out) - len(others),
    }


def _prose(markdown: str) -> Markup:
    """The explanation of a cause. It is ours, and still no HTML in it is passed on."""
    from markdown_it import MarkdownIt

    return Markup(MarkdownIt("commonmark", {"html": False}).render(markdown))
