"""Names that are not UTF-8, or that a terminal would obey: found, told, kept, and found again."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy
import pytest

from checked_bytes import checked
from faultlens.data.engine.worker import MARK_SIZE, Mark
from faultlens.data.findings import Findings
from faultlens.data.formats.hdf5_file import Hdf5File
from faultlens.data.formats.tar_file import TarFile
from faultlens.data.look import Look, Wanted
from faultlens.records.scan import Identity, Piece
from faultlens.text.file_names import to_name, to_text
from tfrecords import example, file_of

RED = b"\x1b]0;title\x07\x1b[31mred"
NAMES = [b"caf\xe9", b"new\nline", RED, b"\\xff", b"-rf", b"\xff" * 200, b"[*]", b"turn\xe2\x80\xaeed"]
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]")


def damaged(number: int) -> bytes:
    data = bytearray(file_of([example(label=[number]), example(label=[7])]))
    data[-6] ^= 1
    return bytes(data)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a name that is no UTF-8 either: the data, the state, temporary files."""
    folder = tmp_path / os.fsdecode(b"\xe9t\xe9")
    for place in ("data", "home", "tmp"):
        (folder / place).mkdir(parents=True)
    for number, name in enumerate(NAMES):
        (folder / "data" / os.fsdecode(name + b".tfrecord")).write_bytes(damaged(number))
    return folder


def scan(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "FAULTLENS_HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")}
    return subprocess.run(
        [sys.executable, "-m", "faultlens", "scan", "data", "--workers", "2", *words],
        cwd=folder, env=variables, capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip


def test_every_name_stands_for_itself() -> None:
    texts = [to_text(os.fsdecode(name)) for name in NAMES]
    assert [os.fsencode(to_name(text)) for text in texts] == NAMES
    assert texts[:4] == [r"caf\xe9", r"new\x0aline", r"\x1b]0;title\x07\x1b[31mred", r"\x5cxff"]
    assert to_text("a\\b ü.csv") == "a\\b ü.csv"


def test_a_scan_of_such_files(folder: Path) -> None:
    done = scan(folder, "--json", "found.json", "--quarantine", "clean")
    assert done.returncode == 1, done.stderr
    assert not _CONTROL.search(done.stdout + done.stderr)
    found = json.loads((folder / "found.json").read_bytes())
    flawed = {os.fsencode(to_name(flaw["place"]["path"])) for flaw in found["flaws"]}
    assert flawed == {b"data/" + name + b".tfrecord" for name in NAMES}
    assert to_name(found["folder"]) == str(folder)
    copies = {os.fsencode(path.name): path.read_bytes() for path in (folder / "clean").glob("*.tfrecord")}
    assert copies == {name + b".tfrecord": file_of([example(label=[number])]) for number, name in enumerate(NAMES)}
    again = scan(folder, "--resume", "--quarantine", "clean")
    assert again.returncode == 1 and f"{len(NAMES)} pieces had been checked before" in again.stdout
    assert len(list((folder / "clean").glob("*.tfrecord"))) == len(NAMES)


def test_findings_are_found_again_by_any_spelling(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    scan(folder, "--json", "found.json")
    findings = Findings("found.json")
    for name in NAMES:
        path = os.path.join("data", os.fsdecode(name + b".tfrecord"))
        for spelling in (path, os.path.abspath(path), f"./{path}"):
            assert findings.flaws(to_text(spelling)), spelling
            assert findings.file(to_text(spelling)) is not None


def test_what_is_not_there_is_told_in_one_line(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "faultlens", "scan", b"no\xff\nsuch \x1b[31mfile"], capture_output=True, cwd=folder
    )
    assert done.returncode == 2
    assert (
        done.stderr == b"faultlens: There is no no\\xff such \\x1b[31mfile. Name files or folders of training data.\n"
    )


def test_members_of_an_archive(tmp_path: Path) -> None:
    """What a worker sends is msgpack, which holds UTF-8 alone."""
    array = io.BytesIO()
    numpy.save(array, numpy.arange(3))
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", errors="surrogateescape") as archive:
        for name in (NAMES[0], NAMES[1], NAMES[4], NAMES[6], NAMES[7], b"a" + RED):  # no backslash, which may lead out
            member = tarfile.TarInfo(os.fsdecode(name[:90] + b".npy"))
            member.size = len(array.getvalue())
            archive.addfile(member, io.BytesIO(array.getvalue()))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.tar").write_bytes(file.getvalue())
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    assert checked(TarFile(), file.getvalue()).records == 6
    done = scan(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_datasets_of_an_hdf5_file() -> None:
    h5py = pytest.importorskip("h5py")
    file = io.BytesIO()
    with h5py.File(file, "w") as opened:
        group = opened.create_group(b"caf\xe9")
        group.create_dataset(b"\xff", data=[1.0, float("nan")])
    (flaw,) = checked(Hdf5File(), file.getvalue()).flaws
    assert (flaw.kind, flaw.place.member) == ("not-finite", r"/caf\xe9/\xff")


def test_an_item_that_killed_a_reader_is_known_again_by_a_long_name(tmp_path: Path) -> None:
    with open(tmp_path / "mark", "w+b") as shared:
        shared.truncate(MARK_SIZE)
        mark = Mark(shared.fileno())
        for item in ("é" * 5000, os.fsdecode(b"\xff" * 5000)):
            piece = Piece(path="", format="tar", start=0, end=0, identity=Identity(size=0))
            assert Look(piece, Wanted(), mark.at).at(item)
            (_, told) = mark.read()
            told.encode()
            again = Piece(path="", format="tar", start=0, end=0, identity=Identity(size=0), skip=(told,))
            assert not Look(again, Wanted()).at(item)
        mark.close()
