"""Under which name below the folder does a clean copy go? Never outside of it, and never over somebody's file."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from faultlens.data.findings import normal
from faultlens.data.quarantine.clean_copy import NoCopyError
from faultlens.data.source import is_remote
from faultlens.errors import FaultlensError
from faultlens.text.file_names import to_name, to_text

LIST = "quarantine.json"
UNFINISHED = ".unfinished"


def check_apart(folder: Path, roots: Sequence[str]) -> None:
    """Copies among the originals would be scanned, and trained on, as data of their own."""
    place = folder.resolve()
    for root in roots:
        if is_remote(root):
            continue
        for path in [root] if os.path.lexists(root) else glob.glob(root, recursive=True):
            scanned = Path(path).resolve()
            if place.is_relative_to(scanned) if scanned.is_dir() else place == scanned.parent:
                raise FaultlensError(
                    f"Clean copies in {to_text(str(folder))} would lie among the data that are scanned.",
                    "Give --quarantine a folder elsewhere.",
                )


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
