"""What a user sees when faultlens cannot do what was asked: one sentence, and what to do next."""

from __future__ import annotations

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class FaultlensError(Exception):
    """Ends a command with exit code 2. `problem` is one sentence, `advice` says what to try."""

    def __init__(self, problem: str, advice: str = "") -> None:
        self.problem = _printable(problem)
        self.advice = _printable(advice)
        super().__init__(self.problem)

    def __str__(self) -> str:
        return f"{self.problem} {self.advice}".strip()


def _printable(text: str) -> str:
    """File names need not be UTF-8, and need not be harmless to a terminal. Our own words may take several lines."""
    return _CONTROL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number - 0xDC00:02x}" if 0xDC80 <= number <= 0xDCFF else repr(match[0])[1:-1]
