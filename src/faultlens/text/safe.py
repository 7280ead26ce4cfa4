"""How foreign text (names, messages, paths, output) is made safe to print on any stream."""

from __future__ import annotations

import codecs
import io
import re
from typing import TextIO

ELLIPSIS = "…"
LINE_LIMIT = 400  # characters of one foreign string that are shown

# Terminal control: CSI with its parameters, OSC/DCS/PM/APC strings up to their end, all other escapes.
_ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]?"
)
# Control characters, and invisible ones that reorder or hide text around them.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACE = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]+")

# What our own marks become on a stream that cannot show them.
_ASCII = str.maketrans({
    "…": "...", "▶": ">", "│": "|", "→": "->", "×": "x", "·": "-", "└": "`", "✗": "x", "✓": "v",
    "▁": "_", "▂": "_", "▃": "-", "▄": "-", "▅": "=", "▆": "=", "▇": "#", "█": "#",
})  # fmt: skip


def one_line(text: str, limit: int = LINE_LIMIT) -> str:
    """The text on one line, without anything that a terminal would obey, shortened in the middle."""
    text = _bounded(text, limit)
    text = _ESCAPE_SEQUENCE.sub("", text)
    text = _SPACE.sub(" ", text)
    text = _INVISIBLE.sub("", text)
    text = _SURROGATE.sub(lambda match: _byte(match.group()), text)
    return shorten(text, limit)


def last_lines(text: str, count: int, limit: int = LINE_LIMIT) -> list[str]:
    """The last lines that are not blank; of a line that overwrote itself (a progress bar) its last state."""
    found: list[str] = []
    for raw in reversed(text.split("\n")):
        line = one_line(raw.rstrip("\r").rpartition("\r")[2], limit).rstrip()
        if line:
            found.append(line)
        if len(found) == count:
            break
    return found[::-1]


def shorten(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 2
    return text[: limit - 1 - tail] + ELLIPSIS + text[len(text) - tail :]


def make_printable(stream: TextIO) -> TextIO:
    """Let the stream replace what its encoding lacks, instead of raising."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors=_FALLBACK)
    return stream


def _bounded(text: str, limit: int) -> str:
    """Both ends of a huge text, so that cleaning it takes bounded time."""
    room = 16 * limit
    return text if len(text) <= 2 * room else text[:room] + ELLIPSIS + text[-room:]


def _byte(surrogate: str) -> str:
    """A lone surrogate stands for a byte that was not UTF-8 (PEP 383), or for nothing at all."""
    number = ord(surrogate)
    return f"\\x{number - 0xDC00:02x}" if 0xDC80 <= number <= 0xDCFF else f"\\u{number:04x}"


def _replace_unencodable(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end].translate(_ASCII)
    return lacking.encode("ascii", "backslashreplace").decode("ascii"), error.end


_FALLBACK = "faultlens-ascii"
codecs.register_error(_FALLBACK, _replace_unencodable)
