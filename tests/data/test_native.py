"""The C code that passes over records: it says what Python says, and stays inside of its buffer."""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess
from pathlib import Path

import google_crc32c
import pytest

from faultlens.data import native
from faultlens.data.native import NativeWalker, PythonWalker
from faultlens.data.native.layout import StateC
from tfrecords import example, file_of, sequence_example

SOURCE = Path(native.__file__).parent
needs_library = pytest.mark.skipif(not native.LIBRARY.exists(), reason="there was no C compiler at the installation")


@needs_library
def test_it_is_used_where_it_was_built() -> None:
    assert isinstance(native.walker(), NativeWalker)
    library = ctypes.CDLL(str(native.LIBRARY))
    library.fl_size_of_state.restype = ctypes.c_uint64
    assert library.fl_size_of_state() == ctypes.sizeof(StateC)


@needs_library
def test_checksums_of_all_lengths() -> None:
    seed = random.Random(1)
    walker = native.walker()
    for size in (*range(1, 600), 4096 * 3, 12_287, 12_289, 100_003):
        data = bytearray(seed.randbytes(size))
        assert walker.crc(data, 0, size) == google_crc32c.value(bytes(data))
        middle = seed.randrange(1, size + 1)
        before = walker.crc(data, 0, middle)
        if middle < size:
            assert walker.crc(data, middle, size, before) == google_crc32c.value(bytes(data))


@needs_library
def test_c_and_python_stop_at_the_same_places() -> None:
    seed = random.Random(2)
    data = file_of(seed.randbytes(seed.choice((0, 5, 300))) for _ in range(40))
    for _ in range(200):
        damaged = bytearray(data)
        damaged[seed.randrange(len(data))] ^= 1 << seed.randrange(8)
        size = seed.randrange(len(data) + 1)
        told = []
        for walker in (native.walker(), PythonWalker()):
            state = StateC()
            state.limit = seed.choice((1 << 62, 2000)) if not told else told[0][-1]
            used = walker.walk(damaged, size, 0, state)
            sizes = list(state.sizes)
            found = walker.find(damaged, size, min(used + 1, size), 1 << 30)
            told.append((used, state.stopped, state.record, sizes, found, state.limit))
        assert told[0] == told[1]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_it_reads_nothing_outside_of_its_buffer(tmp_path: Path) -> None:
    """Under AddressSanitizer and UBSan, over Examples that were damaged and framed again."""
    seeds = [
        example(image=b"\xff\xd8\xff" + bytes(40), label=[1, -1, 300], x=[1.0, float("nan")]),
        sequence_example({"id": b"a"}, {"steps": [[1, 2], [3]], "frames": [b"BM" + bytes(60)]}),
        example(**{f"feature {number}": [number] for number in range(80)}),
        b"",
    ]
    names = []
    for number, data in enumerate(seeds):
        (tmp_path / f"{number}.bin").write_bytes(data)
        names.append(str(tmp_path / f"{number}.bin"))
    program = tmp_path / "fuzz"
    built = subprocess.run(
        ["gcc", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I", str(SOURCE)]
        + [str(Path(__file__).with_name("fuzz_records.c")), "-o", str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode and "cannot find" in built.stderr:
        pytest.skip("gcc has no sanitizers here")
    assert not built.returncode, built.stderr
    ran = subprocess.run([str(program), *names], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "examples 0 " not in ran.stdout, "all were refused: nothing was tried"
