"""The files that an exception names, as they are: some say "not found" of a file that is there."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from faultlens.diagnosis.evidence.last_words import python_exception
from faultlens.records.crash import Crash, FileState

MOST = 3
_NAME = re.compile(r"(?:^|[\s='\"(:`])([^\s'\"=(),;:`]+\.\w{1,10})(?=[\s'\"),;:.`]|$)")


def with_named_files(crash: Crash) -> Crash:
    error = python_exception(crash) if crash.outcome.kind == "exception" and not crash.files else None
    if error is None:
        return crash
    folder = Path(crash.program.directory or ".")
    names = dict.fromkeys(match[1] for match in _NAME.finditer(error.message))
    return replace(crash, files=tuple(_states(folder, names))[:MOST])


def _states(folder: Path, names: dict[str, None]) -> Iterator[FileState]:
    for name in names:
        try:
            state = os.stat(folder / name)
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(state.st_mode):
            yield FileState(path=str(folder / name), size=state.st_size, modified=state.st_mtime)
