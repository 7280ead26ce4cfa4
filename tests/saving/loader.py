"""Which generation is that? Loaded for real, in a process that may die of what it loads."""

from __future__ import annotations

import warnings
from pathlib import Path

import generations
from remote import GoneError, Remote
from subjects import Format, Subject, kept, load_plain

KNOWN = (1, 2, 3)
LIMIT = 30.0


class Loader:
    """Another process than the one that forks: in a fork TensorFlow cannot compute, and loading computes."""

    def __init__(self) -> None:
        warnings.simplefilter("ignore")
        self._model = generations.build()
        self._known = generations.known(self._model, KNOWN)

    def through(self, subject: Subject, folder: Path) -> tuple[int | None, str]:
        """The way that is tried."""
        self._forget()
        try:
            return self._generation(subject.format, subject.load(self._model, folder))
        except Exception as error:
            return None, repr(error)[:300]

    def plainly(self, form: Format, path: Path) -> tuple[int | None, str]:
        """As a program without faultlens loads it."""
        self._forget()
        try:
            return self._generation(form, load_plain(form, self._model, path))
        except Exception as error:
            return None, repr(error)[:300]

    def _forget(self) -> None:
        generations.become(self._model, 0)

    def _generation(self, form: Format, values: list[object]) -> tuple[int | None, str]:
        found = generations.generation_of(values, self._known, len(kept(form, self._model)))
        return found, "" if found else "other values than were saved"


class Careful:
    """Asks a loader, and starts another one when that has died."""

    def __init__(self) -> None:
        self._loader: Remote | None = Remote("loader", "Loader")

    def ask(self, what: str, *arguments: object) -> tuple[int | None, str]:
        if self._loader is None:
            self._loader = Remote("loader", "Loader")
        try:
            found, why = self._loader.ask(LIMIT, what, *arguments)
            return found, why
        except GoneError as error:
            self._loader.close()
            self._loader = None
            return None, f"loading it: {error}"
