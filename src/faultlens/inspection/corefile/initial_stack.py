"""What a program was started with: its arguments and environment, from the top of its first stack.

The kernel puts there, going up: argc, argv, a null word, envp, a null word, the auxiliary vector, and then
the strings that argv and envp point to.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from faultlens.inspection.memory import Memory
from faultlens.records.crash import Mapping

MAX_TOP = 8 << 20  # Linux allows arguments and environment a quarter of the stack, at most 6 MiB
MAX_STRINGS = 1 << 17
AUXV_NEEDLE = 64  # so many bytes of the vector are not found elsewhere


class InitialStack(NamedTuple):
    command: tuple[str, ...]
    environment: dict[str, str]


def read_initial_stack(memory: Memory, stack: Mapping, auxv: bytes) -> InitialStack | None:
    """`stack` is the mapping of the main thread's stack, `auxv` the auxiliary vector the kernel gave it."""
    base = max(stack.start, stack.end - MAX_TOP)
    top = memory.read(base, stack.end - base)
    position = top.rfind(auxv[:AUXV_NEEDLE]) if len(auxv) >= AUXV_NEEDLE else -1
    if position < 8 or position % 8:
        return None
    environment, position = _pointers_before(top, position - 8)
    arguments, _ = _pointers_before(top, position)
    # The word before argv[0] is argc, which looks like one more pointer.
    if arguments and arguments[0] == len(arguments) - 1:
        arguments = arguments[1:]
    variables = (_text(top, pointer - base).partition("=") for pointer in environment)
    return InitialStack(
        command=tuple(_text(top, pointer - base) for pointer in arguments),
        environment={name: value for name, equals, value in variables if equals},
    )


def _pointers_before(top: bytes, end: int) -> tuple[list[int], int]:
    """The words before the null word at `end` down to the next null word or argc, and where that stands."""
    words = list(_words_down(top, end))
    return words[::-1], end - 8 * len(words) - 8


def _words_down(top: bytes, end: int) -> Iterator[int]:
    for position in range(end - 8, max(-1, end - 8 * MAX_STRINGS), -8):
        (word,) = struct.unpack_from("<Q", top, position)
        if word == 0:
            return
        yield word
        if word < MAX_STRINGS:  # argc
            return


def _text(top: bytes, offset: int) -> str:
    if not 0 <= offset < len(top):
        return ""
    end = top.find(b"\0", offset)
    return top[offset : end if end >= 0 else None].decode("utf-8", "replace")
