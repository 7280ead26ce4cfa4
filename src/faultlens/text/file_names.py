"""File names as text that UTF-8, JSON and a line on a screen can hold, and back: a name may consist of any bytes.

A byte that is not UTF-8, and each byte of a control character, becomes `\\xNN`. Where a name itself holds those four
characters, its backslash becomes `\\x5c`, so that every text stands for one name. Python's own notation, lone
surrogates (PEP 383), cannot be written as UTF-8."""

from __future__ import annotations

import os
import re

_ESCAPE_IN_BYTES = re.compile(rb"\\x([0-9a-f]{2})")
_LITERAL = re.compile(r"\\(?=x[0-9a-f]{2})")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Control characters, ends of lines, what turns the direction of the text around it, and lone surrogates.
_NOT_SHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def to_text(name: str) -> str:
    """Of a name as `os` has it."""
    if "\\x" in name:
        name = _LITERAL.sub(r"\\x5c", name)
    return _NOT_SHOWN.sub(_escaped, name)


def to_name(text: str) -> str:
    """The name that a text stands for, as `os` wants it."""
    if "\\x" not in text:
        return text
    data = _ESCAPE_IN_BYTES.sub(lambda match: bytes([int(match[1], 16)]), text.encode("utf-8", "surrogateescape"))
    return os.fsdecode(data)


def is_utf8(name: str) -> bool:
    return not _SURROGATE.search(name)


def _escaped(match: re.Match[str]) -> str:
    """A surrogate that stands for no byte comes from no file system."""
    data = match[0].encode("utf-8", "surrogateescape" if "\udc80" <= match[0] <= "\udcff" else "replace")
    return "".join(f"\\x{byte:02x}" for byte in data)
