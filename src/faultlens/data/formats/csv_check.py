"""Which lines of a CSV file are odd? What the lines are like is known at the end: only then it is told."""

from __future__ import annotations

from typing import NamedTuple

from faultlens.data.formats.csv_columns import Columns
from faultlens.data.formats.csv_records import MAX_RECORD, QUOTE, Block, Dialect, cells, is_blank, quoting, width
from faultlens.data.look import Look
from faultlens.records.scan import Kind
from faultlens.records.severity import Severity
from faultlens.text.sizes import in_words

MAX_KEPT = 1000  # odd lines
FEW, MAX_DIFFERENT = 3, 0.1  # more, and the lines are no rows of a table


class _Line(NamedTuple):
    record: int
    offset: int
    size: int
    reason: str
    kind: Kind = "structure"


class _Odd:
    """Lines of one kind."""

    def __init__(self) -> None:
        self.count = 0
        self._lines: list[_Line] = []

    def add(self, line: _Line) -> None:
        self.count += 1
        if len(self._lines) < MAX_KEPT:
            self._lines.append(line)

    def tell(self, look: Look, severity: Severity | None = None) -> None:
        for line in self._lines:
            look.flaw(line.kind, line.reason, record=line.record, offset=line.offset, size=line.size, severity=severity)


class Check:
    """Takes the blocks in order."""

    def __init__(self, dialect: Dialect, look: Look) -> None:
        self._dialect, self._look = dialect, look
        self._columns = Columns(dialect, look)
        self._different, self._not_utf8, self._zeros, self._unclosed = _Odd(), _Odd(), _Odd(), _Odd()
        self._utf8 = 0  # lines with characters that are not ASCII, and in order
        self._before_header = True
        self._quoted = self._quotes_in_text = 0  # lines in which quotes enclose fields, and in which they do not
        self._line_ends = 0  # in quotes

    def add(self, block: Block) -> None:
        self._look.records += len(block.records)
        if block.too_long:
            reason = f"it is longer than {in_words(MAX_RECORD)}"
            self._look.flaw("structure", reason, record=block.number, offset=block.offset)
            return
        self._check_characters(block)
        if self._dialect.columns:
            self._check_columns(block)
        if block.quoted:
            self._line_ends += sum(record.count(block.line_end) for record in block.records)

    def tell(self) -> None:
        if self._different.count <= max(FEW, MAX_DIFFERENT * self._look.records):
            self._different.tell(self._look)
        else:
            reason = f"{self._different.count:,} of its lines have another number of columns than the others"
            self._look.flaw("differs", reason)
        if self._quotes_are_characters:
            what = "quotes that are not closed: the quotes of this file are taken for characters"
            self._look.note(f"{self._unclosed.count:,} of its lines have {what}")
        else:
            self._unclosed.tell(self._look)
        self._zeros.tell(self._look)
        if self._not_utf8.count <= max(FEW, self._utf8):
            # Where no other line has such characters, it may as well be in another encoding.
            self._not_utf8.tell(self._look, None if self._utf8 else "warning")
        else:
            self._look.note(f"{self._not_utf8.count:,} of its lines are no UTF-8: it is in another encoding")
        self._columns.tell()

    def _check_columns(self, block: Block) -> None:
        delimiter, expected = self._dialect.delimiter.encode(), self._dialect.columns - 1
        odd = [index for index, record in enumerate(block.records) if record.count(delimiter) != expected]
        if block.quoted:
            odd = sorted({*odd, *(index for index, record in enumerate(block.records) if QUOTE in record)})
        if self._before_header and (first := self._first(block)) is not None:
            odd = sorted({*odd, first})
        if not odd:
            self._columns.add_plain(block.records, block.where)
            return
        self._check_each(block, odd)
        rest = set(odd)
        plain = [index for index in range(len(block.records)) if index not in rest]
        self._columns.add_plain([block.records[index] for index in plain], lambda row: block.where(plain[row]))

    def _check_each(self, block: Block, odd: list[int]) -> None:
        rows, numbers = [], []
        for index in odd:
            record = block.records[index]
            if is_blank(record):
                continue
            count = width(record, self._dialect)
            first, self._before_header = self._before_header, False
            unclosed = self._unclosed_quote(block, index) if QUOTE in record else None
            if unclosed is not None:
                (self._unclosed if count == self._dialect.columns else self._different).add(unclosed)
            elif count == self._dialect.columns:
                if not first and self._columns.known:  # the first may be names
                    rows.append(cells(record, self._dialect))
                    numbers.append(index)
            elif b"\0" not in record and not (first and count == self._dialect.columns - 1):
                # (R leaves out the name of the first column. Zeros are told as such.)
                self._different.add(self._described(block, index, count))
        self._columns.add(rows, lambda row: block.where(numbers[row]))

    @staticmethod
    def _first(block: Block) -> int | None:
        """The first line that is not blank."""
        return next((index for index, record in enumerate(block.records) if not is_blank(record)), None)

    def _unclosed_quote(self, block: Block, index: int) -> _Line | None:
        """To a reader of quotes, all that follows belongs to this field."""
        found = quoting(block.records[index], self._dialect.delimiter)
        self._quoted += found.encloses
        self._quotes_in_text += found.is_text
        if found.opening is None:
            return None
        number, offset, size = block.where(index)
        within = sum(record.count(block.line_end) for record in block.records[:index])
        where = f"at byte {offset + found.opening:,} (line {number + self._line_ends + within + 1:,})"
        if index == len(block.records) - 1 and not block.ended:
            return _Line(number, offset, size, f"it ends within the quoted field that opens {where}", "truncated")
        return _Line(number, offset, size, f"a quoted field opens {where} and is never closed")

    @property
    def _quotes_are_characters(self) -> bool:
        """They enclose hardly anything in this file, or parts of fields."""
        in_text = self._quotes_in_text > MAX_DIFFERENT * self._quoted
        return self._unclosed.count > (0 if in_text else max(FEW, self._quoted))

    def _described(self, block: Block, index: int, count: int) -> _Line:
        where, expected = block.where(index), self._dialect.columns
        columns = f"{count} column" if count == 1 else f"{count} columns"
        if index == len(block.records) - 1 and not block.ended and count < expected:
            return _Line(*where, f"it ends after {columns} of {expected}", "truncated")
        return _Line(*where, f"it has {columns}, and not {expected} as the others")

    def _check_characters(self, block: Block) -> None:
        if block.is_plain:
            return
        for index, record in enumerate(block.records):
            if b"\0" in record:
                count = record.count(0)
                reason = f"{count:,} of its bytes are zero" if count > 1 else "one of its bytes is zero"
                self._zeros.add(_Line(*block.where(index), reason))
            if record.isascii():
                continue
            try:
                record.decode()
                self._utf8 += 1
            except UnicodeDecodeError as error:
                cut = index == len(block.records) - 1 and not block.ended and error.reason == "unexpected end of data"
                reason = f"its byte {error.start:,} is no UTF-8"
                line = _Line(*block.where(index), reason, "truncated" if cut else "structure")
                self._not_utf8.add(line)
