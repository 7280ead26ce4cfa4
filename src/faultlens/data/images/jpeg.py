"""JPEG: do its segments, tables and scans make a whole image? Nothing is decoded."""

from __future__ import annotations

import re

from faultlens.data.images import jpeg_headers as headers
from faultlens.data.images.entropy import Found, entropy
from faultlens.data.images.record import PADDING, Broken, Problem, Walked, cut, oversized, trailing

MAGIC = b"\xff\xd8\xff"
DHT, RST0, RST7, SOI, EOI, SOS, DQT, DRI, JPEG_LS = 0xC4, 0xD0, 0xD7, 0xD8, 0xD9, 0xDA, 0xDB, 0xDD, 0xF7
TABLES = frozenset({DHT, DQT})
FRAMES = frozenset(range(0xC0, 0xD0)) - {DHT, 0xC8, 0xCC}
APPLICATIONS = frozenset(range(0xE0, 0xF0))
ALONE = frozenset({0x01, *range(RST0, RST7 + 1)})  # markers without a segment
SEGMENTS = frozenset(range(0xC0, 0xFF)) - ALONE - {0xC8, SOI, EOI}
MAX_APPENDED = 16  # further pictures that are looked at: previews, the second eye, brightness maps
MAX_SCANS = 1000
MAX_STRAY = 20
MAX_TABLES = 1 << 16  # bytes that are taken together
FILM, PHONE = b"ftyp", b"SEFT"  # how films begin, and what some phones append ends
FILM_HEAD = 16  # bytes; its first ones may be zeros
REST = 64  # bytes behind a false end that look like the rest of a scan
_MARKER = re.compile(rb"\xff[\xc0-\xfe]")
_FILL = re.compile(rb"\xff*")
_PADDING = re.compile(rb"[\0 \t\r\n\x1a]*")


def walk(data: bytes) -> Walked:
    picture = Picture(data, 0)
    problems = picture.problems
    if picture.end is not None and picture.end < len(data):
        problems += _behind(data, picture.end)
    if picture.frame is None:
        return Walked("JPEG", 0, 0, 0, tuple(problems))
    width, height = picture.frame.width, picture.frame.height
    return Walked("JPEG", width, height, picture.frame.channels, tuple(problems + oversized(width, height)))


class Picture:
    """One image of a file, from its first marker on."""

    def __init__(self, data: bytes, start: int) -> None:
        self.data = data
        self.problems: list[Problem] = []
        self.frame: headers.Frame | None = None
        self.end: int | None = None  # behind its last marker
        self._tables = headers.NO_TABLES
        self._interval = 0
        self._scanned: set[int] = set()
        self._scans = self._stray = 0
        try:
            self._walk(start + 2)
        except Broken as broken:
            self.problems.append(broken.problem)

    def _walk(self, position: int) -> None:
        data, size = self.data, len(self.data)
        while position + 2 <= size:
            code = data[position + 1]
            if data[position] != 0xFF:
                position = self._skip(position)
            elif code in SEGMENTS:
                if position + 4 > size:
                    break
                end = position + 2 + (data[position + 2] << 8 | data[position + 3])
                if end > size:
                    break
                if end < position + 4:
                    raise Broken("structure", "a segment has an impossible length", position)
                try:
                    position = end if code in APPLICATIONS else self._segment(code, position, end)
                except headers.Damaged as damaged:
                    raise Broken("structure", str(damaged), position) from None
            elif code == EOI:
                self._finish(position + 2)
                return
            elif code == 0xFF:  # a filler
                position = _FILL.match(data, position).end() - 1  # type: ignore[union-attr]  # it fits the empty text
            elif code in ALONE:
                position += 2
            else:
                raise Broken("structure", f"the marker {code:#04x} may not stand there", position)
        raise cut(size, "before its end marker")

    def _skip(self, position: int) -> int:
        """Decoders look for the next marker, and so do we."""
        marker = _MARKER.search(self.data, position)
        if marker is None:
            raise cut(len(self.data), "before its end marker")
        self._stray += 1
        if self._stray > MAX_STRAY:
            raise Broken("structure", "its segments do not follow each other", position)
        if self.data[position : marker.start()].strip(PADDING):
            reason = f"{marker.start() - position} bytes stand between its segments that belong to none"
            self.problems.append(Problem("garbage", reason, position))
        return marker.start()

    def _segment(self, code: int, position: int, end: int) -> int:
        """Where the next one begins."""
        if code in TABLES:
            end = self._end_of_tables(end)
            self._tables = headers.extended(self._tables, self.data[position:end])
            return end
        payload = self.data[position + 4 : end]
        if code == SOS:
            return self._scan(payload, position, end)
        if code in FRAMES:
            if self.frame is not None:
                raise Broken("structure", "the sizes of the image stand in it twice", position)
            self.frame = headers.frame(code, payload)
        elif code == DRI:
            if len(payload) != 2:
                raise Broken("structure", "the segment about restart markers is damaged", position)
            self._interval = payload[0] << 8 | payload[1]
        elif code == JPEG_LS:
            raise Broken("unsupported", "it is a JPEG-LS image, whose structure is not known here", position)
        return end

    def _end_of_tables(self, end: int) -> int:
        """They stand together, and in most images of an encoder they are the same."""
        data, last = self.data, min(len(self.data) - 4, end + MAX_TABLES)
        while end <= last and data[end] == 0xFF and data[end + 1] in TABLES:
            behind = end + 2 + (data[end + 2] << 8 | data[end + 3])
            if not end + 4 <= behind <= len(data):
                break
            end = behind
        return end

    def _scan(self, payload: bytes, position: int, start: int) -> int:
        frame = self.frame
        if frame is None:
            raise Broken("structure", "the image data begin before the sizes of the image", position)
        scan = headers.scan(frame.code, frame.components, payload)
        demands = headers.demands(self._tables, frame, scan)
        self._scanned.update(scan.numbers)
        self._scans += 1
        if self._scans > MAX_SCANS:
            raise Broken("structure", f"it has more than {MAX_SCANS} scans", position)
        end, found = entropy(self.data, start, demands.zeros)
        self._contents(found, scan.mcus(frame), demands.bits, start, end)
        if end == len(self.data):
            raise cut(end, "within its image data" if any(self.data[-REST:]) else "the last of which are zeros")
        if (code := self.data[end + 1]) not in SEGMENTS and code != EOI:
            raise Broken("structure", f"the marker {code:#04x} stands in the middle of its data", end)
        return end

    def _contents(self, found: Found, mcus: int, bits: int, start: int, end: int) -> None:
        """Decoders pass over what is wrong here, and make grey areas of it."""
        needed = mcus * bits // 8
        if end - start < needed and end < len(self.data):
            reason = f"it has {end - start} bytes of image data where its size needs {needed} at least"
            self.problems.append(Problem("short", reason, start))
        if (found.restarts or self._interval) and (reason := self._restarts(found, mcus)):
            self.problems.append(Problem("garbage", reason, start))
        if found.fill:
            self.problems.append(Problem("garbage", "its data hold a long run of bytes 0xFF", start))
        if zeros := found.zeros_end - found.zeros:
            reason = f"its data hold {zeros} zero bytes in a row, which no encoder writes there"
            self.problems.append(Problem("garbage", reason, found.zeros))

    def _restarts(self, found: Found, mcus: int) -> str:
        if not self._interval:
            return "its data hold restart markers that nothing announces"
        if found.disorder:
            return "its restart markers are not in order"
        expected = (mcus - 1) // self._interval
        if found.restarts in (expected, expected + 1):  # some encoders write one behind the last
            return ""
        return f"its data hold {found.restarts} restart markers where {expected} belong"

    def _finish(self, end: int) -> None:
        self.end = end
        if self.frame is None or not self._scanned:
            raise Broken("structure", "it holds no image data", end)
        if missing := self.frame.channels - len(self._scanned):
            raise Broken("structure", f"{missing} of its components have no data", end)


def _behind(data: bytes, end: int) -> list[Problem]:
    """Cameras and phones append pictures, films and data of their own: nothing wrong, unless the end is a false one."""
    for _ in range(MAX_APPENDED):
        start = _PADDING.match(data, end).end()  # type: ignore[union-attr]  # it fits the empty text
        if not data.startswith(MAGIC, start):
            known = data.find(FILM, end, start + FILM_HEAD) >= 0 or data.endswith(PHONE)
            return [] if known else _rest(data, start) or trailing(data, end)
        picture = Picture(data, start)
        if picture.end is None:
            return [
                Problem("truncated", f"of a further picture in it: {reason}", offset, "warning")
                for kind, reason, offset, _ in picture.problems
                if kind == "truncated"
            ]
        end = picture.end
    return []


def _rest(data: bytes, start: int) -> list[Problem]:
    """What looks like the second half of a scan: a damaged byte made an end marker."""
    end, _ = entropy(data, start, 0)
    if end == len(data) or end - start < REST or data[end + 1] != EOI or data[end + 2 :].strip(PADDING):
        return []
    return [Problem("garbage", f"an end marker stands in the middle of it, {len(data) - start} bytes too early", start)]
