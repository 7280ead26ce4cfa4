"""Files that are really damaged, scanned for real: what is skipped and what is copied are exactly the whole records."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import faultlens.data
from faultlens.cli import main
from faultlens.data.engine.pool import Job
from faultlens.data.quarantine.quarantine import quarantine
from faultlens.data.scanning import LocalEngine, Options, scan
from faultlens.errors import FaultlensError
from faultlens.model_files.crc32c import crc32c, masked
from faultlens.records.scan import Scan

tf = pytest.importorskip("tensorflow")

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "GZIP": lambda data: gzip.compress(data, 6, mtime=0),
    "ZLIB": zlib.compress,
}
ENDINGS = {"": "tfrecord", "GZIP": "tfrecord.gz", "ZLIB": "tfrecord.zz"}


def frame(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(crc32c(length))) + data + struct.pack("<I", masked(crc32c(data)))


class Edit(NamedTuple):
    """These bytes become those."""

    start: int
    end: int
    new: bytes


class Damaged(NamedTuple):
    name: str
    data: bytes
    whole: list[bytes]  # records


def records_of(chance: random.Random, nested: bool) -> list[bytes]:
    """Of many sizes, also such that span pieces. `nested`: some hold a TFRecord file themselves."""
    made = []
    for number in range(40):
        data = chance.randbytes(chance.choice((0, 1, 30, 300, 1500)))
        inner = b"".join(frame(chance.randbytes(90)) for _ in range(20)) if nested and number % 13 == 5 else b""
        made.append(b"record %d " % number + data + inner)
    return made


def edited(name: str, records: list[bytes], edits: list[Edit]) -> Damaged:
    """A record is whole where no edit touched it."""
    frames = [frame(record) for record in records]
    data = b"".join(frames)
    whole, start = [], 0
    for record, framed in zip(records, frames, strict=True):
        end = start + len(framed)
        touched = (
            edit.start < end and edit.end > start if edit.end > edit.start else start < edit.start < end
            for edit in edits
            if edit.new != data[edit.start : edit.end]
        )
        if not any(touched):
            whole.append(record)
        start = end
    for edit in sorted(edits, reverse=True):
        data = data[: edit.start] + edit.new + data[edit.end :]
    return Damaged(name, data, whole)


class Maker:
    def __init__(self, seed: int, nested: bool = False) -> None:
        self.chance = random.Random(seed)
        self.records = records_of(self.chance, nested)
        self.content = b"".join(map(frame, self.records))
        self.starts = list(accumulate((len(frame(record)) for record in self.records), initial=0))
        self.size = len(self.content)

    def make(self, name: str, *edits: Edit) -> Damaged:
        return edited(name, self.records, list(edits))

    def flip(self, at: int) -> Edit:
        return Edit(at, at + 1, bytes([self.content[at] ^ 1 << self.chance.randrange(8)]))

    def somewhere(self) -> int:
        return self.chance.randrange(self.size)


def damages(seed: int) -> Iterator[Damaged]:
    maker = Maker(seed)
    make, flip, somewhere, chance = maker.make, maker.flip, maker.somewhere, maker.chance
    starts, size = maker.starts, maker.size
    yield make("healthy")
    yield make("one flip", flip(somewhere()))
    yield make("many flips", *(flip(at) for at in sorted({somewhere() for _ in range(6)})))
    yield make("length", flip(starts[7] + chance.randrange(8)))
    yield make("checksum of a length", flip(starts[20] + 8 + chance.randrange(4)))
    yield make("neighbours", flip(starts[3] + 2), flip(starts[4] + 13), flip(starts[5] + 9))
    yield make("first and last", flip(3), flip(size - 2))
    yield make("cut", Edit(somewhere(), size, b""))
    yield make("cut in a header", Edit(starts[30] + 5, size, b""))
    yield make("cut between records", Edit(starts[25], size, b""))
    at = chance.randrange(size - 3000)
    yield make("zeros", Edit(at, at + 3000, bytes(3000)))
    yield make("a block of zeros from a record on", Edit(starts[9], starts[9] + 512, bytes(512)))
    yield make("zeros to the end", Edit(at, size, bytes(size - at)))
    yield make("deleted", Edit(at, at + chance.randrange(1, 700), b""))
    yield make("a byte deleted", Edit(at, at + 1, b""))
    yield make("inserted", Edit(at, at, chance.randbytes(chance.randrange(1, 700))))
    yield make("inserted between records", Edit(starts[12], starts[12], b"garbage"))
    yield make("garbage behind", Edit(size, size, chance.randbytes(50)))
    yield make("garbage before", Edit(0, 0, chance.randbytes(50)))
    yield make(
        "of all kinds", flip(starts[2] + 20), Edit(starts[15] + 5, starts[15] + 9, b""), Edit(size - 7, size, b"")
    )
    # Where a length is lost, records within a record are as good as others: elsewhere they must not be taken for such.
    maker = Maker(seed, nested=True)
    make, flip, starts = maker.make, maker.flip, maker.starts
    yield make("records within records")
    yield make("flips in records within records", flip(starts[6] - 500), flip(starts[18] + 9), flip(starts[20] + 2))
    yield make("lost before records within records", Edit(starts[16] + 3, starts[18], b""), flip(starts[31] - 2))


def scanned(folder: Path, piece_size: int, workers: int = 1) -> Scan:
    return scan(
        [str(folder)], Options(Job(), journal=folder.parent / "journal", piece_size=piece_size), LocalEngine(workers)
    )


def assert_same(dataset: Any, records: list[bytes]) -> None:
    """Without a comparison of their contents, which takes long to show."""
    read = list(dataset.as_numpy_iterator())
    differ = [number for number, (one, other) in enumerate(zip(read, records, strict=False)) if one != other]
    assert (len(read), differ[:3]) == (len(records), [])


CASES = [("", 1 << 20, 1), ("", 900, 2), ("", 4000, 3), ("GZIP", 900, 4), ("ZLIB", 900, 5)]


@pytest.mark.parametrize(("how", "piece_size", "seed"), CASES)
def test_exactly_the_whole_records(tmp_path: Path, how: str, piece_size: int, seed: int) -> None:
    folder, clean = tmp_path / "data", tmp_path / "clean"
    folder.mkdir()
    files = list(damages(seed))
    paths = [folder / f"{file.name}.{ENDINGS[how]}" for file in files]
    for path, file in zip(paths, files, strict=True):
        path.write_bytes(PACKERS[how](file.data))
    found = scanned(folder, piece_size)
    bad = {flaw.place.path for flaw in found.flaws if flaw.severity == "error"}
    assert {path.name for path in paths if str(path) not in bad} == {
        path.name for path in paths if path.name.startswith(("healthy", "cut between", "records within"))
    }
    skipped = faultlens.data.skip_bad(tf.data.TFRecordDataset([str(path) for path in paths], how), found)
    assert_same(skipped, [record for file in files for record in file.whole])
    quarantine(found, clean, lambda _: None)
    kept = [
        (clean if str(path) in bad else folder) / path.name
        for path, file in zip(paths, files, strict=True)
        if file.whole
    ]
    copies = tf.data.TFRecordDataset([str(path) for path in kept], how)
    assert_same(copies, [record for file in files for record in file.whole])
    assert scanned(clean, 1 << 20).errors == 0


@pytest.mark.parametrize("how", ["GZIP", "ZLIB"])
def test_packing_that_is_damaged(tmp_path: Path, how: str) -> None:
    """All that can be unpacked counts; TensorFlow itself does not get that far everywhere."""
    folder, clean = tmp_path / "data", tmp_path / "clean"
    folder.mkdir()
    chance = random.Random(6)
    records = [b"record %d " % number + chance.randbytes(600) + b"text " * 300 for number in range(60)]
    packed = PACKERS[how](b"".join(map(frame, records)))
    middle = len(packed) // 2
    contents = {
        "whole": packed,
        "cut": packed[:middle],
        "cut in what ends it": packed[:-3],
        "flip at its end": packed[:-3] + bytes([packed[-3] ^ 1]) + packed[-2:],
        "garbage behind": packed + b"more",
    }
    for number in range(6):
        at = chance.randrange(20, len(packed) - 20)
        contents[f"flip {number}"] = packed[:at] + bytes([packed[at] ^ 1 << number]) + packed[at + 1 :]
    for name, content in contents.items():
        (folder / f"{name}.{ENDINGS[how]}").write_bytes(content)
    found = scanned(folder, 900)
    quarantine(found, clean, lambda _: None)
    bad = {flaw.place.path for flaw in found.flaws if flaw.severity == "error"}
    assert len(bad) == len(contents) - 1
    refused = []
    for name, content in contents.items():
        path = folder / f"{name}.{ENDINGS[how]}"
        unpacked = unpacked_byte_by_byte(content)
        whole = [record for record in records if frame(record) in unpacked]
        assert whole, name
        if str(path) in bad:
            assert_same(tf.data.TFRecordDataset(str(clean / path.name), how), whole)
        try:
            assert_same(faultlens.data.skip_bad(tf.data.TFRecordDataset(str(path), how), found), whole)
        except FaultlensError as error:
            assert "--quarantine" in str(error)
            refused.append(name)
    assert not {"whole", "cut", "cut in what ends it", "garbage behind"} & set(refused)


def unpacked_byte_by_byte(content: bytes) -> bytes:
    """zlib gives nothing of the call that fails."""
    inflater, parts = zlib.decompressobj(wbits=47), []
    try:
        for number in range(len(content)):
            parts.append(inflater.decompress(content[number : number + 1]))
    except zlib.error:
        pass
    return b"".join(parts)


def test_more_flaws_than_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    damaged = bytearray(frame(b"a record"))
    damaged[14] ^= 1
    (folder / "a.tfrecord").write_bytes(bytes(damaged) * 1001 + frame(b"a whole one"))
    (folder / "b.tfrecord").write_bytes(bytes(damaged) + frame(b"another"))
    found = scanned(folder, 1 << 20)
    with pytest.raises(FaultlensError, match="more bad records than the findings list"):
        faultlens.data.skip_bad(tf.data.TFRecordDataset(str(folder / "a.tfrecord")), found)
    assert_same(faultlens.data.skip_bad(tf.data.TFRecordDataset(str(folder / "b.tfrecord")), found), [b"another"])
    quarantine(found, tmp_path / "clean", lambda _: None)
    assert [path.name for path in (tmp_path / "clean").glob("*.tfrecord")] == ["b.tfrecord"]


def test_findings_of_a_relative_path_are_good_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "elsewhere").mkdir()
    damaged = frame(b"one")[:-1] + b"x" + frame(b"two")
    (tmp_path / "data" / "a.tfrecord").write_bytes(damaged)
    monkeypatch.chdir(tmp_path)
    main(["scan", "data", "--json", "found.json"])
    monkeypatch.chdir(tmp_path / "elsewhere")
    dataset = tf.data.TFRecordDataset("../data/a.tfrecord")
    assert_same(faultlens.data.skip_bad(dataset, tmp_path / "found.json"), [b"two"])
    (tmp_path / "data").rename(tmp_path / "elsewhere" / "data")  # relative paths are all that is left
    found = (tmp_path / "found.json").read_text().replace(str(tmp_path), "/no/such/folder")
    (tmp_path / "found.json").write_text(found)
    assert_same(faultlens.data.skip_bad("data/a.tfrecord", tmp_path / "found.json"), [b"two"])
