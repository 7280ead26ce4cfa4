"""`faultlens show`, as a user types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import recorded
from faultlens.cli import main
from faultlens.records import report_file
from faultlens.report.make import make_report
from faultlens.store import folder


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_latest(capsys: pytest.CaptureFixture[str]) -> None:
    stored = folder.save(recorded.report("killed_for_memory"))
    assert main(["show"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("error[FL")
    assert "█ is the limit of the cgroup, 1.5 GiB\n" in shown
    assert main(["show", "-v"]) == 0
    assert str(stored) in capsys.readouterr().out
    assert main(["show", "-v", stored.parent.name[-8:]]) == 0
    assert "oom kills        3 → 4" in capsys.readouterr().out


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--list"]) == 0
    assert "There are no reports" in capsys.readouterr().out
    stored = folder.save(recorded.report("abort_by_check"))
    assert main(["show", "--list"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(stored.parent.name[-8:] + "  2025-11-1")
    assert "python died by SIGABRT in prepare.py:18 (shards)" in shown
    assert main(["show", "--list", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["signal"] == "SIGABRT"


def test_list_says_what_is_kept(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder.save(recorded.report("abort_by_check"))
    assert main(["show", "--list"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "1 report in " in shown
    assert "Kept: at most 100, 500 MiB in all (FAULTLENS_KEEP, " in shown
    assert "made room" not in shown
    monkeypatch.setenv("FAULTLENS_KEEP", "1")
    folder.save(recorded.report("bus_truncated_file"))
    assert main(["show", "--list"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Kept: at most 1," in shown
    assert "At least 1 older one made room, the last on 20" in shown
    monkeypatch.setenv("FAULTLENS_KEEP", "some")
    assert main(["show", "--list"]) == 0
    assert "FAULTLENS_KEEP=some cannot be understood." in " ".join(capsys.readouterr().out.split())


def test_where_others_can_write_it_is_shown_with_a_warning(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder.save(recorded.report("killed_for_memory"))
    assert main(["show"]) == 0
    assert capsys.readouterr().err == ""
    home.chmod(0o777)
    assert main(["show"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("error[FL")
    assert f"Other users can write to {home}, and may have written this report. Say `chmod 700 {home}`" in shown.err


def test_json(capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    recorded_report = recorded.report("bus_truncated_file")
    report = make_report(recorded_report.crash)
    folder.save(recorded_report)  # without a verdict: it is made anew
    assert main(["show", "--json", "-"]) == 0
    assert report_file.from_json(capsysbinary.readouterr().out) == report
    assert main(["show", "--json", str(tmp_path / "out.json")]) == 0
    assert report_file.read(tmp_path / "out.json") == report
    assert capsysbinary.readouterr().out.startswith(b"error[FL")
    assert main(["show", "--json", "/dev/null"]) == 0


def test_formats(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder.save(recorded.report("abort_by_check"))
    paths = {name: str(tmp_path / name) for name in ("html", "markdown", "sarif", "json")}
    assert main(["show", *(word for name, path in paths.items() for word in (f"--{name}", path))]) == 0
    assert capsys.readouterr().out.startswith("error[FL")
    beginnings = {"html": "<!doctype html>", "markdown": "## ", "sarif": "{", "json": "{"}
    for name, path in paths.items():
        assert Path(path).read_text().lstrip().startswith(beginnings[name])
        assert main(["show", f"--{name}", "-"]) == 0
        assert capsys.readouterr().out == Path(path).read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["show"], "There are no reports"),
        (["show", "nonsense"], "There is no report 'nonsense'"),
        (["show", "DAMAGED"], "is damaged"),
        (["show", "TEXT"], "is not a faultlens report"),
        (["show", "GOOD", "--json", "/nowhere/x.json"], "Cannot write the report to /nowhere/x.json"),
        (["show", "GOOD", "--json", "/"], "Cannot write the report to /"),
        (["show", "GOOD", "--html", "/nowhere/x.html"], "Cannot write the report to /nowhere/x.html"),
        (["show", "GOOD", "--json", "-", "--sarif", "-"], "Only one format can go to standard output"),
    ],
)
def test_what_cannot_be_done(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = report_file.to_json(recorded.report("abort_by_check"))
    contents = {"GOOD": good, "DAMAGED": good.replace(b'"SIGABRT"', b"17"), "TEXT": b"hello"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    typed = [str(tmp_path / word) if word in contents else word for word in arguments]
    assert main(typed) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert "Traceback" not in captured.err


def test_a_reader_that_goes_away_is_no_error_message() -> None:
    folder.save(recorded.report("segv_in_custom_op"))
    command = [sys.executable, "-c", "import sys; from faultlens.cli import main; sys.exit(main(['show', '-v']))"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False, env={**os.environ})
    os.close(writer)
    assert done.stderr == b""


def test_where_to_read_on_names_the_report_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    name = folder.identity(folder.save(recorded.report("segv_in_custom_op")))
    folder.save(recorded.report("killed_for_memory"))
    assert main(["show", name]) == 0
    assert f"`faultlens show {name} -v`" in capsys.readouterr().out
