"""What `faultlens op` found as a SARIF 2.1.0 log: the rules, and each finding at its line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from faultlens import __version__
from faultlens.records.op_finding import OpFinding, OpReport, Span
from faultlens.records.severity import Severity
from faultlens.report.sarif import SCHEMA
from faultlens.text.safe import one_line

_TEXT = 1000
Json = dict[str, Any]


class RulePage(Protocol):
    """How a rule is described."""

    @property
    def code(self) -> str: ...
    @property
    def slug(self) -> str: ...
    @property
    def severity(self) -> Severity: ...
    @property
    def headline(self) -> str: ...
    @property
    def explanation(self) -> str: ...


def document(found: OpReport, rules: Iterable[RulePage]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(log(found, list(rules))), indent=1) + b"\n"


def log(found: OpReport, rules: Sequence[RulePage]) -> Json:
    numbers = {rule.code: number for number, rule in enumerate(rules)}
    run = {
        "tool": {"driver": {"name": "faultlens", "version": __version__, "rules": [_rule(rule) for rule in rules]}},
        "invocations": [{"executionSuccessful": True}],
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, numbers) for finding in found.findings],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: RulePage) -> Json:
    return {
        "id": rule.code,
        "name": "".join(part.capitalize() for part in rule.slug.split("-")),
        "shortDescription": {"text": one_line(rule.headline, _TEXT)},
        "help": {"text": rule.explanation, "markdown": rule.explanation},
        "defaultConfiguration": {"level": rule.severity},
        "properties": {"slug": rule.slug},
    }


def _result(finding: OpFinding, numbers: dict[str, int]) -> Json:
    lines = [one_line(finding.title, _TEXT)]
    lines += [f"fix: {one_line(fix.title, _TEXT)}" + (f"\n{fix.detail}" if fix.detail else "") for fix in finding.fixes]
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
            _location(each.span) | {"id": number, "message": {"text": one_line(each.says, _TEXT)}}
            for number, each in enumerate(finding.related, 1)
        ]
    return result


def _location(span: Span) -> Json:
    region: Json = {"startLine": span.line, "startColumn": span.column}
    if span.end_line >= span.line and span.end_column:
        region |= {"endLine": span.end_line, "endColumn": span.end_column}
    if span.text.strip():
        region["snippet"] = {"text": one_line(span.text)}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(span.path)}, "region": region}}


def _uri(path: str) -> str:
    """Relative to the current folder where it lies in it, as code review tools want it."""
    absolute = PurePath(os.path.abspath(path))
    here = os.getcwd()
    if absolute.is_relative_to(here):
        return quote(one_line(str(absolute.relative_to(here)), 4096))
    return "file://" + quote(one_line(str(absolute), 4096))
