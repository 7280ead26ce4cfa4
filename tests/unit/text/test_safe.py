"""Foreign text is made safe to print."""

from __future__ import annotations

import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultlens.text.safe import last_lines, make_printable, one_line, shorten


@pytest.mark.parametrize(
    ("foreign", "safe"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;new title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]never ends", "never ends"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1bP1$q\x1b\\after", "after"),
        ("one\ntwo\tthree\r\nfour", "one two three four"),
        ("bell\x07 null\x00 delete\x7f", "bell null delete"),
        ("\u202egnp.exe\u2066", "gnp.exe"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("byte \udcff, half \ud800", "byte \\xff, half \\ud800"),
        ("[red]markup[/red]", "[red]markup[/red]"),
        ("grüße, 日本語, 🙂", "grüße, 日本語, 🙂"),
    ],
)
def test_one_line(foreign: str, safe: str) -> None:
    assert one_line(foreign) == safe


@given(st.text(st.characters(), max_size=300))
def test_nothing_that_a_terminal_obeys_survives(text: str) -> None:
    safe = one_line(text, 100)
    assert len(safe) <= 100
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in safe)
    safe.encode()  # no lone surrogates
    assert one_line(safe, 100) == safe


def test_huge_text_takes_little_time() -> None:
    start = time.process_time()
    assert len(one_line("\x1b]" * 5_000_000, 400)) <= 400
    assert time.process_time() - start < 0.5


def test_shorten_keeps_both_ends() -> None:
    assert shorten("abcdefghij", 5) == "ab…ij"
    assert shorten("abc", 3) == "abc"


def test_last_lines_skip_blank_ones_and_overwritten_progress() -> None:
    text = "first\n\n 10%\r 50%\r100%\n\x1b[2K\nlast\r\n"
    assert last_lines(text, 2) == ["100%", "last"]
    assert last_lines(text, 9) == ["first", "100%", "last"]


def test_a_stream_that_lacks_our_marks_gets_plainer_ones() -> None:
    raw = io.BytesIO()
    stream = make_printable(io.TextIOWrapper(raw, encoding="ascii"))
    stream.write("▶ a → b… × é")
    stream.flush()
    assert raw.getvalue() == b"> a -> b... x \\xe9"
