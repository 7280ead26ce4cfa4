"""Reports are kept whole, found again, and bounded in number and size."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from msgspec.structs import replace

import recorded
from faultlens import durable, reportfile
from faultlens.errors import FaultlensError
from faultlens.reportfile import Report
from faultlens.store import folder


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of saving, which a test may move."""
    now = [1763294400.0]
    monkeypatch.setattr(folder.time, "time", lambda: now[0])
    return now


def numbered(number: int) -> Report:
    report = recorded.report("child_crashed")
    return replace(report, crash=replace(report.crash, pid=number))


def save_many(count: int, clock: list[float]) -> list[Path]:
    saved = []
    for number in range(count):
        clock[0] += 1
        saved.append(folder.save(numbered(number)))
    return saved


@pytest.mark.usefixtures("clock")
def test_save_and_read_back(home: Path) -> None:
    report = recorded.report("segv_in_custom_op")
    path = folder.save(report)
    assert path.parent.parent == home
    assert path.parent.name.startswith("20251116T120000Z-python-SIGSEGV-")
    assert reportfile.read(path) == report
    assert [stat.S_IMODE(each.stat().st_mode) for each in (home, path.parent, path)] == [0o700, 0o700, 0o600]
    assert sorted(each.name for each in path.parent.iterdir()) == ["report.json", "summary.json"]
    assert folder.save(report) == path  # the same again is one report


def test_where_reports_live(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FAULTLENS_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert folder.home() == tmp_path / "faultlens"
    monkeypatch.setenv("HOME", "/home/ada")
    for invalid in ("", "relative"):
        monkeypatch.setenv("XDG_STATE_HOME", invalid)
        assert folder.home() == Path("/home/ada/.local/state/faultlens")
    monkeypatch.setenv("FAULTLENS_HOME", "~/crashes")
    assert folder.home() == Path("/home/ada/crashes")


def test_name_of_a_hostile_program(home: Path) -> None:
    report = numbered(1)
    program = replace(report.crash.program, command=("../../etc/\n[x] é" + "y" * 500,))
    path = folder.save(replace(report, crash=replace(report.crash, program=program)))
    assert path.parent.parent == home
    assert len(path.parent.name) < 120
    assert folder.find(path.parent.name[-8:]) == path


def test_oldest_reports_go_first(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    monkeypatch.setattr(folder, "MAX_REPORTS", 3)
    saved = save_many(5, clock)
    assert [path.is_file() for path in saved] == [False, False, True, True, True]


def test_size_is_bounded(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    one = len(reportfile.to_json(numbered(0)))
    monkeypatch.setattr(folder, "MAX_BYTES", 2 * one + 2000)
    saved = save_many(4, clock)
    assert [path.is_file() for path in saved] == [False, False, True, True]
    monkeypatch.setattr(folder, "MAX_BYTES", 1)
    assert folder.save(numbered(9)).is_file()  # the one just saved always stays


def test_nothing_that_is_not_ours_is_removed(
    monkeypatch: pytest.MonkeyPatch, home: Path, clock: list[float], tmp_path: Path
) -> None:
    monkeypatch.setattr(folder, "MAX_REPORTS", 1)
    stranger = home / "20200101T000000Z-notes"
    stranger.mkdir(parents=True)
    (stranger / "report.json").write_text("mine")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "report.json").write_text("mine")
    (home / "20200101T000000Z-python-SIGSEGV-00000000").symlink_to(elsewhere)
    first = folder.save(numbered(1))
    (first.parent / "notes.txt").write_text("mine")
    clock[0] += 1
    folder.save(numbered(2))
    assert (stranger / "report.json").exists()
    assert (elsewhere / "report.json").exists()
    assert (first.parent / "notes.txt").exists()
    assert not first.exists()


def test_what_an_interrupted_save_left_is_cleared_later(home: Path, clock: list[float]) -> None:
    left = home / ".new-0123abcd-999"
    left.mkdir(parents=True)
    (left / "report.json").write_text("{")
    os.utime(left, (clock[0], clock[0]))
    folder.save(numbered(1))
    assert left.exists()  # it may be somebody's save under way
    clock[0] += 7200
    folder.save(numbered(2))
    assert not left.exists()


@pytest.mark.parametrize("step", ["write_synced", "sync_folder"])
def test_a_save_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch, home: Path, step: str) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(folder, step, full)
    with pytest.raises(FaultlensError, match=r"is on a full disk\..*FAULTLENS_HOME"):
        folder.save(numbered(1))
    assert list(home.iterdir()) == []
    assert folder.listing() == []


def test_a_save_killed_at_any_step_is_never_seen_half_done(home: Path) -> None:
    for step in range(8):
        calls = iter(range(100))

        def killed(original: object, *arguments: object, calls=calls, step=step, **options: object) -> object:
            if next(calls) == step:
                os._exit(9)
            return original(*arguments, **options)  # type: ignore[operator]

        child = os.fork()
        if child == 0:
            for name in ("open", "fsync"):
                original = getattr(os, name)
                setattr(os, name, lambda *a, original=original, **o: killed(original, *a, **o))
            folder.save(numbered(step))
            os._exit(0)
        os.waitpid(child, 0)
        for entry in folder.listing():
            assert reportfile.read(home / entry.name / "report.json").crash.pid in range(step + 1)


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EIO])
def test_reasons(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(FaultlensError, match="FAULTLENS_HOME"):
        folder.save(numbered(1))


def test_a_file_in_the_way(home: Path) -> None:
    home.write_text("in the way")
    with pytest.raises(FaultlensError, match=r"is not a folder\."):
        folder.save(numbered(1))
    assert folder.listing() == []


def test_read_only_folder_of_another_user(home: Path, tmp_path: Path) -> None:
    """As an ordinary user: root may write anywhere."""
    home.mkdir()
    home.chmod(0o555)
    tmp_path.chmod(0o755)
    child = os.fork()
    if child == 0:
        if os.getuid() == 0:
            os.setgroups([])
            os.setuid(65534)
        try:
            folder.save(numbered(1))
        except FaultlensError as error:
            os._exit(0 if "may not be written" in str(error) else 2)
        except BaseException:
            os._exit(4)
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_listing_is_newest_first_and_needs_no_report(clock: list[float]) -> None:
    saved = save_many(3, clock)
    saved[2].write_text("damaged")
    entries = folder.listing()
    assert [entry.name for entry in entries] == [path.parent.name for path in reversed(saved)]
    assert entries[0].headline.startswith("child process python (612) died by SIGFPE")


def test_listing_survives_damage(clock: list[float]) -> None:
    without_summary, damaged = save_many(2, clock)
    (without_summary.parent / "summary.json").unlink()
    (damaged.parent / "summary.json").write_text("{")
    damaged.write_bytes(b"\xff\xfe{")
    assert [entry.headline[:13] for entry in folder.listing()] == ["(damaged repo", "child process"]


def test_find(clock: list[float]) -> None:
    with pytest.raises(FaultlensError, match=r"no reports in .* yet"):
        folder.find()
    first, second = save_many(2, clock)
    assert folder.find() == second
    assert folder.find(str(first)) == folder.find(str(first.parent)) == first
    assert folder.find(first.parent.name[-8:]) == folder.find(first.parent.name) == first
    with pytest.raises(FaultlensError, match="is the beginning of 2 reports"):
        folder.find("2025")
    for unknown in ("", "zzz", "/nowhere", "x" * 5000, "a\0b"):
        with pytest.raises(FaultlensError, match="There is no report"):
            folder.find(unknown)


def test_replace_file_keeps_links_and_leaves_no_trace(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    (tmp_path / "link").symlink_to(target)
    durable.replace_file(tmp_path / "link", b"one")
    durable.replace_file(tmp_path / "link", b"two")
    assert target.read_bytes() == b"two"
    assert (tmp_path / "link").is_symlink()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "report.json"]
