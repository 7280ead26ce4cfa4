"""Does a model bear a name under which Keras reads its format? Keras looks at the name before it looks inside."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from faultlens.model_files.record import Saved

ARCHIVE, HDF5 = ".keras", ".h5"
_HDF5_NAMES = (".h5", ".hdf5")
_MAJOR = re.compile(r"\d+")


class Misnamed(NamedTuple):
    what: str  # "is a Keras archive under the name of an HDF5 file"
    suffix: str  # the one that its format needs
    evidence: str


def misnamed(saved: Saved, kerases: Sequence[str] = ()) -> Misnamed | None:
    """`kerases`: the versions that are installed, of which a program takes one."""
    name = saved.path.name
    if saved.kind == "Keras archive" and name.endswith(_HDF5_NAMES):
        what = "is a Keras archive under the name of an HDF5 file"
        return Misnamed(what, ARCHIVE, "it begins as a zip archive does")
    if saved.kind == "HDF5 file" and name.endswith(ARCHIVE) and kerases and all(_major(each) >= 3 for each in kerases):
        what = f"is an HDF5 file, which Keras {kerases[0]} does not read under this name"  # Keras 2 does
        return Misnamed(what, HDF5, "it begins as an HDF5 file does")
    return None


def _major(version: str) -> int:
    match = _MAJOR.match(version)
    return int(match[0]) if match else 0
