"""Zip and tar archives: what is healthy passes, what is cut, changed or hostile does not."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import stat
import struct
import tarfile
import zipfile
import zlib

import pytest

from checked_bytes import checked, flaws, items, kinds, noticed_damages, unnoticed_cuts, unnoticed_flips
from faultlens.data.formats import unpacking
from faultlens.data.formats.tar_file import GzipTarFile, TarFile
from faultlens.data.formats.zip_file import ZipFile

ZIP, TAR, PACKED = ZipFile(), TarFile(), GzipTarFile()
NOISE = random.Random(7).randbytes(3000)
METHODS = {
    "stored": zipfile.ZIP_STORED,
    "deflated": zipfile.ZIP_DEFLATED,
    "bzip2": zipfile.ZIP_BZIP2,
    "lzma": zipfile.ZIP_LZMA,
}


class OneWay(io.RawIOBase):
    """Cannot be sought in: what is written to a pipe."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.parts.append(bytes(data))
        return len(data)


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED, comment: bytes = b"") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.comment = comment
    return file.getvalue()


def tarred(members: dict[str, bytes], format: int = tarfile.PAX_FORMAT, mode: str = "w") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode, format=format) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def with_member(info: tarfile.TarInfo) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(info, io.BytesIO(bytes(info.size)))
    return file.getvalue()


MEMBERS = {"a.txt": b"text" * 50, "folder/": b"", "folder/noise.bin": NOISE, "empty": b"", "ü/日本.txt": b"names"}


class TestHealthyZip:
    @pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
    def test_every_way_of_packing(self, method: int) -> None:
        found = checked(ZIP, zipped(MEMBERS, method))
        assert found.flaws == ()
        assert found.records == len(MEMBERS)

    def test_empty_with_comment_and_after_a_program(self) -> None:
        assert kinds(ZIP, zipped({})) == []
        assert kinds(ZIP, zipped(MEMBERS, comment=b"a comment with PK\5\6 in it")) == []
        assert kinds(ZIP, zipped(MEMBERS, comment=b"x" * 65535)) == []
        assert kinds(ZIP, b"#!/usr/bin/python\n" + zipped(MEMBERS)) == []

    @pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
    def test_written_to_a_pipe(self, method: int) -> None:
        pipe = OneWay()
        with zipfile.ZipFile(pipe, "w", method) as archive:
            for name, data in MEMBERS.items():
                archive.writestr(name, data)
        assert kinds(ZIP, b"".join(pipe.parts)) == []

    def test_long_fields_and_many_members(self) -> None:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive, archive.open("long", "w", force_zip64=True) as member:
            member.write(NOISE)
        assert kinds(ZIP, file.getvalue()) == []
        many = zipped({f"{number}": b"" for number in range(66_000)}, zipfile.ZIP_STORED)
        found = checked(ZIP, many)
        assert (found.records, found.flaws) == (66_000, ())

    def test_appended_to_and_with_a_gap(self) -> None:
        file = io.BytesIO(zipped(MEMBERS))
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr("later", b"more")
        assert kinds(ZIP, file.getvalue()) == []

    def test_what_macos_adds(self) -> None:
        assert kinds(ZIP, zipped({"image.jpg.txt": b"", "__MACOSX/._image.jpg": b"\0\5\26\7" + bytes(100)})) == []

    def test_json_lines_under_the_name_of_json(self) -> None:
        assert kinds(ZIP, zipped({"a.json": b'{"a": 1}\n{"a": 2}\n', "b.json": b"[1, 2]"})) == []


class TestDamagedZip:
    @pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
    def test_cut_anywhere(self, method: int) -> None:
        data = zipped({"a": b"text" * 9, "b": NOISE[:100], "in.zip": zipped({"x": NOISE[:50]}, 0)}, method, b"comment")
        assert unnoticed_cuts(ZIP, data) == []

    def test_cut_behind_an_archive_that_is_its_member(self) -> None:
        inner = zipped({"x": NOISE[:50]}, zipfile.ZIP_STORED)
        data = zipped({"a": b"text", "in.zip": inner, "b": b"lost"}, zipfile.ZIP_STORED)
        cut = data[: data.index(inner) + len(inner)]
        assert zipfile.is_zipfile(io.BytesIO(cut))  # others take it for whole
        assert kinds(ZIP, cut) == ["truncated"]

    @pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
    def test_changed_data(self, method: int) -> None:
        content = b"a longer text, and " * 3 + NOISE[:60]
        data = zipped({"a": content}, method)
        for position in unnoticed_flips(ZIP, data, 31, data.index(b"PK\1\2")):
            damaged = bytearray(data)
            damaged[position] ^= 0x55
            with zipfile.ZipFile(io.BytesIO(damaged)) as archive:  # bits that mean nothing
                assert archive.read("a") == content

    def test_checksum_names_the_member(self) -> None:
        data = bytearray(zipped({"first": b"1" * 50, "second": b"2" * 50}, zipfile.ZIP_STORED))
        data[data.index(b"2222") + 3] ^= 1
        (flaw,) = flaws(ZIP, bytes(data))
        assert (flaw.kind, flaw.place.member, flaw.place.record) == ("checksum", "second", 1)
        assert flaw.place.offset == bytes(data).index(b"second") - 30

    def test_directory_against_headers(self) -> None:
        data = zipped({"name": NOISE[:50]})
        header, entry = data.index(b"PK\3\4"), data.index(b"PK\1\2")
        for field in (8, 14, 18, 22, 30):  # method, checksum, sizes, name
            assert unnoticed_flips(ZIP, data, header + field, header + field + 1) == []
        for field in (10, 16, 20, 24, 42, 46):
            assert unnoticed_flips(ZIP, data, entry + field, entry + field + 1) == []

    def test_unpacks_to_another_size(self) -> None:
        data = bytearray(zipped({"a": b"text" * 50}))
        for place in (bytes(data).index(b"PK\3\4") + 22, bytes(data).index(b"PK\1\2") + 24):
            struct.pack_into("<I", data, place, 100)
        assert kinds(ZIP, bytes(data)) == ["structure"]
        for place in (bytes(data).index(b"PK\3\4") + 22, bytes(data).index(b"PK\1\2") + 24):
            struct.pack_into("<I", data, place, 300)
        assert kinds(ZIP, bytes(data)) == ["short"]

    def test_bytes_behind_the_end(self) -> None:
        (flaw,) = flaws(ZIP, zipped(MEMBERS) + b"\r\n")
        assert (flaw.kind, flaw.severity) == ("trailing", "warning")

    def test_two_members_of_one_name(self) -> None:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a", b"1")
            archive.writestr("a", b"2")
        assert kinds(ZIP, file.getvalue()) == ["duplicate"]

    def test_broken_contents(self) -> None:
        found = flaws(ZIP, zipped({"a.json": b'{"a": ', "b.npy": b"\x93NUMPY\1\0", "c.zip": b"PK\3\4"}))
        assert [(flaw.kind, flaw.place.member) for flaw in found] == [
            ("structure", "a.json"),
            ("truncated", "b.npy"),
            ("truncated", "c.zip"),
        ]

    def test_not_a_zip_archive(self) -> None:
        assert kinds(ZIP, b"hello world" * 100) == ["magic"]
        assert kinds(ZIP, b"") == ["empty"]

    def test_random_damage_never_raises(self) -> None:
        data = zipped({**MEMBERS, "in.zip": zipped(MEMBERS), "a.tar": tarred(MEMBERS)})
        assert noticed_damages(ZIP, data, 800, seed=3) > 700


class TestHostileZip:
    @pytest.mark.parametrize("name", ["../out", "/etc/passwd", "a/../../out", "C:/x", "..\\out"])
    def test_leads_out(self, name: str) -> None:
        (flaw,) = flaws(ZIP, zipped({"good": b"", name: b"x"}))
        assert (flaw.kind, flaw.severity) == ("hostile", "error")

    def test_stays_within(self) -> None:
        assert kinds(ZIP, zipped({"a/../b": b"x", "..data/x": b"", "a..b": b""})) == []

    @pytest.mark.parametrize(("target", "expected"), [(b"../../x", ["hostile"]), (b"../x", []), (b"/x", ["hostile"])])
    def test_links(self, target: bytes, expected: list[str]) -> None:
        info = zipfile.ZipInfo("folder/link")
        info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(info, target)
        assert kinds(ZIP, file.getvalue()) == expected

    def test_members_that_share_their_bytes(self) -> None:
        """One kernel of compressed data, and many entries of the directory that lead to it."""
        data = zipped({"a": b"text" * 500})
        start, end = data.index(b"PK\1\2"), data.index(b"PK\5\6")
        entry, directory = data[start:end], 50 * data[start:end]
        record = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 50, 50, 50 * len(entry), start, 0)
        found = kinds(ZIP, data[:start] + directory + record)
        assert found.count("hostile") == 50

    def test_bomb(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in ("zip_archive", "archives"):
            monkeypatch.setattr(f"faultlens.data.formats.{module}.HARMLESS", 1 << 20)
        (flaw,) = flaws(ZIP, zipped({"a": bytes(16 << 20)}))
        assert flaw.kind == "hostile"
        assert kinds(ZIP, zipped({"a": bytes(1 << 20)})) == []
        assert kinds(TAR, tarred({"a": bytes(16 << 20)}, mode="w:gz"), "a.tar.gz") == ["hostile"]

    def test_bounds_leave_honest_zeros_alone(self) -> None:
        assert unpacking.HARMLESS >= 1 << 30

    def test_archives_in_archives(self) -> None:
        two = zipped({"b.zip": zipped({"x": b"1"})})
        assert kinds(ZIP, two) == []
        (flaw,) = flaws(ZIP, zipped({"a.zip": two}))
        assert (flaw.kind, flaw.place.member) == ("hostile", "a.zip/b.zip")

    def test_encrypted_and_unknown_members_are_noted(self) -> None:
        for place, value in ((6, 1), (8, 99)):
            data = bytearray(zipped({"a": b"text"}))
            data[bytes(data).index(b"PK\3\4") + place] = value
            data[bytes(data).index(b"PK\1\2") + place + 2] = value
            (flaw,) = flaws(ZIP, bytes(data))
            assert (flaw.kind, flaw.severity) == ("unsupported", "note")


TAR_FORMATS = {"ustar": tarfile.USTAR_FORMAT, "GNU": tarfile.GNU_FORMAT, "PAX": tarfile.PAX_FORMAT}
LONG = {**MEMBERS, "long/" * 45 + "name": b"long", "x" * 90: b"y"}


class TestHealthyTar:
    @pytest.mark.parametrize("format", TAR_FORMATS.values(), ids=TAR_FORMATS)
    @pytest.mark.parametrize("mode", ["w", "w:gz"])
    def test_every_format(self, format: int, mode: str) -> None:
        found = checked(TAR, tarred(LONG, format, mode), "a.tar.gz" if mode == "w:gz" else "a.tar")
        assert found.flaws == ()
        assert found.records == len(LONG)

    def test_members_without_data(self) -> None:
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", pax_headers={"comment": "for all"}) as archive:
            for name, kind, link in (
                ("folder", tarfile.DIRTYPE, ""),
                ("folder/link", tarfile.SYMTYPE, "../good"),
                ("hard", tarfile.LNKTYPE, "folder/link"),
            ):
                info = tarfile.TarInfo(name)
                info.type, info.linkname = kind, link
                archive.addfile(info)
        assert kinds(TAR, file.getvalue()) == []

    def test_numbers_beyond_octal_digits(self) -> None:
        for format in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            info = tarfile.TarInfo("a")
            info.uid, info.mtime, info.size = 1 << 40, -5.5 if format == tarfile.PAX_FORMAT else -5, 600
            file = io.BytesIO()
            with tarfile.open(fileobj=file, mode="w", format=format) as archive:
                archive.addfile(info, io.BytesIO(bytes(600)))
            assert kinds(TAR, file.getvalue()) == []

    def test_sparse_members(self) -> None:
        info = tarfile.TarInfo("sparse.npy")
        info.size = 512
        header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
        header[156:157] = b"S"
        header[482] = 1
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        archive = bytes(header) + bytes(512) + bytes(512) + tarred({"b": b"next"}, tarfile.GNU_FORMAT)
        found = checked(TAR, archive)
        assert (found.flaws, found.records) == ((), 2)

    def test_packed_in_several_parts_and_padded(self) -> None:
        data = tarred(MEMBERS)
        assert kinds(TAR, gzip.compress(data[:1000]) + gzip.compress(data[1000:]) + bytes(100), "a.tar.gz") == []

    def test_only_what_is_needed_at_the_end(self) -> None:
        data = tarred({"a": b"text"})[:1024] + bytes(1024)
        assert kinds(TAR, data) == []

    def test_begins(self) -> None:
        for format in TAR_FORMATS.values():
            assert TAR.begins(tarred(LONG, format)[:512])
            assert PACKED.begins(tarred(LONG, format, "w:gz")[:512])
        assert not TAR.begins(bytes(512))
        assert not PACKED.begins(gzip.compress(b"text" * 1000)[:512])


class TestDamagedTar:
    @pytest.mark.parametrize("format", TAR_FORMATS.values(), ids=TAR_FORMATS)
    def test_cut_anywhere(self, format: int) -> None:
        data = tarred({"long/" * 30 + "name": b"text", "b": bytes(700)}, format)
        end = len(data.rstrip(b"\0")) // 512 * 512 + 1024  # of the last member, which is zeros
        end = next(at for at in range(end, len(data) + 1, 512) if not flaws(TAR, data[:at]))
        assert unnoticed_cuts(TAR, data[:end]) == []
        for at in range(end, len(data), 64):
            assert bool(flaws(TAR, data[:at])) == (at % 512 != 0)  # nothing is lost any more

    def test_cut_between_members(self) -> None:
        data = tarred({"a": b"1", "b": b"2"})
        (flaw,) = flaws(TAR, data[:1024])
        assert (flaw.kind, flaw.severity, flaw.place.offset) == ("truncated", "error", 1024)

    def test_packed_and_cut_anywhere(self) -> None:
        data = tarred({"a": NOISE[:300], "b": b"text"}, mode="w:gz")
        assert unnoticed_cuts(TAR, data, "a.tar.gz") == []

    def test_packed_and_changed(self) -> None:
        data = tarred({"a": NOISE[:300]}, mode="w:gz")
        assert unnoticed_flips(TAR, data, data.index(b"\0", 10) + 1, len(data), "a.tar.gz") == []

    def test_changed_header(self) -> None:
        data = tarred({"a": b"text", "b": b"text"})
        assert unnoticed_flips(TAR, data, 1024, 1024 + 148) == []
        assert unnoticed_flips(TAR, data, 1024 + 156, 1536) == []
        damaged = bytearray(data)
        damaged[1024] ^= 1
        found = checked(TAR, bytes(damaged))
        assert [(flaw.kind, flaw.place.offset) for flaw in found.flaws] == [("checksum", 1024)]

    def test_goes_on_behind_a_damaged_header(self) -> None:
        damaged = bytearray(tarred({"a": b"1", "b": b"2", "../c": b"3"}))
        damaged[1024] ^= 1
        assert kinds(TAR, bytes(damaged)) == ["hostile", "checksum"]

    def test_something_behind_the_end(self) -> None:
        (flaw,) = flaws(TAR, tarred({"a": b"1"}) + b"x" * 512)
        assert (flaw.kind, flaw.severity) == ("trailing", "warning")
        assert kinds(TAR, tarred({"a": b"1"}, mode="w:gz") + b"x" * 512, "a.tgz") == ["trailing"]

    def test_not_a_tar_archive(self) -> None:
        assert "checksum" in kinds(TAR, b"hello world " * 512)
        assert kinds(TAR, b"hello", "a.tar.gz") == ["structure"]
        assert kinds(TAR, b"") == ["empty"]

    def test_random_damage_never_raises(self) -> None:
        data = tarred({**LONG, "in.zip": zipped(MEMBERS), "a.json": b"[]", "b.cls": b"4"})
        assert noticed_damages(TAR, data, 600, seed=4) > 300


class TestHostileTar:
    @pytest.mark.parametrize("name", ["../out", "/etc/passwd", "a/../../out"])
    def test_leads_out(self, name: str) -> None:
        (flaw,) = flaws(TAR, tarred({"good": b"", name: b"x"}))
        assert (flaw.kind, flaw.severity, flaw.place.member) == ("hostile", "error", name)

    @pytest.mark.parametrize(
        ("kind", "link"),
        [
            (tarfile.SYMTYPE, "/etc/passwd"),
            (tarfile.SYMTYPE, "../../x"),
            (tarfile.LNKTYPE, "../x"),
            (tarfile.CHRTYPE, ""),
            (tarfile.FIFOTYPE, ""),
        ],
    )
    def test_links_and_devices(self, kind: bytes, link: str) -> None:
        info = tarfile.TarInfo("folder/name")
        info.type, info.linkname = kind, link
        assert kinds(TAR, with_member(info)) == ["hostile"]

    def test_archives_in_archives(self) -> None:
        two = tarred({"b.tar": tarred({"x": b"1"})})
        assert kinds(TAR, two) == []
        assert kinds(TAR, tarred({"a.tar": two})) == ["hostile"]
        assert kinds(TAR, tarred({"a.tar": tarred({"x": b"1"})[:700]})) == ["truncated"]


class TestWebdataset:
    def shard(self, **changes: bytes | None) -> bytes:
        members: dict[str, bytes | None] = {}
        for number in range(150):
            members[f"{number:05d}.cls"] = b"%d" % (number % 10)
            members[f"{number:05d}.json"] = json.dumps({"number": number}).encode()
        members |= {name.replace("_", "."): data for name, data in changes.items()}
        return tarred({name: data for name, data in members.items() if data is not None})

    def test_healthy(self) -> None:
        found = checked(TAR, self.shard())
        assert found.flaws == ()
        (trait,) = found.traits
        assert {value: seen.count for value, seen in trait.values.items()} == {"cls json": 150}

    def test_sample_that_lacks_a_file(self) -> None:
        (trait,) = checked(TAR, self.shard(**{"00007_cls": None})).traits
        assert {value: seen.count for value, seen in trait.values.items()} == {"cls json": 149, "json": 1}
        assert trait.values["json"].places[0].member == "00007.json"

    def test_members_that_cannot_be_read(self) -> None:
        found = flaws(TAR, self.shard(**{"00007_cls": b"cat", "00008_json": b"{"}))
        assert [(flaw.kind, flaw.place.member) for flaw in found] == [
            ("label", "00007.cls"),
            ("structure", "00008.json"),
        ]

    def test_any_other_archive_has_no_samples(self) -> None:
        assert checked(TAR, tarred({**{f"{n}.bin": b"" for n in range(200)}, "README.md": b""})).traits == ()


def test_what_packers_write_matches_ours() -> None:
    """The packers themselves, so that the tests above say something about the bytes they are thought to."""
    for pack in (zlib.compress, bz2.compress, lzma.compress):
        assert pack(NOISE) != NOISE
    assert items(ZIP, zipped({"a.txt": b"text"})) == []
    assert items(TAR, tarred({"a.txt": b"text"})) == []
