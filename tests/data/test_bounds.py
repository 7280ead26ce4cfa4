"""Files that are small and mean a lot: what is looked at is bounded, and what was not is said."""

from __future__ import annotations

import gzip
import io
import os
import tracemalloc
from pathlib import Path

import pytest

from checked_bytes import checked
from faultlens.data.aggregate.indexes import against_indexes
from faultlens.data.aggregate.merge import File
from faultlens.data.formats import hdf5_file, tables
from faultlens.data.formats.arrow_file import ArrowFile
from faultlens.data.formats.base import Format
from faultlens.data.formats.csv_file import CsvFile
from faultlens.data.formats.hdf5_file import Hdf5File
from faultlens.data.formats.parquet_file import ParquetFile
from faultlens.data.formats.tfrecord import GzipTFRecord
from faultlens.records.scan import Checked, Identity
from faultlens.text.sizes import MIB
from tfrecords import example, file_of, framed


def checked_within(most: int, format: Format, data: bytes) -> Checked:
    """Without taking more memory than this besides the file."""
    tracemalloc.start()
    try:
        result = checked(format, data)
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
    return result


def said(result: Checked) -> list[tuple[str, str]]:
    return [(flaw.kind, flaw.reason) for flaw in result.flaws]


@pytest.mark.parametrize("cell", ["1", "ab", '"a"', ""])
def test_a_csv_file_of_a_million_columns(cell: str) -> None:
    row = ",".join([cell] * 1_000_000) + "\n"
    result = checked_within(60 * MIB, CsvFile(), (3 * row + "1,2\n").encode())
    assert said(result) == [
        ("unsupported", "it has 1,000,000 columns: what is in them was not looked at"),
        ("structure", "it has 2 columns, and not 1000000 as the others"),
    ]


@pytest.mark.parametrize("cell", ["ab", '"a"'])
def test_a_line_of_a_million_columns_in_a_csv_file_of_three(cell: str) -> None:
    lines = "a,b,c\n" + 50 * "1,2,3\n" + ",".join([cell] * 1_000_000) + "\n" + 50 * "1,2,3\n"
    result = checked_within(60 * MIB, CsvFile(), lines.encode())
    assert said(result) == [("structure", "it has 1000000 columns, and not 3 as the others")]


def test_tables_of_too_many_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(tables, "MAX_COLUMNS", 100)
    values = [pyarrow.array([float("nan") if index in (7, 150) else 1.0]) for index in range(200)]
    table = pyarrow.table(values, names=[f"c{index}" for index in range(200)])
    as_parquet, as_arrow = io.BytesIO(), io.BytesIO()
    parquet.write_table(table, as_parquet)
    with pyarrow.ipc.new_file(as_arrow, table.schema) as writer:
        writer.write_table(table)
    for format, file in ((ParquetFile(), as_parquet), (ArrowFile(), as_arrow)):
        result = checked(format, file.getvalue())
        reason = "it has 200 columns: what is in those behind the first 100 was not looked at"
        assert ("unsupported", reason) in said(result)
        assert [flaw.place.member for flaw in result.flaws if flaw.kind == "not-finite"] == ["c7"]


def test_groups_of_an_hdf5_file_in_each_other() -> None:
    h5py = pytest.importorskip("h5py")
    file = io.BytesIO()
    with h5py.File(file, "w", libver="latest") as opened:
        group = opened
        for _ in range(3000):
            group = group.create_group("g")
        group.create_dataset("x", data=[float("nan")])
    ((kind, reason),) = said(checked(Hdf5File(), file.getvalue()))
    assert kind == "unsupported" and reason.endswith("groups deep: not looked into")


def test_more_objects_than_are_looked_at_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    h5py = pytest.importorskip("h5py")
    monkeypatch.setattr(hdf5_file, "MAX_OBJECTS", 10)
    flat, spread = io.BytesIO(), io.BytesIO()
    with h5py.File(flat, "w") as opened:
        for number in range(11):
            opened.create_group(str(number))
    with h5py.File(spread, "w") as opened:
        for number in range(8):
            opened.create_group(f"{number}/a")
    assert said(checked(Hdf5File(), flat.getvalue())) == [("unsupported", "it has 11 members: not looked into")]
    ((kind, reason),) = said(checked(Hdf5File(), spread.getvalue()))
    assert kind == "unsupported" and "more than 10 groups and datasets" in reason


@pytest.mark.parametrize(
    ("name", "content", "most", "told"),
    [
        (
            "data.tfrecord.idx",
            b"0 9\n" * 100_000,
            2 * MIB,
            ["it has 1 records, and its index data.tfrecord.idx has 100,000"],
        ),
        (
            "dataset_info.json",
            b'{"splits":[' + b"{}," * 4_000_000 + b"{}]}",
            20 * MIB,
            ["files were not compared with it: it is too large for an index"],
        ),
    ],
    ids=["DALI", "TFDS"],
)
def test_a_huge_index_is_not_held(tmp_path: Path, name: str, content: bytes, most: int, told: list[str]) -> None:
    path = tmp_path / "data.tfrecord"
    path.write_bytes(file_of([example(label=[1])]))
    (tmp_path / name).write_bytes(content)
    file = File("TFRecord", Identity(size=path.stat().st_size), 1, ())
    tracemalloc.start()
    try:
        assert [flaw.reason for flaw in against_indexes({str(path): file})] == told
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def test_an_index_that_is_a_pipe_does_not_hold_the_scan_up(tmp_path: Path) -> None:
    path = tmp_path / "data.tfrecord"
    path.write_bytes(b"")
    for name in ("data.tfrecord.idx", "dataset_info.json"):
        os.mkfifo(tmp_path / name)
    assert list(against_indexes({str(path): File("TFRecord", Identity(size=0), 0, ())})) == []


def test_a_record_that_unpacks_without_end_is_summed_up() -> None:
    packed = gzip.compress(framed(bytes(200 * MIB)), 1)
    result = checked_within(40 * MIB, GzipTFRecord(), packed)
    assert result.flaws == ()
