"""`faultlens causes`, the catalogue itself and the documentation that is written from it."""

from __future__ import annotations

import json
import re

import pytest

import places
from faultlens.cli import main
from faultlens.diagnosis.causes import by_family, catalogue, family_title, find
from faultlens.doctor.checks import catalogue as checks

ROOT = places.ROOT
HEADINGS = ["What it is", "How it looks", "How to prove it", "How to fix it"]


@pytest.mark.parametrize("cause", catalogue(), ids=lambda cause: cause.slug)
def test_each_cause_is_named_and_explained(cause: object) -> None:
    from faultlens.diagnosis.causes.base import Cause

    assert isinstance(cause, Cause)
    assert re.fullmatch(r"FL\d{3}", cause.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", cause.slug)
    assert cause.headline and "\n" not in cause.headline and len(cause.headline) < 100
    assert re.findall(r"^## (.*)$", cause.explanation, re.M) == HEADINGS
    assert find(cause.code.lower()) is find(cause.slug.upper()) is cause
    assert type(cause).__module__.endswith("." + cause.slug.replace("-", "_"))


def test_codes_and_names_are_unique_and_families_have_a_title() -> None:
    assert len({cause.code for cause in catalogue()}) == len({cause.slug for cause in catalogue()}) == len(catalogue())
    for family, causes in by_family().items():
        assert family_title(family) != family.replace("_", " "), f"{family} has no docstring"
        assert len({cause.code[:3] for cause in causes}) == 1, "a family has one range of codes"


def test_documentation_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import write_docs

    assert write_docs.outdated() == [], "run tools/write_docs.py"


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["causes"]) == 0
    shown = capsys.readouterr().out
    for cause in catalogue():
        assert f"  {cause.code}  {cause.slug} " in shown
    for family in by_family():
        assert f"{family_title(family)}\n" in shown


def test_one(capsys: pytest.CaptureFixture[str]) -> None:
    cause = catalogue()[0]
    for name in (cause.code, cause.code.lower(), cause.slug):
        assert main(["causes", name]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith(f"{cause.code} {cause.slug}: {cause.headline}\n\n## What it is\n")
        assert cause.explanation.splitlines()[-1] in shown


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["causes", "--json", "-"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [entry["code"] for entry in listed] == [cause.code for cause in catalogue()]
    assert main(["causes", catalogue()[0].slug, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == listed[0]
    assert set(listed[0]) == {"code", "cause", "family", "headline", "explanation"}


@pytest.mark.parametrize("name", ["", "zzzz", "\x1b[31m", "F" * 100_000, "[red]"])
def test_no_such_cause(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["causes", name]) == 2
    said = capsys.readouterr().err
    assert said.startswith("faultlens: There is no cause ")
    assert "\x1b" not in said and len(said) < 300


def test_near_matches(capsys: pytest.CaptureFixture[str]) -> None:
    slug = catalogue()[0].slug
    assert main(["causes", slug[1:]]) == 2
    assert f"Did you mean {slug}" in capsys.readouterr().err


def test_every_code_that_is_printed_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """Those of verdicts, "unknown" among them, of `faultlens op` and of `faultlens doctor`."""
    sources = [path.read_text() for path in (ROOT / "src" / "faultlens").rglob("*.py")]
    codes = {code for text in sources for code in re.findall(r"\"((?:FL|OP)\d{3})\"", text)}
    assert {"FL000", "FL501", "OP104", "OP301", "OP401"} <= codes
    for name in (*sorted(codes), *(check.name for check in checks())):
        assert main(["causes", name]) == 0, name
        said = capsys.readouterr().out
        assert said.startswith(f"{name}") and len(said.splitlines()) > 2
