"""The address space of a process, the memory that it used, and the limits that it had."""

from __future__ import annotations

from typing import Literal

from faultlens.records.base import Address, Record


class Mapping(Record, frozen=True):
    start: Address
    end: Address
    permissions: str  # "r-xp"
    offset: int = 0
    path: str | None = None  # None for anonymous memory; "[stack]" and the like as in /proc


class FileState(Record, frozen=True):
    """A mapped file, or one that an exception names, as it was on disk when the process stopped."""

    path: str
    size: int | None = None
    modified: float | None = None
    mapped_end: int = 0  # highest file offset that is mapped
    state: Literal["same", "shorter than mapped", "deleted", "replaced", "missing"] = "same"
    disk_free: int | None = None  # bytes left in its file system


class Library(Record, frozen=True):
    """A native library in the process."""

    path: str
    start: Address
    build_id: str | None = None


class MemoryUse(Record, frozen=True):
    """Sizes in bytes."""

    rss_anonymous: int | None = None
    rss_shared: int | None = None
    rss: int | None = None
    rss_peak: int | None = None
    virtual: int | None = None
    virtual_peak: int | None = None
    swap: int | None = None
    threads: int | None = None
    open_files: int | None = None


class Limit(Record, frozen=True):
    """A resource limit; None means unlimited."""

    soft: int | None
    hard: int | None


class CgroupState(Record, frozen=True):
    """Limits and counters of the control group; the tightest limit up the tree counts."""

    version: Literal[1, 2]
    path: str
    memory_limit: int | None = None
    memory_used: int | None = None
    memory_peak: int | None = None
    memory_failures: int | None = None  # how often the limit was hit
    oom_kills: int | None = None
    pids_limit: int | None = None
    pids_used: int | None = None
    pids_failures: int | None = None


class MachineState(Record, frozen=True):
    memory_total: int | None = None
    memory_available: int | None = None
    shm_size: int | None = None
    shm_free: int | None = None
    cpus: int | None = None
    cpu_model: str | None = None
    cpu_flags: tuple[str, ...] = ()
    kernel: str | None = None
    distribution: str | None = None
