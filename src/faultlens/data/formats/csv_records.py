"""Where do the records of a CSV file begin and end, and how are they divided? As a stream, in blocks.

There is no one CSV: quotes may enclose line ends, be escaped in two ways, or be mere characters. A record is divided in
the way that gives as many columns as most records of the file have."""

from __future__ import annotations

import csv
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product
from typing import NamedTuple

from faultlens.data.source import Source
from faultlens.text.sizes import MIB

SAMPLE = 64 * 1024  # bytes that the ways of a file are learned from
ENOUGH = 8  # lines, of them
CHUNK = MIB
MAX_RECORD = 16 * MIB
MAX_COLUMNS = 50_000  # beyond, they are counted, and what is in them is not looked at
DELIMITERS = (",", "\t", ";", "|", " ")
QUOTE, ESCAPED = b'"', b'\\"'
UTF8_MARK = b"\xef\xbb\xbf"
MAX_DIFFERENT, FEW = 0.1, 3  # of the sample: otherwise its lines are no rows of a table
ALMOST_ALL = 0.98
_QUOTED_FIELD = re.compile(rb'"[^"]*(?:""[^"]*)*"(?!")')
_ESCAPED_FIELD = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class Dialect(NamedTuple):
    delimiter: str
    columns: int  # 0: they differ by nature
    line_end: bytes


@dataclass(frozen=True)
class Block:
    number: int  # of its first record
    offset: int
    line_end: bytes
    records: list[bytes]  # without line ends
    ended: bool = True  # by a line end
    quoted: bool = False  # there are quotes in it
    is_plain: bool = True  # all its characters are ASCII, and none is zero
    too_long: bool = False  # its one record is, and was not kept

    def where(self, index: int) -> tuple[int, int, int]:
        """Number, offset and size of a record."""
        return self.number + index, self._starts[index], len(self.records[index])

    @cached_property
    def _starts(self) -> list[int]:
        ends = accumulate((len(record) + len(self.line_end) for record in self.records), initial=self.offset)
        return list(ends)


csv.field_size_limit(max(2 * MAX_RECORD, csv.field_size_limit()))  # what is longer was left out before


def learned(source: Source, size: int, path: str) -> Dialect:
    length, sample = SAMPLE, source.read(0, SAMPLE)
    while sample.count(b"\n") < ENOUGH and sample.count(b"\r") < ENOUGH and length < min(size, MAX_RECORD):
        length *= 2
        sample = source.read(0, length)
    sample = sample.removeprefix(UTF8_MARK)
    line_end = b"\r" if b"\n" not in sample and b"\r" in sample else b"\n"
    lines = sample.split(line_end)
    if size > length and len(lines) > 1:
        lines.pop()  # it is not whole
    lines = [line for line in lines if not is_blank(line)]
    order = ("\t", *DELIMITERS) if path.lower().endswith(".tsv") else DELIMITERS
    best, most = Dialect(order[0], 0, line_end), (False, False, 0.0)
    for delimiter, quoted in product(order, (True, False)):
        counts = _counts(lines, delimiter, quoted)
        total = sum(counts.values())
        columns, agreeing = max(counts.items(), key=lambda item: item[1], default=(0, 0))
        if columns < 2 or total - agreeing > max(FEW, MAX_DIFFERENT * total) or 2 * agreeing < total:
            continue
        # A few that are damaged must not make another way look better. Nor does one whose header does not fit.
        share = agreeing / total
        merit = (next(iter(counts)) in (columns, columns - 1), share >= ALMOST_ALL, min(share, ALMOST_ALL))
        if merit > most:
            best, most = Dialect(delimiter, columns, line_end), merit
    return best


def _counts(lines: list[bytes], delimiter: str, quoted: bool) -> Counter[int]:
    """How many columns there are how often; of two that are as frequent, the first comes first."""
    plain = [line.count(delimiter.encode()) + 1 for line in lines]
    if not quoted:
        return Counter(plain)
    if max(plain, default=0) > MAX_COLUMNS:
        return Counter()
    counts: Counter[int] = Counter()
    for _ in range(FEW + 1):
        rows, opened = _rows(lines, delimiter)
        counts.update(map(len, rows))
        if opened is None:
            return counts
        lines = lines[opened + 1 :]  # a quote that is not closed must not hide the lines behind it
    return Counter()


def _rows(lines: list[bytes], delimiter: str) -> tuple[list[list[str]], int | None]:
    """And the first line of a record that is not closed, which is left out."""
    reader = csv.reader((line.decode("latin-1") for line in lines), delimiter=delimiter)
    rows: list[list[str]] = []
    begin = end = 0
    try:
        for row in reader:
            rows.append(row)
            begin, end = end, reader.line_num
    except csv.Error:
        return rows, None
    if rows and quoting(b"\n".join(lines[begin:end]), delimiter).opening is not None:
        return rows[:-1], begin
    return rows, None


def is_blank(record: bytes) -> bool:
    """Nothing, or a comment."""
    return not record.strip() or record.startswith(b"#")


def blocks(source: Source, end: int, dialect: Dialect) -> Iterator[Block]:
    """All records in order. Those beyond all measure come alone, and empty."""
    position = offset = number = 0
    rest, skipping = b"", False
    while rest or position < end:
        data = source.read(position, min(CHUNK, end - position))
        end = end if data else position  # it shrank
        position += len(data)
        last = position >= end
        block, rest = rest + data, b""
        cut = len(block) if last else block.rfind(dialect.line_end) + 1
        if skipping:
            begin = block.find(dialect.line_end) + 1
            offset += begin or len(block)
            if not begin:
                continue
            block, cut, skipping = block[begin:], cut - begin, False
        block, rest = block[:cut], block[cut:]
        if not block:
            if len(rest) > MAX_RECORD:
                yield Block(number, offset, dialect.line_end, [b""], too_long=True)
                offset, number, rest, skipping = offset + len(rest), number + 1, b"", True
            continue
        ended = block.endswith(dialect.line_end)
        lines = block.split(dialect.line_end)
        if ended:
            lines.pop()
        records, used = lines, len(lines)
        if QUOTE in block:
            records, used = _assembled(lines, dialect, last)
        if used < len(lines):
            left = dialect.line_end.join(lines[used:]) + dialect.line_end
            rest, ended = left + rest, True
            block = block[: len(block) - len(left)]
        if records:
            is_plain = block.isascii() and b"\0" not in block
            yield Block(number, offset, dialect.line_end, records, ended, QUOTE in block, is_plain)
        offset, number = offset + len(block), number + len(records)


def _assembled(lines: list[bytes], dialect: Dialect, last: bool) -> tuple[list[bytes], int]:
    """Lines whose ends are quoted are put together. Also how many were used: for the others, more must be read."""
    odd = [index for index, line in enumerate(lines) if line.count(QUOTE) % 2]
    unescaped = [index for index, line in enumerate(lines) if (line.count(QUOTE) - line.count(ESCAPED)) % 2]
    ways = [odd] if odd == unescaped else [odd, unescaped]  # a backslash before a quote may mean something, or nothing
    records: list[bytes] = []
    done = 0
    for index in sorted({*odd, *unescaped}):
        if index < done:
            continue
        ends = {way[bisect_right(way, index)] if way[-1] > index else None for way in ways if way}
        records += lines[done:index]
        done = index + 1
        for end in sorted(end for end in ends if end is not None):
            if _belong_together(lines[index : end + 1], dialect):
                records.append(dialect.line_end.join(lines[index : end + 1]))
                done = end + 1
                break
        else:
            if None in ends and not last and sum(map(len, lines[index:])) <= MAX_RECORD:
                return records, index
            records.append(lines[index])  # the quote is a mere character, or it is not closed
    return records + lines[done:], len(lines)


def _belong_together(lines: list[bytes], dialect: Dialect) -> bool:
    """They make up one record. Where quotes mean nothing, each would be one, and together they break the rules."""
    whole, delimiter = dialect.line_end.join(lines), dialect.delimiter.encode()
    alone = all(line.count(delimiter) + 1 == dialect.columns for line in lines)
    return width(whole, dialect) == dialect.columns and not (alone and breach(whole, dialect.delimiter))


def width(record: bytes, dialect: Dialect) -> int:
    """How many columns it has."""
    delimiters = record.count(dialect.delimiter.encode())
    if QUOTE not in record or delimiters >= MAX_COLUMNS:
        return delimiters + 1
    return len(cells(record, dialect))


def cells(record: bytes, dialect: Dialect) -> list[str]:
    """Each byte as one character. Line ends in quotes become spaces. Of very many, the first."""
    text = record.decode("latin-1")
    if '"' not in text or text.count(dialect.delimiter) >= MAX_COLUMNS:
        return text.split(dialect.delimiter, MAX_COLUMNS)
    row = _parsed(text, dialect, escape=None)
    if len(row) == dialect.columns:
        return row
    others = [text.split(dialect.delimiter)]
    if ESCAPED in record:
        others.append(_parsed(text, dialect, escape="\\"))
    return next((other for other in others if len(other) == dialect.columns), row)


def _parsed(text: str, dialect: Dialect, escape: str | None) -> list[str]:
    """Empty where it cannot be."""
    reader = csv.reader((_in_one_line(text),), delimiter=dialect.delimiter, escapechar=escape, doublequote=not escape)
    try:
        return next(reader, [])
    except csv.Error:
        return []


def _in_one_line(text: str) -> str:
    return text.removesuffix("\r").replace("\n", " ").replace("\r", " ")


class Quoting(NamedTuple):
    """What the quotes of a record do."""

    encloses: bool = False  # they enclose fields as they should
    opening: int | None = None  # where the one is that is not closed
    is_text: bool = False  # one encloses a part of a field only: to a reader of quotes, that is an error


def quoting(record: bytes, delimiter: str) -> Quoting:
    separator = delimiter.encode()
    if not (record.startswith(QUOTE) or separator + QUOTE in record) or record.count(separator) >= MAX_COLUMNS:
        return Quoting()
    escapes = (None, "\\") if ESCAPED in record else (None,)
    breaches = {escape: breach(record, delimiter, escape) for escape in escapes}
    if not all(breaches.values()):
        return Quoting(encloses=True)
    for escape, broken in breaches.items():
        if "unexpected end" in broken:
            return Quoting(opening=_opening(record, separator, escape is not None))
    return Quoting(is_text=True)


def breach(record: bytes, delimiter: str, escape: str | None = None) -> str:
    """Which rule about quotes it breaks, in the words of Python."""
    if record.count(delimiter.encode()) >= MAX_COLUMNS:
        return ""
    try:
        line = _in_one_line(record.decode("latin-1"))
        next(csv.reader((line,), delimiter=delimiter, escapechar=escape, doublequote=not escape, strict=True), None)
    except csv.Error as error:
        return str(error)
    return ""


def _opening(record: bytes, separator: bytes, escaped: bool) -> int | None:
    """Where the quoted field begins that is not closed."""
    position = 0
    while True:
        if record.startswith(QUOTE, position):
            closing = (_ESCAPED_FIELD if escaped else _QUOTED_FIELD).match(record, position)
            if closing is None:
                return position
            position = closing.end()
        position = record.find(separator, position) + 1
        if not position:
            return None
