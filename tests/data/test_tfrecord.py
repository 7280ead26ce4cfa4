"""TFRecord files with one wound each: every one is found, at the right record, and all other records are kept."""

from __future__ import annotations

import gzip
import random
import zlib
from itertools import pairwise
from pathlib import Path

import pytest

from faultlens.records.scan import Flaw
from tfrecords import file_of, framed, scanned

SEED = random.Random(7)
DATA = [SEED.randbytes(SEED.choice((0, 1, 11, 12, 200, 3000))) for _ in range(60)]
FILE = file_of(DATA)
STARTS = [len(file_of(DATA[:number])) for number in range(len(DATA) + 1)]


def facts(flaws: list[Flaw]) -> list[tuple[str, int | None, int | None, int | None]]:
    return [(flaw.kind, flaw.place.record, flaw.place.offset, flaw.place.size) for flaw in flaws]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.tfrecord"


def record_at(offset: int) -> int:
    return max(number for number, start in enumerate(STARTS) if start <= offset)


@pytest.mark.parametrize("piece_size", [1 << 28, 1000, 4097, 20_000])
def test_healthy(path: Path, piece_size: int) -> None:
    found = scanned(path, FILE, piece_size)
    assert not found.flaws
    assert found.records == len(DATA)


def test_every_flipped_bit_is_found_at_its_record(path: Path) -> None:
    for _ in range(400):
        damaged = bytearray(FILE)
        at = SEED.randrange(len(FILE))
        damaged[at] ^= 1 << SEED.randrange(8)
        found = scanned(path, bytes(damaged))
        number = record_at(at)
        expected = (number, STARTS[number], STARTS[number + 1] - STARTS[number])
        assert [fact[1:] for fact in facts(found.flaws)] == [expected]
        assert found.records == len(DATA)


def test_every_cut_is_found(path: Path) -> None:
    for at in SEED.sample(range(1, len(FILE)), 400):
        found = scanned(path, FILE[:at])
        if at in STARTS:  # the file is as whole as any
            assert not found.flaws
            continue
        (flaw,) = found.flaws
        assert flaw.kind == "truncated"
        number = record_at(at)
        assert facts([flaw])[0][1:] == (number, STARTS[number], at - STARTS[number])


@pytest.mark.parametrize("wound", ["zeros", "deleted", "inserted", "copied"])
def test_wounds_over_several_records(path: Path, wound: str) -> None:
    """What is lost reaches from the first damaged record to the next whole one, in pieces as in one go."""
    for _ in range(100):
        damaged = bytearray(FILE)
        at, size = SEED.randrange(len(FILE) - 9000), SEED.randint(1, 8000)
        if wound == "zeros":
            damaged[at : at + size] = bytes(size)
        elif wound == "deleted":
            del damaged[at : at + size]
        elif wound == "inserted":
            damaged[at:at] = SEED.randbytes(size)
        else:
            damaged[at:at] = damaged[at + size : at + 2 * size]
        if damaged == FILE:
            continue
        found = scanned(path, bytes(damaged))
        if wound not in ("deleted", "copied") or at not in STARTS:  # whole records may be gone without a trace
            assert found.flaws
        split = scanned(path, bytes(damaged), SEED.randint(2000, 30_000))
        assert facts(split.flaws) == facts(found.flaws)
        assert split.records == found.records
        bad = {flaw.place.record for flaw in found.flaws}
        lost = size if wound in ("zeros", "deleted") else 0
        untouched = sum(end <= at or start >= at + lost for start, end in pairwise(STARTS))
        assert found.records - len(bad) >= untouched


def test_records_inside_of_records_are_not_mistaken(path: Path) -> None:
    nested = file_of(bytes(SEED.randint(0, 50)) + file_of(DATA[: SEED.randint(0, 20)]) for _ in range(30))
    for piece_size in (1 << 28, 1000, 7001):
        found = scanned(path, nested, piece_size)
        assert not found.flaws
        assert found.records == 30


def test_a_record_larger_than_what_is_held(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("faultlens.data.tfrecord.records.MAX_HELD", 4096)
    monkeypatch.setattr("faultlens.data.formats.tfrecord.WINDOW", 1024)
    large = file_of([b"a", SEED.randbytes(50_000), b"b"])
    assert not scanned(path, large).flaws
    assert scanned(path).records == 3
    damaged = bytearray(large)
    damaged[30_000] ^= 1
    assert facts(scanned(path, bytes(damaged)).flaws) == [("checksum", 1, 17, 50_016)]
    assert facts(scanned(path, large[:30_000]).flaws) == [("truncated", 1, 17, 29_983)]


def test_what_follows_the_last_record(path: Path) -> None:
    end = len(FILE)
    assert facts(scanned(path, FILE + bytes(4096)).flaws) == [("trailing", 60, end, 4096)]
    assert facts(scanned(path, FILE + b"garbage and more of it").flaws) == [("trailing", 60, end, 22)]
    assert facts(scanned(path, FILE + bytes(3)).flaws) == [("truncated", 60, end, 3)]


def test_what_is_no_tfrecord_file(path: Path) -> None:
    assert [flaw.kind for flaw in scanned(path, b"label,price\n" * 100).flaws] == ["magic"]
    assert [flaw.kind for flaw in scanned(path, b"").flaws] == ["empty"]
    assert [flaw.kind for flaw in scanned(path, bytes(10_000)).flaws] == ["magic"]


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_packed(tmp_path: Path, pack) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / ("data.tfrecord.gz" if pack is gzip.compress else "data.tfrecord")
    packed = pack(FILE)
    found = scanned(path, packed)
    assert not found.flaws
    assert found.records == len(DATA)
    for at in SEED.sample(range(len(packed) // 10, len(packed)), 100):
        assert any(flaw.kind == "truncated" for flaw in scanned(path, packed[:at]).flaws)
    for _ in range(200):
        damaged = bytearray(packed)
        at = SEED.randrange(12, len(packed))  # before it, a header says when and by whom
        damaged[at] ^= 1 << SEED.randrange(8)
        assert scanned(path, bytes(damaged)).flaws


def test_gzip_files_that_were_joined(tmp_path: Path) -> None:
    found = scanned(tmp_path / "data.tfrecord.gz", gzip.compress(FILE) + gzip.compress(framed(b"more")) + bytes(512))
    assert not found.flaws
    assert found.records == len(DATA) + 1


def test_damage_inside_of_packed_records(tmp_path: Path) -> None:
    damaged = bytearray(FILE)
    damaged[STARTS[30] + 12] ^= 1
    found = scanned(tmp_path / "data.tfrecord.gz", gzip.compress(bytes(damaged)))
    assert facts(found.flaws)[0][1:3] == (30, STARTS[30])
