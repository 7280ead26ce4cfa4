"""The shared memory: same layout on both sides, output read back from the ring in order."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from faultlens.agent import LIBRARY, layout
from faultlens.agent.area import SharedArea, _records


def test_the_layout_is_that_of_the_header(tmp_path: Path) -> None:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    names = {"fl_fault": layout.Fault, "fl_exception": layout.CppThrow, "fl_slot": layout.Slot,
             "fl_handled": layout.Handled, "fl_progress": layout.Progress, "fl_area": layout.Area,
             "fl_output": layout.OutputHeader}  # fmt: skip
    prints = "".join(f'printf("%zu\\n", sizeof(struct {name}));' for name in names)
    fields = "".join(f'printf("%zu\\n", offsetof(struct fl_area, {name}));' for name, *_ in layout.Area._fields_)
    source = f'#include "agent.h"\n#include <stddef.h>\n#include <stdio.h>\nint main(void){{{prints}{fields}}}'
    (tmp_path / "sizes.c").write_text(source)
    subprocess.run(["gcc", f"-I{LIBRARY.parent}", "-o", tmp_path / "sizes", tmp_path / "sizes.c"], check=True)
    numbers = subprocess.run([tmp_path / "sizes"], capture_output=True, text=True).stdout.split()
    expected = [ctypes.sizeof(struct) for struct in names.values()]
    expected += [getattr(layout.Area, name).offset for name, *_ in layout.Area._fields_]
    assert [int(number) for number in numbers] == expected
    header = (LIBRARY.parent / "agent.h").read_text()
    assert int(re.search(r"FL_VERSION (\d+)", header)[1]) == layout.VERSION  # type: ignore[index]


def test_progress_is_found_by_process() -> None:
    area = SharedArea()
    area.area.progress[3].pid = 42
    area.area.progress[3].data[0] = 7
    assert area.progress(42)[:5] == b"\x2a\0\0\0\x07"
    assert area.progress(43) == b""
    assert layout.Area.progress.offset % 4096 == 0  # pages are mapped one by one


def record(pid: int, descriptor: int, data: bytes) -> bytes:
    header = bytes(layout.OutputHeader(pid, descriptor, layout.OUTPUT_MAGIC, len(data), 0))
    return (header + data).ljust((len(header) + len(data) + 7) & ~7, b"\0")


def test_the_ring_gives_whole_records_after_wrapping() -> None:
    stream = b"".join(record(1, 2, b"line %d\n" % number) for number in range(40))
    size = 512
    ring = bytearray(size)
    for position, byte in enumerate(stream):
        ring[position % size] = byte
    lines = [data for _, data in _records(bytes(ring), len(stream))]
    assert lines[-1] == b"line 39\n"
    assert lines == [b"line %d\n" % number for number in range(40 - len(lines), 40)]
    assert len(lines) >= size // 24 - 2


def test_output_is_told_apart_by_process_and_stream() -> None:
    area = SharedArea()
    stream = record(7, 1, b"out") + record(8, 2, b"other") + record(7, 2, b"err\xff")
    area.area.output[: len(stream)] = stream
    area.area.output_head = len(stream)
    assert area.output_tail(7, 2) == "err\\xff"
    assert area.output_tail(7, 1) == "out"
    assert area.output_tail(None, 2) == "othererr\\xff"


def test_garbage_in_the_ring_is_passed_over() -> None:
    assert list(_records(b"\xff" * 4096, 10**9)) == []
