"""What holds the memory of a program that has nearly used it up: only what was seen, and asked for once."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from faultlens.inspection.census import Outside
from faultlens.records.crash import Sample
from faultlens.supervise.heap_snapshots import HeapSnapshots
from faultlens.supervise.near_limit import NearLimit
from faultlens.supervise.oom_stop import StopAt
from faultlens.supervise.retained import retained, retained_at
from faultlens.supervise.retainers import HeapSnapshot, Inside, Large
from faultlens.supervise.timeline import Timeline
from faultlens.system.cgroup import Cgroup, Room
from faultlens.text.sizes import GIB, MIB

ROOM = Room(limit=2 * GIB, used=1800 * MIB, where="/sys/fs/cgroup/job/memory.max")
OUTSIDE = Outside(
    memory={"heap": 300 * MIB, "mappings": 1300 * MIB},
    mappings=100,
    reserved=0,
    files=Counter(),
    threads=Counter(),
    shared={},
    libraries=(),
)
IMAGES = Large("ndarray", "uint8[9000,224,224]", 430 * MIB, owner="`images` (global of train.py)", file="/ada/train.py")
HISTORY = Large("list", "EagerTensor float32[256,1000]", 300 * MIB, length=307)
INSIDE = Inside(
    number=1,
    time=1050.0,
    steps=40,
    largest=[IMAGES, HISTORY],
    arrays=430 * MIB,
    tensors=(310, 301 * MIB),
    variables=(12, 20 * MIB),
    malloc=(800 * MIB, MIB),
)


def snapshot(inside: Inside | None = INSIDE) -> HeapSnapshot:
    return HeapSnapshot(49.0, 40, OUTSIDE, inside, ROOM)


def texts(inside: Inside | None) -> list[str]:
    return [holder.text for holder in retained(snapshot(inside))]


def test_the_largest_first_and_no_owner_that_was_not_seen() -> None:
    assert texts(INSIDE) == [
        "the array `images` (global of train.py): uint8[9000,224,224], 430 MiB",
        "the list whose owner was not seen: 307 EagerTensors of float32[256,1000], about 300 MiB in all",
    ]


def test_many_small_variables_are_told_as_one() -> None:
    assert texts(replace(INSIDE, variables=(412, 250 * MIB)))[-1] == "all 412 tf.Variables together: 250 MiB"


def test_native_memory_that_python_does_not_hold() -> None:
    native = replace(INSIDE, malloc=(1500 * MIB, 0), caches=1)
    assert texts(native)[0] == (
        "the native heap: 749 MiB in use that no Python object was seen to hold; Dataset.cache (1) keeps what it has"
        " read there"
    )
    assert not any("native" in text for text in texts(replace(native, largest=[HISTORY], arrays=1100 * MIB)))


def test_a_program_that_does_not_answer_is_seen_from_outside() -> None:
    assert texts(None) == ["heap and anonymous mappings: 1.6 GiB; what is in them could not be seen"]
    record = retained_at(snapshot(None), started=1000.0)
    assert record and not record.inside and record.seconds == 49.0


def test_the_moment_is_that_of_the_answer() -> None:
    record = retained_at(snapshot(), started=1000.0)
    assert record and (record.seconds, record.steps, record.limit_of) == (50.0, 40, "control group")


# ------------------------------------------------------------------------------------------- when it is asked


class Group:
    """A control group in a folder, and the snapshots of this very process."""

    def __init__(self, folder: Path, stop_at: StopAt | None = None) -> None:
        (folder / "cgroup.procs").touch()
        (folder / "memory.max").write_text(str(GIB))
        (folder / "memory.swap.max").write_text("0")
        self.folder = folder
        self.timeline = Timeline(os.getpid(), Cgroup(2, folder, None), True)
        self.snapshots = HeapSnapshots(self.timeline, None)
        self.others_ask = False
        self.near = NearLimit(self.timeline, self.snapshots, stop_at, lambda: self.others_ask, pytest.fail)

    def is_asked(self, seconds: float, used: int, files: int = 0) -> bool:
        (self.folder / "memory.current").write_text(str(used + files))
        (self.folder / "memory.stat").write_text(f"active_file {files}\ninactive_file 0\n")
        self.timeline.samples.append(Sample(seconds=seconds, rss=used, cgroup_used=used + files))
        self.snapshots.best = None
        self.near.look(seconds)
        self.near.look(seconds)  # it has answered
        return self.snapshots.best is not None


def test_it_is_asked_once_even_if_it_stays_there_for_hours(tmp_path: Path) -> None:
    group = Group(tmp_path)
    assert not any(group.is_asked(second / 10, second * 8 * MIB) for second in range(100))
    assert group.is_asked(10.1, 880 * MIB)
    assert not any(group.is_asked(hour * 3600, 900 * MIB) for hour in range(1, 10))


def test_files_in_memory_are_no_reason(tmp_path: Path) -> None:
    group = Group(tmp_path)
    assert not any(group.is_asked(second, 300 * MIB, files=700 * MIB) for second in range(100))


def test_it_is_not_asked_if_the_snapshot_may_be_too_much(tmp_path: Path) -> None:
    assert not Group(tmp_path).is_asked(1.0, 1000 * MIB)


def test_it_is_asked_before_it_will_be_asked_to_end(tmp_path: Path) -> None:
    assert Group(tmp_path, StopAt(share=0.5)).is_asked(1.0, 450 * MIB)


def test_between_the_two_snapshots_of_a_leak_it_is_not_asked(tmp_path: Path) -> None:
    group = Group(tmp_path)
    group.others_ask = True
    assert not group.is_asked(1.0, 900 * MIB)
    group.others_ask = False
    assert group.is_asked(2.0, 900 * MIB)
