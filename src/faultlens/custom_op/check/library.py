"""Which sources a library of ops was built from."""

from __future__ import annotations

import re
from pathlib import Path

from faultlens.custom_op.building import SOURCES

MOST_READ = 64 << 20  # bytes of a library that are searched for the names of its sources


def sources_of(library: Path) -> list[Path]:
    """Sources that lie beside the library, or that its debug information names, if they are there."""
    stem = library.name.partition(".")[0].removeprefix("_").removeprefix("lib")
    beside = [library.with_name(stem + suffix) for suffix in SOURCES]
    named: set[Path] = set()
    try:
        with library.open("rb") as file:
            data = file.read(MOST_READ)
        for found in re.findall(rb"[\w./+-]{3,255}\.(?:cu\.cc|cc|cpp|cxx|cu)(?=\0)", data)[:200]:
            named.add(library.parent / found.decode())
    except OSError:
        pass
    return [path for path in dict.fromkeys((*beside, *sorted(named))) if path.is_file()][:3]
