"""Exceptions that only pass on what happened below Python: something could not be had, or data are damaged."""

from __future__ import annotations

import re

from faultlens.diagnosis.evidence.limits import NO_MEMORY, NO_THREAD
from faultlens.diagnosis.evidence.storage import NO_SPACE
from faultlens.diagnosis.evidence.tracebacks import PythonException

_MESSENGERS = frozenset({
    "MemoryError", "_ArrayMemoryError", "ResourceExhaustedError", "OutOfMemoryError", "DataLossError",
    "BrokenProcessPool", "TerminatedWorkerError",
})  # fmt: skip
TOO_MANY_FILES = re.compile(r"Too many open files|\[Errno 2[34]\]|\bEMFILE\b|\bENFILE\b")
TOO_LARGE = re.compile(r"\[Errno 27\]|\bEFBIG\b|errno = 27\b|\bFile too large\b")
_ANY = (NO_MEMORY, NO_THREAD, NO_SPACE, TOO_MANY_FILES, TOO_LARGE)


def is_messenger(error: PythonException) -> bool:
    """Then the reason says more than the exception."""
    text = f"{error.type}: {error.details}"
    return error.type.rpartition(".")[2] in _MESSENGERS or any(pattern.search(text) for pattern in _ANY)
