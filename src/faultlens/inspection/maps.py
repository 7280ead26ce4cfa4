"""What is mapped into a process: which file an address belongs to, and whether the file is still the same."""

from __future__ import annotations

import os
import re
import stat
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from faultlens.inspection.memory import Memory, read_file
from faultlens.records.crash import Address, FileState, Library, Mapping
from faultlens.system import elf

PAGE = 4096
DELETED = " (deleted)"

# 7f0c1e000000-7f0c1e021000 r-xp 00026000 fe:00 1835421   /usr/lib/x86_64-linux-gnu/libc.so.6
_LINE = re.compile(
    r"^(?P<start>[0-9a-f]{1,16})-(?P<end>[0-9a-f]{1,16}) (?P<permissions>[-rwxsp]{4})"
    r" (?P<offset>[0-9a-f]{1,16}) [0-9a-f]+:[0-9a-f]+ \d+ *(?P<path>.*)$"
)


def parse_maps(text: str) -> tuple[Mapping, ...]:
    """The lines of /proc/PID/maps. Paths come without " (deleted)"; see `deleted_paths`."""
    return tuple(
        Mapping(
            start=Address(int(match["start"], 16)),
            end=Address(int(match["end"], 16)),
            permissions=match["permissions"],
            offset=int(match["offset"], 16),
            path=_clean(match["path"]).removesuffix(DELETED) or None,
        )
        for match in _lines(text)
    )


def deleted_paths(text: str) -> frozenset[str]:
    """Mapped files whose name was removed or given to another file since."""
    paths = (_clean(match["path"]) for match in _lines(text))
    return frozenset(path.removesuffix(DELETED) for path in paths if path.endswith(DELETED))


def find(mappings: Sequence[Mapping], address: int) -> Mapping | None:
    """The mapping that holds `address`; `mappings` are in order of address, as the kernel lists them."""
    index = bisect_right(mappings, address, key=lambda mapping: mapping.start) - 1
    if index >= 0 and address < mappings[index].end:
        return mappings[index]
    return None


class Place(NamedTuple):
    path: str
    base: int  # where the file's image begins
    offset: int  # address - base, the number that addr2line and nm speak of


def locate(mappings: Sequence[Mapping], address: int) -> Place | None:
    """The file an address lies in, and how far behind the beginning of its image."""
    index = bisect_right(mappings, address, key=lambda mapping: mapping.start) - 1
    if index < 0 or address >= mappings[index].end:
        return None
    path = mappings[index].path
    if path is None or not path.startswith("/"):
        return None
    base = mappings[index].start
    for mapping in reversed(mappings[max(0, index - 64) : index + 1]):
        if mapping.path == path:
            base = mapping.start
            if mapping.offset == 0:
                break
    return Place(path, base, address - base)


def libraries(mappings: Sequence[Mapping], memory: Memory | None = None) -> tuple[Library, ...]:
    """The ELF files whose code is mapped; build ids as in memory where it can be read, else as on disk."""
    found = []
    for path, parts in _by_path(mappings).items():
        if any("x" in part.permissions for part in parts):
            image = _image_in_memory(memory, parts) or _image_on_disk(path)
            if image is not None:
                found.append(Library(path=path, start=parts[0].start, build_id=image.build_id))
    return tuple(found)


def file_states(
    mappings: Sequence[Mapping], deleted: Collection[str] = (), memory: Memory | None = None, root: str = ""
) -> tuple[FileState, ...]:
    """Mapped data files, and the libraries that are no longer on disk what they are in memory.

    `root`: where a process that has mounts of its own sees its files, /proc/PID/root."""
    states = []
    for path, parts in _by_path(mappings).items():
        image = _image_in_memory(memory, parts) or _image_on_disk(root + path)
        state = _file_state(path, parts, path in deleted, image, root)
        if state is not None and (image is None or state.state != "same"):
            states.append(state)
    return tuple(states)


def is_another(file: Path, path: str, mappings: Sequence[Mapping], memory: Memory) -> bool:
    """Whether the file is known to be another program or library than the one that was mapped from `path`."""
    parts = _by_path(mappings).get(path)
    then, now = _image_in_memory(memory, parts) if parts else None, _image_on_disk(str(file))
    return bool(then and now and then.build_id and now.build_id and then.build_id != now.build_id)


class _Image(NamedTuple):
    build_id: str | None


def _file_state(
    path: str, parts: Sequence[Mapping], deleted: bool, image: _Image | None, root: str
) -> FileState | None:
    # The loader leaves inaccessible gaps between the segments of a library, which reach beyond its file.
    usable = [part for part in parts if not part.permissions.startswith("---")]
    mapped_end = max((part.offset + part.end - part.start for part in usable), default=0)
    try:
        status = Path(root + path).stat()
    except (OSError, ValueError):
        return FileState(path=path, mapped_end=mapped_end, state="deleted" if deleted else "missing")
    if not stat.S_ISREG(status.st_mode):
        return None
    on_disk = _image_on_disk(root + path)
    replaced = deleted or (image is not None and image != on_disk)
    shorter = -(-status.st_size // PAGE) * PAGE < mapped_end
    return FileState(
        path=path,
        size=status.st_size,
        modified=status.st_mtime,
        mapped_end=mapped_end,
        state="replaced" if replaced else "shorter than mapped" if shorter else "same",
        disk_free=_disk_free(root + path),
    )


def _image_in_memory(memory: Memory | None, parts: Sequence[Mapping]) -> _Image | None:
    first = parts[0]
    if memory is None or first.offset != 0:
        return None
    # In memory a note stands at its virtual address; a library's first segment begins at 0.
    return _read_image(lambda offset, size: memory.read(first.start + offset, size), in_memory=True)


def _image_on_disk(path: str) -> _Image | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError):
        return None
    try:
        return _read_image(lambda offset, size: read_file(file, offset, size), in_memory=False)
    finally:
        os.close(file)


def _read_image(read: elf.Read, in_memory: bool) -> _Image | None:
    try:
        headers = elf.program_headers(read, elf.read_header(read))
    except elf.ElfError:
        return None
    if in_memory:
        base = min((header.vaddr for header in headers if header.type == elf.PT_LOAD), default=0)
        headers = [header._replace(offset=header.vaddr - base) for header in headers]
    return _Image(elf.build_id(read, headers))


def _by_path(mappings: Iterable[Mapping]) -> dict[str, list[Mapping]]:
    files: dict[str, list[Mapping]] = {}
    for mapping in mappings:
        if mapping.path and mapping.path.startswith("/") and not _is_nameless(mapping.path):
            files.setdefault(mapping.path, []).append(mapping)
    return files


def _is_nameless(path: str) -> bool:
    """Memory that the kernel gives a name that is in no file system."""
    return path.startswith(("/memfd:", "/SYSV", "/[", "/anon_hugepage", "/dev/zero"))


def _disk_free(path: str) -> int | None:
    try:
        status = os.statvfs(path)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def _lines(text: str) -> Iterator[re.Match[str]]:
    return (match for line in text.split("\n") if (match := _LINE.match(line)))


def _clean(path: str) -> str:
    return path.replace("\\012", "\n")  # the only character the kernel escapes here
