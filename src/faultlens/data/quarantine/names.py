"""Under which name below the folder does a clean copy go? Never outside of it, and never over somebody's file."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from faultlens.data.findings import normal
from faultlens.data.quarantine.clean_copy import NoCopyError
from faultlens.file_names import to_name

LIST = "quarantine.json"
UNFINISHED = ".unfinished"


class Names:
    def __init__(self, folder: Path, roots: tuple[str, ...], ours: set[str]) -> None:
        """`ours`: copies of an earlier run, which may be replaced."""
        self._folder = folder.resolve()
        self._roots = [normal(root).rstrip("/") for root in roots]
        self._ours = ours
        self._taken = {LIST, UNFINISHED}

    def name_for(self, path: str) -> str:
        """As the file lies below what was scanned; with a number where two would have the same name."""
        wanted = PurePosixPath(*(part for part in self._relative(path).split("/") if part not in ("", ".", "..")))
        name, number = str(wanted), 1
        while name in self._taken:
            number += 1
            name = str(wanted.with_name(f"{wanted.stem}.{number}{wanted.suffix}"))
        target = self._folder / to_name(name)
        if not target.parent.resolve().is_relative_to(self._folder):
            raise NoCopyError(f"Its copy would lie outside of {self._folder}: there is none.")
        if os.path.lexists(target) and name not in self._ours:
            raise NoCopyError(f"There is another file at {target} already: there is no copy.")
        self._taken.add(name)
        return name

    def _relative(self, path: str) -> str:
        path = normal(path)
        for root in sorted(self._roots, key=len, reverse=True):
            if path.startswith(f"{root}/"):
                return path[len(root) + 1 :]
        return path.rpartition("/")[2]
