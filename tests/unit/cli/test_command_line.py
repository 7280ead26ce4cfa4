"""What every verb says of options that it cannot take, and of files that it wrote."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import places
import recorded
from faultlens import cli
from faultlens.cli import main
from faultlens.store import folder


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from parsers(below)


def typed() -> Iterator[tuple[str, argparse.Action]]:
    for parser in parsers(cli._parser()):
        for action in parser._actions:
            if action.type not in (None, Path):
                yield f"{parser.prog} {action.option_strings[0]}", action


@pytest.mark.parametrize("value", ["abc", "", "-1.5e", "nan", "½", "1" * 5000])
@pytest.mark.parametrize("action", [pytest.param(action, id=name) for name, action in typed()])
def test_what_an_option_must_be_is_said_in_plain_words(action: argparse.Action, value: str) -> None:
    """argparse makes "invalid positive_seconds value" of a ValueError."""
    assert callable(action.type)
    try:
        action.type(value)
    except argparse.ArgumentTypeError as error:
        assert re.match(r"must be an? [a-z]", str(error))
        assert len(str(error)) < 200


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["show", "--html"],
        ["show", "--markdown"],
        ["show", "--sarif"],
        ["show", "--json"],
        ["show", "--list", "--json"],
        ["causes", "--json"],
        ["doctor", "--list", "--json"],
        ["op", "check", str(places.ROOT / "examples" / "careless_op.cc"), "--sarif"],
    ],
    ids=" ".join,
)
def test_a_file_that_was_written_is_named(words: list[str], home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder.save(recorded.report("segv_in_custom_op"))
    target = home / "out"
    main([*words, str(target)])
    assert capsys.readouterr().err.splitlines().count(f"faultlens: wrote {target}") == 1
    assert target.stat().st_size
    main([*words, "/dev/null"])
    assert "wrote" not in capsys.readouterr().err


def test_nothing_is_said_where_the_output_is_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    folder.save(recorded.report("segv_in_custom_op"))
    assert main(["show", "--json", "-"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) and said.err == ""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder", "Cannot run folder: it is a folder. Name a program in it."),
        (
            "notes.txt",
            "Cannot run notes.txt: the file is not executable. Name the program that runs it first, or make it",
        ),
        ("tool", "Cannot run tool: it is not on PATH. Write ./tool."),
        ("nothing", "Cannot run nothing: no such program. Check the spelling, or give its full path."),
    ],
)
def test_what_cannot_be_run(
    name: str, said: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "folder").mkdir()
    (home / "notes.txt").write_text("")
    (home / "tool").write_text("")
    (home / "tool").chmod(0o755)
    monkeypatch.chdir(home)
    assert main(["run", name]) == 2
    assert capsys.readouterr().err.startswith(f"faultlens: {said}")


@pytest.mark.parametrize(
    "words",
    [["run", "--timeout", "abc", "x.py"], ["run", "--capture", "all", "x.py"], ["show", "a", "b"], ["cure"], []],
    ids=" ".join,
)
def test_what_is_wrong_with_the_command_is_one_sentence(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith("faultlens: ") and said.count("\n") == 1
    assert "Try: faultlens" in said


def test_a_list_whose_reader_went_away_ends_quietly(home: Path) -> None:
    for _ in range(3):
        folder.save(recorded.report("segv_in_custom_op"))
    command = f"{sys.executable} -m faultlens show --list | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=home)
    assert done.returncode in (0, 141)
    assert done.stderr == ""


@pytest.mark.parametrize("option", ["--json", "--html", "--markdown", "--sarif"])
@pytest.mark.parametrize("target", ["nowhere/out", "folder"])
def test_where_nothing_can_be_written_nothing_is_started(
    option: str, target: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "folder").mkdir()
    assert main(["run", option, str(home / target), "--", "touch", str(home / "started")]) == 2
    assert capsys.readouterr().err.startswith(f"faultlens: Cannot write the report to {home / target}: ")
    assert not (home / "started").exists()


@pytest.mark.parametrize("words", [["show"], ["show", "--list"]], ids=" ".join)
def test_a_home_that_is_no_folder(
    words: list[str], home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "file").touch()
    monkeypatch.setenv("FAULTLENS_HOME", str(home / "file"))
    assert main(words) == 2
    assert capsys.readouterr().err.startswith(f"faultlens: {home / 'file'} is not a folder.")
