"""Verifies the saves that paths stand for: finds them, reads each in a process that may die of it, and judges."""

from __future__ import annotations

import glob
import stat
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from faultlens.errors import FaultlensError
from faultlens.model_files.generations import Generation
from faultlens.model_files.manifest import Manifest
from faultlens.records.verification import Verification, VerifiedGeneration, VerifiedSave
from faultlens.sandbox.guest.confinement import available
from faultlens.system.isolated import IsolatedError, run_isolated
from faultlens.text.safe import one_line
from faultlens.text.sizes import GIB
from faultlens.verify import places, reading
from faultlens.verify.confined import RATE, Limits
from faultlens.verify.loading import loaded
from faultlens.verify.places import Found, Place
from faultlens.verify.reading import READ_MEMORY, Reading
from faultlens.verify.values import with_values

FIND_S = 60.0
LOOK_S, LOAD_S = 60.0, 180.0  # for a small one
VALUES_MEMORY, LOAD_MEMORY = 2 * GIB, 6 * GIB
MAX_FILES = 10_000
LOADING = 4  # times its size: what loading takes at the peak, and some more
UNKNOWN_FORMAT = "it is in no format that faultlens knows"
ADVICE = "Name a .keras, .h5 or .tflite file, a SavedModel folder, the prefix of a checkpoint, or a folder of saves."


class Options(NamedTuple):
    python: str  # the one that reads values, and loads
    load: bool = False
    seconds: float | None = None  # for one save; None: by its size
    kerases: tuple[str, ...] = ()  # their versions, in this Python


def verify(paths: Sequence[str], options: Options, tell: Callable[[str], None]) -> Verification:
    """`tell` is told what is being looked at."""
    saves: dict[Path, VerifiedSave] = {}
    problems: list[str] = []
    for path in dict.fromkeys(paths):
        try:
            found = _find(path)
        except FaultlensError as error:
            problems.append(str(error))
            continue
        problems += map(one_line, found.notes)
        for place in found.places:
            if place.target in saves:
                continue
            tell(f"looking at {place.shown}")
            save = _save(place, options)
            if [each.unknown for each in save.generations] == [UNKNOWN_FORMAT]:
                problems.append(f"{one_line(path, 200)} is in no format that faultlens knows. {ADVICE}")
            else:
                saves[place.target] = save
    not_held = available().not_held() if options.load else ()
    return Verification(saves=tuple(saves.values()), problems=tuple(problems), python=options.python, not_held=not_held)


# --------------------------------------------------------------------------------------------- finding


def _find(name: str) -> Found:
    path = Path(name)
    shown = one_line(name, 200)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink():
            raise FaultlensError(f"{shown} is a link that leads nowhere.", "Name the save itself.") from None
        mode = 0  # the prefix of a checkpoint, or a name whose file is lost
    except (OSError, ValueError) as error:
        raise FaultlensError(f"Cannot look at {shown}: {_reason(error)}.", ADVICE) from error
    if mode and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise FaultlensError(f"{shown} is neither a file nor a folder.", ADVICE)
    try:
        found = run_isolated(FIND_S, READ_MEMORY, _saves_at, path)
    except IsolatedError as error:
        raise FaultlensError(f"Cannot look at {shown}: looking for saves {error}.", "Name one save.") from error
    if isinstance(found, str):
        raise FaultlensError(f"Cannot look at {shown}: {found}.", "Look who may read it: ls -ld.")
    if not found.places and not found.notes:
        what = f"There is no saved model in {shown}." if stat.S_ISDIR(mode) else f"There is no {shown}."
        raise FaultlensError(what, ADVICE)
    return found


def _saves_at(path: Path) -> Found | str:
    """In the child: what the operating system refuses is told in its words."""
    try:
        return places.saves_at(path)
    except OSError as error:
        return _reason(error)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


# --------------------------------------------------------------------------------------------- judging


def _save(place: Place, options: Options) -> VerifiedSave:
    verified: list[VerifiedGeneration] = []
    taken = False
    for generation in place.generations:
        found, trusted = _generation(generation, place, options)
        verified.append(replace(found, taken=trusted and not taken))
        taken = taken or trusted
    return VerifiedSave(path=place.shown, generations=tuple(verified), missing=place.missing, notes=place.notes)


def _generation(generation: Generation, place: Place, options: Options) -> tuple[VerifiedGeneration, bool]:
    """What was found, and whether `faultlens.load` trusts it."""
    size = _size_on_disk(generation)
    seconds = options.seconds or LOOK_S + size / RATE
    try:
        replaced = place.replaced if generation.current else None
        read = run_isolated(seconds, READ_MEMORY, _read, generation, replaced, options.kerases)
    except IsolatedError as error:
        read = f"looking at it {error}"
    if not isinstance(read, Reading):
        unknown = VerifiedGeneration(
            path=str(generation.path),
            format="",
            whole=None,
            number=generation.number,
            current=generation.current,
            time=reading.time_of(generation.path),
            size=size,
            unknown=read,
        )
        return unknown, False
    limits = Limits(seconds, VALUES_MEMORY)
    verified = with_values(read, generation.manifest, replaced, limits, options.python)
    if options.load and verified.whole is not False and verified.loaded is not False:
        limits = Limits(options.seconds or LOAD_S + size / RATE, LOAD_MEMORY + LOADING * size)
        verified = loaded(verified, limits, options.python)
    return verified, read.trusted


def _read(generation: Generation, replaced: Manifest | None, kerases: tuple[str, ...]) -> Reading | str:
    """In the child."""
    try:
        return reading.read(generation, replaced, kerases) or UNKNOWN_FORMAT
    except OSError as error:
        return f"it cannot be read: {_reason(error)}"


def _size_on_disk(generation: Generation) -> int:
    """What there is to be read, whatever is declared: holes take no time."""
    path = generation.path
    files = path.rglob("*") if path.is_dir() else [path, *path.parent.glob(f"{glob.escape(path.name)}.data-*")]
    total = 0
    for file in islice(files, MAX_FILES):
        try:
            state = file.stat()
        except OSError:
            continue
        total += min(state.st_size, state.st_blocks * 512)
    return total
