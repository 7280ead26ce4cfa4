"""What `faultlens verify` found out about saves: records that are shown and written as JSON."""

from __future__ import annotations

from typing import Literal

from faultlens.records.crash import Record

SCHEMA_VERSION = 1


class VerifiedGeneration(Record, frozen=True, omit_defaults=False):
    """One save that is there."""

    path: str  # what is loaded: a file, a folder, or the prefix of a checkpoint
    format: str  # "Keras archive", "SavedModel", …
    whole: bool | None  # None: it could not be told, and `unknown` says why
    number: int | None = None  # of the generation; None: neither `faultlens.save` nor TensorFlow numbered it
    current: bool = False  # it bears the name that it was saved to
    taken: bool = False  # `faultlens.load` takes this one
    time: float | None = None  # when it was saved, in seconds since 1970
    size: int = 0  # bytes of all its files
    # What it was compared with: the manifest of `faultlens.save`, or the checksums that the format has. "structure":
    # neither is there, and all that can be said is that nothing is missing.
    compared: Literal["manifest", "checksums", "structure"] | None = None
    damages: tuple[str, ...] = ()
    unknown: str = ""
    loaded: bool | None = None  # by Keras or TensorFlow; None: not tried, or it could not be tried
    load_problem: str = ""
    code: tuple[str, ...] = ()  # that it brings along, which runs when it is loaded or called
    notes: tuple[str, ...] = ()  # worth knowing, and no damage
    details: tuple[str, ...] = ()  # what was looked at


class VerifiedSave(Record, frozen=True, omit_defaults=False):
    """One name that was saved to, with its generations, the newest first."""

    path: str  # as it is shown: as the user named it, or below the folder that was named
    generations: tuple[VerifiedGeneration, ...]
    missing: bool = False  # nothing bears the name any more
    notes: tuple[str, ...] = ()


class Verification(Record, frozen=True, omit_defaults=False):
    saves: tuple[VerifiedSave, ...]
    problems: tuple[str, ...] = ()  # paths that could not be looked at, each in one sentence
    python: str | None = None  # the Python that read values, and loaded
    not_held: tuple[str, ...] = ()  # what the sandbox could not keep a save that was loaded from doing
    schema: int = SCHEMA_VERSION

    @property
    def generations(self) -> tuple[VerifiedGeneration, ...]:
        return tuple(generation for save in self.saves for generation in save.generations)

    @property
    def damaged(self) -> bool:
        lost = any(save.missing for save in self.saves)
        return lost or any(each.whole is False or each.loaded is False for each in self.generations)

    @property
    def untold(self) -> bool:
        """Whether something could not be looked at as was asked for."""
        return bool(self.problems) or any(
            each.whole is None or (each.loaded is None and each.load_problem) for each in self.generations
        )
