"""Which source files travel with a crash: those on the stack, and the user's modules that they import."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from msgspec.structs import replace

from faultlens.records.crash import Crash, Frame, Outcome, Program, Thread
from faultlens.supervise.sources import own_sources, with_sources, without_sources


def crashed(folder: Path, *files: str, command: tuple[str, ...] = ()) -> Crash:
    for path in folder.rglob("*.py"):
        os.utime(path, (0, 0))
    frames = tuple(Frame(kind="python", function="f", file=name, line=1) for name in files)
    return Crash(
        outcome=Outcome(kind="signal", signal="SIGSEGV"),
        method="agent",
        time=1e9,
        program=Program(directory=str(folder), command=command),
        threads=(Thread(id=1, frames=frames, crashed=True, launched=True),),
    )


def test_modules_beside_the_program_come_along(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "main.py").write_text("import os, helper\nfrom pkg import buffers\n")
    (tmp_path / "helper.py").write_text("x = 1\n")
    (tmp_path / "pkg" / "buffers.py").write_text("import helper\n")
    (tmp_path / "unused.py").write_text("secret = 1\n")
    found = own_sources(crashed(tmp_path, "main.py"))
    assert [Path(path).name for path in found] == ["main.py", "helper.py", "buffers.py"]


def test_only_lines_near_frames_and_those_that_rules_read_are_kept(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("f()\n" + "private = 'x'\n" * 20 + "import helper\n")
    (tmp_path / "helper.py").write_text("private = 'x'\n")
    crash = crashed(tmp_path, "main.py")
    kept = with_sources(crash)
    assert kept.sources == {"main.py": "f()\nprivate = 'x'\n" + "\n" * 19 + "import helper\n"}
    assert kept.source_digests["main.py"] == hashlib.sha256((tmp_path / "main.py").read_bytes()).hexdigest()
    assert len(kept.source_digests) == 2
    whole = with_sources(replace(crash, program=replace(crash.program, redacted=False)))
    assert whole.sources["main.py"] == (tmp_path / "main.py").read_text()
    assert without_sources(kept).sources == {}


def test_without_a_stack_the_script_itself(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("pass\n")
    assert list(own_sources(crashed(tmp_path, command=("python", "main.py", "--x")))) == ["main.py"]


def test_files_that_changed_since_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("pass\n")
    crash = crashed(tmp_path, "main.py")
    os.utime(tmp_path / "main.py", (2e9, 2e9))
    assert own_sources(crash) == {}


def test_a_file_that_cannot_be_parsed_still_counts(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import helper\ndef broken(:\n")
    assert list(own_sources(crashed(tmp_path, "main.py"))) == ["main.py"]
