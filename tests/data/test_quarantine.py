"""`--quarantine`: clean copies hold all that is good, nothing else, and nothing else is touched."""

from __future__ import annotations

import fcntl
import gzip
import io
import json
import os
import resource
import signal
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from faultlens.data.quarantine.quarantine import Quarantined, quarantine
from faultlens.errors import FaultlensError
from faultlens.model_files.crc32c import crc32c, masked
from faultlens.records.scan import Flaw, Identity, Kind, Place, Scan, Scanned


def frame(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(crc32c(length))) + data + struct.pack("<I", masked(crc32c(data)))


def flaw(path: Path, kind: Kind = "checksum", **place: Any) -> Flaw:
    return Flaw(kind=kind, severity="error", place=Place(path=str(path), **place), reason="it does not fit")


def scanned(path: Path, format: str, errors: int = 0) -> Scanned:
    state = path.stat()
    identity = Identity(size=state.st_size, modified=state.st_mtime_ns, inode=state.st_ino)
    return Scanned(path=str(path), format=format, size=state.st_size, records=0, identity=identity, errors=errors)


def records(path: Path, bad: list[int], count: int = 20) -> tuple[bytes, bytes, list[Flaw]]:
    """What the file holds, what a clean one would hold, and the flaws."""
    data, clean, flaws = b"", b"", []
    for number in range(count):
        framed = bytearray(frame(f"record {number} ".encode() * (number * 5 % 7 + 1)))
        if number in bad:
            flaws.append(flaw(path, record=number, offset=len(data), size=len(framed)))
            framed[14] ^= 1
        else:
            clean += framed
        data += framed
    return data, clean, flaws


class Data:
    """A folder that was scanned."""

    def __init__(self, root: Path) -> None:
        self.root = root / "data"
        self.folder = root / "clean"
        self.root.mkdir()
        self.files: list[Scanned] = []
        self.flaws: list[Flaw] = []
        self.told: list[str] = []

    def add(self, path: Path, format: str, flaws: list[Flaw], errors: int = 0) -> None:
        self.files.append(scanned(path, format, errors))
        self.flaws += flaws

    def add_records(self, name: str = "a.tfrecord", bad: tuple[int, ...] = (0, 7, 8, 19)) -> bytes:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data, clean, flaws = records(path, list(bad))
        path.write_bytes(data)
        self.add(path, "TFRecord", flaws)
        return clean

    def quarantine(self) -> Quarantined:
        scan = Scan(roots=(str(self.root),), flaws=tuple(self.flaws), files=tuple(self.files))
        return quarantine(scan, self.folder, self.told.append)

    def listed(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = json.loads((self.folder / "quarantine.json").read_text())
        return listed

    def copy(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def written(self) -> set[str]:
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if not path.is_dir()}


@pytest.fixture
def data(tmp_path: Path) -> Data:
    return Data(tmp_path)


def test_records_are_copied_without_the_bad_ones(data: Data) -> None:
    clean = data.add_records("train/a.tfrecord")
    original = (data.root / "train/a.tfrecord").read_bytes()
    assert data.quarantine().copies == 1
    assert data.copy("train/a.tfrecord") == clean
    assert (data.root / "train/a.tfrecord").read_bytes() == original
    [listed] = data.listed()
    assert listed["path"] == str(data.root / "train/a.tfrecord") and listed["copy"] == "train/a.tfrecord"
    assert [part["record"] for part in listed["left_out"]] == [0, 7, 8, 19]
    assert listed["left_out"][0] == {
        "kind": "checksum", "reason": "it does not fit", "record": 0, "offset": 0, "size": 25,
    }  # fmt: skip
    assert data.written() == {"train/a.tfrecord", "quarantine.json"}
    assert data.told == [f"{data.root}/train/a.tfrecord: copied to train/a.tfrecord without 4 bad parts."]


@pytest.mark.parametrize(("format", "wbits"), [("TFRecord (GZIP)", 31), ("TFRecord (ZLIB)", 15)])
def test_packed_records_are_packed_again(data: Data, format: str, wbits: int) -> None:
    path = data.root / "a.tfrecord.gz"
    content, clean, flaws = records(path, [3, 4])
    packer = zlib.compressobj(wbits=wbits)
    path.write_bytes(packer.compress(content) + packer.flush())
    data.add(path, format, flaws)
    data.quarantine()
    assert zlib.decompress(data.copy("a.tfrecord.gz"), wbits) == clean


@pytest.mark.parametrize("ending", ["cut", "checksum", "trailing"])
def test_what_follows_damage_of_the_packing_is_lost(data: Data, ending: str) -> None:
    path = data.root / "a.tfrecord.gz"
    parts = [frame(os.urandom(100_000)) for _ in range(30)]
    whole = gzip.compress(b"".join(parts), 1)
    path.write_bytes(
        {"cut": whole[:-1_050_000], "checksum": whole[:-8] + bytes(8), "trailing": whole + b"more"}[ending]
    )
    data.add(path, "TFRecord (GZIP)", [flaw(path, "truncated")])
    data.quarantine()
    unpacked = gzip.decompress(data.copy("a.tfrecord.gz"))
    count = len(unpacked) // len(parts[0])
    assert unpacked == b"".join(parts[:count])
    assert count == {"cut": 19, "checksum": 30, "trailing": 30}[ending]
    assert ("What follows is lost" in data.listed()[0]["remark"]) == (ending != "trailing")


def make_tar(path: Path, names: list[str], packed: bool = False) -> dict[str, tuple[int, int]]:
    """Where each member lies."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for number, name in enumerate(names):
            member = tarfile.TarInfo(name)
            member.size = 300 + number * 400
            member.uid = 7
            archive.addfile(member, io.BytesIO(bytes([number]) * member.size))
    content = whole.getvalue()
    path.write_bytes(gzip.compress(content) if packed else content)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = archive.getmembers()
    ends = [member.offset for member in members[1:]] + [members[-1].offset_data + -(-members[-1].size // 512) * 512]
    return {member.name: (member.offset, end) for member, end in zip(members, ends, strict=True)}


@pytest.mark.parametrize("packed", [False, True])
def test_a_tar_archive_without_its_bad_members(data: Data, packed: bool) -> None:
    path, long = data.root / "a.tar", "folder/" + "long name " * 30 + ".png"
    names = ["one.png", long, "two.zip", "thrée.txt", "one.png"]
    make_tar(path, names, packed)
    content = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        places = [(each.name, each.offset, each.size) for each in archive.getmembers()]
    second = places[-1]
    flaws = [
        flaw(path, member=second[0], offset=second[1], size=second[2]),
        flaw(path, member="two.zip/inner.png", offset=places[2][1]),
    ]
    data.add(path, "tar (gzip)" if packed else "tar", flaws)
    data.quarantine()
    copy = gzip.decompress(data.copy("a.tar")) if packed else data.copy("a.tar")
    good = content[: places[2][1]] + content[places[3][1] : second[1]]
    assert copy == good + bytes(1024)
    with tarfile.open(fileobj=io.BytesIO(copy)) as archive:
        assert [(each.name, each.uid) for each in archive] == [("one.png", 7), (long, 7), ("thrée.txt", 7)]


def test_a_tar_archive_goes_on_behind_a_lost_region(data: Data) -> None:
    path = data.root / "a.tar"
    places = make_tar(path, ["a", "b", "c", "d"])
    content = bytearray(path.read_bytes())
    start, end = places["b"]
    content[start : start + 512] = b"\xff" * 512
    path.write_bytes(content[: places["d"][1] - 100])  # and the last one is cut off
    data.add(path, "tar", [flaw(path, "structure", offset=start, size=end - start), flaw(path, member="d")])
    data.quarantine()
    with tarfile.open(fileobj=io.BytesIO(data.copy("a.tar"))) as archive:
        assert archive.getnames() == ["a", "c"]
    assert "is lost" in data.listed()[0]["remark"]


def test_what_follows_a_bad_header_of_a_tar_archive_is_lost(data: Data) -> None:
    path = data.root / "a.tar"
    start = make_tar(path, ["a", "b", "c"])["b"][0]
    content = bytearray(path.read_bytes())
    content[start + 5] ^= 1
    path.write_bytes(content)
    data.add(path, "tar", [flaw(path, offset=start)])
    data.quarantine()
    with tarfile.open(fileobj=io.BytesIO(data.copy("a.tar"))) as archive:
        assert archive.getnames() == ["a"]
    assert data.listed()[0]["remark"] == f"What follows byte {start} is lost."


def test_a_zip_archive_without_its_bad_members(data: Data) -> None:
    path = data.root / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.mkdir("images") if hasattr(archive, "mkdir") else archive.writestr("images/", b"")
        archive.writestr("images/a.png", b"a" * 5000, zipfile.ZIP_DEFLATED)
        archive.writestr("images/b.png", b"b" * 5000)
        archive.writestr("inner.zip", b"c" * 50)
        archive.writestr("d.txt", b"d" * 50, zipfile.ZIP_LZMA)
        header = archive.getinfo("images/b.png").header_offset
    content = bytearray(path.read_bytes())
    content[header + 100] ^= 1
    path.write_bytes(content)
    data.add(path, "zip", [flaw(path, member="images/b.png"), flaw(path, member="inner.zip/x.png")])
    data.quarantine()
    with zipfile.ZipFile(data.folder / "a.zip") as archive, zipfile.ZipFile(path) as original:
        assert archive.namelist() == ["images/", "images/a.png", "d.txt"]
        assert archive.testzip() is None
        for member in archive.infolist():
            before = original.getinfo(member.filename)
            assert archive.read(member) == original.read(before)
            assert (member.compress_type, member.date_time) == (before.compress_type, before.date_time)


@pytest.mark.parametrize("with_end", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_are_left_out_with_their_ends(data: Data, end: str, with_end: bool) -> None:
    path = data.root / "a.csv"
    lines = [f"{line}{end}".encode() for line in ("x,y", "1,2", "3", "4,5", "", "6,7,8")]
    lines[-1] = lines[-1].removesuffix(end.encode())
    path.write_bytes(b"".join(lines))
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    sizes = [len(line if with_end else line.removesuffix(end.encode())) for line in lines]
    data.add(path, "CSV", [flaw(path, record=n, offset=starts[n], size=sizes[n]) for n in (2, 5)])
    data.quarantine()
    assert data.copy("a.csv") == b"".join(lines[:2] + lines[3:5])


def test_what_is_bad_as_a_whole_is_only_listed(data: Data) -> None:
    for name, format in (("a.jpg", "JPEG"), ("b.tfrecord", "TFRecord"), ("c.npy", "NumPy array"), ("d.zip", "zip")):
        path = data.root / name
        path.write_bytes(b"nothing that anybody could read")
        data.add(path, format, [flaw(path, "magic")])
    assert data.quarantine().copies == 0
    assert data.written() == {"quarantine.json"}
    assert all(file["copy"] is None and "there is no copy" in file["remark"].lower() for file in data.listed())


def test_changed_files_are_refused_and_the_others_go_on(data: Data) -> None:
    data.add_records("a.tfrecord")
    good = data.add_records("b.tfrecord")
    os.utime(data.root / "a.tfrecord", ns=(0, 1))
    data.add_records("c.tfrecord")
    (data.root / "c.tfrecord").unlink()
    data.quarantine()
    assert data.written() == {"b.tfrecord", "quarantine.json"}
    assert data.copy("b.tfrecord") == good
    assert [file["remark"] for file in data.listed()] == [
        "It changed since it was scanned: scan it again.", "", "It cannot be read: No such file or directory.",
    ]  # fmt: skip


def test_flaws_that_are_not_listed(data: Data) -> None:
    data.add_records("a.tfrecord")
    data.files[0] = scanned(data.root / "a.tfrecord", "TFRecord", errors=5)
    data.quarantine()
    assert data.listed()[0]["remark"] == "It has 5 bad parts, and not all are listed: there is no copy."


def test_a_second_run_replaces_its_own_files_only(data: Data) -> None:
    data.add_records("a.tfrecord")
    data.add_records("b.tfrecord")
    data.quarantine()
    (data.folder / "b.tfrecord").write_bytes(b"mine")
    (data.folder / "c.tfrecord").write_bytes(b"mine too")
    clean = data.add_records("c.tfrecord")
    data.quarantine()
    assert data.copy("a.tfrecord") == clean
    assert data.copy("b.tfrecord") == b"mine" and data.copy("c.tfrecord") == b"mine too"
    assert [file["copy"] for file in data.listed()] == ["a.tfrecord", None, None]
    data.flaws, data.files = [], []
    data.quarantine()
    assert data.written() == {"b.tfrecord", "c.tfrecord", "quarantine.json"}


def test_originals_are_never_written_over(data: Data) -> None:
    data.add_records("a.tfrecord")
    before = (data.root / "a.tfrecord").read_bytes()
    data.folder = data.root
    assert data.quarantine().copies == 0
    assert (data.root / "a.tfrecord").read_bytes() == before


def test_nothing_is_written_outside_of_the_folder(data: Data, tmp_path: Path) -> None:
    data.add_records("sub/a.tfrecord")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    data.folder.mkdir()
    (data.folder / "sub").symlink_to(elsewhere)
    data.quarantine()
    assert list(elsewhere.iterdir()) == []
    assert "outside" in data.listed()[0]["remark"]


def test_equal_names_from_two_roots(data: Data) -> None:
    clean = data.add_records("one/a.tfrecord"), data.add_records("two/a.tfrecord", (1,))
    scan = Scan(
        roots=(str(data.root / "one"), str(data.root / "two" / "a.tfrecord")),
        flaws=tuple(data.flaws),
        files=tuple(data.files),
    )
    quarantine(scan, data.folder, data.told.append)
    assert (data.copy("a.tfrecord"), data.copy("a.2.tfrecord")) == clean


def test_no_room_leaves_nothing_behind(data: Data) -> None:
    """A limit on the size of files ends a write as a full disk does."""
    data.add_records("a.tfrecord")
    data.add_records("b.tfrecord", ())
    with open(data.root / "b.tfrecord", "ab") as file:
        file.write(frame(bytes(1 << 20)))
    data.files[1] = scanned(data.root / "b.tfrecord", "TFRecord")
    data.flaws.append(flaw(data.root / "b.tfrecord", record=0, offset=0, size=26))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, before[1]))
    try:
        with pytest.raises(FaultlensError, match="No clean copies were written"):
            data.quarantine()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert list(data.folder.iterdir()) == []
    assert data.quarantine().copies == 2


def test_a_place_that_cannot_be_written_to(data: Data) -> None:
    data.add_records()
    data.folder.write_text("a file")
    with pytest.raises(FaultlensError, match="No clean copies were written"):
        data.quarantine()


def test_one_run_at_a_time_and_what_a_killed_one_left(data: Data) -> None:
    data.add_records()
    (data.folder / ".unfinished").mkdir(parents=True)
    (data.folder / ".unfinished" / "0").write_text("half")
    descriptor = os.open(data.folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(FaultlensError, match="Another run writes"):
        data.quarantine()
    os.close(descriptor)
    data.quarantine()
    assert data.written() == {"a.tfrecord", "quarantine.json"}


def test_a_copy_is_for_whom_the_original_is(data: Data) -> None:
    clean = data.add_records()
    (data.root / "a.tfrecord").chmod(0o600)
    data.quarantine()
    assert data.copy("a.tfrecord") == clean
    assert (data.folder / "a.tfrecord").stat().st_mode & 0o777 == 0o600
