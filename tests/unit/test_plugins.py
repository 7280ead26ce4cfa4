"""Causes, checks, rules about ops and formats of other distributions, installed as pip installs them."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from faultlens import rules
from faultlens.custom_op.check import rules as op_rules
from faultlens.custom_op.check.rule import Rule as OpRule
from faultlens.data import formats
from faultlens.diagnosis import causes
from faultlens.diagnosis.causes.base import Cause
from faultlens.diagnosis.rank import diagnose
from faultlens.doctor import checks
from faultlens.plugins import plugged
from recorded import ended

# Without what they remember: other tests go on with that.
all_causes, all_checks = causes.catalogue.__wrapped__, checks.catalogue.__wrapped__
all_op_rules, all_formats = op_rules.catalogue.__wrapped__, formats.formats.__wrapped__

SOURCE = '''
from faultlens.custom_op.check.rule import Rule
from faultlens.data.formats.base import Format
from faultlens.diagnosis.causes.base import PROVEN, Cause, Finding, evidence
from faultlens.doctor.check import Check


class Overheated(Cause):
    """
    ## What it is
    The machine was too hot.
    """

    slug, code, headline = "overheated", "LAB101", "The machine was too hot"

    def examine(self, case):
        facts = evidence(("88 degrees", "sensor"), ("the fan stood still", "sensor"))
        return Finding(strength=PROVEN, title="too hot", evidence=facts, fixes=())


class Raises(Overheated):
    slug, code = "raises", "LAB102"

    def examine(self, case):
        raise KeyError("no sensor")


class AnswersNonsense(Overheated):
    slug, code = "answers-nonsense", "LAB103"

    def examine(self, case):
        return "hot"


class TakesASlug(Overheated):
    slug, code = "stack-overflow", "LAB104"


class TakesACode(Overheated):
    slug, code = "cold", "fl206"


class WithoutCode(Cause):
    slug, headline = "without-code", "It has no code"

    def examine(self, case):
        return None


class Abstract(Cause):
    slug, code, headline = "abstract", "LAB105", "It does nothing"


class Fan(Check):
    """Looks at the fan."""

    name, looks_at = "fan", "whether the fan turns"

    def examine(self, patient):
        return self.fine("it turns")


class NoGoto(Rule):
    """Says where goto is used."""

    slug, code, headline, severity = "no-goto", "LAB201", "goto is used", "note"


class Lab(Format):
    name, suffixes = "lab notes", (".lab",)

    def begins(self, head):
        return head.startswith(b"LAB")

    def check(self, source, piece, look):
        pass


NOT_A_CLASS = 1
'''


def install(folder: Path, entry_points: dict[str, list[str]], source: str = SOURCE, name: str = "lab") -> None:
    """A distribution as it lies in site-packages; an entry point is named like its class."""
    (folder / f"{name}_causes.py").write_text(source)
    metadata = folder / f"{name}_causes-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-causes\nVersion: 1.0\n")
    groups = (
        f"[{group}]\n" + "\n".join(f"{each} = {name}_causes:{each}" for each in names)
        for group, names in entry_points.items()
    )
    (metadata / "entry_points.txt").write_text("\n".join(groups))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for module in [name for name in sys.modules if name.endswith("_causes")]:
        del sys.modules[module]


def faultlens(site: Path, *words: str) -> tuple[str, str]:
    variables = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-m", "faultlens", *words], env=variables, capture_output=True, text=True, check=True
    )
    return done.stdout, done.stderr


def test_all_four_kinds(tmp_path: Path) -> None:
    install(
        tmp_path,
        {
            "faultlens.causes": ["Overheated"],
            "faultlens.checks": ["Fan"],
            "faultlens.op_rules": ["NoGoto"],
            "faultlens.formats": ["Lab"],
        },
    )
    listed, said = faultlens(tmp_path, "causes")
    assert "From lab_causes\n  LAB101  overheated" in listed and said == ""
    assert (
        json.loads(faultlens(tmp_path, "causes", "lab101", "--json", "-")[0])["headline"] == "The machine was too hot"
    )
    assert "whether the fan turns" in faultlens(tmp_path, "doctor", "--list")[0].splitlines()[-1]
    assert faultlens(tmp_path, "op", "check", "--explain", "no-goto")[0].startswith(
        "LAB201 no-goto (note): goto is used"
    )
    (tmp_path / "a.lab").write_bytes(b"LAB1")
    scanned = json.loads(faultlens(tmp_path, "scan", str(tmp_path / "a.lab"), "--json", "-")[0])
    assert (scanned["files_checked"], scanned["files_passed_over"]) == (1, 0)


def test_a_cause_of_others_is_ranked_with_ours(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, {"faultlens.causes": ["Overheated"]})
    monkeypatch.setattr("faultlens.diagnosis.rank.catalogue", all_causes)
    assert diagnose(ended()).diagnoses[0].cause == "overheated"


BROKEN = {
    "TakesASlug": "the slug stack-overflow is that of faultlens.diagnosis.causes.limits.stack_overflow:StackOverflow",
    "TakesACode": "the code fl206 is that of faultlens.diagnosis.causes.limits.stack_overflow:StackOverflow",
    "WithoutCode": "it has no code",
    "Abstract": "TypeError: Can't instantiate abstract class Abstract",
    "NOT_A_CLASS": "it is not a class derived from faultlens.diagnosis.causes.base.Cause",
    "Fan": "it is not a class derived from faultlens.diagnosis.causes.base.Cause",
    "Missing": "AttributeError: ",
}


@pytest.mark.parametrize("name", BROKEN)
def test_one_that_is_broken_costs_one_line(name: str, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(site, {"faultlens.causes": [name]})
    assert [cause.slug for cause in all_causes()] == [cause.slug for cause in causes.catalogue()]
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith(f"faultlens: the plugin lab_causes:{name} is left out: {BROKEN[name]}")


@pytest.mark.parametrize(
    "source", ["def (", "import no_such_module_anywhere", "raise SystemExit(3)", "raise ValueError('a\\nb\\x1b[31m')"]
)
def test_one_that_cannot_be_imported_costs_one_line(
    source: str, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(site, {"faultlens.checks": ["Fan"], "faultlens.op_rules": ["NoGoto"], "faultlens.formats": ["Lab"]}, source)
    assert all(map(len, (all_checks(), all_op_rules(), all_formats())))
    said = capsys.readouterr().err
    assert said.count("\n") == said.count("faultlens: the plugin lab_causes:") == 3 and "\x1b" not in said


@pytest.mark.parametrize(("name", "because"), [("Raises", "KeyError"), ("AnswersNonsense", "TypeError")])
def test_one_that_fails_costs_one_line_and_no_verdict(
    name: str, because: str, site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = diagnose(ended())
    install(site, {"faultlens.causes": [name]})
    with_plugin = all_causes()
    assert len(with_plugin) == len(causes.catalogue()) + 1
    monkeypatch.setattr("faultlens.diagnosis.rank.catalogue", lambda: with_plugin)
    assert diagnose(ended()) == diagnose(ended()) == usual
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"lab_causes:{name} is left out: {because}" in said


def test_two_of_the_same_name(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("lab", "other"):
        install(site, {"faultlens.causes": ["Overheated"]}, name=name)
    assert [cause.family for cause in all_causes() if cause.slug == "overheated"] == ["lab_causes"]
    assert "other_causes:Overheated is left out: the slug overheated is that of" in capsys.readouterr().err


def test_our_own_must_be_unique(site: Path) -> None:
    package = site / "two_of_causes"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for name in ("one", "two"):
        text = "from faultlens.rules import Rule\nclass It(Rule):\n    slug, code, headline = 'it', 'X1', 'It'\n"
        (package / f"{name}.py").write_text(text)
    importlib.import_module("two_of_causes")
    with pytest.raises(TypeError, match=r"two_of_causes\.two:It: the slug it is that of two_of_causes\.one:It"):
        rules.collect("two_of_causes", rules.Rule, "faultlens.none")


def test_codes_are_unique_among_all_kinds() -> None:
    known: list[Cause | OpRule] = [*causes.catalogue(), *op_rules.catalogue()]
    assert len({rule.code for rule in known}) == len(known)


def test_nothing_is_plugged_in_where_nothing_is_installed() -> None:
    assert plugged("faultlens.nothing", rules.Rule) == []
