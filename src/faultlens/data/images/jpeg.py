"""JPEG: do its segments, tables and scans make a whole image? Nothing is decoded."""

from __future__ import annotations

import re
from typing import NamedTuple

from faultlens.data.images import huffman
from faultlens.data.images import jpeg_headers as headers
from faultlens.data.images.entropy import Entropy, entropy
from faultlens.data.images.record import PADDING, Broken, Problem, Walked, cut, oversized, trailing

MAGIC = b"\xff\xd8\xff"
DHT, RST0, RST7, SOI, EOI, SOS, DQT, DRI, JPEG_LS = 0xC4, 0xD0, 0xD7, 0xD8, 0xD9, 0xDA, 0xDB, 0xDD, 0xF7
BASELINE, PROGRESSIVE = 0xC0, 0xC2
FRAMES = frozenset(range(0xC0, 0xD0)) - {DHT, 0xC8, 0xCC}
LOSSLESS = frozenset({0xC3, 0xC7, 0xCB, 0xCF})  # coded by pixels, not by blocks
APPLICATIONS = frozenset(range(0xE0, 0xF0))
ALONE = frozenset({0x01, *range(RST0, RST7 + 1)})  # markers without a segment
SEGMENTS = frozenset(range(0xC0, 0xFF)) - ALONE - {0xC8, SOI, EOI}
MAX_SIDE = 65500  # of libjpeg
MAX_APPENDED = 16  # further pictures that are looked at: previews, the second eye, brightness maps
MAX_SCANS = 1000
MAX_STRAY = 20
FILM = b"ftyp"
REST = 64  # bytes behind a false end that look like the rest of a scan
_MARKER = re.compile(rb"\xff[\xc0-\xfe]")
_ZEROS = re.compile(rb"\0+")
_FILL = re.compile(rb"\xff*")
_PADDING = re.compile(rb"[\0 \t\r\n\x1a]*")


class Frame(NamedTuple):
    code: int
    precision: int
    width: int
    height: int
    channels: int
    components: bytes


def walk(data: bytes) -> Walked:
    picture = Picture(data, 0)
    problems = picture.problems
    if picture.end is not None and picture.end < len(data):
        problems += _behind(data, picture.end)
    if picture.frame is None:
        return Walked("JPEG", 0, 0, 0, tuple(problems))
    _, _, width, height, count, _ = picture.frame
    return Walked("JPEG", width, height, count, tuple(problems + oversized(width, height)))


class Picture:
    """One image of a file, from its first marker on."""

    def __init__(self, data: bytes, start: int) -> None:
        self.data = data
        self.problems: list[Problem] = []
        self.frame: Frame | None = None
        self.end: int | None = None  # behind its last marker
        self._huffman: dict[int, huffman.Table] = {}
        self._quantisations: set[int] = set()
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
            elif code == EOI:
                self._finish(position + 2)
                return
            elif code in SEGMENTS:
                end = position + 2 + int.from_bytes(data[position + 2 : position + 4], "big")
                if position + 4 > size or end > size:
                    break
                if end < position + 4:
                    raise Broken("structure", "a segment has an impossible length", position)
                position = end if code in APPLICATIONS else self._segment(code, position, end)
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
        reason = f"{marker.start() - position} bytes stand between its segments that belong to none"
        self.problems.append(Problem("garbage", reason, position))
        return marker.start()

    def _segment(self, code: int, position: int, end: int) -> int:
        """Where the next one begins."""
        payload = self.data[position + 4 : end]
        if code == SOS:
            return self._scan(payload, position, end)
        if code == DHT:
            if (tables := huffman.tables(payload)) is None:
                raise Broken("structure", "a Huffman table is damaged", position)
            self._huffman.update(tables)
        elif code == DQT:
            if (numbers := headers.quantisations(payload)) is None:
                raise Broken("structure", "a quantisation table is damaged", position)
            self._quantisations |= numbers
        elif code in FRAMES:
            if self.frame is not None:
                raise Broken("structure", "the sizes of the image stand in it twice", position)
            self.frame = _frame(code, payload, position)
        elif code == DRI:
            if len(payload) != 2:
                raise Broken("structure", "the segment about restart markers is damaged", position)
            self._interval = payload[0] << 8 | payload[1]
        elif code == JPEG_LS:
            raise Broken("unsupported", "it is a JPEG-LS image, whose structure is not known here", position)
        return end

    def _scan(self, payload: bytes, position: int, start: int) -> int:
        if self.frame is None:
            raise Broken("structure", "the image data begin before the sizes of the image", position)
        chosen = headers.selection(self.frame.components, payload)
        if chosen is None:
            raise Broken("structure", "the header of a scan is damaged", position)
        if not chosen.quantisations <= self._quantisations and self.frame.code not in LOSSLESS:
            raise Broken("structure", "a quantisation table is missing", position)
        demands = self._demands(self.frame, chosen, position)
        self._scanned.update(chosen.numbers)
        self._scans += 1
        if self._scans > MAX_SCANS:
            raise Broken("structure", f"it has more than {MAX_SCANS} scans", position)
        found = entropy(self.data, start)
        mcus = chosen.mcus(self.frame.width, self.frame.height, 1 if self.frame.code in LOSSLESS else headers.BLOCK)
        end = len(self.data) if found.end is None else found.end
        if found.restarts or self._interval:
            self._restarts(found, mcus, start)
        if found.fill:
            self.problems.append(Problem("garbage", "its data hold a long run of bytes 0xFF", start))
        if demands is not None:
            self._contents(demands, mcus, start, end)
        if found.end is None:
            raise cut(end, "within its image data" if any(self.data[-REST:]) else "the last of which are zeros")
        if (code := self.data[end + 1]) not in SEGMENTS and code != EOI:
            raise Broken("structure", f"the marker {code:#04x} stands in the middle of its data", end)
        return end

    def _demands(self, frame: Frame, chosen: headers.Selection, position: int) -> headers.Demands | None:
        """None where the data are not simply Huffman codes from beginning to end."""
        if frame.code > PROGRESSIVE or frame.precision != 8:
            return None
        progressive = frame.code == PROGRESSIVE
        if not self._huffman and not progressive:  # a frame of a film: with the tables of the standard
            return None
        first, _, bits = chosen.progression
        needs_dc, needs_ac = (first == 0 and bits < 16, first > 0) if progressive else (True, True)
        tables = []
        for numbers in chosen.tables:
            dc, ac = self._huffman.get(numbers >> 4), self._huffman.get(0x10 | numbers & 15)
            if (needs_dc and dc is None) or (needs_ac and ac is None):
                raise Broken("structure", "a Huffman table is missing", position)
            if dc and ac:
                tables.append((dc, ac))
        return None if progressive else headers.demands(chosen.blocks, tuple(tables))

    def _restarts(self, found: Entropy, mcus: int, start: int) -> None:
        expected = (mcus - 1) // self._interval if self._interval else 0
        if not self._interval:
            reason = "its data hold restart markers that nothing announces"
        elif not found.in_order:
            reason = "its restart markers are not in order"
        elif found.restarts not in (expected, expected + 1):  # some encoders write one behind the last
            reason = f"its data hold {found.restarts} restart markers where {expected} belong"
        else:
            return
        self.problems.append(Problem("garbage", reason, start))

    def _contents(self, demands: headers.Demands, mcus: int, start: int, end: int) -> None:
        needed = mcus * demands.bits // 8
        if end - start < needed and end < len(self.data):
            reason = f"it has {end - start} bytes of image data where its size needs {needed} at least"
            self.problems.append(Problem("short", reason, start))
        if demands.zeros and (at := self.data.find(bytes(demands.zeros), start, end)) >= 0:
            zeros = _ZEROS.match(self.data, at)
            if zeros and zeros.end() < end:  # up to the marker they would be padding
                reason = f"its data hold {zeros.end() - at} zero bytes in a row, which no encoder writes there"
                self.problems.append(Problem("garbage", reason, at))

    def _finish(self, end: int) -> None:
        self.end = end
        if self.frame is None or not self._scanned:
            raise Broken("structure", "it holds no image data", end)
        if missing := self.frame.channels - len(self._scanned):
            raise Broken("structure", f"{missing} of its components have no data", end)


def _frame(code: int, payload: bytes, position: int) -> Frame:
    if len(payload) < 6 or len(payload) != 6 + 3 * payload[5]:
        raise Broken("structure", "the segment with its sizes is damaged", position)
    precision, height, width, count = payload[0], payload[1] << 8 | payload[2], payload[3] << 8 | payload[4], payload[5]
    if not 0 < width <= MAX_SIDE or not 0 < height <= MAX_SIDE:
        raise Broken("structure", f"its size of {width} × {height} is none that decoders take", position)
    if precision != 8 and precision not in ((12,) if BASELINE < code <= PROGRESSIVE else range(2, 17)):
        raise Broken("structure", f"it cannot have {precision} bits per sample", position)
    if headers.components(payload[6:]) is None:
        raise Broken("structure", "its components are impossible", position)
    return Frame(code, precision, width, height, count, payload[6:])


def _behind(data: bytes, end: int) -> list[Problem]:
    """Cameras and phones append pictures, films and data of their own: nothing wrong, unless the end is a false one."""
    for _ in range(MAX_APPENDED):
        start = _PADDING.match(data, end).end()  # type: ignore[union-attr]  # it fits the empty text
        if not data.startswith(MAGIC, start):
            return [] if data[start + 4 : start + 8] == FILM else _rest(data, start) or trailing(data, end)
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
    end = entropy(data, start).end
    if end is None or end - start < REST or data[end + 1] != EOI or data[end + 2 :].strip(PADDING):
        return []
    return [Problem("garbage", f"an end marker stands in the middle of it, {len(data) - start} bytes too early", start)]
