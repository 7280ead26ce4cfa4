"""What can a disk hold when the power fails in the middle of a save? Every answer that the rules of POSIX leave open.

Certain is what was synced: the content of a file by fsync of the file, a name by fsync of the folder it stands in.
Anything else may have reached the disk or not: names all, none, those up to some instant, or some of them; content
all, none, as zeros of the right length, or in parts. A rename is one step: the old name is never gone without the new
one being there (both may be there). Which calls were made is known from a recording (injector.c)."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from injector import Flag, Kind, Operation

BLOCK = 4096
ROOT = 0


@dataclass(frozen=True)
class Verdict:
    """What was found in one state of the disk."""

    state: str
    found: int | None
    allowed: tuple[int | None, ...]
    whole: int  # saves that can be loaded, older ones among them
    lost: bool
    why: str


@dataclass(frozen=True)
class Node:
    """A file, a folder or a symbolic link, whatever its names."""

    number: int
    kind: str  # "file", "folder" or "link"
    text: str = ""  # where a link points


@dataclass(frozen=True)
class Edit:
    """One entry of one folder gets another node, or none."""

    folder: int
    name: str
    node: Node | None


@dataclass(frozen=True)
class Change:
    """What one call did: to names, or to the content of a file."""

    call: int  # its number, from 1
    edits: tuple[Edit, ...] = ()
    file: int = -1
    offset: int = 0
    data: bytes = b""
    size: int | None = None  # truncated to


@dataclass
class _File:
    start: bytes = b""  # what the disk has for certain
    time: int | None = None
    changes: list[Change] = field(default_factory=list)
    synced: list[int] = field(default_factory=list)  # numbers of calls


class Disk:
    """A recorded save, as changes to nodes. Inode numbers are used again by file systems, those of nodes are not."""

    def __init__(
        self,
        operations: Sequence[Operation],
        folder: Path,
        before: Path,
        inodes: dict[str, int],
        times: dict[int, int],
    ) -> None:
        self.operations = operations
        self.files: dict[int, _File] = {}
        self.names: list[Change] = []
        self.synced_folders: dict[int, list[int]] = {}
        self.start: dict[int, dict[str, Node]] = {ROOT: {}}
        self._root = str(folder)
        self._numbers = iter(range(1, 1 << 30))
        self._by_inode: dict[int, Node] = {}
        self._times = times
        self._read(before, inodes)
        self._now = {number: dict(entries) for number, entries in self.start.items()}
        for call, operation in enumerate(operations, 1):
            if operation.result >= 0:
                self._apply(call, operation)
        for inode, node in self._by_inode.items():  # those that were there at the end
            if node.kind == "file" and inode in times:
                self.files[node.number].time = times[inode]

    def _read(self, before: Path, inodes: dict[str, int]) -> None:
        folders = {before: ROOT}
        for path in sorted(before.rglob("*")):
            inode = inodes[str(path.relative_to(before))]
            node = self._by_inode.get(inode)
            if node is None:
                kind = "link" if path.is_symlink() else "folder" if path.is_dir() else "file"
                node = self._new(inode, kind, os.readlink(path) if kind == "link" else "")
                if kind == "file":
                    self.files[node.number] = _File(path.read_bytes(), path.stat().st_mtime_ns)
                elif kind == "folder":
                    folders[path] = node.number
                    self.start[node.number] = {}
            self.start[folders[path.parent]][path.name] = node

    def _new(self, inode: int, kind: str, text: str = "") -> Node:
        node = Node(next(self._numbers), kind, text)
        self._by_inode[inode] = node
        return node

    # ------------------------------------------------------------------------------- from calls to changes

    def _apply(self, call: int, operation: Operation) -> None:
        kind = operation.kind
        if kind == Kind.CREATE:
            self._create(call, operation)
        elif kind in (Kind.WRITE, Kind.COPY):
            self._change(call, operation.inode, offset=operation.offset, data=operation.data)
        elif kind == Kind.TRUNCATE:
            self._change(call, operation.inode, size=operation.length)
        elif kind == Kind.ALLOCATE:
            there = len(self.content(self._by_inode[operation.inode].number, call))
            self._change(call, operation.inode, size=max(there, operation.offset + operation.length))
        elif kind == Kind.SYNC:
            self._sync(call, operation)
        elif kind == Kind.MKDIR:
            node = self._new(operation.inode, "folder")
            self.start[node.number] = {}
            self._now[node.number] = {}
            self._edit(call, (operation.path, node))
        elif kind == Kind.SYMLINK:
            self._edit(call, (operation.other, self._new(-call, "link", operation.path)))
        elif kind == Kind.LINK:
            self._edit(call, (operation.other, self._by_inode[operation.inode]))
        elif kind == Kind.RENAME:
            node = self._at(operation.path)
            if node != self._at(operation.other):  # two names of one file: nothing happens
                self._edit(call, (operation.other, node), (operation.path, None))
        elif kind == Kind.EXCHANGE:
            one, other = self._at(operation.path), self._at(operation.other)
            without_replacing = operation.length == 1
            self._edit(call, (operation.other, one), (operation.path, None if without_replacing else other))
        elif kind in (Kind.UNLINK, Kind.RMDIR):
            self._edit(call, (operation.path, None))

    def _create(self, call: int, operation: Operation) -> None:
        if Flag.CREATED in operation.flags:
            node = self._new(operation.inode, "file")
            self.files[node.number] = _File()
            if Flag.UNNAMED not in operation.flags:
                self._edit(call, (operation.path, node))
        elif Flag.TRUNCATED in operation.flags:
            self._change(call, operation.inode, size=0)

    def _change(self, call: int, inode: int, offset: int = 0, data: bytes = b"", size: int | None = None) -> None:
        number = self._by_inode[inode].number
        self.files[number].changes.append(Change(call, file=number, offset=offset, data=data, size=size))

    def _sync(self, call: int, operation: Operation) -> None:
        if Flag.WHOLE_SYSTEM in operation.flags:
            files, folders = list(self.files), list(self._now)
        else:
            root = operation.path == self._root
            node = Node(ROOT, "folder") if root else self._by_inode[operation.inode]
            files, folders = ([node.number], []) if node.kind == "file" else ([], [node.number])
        for number in files:
            self.files[number].synced.append(call)
        for number in folders:
            self.synced_folders.setdefault(number, []).append(call)

    def _edit(self, call: int, *places: tuple[str, Node | None]) -> None:
        edits = []
        for path, node in places:
            folder, name = self._place(path)
            edits.append(Edit(folder, name, node))
        self.names.append(Change(call, tuple(edits)))
        for edit in edits:
            _put(self._now, edit)

    def _place(self, path: str) -> tuple[int, str]:
        """Its folder and its name, as things stood at the time of the call."""
        *above, name = path.removeprefix(self._root).strip("/").split("/")
        number = ROOT
        for each in above:
            number = self._now[number][each].number
        return number, name

    def _at(self, path: str) -> Node | None:
        folder, name = self._place(path)
        return self._now[folder].get(name)

    def after_all(self) -> State:
        """Had everything been written."""
        return _state(self, len(self.operations), "all", _all_names, _written)

    # ------------------------------------------------------------------------------------ what is certain

    def content(self, number: int, until: int) -> bytes:
        """After so many calls, had everything been written."""
        file = self.files[number]
        return _written(file.start, [change for change in file.changes if change.call <= until])

    def certain_content(self, number: int, until: int) -> tuple[bytes, list[Change]]:
        """What is on the disk, and the changes that may be."""
        file = self.files[number]
        synced = max((call for call in file.synced if call <= until), default=0)
        open_changes = [change for change in file.changes if synced < change.call <= until]
        return self.content(number, synced), open_changes

    def is_certain(self, edit: Edit, call: int, until: int) -> bool:
        return any(call < synced <= until for synced in self.synced_folders.get(edit.folder, ()))


# ------------------------------------------------------------------------------------------------- states

Names = Callable[[Disk, int], Iterable[Edit]]
Content = Callable[[bytes, list[Change]], bytes]


@dataclass(frozen=True)
class State:
    """One thing that the disk may hold."""

    words: str
    calls: int  # that had been made
    tree: dict[int, dict[str, Node]]
    contents: dict[int, bytes]
    times: dict[int, int | None]

    def build(self, folder: Path) -> None:
        places: dict[int, Path] = {}
        self._build(folder, ROOT, places)

    def _build(self, folder: Path, number: int, places: dict[int, Path]) -> None:
        folder.mkdir(exist_ok=True)
        for name, node in self.tree[number].items():
            path = folder / name
            if node.kind == "folder":
                self._build(path, node.number, places)
            elif node.kind == "link":
                path.symlink_to(node.text)
            elif node.number in places:
                os.link(places[node.number], path)
            else:
                path.write_bytes(self.contents[node.number])
                places[node.number] = path
                time = self.times[node.number]
                if time is not None:
                    os.utime(path, ns=(time, time))

    def key(self) -> str:
        """The same for states that look the same."""
        found = hashlib.sha256()
        for path, node in _walk(self.tree, ROOT, ""):
            content = self.contents.get(node.number, b"")
            found.update(f"{path} {node.kind} {node.text} {len(content)} ".encode())
            found.update(content)
        return found.hexdigest()


def states(disk: Disk, seed: int, samples: int, writes: int = 1) -> Iterator[State]:
    """After every call, what may be there. What can be there after a later call too is told for that one alone: by then
    more may have been promised. Of writes to a file in a row, only every so many count."""
    seen: set[str] = set()
    for until in reversed(range(len(disk.operations) + 1)):
        if until % writes and _is_between_writes(disk.operations, until):
            continue
        chance = random.Random(f"{seed} {until}")
        for words, names, content in _choices(chance, samples):
            state = _state(disk, until, words, names, content)
            if state.key() not in seen:
                seen.add(state.key())
                yield state


def _is_between_writes(operations: Sequence[Operation], until: int) -> bool:
    around = operations[max(until - 1, 0) : until + 1]
    return all(each.kind == Kind.WRITE for each in around) and len({each.inode for each in around}) == 1


def _choices(chance: random.Random, samples: int) -> Iterator[tuple[str, Names, Content]]:
    yield "no names, no content", _certain_names, _nothing
    yield "no names, all content", _certain_names, _written
    yield "all names, no content", _all_names, _nothing
    yield "all names, all content", _all_names, _written
    yield "all names, zeros", _all_names, _zeros
    for number in range(samples):
        content = _some(chance)
        yield f"all names, some content ({number})", _all_names, content
        yield f"names up to an instant, some content ({number})", _names_so_far(chance), content
        yield f"some names, some content ({number})", _some_names(chance), content
        yield f"some names, all content ({number})", _some_names(chance), _written


def _state(disk: Disk, until: int, words: str, names: Names, content: Content) -> State:
    tree = {number: dict(entries) for number, entries in disk.start.items()}
    for edit in names(disk, until):
        _put(tree, edit)
    nodes = {node.number for _, node in _walk(tree, ROOT, "") if node.kind == "file"}
    contents = {number: content(*disk.certain_content(number, until)) for number in sorted(nodes)}
    times = {number: disk.files[number].time for number in nodes}
    last = str(disk.operations[until - 1]) if until else "the beginning"
    what = f"cut after call {until} of {len(disk.operations)} ({last}): {words}"
    return State(what, until, tree, contents, times)


def _put(tree: dict[int, dict[str, Node]], edit: Edit) -> None:
    if edit.node is None:
        tree[edit.folder].pop(edit.name, None)
    else:
        tree[edit.folder][edit.name] = edit.node


def _walk(tree: dict[int, dict[str, Node]], number: int, above: str) -> Iterator[tuple[str, Node]]:
    for name, node in sorted(tree[number].items()):
        yield f"{above}/{name}", node
        if node.kind == "folder":
            yield from _walk(tree, node.number, f"{above}/{name}")


# names


def _chosen(disk: Disk, until: int, chosen: Callable[[Change, Edit], bool]) -> Iterator[Edit]:
    """In their order; what is certain always, and no old name goes without the new one."""
    for change in disk.names:
        if change.call > until:
            return
        there = {edit: disk.is_certain(edit, change.call, until) or chosen(change, edit) for edit in change.edits}
        exchange = len(change.edits) == 2 and all(edit.node is not None for edit in change.edits)
        if any(there.values()) and (exchange or any(edit.node is None for edit in change.edits if there[edit])):
            there = {edit: there[edit] or exchange or edit.node is not None for edit in change.edits}
        yield from (edit for edit in change.edits if there[edit])


def _certain_names(disk: Disk, until: int) -> Iterator[Edit]:
    return _chosen(disk, until, lambda *_: False)


def _all_names(disk: Disk, until: int) -> Iterator[Edit]:
    return _chosen(disk, until, lambda *_: True)


def _some_names(chance: random.Random) -> Names:
    return lambda disk, until: _chosen(disk, until, lambda *_: chance.random() < 0.5)


def _names_so_far(chance: random.Random) -> Names:
    """A journal: what comes later is there only if all that came before is."""

    def names(disk: Disk, until: int) -> Iterator[Edit]:
        calls = [change.call for change in disk.names if change.call <= until]
        certain = [
            change.call
            for change in disk.names
            if change.call <= until and any(disk.is_certain(edit, change.call, until) for edit in change.edits)
        ]
        least = max(certain, default=0)
        last = chance.choice([least, *(call for call in calls if call > least)])
        return _chosen(disk, until, lambda change, _: change.call <= last)

    return names


# content


def _nothing(certain: bytes, _: list[Change]) -> bytes:
    return certain


def _written(certain: bytes, changes: list[Change]) -> bytes:
    content = bytearray(certain)
    for change in changes:
        if change.size is not None:
            _resize(content, change.size)
        else:
            _write(content, change.offset, change.data)
    return bytes(content)


def _zeros(certain: bytes, changes: list[Change]) -> bytes:
    """The size has reached the disk, what was written has not."""
    content = bytearray(certain)
    for change in changes:
        end = change.offset + len(change.data)
        _resize(content, max(len(content), end) if change.size is None else change.size)
    return bytes(content)


def _some(chance: random.Random) -> Content:
    """Blocks that were written and blocks that were not; in the end it may be shorter, too."""

    def content(certain: bytes, changes: list[Change]) -> bytes:
        there = bytearray(certain)
        for change in changes:
            if change.size is not None:
                if chance.random() < 0.5:
                    _resize(there, change.size)
                continue
            for start in range(0, len(change.data), BLOCK):
                if chance.random() < 0.5:
                    _write(there, change.offset + start, change.data[start : start + BLOCK])
        if changes and chance.random() < 0.25:
            _resize(there, chance.randint(0, len(there)))
        return bytes(there)

    return content


def _resize(content: bytearray, size: int) -> None:
    del content[size:]
    content.extend(bytes(size - len(content)))


def _write(content: bytearray, offset: int, data: bytes) -> None:
    if len(content) < offset + len(data):
        _resize(content, offset + len(data))
    content[offset : offset + len(data)] = data
