"""The fence's table, as a program that damages memory may leave it."""

from __future__ import annotations

import ctypes
import random
from pathlib import Path
from typing import Any

import pytest

from faultlens import guard_alloc
from faultlens.diagnosis.evidence.fenced import facts_of, place_in
from faultlens.errors import FaultlensError
from faultlens.guard_alloc import layout
from faultlens.guard_alloc.blocks import misuse_of
from faultlens.guard_alloc.hunting import HuntOptions, read_options
from faultlens.records.crash import Address, FencedBlock, Frame, Misuse

ARENA = 0x7F00_0000_0000
SLOTS = 8
PID = 4251


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A process with two classes of slots: a live block in the second slot of the first, a freed one in the third."""
    path = tmp_path / "table"
    guard_alloc.prepare(path, 1, slots=SLOTS)
    part = layout.Part(pid=PID, active=1, arena=ARENA, arena_bytes=1 << 30, fenced=2)
    part.classes[0] = layout.SizeClass(start=ARENA, slot_pages=1, slots=SLOTS, first=0)
    part.classes[1] = layout.SizeClass(start=ARENA + 2 * SLOTS * layout.PAGE, slot_pages=4, slots=4, first=SLOTS)
    live = layout.Slot(state=layout.LIVE, start=end_of_slot(1) - 112, size=100, made_by=7, made_frames=2)
    live.made[0], live.made[1] = 0x1111, 0x2222
    freed = layout.Slot(
        state=layout.FREED,
        start=end_of_slot(2) - 64,
        size=64,
        made_by=7,
        freed_by=8,
        freed_frames=1,
        freed_ns=5 * 10**9,
    )
    freed.freed[0] = 0x3333
    with path.open("r+b") as file:
        head = layout.File.from_buffer_copy(path.read_bytes())
        head.parts[3] = layout.Claim(pid=PID, order=1)
        file.write(bytes(head))
        offset = layout.PAGE + 3 * layout.part_bytes(SLOTS)
        file.seek(offset)
        file.write(bytes(part))
        for number, slot in ((1, live), (2, freed)):
            file.seek(offset + layout.PAGE + number * ctypes.sizeof(layout.Slot))
            file.write(bytes(slot))
    return path


def end_of_slot(number: int) -> int:
    return ARENA + (number + 1) * 2 * layout.PAGE


def test_the_block_that_an_address_is_in(table: Path) -> None:
    found = guard_alloc.read(table, end_of_slot(1) - 100)
    assert found is not None
    assert (found.size, found.state, found.offset, found.made, found.made_by) == (100, "live", 12, (0x1111, 0x2222), 7)
    assert found.freed_by is None


@pytest.mark.parametrize(
    ("address", "size", "offset"),
    [
        (end_of_slot(1), 100, 112),  # the guard page behind
        (end_of_slot(1) + layout.PAGE - 1, 100, 112 + layout.PAGE - 1),  # the next one is freed
        (end_of_slot(0), 100, 112 - 2 * layout.PAGE),  # the guard page before
        (end_of_slot(2) - 1, 64, 63),
    ],
)
def test_a_guard_belongs_to_a_block_beside_it(table: Path, address: int, size: int, offset: int) -> None:
    found = guard_alloc.read(table, address, PID)
    assert found is not None and (found.size, found.offset) == (size, offset)


def test_a_freed_block_knows_who_freed_it(table: Path) -> None:
    found = guard_alloc.read(table, end_of_slot(2) - 64, PID)
    assert found is not None
    assert (found.state, found.freed, found.freed_by, found.freed_at) == ("freed", (0x3333,), 8, 5.0)


@pytest.mark.parametrize("address", [0, ARENA - 1, ARENA + (1 << 30), end_of_slot(5), 2**64 - 1])
def test_other_addresses_are_nobodys(table: Path, address: int) -> None:
    assert guard_alloc.read(table, address, PID) is None


def test_a_child_without_a_part_has_its_parents(table: Path) -> None:
    assert guard_alloc.read(table, end_of_slot(1) - 100, PID + 1) is not None
    assert guard_alloc.state(table, PID + 1) is None


def test_only_live_blocks_are_listed(table: Path) -> None:
    assert [block.size for block in guard_alloc.live_blocks(table, PID)] == [100]


def test_a_process_with_a_part_of_its_own_has_no_blocks_of_others(table: Path) -> None:
    with table.open("r+b") as file:
        head = layout.File.from_buffer_copy(table.read_bytes())
        head.parts[4] = layout.Claim(pid=PID + 1, order=2)
        file.write(bytes(head))
    file_of_other = layout.PAGE + 4 * layout.part_bytes(SLOTS)
    with table.open("r+b") as file:
        file.seek(file_of_other)
        file.write(bytes(layout.Part(pid=PID + 1, active=1, arena=ARENA, arena_bytes=1 << 30)))
    assert guard_alloc.read(table, end_of_slot(1) - 100, PID) is not None
    assert guard_alloc.read(table, end_of_slot(1) - 100, PID + 1) is None
    assert guard_alloc.read(table, end_of_slot(1) - 100, PID + 2) is not None  # it has allocated nothing yet


@pytest.mark.parametrize(
    ("state", "offset", "misuse"),
    [
        ("freed", 0, "use after free"),
        ("freed", 40, None),
        ("freed", -4060, None),
        ("live", -4, "underflow"),
        ("live", 40, "overflow"),
        ("live", 8, None),
        ("live", -(1 << 20), None),
        ("live", 1 << 20, None),
    ],
)
def test_only_an_address_near_a_block_misuses_it(state: Any, offset: int, misuse: str | None) -> None:
    assert misuse_of(guard_alloc.Allocation(ARENA, 40, state, offset, (), 1, 0.0)) == misuse


@pytest.mark.parametrize("kept", [0, 1, 100, layout.PAGE, layout.PAGE + 10, 3 * layout.PAGE])
def test_a_table_cut_short(table: Path, kept: int) -> None:
    table.write_bytes(table.read_bytes()[:kept])
    everything(table)


@pytest.mark.parametrize("seed", range(60))
def test_a_garbled_table(table: Path, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(table.read_bytes())
    heads = [0, layout.PAGE + 3 * layout.part_bytes(SLOTS), 2 * layout.PAGE + 3 * layout.part_bytes(SLOTS)]
    for _ in range(chance.choice((1, 10, 200))):
        place = chance.choice(heads) + chance.randrange(16, 1200)
        data[place] = chance.choice((0, 0xFF, 0x7F, chance.randrange(256)))
    table.write_bytes(data)
    everything(table)


def test_no_table_at_all(tmp_path: Path) -> None:
    everything(tmp_path / "nothing")
    everything(tmp_path)


def everything(table: Path) -> None:
    for pid in (PID, None):
        for address in (ARENA, end_of_slot(1) - 100, end_of_slot(2), ARENA + (1 << 29), 2**64 - 1):
            found = guard_alloc.read(table, address, pid)
            assert found is None or len(found.made) <= layout.FRAMES
        guard_alloc.found(table, pid)
    guard_alloc.state(table, PID)
    assert sum(1 for _ in guard_alloc.live_blocks(table, PID)) < 1000


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("fence", HuntOptions()),
        ("tensors", HuntOptions(tensors=True)),
        ("malloc,fence", HuntOptions(malloc=True)),
        ("all", HuntOptions(everything=True, tensors=True)),
    ],
)
def test_rungs(text: str, options: HuntOptions) -> None:
    assert read_options(text) == options


@pytest.mark.parametrize("text", ["", "asan", "fence,", "ALL"])
def test_rungs_that_are_not_there(text: str) -> None:
    with pytest.raises(FaultlensError):
        read_options(text)


@pytest.mark.parametrize(
    ("misuse", "offset", "words"),
    [
        ("overflow", 400, "right behind the end of a block of 400 bytes"),
        ("overflow", 401, "1 byte behind the end of a block of 400 bytes"),
        ("underflow", -8, "8 bytes before a block of 400 bytes"),
        ("use after free", 3, "a block of 400 bytes that had been freed"),
        ("invalid free", 16, "an address 16 bytes into a block of 400 bytes"),
    ],
)
def test_where_it_was_touched(misuse: Misuse, offset: int, words: str) -> None:
    block = FencedBlock(misuse=misuse, seen="access", start=Address(ARENA), size=400, offset=offset)
    assert place_in(block) == words


def test_the_users_code_and_the_kernel_come_first_in_a_history() -> None:
    tensorflow = "/venv/lib/python3.11/site-packages/tensorflow/libtensorflow_framework.so.2"
    frames = tuple(
        Frame(kind="native", function=name, library=library, file=file, line=line)
        for name, library, file, line in [
            ("tsl::port::AlignedMalloc(unsigned long)", tensorflow, None, None),
            ("tensorflow::Tensor::Tensor(int)", tensorflow, None, None),
            ("MineOp::Compute(tensorflow::OpKernelContext*)", "/home/me/op.so", "/home/me/op.cc", 12),
        ]
    )
    block = FencedBlock(
        misuse="overflow", seen="access", start=Address(ARENA), size=4, offset=4, made=frames, made_by=9
    )
    told = [fact for fact, _ in facts_of(block)]
    assert told[1] == "it was allocated by MineOp::Compute (op.cc:12) on thread 9"
    others = FencedBlock(misuse="overflow", seen="access", start=Address(ARENA), size=4, offset=4, made=frames[:2])
    assert "AlignedMalloc" in facts_of(others)[1][0]
