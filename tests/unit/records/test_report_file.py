"""The report file: it comes back as it was, matches its published schema, and damage is told in one sentence."""

from __future__ import annotations

import json
import random
import sys

import jsonschema
import pytest

import places
import recorded
from faultlens.errors import FaultlensError
from faultlens.records import report_file
from faultlens.records.crash import Crash, Outcome, Program
from faultlens.report import html, markdown, sarif

ROOT = places.ROOT
MUTATIONS = 3000


@pytest.mark.parametrize("name", recorded.NAMES)
def test_round_trip(name: str) -> None:
    report = recorded.report(name)
    assert report_file.from_json(report_file.to_json(report)) == report


def test_published_schema_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import write_schema

    for path, text in write_schema.schemas().items():
        assert path.read_text() == text, "run tools/write_schema.py"


@pytest.mark.parametrize("name", recorded.NAMES)
def test_reports_match_the_published_schema(name: str) -> None:
    schema = json.loads((ROOT / "docs" / "report.schema.json").read_text())
    document = json.loads(report_file.to_json(recorded.report(name)))
    jsonschema.validate(document, schema)
    document["crash"]["outcome"]["kind"] = "nonsense"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)


def test_fields_of_newer_releases_are_ignored() -> None:
    document = json.loads(report_file.to_json(recorded.report("child_crashed")))
    document["crash"]["newer"] = document["newer"] = {"a": [1]}
    assert report_file.from_json(json.dumps(document).encode()) == recorded.report("child_crashed")


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff", b"[]", b"{}", b'{"schema": 2}', b'{"schema": 1}', b"[" * 100_000, b'{"schema":1,"crash":' * 50_000],
)
def test_what_is_no_report(data: bytes) -> None:
    with pytest.raises(FaultlensError):
        report_file.from_json(data)


def test_mutated_reports_are_read_and_shown_or_refused() -> None:
    """Bytes flipped, cut, repeated and swapped for telling ones; what can be read can be shown."""
    chance = random.Random(2)
    originals = [report_file.to_json(recorded.report(name)) for name in recorded.NAMES if name != "segv_in_custom_op"]
    read = 0
    for number in range(MUTATIONS):
        data = mutate(bytearray(chance.choice(originals)), chance)
        try:
            report = report_file.from_json(data)
        except FaultlensError:
            continue
        read += 1
        if number % 4 == 0:
            recorded.plain(report, verbose=True)
            html.page(report), markdown.document(report), sarif.document(report)
    assert 100 < read < MUTATIONS, "the mutations should neither spare nor break every report"


def mutate(data: bytearray, chance: random.Random) -> bytes:
    for _ in range(chance.choice((1, 1, 2, 8))):
        place = chance.randrange(len(data))
        match chance.randrange(5):
            case 0:
                data[place] ^= 1 << chance.randrange(8)
            case 1:
                del data[place : place + chance.randrange(1, 40)]
            case 2:
                data[place:place] = data[place : place + chance.randrange(1, 200)]
            case 3:
                data[place:place] = chance.choice(TELLING)
            case 4:
                digits = [index for index, byte in enumerate(data) if chr(byte).isdigit()]
                data[(index := chance.choice(digits)) : index + 1] = chance.choice(NUMBERS)
        if not data:
            break
    return bytes(data)


TELLING = (b"\xff", b"\x00", b"\\ud800", b"\\u0000", b"\\u001b[31m", b'"', b"null", b"-1", b"1e999", b"[", b"}")
NUMBERS = (b"0", b"-0", b"9" * 25, b"9" * 400, b"1e308", b"1.5", b"-7", b"18446744073709551615", b"0xffffffffffffffff")

if __name__ == "__main__":  # longer: python tests/unit/records/test_report_file.py 100000
    MUTATIONS = int(sys.argv[1])
    test_mutated_reports_are_read_and_shown_or_refused()


def test_text_that_is_not_utf8_does_not_lose_the_report() -> None:
    crash = Crash(outcome=Outcome(kind="ok"), method="status", program=Program(command=("prog", "caf\udce9")))
    report = report_file.from_json(report_file.to_json(report_file.Report(outcome=crash.outcome, crash=crash)))
    assert report.crash.program.command == ("prog", "caf\\udce9")
