"""`faultlens.save`: preflight, write under a temporary name, sync, read back, rename, keep what was there before."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faultlens.model_files.generations import Generation
from faultlens.model_files.manifest import Manifest, SavedFile, SavedVariable, checksum
from faultlens.saving.errors import SaveError, cannot_write
from faultlens.saving.formats import format_for
from faultlens.saving.formats.base import Format
from faultlens.saving.model_checks import problems_of
from faultlens.saving.preflight import check_folder, check_name, check_room, own_target
from faultlens.saving.target import Target, sync_tree

PACKAGES = ("tensorflow", "tensorflow-cpu", "keras", "tf-keras", "numpy", "h5py", "faultlens")
WAIT = 600.0  # seconds: for another writer


@dataclass(frozen=True)
class Request:
    """One save, decided upon."""

    form: Format
    path: Path
    target: Target
    keep: int
    strict: bool
    check_values: bool
    training: Mapping[str, Any]
    last: bool = False  # the program is about to end


def request(
    subject: Any, path: str | os.PathLike[str], *, format: str | None, keep: int, strict: bool, check_values: bool,
    training: Mapping[str, Any] | None, last: bool = False,
) -> Request:  # fmt: skip
    if not isinstance(keep, int) or keep < 1:
        raise SaveError(f"{keep!r} generations cannot be kept.", "keep=1 keeps the current one alone.")
    place = own_target(path)
    check_name(place)
    form = format_for(subject, place, format)
    check_folder(place, form)
    return Request(form, place, form.target(place), keep, strict, check_values, dict(training or {}), last)


def perform(wanted: Request) -> Generation:
    """The whole of it, in this process. What was saved before stays as it was until the new save is complete."""
    _check_model(wanted)
    check_room(wanted.path, wanted.form, of_memory=not wanted.last)
    try:
        with _marked(wanted.path), wanted.target.locked(WAIT):
            wanted.target.clean()
            generation = _write(wanted)
            with contextlib.suppress(OSError):  # it is saved; the next save removes what is too many
                wanted.target.prune(wanted.keep)
    except Exception as error:
        raise _explained(wanted, error) from error
    return generation


def _write(wanted: Request) -> Generation:
    written = wanted.target.unfinished()
    try:
        variables = wanted.form.write(written)
        sync_tree(written if written.exists() else written.parent)
        checksum_known = wanted.form.verify(written, variables)
        manifest = _manifest(wanted, written, variables, checksum_known)
        final = wanted.target.publish(written, manifest)
    finally:
        wanted.target.discard(written)
    return Generation(final, manifest.generation, manifest, current=True)


def _check_model(wanted: Request) -> None:
    problems = problems_of(wanted.form, wanted.check_values)
    if not problems:
        return
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    if wanted.strict:
        raise SaveError(
            f"{wanted.path} was not saved: {problems[0]}{more}.",
            "Mend it, or save all the same with strict=False.",
        )
    warnings.warn(f"{wanted.path}: {problems[0]}{more}", RuntimeWarning, stacklevel=2)


def _explained(wanted: Request, error: Exception) -> Exception:
    """The cause, where it can be told; else what was raised."""
    if isinstance(error, SaveError):
        return error
    system = _system_error(error)
    if system is not None:
        return cannot_write(wanted.path, system, wanted.form.size())
    if isinstance(error, MemoryError):
        return SaveError(f"{wanted.path} was not saved: there is not enough memory.", "Free some, or raise the limit.")
    text = " ".join(str(error).split())[:300]
    return SaveError(
        f"{wanted.path} was not saved: {type(error).__name__}: {text}", "What was saved before is untouched."
    )


def _system_error(error: BaseException | None) -> OSError | None:
    """HDF5 and TensorFlow say in words what the operating system told them."""
    while error is not None:
        if isinstance(error, OSError) and error.errno:
            return error
        text = str(error)
        for code in _SAID_IN_WORDS:
            if os.strerror(code) in text or f"errno = {code}" in text:
                return OSError(code, os.strerror(code))
        error = error.__cause__ or error.__context__
    return None


_SAID_IN_WORDS = (28, 122, 30, 13, 5, 27, 2)  # no space, quota, read-only, permission, I/O, too large, no such file


def _manifest(wanted: Request, written: Path, variables: list[SavedVariable], checksum_known: int | None) -> Manifest:
    return Manifest(
        generation=wanted.target.next_number(),
        format=wanted.form.name,
        time=time.time(),
        files=tuple(_files(written, checksum_known)),
        variables=tuple(variables),
        versions=dict(_versions()),
        training=dict(wanted.training),
        notes=wanted.form.notes,
    )


def _files(written: Path, known: int | None) -> Iterator[SavedFile]:
    """A file, whose checksum may be known; the files of a folder; or those of a checkpoint, named by their endings."""
    if written.is_file():
        yield _file("", written, known)
    elif written.is_dir():
        for folder, _, names in sorted(os.walk(written)):
            for name in sorted(names):
                path = Path(folder, name)
                yield _file(str(path.relative_to(written)), path)
    else:
        for path in sorted(written.parent.glob(f"{written.name}.*")):
            yield _file(path.name.removeprefix(written.name), path)


def _file(name: str, path: Path, known: int | None = None) -> SavedFile:
    state = path.stat()
    return SavedFile(
        name=name, size=state.st_size, crc32c=checksum(path) if known is None else known, mtime_ns=state.st_mtime_ns
    )


def _versions() -> Iterator[tuple[str, str]]:
    yield "python", platform.python_version()
    for package in PACKAGES:
        try:
            yield package, importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue


@contextmanager
def _marked(path: Path) -> Iterator[None]:
    """Under `faultlens run`, or after `faultlens.install()`: a death within is known to be one while saving."""
    inside = sys.modules.get("_faultlens_inside") or sys.modules.get("faultlens.guest")
    if inside is None:
        yield
        return
    inside.saving_begins(str(path))
    try:
        yield
    finally:
        inside.saving_ends()
