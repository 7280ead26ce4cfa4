"""Which files there are to check, in which format, and into which pieces they are cut."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from faultlens.data import formats, source
from faultlens.data.source import is_remote, remote, remote_identity
from faultlens.errors import FaultlensError
from faultlens.records.scan import Flaw, Identity, Piece, Place
from faultlens.text.file_names import to_name, to_text

PIECE = 256 << 20


class Found(NamedTuple):
    """One file, or a folder that cannot be read."""

    path: str
    pieces: tuple[Piece, ...] = ()  # none: it is in no format that is known
    flaw: Flaw | None = None  # it cannot be read, or is not what its name says
    unknown: bool = False
    hidden: bool = False  # its name begins with a dot


def files(roots: Sequence[str], piece_size: int = PIECE) -> Iterator[Found]:
    """In order, each once. Raises FaultlensError for a root that is not there. Roots are names, paths texts."""
    seen: set[str] = set()
    for root in roots:
        for found in _entries(root):
            if found.path not in seen:
                seen.add(found.path)
                yield found if found.flaw or found.hidden else _planned(found.path, piece_size)


def check_roots(roots: Sequence[str]) -> None:
    """A wrong path is told at once, and not after an hour."""
    for root in roots:
        if not is_remote(root) and not os.path.lexists(root) and not glob.glob(root, recursive=True):
            name = root or "path with an empty name"
            raise FaultlensError(f"There is no {name}.", "Name files or folders of training data.")


def _entries(root: str) -> Iterator[Found]:
    if is_remote(root):
        yield from (Found(to_text(path)) for path in _remote_paths(root))
        return
    for path in [root] if os.path.lexists(root) else sorted(glob.glob(root, recursive=True)):
        if os.path.isdir(path):
            yield from _below(path)
        else:
            yield Found(to_text(path))


def _below(folder: str) -> Iterator[Found]:
    """Links to folders are followed, as a training does, but not back to one that holds this one; each folder is looked
    into once, however it is reached."""
    unreadable: list[OSError] = []
    seen: set[tuple[int, int]] = set()
    for place in (folder, *map(str, Path(folder).resolve().parents)):
        _is_new(place, seen)
    for place, folders, names in os.walk(folder, onerror=unreadable.append, followlinks=True):
        folders[:] = sorted(folders)
        for name in [*folders, *sorted(names)]:
            path = os.path.join(place, name)
            if name.startswith("."):
                yield Found(to_text(path), hidden=True)
            elif name not in folders:
                yield Found(to_text(path))
        folders[:] = [name for name in folders if not name.startswith(".") and _is_new(os.path.join(place, name), seen)]
    for error in unreadable:
        path = to_text(str(error.filename))
        yield Found(path, flaw=_flaw(path, "unreadable", f"the folder cannot be looked into: {error.strerror}"))


def _is_new(folder: str, seen: set[tuple[int, int]]) -> bool:
    try:
        state = os.stat(folder)
    except OSError:
        return True  # whoever looks into it is told
    known = (state.st_dev, state.st_ino) in seen
    seen.add((state.st_dev, state.st_ino))
    return not known


def _remote_paths(root: str) -> Iterator[str]:
    system, name = remote(to_text(root))
    try:
        if any(each in name for each in "*?["):
            names = system.glob(name)
        elif system.isdir(name):
            names = system.find(name)
        else:
            names = [name]
    except (OSError, ValueError) as error:
        raise FaultlensError(f"{root} cannot be listed: {error}.", "Look at the address and at your rights.") from error
    for each in sorted(names):
        yield system.unstrip_protocol(each)


def _planned(path: str, piece_size: int) -> Found:
    try:
        if not is_remote(path) and not stat.S_ISREG(os.stat(to_name(path)).st_mode):
            return Found(path, unknown=True)
        with source.opened(path) as opened:
            identity = _identity(path) if is_remote(path) else opened.identity()
            known = formats.format_of(path, opened.read(0, min(formats.HEAD, identity.size)))
            if known is None:
                return Found(path, unknown=True)
            cuts = known.format.cuts(opened, identity.size, piece_size) if identity.size > piece_size else []
    except OSError as error:
        gone = isinstance(error, FileNotFoundError) and os.path.islink(to_name(path))
        reason = "it is a link that leads nowhere" if gone else error.strerror or str(error)
        return Found(path, flaw=_flaw(path, "unreadable", reason))
    flaw = None
    if known.misnamed:
        flaw = _flaw(path, "magic", f"its name says {known.misnamed}, and its content {known.format.name}")
    edges = [0, *cuts, identity.size]
    pieces = tuple(
        Piece(
            path=path,
            format=known.format.name,
            start=start,
            end=end,
            identity=identity,
            last=end == identity.size,
        )
        for start, end in pairwise(edges)
    )
    return Found(path, pieces, flaw)


def _identity(path: str) -> Identity:
    system, name = remote(path)
    return remote_identity(system.info(name))


def _flaw(path: str, kind: str, reason: str) -> Flaw:
    return Flaw(kind=kind, severity="error", place=Place(path=path), reason=reason)  # type: ignore[arg-type]
