"""Where on the page the facts are that evidence was read from."""

from __future__ import annotations

import re
from collections.abc import Iterable

# By words in the name of its source.
_ANCHORS = tuple(
    (re.compile(pattern, re.I), anchor)
    for pattern, anchor in (
        (r"\bsaves?\b", "saves"),
        (r"kernels? in flight|\bops? in flight|\bgraph\b|\btraced?\b|\bprogress\b", "tensorflow"),
        (r"register", "registers"),
        (r"traceback|python exception", "output"),
        (r"stack|thread|frame|symbol|gil\b|process state|/task", "threads"),
        (r"source|your code|script", "source"),
        (
            r"stderr|stdout|output|messag|\blog\b|said|glibc|abort|thrown|exception|terminat|runtime|loader|errno",
            "output",
        ),
        (r"siginfo|signal|instruction|disassembl|fault|trap", "fault"),
        (r"\bmaps?\b|mapping|\bfiles?\b|file state|disk|librar|\bstat(?:v?fs)?\b", "files"),
        (r"time limit", "environment"),
        (r"cgroup|memory|rss|r?limit|counter|timeline|sample|shm|/proc/\S*/status", "memory"),
        (
            r"environ|variable|package|version|machine|cpu|program|command|status|exit|kernel|agent|/proc/",
            "environment",
        ),
    )
)


def anchor_of(source: str, sections: Iterable[str]) -> str | None:
    there = set(sections)
    return next((anchor for pattern, anchor in _ANCHORS if anchor in there and pattern.search(source[:200])), None)
