"""Secrets planted everywhere in a program that really dies: no report, page or file has them."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from faultlens.records import report_file

TOKEN = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ"
PASSWORD = "correct-horse-battery"
FROM_FILE = "wrong-pony-capacitor"
ARGUMENT = "s3cr3t-argument"
IN_MODULE = "mauve-otter-sings"
AWAY = "teal-heron-waits"
JOINED = "violet-finch"
PLANTED = (TOKEN, PASSWORD, FROM_FILE, ARGUMENT, IN_MODULE, AWAY, JOINED, "swordfish9")

PROGRAM = f'''\
import ctypes, os, sys
import helper

PHRASE = "{AWAY}"  # {AWAY}, far from the line that dies


def unrelated():
    return "{AWAY}"


def work():
    login("{TOKEN}")


def login(token):
    print("phrase", os.environ["DB_PASSWORD"], "then", open(".env").read().split("=")[1], flush=True)
    print("password=swordfish9", file=sys.stderr, flush=True)
    print("Command", ["mysql", "-p{JOINED}"], "failed; arguments", sys.argv[1:], file=sys.stderr, flush=True)
    print("https://ada:swordfish9@example.org/", file=sys.stderr, flush=True)
    ctypes.string_at(0)


work()
'''
ENV = {"DB_PASSWORD": PASSWORD, "TF_MY_NOTE": PASSWORD, "RAY_thing": TOKEN, "OMP_NUM_THREADS": "2"}


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "helper.py").write_text(f"KEEP_OUT = '{IN_MODULE}'\n\n\ndef helps():\n    return KEEP_OUT\n")
    (tmp_path / ".env").write_text(f"API_TOKEN={FROM_FILE}\n")
    for name in ("train.py", "helper.py"):
        os.utime(tmp_path / name, (0, 0))
    return tmp_path


def test_no_report_has_them(run, planted: Path) -> None:
    targets = {f"--{kind}": planted / f"out.{kind}" for kind in ("html", "markdown", "sarif")}
    options = ["-v", *(str(word) for pair in targets.items() for word in pair)]
    done = run([sys.executable, "train.py", ARGUMENT, f"-p{ARGUMENT}"], env=ENV, options=options)
    written = [planted / "report.json", *targets.values(), *done.saved, done.saved[0].with_name("summary.json")]
    everything = {path.name: path.read_text() for path in written}
    # Its own output comes through the terminal as always.
    everything["screen"] = done.stderr.split("https://ada:swordfish9@example.org/", 1)[1]
    found = [(name, secret) for name, text in everything.items() for secret in PLANTED if secret in text]
    assert not found
    assert "<redacted>" in (done.died.output.stdout or "")
    assert done.died.program.environment["OMP_NUM_THREADS"] == "2"
    assert [stat.S_IMODE(path.stat().st_mode) for path in written] == [0o600] * len(written)


def test_the_line_that_dies_is_kept_and_the_files_are_known_by_their_digest(run, planted: Path) -> None:
    crash = run([sys.executable, "train.py"], env=ENV).died
    text = crash.sources[str(planted / "train.py")]
    lines = text.split("\n")
    assert lines[19] == "    ctypes.string_at(0)"
    assert lines[10:12] == ["def work():", '    login("<redacted>")']
    assert "unrelated" not in text and "import ctypes, os, sys" in text
    assert {Path(path).name for path in crash.sources} == {"train.py"}
    assert {Path(path).name for path in crash.source_digests} == {"train.py", "helper.py"}


def test_without_sources(run, planted: Path) -> None:
    crash = run([sys.executable, "train.py"], env=ENV, options=["--no-sources"]).died
    assert crash.sources == {}
    assert len(crash.source_digests) == 2
    assert "ctypes.string_at(0)" not in (planted / "report.json").read_text()


def test_unredacted_keeps_everything(run, planted: Path) -> None:
    run([sys.executable, "train.py", ARGUMENT], env=ENV, options=["--unredacted"])
    report = report_file.read(planted / "report.json")
    assert report.crash.sources[str(planted / "train.py")] == PROGRAM
    text = (planted / "report.json").read_text()
    assert all(secret in text for secret in PLANTED)


@pytest.mark.parametrize("words", [["-uc"], ["-Ic"], ["-c"]])
def test_code_on_the_command_line_is_not_kept(run, words: list[str], tmp_path: Path) -> None:
    done = run([sys.executable, *words, f"phrase = '{AWAY}'; import os; os.abort()"])
    assert AWAY not in (tmp_path / "report.json").read_text()
    assert done.died.program.command[1:] == (*words, "<redacted>")


def test_a_child_with_an_environment_of_its_own(run, planted: Path) -> None:
    """The value is in no environment that faultlens itself has."""
    code = "import ctypes, os; print('phrase', os.environ['API_TOKEN'], flush=True); ctypes.string_at(0)"
    (planted / "start.sh").write_text(f'API_TOKEN={AWAY} {sys.executable} -c "{code}"\nexit 3\n')
    done = run(["sh", "start.sh"])
    assert done.died.children[0].output.stdout == "phrase <redacted>\n"
    assert AWAY not in (planted / "report.json").read_text()


def test_a_file_that_is_there_keeps_its_mode(run, tmp_path: Path) -> None:
    target = tmp_path / "shared.html"
    target.write_text("")
    target.chmod(0o664)
    run("import os; os.abort()", options=["--html", str(target)])
    assert target.read_text().startswith("<!")
    assert stat.S_IMODE(target.stat().st_mode) == 0o664
