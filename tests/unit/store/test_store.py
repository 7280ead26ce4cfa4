"""Reports are kept whole, found again, and bounded in number and size."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from time import sleep

import pytest
from msgspec.structs import replace

import recorded
from faultlens.errors import FaultlensError
from faultlens.fs import atomic
from faultlens.records import report_file
from faultlens.records.report_file import Report
from faultlens.store import folder, keeping


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
    assert report_file.read(path) == report
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
    monkeypatch.setenv("FAULTLENS_KEEP", "3")
    saved = save_many(5, clock)
    assert [path.is_file() for path in saved] == [False, False, True, True, True]


def test_size_is_bounded(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    one = len(report_file.to_json(numbered(0)))
    monkeypatch.setenv("FAULTLENS_KEEP_BYTES", str(2 * one + 2000))
    saved = save_many(4, clock)
    assert [path.is_file() for path in saved] == [False, False, True, True]
    monkeypatch.setenv("FAULTLENS_KEEP_BYTES", "1")
    assert folder.save(numbered(9)).is_file()  # the one just saved always stays


def test_nothing_that_is_not_ours_is_removed(
    monkeypatch: pytest.MonkeyPatch, home: Path, clock: list[float], tmp_path: Path
) -> None:
    monkeypatch.setenv("FAULTLENS_KEEP", "1")
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
    assert first.exists()  # whoever put something beside it wants to keep it


def test_by_age(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    monkeypatch.setenv("FAULTLENS_KEEP_DAYS", "30")
    saved = save_many(3, clock)
    for path, days in zip(saved, (40, 20, 10), strict=True):
        os.utime(path, (clock[0] - days * 86400,) * 2)
    folder.save(numbered(9))
    assert [path.is_file() for path in saved] == [False, True, True]


def test_without_end(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    monkeypatch.setenv("FAULTLENS_KEEP", "all")
    monkeypatch.setenv("FAULTLENS_KEEP_BYTES", "all")
    assert all(path.is_file() for path in save_many(102, clock))
    assert str(keeping.bounds()) == "without end"


@pytest.mark.parametrize("text", ["0", "-3", "many", "1e9", "9" * 30])
def test_a_setting_that_cannot_be_read_removes_nothing(
    monkeypatch: pytest.MonkeyPatch, clock: list[float], text: str
) -> None:
    monkeypatch.setenv("FAULTLENS_KEEP_BYTES", "1")
    monkeypatch.setenv("FAULTLENS_KEEP", text)
    assert all(path.is_file() for path in save_many(3, clock))
    with pytest.raises(FaultlensError, match=r"^FAULTLENS_KEEP=.* Say FAULTLENS_KEEP=100"):
        keeping.bounds()


def test_what_was_removed_is_counted(monkeypatch: pytest.MonkeyPatch, home: Path, clock: list[float]) -> None:
    monkeypatch.setenv("FAULTLENS_KEEP", "2")
    assert keeping.removed(home) == keeping.Removed()
    save_many(5, clock)
    assert keeping.removed(home) == keeping.Removed(3, clock[0])


def test_a_report_that_is_worked_on_stays(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    monkeypatch.setenv("FAULTLENS_KEEP", "1")
    first = folder.save(numbered(1))
    with keeping.in_use(first):
        save_many(2, clock)
        assert first.is_file()
    save_many(2, clock)
    assert not first.parent.exists()


def test_a_mark_that_a_killed_process_left_does_not_keep_it_for_ever(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    monkeypatch.setenv("FAULTLENS_KEEP", "1")
    first = folder.save(numbered(1))
    mark = first.with_name(".in-use-0123456789abcdef")
    mark.touch()
    os.utime(mark, (clock[0] - 100_000,) * 2)
    save_many(1, clock)
    assert not first.parent.exists()


def test_a_report_from_the_future_is_not_the_latest(clock: list[float]) -> None:
    clock[0] += 10 * 365 * 86400
    wrong = folder.save(numbered(1))
    clock[0] -= 10 * 365 * 86400
    right = folder.save(numbered(2))
    assert folder.find() == right
    assert [entry.name for entry in folder.listing()] == [right.parent.name, wrong.parent.name]


@pytest.mark.usefixtures("clock")
def test_of_reports_within_one_second_the_last_is_the_latest() -> None:
    saved = []
    for number in range(8):
        saved.append(folder.save(numbered(number)).parent.name)
        sleep(0.02)  # file systems count in ticks of the kernel
    assert [entry.name for entry in folder.listing()] == saved[::-1]


def test_two_reports_with_one_name_are_both_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight digits of a checksum are the same sooner or later."""
    monkeypatch.setattr(folder, "_name", lambda *_: "20251116T120000Z-python-SIGFPE-0123abcd")
    saved = [folder.save(numbered(number)) for number in (1, 2, 1)]
    assert saved[0] == saved[2] != saved[1]
    assert [report_file.read(path).crash.pid for path in saved] == [1, 2, 1]
    assert folder.find("0123abcd") == saved[0]


def test_equal_process_ids_do_not_meet(tmp_path: Path) -> None:
    """Two containers that share a folder: one is in the middle of writing, or died there."""
    (tmp_path / f".report.json.{os.getpid()}").write_text("the other's")
    atomic.replace_file(tmp_path / "report.json", b"mine")
    assert (tmp_path / f".report.json.{os.getpid()}").read_text() == "the other's"


def test_a_folder_of_all_users(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    """Nobody's report makes room for those of others, or is taken for one's own."""
    if os.getuid() != 0:
        pytest.skip("needs root, to write reports of two users")
    mine = folder.save(numbered(1))
    clock[0] += 1
    theirs = folder.save(numbered(2))
    for path in (theirs.parent, theirs):
        os.chown(path, 65534, 65534)
    assert folder.find() == mine
    assert [entry.owner for entry in folder.listing()] == [65534, None]
    monkeypatch.setenv("FAULTLENS_KEEP", "1")
    clock[0] += 1
    folder.save(numbered(3))
    assert theirs.exists() and not mine.exists()


def test_links_and_pipes_that_others_put_there_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, home: Path, clock: list[float], tmp_path: Path
) -> None:
    (tmp_path / "secret").write_bytes(report_file.to_json(numbered(7)))
    planted = home / "20251116T110000Z-python-SIGSEGV-00000001"
    planted.mkdir(parents=True)
    (planted / "report.json").symlink_to(tmp_path / "secret")
    kept = folder.save(numbered(1))
    (kept.parent / "summary.json").unlink()
    os.mkfifo(kept.parent / "summary.json")
    assert [entry.name for entry in folder.listing()] == [kept.parent.name]
    assert not folder.is_kept(planted / "report.json")
    (home / "removed.json").symlink_to(tmp_path / "secret")
    before = (tmp_path / "secret").read_bytes()
    monkeypatch.setenv("FAULTLENS_KEEP", "1")
    save_many(2, clock)
    assert (tmp_path / "secret").read_bytes() == before


def test_what_an_interrupted_save_left_is_cleared_later(home: Path, clock: list[float]) -> None:
    left = home / ".new-0123456789abcdef"
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
            assert report_file.read(home / entry.name / "report.json").crash.pid in range(step + 1)


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
    report = numbered(1)  # he may not read our sources
    child = os.fork()
    if child == 0:
        if os.getuid() == 0:
            os.setgroups([])
            os.setuid(65534)
        try:
            folder.save(report)
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
    atomic.replace_file(tmp_path / "link", b"one")
    atomic.replace_file(tmp_path / "link", b"two")
    assert target.read_bytes() == b"two"
    assert (tmp_path / "link").is_symlink()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "report.json"]
