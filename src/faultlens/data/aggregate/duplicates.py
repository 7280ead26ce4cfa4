"""Files that are in a data set twice: same size, same beginning and end, and then the same in every byte."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby

from faultlens.data import source
from faultlens.data.aggregate.merge import File
from faultlens.data.source import is_remote
from faultlens.records.scan import Flaw, Place

EDGE = 1 << 16
BLOCK = 1 << 20


def duplicates(files: Mapping[str, File]) -> Iterator[Flaw]:
    """Remote files are not read a second time: they count as equal if their store says so."""
    by_size: dict[int, list[str]] = {}
    links: set[tuple[int, int]] = set()  # another name of a file is no copy
    for path, file in sorted(files.items()):
        link = file.identity.size, file.identity.inode
        if file.identity.size and link not in links:
            by_size.setdefault(file.identity.size, []).append(path)
        if file.identity.inode:
            links.add(link)
    for size, paths in sorted(by_size.items()):
        if len(paths) > 1:
            edges = partial(_edges, size=size, files=files)
            for same in _same(_same([paths], edges), _digest):
                yield from (_flaw(path, same[0]) for path in same[1:])


def _same(groups: Iterable[list[str]], key: Callable[[str], bytes]) -> Iterator[list[str]]:
    """Those of each group that have the same key; without one, a file is like no other."""
    for paths in groups:
        keyed = sorted((each, path) for path in paths if (each := key(path)))
        for _, found in groupby(keyed, key=lambda pair: pair[0]):
            together = [path for _, path in found]
            if len(together) > 1:
                yield together


def _edges(path: str, size: int, files: Mapping[str, File]) -> bytes:
    if is_remote(path):
        return files[path].identity.tag.encode()
    return _of(path, ((0, EDGE), (max(size - EDGE, 0), EDGE)))


def _digest(path: str) -> bytes:
    if is_remote(path):
        return b"its tag has been compared"
    digest = hashlib.blake2b(digest_size=16)
    try:
        with source.opened(path) as opened:
            at = 0
            while part := opened.read(at, BLOCK):
                digest.update(part)
                at += len(part)
    except OSError:
        return b""
    return digest.digest()


def _of(path: str, parts: tuple[tuple[int, int], ...]) -> bytes:
    try:
        with source.opened(path) as opened:
            return b"".join(opened.read(offset, size) for offset, size in parts)
    except OSError:
        return b""


def _flaw(path: str, first: str) -> Flaw:
    return Flaw(kind="duplicate", severity="warning", place=Place(path=path), reason=f"it is the same file as {first}")
