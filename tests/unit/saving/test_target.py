"""The steps that give a save its name, on files that stand for models."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from faultlens.model_files.generations import folder_of, generations, newest_whole, targets_in
from faultlens.model_files.manifest import read_manifest
from faultlens.model_files.writer import Writer
from faultlens.saving import target as steps
from faultlens.saving.errors import SaveError
from faultlens.saving.target import Target
from published import save_checkpoint, save_file, save_folder


def contents(path: Path) -> list[tuple[int | None, bytes]]:
    """Of all generations, the newest first."""
    return [(each.number, (each.path / "saved_model.pb" if each.path.is_dir() else each.path).read_bytes())
            for each in generations(path)]  # fmt: skip


def test_earlier_saves_are_kept_and_the_oldest_go(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    for number in range(1, 5):
        save_file(path, b"%d" % number, keep=3)
    assert contents(path) == [(4, b"4"), (3, b"3"), (2, b"2")]
    assert sorted(entry.name for entry in folder_of(path).iterdir()) == [
        "00000002.json", "00000002.keras", "00000003.json", "00000003.keras", "00000004.json", "lock",
    ]  # fmt: skip


def test_a_model_that_keras_saved_is_kept_too(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    path.write_bytes(b"by Keras")
    save_file(path, b"ours")
    assert contents(path) == [(2, b"ours"), (1, b"by Keras")]
    path.write_bytes(b"by Keras again")
    save_file(path, b"ours again")
    assert contents(path) == [(4, b"ours again"), (3, b"by Keras again")]


def test_one_kept_generation_means_the_current_one(tmp_path: Path) -> None:
    save_file(tmp_path / "model.keras", b"1", keep=1)
    save_file(tmp_path / "model.keras", b"2", keep=1)
    assert contents(tmp_path / "model.keras") == [(2, b"2")]


def test_a_damaged_save_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    save_file(path, b"1")
    save_file(path, b"2")
    path.write_bytes(b"3")
    found, passed_over = newest_whole(path)
    assert found is not None and found.number == 1
    assert passed_over[0][0].current
    path.unlink()
    found, _ = newest_whole(path)
    assert found is not None and found.path.read_bytes() == b"1"


def test_a_flipped_bit_is_noticed_although_time_and_size_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    save_file(path, b"good")
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    path.write_bytes(b"gooe")
    os.utime(path, ns=times)
    (current,) = generations(path)
    assert current.number == 1
    assert "checksum" in current.damages()[0].what


def test_a_copied_file_is_known_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    save_file(path, b"1")
    os.utime(path, ns=(0, 0))
    assert [each.number for each in generations(path)] == [1]


def test_a_file_with_two_names_counts_once(tmp_path: Path) -> None:
    """Killed between the link and the rename."""
    path = tmp_path / "model.keras"
    save_file(path, b"1")
    os.link(path, folder_of(path) / "00000001.keras")
    assert contents(path) == [(1, b"1")]
    save_file(path, b"2")
    assert contents(path) == [(2, b"2"), (1, b"1")]


def test_folders_are_exchanged(tmp_path: Path) -> None:
    for number in range(1, 4):
        save_folder(tmp_path / "saved", b"%d" % number)
    assert contents(tmp_path / "saved") == [(3, b"3"), (2, b"2")]


def test_folders_where_they_cannot_be_exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_exchange", lambda *_: False)
    for number in range(1, 4):
        save_folder(tmp_path / "saved", b"%d" % number)
    assert contents(tmp_path / "saved") == [(3, b"3"), (2, b"2")]


def test_files_where_there_are_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    for number in range(1, 4):
        save_file(tmp_path / "model.keras", b"%d" % number)
    assert contents(tmp_path / "model.keras") == [(3, b"3"), (2, b"2")]


def test_checkpoints_are_numbered_as_tensorflow_does(tmp_path: Path) -> None:
    (tmp_path / "ckpt-7.index").write_bytes(b"by TensorFlow")
    for number in range(1, 4):
        save_checkpoint(tmp_path / "ckpt", b"%d" % number)
    names = sorted(entry.name for entry in tmp_path.iterdir())
    assert names == [
        ".faultlens", "checkpoint", "ckpt-10.data-00000-of-00001", "ckpt-10.index", "ckpt-9.data-00000-of-00001",
        "ckpt-9.index",
    ]  # fmt: skip
    assert (tmp_path / "checkpoint").read_text().splitlines() == [
        'model_checkpoint_path: "ckpt-10"',
        'all_model_checkpoint_paths: "ckpt-9"',
        'all_model_checkpoint_paths: "ckpt-10"',
    ]
    assert [(each.number, each.current) for each in generations(tmp_path / "ckpt")] == [(10, True), (9, False)]


def test_what_an_interrupted_save_left_is_removed(tmp_path: Path) -> None:
    path, dead = tmp_path / "model.keras", ended_process()
    save_file(path, b"1")
    for writer in (Writer.own(), dead, replace(dead, boot="before a restart"), replace(dead, host="container")):
        leave_unfinished(path, writer)
    save_file(path, b"2")
    assert left_unfinished(path) == []


def test_what_another_machine_is_writing_stays_for_a_day(tmp_path: Path) -> None:
    """Our lock may not hold there."""
    path, elsewhere = tmp_path / "model.keras", replace(ended_process(), host="elsewhere", boot="another")
    nameless = replace(elsewhere, host="localhost")
    at_work = [leave_unfinished(path, writer) for writer in (elsewhere, nameless)]
    old = leave_unfinished(path, elsewhere)
    for place in (old / "model.keras", old):
        os.utime(place, (0, 0))
    save_file(path, b"1")
    assert left_unfinished(path) == sorted(at_work)


def test_data_of_a_checkpoint_that_another_machine_is_about_to_finish_stay(tmp_path: Path) -> None:
    path = tmp_path / "ckpt"
    save_checkpoint(path, b"1")
    (folder_of(path) / "00000002.json").write_bytes(b"{}")
    (tmp_path / "ckpt-2.data-00000-of-00001").write_bytes(b"renamed already")
    unfinished = leave_unfinished(path, replace(Writer.own(), host="elsewhere", boot="another"))
    save_checkpoint(path, b"3")
    assert (tmp_path / "ckpt-2.data-00000-of-00001").exists()
    for place in (unfinished / "ckpt", unfinished):
        os.utime(place, (0, 0))
    (folder_of(path) / "00000002.json").write_bytes(b"{}")
    save_checkpoint(path, b"4")
    assert not (tmp_path / "ckpt-2.data-00000-of-00001").exists()


def ended_process() -> Writer:
    """One of this machine that is no more."""
    with subprocess.Popen(["true"]) as process:
        return replace(Writer.own(), pid=process.pid)


def leave_unfinished(path: Path, writer: Writer) -> Path:
    folder = folder_of(path) / writer.new_name()
    folder.mkdir(parents=True)
    (folder / path.name).write_bytes(b"half")
    return folder


def left_unfinished(path: Path) -> list[Path]:
    return sorted(each for each in folder_of(path).iterdir() if each.name.startswith("unfinished"))


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    target = Target(tmp_path / "model.keras")
    target.folder.mkdir(parents=True)
    with open(target.folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SaveError, match="by another process"), target.locked(0.1):
            pass
    with target.locked(0.1):
        pass


def test_a_manifest_that_leads_elsewhere_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "00000001.json"
    for name in ("/etc/passwd", "../secret", "a\0b"):
        file = {"name": name, "size": 1, "crc32c": 1, "mtime_ns": 1}
        path.write_text(json.dumps({"generation": 1, "format": "keras", "time": 0, "files": [file]}))
        assert read_manifest(path) is None
    for rubbish in ("", "{", "[]", '{"generation": "x"}', "\ufffd" * 100):
        path.write_text(rubbish)
        assert read_manifest(path) is None


def test_saves_of_a_folder(tmp_path: Path) -> None:
    save_file(tmp_path / "a.keras", b"1")
    save_checkpoint(tmp_path / "ckpt", b"1")
    assert [each.name for each in targets_in(tmp_path)] == ["a.keras", "ckpt"]
    assert targets_in(tmp_path / "nowhere") == []


def test_without_locks_only_what_is_surely_abandoned_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    path, own, dead = tmp_path / "model.keras", Writer.own(), ended_process()
    reused = replace(own, started="1")  # whoever had our pid then
    unsure = [
        leave_unfinished(path, writer) for writer in (own, replace(dead, boot="another"), replace(dead, namespace="1"))
    ]
    for writer in (dead, reused):
        leave_unfinished(path, writer)
    save_file(path, b"1")
    assert left_unfinished(path) == sorted(unsure)
