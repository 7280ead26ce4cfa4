"""Reads the small text files of /proc, /sys and /etc, which may vanish or be forbidden at any time."""

from __future__ import annotations

import os
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


def read_text(path: str | Path) -> str | None:
    """The file's text, or None."""
    try:
        return Path(path).read_bytes().decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return None


def read_number(path: str | Path) -> int | None:
    text = read_text(path)
    return int(text) if text and text.strip().isdigit() else None


def read_fields(path: str | Path, separator: str | None = None) -> dict[str, str]:
    """Lines of "name value" (or "name: value" with a separator) as a dictionary."""
    fields: dict[str, str] = {}
    for line in (read_text(path) or "").splitlines():
        parts = line.split(separator, 1)
        if len(parts) == 2:
            fields[parts[0].strip()] = parts[1].strip()
    return fields


def resident(pid: int) -> int:
    """Bytes in memory of a process; 0 where it has gone."""
    fields = (read_text(f"/proc/{pid}/statm") or "").split()
    return int(fields[1]) * PAGE if len(fields) > 1 else 0
