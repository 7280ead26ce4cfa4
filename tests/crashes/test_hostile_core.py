"""A core may name any file as the source of its code, or as mapped: what is read, and what is not."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from faultlens.inspection.memory import CoreMemory, Segment
from faultlens.supervise.source_folders import SourceFolders

PATTERN = Path("/proc/sys/kernel/core_pattern").read_text().strip()
needs_cores = pytest.mark.skipif(
    "/" in PATTERN or PATTERN.startswith("|"), reason=f"cores do not go to the working directory: {PATTERN}"
)
SECRET = "planted-hunter2-planted"
# Its code says that it came from another file, which it may not read.
HOSTILE = """\
import ctypes, sys
code = compile("def f():\\n    ctypes.string_at(0)\\nf()", sys.argv[1], "exec")
exec(code, {"ctypes": ctypes})
"""


def core_naming(path: Path, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(HOSTILE)
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    if resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
        pytest.skip("core files are limited here")
    subprocess.run(
        [sys.executable, "train.py", path],
        cwd=folder,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, unlimited),
        timeout=60,
    )
    return next(folder.glob("core*"))


def explain(core: Path, cwd: Path, *options: str) -> tuple[str, str]:
    """What it wrote and what it said."""
    report = cwd / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "faultlens", "explain", str(core), "--no-save", "--json", str(report), "-v", *options],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return report.read_text(), done.stdout


@needs_cores
def test_only_files_below_the_folders_that_the_reader_named(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir()
    planted = private / "settings.py"
    planted.write_text(f"def settings():\n    return '{SECRET}'\n")
    os.utime(planted, (0, 0))
    core = core_naming(planted, tmp_path / "attacker")
    reading = tmp_path / "reading"
    reading.mkdir()
    report, said = explain(core, reading)
    assert str(planted) in report  # the name, which is in the core
    assert SECRET not in report + said
    assert "--source-root names another" in report
    (reading / "link").symlink_to(private)
    for options in (["--source-root", "."], ["--source-root", str(tmp_path / "attacker")]):
        assert SECRET not in "".join(explain(core, reading, *options))
    assert SECRET in "".join(explain(core, reading, "--source-root", str(private)))
    assert SECRET not in "".join(explain(core, reading, "--source-root", str(private), "--no-sources"))
    done = subprocess.run(
        [sys.executable, "-m", "faultlens", "explain", core, "--source-root", "nowhere"],
        cwd=reading,
        capture_output=True,
    )
    assert done.returncode == 2 and b"nowhere is not a folder" in done.stderr


@pytest.mark.parametrize("name", ["id_rsa", ".env", "data.txt", "notes.json"])
def test_what_is_no_source_is_not_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("A = 1\n")
    assert SourceFolders((tmp_path,), os.geteuid()).read(tmp_path / name, 1000) is None


def test_sources_are_regular_small_and_visible(tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("A = 1\n")
    root = tmp_path / "root"
    (root / ".config").mkdir(parents=True)
    (root / "good.py").write_text("A = 1\n")
    (root / ".config" / "hidden.py").write_text("A = 1\n")
    (root / "prose.py").write_text("my password is swordfish\n")
    (root / "link.py").symlink_to(outside)
    (root / "long.py").write_text("A = 1\n" * 1000)
    os.mkfifo(root / "pipe.py")
    folders = SourceFolders((root,), os.geteuid())
    readable = {path.name for path in root.rglob("*.py") if folders.read(path, 1000) is not None}
    assert readable == {"good.py"}
    assert folders.read(root / ".." / "outside.py", 1000) is None


def test_what_the_owner_of_the_core_could_not_read_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("A = 1\n")
    path.chmod(0o600)
    somebody = os.geteuid() + 12345
    assert SourceFolders((tmp_path,), os.geteuid()).read(path, 1000) == b"A = 1\n"
    assert SourceFolders((tmp_path,), somebody).read(path, 1000) is None
    path.chmod(0o644)
    assert SourceFolders((tmp_path,), somebody).read(path, 1000) == b"A = 1\n"


def test_the_root_of_the_file_system_is_no_programs_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert SourceFolders.of_core().roots == ()


@needs_cores
def test_only_programs_and_libraries_are_read_as_mapped(tmp_path: Path) -> None:
    """Pages that are not in a core are read from the file it names: not from data, nor from other cores."""
    secret = tmp_path / "shadow"
    secret.write_text(SECRET * 100)
    other = core_naming(Path("/nonexistent.py"), tmp_path / "other")
    for path, readable in ((secret, False), (other, False), (Path(sys.executable).resolve(), True)):
        with (
            open(os.devnull, "rb") as core,
            CoreMemory(core.fileno(), [Segment(4096, 8192, 0, 0, str(path))]) as memory,
        ):
            assert bool(memory.read(4096, 64)) == readable, path
