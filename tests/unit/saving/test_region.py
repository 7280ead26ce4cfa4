"""A file written past the page cache: every byte where it belongs, whatever the position and the length."""

from __future__ import annotations

import io
import os
import random
import zipfile
from pathlib import Path

import pytest

from faultlens.model_files.crc32c import crc32c
from faultlens.saving.checksums import Part, read_all
from faultlens.saving.region import ALIGNMENT, BLOCK, LARGE, DiskFile, Region

LENGTHS = (0, 1, ALIGNMENT, LARGE - 1, LARGE, LARGE + 1, 2 * LARGE + 17, BLOCK + 4099)


@pytest.mark.parametrize("position", [0, 1, 511, ALIGNMENT, ALIGNMENT + 5, LARGE - 3])
@pytest.mark.parametrize("length", LENGTHS)
def test_what_was_written_is_read_back(tmp_path: Path, position: int, length: int) -> None:
    data = random.Random(length).randbytes(length)
    with DiskFile(tmp_path / "file", writing=True) as file:
        file.write(0, b"x" * position)
        assert file.write(position, memoryview(data)) == length
        assert b"".join(map(bytes, file.blocks(position, length))) == data
    assert (tmp_path / "file").read_bytes() == b"x" * position + data


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a model")
    with pytest.raises(FileExistsError):
        DiskFile(tmp_path / "file", writing=True)


def test_where_direct_io_is_refused_the_page_cache_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, data: bytes, position: int) -> int:
        if os.get_blocking(descriptor) and descriptor == file._direct:
            raise OSError(22, "Invalid argument")
        return real(descriptor, data, position)

    real = os.pwrite
    data = random.Random(1).randbytes(3 * LARGE)
    with DiskFile(tmp_path / "file", writing=True) as file:
        if file._direct is None:
            pytest.skip("this file system has no direct I/O")
        monkeypatch.setattr(os, "pwrite", refuse)
        file.write(7, data)
    assert (tmp_path / "file").read_bytes()[7:] == data


def test_a_region_is_a_file_of_its_own(tmp_path: Path) -> None:
    with DiskFile(tmp_path / "file", writing=True) as file:
        file.write(0, b"before")
        region = Region(file, start=6)
        region.write(b"0123456789")
        region.seek(-3, os.SEEK_END)
        assert region.read() == b"789"
        region.seek(2)
        region.write(b"ab")
        buffer = bytearray(20)
        region.seek(0)
        assert region.readinto(buffer) == 10
        assert bytes(buffer[:10]) == b"01ab456789"
        region.truncate(4)
        assert region.size == 4
    assert (tmp_path / "file").read_bytes() == b"before01ab"


def test_an_archive_takes_what_is_in_its_place_already(tmp_path: Path) -> None:
    data = random.Random(2).randbytes(2 * LARGE + 3)
    with DiskFile(tmp_path / "archive", writing=True) as file:
        whole = Region(file)
        with zipfile.ZipFile(whole, "w") as archive:
            archive.writestr("first", b"1")
            with archive.open(zipfile.ZipInfo("data"), "w", force_zip64=True) as member:
                inset = Region(file, whole.tell())
                inset.write_at(LARGE, data[LARGE:])  # in any order
                inset.write_at(0, data[:LARGE])
                with whole.written_already():
                    for block in inset.blocks():
                        member.write(block)
            archive.writestr("last", b"2")
    with zipfile.ZipFile(io.BytesIO((tmp_path / "archive").read_bytes())) as archive:
        assert archive.testzip() is None
        assert (archive.read("first"), archive.read("data"), archive.read("last")) == (b"1", data, b"2")


def test_checksums_of_parts_in_one_reading(tmp_path: Path) -> None:
    data = random.Random(3).randbytes(2 * BLOCK + 12345)
    (tmp_path / "file").write_bytes(data)
    parts = [Part(start, size) for start, size in ((0, 10), (BLOCK - 5, 10), (17, 2 * BLOCK), (len(data) - 1, 1))]
    with DiskFile(tmp_path / "file") as file:
        assert read_all(file, parts) == crc32c(data)
    for part in parts:
        assert part.value == crc32c(data[part.start : part.start + part.size])
