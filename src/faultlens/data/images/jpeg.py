"""JPEG: do its segments, tables and scans make a whole image? Nothing is decoded."""

from __future__ import annotations

import re
from typing import NamedTuple

from faultlens.data.images import huffman
from faultlens.data.images.entropy import entropy, in_order
from faultlens.data.images.huffman import Coded, Table
from faultlens.data.images.record import PADDING, Broken, Problem, Walked, cut, oversized, trailing

MAGIC = b"\xff\xd8\xff"
EOI, SOS, DQT, DHT, DRI, JPEG_LS = 0xD9, 0xDA, 0xDB, 0xC4, 0xDD, 0xF7
BASELINE, EXTENDED, PROGRESSIVE = 0xC0, 0xC1, 0xC2
FRAMES = frozenset(range(0xC0, 0xD0)) - {DHT, 0xC8, 0xCC}
ALONE = frozenset({0x01, *range(0xD0, 0xD8)})  # markers without a segment
MAX_SIDE = 65500  # of libjpeg
MAX_APPENDED = 16  # further pictures that are looked at: previews, the second eye, brightness maps
MAX_SCANS = 1000
MAX_PROBLEMS = 20
FILM = b"ftyp"
REST = 64  # bytes behind a false end that look like the rest of a scan
_MARKER = re.compile(rb"\xff[\xc0-\xfe]")
_ZEROS = re.compile(rb"\0+")
_FILL = re.compile(rb"\xff*")
_PADDING = re.compile(rb"[\0 \t\r\n\x1a]*")


class Component(NamedTuple):
    across: int
    down: int
    quantisation: int


class Frame(NamedTuple):
    code: int
    precision: int
    width: int
    height: int
    components: dict[int, Component]


def walk(data: bytes) -> Walked:
    picture = Picture(data, 0)
    problems = picture.problems + (oversized(picture.frame.width, picture.frame.height) if picture.frame else [])
    if picture.end is not None:
        problems += _behind(data, picture.end)
    if picture.frame is None:
        return Walked("JPEG", 0, 0, 0, tuple(problems))
    return Walked("JPEG", picture.frame.width, picture.frame.height, len(picture.frame.components), tuple(problems))


class Picture:
    """One image of a file, from its first marker on."""

    def __init__(self, data: bytes, start: int) -> None:
        self.data = data
        self.problems: list[Problem] = []
        self.frame: Frame | None = None
        self.end: int | None = None  # behind its last marker
        self._huffman: dict[int, Table] = {}
        self._quantisation: set[int] = set()
        self._interval = 0
        self._scanned: set[int] = set()
        self._scans = 0
        try:
            self._walk(start + 2)
        except Broken as broken:
            self.problems.append(broken.problem)

    def _walk(self, position: int) -> None:
        data, size = self.data, len(self.data)
        while True:
            if data[position : position + 1] != b"\xff":
                position = self._stray(position)
            if data[position + 1 : position + 2] == b"\xff":
                position = _FILL.match(data, position).end() - 1  # type: ignore[union-attr]  # it fits the empty text
            if position + 2 > size:
                raise cut(size, "before its end marker")
            code = data[position + 1]
            if code == EOI:
                return self._finish(position + 2)
            if code in ALONE:
                position += 2
                continue
            if position + 4 > size:
                raise cut(size, "within a segment")
            end = position + 2 + (data[position + 2] << 8 | data[position + 3])
            if end > size:
                raise cut(size, "within a segment")
            if end < position + 4:
                raise Broken("structure", "a segment has an impossible length", position)
            position = self._segment(code, position, end)

    def _stray(self, position: int) -> int:
        """Decoders look for the next marker, and so do we."""
        marker = _MARKER.search(self.data, position)
        if marker is None:
            raise cut(len(self.data), "before its end marker")
        if len(self.problems) > MAX_PROBLEMS:
            raise Broken("structure", "its segments do not follow each other", position)
        reason = f"{marker.start() - position} bytes stand between its segments that belong to none"
        self.problems.append(Problem("garbage", reason, position))
        return marker.start()

    def _segment(self, code: int, position: int, end: int) -> int:
        """Where the next one begins."""
        if 0xE0 <= code <= 0xEF:  # of applications
            return end
        payload = self.data[position + 4 : end]
        if code == DQT:
            self._quantisation |= _quantisation(payload, position)
        elif code == DHT:
            if (tables := huffman.tables(payload)) is None:
                raise Broken("structure", "a Huffman table is damaged", position)
            self._huffman.update(tables)
        elif code == SOS:
            return self._scan(payload, position, end)
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
        elif code < 0xC0 or code in (0xC8, 0xD8):
            raise Broken("structure", f"the marker {code:#04x} may not stand there", position)
        return end

    def _scan(self, payload: bytes, position: int, start: int) -> int:
        frame, count = self.frame, payload[0] if payload else 0
        if frame is None:
            raise Broken("structure", "the image data begin before the sizes of the image", position)
        if not 1 <= count <= 4 or len(payload) != 4 + 2 * count:
            raise Broken("structure", "the header of a scan is damaged", position)
        chosen = {payload[at]: payload[at + 1] for at in range(1, 1 + 2 * count, 2)}
        if len(chosen) != count or not chosen.keys() <= frame.components.keys():
            raise Broken("structure", "a scan is of a component that is not there", position)
        if any(frame.components[each].quantisation not in self._quantisation for each in chosen):
            raise Broken("structure", "a quantisation table is missing", position)
        self._scanned |= chosen.keys()
        self._scans += 1
        if self._scans > MAX_SCANS:
            raise Broken("structure", f"it has more than {MAX_SCANS} scans", position)
        coded = self._coded(frame, chosen, payload[-3:], position)
        found = entropy(self.data, start)
        mcus, blocks = _mcus(frame, [frame.components[each] for each in chosen])
        self._restarts(found.restarts, mcus, start)
        end = len(self.data) if found.end is None else found.end
        if coded:
            coded = tuple(Coded(each, dc, ac) for each, (_, dc, ac) in zip(blocks, coded, strict=True))
            self._contents(coded, mcus, start, end)
        if found.fill:
            self.problems.append(Problem("garbage", "its data hold a long run of bytes 0xFF", start))
        if found.end is None:
            raise cut(
                end, "within its image data" if any(self.data[-REST:]) else "and zeros are all that is there last"
            )
        if self.data[end + 1] < 0xC0 or self.data[end + 1] == 0xD8:
            raise Broken("structure", f"the marker {self.data[end + 1]:#04x} stands in the middle of its data", end)
        return end

    def _coded(self, frame: Frame, chosen: dict[int, int], how: bytes, position: int) -> tuple[Coded, ...]:
        """The tables of a scan that is coded from beginning to end in Huffman codes; of others nothing is told."""
        if frame.code > PROGRESSIVE or frame.precision != 8:
            return ()
        progressive = frame.code == PROGRESSIVE
        needs_dc = how[0] == 0 and not (progressive and how[2] >> 4)
        needs_ac = how[0] > 0 if progressive else True
        if not self._huffman and not progressive:  # a frame of a film: those of the standard
            return ()
        coded = []
        for tables in chosen.values():
            dc, ac = self._huffman.get(tables >> 4), self._huffman.get(0x10 | tables & 15)
            if (needs_dc and dc is None) or (needs_ac and ac is None):
                raise Broken("structure", "a Huffman table is missing", position)
            if dc and ac and not progressive:
                coded.append(Coded(1, dc, ac))
        return tuple(coded)

    def _restarts(self, restarts: bytes, mcus: int, start: int) -> None:
        if not restarts and not self._interval:
            return
        expected = (mcus - 1) // self._interval if self._interval else 0
        if not self._interval:
            reason = "its data hold restart markers that nothing announces"
        elif not in_order(restarts):
            reason = "its restart markers are not in order"
        elif len(restarts) not in (expected, expected + 1):  # some encoders write one behind the last
            reason = f"its data hold {len(restarts)} restart markers where {expected} belong"
        else:
            return
        self.problems.append(Problem("garbage", reason, start))

    def _contents(self, coded: tuple[Coded, ...], mcus: int, start: int, end: int) -> None:
        needed = mcus * sum(each.blocks * (each.dc.shortest + each.ac.shortest) for each in coded) // 8
        if end - start < needed and end < len(self.data):
            reason = f"it has {end - start} bytes of image data where its size needs {needed} at least"
            self.problems.append(Problem("short", reason, start))
        limit = huffman.impossible_zeros(coded)
        if limit and (at := self.data.find(bytes(limit), start, end)) >= 0:
            zeros = _ZEROS.match(self.data, at)
            if zeros and zeros.end() < end:  # up to the marker they would be padding
                reason = f"its data hold {zeros.end() - at} zero bytes in a row, which no encoder writes there"
                self.problems.append(Problem("garbage", reason, at))

    def _finish(self, end: int) -> None:
        self.end = end
        if self.frame is None or not self._scanned:
            raise Broken("structure", "it holds no image data", end)
        if missing := len(self.frame.components) - len(self._scanned):
            raise Broken("structure", f"{missing} of its components have no data", end)


def _quantisation(payload: bytes, position: int) -> set[int]:
    found, at = set(), 0
    while at < len(payload):
        precision, number = divmod(payload[at], 16)
        at += 1 + 64 * (1 + precision)
        if precision > 1 or number > 3 or at > len(payload):
            raise Broken("structure", "a quantisation table is damaged", position)
        found.add(number)
    return found


def _frame(code: int, payload: bytes, position: int) -> Frame:
    if len(payload) < 6 or len(payload) != 6 + 3 * payload[5]:
        raise Broken("structure", "the segment with its sizes is damaged", position)
    precision, height, width = payload[0], payload[1] << 8 | payload[2], payload[3] << 8 | payload[4]
    components = {
        payload[at]: Component(payload[at + 1] >> 4, payload[at + 1] & 15, payload[at + 2])
        for at in range(6, len(payload), 3)
    }
    if not width or not height or width > MAX_SIDE or height > MAX_SIDE:
        raise Broken("structure", f"its size of {width} × {height} is none that decoders take", position)
    if len(components) != payload[5] or not components or len(components) > 4:
        raise Broken("structure", f"it cannot have {payload[5]} components", position)
    if not all(1 <= each.across <= 4 and 1 <= each.down <= 4 for each in components.values()):
        raise Broken("structure", "the sampling of its components is impossible", position)
    if precision not in ((8,) if code == BASELINE else (8, 12) if code <= PROGRESSIVE else range(2, 17)):
        raise Broken("structure", f"it cannot have {precision} bits per sample", position)
    return Frame(code, precision, width, height, components)


def _mcus(frame: Frame, scanned: list[Component]) -> tuple[int, list[int]]:
    """How many units a scan has, and how many blocks each has of every component."""
    side = 8 if frame.code <= PROGRESSIVE or 0xC9 <= frame.code <= 0xCA else 1
    across = max(each.across for each in frame.components.values())
    down = max(each.down for each in frame.components.values())
    if len(scanned) > 1:
        return (
            _up(frame.width, side * across) * _up(frame.height, side * down),
            [each.across * each.down for each in scanned],
        )
    (only,) = scanned
    return (
        _up(_up(frame.width * only.across, across), side) * _up(_up(frame.height * only.down, down), side),
        [1],
    )


def _up(amount: int, unit: int) -> int:
    return -(-amount // unit)


def _behind(data: bytes, end: int) -> list[Problem]:
    """Cameras and phones append pictures, films and data of their own: nothing wrong, unless the end is a false one."""
    for _ in range(MAX_APPENDED):
        if end == len(data):
            break
        start = _PADDING.match(data, end).end()  # type: ignore[union-attr]  # it fits the empty text
        if not data.startswith(MAGIC, start):
            return [] if data[start + 4 : start + 8] == FILM else _rest(data, start) or trailing(data, end)
        picture = Picture(data, start)
        if picture.end is None:
            cuts = [each for each in picture.problems if each.kind == "truncated"]
            return [
                Problem("truncated", f"of a further picture in it, {each.reason}", each.offset, "warning")
                for each in cuts
            ]
        end = picture.end
    return []


def _rest(data: bytes, start: int) -> list[Problem]:
    """What looks like the second half of a scan: a damaged byte made an end marker."""
    found = entropy(data, start)
    if (
        found.end is None
        or found.end - start < REST
        or data[found.end + 1] != EOI
        or data[found.end + 2 :].strip(PADDING)
    ):
        return []
    return [Problem("garbage", f"an end marker stands in the middle of it, {len(data) - start} bytes too early", start)]
