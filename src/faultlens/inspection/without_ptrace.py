"""Reading another process's memory where seccomp forbids process_vm_readv, as containers often do.

pystack turns to /proc/PID/mem only when the kernel says ENOSYS; a forbidding container says EPERM. Of two seccomp
filters that answer with an error the newer one wins, so that a filter of our own can correct the answer."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
SECCOMP_RET_ERRNO = 0x00050000
SECCOMP_RET_ALLOW = 0x7FFF0000
SYS_PROCESS_VM_READV = 310

BPF_LOAD_WORD = 0x20  # BPF_LD | BPF_W | BPF_ABS
BPF_JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
BPF_RETURN = 0x06  # BPF_RET | BPF_K
OFFSET_OF_NUMBER = 0  # in struct seccomp_data


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def answer_enosys() -> None:
    """From here on process_vm_readv does not exist for this process. Raises OSError if that cannot be done."""
    code = b"".join(
        struct.pack("<HBBI", *instruction)
        for instruction in (
            (BPF_LOAD_WORD, 0, 0, OFFSET_OF_NUMBER),
            (BPF_JUMP_EQUAL, 0, 1, SYS_PROCESS_VM_READV),
            (BPF_RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.ENOSYS),
            (BPF_RETURN, 0, 0, SECCOMP_RET_ALLOW),
        )
    )
    libc = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(code) // 8, code)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
