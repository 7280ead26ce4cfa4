"""The user's program is found in the report again, with what it needs to run."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from msgspec.structs import replace

import recorded
from faultlens.records.crash import Crash, Fault, Frame, Library, Outcome, Program, Thread
from faultlens.records.report_file import Report
from faultlens.repro.reproduce import crash_to_reproduce
from faultlens.repro.script import NoScriptError, UserScript, files_in_use, slow_modules, user_script, with_lines_before


def crash(folder: Path, *command: str, sources: dict[str, str] | None = None, **facts: object) -> Crash:
    program = Program(command=command, directory=str(folder), environment=facts.pop("environment", {}))  # type: ignore[arg-type]
    return recorded.ended(program=program, sources=sources or {}, **facts)


def found(folder: Path, *command: str, text: str = "print(1)\n", **facts: object) -> UserScript:
    (folder / "train.py").write_text(text)
    return user_script(crash(folder, *command, sources={str(folder / "train.py"): text}, **facts))


@pytest.mark.parametrize(
    "command",
    [
        ("python", "train.py"),
        ("/venv/bin/python3.11", "-u", "-X", "dev", "train.py"),
        ("python", "-m", "train"),
        ("python", "-Wignore", "-mtrain"),
    ],
)
def test_the_script_of_a_command(tmp_path: Path, command: tuple[str, ...]) -> None:
    script = found(tmp_path, *command)
    assert script.sources == {"reproduce.py": "print(1)\n"}
    assert not script.lost
    assert not script.differs


def test_arguments_become_part_of_the_script(tmp_path: Path) -> None:
    script = found(tmp_path, "python", "train.py", "--epochs", "3", text="from __future__ import annotations\nx = 1\n")
    assert script.sources["reproduce.py"] == (
        "from __future__ import annotations\nimport sys\nsys.argv[1:] = ['--epochs', '3']\nx = 1"
    )


def test_what_was_not_recorded_is_told(tmp_path: Path) -> None:
    script = found(
        tmp_path,
        *("python", "train.py", "--data", "<redacted>"),
        text="import os\nprint(os.environ['DATA'])\n",
        environment={"DATA": "<redacted>", "OTHER": "<redacted>"},
    )
    assert script.lost == ("its arguments", "the variable DATA")
    assert "argv" not in script.sources["reproduce.py"]


def test_a_file_that_changed_since(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(2)\n")
    script = user_script(crash(tmp_path, "python", "train.py", sources={str(tmp_path / "train.py"): "print(1)\n"}))
    assert script.sources["reproduce.py"] == "print(1)\n"  # what crashed, not what is there now
    assert script.differs == ("train.py",)


def test_the_rest_of_a_file_is_read_where_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("a = 1\nb = 2\n")
    digests = {str(path): hashlib.sha256(path.read_bytes()).hexdigest()}
    for sources in ({str(path): "\nb = 2\n"}, {}):
        script = user_script(crash(tmp_path, "python", "train.py", sources=sources, source_digests=digests))
        assert script.sources == {"reproduce.py": "a = 1\nb = 2\n"}
        assert not script.differs
    path.write_text("a = 2\nb = 2\n")
    with pytest.raises(NoScriptError, match=r"train\.py is not what it was"):
        user_script(crash(tmp_path, "python", "train.py", sources=sources, source_digests=digests))


def test_modules_and_data_come_along(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "words.txt").write_text("alpha\n")
    (tmp_path / "unused.txt").write_text("beta\n")
    text = "import lib.helper\nopen('words.txt')\nopen('/etc/hostname')\nopen('../words.txt')\n"
    (tmp_path / "train.py").write_text(text)
    sources = {str(tmp_path / "train.py"): text, str(tmp_path / "lib/helper.py"): "x = 1", "/elsewhere/b.py": "y = 2"}
    script = user_script(crash(tmp_path, "python", "train.py", sources=sources))
    assert sorted(script.sources) == ["lib/helper.py", "reproduce.py"]
    assert script.data == {"words.txt": b"alpha\n"}
    assert files_in_use({"reproduce.py": "print(1)"}, script.data) == {}
    assert files_in_use({"reproduce.py": "open('words.txt')"}, script.data) == script.data


def test_a_library_is_named_instead_of_found_through_the_environment(tmp_path: Path) -> None:
    text = "import os, tensorflow as tf\nlib = tf.load_op_library(os.environ['OP'])\n"
    libraries = (Library(path="/home/ada/op.so", start=0), Library(path="/usr/lib/libc.so.6", start=0))
    script = found(tmp_path, "python", "train.py", text=text, libraries=libraries)
    assert "tf.load_op_library('/home/ada/op.so')" in script.sources["reproduce.py"]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("python", "-c", "<redacted>"), "-c"),
        (("python", "-uc", "<redacted>"), "-c"),
        (("python", "other.py"), "other.py is not in the report"),
        (("python", "-m", "other"), "module other"),
        ((), "does not tell"),
    ],
)
def test_why_there_is_no_script(tmp_path: Path, command: tuple[str, ...], why: str) -> None:
    with pytest.raises(NoScriptError, match=why):
        user_script(crash(tmp_path, *command))


def test_a_program_started_by_another_name(tmp_path: Path) -> None:
    path = str(tmp_path / "tool.py")
    frames = (
        Frame(kind="python", function="main", file=path, line=1),
        Frame(kind="python", function="<module>", file=path, line=2),
    )
    threads = (Thread(id=1, crashed=True, launched=True, frames=frames),)
    script = user_script(crash(tmp_path, "/usr/bin/tool", sources={path: "main()"}, threads=threads))
    assert script.path == path


def test_a_process_that_the_program_started(tmp_path: Path) -> None:
    """Its command line may be anything; what is run again is the program."""
    child = replace(crash(tmp_path, "python", "-c", "<redacted>", sources={"/lab/work.py": "def f(): ..."}), pid=8)
    child = replace(child, fault=Fault(signal="SIGSEGV", code="SEGV_MAPERR", thread=8))
    program = Program(command=("python", "train.py"), directory=str(tmp_path))
    parent = Crash(outcome=Outcome(kind="ok", exit_code=0), method="status", program=program, children=(child,))
    found = crash_to_reproduce(Report(outcome=parent.outcome, crash=parent))
    assert found.pid == 8
    assert found.program.command == ("python", "train.py")
    assert found.sources == {"/lab/work.py": "def f(): ..."}


def test_what_takes_long_to_import() -> None:
    assert slow_modules({"reproduce.py": "import tensorflow as tf", "a.py": "import numpy"}) == ["numpy", "tensorflow"]
    assert slow_modules({"reproduce.py": "import ctypes"}) == []


def test_lines_before_a_program_that_is_no_program() -> None:
    assert with_lines_before("not (", ["import os"]) == "not ("
