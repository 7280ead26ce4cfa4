"""`faultlens.data.skip_bad`: every good record is there, in its order, and no bad one."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import faultlens.data
from faultlens.data import scanning
from faultlens.data.findings import Findings
from faultlens.data.quarantine.quarantine import quarantine
from faultlens.errors import FaultlensError
from faultlens.model_files.crc32c import crc32c, masked
from faultlens.records.scan import Flaw, Identity, Kind, Place, Scan, Scanned
from faultlens.records.severity import Severity

tf = pytest.importorskip("tensorflow")


def frame(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(crc32c(length))) + data + struct.pack("<I", masked(crc32c(data)))


def texts(count: int, name: str = "record") -> list[bytes]:
    """Of many lengths, so that no offset fits by chance."""
    return [f"{name} {number} ".encode() * (1 + number * 7 % 13) for number in range(count)]


def packed(data: bytes, how: str) -> bytes:
    return {"": lambda: data, "GZIP": lambda: gzip.compress(data), "ZLIB": lambda: zlib.compress(data)}[how]()


class Written:
    """A file of records, some of them damaged, and the flaws that a scan tells of them."""

    def __init__(
        self,
        path: Path,
        records: Sequence[bytes],
        bad: Sequence[int] = (),
        how: str = "",
        severity: Severity = "error",
    ) -> None:
        self.path, self.how = path, how
        self.good = [record for number, record in enumerate(records) if number not in bad]
        data, flaws = b"", []
        for number, record in enumerate(records):
            framed = bytearray(frame(record))
            if number in bad:
                if severity == "error":
                    framed[-5 if number % 2 else 3] ^= 0x40  # data, or the length: the frame is lost
                place = Place(path=str(path), record=number, offset=len(data), size=len(framed))
                flaws.append(Flaw(kind="checksum", severity=severity, place=place, reason="does not fit"))
            data += framed
        path.write_bytes(packed(data, how))
        self.flaws = tuple(flaws)

    def scanned(self, errors: int | None = None) -> Scanned:
        state = self.path.stat()
        return Scanned(
            path=str(self.path),
            format=f"TFRecord ({self.how})" if self.how else "TFRecord",
            size=state.st_size,
            records=len(self.good),
            identity=Identity(size=state.st_size, modified=state.st_mtime_ns, inode=state.st_ino),
            errors=sum(flaw.severity == "error" for flaw in self.flaws) if errors is None else errors,
        )


def scan_of(*files: Written) -> Scan:
    return Scan(
        roots=(),
        flaws=tuple(flaw for file in files for flaw in file.flaws),
        files=tuple(file.scanned() for file in files),
    )


def read(dataset: Any) -> list[bytes]:
    return list(dataset.as_numpy_iterator())


BAD = [
    pytest.param([], id="none"),
    pytest.param([0], id="first"),
    pytest.param([29], id="last"),
    pytest.param([4, 5, 6, 17], id="neighbours"),
    pytest.param([0, 1, 28, 29], id="both ends"),
    pytest.param(list(range(30)), id="all"),
]


@pytest.mark.parametrize("how", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("bad", BAD)
def test_all_good_records_in_their_order(tmp_path: Path, bad: list[int], how: str) -> None:
    file = Written(tmp_path / "a.tfrecord", texts(30), bad, how)
    dataset = tf.data.TFRecordDataset(str(file.path), compression_type=how)
    if bad:
        with pytest.raises(tf.errors.DataLossError):
            read(dataset)
    result = faultlens.data.skip_bad(dataset, scan_of(file))
    assert read(result) == file.good
    assert read(result) == file.good  # the second epoch
    assert result.element_spec == dataset.element_spec


def test_a_lost_region_counts_as_one_record(tmp_path: Path) -> None:
    path, records = tmp_path / "a.tfrecord", texts(9)
    before, lost, behind = (b"".join(map(frame, part)) for part in (records[:2], records[2:5], records[5:]))
    path.write_bytes(before + bytes(len(lost)) + behind[:-3])
    places = [
        Place(path=str(path), record=2, offset=len(before), size=len(lost)),
        Place(path=str(path), record=6, offset=len(before + lost + behind) - len(frame(records[8])), size=None),
    ]
    flaws = [Flaw(kind="structure", severity="error", place=place, reason="lost") for place in places]
    assert read(faultlens.data.skip_bad(tf.data.TFRecordDataset(str(path)), flaws)) == records[:2] + records[5:8]


def test_several_files_and_what_follows_in_a_pipeline(tmp_path: Path) -> None:
    files = [Written(tmp_path / f"{n}.tfrecord", texts(12, f"file {n}"), [n, 11 - n]) for n in range(3)]
    healthy = Written(tmp_path / "healthy.tfrecord", texts(5, "healthy"))
    names = [str(file.path) for file in (*files, healthy)]
    good = [record for file in (*files, healthy) for record in file.good]
    findings = scan_of(*files)
    assert read(faultlens.data.skip_bad(tf.data.TFRecordDataset(names), findings)) == good
    parallel = faultlens.data.skip_bad(tf.data.TFRecordDataset(names, num_parallel_reads=2), findings)
    assert sorted(read(parallel)) == sorted(good)
    assert read(parallel)[:4] == [files[0].good[0], files[1].good[0], files[0].good[1], files[1].good[1]]
    for shuffled in (
        tf.data.Dataset.list_files(names, shuffle=True),
        tf.data.Dataset.from_tensor_slices(names).repeat(1),
    ):
        assert sorted(read(faultlens.data.skip_bad(tf.data.TFRecordDataset(shuffled), findings))) == sorted(good)
    lengths = faultlens.data.skip_bad(tf.data.TFRecordDataset(names), findings)
    lengths = lengths.shuffle(100).map(tf.strings.length, num_parallel_calls=2).batch(4).prefetch(1)
    assert sorted(int(each) for batch in lengths for each in batch) == sorted(map(len, good))


def test_names_that_are_known_only_in_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless data set of names cannot be listed: their usual spellings are tried."""
    monkeypatch.chdir(tmp_path)
    file = Written(tmp_path / "a.tfrecord", texts(6), [2])
    for name in ("a.tfrecord", "./a.tfrecord", str(file.path)):
        names = tf.data.Dataset.from_tensors(name).repeat()
        result = faultlens.data.skip_bad(tf.data.TFRecordDataset(names), scan_of(file))
        assert read(result.take(7)) == [*file.good, *file.good[:2]]


def test_paths_instead_of_a_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = Written(tmp_path / "a.tfrecord", texts(6), [1, 3], "GZIP")
    kept = tmp_path / "findings.json"
    kept.write_bytes(msgspec.json.encode(scan_of(file)))
    monkeypatch.chdir(tmp_path)
    for given in (file.path, [str(file.path)], "a.tfrecord"):
        assert read(faultlens.data.skip_bad(given, kept, compression_type="GZIP")) == file.good


def test_a_data_set_of_names_loses_the_bad_files(tmp_path: Path) -> None:
    for name in ("a.png", "b.png", "c.png"):
        (tmp_path / name).write_bytes(b"")

    def flaw(name: str, severity: Severity, kind: Kind = "truncated") -> Flaw:
        return Flaw(kind=kind, severity=severity, place=Place(path=str(tmp_path / name)), reason="bad")

    names = tf.data.Dataset.list_files(str(tmp_path / "*.png"), shuffle=False)
    flaws = [flaw("b.png", "error"), flaw("c.png", "warning", "differs")]
    left = lambda **options: [os.path.basename(name) for name in read(faultlens.data.skip_bad(names, flaws, **options))]
    assert left() == [b"a.png", b"c.png"]
    assert left(severity="warning") == [b"a.png"]


def test_warnings_are_left_out_on_demand(tmp_path: Path) -> None:
    records = texts(5)
    file = Written(tmp_path / "a.tfrecord", records, [1], severity="warning")
    dataset = tf.data.TFRecordDataset(str(file.path))
    assert read(faultlens.data.skip_bad(dataset, scan_of(file))) == records
    assert read(faultlens.data.skip_bad(dataset, scan_of(file), severity="warning")) == file.good


def test_a_file_that_is_bad_as_a_whole(tmp_path: Path) -> None:
    bad, healthy = tmp_path / "bad.tfrecord", Written(tmp_path / "b.tfrecord", texts(3))
    bad.write_bytes(b"no record at all")
    flaw = Flaw(kind="magic", severity="error", place=Place(path=str(bad)), reason="is none")
    dataset = tf.data.TFRecordDataset([str(bad), str(healthy.path)])
    assert read(faultlens.data.skip_bad(dataset, [flaw])) == healthy.good


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    file = Written(tmp_path / "a.tfrecord", texts(5), [1])
    findings = scan_of(file)
    os.utime(file.path, ns=(0, 12345))
    with pytest.raises(FaultlensError, match=r"changed since it was scanned\. Scan it again"):
        faultlens.data.skip_bad(tf.data.TFRecordDataset(str(file.path)), findings)
    other = Written(tmp_path / "other.tfrecord", texts(5))
    assert read(faultlens.data.skip_bad(tf.data.TFRecordDataset(str(other.path)), findings)) == other.good


def test_compressed_data_that_end_early_are_read_up_to_there(tmp_path: Path) -> None:
    path, records = tmp_path / "a.gz", [os.urandom(500) for _ in range(8)]
    whole = gzip.compress(b"".join(map(frame, records)))
    path.write_bytes(whole[: len(whole) * 2 // 3])
    flaw = Flaw(kind="truncated", severity="error", place=Place(path=str(path), record=5, offset=5 * 516), reason="cut")
    dataset = tf.data.TFRecordDataset(str(path), "GZIP")
    assert read(faultlens.data.skip_bad(dataset, [flaw])) == records[:5]
    damaged = bytearray(whole)
    damaged[-6] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(FaultlensError, match="--quarantine"):
        faultlens.data.skip_bad(dataset, [flaw])


def test_what_the_scan_tells_of_damaged_packing_has_no_offset(tmp_path: Path) -> None:
    path, records = tmp_path / "a.gz", [os.urandom(500) for _ in range(8)]
    whole = gzip.compress(b"".join(map(frame, records)))
    dataset = tf.data.TFRecordDataset(str(path), "GZIP")
    for content, good in ((whole[: len(whole) * 2 // 3], records[:5]), (whole + b"garbage", records)):
        path.write_bytes(content)
        with pytest.raises(tf.errors.DataLossError):
            read(dataset)
        flaw = Flaw(kind="truncated", severity="error", place=Place(path=str(path)), reason="what follows is lost")
        assert read(faultlens.data.skip_bad(dataset, [flaw])) == good


@pytest.mark.parametrize("how", ["", "GZIP", "ZLIB"])
def test_clean_copies_are_read_to_their_end(tmp_path: Path, how: str) -> None:
    file = Written(tmp_path / "a.tfrecord", texts(30), [0, 9, 10, 29], how)
    quarantine(scan_of(file), tmp_path / "clean", lambda _: None)
    assert read(tf.data.TFRecordDataset(str(tmp_path / "clean" / "a.tfrecord"), how)) == file.good


def test_more_flaws_than_are_listed(tmp_path: Path) -> None:
    file = Written(tmp_path / "a.tfrecord", texts(5), [1])
    scan = Scan(roots=(), flaws=file.flaws, files=(file.scanned(errors=7),), flaws_untold=6)
    assert Findings(scan).untold == {str(file.path)}
    with pytest.raises(FaultlensError, match="more bad records than the findings list"):
        faultlens.data.skip_bad(str(file.path), scan)


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    file = Written(tmp_path / "a.tfrecord", texts(5), [1])
    records = tf.data.TFRecordDataset(str(file.path))
    names = tf.data.Dataset.from_tensors(str(file.path))
    for dataset in (records.shuffle(2), records.batch(2), names.interleave(tf.data.TFRecordDataset)):
        with pytest.raises(TypeError, match="Put it before everything else"):
            faultlens.data.skip_bad(dataset, scan_of(file))
    with pytest.raises(TypeError, match="and not int"):
        faultlens.data.skip_bad(3, scan_of(file))
    (tmp_path / "none.json").write_text("[1]")
    with pytest.raises(FaultlensError, match="holds no findings"):
        faultlens.data.skip_bad(records, tmp_path / "none.json")


def test_a_name_that_is_not_utf8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTLENS_HOME", str(tmp_path / "home"))
    path = tmp_path / os.fsdecode(b"caf\xe9 \\xff\n.tfrecord")
    path.write_bytes(b"".join(map(frame, texts(3))) + frame(b"bad")[:-1] + b"?")
    scan = scanning.scan([str(path)])
    (tmp_path / "found.json").write_bytes(msgspec.json.encode(scan))
    for dataset in (tf.data.TFRecordDataset([os.fsencode(path)]), [path], str(path)):
        good = faultlens.data.skip_bad(dataset, tmp_path / "found.json")
        assert list(good.as_numpy_iterator()) == texts(3)


def test_a_severity_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(FaultlensError, match="There is no severity 'x'"):
        faultlens.data.skip_bad(str(tmp_path / "a.tfrecord"), [], severity="x")  # type: ignore[arg-type]
