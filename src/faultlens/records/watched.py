"""What was seen of a program while it lived: its memory over time, what grew, and what held it."""

from __future__ import annotations

from typing import Literal

from faultlens.records.base import Record
from faultlens.records.threads import Frame


class Sample(Record, frozen=True):
    """One point of the memory timeline."""

    seconds: float  # since the start
    rss_anonymous: int | None = None
    rss: int | None = None
    rss_shared: int | None = None
    cgroup_used: int | None = None
    shm_used: int | None = None  # of /dev/shm, by whomever
    gpu_used: int | None = None  # by this program, on all GPUs
    threads: int | None = None
    open_files: int | None = None
    steps: int | None = None  # made since the start, where the program's loop is known


class Activity(Record, frozen=True):
    """What a process did between two looks, the second at its time limit. Sizes in bytes."""

    limit: float  # of the time, in seconds since the start
    seconds: float  # between the looks
    cpu: float  # seconds of CPU time, of all threads
    read: int | None = None  # by system calls and over TCP
    written: int | None = None
    steps: int | None = None  # made, where the program's loop is known
    idle: float | None = None  # seconds before the limit in which it did next to nothing …
    quiet: float | None = None  # … and in which it wrote nothing at all


LimitOf = Literal["control group", "machine", "program"]  # program: the size that the user named for it


class StopRequest(Record, frozen=True):
    """faultlens itself asked the program to end (SIGTERM), before memory would have run out. Sizes in bytes."""

    seconds: float  # since the start
    used: int
    limit: int
    limit_of: LimitOf


GrowthKind = Literal["memory", "shared memory", "GPU memory", "open files", "threads"]


HolderKind = Literal[
    "python objects", "tensors", "tf variables", "graph traces", "native heap", "mappings", "shared memory",
    "open files", "threads",
]  # fmt: skip


class Holder(Record, frozen=True):
    """Something in the program that holds memory, or the like; of a growth, what grew between two looks at it."""

    kind: HolderKind
    text: str  # "the list `history` of train.py has 9,000 items, 40 more with each step"
    count: int | None = None  # how many there were; of a growth, how many more
    size: int | None = None  # bytes, in the same way
    place: Frame | None = None  # the line that makes them, or that owns them


class Growth(Record, frozen=True):
    """Something that grew steadily while the program did the same over and over."""

    what: GrowthKind
    seconds: float  # since the start, when it was seen
    before: int  # bytes, or a number of them, after the warm-up …
    after: int  # … and when it was last seen
    per_second: float
    per_step: float | None = None
    since: int | None = None  # steps that were made before
    steps: int | None = None  # over how many it was watched
    limit: int | None = None  # where it ends
    steps_left: int | None = None  # until then, from the last sample
    seconds_left: float | None = None
    holders: tuple[Holder, ...] = ()  # what grew, the largest first; empty where it could not be seen


class Held(Record, frozen=True):
    """What held the memory when the program was last looked at: something grew, or it was nearly used up. Sizes in
    bytes."""

    seconds: float  # since the start
    used: int
    limit: int
    limit_of: Literal["control group", "machine"]
    inside: bool = True  # the program itself was asked; it answers between two steps or calls. False: seen from outside
    steps: int | None = None  # made until then
    holders: tuple[Holder, ...] = ()  # the largest first


class LastLines(Record, frozen=True):
    """Where the program stood when memory was nearly used up, seen from outside. Sizes in bytes."""

    seconds: float  # since the start
    used: int
    limit: int
    frames: tuple[Frame, ...]  # the innermost of Python
