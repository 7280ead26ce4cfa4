"""Is a block of CSV nothing but plain numbers? Told by which kinds of characters follow each other, all at once."""

from __future__ import annotations

DIGIT, SIGN, DOT, EXPONENT, END, RETURN, OTHER = range(7)
MEMBERS = {DIGIT: b"0123456789", SIGN: b"+-", DOT: b".", EXPONENT: b"eE", END: b"\n", RETURN: b"\r"}
# What may follow. (Numbers that begin with a dot are left to whoever looks at cells.)
FOLLOWS = {
    END: (DIGIT, SIGN),
    SIGN: (DIGIT,),
    DIGIT: (DIGIT, DOT, EXPONENT, END, RETURN),
    DOT: (DIGIT, EXPONENT, END, RETURN),
    EXPONENT: (DIGIT, SIGN),
    RETURN: (END,),
}
_GOOD = bytes(before << 4 | after for before, behind in FOLLOWS.items() for after in behind)
_WITHIN = MEMBERS[DIGIT] + MEMBERS[SIGN] + MEMBERS[RETURN]
_ONCE = {b"", b".", b"e", b".e"}  # what is left of a number without them


class PlainNumbers:
    def __init__(self, delimiter: str) -> None:
        self._delimiter = delimiter.encode()
        kinds = bytearray([OTHER]) * 256
        for kind, members in {**MEMBERS, END: MEMBERS[END] + self._delimiter}.items():
            for member in members:
                kinds[member] = kind
        self._kinds = bytes(kinds)

    def passes(self, lines: bytes) -> bool:
        """False: not so, or not known."""
        try:
            import numpy
        except ImportError:
            return False
        kinds = numpy.frombuffer(b"\n".join((b"", lines, b"")).translate(self._kinds), numpy.uint8)
        pairs = kinds[:-1] << 4 | kinds[1:]
        if pairs.tobytes().translate(None, _GOOD):
            return False
        if b"." not in lines and b"e" not in lines and b"E" not in lines:
            return True
        alike = set(lines.translate(None, _WITHIN).split(b"\n"))
        return all(cell.lower() in _ONCE for line in alike for cell in line.split(self._delimiter))
