"""/proc/PID/maps: which file an address belongs to, and what became of the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from faultlens.inspection.maps import deleted_paths, file_states, find, libraries, locate, parse_maps
from faultlens.inspection.memory import ProcessMemory
from faultlens.records.crash import Address, Mapping

MAPS = """\
555555554000-555555556000 r--p 00000000 fe:00 1835421                    /usr/bin/python3.11
555555556000-555555600000 r-xp 00002000 fe:00 1835421                    /usr/bin/python3.11
555555600000-555555601000 rw-p 00000000 00:00 0
555555700000-555555800000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000010000 rw-s 00001000 fe:00 77                         /data/a file with spaces.bin (deleted)
7f0000010000-7f0000020000 rw-s 00000000 00:01 2048                       /memfd:pool (deleted)
7f0000030000-7f0000031000 r--p 00000000 fe:00 78                         /data/two\\012lines
this line makes no sense
7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0                          [stack]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
"""


def test_lines_become_mappings() -> None:
    mappings = parse_maps(MAPS)
    assert len(mappings) == 9
    assert mappings[1] == Mapping(
        start=Address(0x555555556000),
        end=Address(0x555555600000),
        permissions="r-xp",
        offset=0x2000,
        path="/usr/bin/python3.11",
    )
    assert mappings[2].path is None
    assert mappings[4].path == "/data/a file with spaces.bin"
    assert mappings[6].path == "/data/two\nlines"
    assert mappings[8].path == "[vsyscall]"


def test_deleted_files_are_told_apart() -> None:
    assert deleted_paths(MAPS) == {"/data/a file with spaces.bin", "/memfd:pool"}


def test_find_knows_the_edges() -> None:
    mappings = parse_maps(MAPS)
    assert find(mappings, 0x555555556000) is mappings[1]
    assert find(mappings, 0x5555555FFFFF) is mappings[1]
    assert find(mappings, 0x555555601000) is None
    assert find(mappings, 0) is None
    assert find((), 5) is None


def test_offset_counts_from_the_beginning_of_the_image() -> None:
    place = locate(parse_maps(MAPS), 0x555555556789)
    assert place is not None
    assert (place.path, place.base, place.offset) == ("/usr/bin/python3.11", 0x555555554000, 0x2789)
    assert locate(parse_maps(MAPS), 0x555555700000) is None  # the heap is no file


def test_own_libraries_have_build_ids() -> None:
    mappings = parse_maps(Path("/proc/self/maps").read_text())
    with ProcessMemory(os.getpid()) as memory:
        found = libraries(mappings, memory)
    libc = next(each for each in found if each.path.endswith("libc.so.6"))
    assert libc.build_id
    assert len(libc.build_id) == 40
    assert [each.build_id for each in libraries(mappings)] == [each.build_id for each in found]


@pytest.mark.parametrize(
    ("size", "state"), [(8192, "same"), (4097, "same"), (100, "shorter than mapped"), (None, "missing")]
)
def test_a_data_file_is_compared_with_the_disk(tmp_path: Path, size: int | None, state: str) -> None:
    path = tmp_path / "data.bin"
    if size is not None:
        path.write_bytes(b"x" * size)
    (found,) = file_states([mapping(path, 8192)])
    assert (found.state, found.mapped_end, found.size) == (state, 8192, size)


def test_a_deleted_file_whose_name_is_taken_was_replaced(tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(b"x" * 8192)
    assert file_states([mapping(path, 8192)], {str(path)})[0].state == "replaced"
    path.unlink()
    assert file_states([mapping(path, 8192)], {str(path)})[0].state == "deleted"


def test_unchanged_libraries_and_devices_are_not_listed() -> None:
    libc = next(each for each in _own_mappings() if (each.path or "").endswith("libc.so.6"))
    null = mapping(Path("/dev/null"), 4096)
    assert file_states([libc, null]) == ()


def mapping(path: Path, size: int) -> Mapping:
    return Mapping(start=Address(0x10000), end=Address(0x10000 + size), permissions="rw-s", path=str(path))


def _own_mappings() -> tuple[Mapping, ...]:
    return parse_maps(Path("/proc/self/maps").read_text())
