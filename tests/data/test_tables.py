"""Tables: what is healthy passes, however it is written; what is cut, changed or odd does not."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable
from typing import Any

import numpy
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
from PIL import Image

from checked_bytes import checked, flaws, items, kinds, unnoticed_cuts, unnoticed_flips
from faultlens.data.formats import csv_records
from faultlens.data.formats.arrow_file import ArrowFile
from faultlens.data.formats.csv_file import CsvFile
from faultlens.data.formats.parquet_file import ParquetFile

CSV, PARQUET, ARROW = CsvFile(), ParquetFile(), ArrowFile()


def numbers(rows: int = 200, columns: int = 3) -> list[str]:
    return [",".join(str((row * 7 + column) / 4) for column in range(columns)) for row in range(rows)]


def text(lines: list[str], end: str = "\n") -> bytes:
    return (end.join(lines) + end).encode()


def picture(size: int = 8, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.fromarray(numpy.arange(size * size, dtype=numpy.uint8).reshape(size, size)).save(file, kind)
    return file.getvalue()


HEALTHY = {
    "header and numbers": text(["a,b,c", *numbers()]),
    "numbers alone": text(numbers()),
    "no line end at the end": text(numbers())[:-1],
    "Windows": text(["a,b,c", *numbers()], "\r\n"),
    "old Macintosh": text(["a,b,c", *numbers()], "\r"),
    "one line": b"a,b,c\n",
    "one column": text(["a", *map(str, range(200))]),
    "texts with commas in one column": text(["hello", "well, yes", "no", "so, so, so", "and, then"] * 30),
    "semicolons and decimal commas": text(["a;b", *(f"{row},5;{row},25" for row in range(200))]),
    "tabs": text(["a\tb", *(f"{row}\tx y" for row in range(200))]),
    "spaces": text([f"{row}.5 {row}" for row in range(200)]),
    "mark of UTF-8": b"\xef\xbb\xbf" + text(["1,2,3", *numbers()]),
    "letters beyond ASCII": text(["name,x", *(f"Zoë {row},{row}" for row in range(200))]),
    "Latin-1": "".join(f"Zoë {row},{row}\n" for row in range(200)).encode("latin-1"),
    "comments": text(["# made by hand, with care", "a,b,c", *numbers()]),
    "blank lines": text(["a,b,c", *numbers(), "", ""]),
    "names of rows, as R writes them": text(['"a","b"', *(f'"{row}",{row},2' for row in range(200))]),
    "missing values": text(["a,b,c", *(f"{row},,NA" if row % 3 else f"{row},1.5,2" for row in range(200))]),
    "missing in all but some": text(["a,b", *(f"{row},{'rare' if row == 50 else ''}" for row in range(200))]),
    "index without a name": text([",x,y", *(f"{row},1,2" for row in range(200))]),
    "years as names": text(["id,2019,2020", *(f"{row},1,2" for row in range(200))]),
    "header of three lines": text(["a,a", "left,right", "x,y", *numbers(200, 2)]),
    "dates": text([f"2020-01-{row % 28 + 1:02},{row}" for row in range(200)]),
    "quotes": text(['a,"b, c",d', *(f'{row},"say ""x"", or y",{row}' for row in range(200))]),
    "escaped quotes": text(["a,b,c", *(f'{row},"say \\"x, y\\"",{row}' for row in range(200))]),
    "backslash before a closing quote": text(["a,b", *(f'{row},"one\n\\"' for row in range(200))]),
    "long lines": text([",".join(map(str, range(20_000)))] * 3),
    "inches": text(["size,name", *(f'{row}" wide,x' for row in range(201))]),
    "a lone quote": text(["size,name", *["wide,x"] * 100, '5" wide,x', *["wide,x"] * 100]),
    "quotes that are characters": text(["text\tclass", *(f'"he said {row}\t{row}' for row in range(201))]),
    "lines in quotes": text(["a,b,c", *(f'{row},"one\n\ntwo, {row}\n",{row}' for row in range(200))]),
    "all columns before a quoted line end": text(["a,b,c", *(f'{row},"one, two\nthree",{row}' for row in range(200))]),
    "plus, exponents and dots": text(["a,b,c,d", *(f"+{row},{row}e-05,.{row},{row}." for row in range(200))]),
    "mixed lengths of numbers": text([f"{10**(row % 9)},{-row},{row / 7}" for row in range(300)]),
    "texts among few numbers": text(["a,b", *(f"{row},{'abc' if row % 5 else row}" for row in range(200))]),
    "infinite among texts": text(["a,b", *(f"{row},{'inf' if row % 9 else 'x'}" for row in range(200))]),
}  # fmt: skip


class TestCsv:
    @pytest.mark.parametrize("data", HEALTHY.values(), ids=HEALTHY)
    @pytest.mark.parametrize("chunk", [csv_records.CHUNK, 100])
    def test_healthy(self, data: bytes, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(csv_records, "CHUNK", chunk)
        assert flaws(CSV, data) == ()

    def test_records_and_number_of_columns(self) -> None:
        found = checked(CSV, HEALTHY["lines in quotes"], "set/part-7.csv")
        assert found.records == 201
        assert [(trait.group, trait.name, *trait.values) for trait in found.traits] == [
            ("set/part-#.csv", "number of columns", "3")
        ]

    @pytest.mark.parametrize("chunk", [csv_records.CHUNK, 100])
    def test_where_a_line_differs(self, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(csv_records, "CHUNK", chunk)
        lines = ["a,b,c", *numbers()]
        lines[150] = "1,2"
        (flaw,) = flaws(CSV, text(lines))
        assert (flaw.kind, flaw.severity, flaw.reason) == (
            "structure",
            "error",
            "it has 2 columns, and not 3 as the others",
        )
        assert (flaw.place.record, flaw.place.offset, flaw.place.size) == (150, len(text(lines[:150])), 3)

    def test_small_file(self) -> None:
        assert kinds(CSV, b"a,b,c\n1,2\n4,5,6\n") == ["structure"]

    def test_cut_off(self) -> None:
        data = text(["a,b,c", *numbers()])
        (flaw,) = flaws(CSV, data[: data.rindex(b",")])
        assert (flaw.kind, flaw.reason, flaw.place.record) == ("truncated", "it ends after 2 columns of 3", 200)
        quoted = HEALTHY["quotes"]
        (flaw,) = flaws(CSV, quoted[: quoted.rindex(b'x""')])
        assert (flaw.kind, flaw.place.record) == ("truncated", 200)
        last = text(["a,b", *(f'{row},"some text"' for row in range(200))])
        assert [flaw.reason for flaw in flaws(CSV, last[:-4])] == [
            "it ends within the quoted field that opens at byte 3,082 (line 201)"
        ]
        assert kinds(CSV, text([f"{row},Zoë" for row in range(200)])[:-2]) == ["truncated"]

    def test_quote_that_is_not_closed(self) -> None:
        lines = HEALTHY["quotes"].decode().splitlines()
        lines[100] = '99,"say ""x"", or y,99'
        first = flaws(CSV, text(lines))[0]
        assert (first.kind, first.place.record) == ("structure", 100)
        assert first.reason == "a quoted field opens at byte 2,370 (line 101) and is never closed"

    @pytest.mark.parametrize("chunk", [csv_records.CHUNK, 100])
    @pytest.mark.parametrize("at", [0, 2, 100, 200])
    @pytest.mark.parametrize("other", ["text {}", '"say ""x"", or y"', '"one, {}\n\ntwo"', '"say \\"x, {}\\""', "{}.5"])
    def test_the_only_quote_that_is_not_closed(
        self, other: str, at: int, chunk: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whatever the other fields are like: a reader stops here, or takes the rest of the file for one field."""
        monkeypatch.setattr(csv_records, "CHUNK", chunk)
        lines = ["a,b,c", *(f"{row},{other.format(row)},{row}" for row in range(200))]
        lines[at] = 'x,y,"never closed'
        before = text(lines[:at]) if at else b""
        (flaw,) = flaws(CSV, text(lines))
        assert (flaw.kind, flaw.severity, flaw.place.record) == ("structure", "error", at)
        assert (flaw.place.offset, flaw.place.size) == (len(before), len(lines[at]))
        line = before.count(b"\n") + 1
        assert flaw.reason == f"a quoted field opens at byte {len(before) + 4:,} (line {line}) and is never closed"

    def test_a_quote_that_is_not_closed_in_a_column_of_numbers(self) -> None:
        lines = ["a,b,c", *numbers()]
        lines[150] = '1,"2,3'
        assert [(flaw.kind, flaw.severity, flaw.place.record) for flaw in flaws(CSV, text(lines))] == [
            ("structure", "error", 150)
        ]

    def test_behind_a_quote_that_is_not_closed_others_are_closed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(csv_records, "MAX_RECORD", 3000)
        monkeypatch.setattr(csv_records, "CHUNK", 1000)
        lines = ["a,b", '0,"never closed', *(f"{row},text {row}" for row in range(150))] + ['1,"two\nlines"'] * 200
        assert [flaw.place.record for flaw in flaws(CSV, text(lines))] == [1]

    def test_quotes_that_are_characters_are_noted(self) -> None:
        found = checked(CSV, HEALTHY["quotes that are characters"])
        assert found.notes == (
            "201 of its lines have quotes that are not closed: the quotes of this file are taken for characters",
        )
        lines = ["text\tclass", *(f'"so" he said\t{row}' for row in range(100)), '"yes\t1']
        assert flaws(CSV, text(lines)) == ()

    def test_zeros(self) -> None:
        data = bytearray(text(numbers()))
        data[1000:1300] = bytes(300)
        found = flaws(CSV, bytes(data))
        assert [flaw.reason for flaw in found] == ["300 of its bytes are zero"]
        assert found[0].place.offset == data.rindex(b"\n", 0, 1000) + 1

    def test_line_beyond_all_measure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(csv_records, "MAX_RECORD", 5000)
        monkeypatch.setattr(csv_records, "CHUNK", 1000)
        data = text(numbers()) + bytes(20_000) + b"\n" + text([*numbers(), "1,2"])
        found = flaws(CSV, data)
        assert [(flaw.kind, flaw.place.record) for flaw in found] == [("structure", 200), ("structure", 401)]
        assert found[1].place.offset == len(data) - 4

    def test_bytes_that_are_no_characters(self) -> None:
        lines = HEALTHY["letters beyond ASCII"].replace("Zoë 77".encode(), b"Zo\xff 77")
        (flaw,) = flaws(CSV, lines)
        assert (flaw.kind, flaw.reason, flaw.place.record) == ("structure", "its byte 2 is no UTF-8", 78)
        assert kinds(CSV, text(numbers()).replace(b"87.5,", b"8\xb7.5,", 1)) == ["structure", "differs"]

    @pytest.mark.parametrize("odd", ["abc", "1.2.3", "1-2", "-", "e", "1e", "0x12", "1 2"])
    def test_what_is_no_number_among_numbers(self, odd: str) -> None:
        lines = ["a,b,c", *numbers()]
        lines[120] = f"1.5,{odd},2"
        (flaw,) = flaws(CSV, text(lines))
        assert (flaw.kind, flaw.place.record, flaw.place.size) == ("differs", 120, len(lines[120]))
        assert flaw.reason == f"its column 1 is {odd!r}, where 199 others are numbers"

    @pytest.mark.parametrize("value", ["nan", "NaN", "-inf", "Infinity"])
    def test_not_finite(self, value: str) -> None:
        lines = ["a,b,c", *numbers()]
        lines[7] = lines[9] = f"1,2,{value}"
        assert [(flaw.kind, flaw.place.record) for flaw in flaws(CSV, text(lines))] == [
            ("not-finite", 7),
            ("not-finite", 9),
        ]

    def test_without_numpy_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import sys

        monkeypatch.setitem(sys.modules, "numpy", None)
        lines = ["a,b,c", *numbers()]
        assert flaws(CSV, text(lines)) == ()
        lines[120] = "1.5,1.2.3,2"
        assert kinds(CSV, text(lines)) == ["differs"]

    def test_ragged_lines_are_told_once(self) -> None:
        lines = ["a,b,c", *numbers(20_000), *["1,2", "1,2,3,4"] * 3000]
        (flaw,) = flaws(CSV, text(lines))
        assert (flaw.kind, flaw.severity) == ("differs", "warning")

    def test_utf_16_is_not_looked_into(self) -> None:
        assert [flaw.severity for flaw in flaws(CSV, "a,b\n1,2\n".encode("utf-16"))] == ["note"]

    def test_items_are_lines_without_the_header(self) -> None:
        data = text(["a,b,c", "1,2,3", "", '4,"5\n6",7', "8,9,10"], "\r\n")
        found = items(CSV, data)
        assert [item.data for item in found] == [b"1,2,3", b'4,"5\n6",7', b"8,9,10"]
        assert [item.place.record for item in found] == [1, 3, 4]
        for item in found:
            begin = item.place.offset or 0
            assert data[begin : begin + (item.place.size or 0)].startswith(item.data)
        assert len(items(CSV, text(numbers()))) == 200

    def test_any_bytes(self) -> None:
        chance = random.Random(1)
        for _ in range(500):
            data = bytes(chance.choice(b'12,;\t\n\r"\\\0\xff\xc3a.- ') for _ in range(chance.randrange(1, 200)))
            assert all(item.data in data for item in items(CSV, data))
            assert all(flaw.reason for flaw in flaws(CSV, data))

    def test_what_python_writes(self) -> None:
        chance = random.Random(2)
        for _ in range(60):
            file = io.StringIO(newline="")
            writer = csv.writer(file, quoting=chance.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)))
            width, rows = chance.randrange(2, 5), chance.randrange(150, 300)
            writer.writerow([f"column {index}" for index in range(width)])
            for _ in range(rows):
                words = (
                    "".join(chance.choice('ab, "\n\té') for _ in range(chance.randrange(9))) for _ in range(width - 1)
                )
                writer.writerow([chance.random(), *words])
            found = checked(CSV, file.getvalue().encode())
            assert (found.flaws, found.records) == ((), rows + 1)


def table() -> pyarrow.Table:
    """One of everything."""
    picture_column = [{"bytes": picture(), "path": None}, None, {"bytes": None, "path": "x.png"}]
    return pyarrow.table(
        {
            "integers": pyarrow.array([1, None, 3], pyarrow.int8()),
            "floats": pyarrow.array([1.5, None, -0.0]),
            "half": pyarrow.array([1, None, 3], pyarrow.float16()),
            "texts": ["a", None, "é"],
            "bytes": [b"\xff\xd8 no image", None, b""],
            "image": pyarrow.array(picture_column),
            "lists": pyarrow.array([[1.0], None, []], pyarrow.list_(pyarrow.float32())),
            "rows": pyarrow.array([[1.0, 2.0], None, [3.0, 4.0]], pyarrow.list_(pyarrow.float32(), 2)),
            "deep": [[[{"x": 1.0}], None], [], None],
            "map": pyarrow.array([[("a", 1.0)], None, []], pyarrow.map_(pyarrow.string(), pyarrow.float64())),
            "categories": pyarrow.array(["a", "b", None]).dictionary_encode(),
            "times": pyarrow.array([1, None, 3], pyarrow.timestamp("ns", "UTC")),
            "decimals": pyarrow.array([1, None, 3], pyarrow.decimal128(9, 2)),
            "nothing": pyarrow.nulls(3),
            "truth": [True, None, False],
            "fixed": pyarrow.array([b"abc", None, b"def"], pyarrow.binary(3)),
            "a.b": [1, 2, 3],
            "a": [{"b": 1.0}, {"b": 2.0}, None],
        }
    )


def as_parquet(contents: pyarrow.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    pyarrow.parquet.write_table(contents, file, **options)
    return file.getvalue()


def as_file(contents: pyarrow.Table, **options: Any) -> bytes:
    return _as_ipc(pyarrow.ipc.new_file, contents, options)


def as_stream(contents: pyarrow.Table, **options: Any) -> bytes:
    return _as_ipc(pyarrow.ipc.new_stream, contents, options)


def _as_ipc(begin: Callable[..., Any], contents: pyarrow.Table, options: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    with begin(file, contents.schema, options=pyarrow.ipc.IpcWriteOptions(**options)) as writer:
        for _ in range(2):
            writer.write_table(contents)
    return file.getvalue()


PARQUET_OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"compression": "none", "use_dictionary": False},
    "usual": {},
    "checksums": {"write_page_checksum": True},
    "second version": {"data_page_version": "2.0", "compression": "zstd", "write_page_checksum": True},
    "row groups": {"row_group_size": 1, "compression": "gzip"},
    "no statistics": {"write_statistics": False, "store_schema": False, "compression": "brotli"},
}
SMALL = pyarrow.table({"x": [1.5, 2.5, None], "text": ["a", "b", "a"]})
CHECKSUMS = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}


class TestParquet:
    @pytest.mark.parametrize("options", PARQUET_OPTIONS.values(), ids=PARQUET_OPTIONS)
    def test_healthy(self, options: dict[str, Any]) -> None:
        found = checked(PARQUET, as_parquet(table(), **options))
        assert (found.flaws, found.records) == ((), 3)

    def test_without_rows_or_columns(self) -> None:
        assert kinds(PARQUET, as_parquet(table().slice(0, 0))) == []
        assert kinds(PARQUET, as_parquet(pyarrow.table({}))) == []

    @pytest.mark.parametrize("options", PARQUET_OPTIONS.values(), ids=PARQUET_OPTIONS)
    def test_cut_anywhere(self, options: dict[str, Any]) -> None:
        assert unnoticed_cuts(PARQUET, as_parquet(SMALL, **options)) == []

    def test_every_changed_byte_of_values_with_checksums(self) -> None:
        contents = pyarrow.table({"x": numpy.arange(40.0)})
        data = as_parquet(contents, **CHECKSUMS)
        start = data.index(contents["x"].to_numpy().tobytes())
        assert unnoticed_flips(PARQUET, data, start, start + 320) == []
        damaged = data[:start] + b"\1" + data[start + 1 :]
        (flaw,) = flaws(PARQUET, damaged)
        assert (flaw.kind, flaw.reason, flaw.place.member) == ("checksum", "the checksum of its data does not fit", "x")

    def test_metadata_of_other_files(self) -> None:
        kept: list[Any] = []
        as_parquet(SMALL, metadata_collector=kept)
        kept[0].set_file_path("part-0.parquet")
        kept[0].write_metadata_file(file := io.BytesIO())
        found = checked(PARQUET, file.getvalue())
        assert (found.flaws, found.records, len(found.notes)) == ((), 0, 1)

    def test_one_bad_row_group_does_not_hide_the_others(self) -> None:
        contents = pyarrow.table({"x": numpy.arange(40.0), "y": [float("nan")] * 40})
        data = bytearray(as_parquet(contents, row_group_size=10, **CHECKSUMS))
        data[data.index(numpy.arange(20.0, 30.0).tobytes())] ^= 1
        assert [(flaw.kind, flaw.place.record, flaw.place.member) for flaw in flaws(PARQUET, bytes(data))] == [
            ("checksum", 20, "x"),
            ("not-finite", 0, "y"),
        ]

    def test_no_number(self) -> None:
        contents = pyarrow.table(
            {"x": [1.0, None, float("inf"), float("nan")], "lists": [[1.0], None, [], [2.0, float("nan")]]}
        )
        for number, member in ((2, "x"), (3, "lists.list.element")):
            flaw = next(flaw for flaw in flaws(PARQUET, as_parquet(contents)) if flaw.place.member == member)
            assert (flaw.kind, flaw.severity, flaw.place.record) == ("not-finite", "warning", number)

    def test_texts_that_are_none(self) -> None:
        contents = pyarrow.table({"x": pyarrow.array([b"a", b"\xff"]).view(pyarrow.string())})
        assert [flaw.reason for flaw in flaws(PARQUET, as_parquet(contents))] == ["one of its texts is no UTF-8"]

    def test_long_texts_that_are_repeated_take_little_memory(self) -> None:
        contents = pyarrow.table({"x": pyarrow.DictionaryArray.from_arrays([0] * 5_000, [b"x" * 500_000])})
        before = pyarrow.default_memory_pool().max_memory()
        assert kinds(PARQUET, as_parquet(contents)) == []
        assert pyarrow.default_memory_pool().max_memory() < before + (1 << 28)

    def test_schema_is_a_trait_of_a_pattern(self) -> None:
        (trait,) = checked(PARQUET, as_parquet(SMALL), "set/part-3.parquet").traits
        assert (trait.group, trait.name, trait.share) == ("set/part-#.parquet", "schema", 0.5)
        assert list(trait.values) == ["x: double, text: byte_array String"]

    def test_images(self) -> None:
        broken = picture()[:-20]
        rows = [{"bytes": broken if row == 7 else picture(), "path": "x"} for row in range(20)]
        for contents in ({"image": rows}, {"image": [row["bytes"] for row in rows]}):
            data = as_parquet(pyarrow.table(contents), row_group_size=6)
            assert {(flaw.kind, flaw.place.record) for flaw in flaws(PARQUET, data)} == {("truncated", 7)}
            found = items(PARQUET, data)
            assert [item.place.record for item in found] == list(range(20))
            assert {(item.what, len(item.data)) for item in found} == {
                ("image", len(picture())),
                ("image", len(broken)),
            }

    def test_readers_that_died_are_not_sent_there_again(self) -> None:
        data = bytearray(as_parquet(pyarrow.table({"x": numpy.arange(40.0)}), **CHECKSUMS))
        data[data.index(numpy.arange(40.0).tobytes())] ^= 1
        assert kinds(PARQUET, bytes(data)) == ["checksum"]
        assert kinds(PARQUET, bytes(data), skip=("row group 0, column x",)) == []

    @pytest.mark.parametrize("version", ["1.0", "2.0"])
    def test_random_damage_never_raises(self, version: str) -> None:
        chance = random.Random(1)
        data = as_parquet(table(), data_page_version=version)
        for _ in range(150):
            damaged = bytearray(data)
            for _ in range(chance.randrange(1, 4)):
                damaged[chance.randrange(4, len(data) - 8)] = chance.randrange(256)
            flaws(PARQUET, bytes(damaged))


IPC_OPTIONS: dict[str, dict[str, Any]] = {"plain": {}, "lz4": {"compression": "lz4"}, "zstd": {"compression": "zstd"}}


class TestArrow:
    @pytest.mark.parametrize("options", IPC_OPTIONS.values(), ids=IPC_OPTIONS)
    @pytest.mark.parametrize("write", [as_file, as_stream])
    def test_healthy_and_cut_anywhere(self, write: Any, options: dict[str, Any]) -> None:
        found = checked(ARROW, write(table(), **options))
        assert (found.flaws, found.records) == ((), 6)
        assert unnoticed_cuts(ARROW, write(SMALL, **options)) == []

    def test_feather(self) -> None:
        file = io.BytesIO()
        pyarrow.feather.write_feather(SMALL, file)
        assert kinds(ARROW, file.getvalue()) == []
        assert unnoticed_cuts(ARROW, file.getvalue()) == []
        assert kinds(ARROW, b"FEA1" + bytes(100) + b"FEA1") == ["unsupported"]

    def test_begins(self) -> None:
        for write in (as_file, as_stream):
            assert ARROW.begins(write(SMALL)[:512])
        assert not ARROW.begins(b"\xff" * 512)

    def test_without_rows(self) -> None:
        for write in (as_file, as_stream):
            assert kinds(ARROW, write(table().slice(0, 0))) == []

    def test_more_than_there_should_be(self) -> None:
        assert kinds(ARROW, as_stream(SMALL) + b"x") == ["trailing"]

    def test_no_number_and_images(self) -> None:
        contents = pyarrow.table({"x": [1.0, None, float("nan")], "image": [picture(), picture()[:-20], None]})
        for write in (as_file, as_stream):
            found = flaws(ARROW, write(contents))
            assert {(flaw.kind, flaw.place.record, flaw.place.member) for flaw in found} == {
                ("not-finite", 2, "x"),
                ("truncated", 1, "image"),
                ("truncated", 4, "image"),
            }
            assert [item.place.record for item in items(ARROW, write(contents))] == [0, 1, 3, 4]

    def test_lengths_that_lead_out_of_the_values(self) -> None:
        contents = pyarrow.table({"text": pyarrow.array(["abcdefgh"] * 3)})
        offsets = numpy.array([0, 8, 16, 24], numpy.int32)
        for write in (as_file, as_stream):
            damaged = write(contents).replace(offsets.tobytes(), (offsets * 1000).tobytes())
            assert set(kinds(ARROW, damaged)) == {"structure"}

    def test_random_damage_never_raises(self) -> None:
        chance = random.Random(1)
        for write in (as_file, as_stream):
            data = write(SMALL)
            for _ in range(300):
                damaged = bytearray(data)
                for _ in range(chance.randrange(1, 4)):
                    damaged[chance.randrange(8, len(data) - 8)] = chance.randrange(256)
                flaws(ARROW, bytes(damaged))
