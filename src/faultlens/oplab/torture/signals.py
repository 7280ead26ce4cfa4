"""Ends a process that sends a signal to another one. Runs in the Python of the user's programs, from 3.9 on.

Landlock refuses such signals quietly, on newer kernels. Here the attempt is an end of its own (SIGSYS) that can be
told, on every kernel with seccomp. Needs no_new_privs, which Landlock's confinement has set, or sets it."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from typing import Any

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW = 0x00030000, 0x7FFF0000
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
NUMBER, ARCHITECTURE, FIRST_ARGUMENT, SECOND_ARGUMENT = 0, 4, 16, 24  # offsets in struct seccomp_data

# Their first argument is a process: kill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo. Always refused: tkill.
CALLS = {
    "x86_64": (0xC000003E, (62, 234, 129, 297), 200),
    "aarch64": (0xC00000B7, (129, 131, 138, 240), 130),
}


def only_to_itself() -> bool:
    """From now on, a signal of this process to any other ends it. False: this kernel cannot do that."""
    if platform.machine() not in CALLS:
        return False
    program = filter_of(*CALLS[platform.machine()], os.getpid())
    libc = ctypes.CDLL(None)
    buffer = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return False
    return bool(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, described, 0, 0) == 0)


def filter_of(architecture: int, with_process: tuple[int, ...], refused: int, own: int) -> bytes:
    """The program for the kernel: lines of what to do, and where to go on when it is so, or when it is not."""
    lines: list[Any] = [
        (LOAD, ARCHITECTURE, "", ""),
        (EQUAL, architecture, "", "allow"),
        (LOAD, NUMBER, "", ""),
        *((EQUAL, number, "asks", "") for number in with_process),
        (EQUAL, refused, "trap", "allow"),
        ("asks", 0, "", ""),
        (LOAD, FIRST_ARGUMENT, "", ""),
        (EQUAL, own, "allow", ""),
        (LOAD, SECOND_ARGUMENT, "", ""),  # signal 0 of kill() asks whether a process is there
        (EQUAL, 0, "allow", "trap"),
        ("allow", 0, "", ""),
        (RETURN, SECCOMP_RET_ALLOW, "", ""),
        ("trap", 0, "", ""),
        (RETURN, SECCOMP_RET_TRAP, "", ""),
    ]
    places: dict[object, int] = {}
    steps: list[tuple[int, int, str, str]] = []
    for line in lines:
        if isinstance(line[0], str):
            places[line[0]] = len(steps)
        else:
            steps.append(line)
    program = b""
    for number, (code, value, yes, no) in enumerate(steps):
        jumps = [places[each] - number - 1 if each else 0 for each in (yes, no)]
        program += struct.pack("HBBI", code, *jumps, value)
    return program
