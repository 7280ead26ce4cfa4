"""The structures of the table of guarded blocks, as fence.h has them."""

from __future__ import annotations

import ctypes

MAGIC = 0x45434E4546544C46
VERSION = 1
PARTS = 16
CLASSES = 8
FRAMES = 24
PAGE = 4096
LIBRARIES = 8
PAINT = 0xC5

LIVE, FREED = 1, 2
DOUBLE_FREE, INVALID_FREE, OVERFLOW, UNDERFLOW = 1, 2, 3, 4


class Claim(ctypes.Structure):
    _fields_ = (("pid", ctypes.c_int32), ("order", ctypes.c_uint32))


class File(ctypes.Structure):
    _fields_ = (
        ("magic", ctypes.c_uint64),
        ("version", ctypes.c_uint32),
        ("slots", ctypes.c_uint32),
        ("part_bytes", ctypes.c_uint64),
        ("smallest", ctypes.c_uint64),
        ("largest", ctypes.c_uint64),
        ("every", ctypes.c_uint32),
        ("aligned_every", ctypes.c_uint32),
        ("per_second", ctypes.c_uint32),
        ("at_once", ctypes.c_uint32),
        ("fill", ctypes.c_int32),
        ("spare_start", ctypes.c_uint32),
        ("only_this", ctypes.c_uint32),
        ("order", ctypes.c_uint32),
        ("parts", Claim * PARTS),
    )


class Error(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("thread", ctypes.c_int32),
        ("address", ctypes.c_uint64),
        ("start", ctypes.c_uint64),
        ("at_exit", ctypes.c_uint32),
        ("frame_count", ctypes.c_uint32),
        ("frames", ctypes.c_uint64 * FRAMES),
    )


class Library(ctypes.Structure):
    _fields_ = (("start", ctypes.c_uint64), ("end", ctypes.c_uint64), ("path", ctypes.c_char * 240))


class SizeClass(ctypes.Structure):
    _fields_ = (
        ("start", ctypes.c_uint64),
        ("slot_pages", ctypes.c_uint32),
        ("slots", ctypes.c_uint32),
        ("first", ctypes.c_uint32),
        ("pad", ctypes.c_uint32),
    )


class Part(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_int32),
        ("active", ctypes.c_uint32),
        ("arena", ctypes.c_uint64),
        ("arena_bytes", ctypes.c_uint64),
        ("fenced", ctypes.c_uint64),
        ("passed", ctypes.c_uint64),
        ("classes", SizeClass * CLASSES),
        ("error", Error),
        ("libraries", Library * LIBRARIES),
        ("problem", ctypes.c_char * 256),
    )


class Slot(ctypes.Structure):
    _fields_ = (
        ("state", ctypes.c_uint32),
        ("made_by", ctypes.c_int32),
        ("freed_by", ctypes.c_int32),
        ("made_frames", ctypes.c_uint32),
        ("freed_frames", ctypes.c_uint32),
        ("pad", ctypes.c_uint32),
        ("start", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("made_ns", ctypes.c_int64),
        ("freed_ns", ctypes.c_int64),
        ("made", ctypes.c_uint64 * FRAMES),
        ("freed", ctypes.c_uint64 * FRAMES),
    )


def part_bytes(slots: int) -> int:
    """Room for one process: its head, and the slots of all classes, each of which has half as many as the last."""
    count, all_slots = slots, 0
    for _ in range(CLASSES):
        all_slots += count
        count = max(count // 2, 1)
    return -(-(PAGE + all_slots * ctypes.sizeof(Slot)) // PAGE) * PAGE


def file_bytes(slots: int) -> int:
    return PAGE + PARTS * part_bytes(slots)
