"""Which NumPy a compiled module was built for, read from its texts, and whether the installed one fits.

The C code that `import_array()` becomes is copied from NumPy's headers into every module that calls it, with its texts:

- headers of NumPy 1 import `numpy.core._multiarray_umath`; with NumPy 2 that ends in ImportError, and in a null table
  of functions where the module ignores the error;
- headers of NumPy 2 try `numpy._core._multiarray_umath` first and work with both, down to the oldest NumPy the module
  was built for, which stands in the message they would print: "(NumPy 1.23)".

A module may ask for more than the C API: `numpy.exceptions` came with NumPy 1.25. ml_dtypes 0.6 takes ComplexWarning
from it when it is imported, though by its headers NumPy 1.23 is enough: AttributeError (measured with NumPy 1.24).

pybind11 brings its own: before 2.12 it imports `numpy.core.multiarray`. That still works with NumPy 2, but sizes of
items read as 0 (measured with pybind11 2.11.1 and NumPy 2.4).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from faultlens.system.binary import Binary
from faultlens.system.elf import ElfError

LARGE = 48 << 20  # TensorFlow's main library has 800 MB; none that large was seen to use NumPy
_ANY = b"numpy."
_IMPORT_ARRAY = b"_ARRAY_API is NULL pointer"
_OF_NUMPY_2 = b"numpy._core._multiarray_umath\0"
_OF_OLD_PYBIND11 = b"numpy.core.multiarray\0"
_NEEDS = b"compiled against NumPy C-API version 0x%x (NumPy "
# Texts of a module that looks up `numpy.exceptions.ComplexWarning`. They do not tell whether it does without: of 1027
# modules that were read (NumPy, SciPy, pandas, h5py, torch, TensorFlow) only that of ml_dtypes 0.6 has both.
_EXCEPTIONS = (b"\0exceptions\0", b"\0ComplexWarning\0")
_HAS_EXCEPTIONS = "1.25"
_VERSION = re.compile(rb"(\d+\.\d+)")


class NumpyUse(NamedTuple):
    path: Path
    built_for: int | None  # 1 or 2: whose headers; None where it calls NumPy in another way
    needs: str | None = None  # "1.23": the oldest NumPy that it accepts, where it says so
    old_pybind11: bool = False


def numpy_use(path: Path, *, deep: bool = False) -> NumpyUse | None:
    """None where the file does not use NumPy's C API, cannot be read, or is too large for a quick look."""
    try:
        if path.stat().st_size > LARGE and not deep:
            return None
        with Binary(path) as binary:
            return _look(path, binary)
    except (OSError, ElfError):
        return None


def numpy_uses(paths: Iterable[Path], *, deep: bool = False) -> tuple[NumpyUse, ...]:
    return tuple(use for path in paths if (use := numpy_use(path, deep=deep)) is not None)


def _look(path: Path, binary: Binary) -> NumpyUse | None:
    if binary.find_constant(_ANY) < 0:
        return None
    old = binary.find_constant(_OF_OLD_PYBIND11) >= 0
    if binary.find_constant(_IMPORT_ARRAY) < 0:
        return NumpyUse(path, None, old_pybind11=True) if old else None
    built_for = 2 if binary.find_constant(_OF_NUMPY_2) >= 0 else 1
    message = binary.find_constant(_NEEDS)
    match = _VERSION.match(binary.read(message + len(_NEEDS), 8)) if message >= 0 else None
    needs = match[1].decode() if match else None
    if all(binary.find_constant(text) >= 0 for text in _EXCEPTIONS):
        needs = max(needs or _HAS_EXCEPTIONS, _HAS_EXCEPTIONS, key=_minor)
    return NumpyUse(path, built_for, needs, old)


def misfit(use: NumpyUse, numpy: str) -> str | None:
    """Why the module cannot be used with this NumPy."""
    try:
        installed = Version(numpy)
    except InvalidVersion:
        return None
    if use.built_for == 1 and installed.major >= 2:
        return "was built for NumPy 1"
    # Releases of NumPy raise the number of the C API with the minor version only.
    if use.needs is not None and (installed.major, installed.minor) < _minor(use.needs):
        return f"needs NumPy {use.needs} or newer"
    return None


def _minor(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return int(major), int(minor)
