"""What is known of a saved model after reading it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal[
    "SavedModel", "Keras archive", "HDF5 file", "checkpoint", "TensorFlow Lite model", "pickle", "PyTorch file"
]

_VERBS = ("is ", "ends ", "has ", "begins ")


@dataclass(frozen=True)
class Damage:
    """A fact that makes loading fail."""

    file: Path
    what: str  # "ends at byte 812, its header says 70120", or "the checksum of … does not match"

    def said(self, of: Path) -> str:
        """A sentence about the save that it is a part of."""
        if self.file == of:
            return f"it {self.what}" if self.what.startswith(_VERBS) else self.what
        return f"{self.file.name} {self.what}" if self.what.startswith(_VERBS) else f"{self.file.name}: {self.what}"


@dataclass(frozen=True)
class Saved:
    path: Path
    kind: Kind
    files: int  # how many it is made of
    size: int  # bytes of all of them
    weights: int = 0  # bytes of the variables, where the format tells
    largest: int = 0  # bytes of the largest variable
    writers: tuple[tuple[str, str], ...] = ()  # ("TensorFlow", "2.21.0"), …
    min_consumer: int = 0  # the oldest GraphDef version that may read it
    new_in_keras_3: str = ""  # a word of its configuration that Keras 2 does not know
    damages: tuple[Damage, ...] = ()
    lacks: tuple[Path, ...] = ()  # files that loading does not need, but what is loaded may
    notes: tuple[str, ...] = ()
    code: tuple[str, ...] = ()  # that it brings along, each in one sentence
    checked: bool = False  # every checksum that it carries was compared
