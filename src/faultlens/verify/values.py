"""Can every value of a save be read, are they numbers, and which are not what was written?"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from faultlens.model_files.manifest import Manifest
from faultlens.records.verification import VerifiedGeneration
from faultlens.system.isolated import IsolatedError, run_isolated
from faultlens.text.quantities import count
from faultlens.text.safe import one_line
from faultlens.text.sizes import in_words
from faultlens.verify.confined import Answer, Limits, Told, ask
from faultlens.verify.reading import NOT_OURS, READ_MEMORY, Reading, changed_variables

HDF5 = ("Keras archive", "weights file", "HDF5 file")
NAMED = 3


def with_values(
    read: Reading, manifest: Manifest | None, replaced: Manifest | None, limits: Limits, python: str
) -> VerifiedGeneration:
    """With what reading all values tells. `replaced`: what `faultlens.save` wrote under this name, if this is other."""
    verified, written = read.verified, manifest or replaced
    request: dict[str, Any]
    if verified.format in HDF5:
        if not verified.whole and not (written and written.variables):
            return verified
        kind = "Keras archive" if verified.format == "Keras archive" else "HDF5 file"
        request = {"do": "read", "kind": kind, "path": verified.path, "places": written is not None}
    elif read.spans:
        request = {"do": "read", "kind": "spans", "spans": read.spans}
    else:
        return verified
    answer = ask(python, request, limits)
    if answer.told is None:
        return _not_read(verified, answer, limits)
    verified = _told(verified, answer.told, python)
    if answer.told.raised or written is None or not answer.told.places:
        return verified
    return _compared(verified, written, answer.told.places, limits, ours=manifest is not None)


def _not_read(verified: VerifiedGeneration, answer: Answer, limits: Limits) -> VerifiedGeneration:
    if answer.endless:
        return damaged(verified, f"reading it never ends (at {answer.endless})")
    if answer.crashed:
        return damaged(verified, f"reading it kills Python: {answer.died}")
    if answer.died:
        return _unread(verified, f"its values were not read: {answer.died}")
    return _unread(verified, f"its values were not all read in {limits.seconds:g} s (--time-limit)")


def _unread(verified: VerifiedGeneration, why: str) -> VerifiedGeneration:
    """What was compared with checksums is whole all the same; of the rest nothing can be said."""
    if verified.whole and verified.compared == "structure":
        return replace(verified, whole=None, unknown=one_line(why))
    return noted(verified, why)


def _told(verified: VerifiedGeneration, told: Told, python: str) -> VerifiedGeneration:
    if told.raised:
        message = one_line(told.message, 200)
        if told.raised in ("ModuleNotFoundError", "ImportError"):
            return _unread(verified, f"its values were not read: {message} in {python} (--python names another)")
        if told.raised == "MemoryError":
            return _unread(verified, "its values were not read: that takes more memory than it should")
        if told.errno is not None and told.errno != errno.EIO:
            return _unread(verified, f"its values were not read: {message}")
        return damaged(verified, f"its values cannot be read: {one_line(told.raised, 60)}: {message}")
    for problem in told.damages:
        verified = damaged(verified, problem)
    for note in (*told.notes, *_not_finite(told)):
        verified = noted(verified, note)
    detail = f"{count(told.variables, 'variable')} read, {in_words(told.size)}"
    return replace(verified, details=(*verified.details, detail))


def _not_finite(told: Told) -> Iterator[str]:
    for name, number in told.not_finite[:NAMED]:
        yield f"{count(number, 'value')} of {name} {'is' if number == 1 else 'are'} NaN or infinite"
    more = told.not_finite_variables - NAMED
    if more > 0:
        yield f"{count(more, 'more variable')} with NaN or infinite values"


def _compared(
    verified: VerifiedGeneration, manifest: Manifest, places: dict[str, tuple[int, int]], limits: Limits, ours: bool
) -> VerifiedGeneration:
    """Which variables are not what was written, where something is not. `ours`: the manifest is its own."""
    if verified.whole or not manifest.variables:
        return verified
    try:
        changed = run_isolated(limits.seconds, READ_MEMORY, changed_variables, manifest, verified.path, places)
    except IsolatedError:
        return verified
    names = ", ".join(one_line(name, 80) for name in changed[:NAMED])
    names += f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
    if ours:
        return damaged(verified, f"the damage is in {names}") if changed else verified
    if verified.damages:
        return verified
    if len(changed) == len(manifest.variables):
        return replace(verified, whole=True, unknown="", notes=(*verified.notes, NOT_OURS))
    differ = f"{len(changed)} of {len(manifest.variables)} variables {'differs' if len(changed) == 1 else 'differ'}"
    return replace(verified, unknown=f"{verified.unknown}: {differ}" + (f" ({names})" if changed else ""))


def damaged(verified: VerifiedGeneration, what: str) -> VerifiedGeneration:
    return replace(verified, whole=False, unknown="", damages=(*verified.damages, one_line(what)))


def noted(verified: VerifiedGeneration, note: str) -> VerifiedGeneration:
    return replace(verified, notes=(*verified.notes, one_line(note)))
