"""What valgrind's memcheck wrote, as XML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from faultlens.custom_op.sanitize.reports import Frame, Reported, Stack

TOOL = "valgrind"
_ERROR = re.compile(r"<error>.*?</error>", re.S)  # one by one: the file ends anywhere when the program is killed
_BLOCK = re.compile(r"Address 0x[0-9a-f]+ is (.*)$", re.I)
_RULES = {
    "InvalidRead": "heap-overflow",
    "InvalidWrite": "heap-overflow",
    "InvalidFree": "double-free",
    "MismatchedFree": "bad-free",
    "Overlap": "bad-argument",
    "FishyValue": "bad-argument",
    "UninitCondition": "uninitialised-value",
    "UninitValue": "uninitialised-value",
    "SyscallParam": "uninitialised-value",
    "Leak_DefinitelyLost": "memory-leak",
}


def parse(text: str) -> Iterator[Reported]:
    for found in _ERROR.finditer(text):
        try:
            error = ElementTree.fromstring(found[0])
        except ElementTree.ParseError:
            continue
        if rule := _RULES.get(error.findtext("kind") or ""):
            yield _reported(rule, error)


def _reported(rule: str, error: ElementTree.Element) -> Reported:
    what = error.findtext("what") or error.findtext("xwhat/text") or ""
    beside = [each.text or "" for each in error.findall("auxwhat")]
    stacks = [tuple(_frame(frame) for frame in stack.findall("frame")) for stack in error.findall("stack")]
    block = next((match[1] for text in beside if (match := _BLOCK.search(text))), "")
    if rule == "heap-overflow" and "free'd" in block:
        rule = "use-after-free"
    elif rule == "heap-overflow" and ("not stack'd, malloc'd" in block or not block):
        rule = "wild-access"
    says = ["freed here", "allocated here"] if rule in ("use-after-free", "double-free") else ["allocated here"]
    others = tuple(Stack(text, frames) for text, frames in zip(says, stacks[1:], strict=False))
    words = what[:1].lower() + what[1:] + (f", {block}" if block else "")
    single = rule == "memory-leak" and " in 1 blocks" in what
    return Reported(rule, words, TOOL, stacks[0] if stacks else (), others, (what,), weak=single)


def _frame(frame: ElementTree.Element) -> Frame:
    folder, file = frame.findtext("dir") or "", frame.findtext("file") or ""
    path = f"{folder}/{file}" if folder and file and not file.startswith("/") else file
    return Frame(frame.findtext("fn") or "", path, int(frame.findtext("line") or 0))
