"""Where sources may be read that a core names. Anybody can make a core, and have it name any file (`co_filename`)."""

from __future__ import annotations

import ast
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

SUFFIXES = (".py", ".pyw")
OTHERS_MAY_READ = stat.S_IROTH


class SourceFolders(NamedTuple):
    """Folders that the person names who asks, never the core; and whose core it is.

    A file is read if it lies below one of them (links followed, hidden folders left out), is called .py, parses as
    Python, and could be read by the owner of the core as well: it belongs to him, or everybody may read it."""

    roots: tuple[Path, ...]
    owner: int

    @classmethod
    def of_core(cls, owner: int | None = None, named: Iterable[Path] = ()) -> SourceFolders:
        """The current folder, and those that were named. The root of the file system is no program's folder."""
        roots = [folder.resolve() for folder in (Path(), *named)]
        return cls(tuple(root for root in roots if root != Path("/")), os.geteuid() if owner is None else owner)

    def admits(self, path: Path) -> bool:
        return path.suffix in SUFFIXES and any(
            path.is_relative_to(root) and not any(part.startswith(".") for part in path.relative_to(root).parts)
            for root in self.roots
        )

    def read(self, path: Path, limit: int) -> bytes | None:
        """The bytes of an admitted file. It is judged as it was opened: names may be changed under our hands."""
        try:
            file = os.open(path.resolve(strict=True), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except (OSError, RuntimeError, ValueError):
            return None
        with os.fdopen(file, "rb") as opened:
            state = os.fstat(file)
            readable = state.st_uid == self.owner or state.st_mode & OTHERS_MAY_READ
            if not (stat.S_ISREG(state.st_mode) and state.st_size <= limit and readable):
                return None
            if not self.admits(Path(os.readlink(f"/proc/self/fd/{file}"))):
                return None
            data = opened.read(limit)
        try:
            ast.parse(data)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return data
