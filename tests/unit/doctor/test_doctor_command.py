"""`faultlens doctor`, as a user types it: the list, the screen, JSON, repairs, and bad input."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import msgspec
import pytest

import places
from faultlens.cli import main, output
from faultlens.doctor import checks, examine
from faultlens.doctor.check import Check, fix
from faultlens.doctor.checks.packages.python import Python
from faultlens.errors import FaultlensError
from faultlens.records.diagnosis import Evidence, Fix
from faultlens.records.finding import Checkup, Examination, Finding, Repair
from faultlens.report.checkup import render
from faultlens.target_env.target import Options, TargetEnvironment, meet

SCHEMA = places.ROOT / "docs" / "checkup.schema.json"


class Leftover(Check):
    """Finds a file that can be moved aside: a whole check in a few lines."""

    name = "leftover"
    looks_at = "a file named leftover in the working folder"
    position = 1

    def examine(self, target: TargetEnvironment) -> Examination:
        path = target.directory / "leftover"
        moved = target.directory / "moved"
        if not path.exists():
            return self.fine("nothing was left over")
        repair = Repair(commands=(("mv", str(path), str(moved)),), undo=(("mv", str(moved), str(path)),))
        command = f"mv {path} {moved}"
        return self.found(
            [self.error(f"{path} was left over", [("it is there", "file")], [fix("move it", command)], repair=repair)]
        )


class Broken(Check):
    """A check with a bug."""

    name = "broken"
    looks_at = "nothing"
    position = 2

    def examine(self, target: TargetEnvironment) -> Examination:  # noqa: ARG002
        raise ZeroDivisionError("in a check")


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Only the two checks above, in an empty folder."""
    monkeypatch.setattr(examine, "catalogue", lambda: (Leftover(), Broken()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_check_is_complete() -> None:
    from faultlens.diagnosis.causes import find

    known = checks.catalogue()
    assert len(known) > 10
    assert len({check.name for check in known}) == len(known)
    for check in known:
        assert check.name == check.name.lower() and " " not in check.name
        assert check.looks_at and check.explanation
        assert all(find(slug) for slug in check.causes), check.name


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--list"]) == 0
    shown = capsys.readouterr().out
    assert all(check.name in shown for check in checks.catalogue())
    assert main(["doctor", "--list", "--json", "-"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [each["check"] for each in listed] == [check.name for check in checks.catalogue()]


@pytest.mark.usefixtures("only")
def test_a_check_that_fails_costs_its_own_line_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    jsonschema.validate(told, json.loads(SCHEMA.read_text()))
    assert [each["mark"] for each in told["examinations"]] == ["ok", "skipped"]
    assert told["examinations"][1]["summary"] == "this check failed: ZeroDivisionError: in a check"


def test_findings_end_with_one(only: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (only / "leftover").touch()
    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert f"$ mv {only / 'leftover'} {only / 'moved'}\n" in shown
    assert "1 error, 0 warnings." in shown
    assert main(["doctor", "broken"]) == 0


def test_dry_run_shows_and_does_nothing(only: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (only / "leftover").touch()
    assert main(["doctor", "--dry-run"]) == 1
    told = capsys.readouterr().err
    assert f"$ mv {only}/leftover {only}/moved" in told
    assert f"$ mv {only}/moved {only}/leftover" in told
    assert (only / "leftover").exists()


def test_fix_repairs_looks_again_and_can_be_undone(only: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (only / "leftover").touch()
    assert main(["doctor", "--fix", "--yes"]) == 0
    told = capsys.readouterr().err
    assert "Looked again: nothing left." in told
    assert (only / "moved").exists() and not (only / "leftover").exists()
    undo = told.split("take it back:\n")[1].splitlines()[0].strip().removeprefix("$ ")
    assert undo == f"mv {only}/moved {only}/leftover"


def test_fix_asks(only: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (only / "leftover").touch()
    assert main(["doctor", "--fix"]) == 2  # nobody to ask
    assert "Add --yes." in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: "n")
    assert main(["doctor", "--fix"]) == 1
    assert (only / "leftover").exists()
    monkeypatch.setattr("builtins.input", lambda _: "y")
    assert main(["doctor", "--fix"]) == 0
    assert not (only / "leftover").exists()


def test_a_repair_that_fails_is_told(only: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (only / "leftover").touch()
    (only / "moved").mkdir()
    (only / "moved" / "leftover").mkdir()  # mv cannot replace a folder by a file
    assert main(["doctor", "--fix", "--yes"]) == 1
    assert "That failed with exit status 1." in capsys.readouterr().err


def test_bad_input_gets_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for arguments, told in (
        (["nunpy-abi"], "There is no check 'nunpy-abi'."),
        (["--python", str(tmp_path / "none")], "There is no program"),
        (["--python", str(tmp_path)], "has no bin/python."),
        (["--op", str(tmp_path / "none.so")], "There is no "),
        (["--save-to", __file__], "is not a folder."),
        (["--model", str(tmp_path / "none.keras")], "There is no "),
    ):
        assert main(["doctor", *arguments]) == 2
        error = capsys.readouterr().err
        assert told in error
        assert error.count("\n") == 1


def test_hostile_text_is_not_obeyed() -> None:
    finding = Finding(
        check="x",
        severity="error",
        title="evil\x1b[2Jname",
        evidence=(Evidence(fact="a\x1b]0;title\x07b", source="file"),),
        fixes=(Fix(title="t", command="echo \x1b[31mred"),),
    )
    examination = Examination(check="x", mark="error", summary="[bold]\x1b[2J", findings=(finding,))
    stream = io.StringIO()
    render(Checkup(python="/x\x1b[2J", examinations=(examination,)), console=output.console(stream), verbose=True)
    assert "\x1b" not in stream.getvalue()
    assert "[bold]" in stream.getvalue()
    assert "$ echo red" in stream.getvalue()


def test_a_long_command_is_not_broken() -> None:
    command = "python -m pip install " + " ".join(f"'package{number}<1.0'" for number in range(20))
    finding = Finding(check="x", severity="warning", title="t", evidence=(), fixes=(Fix(title="t", command=command),))
    examination = Examination(check="x", mark="warning", summary="s", findings=(finding,))
    stream = io.StringIO()
    render(Checkup(python="p", examinations=(examination,)), console=output.console(stream))
    assert f"$ {command}\n" in stream.getvalue()


# --------------------------------------------------------------------------------------------- the interpreter


def test_a_python_that_does_not_run_is_read_from_its_folders(tmp_path: Path) -> None:
    dead = tmp_path / "env" / "bin" / "python"
    dead.parent.mkdir(parents=True)
    dead.write_text("#!/bin/sh\necho broken >&2\nkill -SEGV $$\n")
    dead.chmod(0o755)
    packages = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    (packages / "tensorflow").mkdir(parents=True)
    (packages / "tensorflow_cpu-2.15.1.dist-info").mkdir()
    target = meet(Options(python=str(tmp_path / "env")))
    assert target.interpreter.problem == "it ended with signal 11: broken"
    assert target.interpreter.version == (3, 11)
    assert target.tensorflow is not None and target.tensorflow.version == "2.15.1"


def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "python").write_text("\x7fELFgarbage")
    (tmp_path / "python").chmod(0o755)
    with pytest.raises(FaultlensError, match="Cannot run"):
        meet(Options(python=str(tmp_path / "python")))


def test_our_own_python_is_asked() -> None:
    target = meet(Options(python=sys.executable))
    assert target.interpreter.version == sys.version_info[:3]
    assert target.interpreter.prefix == sys.prefix
    assert target.distribution("msgspec") is not None
    assert msgspec.__file__.rpartition("/")[0] in {str(path.parent) for path in target.native_files}


def test_a_program_that_is_no_python(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--python", "/bin/ls"]) == 2
    assert "ls is not a Python interpreter: " in capsys.readouterr().err


def test_a_python_that_dies_is_a_finding(tmp_path: Path) -> None:
    dead = tmp_path / "bin" / "python"
    dead.parent.mkdir()
    dead.write_text("#!/bin/sh\nexit 3\n")
    dead.chmod(0o755)
    (tmp_path / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    found = Python().examine(meet(Options(python=str(tmp_path))))
    assert found.mark == "error"
    assert found.summary == "Python itself does not start: it ended with exit status 3"


def test_files_that_hide_the_standard_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "random.py").touch()
    (tmp_path / "train.py").touch()
    (tmp_path / "code").mkdir()  # a folder without __init__.py hides nothing
    monkeypatch.chdir(tmp_path)
    found = Python().examine(meet(Options(python=sys.executable)))
    assert found.mark == "warning"
    assert found.findings[0].fixes[0].command == f"cd {tmp_path} && mv random.py my_random.py"
    program = "import random, sys; sys.exit(not hasattr(random, 'Random'))"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 1
    subprocess.run(found.findings[0].fixes[0].command, shell=True, check=True)
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
    assert Python().examine(meet(Options(python=sys.executable))).mark == "ok"


def test_we_do_not_take_the_users_modules_for_ours(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit('the wrong random')")
    done = subprocess.run([sys.executable, "-m", "faultlens", "doctor", "python"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 1
    assert b"random.py" in done.stdout


@pytest.mark.parametrize(("streams", "status"), [(">/dev/full", 2), (">&-", 0), (">&- 2>&- <&-", 0)])
def test_streams_that_are_full_or_closed(streams: str, status: int) -> None:
    command = f"{sys.executable} -m faultlens doctor cpu {streams}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert ("No space left" in done.stderr) == (status == 2)


def test_a_working_folder_that_is_gone(tmp_path: Path) -> None:
    command = (
        f"mkdir gone && cd gone && rmdir ../gone && {sys.executable} -m faultlens doctor --python {sys.executable}"
    )
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode in (0, 1)
    assert "this check failed" not in done.stdout


def test_nothing_is_written_into_the_environment(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    packages = next((tmp_path / "env").glob("lib/python3*/site-packages"))
    (packages / "hook.py").write_text("")
    (packages / "hook.pth").write_text("import hook\n")
    before = sorted((tmp_path / "env").rglob("*"))
    assert main(["doctor", "--python", str(tmp_path / "env"), "--json", str(tmp_path / "told.json")]) in (0, 1)
    assert sorted((tmp_path / "env").rglob("*")) == before


def test_a_reader_that_went_away_is_no_finding() -> None:
    command = f"{sys.executable} -m faultlens doctor --list -v | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode in (0, 141)  # as other tools end; 0: all of it fitted into the pipe
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("summary", "words"),
    [
        ("none given (--op)", "Nothing found that will crash."),
        ("this check failed", "Nothing found that will crash in what was checked; 1 check could not be made (·)."),
    ],
)
def test_what_was_not_checked_is_not_called_well(summary: str, words: str) -> None:
    done = Examination(check="python", mark="ok", summary="it starts")
    skipped = Examination(check="custom-op", mark="skipped", summary=summary)
    stream = io.StringIO()
    render(Checkup(python="python", examinations=(done, skipped)), console=output.console(stream))
    assert words in stream.getvalue().splitlines()
