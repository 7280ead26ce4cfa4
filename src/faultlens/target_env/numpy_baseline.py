"""Which CPU NumPy was built for: `import numpy` refuses to work on less. Its own message in the library names it."""

from __future__ import annotations

from pathlib import Path

from faultlens.knowledge.cpu_features import FLAGS
from faultlens.knowledge.cpus import cpu_flags
from faultlens.system.binary import Binary
from faultlens.system.elf import ElfError

_MESSAGE = b"NumPy was built with baseline optimizations: \n("
# NumPy's names that are neither the disassembler's nor older than x86-64.
_GROUPS = {"X86_V2": "x86-64-v2", "X86_V3": "x86-64-v3", "X86_V4": "x86-64-v4"}
_FLAGS = {"SSE41": "sse4_1", "SSE42": "sse4_2", "FMA3": "fma"}


def numpy_baseline(package: Path) -> tuple[str, frozenset[str]] | None:
    """ "X86_V2", and the flags it stands for; `package` is the folder `numpy`."""
    for library in (*package.glob("_core/_multiarray_umath.*.so"), *package.glob("core/_multiarray_umath.*.so")):
        try:
            with Binary(library) as binary:
                start = binary.find_constant(_MESSAGE)
                text = binary.read(start + len(_MESSAGE), 400) if start >= 0 else b""
        except (OSError, ElfError):
            continue
        named, closed, _ = text.partition(b")")
        if closed:
            words = named.decode("ascii", "replace")
            return words, flags_of(words.split())
    return None


def flags_of(names: list[str]) -> frozenset[str]:
    found: set[str] = set()
    for name in names:
        if name in _GROUPS:
            found |= cpu_flags(_GROUPS[name])
        elif flag := _FLAGS.get(name) or FLAGS.get(name):
            found.add(flag)
    return frozenset(found)
