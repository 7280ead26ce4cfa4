"""What `faultlens op` found as a SARIF 2.1.0 log: the rules, and each finding at its line."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Protocol

from faultlens.records.op_finding import OpFinding, OpReport, Span
from faultlens.records.severity import Severity
from faultlens.report import sarif_log
from faultlens.report.sarif_log import TEXT, Json
from faultlens.text.safe import one_line


class RulePage(sarif_log.RulePage, Protocol):
    @property
    def severity(self) -> Severity: ...


def document(found: OpReport, rules: Iterable[RulePage]) -> bytes:
    pages = [sarif_log.rule(rule, rule.severity) for rule in rules]
    places = sarif_log.places_of(pages)
    results = [_result(finding, places) for finding in found.findings]
    return sarif_log.written(sarif_log.log(pages, {"executionSuccessful": True}, results))


def _result(finding: OpFinding, numbers: dict[str, int]) -> Json:
    lines = [one_line(finding.title, TEXT)]
    lines += [f"fix: {one_line(fix.title, TEXT)}" + (f"\n{fix.detail}" if fix.detail else "") for fix in finding.fixes]
    result: Json = {
        "ruleId": finding.code,
        "kind": "fail",
        "level": finding.severity,
        "message": {"text": "\n".join(lines)},
        "properties": {"rule": finding.rule, "op": one_line(finding.op, 120)},
    }
    if finding.code in numbers:
        result["ruleIndex"] = numbers[finding.code]
    if finding.span is not None:
        result["locations"] = [_location(finding.span)]
    if finding.related:
        result["relatedLocations"] = [
            _location(each.span) | {"id": number, "message": {"text": one_line(each.says, TEXT)}}
            for number, each in enumerate(finding.related, 1)
        ]
    return result


def _location(span: Span) -> Json:
    region: Json = {"startLine": span.line, "startColumn": span.column}
    if span.end_line >= span.line and span.end_column:
        region |= {"endLine": span.end_line, "endColumn": span.end_column}
    where = sarif_log.uri(os.path.abspath(span.path), os.getcwd())
    return {"physicalLocation": {"artifactLocation": {"uri": where}, "region": region | sarif_log.snippet(span.text)}}
