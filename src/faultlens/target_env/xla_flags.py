"""What XLA would make of XLA_FLAGS and TF_XLA_FLAGS: its rules, and the names that TensorFlow's libraries have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from faultlens.records.crash import Record
from faultlens.system.binary import Binary
from faultlens.system.elf import ElfError

SPACE = " \t\r\n"
MAX_CHARACTERS = 1 << 20
LIBRARIES = ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")
# A flag of the other variable is unknown to this one, though the libraries have its name.
FOREIGN: Mapping[str, str] = {"XLA_FLAGS": "tf_", "TF_XLA_FLAGS": "xla_"}
_FLAG = re.compile(r"""-[-\w]*(?:="(?:[^"\\]|\\.)*"?|='[^']*'?|[^ \t\r\n]*)""", re.ASCII | re.DOTALL)


class FlagFault(Record, frozen=True):
    variable: str
    value: str  # the flag, or the name of the file
    why: str


def faults(variable: str, value: str, directory: Path, knows: Callable[[str], bool]) -> tuple[FlagFault, ...]:
    """What XLA ends the program for. `knows` tells whether a flag of that name is in the libraries."""
    text = value
    if value.strip(SPACE) and not value.lstrip(SPACE).startswith("-"):  # the name of a file with flags
        try:
            with (directory / value).open(encoding="utf-8", errors="replace") as file:
                text = file.read(MAX_CHARACTERS)
        except (OSError, ValueError):
            return (FlagFault(variable, value, "is taken for the name of a file, which cannot be opened"),)
    return tuple(
        FlagFault(variable, flag, why) for flag in split(text) if (why := _fault(variable, flag, knows)) is not None
    )


def split(text: str) -> tuple[str, ...]:
    """Flags up to the first word that is none; XLA ignores what follows."""
    flags, position = [], 0
    while match := _FLAG.match(text, position + _spaces(text, position)):
        flags.append(match[0])
        position = match.end()
    return tuple(flags)


def known_names(folder: Path) -> Callable[[str], bool] | None:
    """None where TensorFlow's libraries cannot be read."""
    libraries = [folder / name for name in LIBRARIES if (folder / name).is_file()]
    if not libraries:
        return None
    return lambda name: any(_has(library, name.encode("ascii", "replace")) for library in libraries)


def _fault(variable: str, flag: str, knows: Callable[[str], bool]) -> str | None:
    name = flag.removeprefix("--").partition("=")[0]
    if not flag.startswith("--"):
        return "begins with one dash, where two are needed"
    if name.startswith(FOREIGN[variable]):
        other = next(each for each in FOREIGN if each != variable)
        return f"is a flag of {other}"
    return None if name and knows(name) else "is not a flag of this TensorFlow"


def _spaces(text: str, position: int) -> int:
    rest = text[position:]
    return len(rest) - len(rest.lstrip(SPACE))


def _has(library: Path, name: bytes) -> bool:
    """Names of flags stand in the library as C strings; a string that ends with another may be stored once for both."""
    try:
        with Binary(library) as binary:
            return binary.find_constant(name + b"\0") >= 0
    except (OSError, ElfError):
        return True  # not seen is not unknown
