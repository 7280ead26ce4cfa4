"""Which cells of a column of numbers are none, or not finite? Blocks of mere numbers are not divided."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

from faultlens.data.formats.csv_numbers import PlainNumbers
from faultlens.data.formats.csv_records import MAX_COLUMNS, Dialect
from faultlens.data.look import Look

ENOUGH = 100  # rows, below which there is no rule
FEW, SHARE = 3, 0.001  # cells that may be odd in a column of numbers
MAX_ODD = 20  # of a column that are told
MANY_ODD, TEXT_SHARE = 20, 0.01  # beyond, it is a column of texts
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_NUMBER = re.compile(r"\s*[+-]?(?:0+\.?0*|\.0+)(?:[eE][+-]?0+)?\s*")
_NOT_FINITE = re.compile(r"\s*[+-]?(?:nan|inf|infinity)\s*", re.IGNORECASE)
# What pandas takes for "not there".
_MISSING = frozenset({"", "NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "null", "None", "none"})

Where = Callable[[int], tuple[int, int, int]]  # of a row of a block: its record, offset and size


class _Odd(NamedTuple):
    value: str
    where: tuple[int, int, int]


class _Column:
    __slots__ = ("infinite", "infinite_places", "numbers", "other_places", "others")

    def __init__(self) -> None:
        self.numbers = self.infinite = self.others = 0
        self.infinite_places: list[_Odd] = []
        self.other_places: list[_Odd] = []

    @property
    def is_text(self) -> bool:
        return self.others > MANY_ODD and self.others > TEXT_SHARE * self.numbers


class Columns:
    def __init__(self, dialect: Dialect, look: Look) -> None:
        self._dialect, self._look = dialect, look
        self.known = dialect.columns <= MAX_COLUMNS
        self._columns = [_Column() for _ in range(dialect.columns)] if self.known else []
        if not self.known:
            look.flaw("unsupported", f"it has {dialect.columns:,} columns: what is in them was not looked at")
        self._plain = PlainNumbers(dialect.delimiter)
        self._rows = 0  # that hold nothing but numbers

    def add_plain(self, records: list[bytes], where: Where) -> None:
        """Records without quotes that all have as many columns as they should."""
        if records and self.known and not self._all_numbers(records):
            text = b"\n".join(records).decode("latin-1")
            self.add([line.split(self._dialect.delimiter) for line in text.split("\n")], where)

    def add(self, rows: list[list[str]], where: Where) -> None:
        for index, column in enumerate(self._columns):
            if not column.is_text:
                _count([row[index] for row in rows], column, where)

    def tell(self) -> None:
        odd = {place.where[0] for column in self._columns for place in column.other_places}
        header = next(line for line in count(1) if line not in odd)  # it may take several lines
        for column in self._columns:
            named = [place for place in column.other_places if place.where[0] < header]
            column.other_places = column.other_places[len(named) :]
            column.others -= len(named)
        for index, column in enumerate(self._columns):
            numbers = column.numbers + self._rows
            if not numbers or column.others > max(FEW, SHARE * numbers):
                continue
            self._tell(index, column.infinite, column.infinite_places, "not-finite", "where numbers are")
            if numbers + column.infinite >= ENOUGH - FEW:
                self._tell(
                    index, column.others, column.other_places, "differs", f"where {numbers:,} others are numbers"
                )

    def _tell(self, index: int, total: int, places: list[_Odd], kind: str, beside: str) -> None:
        for told, odd in enumerate(places, 1):
            more = f" (and {total - told:,} more such cells)" if told == len(places) and total > told else ""
            record, offset, size = odd.where
            self._look.flaw(
                kind,  # type: ignore[arg-type]
                f"its column {index} is {odd.value[:40]!r}, {beside}{more}",
                record=record,
                offset=offset,
                size=size,
            )

    def _all_numbers(self, records: list[bytes]) -> bool:
        """Whether no cell is anything else. Digits are made equal, which leaves few different cells."""
        if any(column.is_text for column in self._columns):
            return False
        whole = b"\n".join(records)
        if not self._plain.passes(whole):
            delimiter = self._dialect.delimiter.encode()
            different = set(whole.translate(_DIGITS).replace(b"\n", delimiter).split(delimiter))
            if not all(_NUMBER.fullmatch(each.decode("latin-1")) for each in different):
                return False
        self._rows += len(records)
        return True


def _count(cells: list[str], column: _Column, where: Where) -> None:
    alike = Counter("\n".join(cells).encode("latin-1").translate(_DIGITS).decode("latin-1").split("\n"))
    odd = False
    for value, times in alike.items():
        if _NUMBER.fullmatch(value):
            column.numbers += times
        elif value.strip() not in _MISSING:
            odd = True
            if _NOT_FINITE.fullmatch(value):
                column.infinite += times
            else:
                column.others += times
    if not odd or column.is_text:
        return
    for row, cell in enumerate(cells):
        kept = column.infinite_places if _NOT_FINITE.fullmatch(cell) else column.other_places
        if len(kept) < MAX_ODD and cell.strip() not in _MISSING and not _NUMBER.fullmatch(_equal(cell)):
            kept.append(_Odd(cell.strip().encode("latin-1").decode("utf-8", "replace"), where(row)))


def is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(_equal(cell)) is not None


def _equal(cell: str) -> str:
    return cell.encode("latin-1").translate(_DIGITS).decode("latin-1")
