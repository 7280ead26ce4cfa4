"""Files that are shorter than what an index beside them says: shard lengths of TFDS, index files of DALI."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from faultlens.data.aggregate.merge import File
from faultlens.data.source import is_remote
from faultlens.model_files.regular import opened
from faultlens.records.scan import Flaw, Place
from faultlens.text.file_names import to_name
from faultlens.text.safe import one_line

MAX_INFORMATION = 8 << 20  # bytes: parsed, they take forty times as much
MAX_LINE = 200
INFORMATION = "dataset_info.json"
_SHARD = re.compile(r"-(?P<split>[A-Za-z0-9_]+)\.(?P<kind>\w+)-(?P<number>\d{5})-of-(?P<count>\d{5})$")


def against_indexes(files: Mapping[str, File]) -> Iterator[Flaw]:
    lengths: dict[str, dict[str, list[int]]] = {}
    for path, file in files.items():
        if is_remote(path) or not file.format.startswith("TFRecord"):
            continue
        folder = os.path.dirname(path)
        if folder not in lengths:
            try:
                lengths[folder] = _shard_lengths(Path(to_name(folder), INFORMATION))
            except ValueError as error:
                lengths[folder] = {}
                yield _no_index(os.path.join(folder, INFORMATION), error)
        yield from _against_shard_lengths(path, file, lengths[folder])
        if file.format == "TFRecord":
            yield from _against_offsets(path, file)


def _shard_lengths(path: Path) -> dict[str, list[int]]:
    """Of each split: how many records each shard has. Raises ValueError where it is no JSON."""
    try:
        information: Any = json.loads(_text(path))
    except (OSError, RecursionError):
        return {}
    try:
        return {str(split["name"]): [int(each) for each in split["shardLengths"]] for split in information["splits"]}
    except (ValueError, KeyError, TypeError):  # others than TFDS call a file so
        return {}


def _no_index(path: str, error: ValueError) -> Flaw:
    told = one_line(f"files were not compared with it: {error}", 300)
    if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
        return Flaw(kind="structure", severity="warning", place=Place(path=path), reason=told)
    return Flaw(kind="unsupported", severity="note", place=Place(path=path), reason=told)


def _against_shard_lengths(path: str, file: File, lengths: dict[str, list[int]]) -> Iterator[Flaw]:
    shard = _SHARD.search(path)
    if shard is None or shard["split"] not in lengths:
        return
    known = lengths[shard["split"]]
    number = int(shard["number"])
    if int(shard["count"]) == len(known) and number < len(known) and known[number] != file.records:
        kind = "short" if file.records < known[number] else "differs"
        told = f"it has {file.records:,} records, and {INFORMATION} says {known[number]:,}"
        yield Flaw(kind=kind, severity="error", place=Place(path=path), reason=told)  # type: ignore[arg-type]


def _against_offsets(path: str, file: File) -> Iterator[Flaw]:
    """A DALI index has one line for each record: offset and size."""
    for index in (f"{path}.idx", f"{os.path.splitext(path)[0]}.idx"):
        try:
            lines, end = _lines_and_end(Path(to_name(index)))
        except (OSError, ValueError):
            continue
        if not lines:
            continue
        if end > file.identity.size:
            told = f"it has {file.identity.size:,} bytes, and its index {os.path.basename(index)} goes up to {end:,}"
            yield Flaw(kind="short", severity="error", place=Place(path=path), reason=told)
        elif lines != file.records:
            told = f"it has {file.records:,} records, and its index {os.path.basename(index)} has {lines:,}"
            yield Flaw(kind="differs", severity="warning", place=Place(path=path), reason=told)
        return


def _lines_and_end(path: Path) -> tuple[int, int]:
    """How many records it tells of, and where the last one ends. ValueError where it is something else."""
    lines = end = 0
    with opened(path) as file:
        while line := file.readline(MAX_LINE):
            if line.strip():
                offset, size = map(int, line.split())
                lines, end = lines + 1, max(end, offset + size)
    return lines, end


def _text(path: Path) -> str:
    with opened(path) as file:
        data = file.read(MAX_INFORMATION + 1)
    if len(data) > MAX_INFORMATION:
        raise ValueError("it is too large for an index")
    return data.decode()
