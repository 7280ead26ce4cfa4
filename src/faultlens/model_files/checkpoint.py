"""TensorFlow checkpoints: an index of variables, and data files that they lie in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from faultlens.model_files import sstable
from faultlens.model_files.crc32c import crc32c, masked
from faultlens.model_files.protobuf import WireError, fields, text, varint
from faultlens.model_files.record import Damage, Saved
from faultlens.model_files.regular import opened, size_of, whole

DT_STRING, DT_RESOURCE, DT_VARIANT = 7, 20, 21
MAX_STATE = 1 << 20  # of the small file that names the latest checkpoint
CHUNK = 1 << 20
MAX_STRINGS = 16 << 20  # bytes of texts in one variable
QUICK = 2 << 20  # bytes: up to here checksums are always compared
_LATEST = re.compile(r'^\s*model_checkpoint_path:\s*"((?:[^"\\]|\\.)*)"', re.MULTILINE)
_LISTED = re.compile(r'^\s*(?:all_)?model_checkpoint_paths?:\s*"((?:[^"\\]|\\.)*)"', re.MULTILINE)
_PART = re.compile(r"\.(?:index|data-\d{5}-of-\d{5})$")


class Entry(NamedTuple):
    """Where a variable lies."""

    name: str
    dtype: int
    shard: int
    offset: int
    size: int
    crc: int | None  # masked
    elements: int


def prefix_of(path: Path) -> Path | None:
    """The common beginning of the file names of a checkpoint that somebody names by a file, a prefix or a folder."""
    if path.is_dir():
        named = latest(path)
        if named is not None:
            return named
        found = sorted(path.glob("*.index"), key=lambda file: file.stat().st_mtime)
        return _without_part(found[-1]) if found else None
    if is_part(path):
        return _without_part(path)
    index = path.with_name(path.name + ".index")
    return path if size_of(index) is not None or _shards_of(path) else None


def is_part(path: Path) -> bool:
    """Whether this is the name of one of the files of a checkpoint."""
    return _PART.search(path.name) is not None


def read(path: Path, prefix: Path, deep: bool) -> Saved:
    """`path` is what the user named."""
    index = prefix.with_name(prefix.name + ".index")
    shards = _shards_of(prefix)
    present = [file for file in (index, *shards) if size_of(file) is not None]
    damages: list[Damage] = []
    entries: tuple[Entry, ...] = ()
    count = 0
    if size_of(index) is None:
        what = "is missing, so that the data files cannot be understood" if shards else "is missing"
        damages.append(Damage(index, what))
    else:
        try:
            count, entries = _index(index)
        except (sstable.TableError, WireError) as error:
            damages.append(Damage(index, f"is damaged: {error}"))
    damages += _missing_data(prefix, count, entries)
    sizes = [entry.size for entry in entries]
    total = sum(size_of(file) or 0 for file in present)
    checked = not damages and sum(sizes) <= total and (deep or total <= QUICK)
    if checked:
        damages += _wrong_checksums(prefix, count, entries)
    return Saved(
        path=path,
        kind="checkpoint",
        files=len(present),
        size=total,
        weights=sum(sizes),
        largest=max(sizes, default=0),
        damages=tuple(damages),
        notes=tuple(_leftovers(prefix)),
        checked=checked,
    )


def entries(prefix: Path) -> tuple[Entry, ...]:
    """The variables of a checkpoint that is whole."""
    return contents(prefix)[1]


def contents(prefix: Path) -> tuple[int, tuple[Entry, ...]]:
    """The number of data files, and the variables, of a checkpoint that is whole."""
    return _index(prefix.with_name(prefix.name + ".index"))


def latest(folder: Path) -> Path | None:
    """What the file `checkpoint` names, which is what `latest_checkpoint` returns."""
    match = _LATEST.search(_state(folder))
    return folder / match[1] if match and "\0" not in match[1] else None


def listed(folder: Path) -> set[str]:
    """The names of all checkpoints that the file `checkpoint` knows: they were written to the end."""
    return {Path(name).name for name in _LISTED.findall(_state(folder))}


def without_index(folder: Path) -> set[str]:
    """The prefixes of which data files are there, and no index."""
    try:
        names = {entry.name for entry in folder.iterdir()}
    except OSError:
        return set()
    data = {_PART.sub("", name) for name in names if is_part(Path(name)) and not name.endswith(".index")}
    return {prefix for prefix in data if f"{prefix}.index" not in names}


def _state(folder: Path) -> str:
    try:
        with opened(folder / "checkpoint") as file:
            return file.read(MAX_STATE).decode("utf-8", "replace")
    except OSError:
        return ""


def _without_part(path: Path) -> Path:
    return path.with_name(_PART.sub("", path.name))


def _shards_of(prefix: Path) -> list[Path]:
    try:
        beside = [entry for entry in prefix.parent.iterdir() if entry.name.startswith(prefix.name + ".data-")]
    except OSError:
        return []
    return sorted(file for file in beside if is_part(file) and _without_part(file) == prefix)


def shard_name(prefix: Path, shard: int, count: int) -> Path:
    return prefix.with_name(f"{prefix.name}.data-{shard:05d}-of-{count:05d}")


def _index(path: Path) -> tuple[int, tuple[Entry, ...]]:
    """The number of data files, and the variables."""
    count, found = 1, []
    for key, value in sstable.entries(whole(path)):
        if key:
            found.append(_entry(key, value))
        else:  # the header
            count = next((number for field, number in fields(value) if field == 1 and isinstance(number, int)), 1)
    return count, tuple(found)


def _entry(key: bytes, value: memoryview) -> Entry:
    numbers = {field: number for field, number in fields(value) if isinstance(number, int)}
    count = 1
    for field, shape in fields(value):
        if field == 2 and isinstance(shape, memoryview):
            for dimension in (each for number, each in fields(shape) if number == 2 and isinstance(each, memoryview)):
                count *= next((size for number, size in fields(dimension) if number == 1 and isinstance(size, int)), 0)
    name = text(memoryview(key))
    return Entry(
        name, numbers.get(1, 0), numbers.get(3, 0), numbers.get(4, 0), numbers.get(5, 0), numbers.get(6), count
    )


def _missing_data(prefix: Path, count: int, entries: Iterable[Entry]) -> Iterator[Damage]:
    """One line per data file that is gone or too short."""
    ends: dict[int, Entry] = {}
    for entry in entries:
        last = ends.get(entry.shard)
        if last is None or entry.offset + entry.size > last.offset + last.size:
            ends[entry.shard] = entry
    for shard, last in sorted(ends.items())[:16]:
        file = shard_name(prefix, shard, count)
        size, end = size_of(file), last.offset + last.size
        if size is None:
            yield Damage(file, "is missing")
        elif size < end:
            yield Damage(file, f"ends at byte {size}, the variable {last.name} at {end}")


def _wrong_checksums(prefix: Path, count: int, entries: Iterable[Entry]) -> Iterator[Damage]:
    for entry in sorted(entries, key=lambda entry: (entry.shard, entry.offset)):
        if entry.crc is None or entry.dtype in (DT_RESOURCE, DT_VARIANT):
            continue
        if entry.dtype == DT_STRING and entry.size > MAX_STRINGS:
            continue
        file = shard_name(prefix, entry.shard, count)
        with opened(file) as data:
            data.seek(entry.offset)
            crc = _strings_crc(data, entry) if entry.dtype == DT_STRING else _crc(data, entry.size)
        if crc is None or masked(crc) != entry.crc:
            yield Damage(file, f"the checksum of the variable {entry.name} does not match")


def _crc(data: BinaryIO, size: int) -> int:
    crc = 0
    while size > 0 and (chunk := data.read(min(size, CHUNK))):
        crc, size = crc32c(chunk, crc), size - len(chunk)
    return crc


def _strings_crc(data: BinaryIO, entry: Entry) -> int | None:
    """Lengths as varints, a checksum of them, the texts. The checksum is taken over the lengths in 4 or 8 bytes."""
    content = memoryview(data.read(entry.size))
    position, crc = 0, 0
    try:
        for _ in range(entry.elements):
            length, position = varint(content, position)
            crc = crc32c(length.to_bytes(4 if length < 1 << 32 else 8, "little"), crc)
    except WireError:
        return None
    if bytes(content[position : position + 4]) != masked(crc).to_bytes(4, "little"):
        return None
    return crc32c(content[position:], crc)


def _leftovers(prefix: Path) -> Iterator[str]:
    """TensorFlow writes under temporary names: what is left of them tells of a save that did not end."""
    try:
        names = sorted(entry.name for entry in prefix.parent.iterdir() if re.search(r"_temp|\.tempstate", entry.name))
    except OSError:
        return
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"a save beside it was interrupted: {names[0]} is left{more}"
