"""Which records of a TFRecord file are whole, where the others are, and where it goes on behind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from faultlens.data.look import Look
from faultlens.data.native import FOOTER, HEADER, length_at, walker
from faultlens.data.native.layout import AT_LIMIT, BAD_DATA, BAD_LENGTH, NEED_MORE, StateC
from faultlens.data.tfrecord.feed import Window
from faultlens.model_files.crc32c import masked
from faultlens.records.scan import Kind

FRAME = HEADER + FOOTER
MAX_HELD = 64 << 20  # a larger record is summed up, and not looked into
ANY_LENGTH = 1 << 63


class Run(NamedTuple):
    """Whole records, one behind the other, in the buffer of the window."""

    window: Window
    size: int
    first: int  # number of the first of them


class Records:
    """Walks over the records that begin before `limit`. Iterate `runs()`; what is wrong goes to `look`."""

    def __init__(self, window: Window, limit: int, look: Look, parse: bool = True, length_of_file: int | None = None):
        self._window, self._look = window, look
        self._walker = walker()
        self._most = ANY_LENGTH if length_of_file is None else max(length_of_file - FRAME, 0)
        self._length_of_file = length_of_file
        self.state = StateC()
        self.state.limit = limit
        self.state.parse = parse and self._walker.parses
        self.parsed = bool(self.state.parse)

    def enter(self) -> None:
        """Go to the first record; for a piece that begins anywhere."""
        self._seek(0)

    def runs(self) -> Iterator[Run]:
        window, state = self._window, self.state
        while True:
            window.fill()
            first = int(state.record)
            used = self._walker.walk(window.buffer, window.have, window.base, state)
            if used or state.event_count or state.blob_count:
                yield Run(window, used, first)
                state.event_count = state.blob_count = state.cell_count = 0
            window.drop(used)
            if state.stopped == AT_LIMIT:
                break
            if state.stopped == NEED_MORE and not self._more():
                break
            if state.stopped == BAD_LENGTH:
                self._bad_length()
            elif state.stopped == BAD_DATA:
                self._bad_data(self._length())

    def _length(self) -> int:
        return int.from_bytes(self._window.buffer[:8], "little")

    def _more(self) -> bool:
        """The window ends inside of a record, or with the file. False: it is the file."""
        window = self._window
        if window.have < HEADER:
            if not window.at_end:
                return True
            if window.base >= self.state.limit:
                return False
            if window.have:
                self._lost("truncated", f"the file ends {window.have} bytes behind the last whole record", window.have)
            return False
        length = self._length()
        missing = self._missing(length)
        if missing:
            self._bad_end(length, missing)
        elif length + FRAME <= MAX_HELD:
            if not window.hold(length + FRAME):
                self._bad_end(length, length + FRAME - window.have)
        else:
            self._large(length)
        return True

    def _missing(self, length: int) -> int:
        """Bytes that the record would need behind the end of the file, where that is known."""
        return (
            max(self._window.base + length + FRAME - self._length_of_file, 0) if self._length_of_file is not None else 0
        )

    def _bad_end(self, length: int, missing: int) -> None:
        """A length that is as it was written, and fewer bytes behind it."""
        start = self._window.base
        lost = self._seek(1)
        if self._window.have:  # there are records behind it: bytes were lost in the middle
            self._damaged(
                "structure", f"it should have {length:,} bytes, and another record begins before", start, lost
            )
        else:
            self._damaged("truncated", f"the file ends {missing:,} bytes before the end of this record", start, lost)

    def _large(self, length: int) -> None:
        """More than is held at once: its checksum is summed up on the way."""
        window, start = self._window, self._window.base
        crc, left = 0, length
        window.drop(HEADER)
        while left:
            window.fill()
            part = min(left, window.have)
            if not part:
                break
            crc = self._walker.crc(window.buffer, 0, part, crc)
            window.drop(part)
            left -= part
        window.hold(FOOTER)
        stored = int.from_bytes(window.buffer[:FOOTER], "little")
        short = FOOTER - min(window.have, FOOTER) + left
        window.drop(min(window.have, FOOTER))
        if short:
            self._damaged(
                "truncated", f"the file ends {short:,} bytes before the end of this record", start, length + FRAME
            )
        elif masked(crc) != stored:
            self._damaged("checksum", "the checksum of its data does not fit", start, length + FRAME)
        else:
            self.state.sizes[length.bit_length()] += 1
            if length + FRAME > self.state.largest.size:
                largest = self.state.largest
                largest.record, largest.offset, largest.size = self.state.record, start, length + FRAME
            self.state.record += 1
            self._look.unchecked("what is in large records", f"they have more than {MAX_HELD >> 20} MiB")

    def _bad_length(self) -> None:
        window = self._window
        start, length = window.base, self._length()
        if length + FRAME <= MAX_HELD and window.hold(length + FRAME) and self._data_fit(length):
            window.drop(length + FRAME)
            self._damaged("checksum", "the checksum of its length does not fit", start, length + FRAME)
            return
        zeros = not any(window.buffer[:HEADER])
        lost = self._seek(1)
        if window.have:
            reason = "its length is damaged" if not zeros else "its length is overwritten with zeros"
            self._damaged("checksum", f"{reason}; the next whole record begins {lost:,} bytes further", start, lost)
        elif self.state.record:
            self._damaged("trailing", _rest(lost, zeros), start, lost)
        else:
            self._damaged(
                "magic", "no record was found in it" + (": it begins with zeros" if zeros else ""), start, lost
            )

    def _bad_data(self, length: int) -> None:
        """Either the data were changed, or bytes were lost or added: then nothing begins where it should end."""
        window, start = self._window, self._window.base
        window.hold(length + FRAME + HEADER)
        behind = window.have - length - FRAME
        if behind == 0 or (behind >= HEADER and length_at(window.buffer, length + FRAME) is not None):
            window.drop(length + FRAME)
            self._damaged("checksum", "the checksum of its data does not fit", start, length + FRAME)
            return
        lost = self._seek(1)
        if window.have:
            reason = (
                f"its data are damaged; the next whole record begins {lost:,} bytes further, and not {length + FRAME:,}"
            )
            self._damaged("structure", reason, start, lost)
        elif 0 < behind < HEADER:  # its own end is there: only what follows is not
            self._damaged("structure", f"its data are damaged, and {_rest(behind, False)}", start, lost)
        else:
            self._damaged("structure", "its data are damaged, and no whole record follows", start, lost)

    def _data_fit(self, length: int) -> bool:
        buffer, end = self._window.buffer, HEADER + length
        return masked(self._walker.crc(buffer, HEADER, end)) == int.from_bytes(buffer[end : end + FOOTER], "little")

    def _seek(self, begin: int) -> int:
        """Go to the next whole record, or to the end of the file; says how far that was."""
        window, before = self._window, self._window.base
        window.drop(min(begin, window.have))
        while True:
            window.fill()
            found = self._walker.find(window.buffer, window.have, 0, self._most)
            if found < window.have:
                window.drop(found)
                if self._is_record():
                    break
                window.drop(1)
            elif window.at_end:
                window.drop(window.have)
                break
            else:
                window.drop(max(window.have - HEADER + 1, 0))
        return window.base - before

    def _is_record(self) -> bool:
        """A length whose checksum fits by chance is rare, and its data do not fit as well."""
        window, length = self._window, self._length()
        if self._missing(length) or length + FRAME > MAX_HELD:
            return not self._missing(length)
        if not window.hold(length + FRAME):
            return False
        return self._data_fit(length) or length_at(window.buffer, length + FRAME) is not None

    def _lost(self, kind: Kind, reason: str, size: int) -> None:
        start = self._window.base
        self._window.drop(size)
        self._damaged(kind, reason, start, size)

    def _damaged(self, kind: Kind, reason: str, start: int, size: int) -> None:
        if start >= self.state.limit:
            return  # it belongs to the next piece
        self._look.flaw(kind, reason, record=int(self.state.record), offset=start, size=size)
        self.state.record += 1


def _rest(size: int, zeros: bool) -> str:
    return f"{size:,} {'zero bytes follow' if zeros else 'bytes that are no record follow'} its last record"


def spans(run: Run) -> Iterator[tuple[int, int, int]]:
    """Number, begin and end of the data, in the buffer, of each of the records."""
    at, record = 0, run.first
    while at < run.size:
        length = int.from_bytes(run.window.buffer[at : at + 8], "little")
        yield record, at + HEADER, at + HEADER + length
        at += length + FRAME
        record += 1
