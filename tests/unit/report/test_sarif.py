"""The SARIF log: the structure that the standard requires, a rule for each result, lines that readers accept."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

import in_flight
import recorded
from faultlens.custom_op.check import rules as op_rules
from faultlens.diagnosis.causes import catalogue
from faultlens.records.crash import Outcome
from faultlens.records.diagnosis import Location
from faultlens.records.op_finding import OpFinding, OpReport, Related, Span
from faultlens.records.report_file import Report
from faultlens.report import op_sarif, sarif
from hostile import hostile

MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
LOCATION = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "id": {"type": "integer", "minimum": 0},
        "message": MESSAGE,
        "logicalLocations": {"type": "array", "items": {"type": "object", "required": ["name"]}},
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "properties": {
                "artifactLocation": {
                    "required": ["uri"],
                    "properties": {"uri": {"type": "string", "pattern": r"^[A-Za-z0-9_.~/:%-]+$"}},
                },
                "region": {
                    "required": ["startLine"],
                    "properties": {"startLine": {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}},
                },
            },
        },
    },
}
# What the published schema (sarif-schema-2.1.0.json) requires of the parts that are written.
STRUCTURE = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "required": ["name"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "required": ["id"],
                                            "properties": {"shortDescription": MESSAGE, "help": MESSAGE},
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "invocations": {"items": {"required": ["executionSuccessful"]}},
                    "results": {
                        "type": "array",
                        "items": {
                            "required": ["message", "ruleId"],
                            "properties": {
                                "message": MESSAGE,
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "kind": {"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
                                "rank": {"type": "number", "minimum": 0, "maximum": 100},
                                "locations": {"items": LOCATION},
                                "relatedLocations": {"items": LOCATION},
                                "stacks": {
                                    "items": {
                                        "required": ["frames"],
                                        "properties": {
                                            "message": MESSAGE,
                                            "frames": {"items": {"properties": {"location": LOCATION}}},
                                        },
                                    }
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


def written(report: Report) -> dict[str, Any]:
    log = json.loads(sarif.document(report))
    jsonschema.validate(log, STRUCTURE)
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    return run


def test_verdict() -> None:
    run = written(recorded.diagnosed("segv_in_custom_op"))
    first, rival = run["results"]
    assert (first["ruleId"], first["level"], first["rank"]) == ("FL999", "error", 93.0)
    assert rival["level"] == "note"
    assert first["message"]["text"].startswith(
        "FastGather reads table 3, which was never loaded (93% sure)\n"
        "because: rdi, through which it reads, is 0 [registers]\n"
    )
    assert "\nfix: load every table before the first call: call `fast_gather" in first["message"]["text"]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "train.py"}
    assert place["region"]["startLine"] == 24
    assert place["region"]["snippet"]["text"].strip() == "loss = step(images, labels)"
    assert first["locations"][0]["logicalLocations"][0]["name"] == "main"
    assert first["stacks"][0]["frames"][0]["module"] == "fast_gather.so"
    assert run["invocations"][0] | {"exitCodeDescription": ""} == {
        "executionSuccessful": False,
        "exitSignalName": "SIGSEGV",
        "exitCodeDescription": "",
    }


def test_the_line_that_wrote_the_op_and_the_one_that_called_it() -> None:
    first = written(in_flight.report())["results"][0]
    assert first["locations"][0]["physicalLocation"]["region"]["startLine"] == 14
    [caller] = first["relatedLocations"]
    assert caller["physicalLocation"]["region"]["startLine"] == 24
    assert caller["logicalLocations"][0]["name"] == "main"
    assert caller["message"]["text"] == "called from here"
    assert "relatedLocations" not in written(recorded.diagnosed("segv_in_custom_op"))["results"][0]


def test_the_catalogue_is_the_rules() -> None:
    report = recorded.report("segv_in_custom_op")
    rules = written(report)["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [cause.code for cause in catalogue()]
    for rule in rules:
        assert rule["help"]["markdown"].startswith("## What it is")


@pytest.mark.parametrize("name", recorded.NAMES)
def test_every_recorded_crash(name: str) -> None:
    assert written(recorded.report(name))["results"] == []


@pytest.mark.parametrize(
    ("file", "line", "uri", "region"),
    [
        ("/home/ada/mnist/a b/ö#?.py", 3, "a%20b/%C3%B6%23%3F.py", True),
        ("/srv/x.py", 3, "file:///srv/x.py", True),
        ("<string>", 3, None, False),
        ("/srv/x.py", 0, "file:///srv/x.py", False),
        ("/srv/x.py", -4, "file:///srv/x.py", False),
        ("/srv/x.py", 2**40, "file:///srv/x.py", False),
        ("/srv/\udcff.py", 1, "file:///srv/%5Cxff.py", True),
    ],
)
def test_locations(file: str, line: int, uri: str | None, region: bool) -> None:
    report = recorded.diagnosed("segv_in_custom_op")
    moved = replace(report.diagnoses[0], location=Location(file=file, line=line, function="f"))
    place = written(replace(report, diagnoses=(moved,)))["results"][0]["locations"][0].get("physicalLocation", {})
    assert place.get("artifactLocation", {}).get("uri") == uri
    assert ("region" in place) is region


def test_a_program_that_ended_well() -> None:
    crash = recorded.ended(outcome=Outcome(kind="ok", exit_code=0))
    run = written(Report(outcome=crash.outcome, crash=crash))
    assert run["invocations"][0]["executionSuccessful"] is True
    assert run["invocations"][0]["exitCode"] == 0


def test_hostile_content() -> None:
    text = sarif.document(hostile()).decode()
    written(hostile())
    assert not set(text) & {chr(code) for code in (*range(32), *range(127, 160))} - {"\n"}
    assert "\\u001b" not in text and "\u202e" not in text
    assert len(text) < 1_000_000


def test_findings_about_ops_are_written_in_the_same_way() -> None:
    span = Span(path="a b.cc", line=3, column=5, end_line=3, end_column=9, text="  x[i];")
    finding = OpFinding("OP104", "index-from-data", "error", "i is not checked", span, related=(Related("here", span),))
    pages = op_rules.catalogue()
    log = json.loads(op_sarif.document(OpReport(verb="check", subject="a b.cc", findings=(finding,)), pages))
    jsonschema.validate(log, STRUCTURE)
    ours = sarif.log(recorded.diagnosed("segv_in_custom_op"))
    assert list(log) == list(ours) and list(log["runs"][0]) == list(ours["runs"][0])
    rule, ours_first = log["runs"][0]["tool"]["driver"]["rules"][0], ours["runs"][0]["tool"]["driver"]["rules"][0]
    assert list(rule) == list(ours_first)
    result = log["runs"][0]["results"][0]
    assert log["runs"][0]["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "OP104"
    physical = result["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "a%20b.cc"
    assert physical["region"] == {
        "startLine": 3, "startColumn": 5, "endLine": 3, "endColumn": 9, "snippet": {"text": "  x[i];"},
    }  # fmt: skip
