"""Who may read a model after it was saved anew: those who might before, and nobody else."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from faultlens.fs.access import take_access
from faultlens.model_files.generations import folder_of, generations
from faultlens.saving import target as steps
from faultlens.verify import places
from published import save_checkpoint, save_file, save_folder

ALICE, BOB, TEAM = 4001, 4002, 4100
ACL = "system.posix_acl_access"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of several users")


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that other users reach, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(params=[True, False], ids=["links", "without-links"])
def links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hard links and exchanges, or a file system that has neither."""
    if not request.param:
        monkeypatch.setattr(os, "link", _refuse)
        monkeypatch.setattr(steps, "_exchange", lambda *_: False)


def _refuse(*_: object) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def everything(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.name != "lock")


def acl(user: int, group_object: int = 0, mask: int = 4, other: int = 0) -> bytes:
    """`user::rw-`, `user:USER:r--`, and the rest as given."""
    nobody = 0xFFFFFFFF
    entries = [(1, 6, nobody), (2, 4, user), (4, group_object, nobody), (16, mask, nobody), (32, other, nobody)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def set_attribute(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            pytest.skip("this file system has no ACLs or extended attributes")
        raise


def as_user(user: int, groups: list[int], function: Callable[[], None]) -> int:
    """0, or the number of the error that ended it."""
    child = os.fork()
    if child == 0:
        status = 255
        try:
            os.setgroups(groups)
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            os.umask(0o022)
            function()
            status = 0
        except OSError as error:
            status = error.errno or 254
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# ------------------------------------------------------------------------------------------ modes


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o027])
def test_a_new_model_has_the_mode_of_any_new_file(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        save_file(tmp_path / "model.keras", b"1")
        save_folder(tmp_path / "saved", b"1")
        save_checkpoint(tmp_path / "ckpt", b"1")
    finally:
        os.umask(before)
    for name in ("model.keras", "saved/saved_model.pb", "ckpt-1.index", "ckpt-1.data-00000-of-00001", "checkpoint"):
        assert mode(tmp_path / name) == 0o666 & ~umask, name
    assert mode(tmp_path / "saved") == 0o777 & ~umask
    for kept in everything(tmp_path / ".faultlens"):
        assert not mode(kept) & umask, kept


@pytest.mark.parametrize("before", [0o600, 0o640, 0o664, 0o444 | 0o200])
@pytest.mark.usefixtures("links")
def test_the_mode_of_a_model_is_kept_by_all_that_belongs_to_it(tmp_path: Path, before: int) -> None:
    path = tmp_path / "model.keras"
    path.write_bytes(b"by Keras")
    path.chmod(before)
    for number in range(3):
        save_file(path, b"%d" % number, keep=3)
        assert mode(path) == before
    kept = list(everything(folder_of(path)))
    assert len(kept) == 5
    for each in kept:
        assert mode(each) == before, each
    assert not mode(folder_of(path)) & 0o077 & ~(before | (before & 0o444) >> 2)


def test_nothing_of_a_save_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    path.write_bytes(b"secret")
    path.chmod(0o600)
    target = steps.Target(path)
    with target.locked(1):
        assert mode(target.unfinished().parent) == 0o700


def test_a_model_that_was_closed_later_closes_its_generations(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    save_file(path, b"1")
    save_file(path, b"2")
    path.chmod(0o600)
    save_file(path, b"3", keep=3)
    assert mode(folder_of(path)) == 0o700
    path.chmod(0o644)
    save_file(path, b"4", keep=3)
    assert mode(path) == 0o644
    assert mode(folder_of(path)) == 0o700  # not opened again: what is in it was meant for fewer


def test_setuid_is_not_handed_to_new_content(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    path.write_bytes(b"1")
    path.chmod(0o6755)
    save_file(path, b"2")
    assert mode(path) == 0o755


@pytest.mark.usefixtures("links")
def test_files_inside_a_saved_model_keep_their_modes(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    save_folder(path, b"1")
    path.chmod(0o2750)
    (path / "saved_model.pb").chmod(0o600)
    save_folder(path, b"2")
    assert mode(path) == 0o2750
    assert mode(path / "saved_model.pb") == 0o600
    manifests = list(folder_of(path).glob("*.json"))
    assert mode(max(manifests)) == 0o600
    assert mode(folder_of(path)) & 0o007 == 0


def test_a_checkpoint_has_the_access_of_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "ckpt"
    save_checkpoint(path, b"1")
    for each in tmp_path.glob("c*"):
        each.chmod(0o600)
    save_checkpoint(path, b"2")
    assert {name.name: mode(name) for name in tmp_path.glob("c*")} == dict.fromkeys(
        ("checkpoint", "ckpt-1.index", "ckpt-1.data-00000-of-00001", "ckpt-2.index", "ckpt-2.data-00000-of-00001"),
        0o600,
    )
    assert mode(folder_of(path) / "00000002.json") == 0o600


# ------------------------------------------------------------------- owners, ACLs and attributes


@pytest.mark.usefixtures("links")
def test_access_lists_and_attributes_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    path.write_bytes(b"by Keras")
    wanted = acl(ALICE)
    set_attribute(path, "user.origin", b"run 7")
    set_attribute(path, ACL, wanted)
    save_file(path, b"1")
    for each in (path, folder_of(path) / "00000001.keras"):
        assert os.getxattr(each, ACL) == wanted
        assert os.getxattr(each, "user.origin") == b"run 7"
    assert os.getxattr(folder_of(path) / "00000002.json", ACL) == wanted


def test_a_list_that_was_taken_away_does_not_come_back_from_the_folder(tmp_path: Path) -> None:
    """Its default list is inherited by every new file."""
    save_file(tmp_path / "model.keras", b"1")
    set_attribute(folder_of(tmp_path / "model.keras"), "system.posix_acl_default", acl(BOB, mask=7))
    save_file(tmp_path / "model.keras", b"2")
    assert ACL not in os.listxattr(tmp_path / "model.keras")
    assert ACL not in os.listxattr(folder_of(tmp_path / "model.keras") / "00000002.json")


@needs_root
@pytest.mark.usefixtures("links")
def test_root_leaves_everything_to_the_owner(shared: Path) -> None:
    path = shared / "model.keras"
    path.write_bytes(b"by Keras")
    os.chown(shared, ALICE, TEAM)
    os.chown(path, ALICE, TEAM)
    path.chmod(0o640)
    save_file(path, b"1", keep=3)
    for each in (path, *(shared / ".faultlens").rglob("*"), shared / ".faultlens"):
        assert (each.stat().st_uid, each.stat().st_gid) == (ALICE, TEAM), each
    assert as_user(ALICE, [], lambda: save_file(path, b"2", keep=3)) == 0
    assert [each.path.read_bytes() for each in generations(path)] == [b"2", b"1", b"by Keras"]
    assert as_user(ALICE, [], lambda: save_file(shared / "another.keras", b"1")) == 0


@needs_root
@pytest.mark.usefixtures("links")
def test_a_member_of_the_group_keeps_the_group_and_no_more(shared: Path) -> None:
    path = shared / "model.keras"
    os.chown(shared, ALICE, TEAM)
    shared.chmod(0o2775)
    assert as_user(ALICE, [TEAM], lambda: save_file(path, b"1")) == 0
    path.chmod(0o660)
    assert (path.stat().st_uid, path.stat().st_gid) == (ALICE, TEAM)
    folder_of(path).chmod(0o2770)
    (folder_of(path) / "lock").chmod(0o664)
    assert as_user(BOB, [TEAM], lambda: save_file(path, b"2")) == 0
    assert (path.stat().st_uid, path.stat().st_gid, mode(path)) == (BOB, TEAM, 0o660)


@needs_root
@pytest.mark.parametrize(("before", "after"), [(0o640, 0o600), (0o664, 0o644), (0o604, 0o600), (0o666, 0o666)])
def test_without_its_group_a_file_is_open_to_fewer(shared: Path, before: int, after: int) -> None:
    old, new = shared / "old", shared / "new"
    old.write_bytes(b"")
    os.chown(old, ALICE, TEAM)
    old.chmod(before)
    new.write_bytes(b"")
    os.chown(new, BOB, BOB)
    assert as_user(BOB, [], lambda: take_access(old, new) and None) == 0
    assert (new.stat().st_gid, mode(new)) == (BOB, after)


@needs_root
def test_without_its_group_a_list_gives_nobody_more(shared: Path) -> None:
    old, new = shared / "old", shared / "new"
    for path, owner in ((old, ALICE), (new, BOB)):
        path.write_bytes(b"")
        os.chown(path, owner, owner)
    set_attribute(old, ACL, acl(ALICE, group_object=0, mask=6, other=4))
    assert as_user(BOB, [], lambda: take_access(old, new) and None) == 0
    assert mode(new) == 0o600 and ACL not in os.listxattr(new)


@needs_root
def test_another_user_reads_the_model_where_its_generations_are_closed(shared: Path) -> None:
    path = shared / "model.keras"
    save_file(path, b"1")
    save_file(path, b"2")
    folder_of(path).chmod(0o700)

    def read() -> None:
        (place,) = places.saves_at(path).places
        if [each.path.read_bytes() for each in place.generations] != [b"2"] or "may not look" not in place.notes[0]:
            raise OSError(99, "another model")

    assert as_user(ALICE, [], read) == 0
