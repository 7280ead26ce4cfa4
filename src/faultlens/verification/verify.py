"""Verifies the saves that paths stand for: finds them, reads each in a process that may die of it, and judges."""

from __future__ import annotations

import errno
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from faultlens.capture.isolated import IsolatedError, run_isolated
from faultlens.errors import FaultlensError
from faultlens.report.quantities import count
from faultlens.safe_text import one_line
from faultlens.saved.generations import Generation
from faultlens.saved.manifest import Manifest
from faultlens.sizes import GIB, MIB, in_words
from faultlens.verification import places, reading
from faultlens.verification.confined import Answer, Limits, ask
from faultlens.verification.places import Found, Place
from faultlens.verification.reading import NOT_OURS, Reading
from faultlens.verified import Verification, VerifiedGeneration, VerifiedSave

FIND_S = 60.0
LOOK_S, LOAD_S = 60.0, 180.0  # for a small one
RATE = 20 * MIB  # bytes a second that even a slow disk gives
READ_MEMORY, VALUES_MEMORY, LOAD_MEMORY = 3 * GIB, 2 * GIB, 6 * GIB
LOADING = 4  # times its size: what loading takes at the peak, and some more
NAMED = 3
HDF5 = ("Keras archive", "weights file", "HDF5 file")
UNKNOWN_FORMAT = "it is in no format that faultlens knows"
ADVICE = "Name a .keras, .h5 or .tflite file, a SavedModel folder, the prefix of a checkpoint, or a folder of saves."
# What a loader says of a model whose classes are the program's own, or that it will not load for its safety.
_NEEDS_CODE = re.compile(
    r"Could not locate (?:class|function)|Unknown (?:layer|class|object|loss|metric|optimizer)|custom_objects"
    r"|register_keras_serializable|Could not deserialize|is not registered|Lambda|unsafe deserialization|safe_mode"
)


class Wishes(NamedTuple):
    python: str  # the one that reads values, and loads
    load: bool = False
    seconds: float | None = None  # for one save; None: by its size


def verify(paths: Sequence[str], wishes: Wishes) -> Verification:
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
            save = _save(place, wishes)
            if [each.unknown for each in save.generations] == [UNKNOWN_FORMAT]:
                problems.append(f"{one_line(path, 200)} is in no format that faultlens knows. {ADVICE}")
            else:
                saves[place.target] = save
    return Verification(saves=tuple(saves.values()), problems=tuple(problems), python=wishes.python)


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


def _save(place: Place, wishes: Wishes) -> VerifiedSave:
    verified: list[VerifiedGeneration] = []
    taken = False
    for generation in place.generations:
        found, trusted = _generation(generation, place, wishes)
        verified.append(replace(found, taken=trusted and not taken))
        taken = taken or trusted
    return VerifiedSave(path=place.shown, generations=tuple(verified), missing=place.missing, notes=place.notes)


def _generation(generation: Generation, place: Place, wishes: Wishes) -> tuple[VerifiedGeneration, bool]:
    """What was found, and whether `faultlens.load` trusts it."""
    size = _size_on_disk(generation)
    seconds = wishes.seconds or LOOK_S + size / RATE
    try:
        read = run_isolated(seconds, READ_MEMORY, _read, generation, place.replaced if generation.current else None)
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
    verified = _with_values(read, generation, place, Limits(seconds, VALUES_MEMORY), wishes.python)
    if wishes.load and verified.whole is not False:
        limits = Limits(wishes.seconds or LOAD_S + size / RATE, LOAD_MEMORY + LOADING * size)
        verified = _loaded(verified, generation, limits, wishes.python)
    return verified, read.trusted


def _read(generation: Generation, replaced: Manifest | None) -> Reading | str:
    """In the child."""
    try:
        return reading.read(generation, replaced) or UNKNOWN_FORMAT
    except OSError as error:
        return f"it cannot be read: {_reason(error)}"


def _size_on_disk(generation: Generation) -> int:
    path = generation.path
    if generation.manifest is not None:
        return generation.manifest.size
    files = [path, *path.parent.glob(f"{path.name}.data-*")] if not path.is_dir() else path.rglob("*")
    total = 0
    for file in files:
        try:
            total += file.stat().st_size
        except OSError:
            continue
    return total


# ---------------------------------------------------------------------------------------------- values


def _with_values(
    read: Reading, generation: Generation, place: Place, limits: Limits, python: str
) -> VerifiedGeneration:
    """Every value is read, where that can tell something: HDF5 has no checksums, and numbers may be none."""
    verified, manifest = read.verified, generation.manifest or (place.replaced if generation.current else None)
    request: dict[str, Any]
    if verified.format in HDF5:
        if not verified.whole and not (manifest and manifest.variables):
            return verified
        kind = "Keras archive" if verified.format == "Keras archive" else "HDF5 file"
        request = {"do": "read", "kind": kind, "path": verified.path, "places": manifest is not None}
    elif read.spans:
        request = {"do": "read", "kind": "spans", "spans": read.spans}
    else:
        return verified
    try:
        answer = ask(python, request, limits)
    except OSError as error:
        return _noted(verified, f"its values were not read: {python} cannot be run ({_reason(error)})")
    if answer.told is None:
        return _not_read(verified, answer, limits)
    verified = _told(verified, answer.told)
    if "raised" in answer.told or verified.format not in HDF5:
        return verified
    return _compared(verified, manifest, answer.told, limits, ours=generation.manifest is not None)


def _not_read(verified: VerifiedGeneration, answer: Answer, limits: Limits) -> VerifiedGeneration:
    if answer.endless:
        return _damaged(verified, f"reading it never ends (at {answer.endless})")
    if answer.died:
        return _damaged(verified, f"reading it kills Python: {answer.died}")
    if verified.compared != "structure":
        return _noted(verified, f"its values were not all read in {limits.seconds:g} s (--time-limit)")
    return replace(verified, whole=None, unknown=f"reading its values took longer than {limits.seconds:g} s")


def _told(verified: VerifiedGeneration, told: dict[str, Any]) -> VerifiedGeneration:
    if raised := told.get("raised"):
        message = one_line(str(told.get("message")), 200)
        if raised in ("ModuleNotFoundError", "ImportError"):
            return replace(verified, details=(*verified.details, f"its values were not read: {message}"))
        if raised == "MemoryError":
            return _noted(verified, "its values were not read: that takes more memory than it should")
        if isinstance(told.get("errno"), int) and told["errno"] != errno.EIO:
            return _noted(verified, f"its values were not read: {message}")
        return _damaged(verified, f"its values cannot be read: {one_line(str(raised), 60)}: {message}")
    for problem in _texts(told.get("damages")):
        verified = _damaged(verified, problem)
    for note in (*_texts(told.get("notes")), *_not_finite(told)):
        verified = _noted(verified, note)
    read, size = (number if isinstance(number, int) else 0 for number in (told.get("variables"), told.get("size")))
    detail = f"{count(read, 'variable')} read, {in_words(size)}"
    return replace(verified, details=(*verified.details, detail))


def _not_finite(told: dict[str, Any]) -> Iterator[str]:
    found = told.get("not_finite")
    for name, number in found[:NAMED] if isinstance(found, list) else ():
        yield one_line(f"{count(int(number), 'value')} of {name} {'is' if number == 1 else 'are'} NaN or infinite")
    more = int(told.get("not_finite_variables", 0)) - NAMED
    if more > 0:
        yield f"{count(more, 'more variable')} with NaN or infinite values"


def _compared(
    verified: VerifiedGeneration, manifest: Manifest | None, told: dict[str, Any], limits: Limits, ours: bool
) -> VerifiedGeneration:
    """Which variables are not what was written, where something is not. `ours`: the manifest is its own."""
    spots = told.get("places")
    if manifest is None or not manifest.variables or not isinstance(spots, dict) or verified.whole:
        return verified
    try:
        changed = run_isolated(limits.seconds, READ_MEMORY, reading.changed_variables, manifest, verified.path, spots)
    except IsolatedError:
        return verified
    names = ", ".join(one_line(name, 80) for name in changed[:NAMED])
    more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
    total = len(manifest.variables)
    if ours:
        return _damaged(verified, f"the damage is in {names}{more}") if changed else verified
    if len(changed) == total:
        return replace(verified, whole=True, unknown="", notes=(*verified.notes, NOT_OURS))
    how_many = f"{len(changed)} of {total} variables {'differs' if len(changed) == 1 else 'differ'}"
    return replace(verified, unknown=f"{verified.unknown}: {how_many}" + (f" ({names}{more})" if changed else ""))


# --------------------------------------------------------------------------------------------- loading


def _loaded(verified: VerifiedGeneration, generation: Generation, limits: Limits, python: str) -> VerifiedGeneration:
    if generation.manifest is not None and generation.manifest.format == "weights":
        return _noted(verified, "it holds weights only: loading it takes the model")
    kind = "HDF5 file" if verified.format in ("weights file", "HDF5 file") else verified.format
    try:
        answer = ask(python, {"do": "load", "kind": kind, "path": verified.path}, limits, may_stand=True)
    except OSError as error:
        return replace(verified, load_problem=f"{python} cannot be run ({_reason(error)})")
    if answer.late:
        return replace(verified, load_problem=f"loading it took longer than {limits.seconds:g} s")
    if answer.told is None:
        return replace(verified, loaded=False, load_problem=f"loading it kills Python: {answer.died}")
    told = answer.told
    if told.get("weights_only"):
        return _noted(verified, "it holds weights only: loading it takes the model")
    for note in _texts(told.get("notes")):
        verified = _noted(verified, note)
    if raised := told.get("raised"):
        problem = one_line(f"{raised}: {told.get('message')}", 300)
        return replace(verified, loaded=_whose_fault(str(raised), problem), load_problem=problem)
    variables = told.get("variables")
    detail = f"loaded, {count(variables, 'variable')}" if isinstance(variables, int) and variables else "loaded"
    return replace(verified, loaded=True, details=(*verified.details, detail))


def _whose_fault(raised: str, problem: str) -> bool | None:
    """False: it does not load. None: that could not be tried here, which says nothing about the save."""
    if raised in ("ModuleNotFoundError", "ImportError", "MemoryError", "ResourceExhaustedError"):
        return None
    return None if _NEEDS_CODE.search(problem) else False


def _damaged(verified: VerifiedGeneration, what: str) -> VerifiedGeneration:
    return replace(verified, whole=False, unknown="", damages=(*verified.damages, one_line(what)))


def _noted(verified: VerifiedGeneration, note: str) -> VerifiedGeneration:
    return replace(verified, notes=(*verified.notes, one_line(note)))


def _texts(found: Any) -> list[str]:
    return [one_line(str(each)) for each in found] if isinstance(found, list) else []
