"""The guarding allocator: a C library preloaded into a program, whose blocks nobody leaves unnoticed, and its table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from faultlens.guard_alloc import layout
from faultlens.guard_alloc.table import Allocation, Found, State, found, live_blocks, read, state

__all__ = ["LIBRARY", "Allocation", "Found", "State", "environment", "found", "live_blocks", "prepare", "read", "state"]

LIBRARY = Path(__file__).with_name("libfaultlens_fence.so")
WRAPPED = frozenset(
    ("malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign", "malloc_usable_size")
)
SLOTS = 4096  # of the smallest blocks; twice as many in all
LARGEST = 64 << 20


def environment(
    table: Path,
    every: int,
    aligned_every: int | None = None,
    *,
    slots: int = SLOTS,
    smallest: int = 1,
    largest: int = LARGEST,
    fill: int | None = None,
    spare_start: bool = False,
    base: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """Variables for a program whose allocations are guarded, one of `every` (0: none); makes the table anew.

    `aligned_every` is for posix_memalign and its like, which tensors come from (None: the same). `fill`: new blocks are
    filled with this byte. `spare_start`: what TensorFlow allocates before the user's own libraries are loaded is left
    alone, but for tensors. Blocks outside of the sizes are left alone, and so are all while no slot is free. A slot in
    use costs a page or two; blocks of up to `largest` take that much address space, many times."""
    prepare(
        table, every, aligned_every, slots=slots, smallest=smallest, largest=largest, fill=fill, spare_start=spare_start
    )
    return variables(str(table), base)


def variables(table: str, base: Mapping[str, str]) -> dict[str, str]:
    """The library behind those that are preloaded already, as the agent does it."""
    before = base.get("LD_PRELOAD", "")
    return {"LD_PRELOAD": f"{before}:{LIBRARY}" if before else str(LIBRARY), "FAULTLENS_FENCE": table}


def prepare(
    table: Path | int,
    every: int,
    aligned_every: int | None = None,
    *,
    per_second: int = 0,
    at_once: int = 0,
    slots: int = SLOTS,
    smallest: int = 1,
    largest: int = LARGEST,
    fill: int | None = None,
    spare_start: bool = False,
    only_this: bool = False,
) -> None:
    """An empty table, as a file of holes. In the long run not more than `per_second` blocks of either kind are guarded
    (0: without limit), but `at_once` may be. `only_this`: processes that the program starts are spared."""
    head = layout.File(
        magic=layout.MAGIC,
        version=layout.VERSION,
        slots=slots,
        part_bytes=layout.part_bytes(slots),
        smallest=smallest,
        largest=largest,
        every=every,
        aligned_every=every if aligned_every is None else aligned_every,
        per_second=per_second,
        at_once=at_once,
        fill=-1 if fill is None else fill,
        spare_start=spare_start,
        only_this=only_this,
    )
    with open(table, "wb", closefd=not isinstance(table, int)) as file:
        file.truncate(0)
        file.truncate(layout.file_bytes(slots))
        file.write(bytes(head))
