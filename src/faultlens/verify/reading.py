"""What do the manifest and the format's own checksums say of one save? Read without TensorFlow."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from faultlens.model_files import checkpoint, reader
from faultlens.model_files.crc32c import crc32c
from faultlens.model_files.generations import Generation
from faultlens.model_files.manifest import IN_WORDS, Manifest, differences
from faultlens.model_files.naming import misnamed
from faultlens.model_files.record import Saved
from faultlens.model_files.regular import opened
from faultlens.records.verification import VerifiedGeneration
from faultlens.text.quantities import count
from faultlens.text.safe import one_line
from faultlens.text.sizes import GIB, in_words

# What TensorFlow calls the types of numbers, and NumPy; bfloat16 is a type of its own.
NUMBERS = {1: "<f4", 2: "<f8", 8: "<c8", 14: "bfloat16", 18: "<c16", 19: "<f2"}
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"  # how TensorFlow ends the names of most variables
MAX_SPANS = 100_000
MAX_DAMAGES = 8
MISSING = "is missing"
NOT_OURS = "it was not written by faultlens.save"
CHUNK = 4 << 20
READ_MEMORY = 3 * GIB  # that a process may take which reads


class Span(NamedTuple):
    """Where the values of a variable lie."""

    name: str
    file: str
    offset: int
    size: int
    dtype: str


class Reading(NamedTuple):
    verified: VerifiedGeneration
    trusted: bool = False  # by `faultlens.load`
    spans: tuple[Span, ...] = ()  # of a checkpoint or SavedModel


def read(generation: Generation, replaced: Manifest | None = None, kerases: tuple[str, ...] = ()) -> Reading | None:
    """None: this is not a saved model. Raises OSError where it may not be read, or is larger than is looked at.

    `replaced`: what `faultlens.save` wrote under this name last, if this is something else."""
    manifest, path = generation.manifest, generation.path
    differing = differences(manifest, path) if manifest is not None else []
    # What was written through a manifest is compared with it. Its own checksums are told where that differs.
    saved = reader.read(path, deep=manifest is None or bool(differing))
    if saved is None and manifest is None:
        return None
    own = saved.damages if saved is not None else ()
    missing = {damage.file for damage in own if damage.what.startswith(MISSING)}  # in more words
    damages = [*(each for each in differing if each.what != MISSING or each.file not in missing), *own]
    verified = VerifiedGeneration(
        path=str(path),
        format=IN_WORDS[manifest.format] if manifest is not None else saved.kind if saved is not None else "",
        whole=not damages,
        number=generation.number,
        current=generation.current,
        time=manifest.time if manifest is not None else time_of(path),
        size=manifest.size if manifest is not None and not differing else saved.size if saved is not None else 0,
        compared="manifest" if manifest is not None else "checksums" if saved and saved.checked else "structure",
        damages=tuple(dict.fromkeys(one_line(damage.said(path)) for damage in damages[:MAX_DAMAGES])),
        code=tuple(map(one_line, saved.code)) if saved is not None else (),
        notes=tuple(_notes(saved)) if saved is not None else (),
        details=tuple(_details(saved, manifest)),
    )
    if saved is not None and not damages and manifest is None and not _was_unpacked(saved):
        verified = _untold(verified, saved.notes[0])
    if replaced is not None and verified.whole:
        verified = _foreign(verified, replaced, path)
    wrong = misnamed(saved, kerases) if saved is not None else None
    if wrong is not None and verified.whole:
        rename = f"mv -n {shlex.quote(path.name)} {shlex.quote(path.with_suffix(wrong.suffix).name)}"
        verified = replace(verified, loaded=False, load_problem=one_line(f"it {wrong.what} (rename it: {rename})"))
    if manifest is not None:
        trusted = not differing
    else:
        trusted = saved is not None and not saved.damages and misnamed(saved) is None
    return Reading(verified, trusted, tuple(_spans(saved)) if saved is not None and not damages else ())


def changed_variables(manifest: Manifest, file: str, places: dict[str, tuple[int, int]]) -> list[str]:
    """The variables whose values are not those that were written. `places`: name -> offset and size in the file."""
    found = []
    with opened(Path(file)) as data:
        for variable in manifest.variables:
            offset, size = places.get(variable.name, (0, -1))
            crc = 0
            data.seek(max(offset, 0))
            while size > 0 and (chunk := data.read(min(size, CHUNK))):
                crc, size = crc32c(chunk, crc), size - len(chunk)
            if size or crc != variable.crc32c:
                found.append(variable.name)
    return found


def _foreign(verified: VerifiedGeneration, replaced: Manifest, path: Path) -> VerifiedGeneration:
    """It has the name of a save of ours. One that has its size too was hardly written by somebody else."""
    changed = [] if differences(replaced, path, deep=False) else differences(replaced, path)
    if not changed:
        return replace(verified, notes=(*verified.notes, NOT_OURS))
    which = f" ({changed[0].file.name})" if changed[0].file != path else ""
    return _untold(verified, f"it was changed after faultlens.save wrote it as generation {replaced.generation}{which}")


def _untold(verified: VerifiedGeneration, why: str) -> VerifiedGeneration:
    return replace(verified, whole=None, unknown=why, notes=tuple(note for note in verified.notes if note != why))


def _was_unpacked(saved: Saved) -> bool:
    """Archives whose contents would be absurdly large are left alone."""
    return saved.kind != "Keras archive" or saved.checked


def _notes(saved: Saved) -> Iterator[str]:
    yield from (one_line(note) for note in saved.notes)
    for lacking in saved.lacks[:MAX_DAMAGES]:
        yield one_line(f"its asset {lacking.name} is missing: it loads, and what reads the asset fails")


def _details(saved: Saved | None, manifest: Manifest | None) -> Iterator[str]:
    if manifest is not None:
        versions = ", ".join(f"{name} {version}" for name, version in sorted(manifest.versions.items()))
        yield one_line(f"written by faultlens.save with {versions}" if versions else "written by faultlens.save")
        yield f"{count(len(manifest.files), 'file')} compared with the manifest, by size and CRC-32C"
        yield from (one_line(note) for note in manifest.notes)
        if manifest.training:
            told = ", ".join(f"{name}: {value!r}" for name, value in manifest.training.items())
            yield one_line(f"training stood at {told}")
    elif saved is not None:
        yield from (one_line(f"written by {writer} {version}") for writer, version in saved.writers)
        yield "all checksums that it carries were compared" if saved.checked else "it carries no checksums of values"
    if saved is not None and saved.weights:
        largest = f", the largest {in_words(saved.largest)}" if saved.largest else ""
        yield f"{in_words(saved.weights)} of weights{largest}"


def _spans(saved: Saved) -> Iterator[Span]:
    root = saved.path / "variables" / "variables" if saved.kind == "SavedModel" else saved.path
    prefix = checkpoint.prefix_of(root) if saved.kind in ("SavedModel", "checkpoint") else None
    if prefix is None:
        return
    shards, entries = checkpoint.contents(prefix)
    for entry in entries[:MAX_SPANS]:
        if entry.dtype in NUMBERS:
            file = str(checkpoint.shard_name(prefix, entry.shard, shards))
            yield Span(entry.name.removesuffix(VALUE), file, entry.offset, entry.size, NUMBERS[entry.dtype])


def time_of(path: Path) -> float | None:
    """When it was last written: of a checkpoint, its index; of a folder, its graph."""
    places = (path / "saved_model.pb", path, path.with_name(path.name + ".index"))
    for place in places:
        try:
            return place.stat().st_mtime
        except OSError:
            continue
    return None
