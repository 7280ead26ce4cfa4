"""The shared memory of agent.h, read from Python: change both together."""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_int16, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64

MAGIC = 0x534E454C544C5546
VERSION = 5
SLOTS = 16
ALSO = 3
HANDLED = 16
EXCEPTIONS = 8
PROGRESS = 16
PROGRESS_BYTES = 4096
NOTES_PATH_BYTES = 64
INSIDE_PATH_BYTES = 2048
THROW_FRAMES = 16
OUTPUT_BYTES = 256 * 1024
OUTPUT_MAGIC = 0x4C46

FREE, CLAIMED, WAITING, ACCEPTED, SPARED = range(5)
LOADABLE, FOREIGN, SANITIZED = range(3)

# Order of gregs in ucontext_t, <sys/ucontext.h>.
GREGS = (
    "r8 r9 r10 r11 r12 r13 r14 r15 rdi rsi rbp rbx rdx rax rcx rsp rip eflags csgsfs err trapno oldmask cr2"
).split()


class Fault(ctypes.Structure):
    _fields_ = [
        ("pid", c_int32),
        ("tid", c_int32),
        ("time_ns", c_int64),
        ("signal", c_int32),
        ("chained", c_int32),
        ("siginfo", c_uint8 * 128),
        ("gregs", c_uint64 * len(GREGS)),
    ]


class CppThrow(ctypes.Structure):
    _fields_ = [
        ("tid", c_int32),
        ("frame_count", c_uint32),
        ("time_ns", c_int64),
        ("frames", c_uint64 * THROW_FRAMES),
        ("type", c_char * 160),
        ("message", c_char * 256),
    ]


class Slot(ctypes.Structure):
    _fields_ = [
        ("state", c_uint32),
        ("also_count", c_uint32),
        ("exception_count", c_uint32),
        ("parked_count", c_uint32),
        ("is_in_doubt", c_uint32),
        ("pad", c_uint32),
        ("parked", c_uint64),
        ("fault", Fault),
        ("also", Fault * ALSO),
        ("exceptions", CppThrow * EXCEPTIONS),
    ]


class Parked(ctypes.Structure):
    """In the memory of the process, not in the area."""

    _fields_ = [("tid", c_int32), ("pad", c_int32), ("context", c_uint64)]


class Handled(ctypes.Structure):
    _fields_ = [("active", c_uint32), ("pad", c_uint32), ("fault", Fault)]


class Progress(ctypes.Structure):
    _fields_ = [("pid", c_int32), ("data", c_uint8 * (PROGRESS_BYTES - 4))]


class Area(ctypes.Structure):
    _fields_ = [
        ("magic", c_uint64),
        ("version", c_uint32),
        ("supervisor_pid", c_int32),
        ("wake", c_uint32),
        ("attached", c_uint32),
        ("accept_ms", c_uint32),
        ("finish_ms", c_uint32),
        ("output_head", c_uint64),
        ("notes", c_char * NOTES_PATH_BYTES),
        ("inside", c_char * INSIDE_PATH_BYTES),
        ("look_at", c_int32),
        ("pad", c_uint8 * (4096 - 44 - NOTES_PATH_BYTES - INSIDE_PATH_BYTES)),
        ("progress", Progress * PROGRESS),
        ("slots", Slot * SLOTS),
        ("handled", Handled * HANDLED),
        ("output", c_uint8 * OUTPUT_BYTES),
    ]


class OutputHeader(ctypes.Structure):
    _fields_ = [
        ("pid", c_int32),
        ("descriptor", c_int16),
        ("magic", c_uint16),
        ("size", c_uint32),
        ("pad", c_uint32),
    ]
