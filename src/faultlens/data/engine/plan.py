"""Which files there are to check, in which format, and into which pieces they are cut."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from faultlens.data import formats, source
from faultlens.data.source import is_remote, remote, remote_identity
from faultlens.errors import FaultlensError
from faultlens.file_names import to_name, to_text
from faultlens.scanned import Flaw, Identity, Piece, Place

PIECE = 256 << 20


class Found(NamedTuple):
    """One file."""

    path: str
    pieces: tuple[Piece, ...] = ()  # none: it is in no format that is known
    flaw: Flaw | None = None  # it cannot be read, or is not what its name says
    unknown: bool = False


def files(roots: Sequence[str], piece_size: int = PIECE) -> Iterator[Found]:
    """In order, each once. Raises FaultlensError for a root that is not there. Roots are names, paths texts."""
    seen: set[str] = set()
    for root in roots:
        for path in map(to_text, _paths(root)):
            if path not in seen:
                seen.add(path)
                yield _planned(path, piece_size)


def check_roots(roots: Sequence[str]) -> None:
    """A wrong path is told at once, and not after an hour."""
    for root in roots:
        if not is_remote(root) and not os.path.lexists(root) and not glob.glob(root, recursive=True):
            raise FaultlensError(f"There is no {root}.", "Name files or folders of training data.")


def _paths(root: str) -> Iterator[str]:
    if is_remote(root):
        yield from _remote_paths(root)
        return
    for path in [root] if os.path.lexists(root) else sorted(glob.glob(root, recursive=True)):
        if os.path.isdir(path):
            yield from _below(path)
        else:
            yield path


def _below(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield os.path.join(place, name)


def _raise(error: OSError) -> None:
    raise FaultlensError(
        f"Cannot look into {error.filename}: {error.strerror}.", "Run it as a user who may, or name other folders."
    ) from error


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
        return Found(path, flaw=_flaw(path, "unreadable", error.strerror or str(error)))
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
