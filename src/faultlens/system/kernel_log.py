"""Which lines the kernel logged about a process: segfaults, traps, out-of-memory kills."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from collections.abc import Collection

MAX_LINES = 40


def kernel_log_lines(pids: Collection[int], since: float) -> tuple[str, ...] | None:
    """Lines that name one of these processes or threads, logged after `since` (seconds since 1970).

    None when the log may not be read."""
    records = _read_log()
    if records is None:
        return None
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    names = "|".join(str(pid) for pid in pids)
    about = re.compile(rf"(\[({names})\]|\b(pid|process|task|Killed process|Tainted task)[ :=]+({names})\b)", re.I)
    lines = [
        text
        for microseconds, text in records
        # The two clocks drift apart by a little.
        if booted + microseconds / 1e6 > since - 2 and (about.search(text) or "NVRM: Xid" in text)
    ]
    return tuple(lines[-MAX_LINES:])


def lines_with(text: str) -> tuple[str, ...] | None:
    """All lines since the machine was started that have this text in them; None when the log may not be read."""
    records = _read_log()
    return None if records is None else tuple(line for _, line in records if text in line)


def _read_log() -> list[tuple[int, str]] | None:
    try:
        descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    records: list[tuple[int, str]] = []
    try:
        while True:
            try:
                record = os.read(descriptor, 8192)
            except OSError as error:
                if error.errno == errno.EPIPE:  # overwritten while we read
                    continue
                break  # EAGAIN: the end
            prefix, _, text = record.decode("utf-8", "backslashreplace").partition(";")
            fields = prefix.split(",")
            with contextlib.suppress(IndexError, ValueError):
                records.append((int(fields[2]), text.split("\n", 1)[0]))
    finally:
        os.close(descriptor)
    return records
