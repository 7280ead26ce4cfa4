"""Whose memory was it? Programs that lose a pointer, as people write them, and what they are told."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import PROGRAMS, Runner

from faultlens.diagnosis.rank import diagnose
from faultlens.records.diagnosis import Diagnosis


class Program(NamedTuple):
    cause: str
    line: int
    code: str
    told: tuple[str, ...] = ()  # in the title or the first advice
    never: tuple[str, ...] = ()


C = """\
import ctypes
lib = ctypes.CDLL("./liblender.so")
P, I, D = ctypes.c_void_p, ctypes.c_int, ctypes.c_double
"""

PROGRAMS_IN_C = {
    "freed_by_both": Program(
        "double-free-buffer",
        12,
        C
        + """\
libc = ctypes.CDLL(None)
lib.reader_open.restype = lib.reader_next.restype = P
lib.reader_next.argtypes = lib.reader_close.argtypes = libc.free.argtypes = [P]

reader = lib.reader_open()
line = lib.reader_next(reader)
print(ctypes.string_at(line))
libc.free(line)
lib.reader_close(reader)
""",
        ("free at main.py:11", "reader_close at main.py:12"),
    ),
    "callback_never_set": Program(
        "native-bad-function-pointer",
        8,
        C
        + """\
lib.subscribe.restype = P
lib.emit.argtypes = [P, I]

subscription = lib.subscribe(b"loss")
lib.emit(subscription, 3)
""",
        ("emit of liblender.so", "no address"),
        ("had been freed", "outside of its memory"),
    ),
    "structure_laid_out_otherwise": Program(
        "wild-pointer-passed",
        11,
        C
        + """\


class Image(ctypes.Structure):
    _fields_ = [("width", I), ("height", I), ("pixels", P), ("stride", ctypes.c_int64)]

pixels = ctypes.create_string_buffer(3072)
image = Image(64, 48, ctypes.addressof(pixels), 64)
print(lib.image_sum(ctypes.byref(image)))
""",
        ("`image`", "Image", "_fields_"),
        ("null",),
    ),
    "list_walked_while_freed": Program(
        "native-use-after-free",
        12,
        C
        + """\
lib.cache_new.restype = P
lib.cache_put.argtypes = [P, ctypes.c_long, D]
lib.cache_evict.argtypes = [P, ctypes.c_long]

cache = lib.cache_new()
for key in range(40):
    lib.cache_put(cache, key, 0.5)

lib.cache_evict(cache, 1)
""",
        ("had been freed",),
        ("Tensor",),
    ),
    "name_over_pointer": Program(
        "native-heap-overflow",
        11,
        C
        + """\
lib.layer_new.restype = P
lib.layer_rename.argtypes = [P, ctypes.c_char_p]
lib.layer_norm.argtypes = [P]
lib.layer_norm.restype = ctypes.c_float

layer = lib.layer_new(64)
lib.layer_rename(layer, b"block_4_expand_depthwise")
print(lib.layer_norm(layer))
""",
        ("the text 'epthwise'",),
        ("had been freed",),
    ),
    "numbers_over_pointer": Program(
        "native-heap-overflow",
        9,
        C
        + """\
lib.filter_new.restype = P
lib.filter_step.argtypes = [P, ctypes.c_float]
taps = (ctypes.c_float * 10)(*[0.125] * 10)
low_pass = P(lib.filter_new())
lib.filter_taps(low_pass, taps, 10)
print(lib.filter_step(low_pass, 1.0))
""",
        ("the numbers 0.125 and 0.125",),
    ),
    "table_never_filled": Program(
        "native-null-dereference",
        7,
        C
        + """\
lib.table_new.restype = P
lib.table_get.argtypes = [P, ctypes.c_long, ctypes.c_long]
table = lib.table_new(10)
print(lib.table_get(table, 7, 3))
""",
        ("null pointer",),
    ),
    "bytes_freed": Program(
        "allocator-mismatch",
        9,
        C
        + """\
libc = ctypes.CDLL(None)
lib.describe.restype = ctypes.c_char_p

def describe(n):
    result = lib.describe(n)
    libc.free(result)
    return result

print(describe(3))
""",
        ("describe.restype = ctypes.c_void_p",),
    ),
    "entries_given_away": Program(
        "native-use-after-free",
        14,
        C
        + """\

class Entry(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_long)]

def bind(table):
    entries = (Entry * len(table))(*[Entry(key.encode(), value) for key, value in table.items()])
    lib.kv_bind(entries, len(entries))

bind({f"feature_{i}": i for i in range(40000)})

print(lib.kv_find(b"feature_39999"))
""",
        ("`entries`", "kv_bind at main.py:10"),
        ("Tensor",),
    ),
    "damage_found_late": Program(
        "native-heap-overflow",
        10,
        C
        + """\
lib.pad_new.restype = P
lib.pad_fill.argtypes = [P, I]
rows = [lib.pad_new(510) for _ in range(50)]
for row in rows:
    lib.pad_fill(row, 510)

names = [bytearray(700 + i) for i in range(20000)]
""",
        ("run it under --hunt",),
        ("MALLOC_CHECK_",),
    ),
}

PROGRAMS_WITH_NUMPY = {
    "array_freed_by_hand": Program(
        "double-free-buffer",
        15,
        """\
import ctypes
import numpy as np
libc = ctypes.CDLL(None)
libc.free.argtypes = [ctypes.c_void_p]

def checksum(batch):
    pointer = batch.ctypes.data
    total = float(batch.sum())
    libc.free(pointer)
    return total

def main():
    batch = np.ones((512, 512), dtype=np.float32)
    print(checksum(batch))
    del batch

main()
""",
        ("free at main.py:9", "`batch`", "NumPy owns"),
    ),
    "buffer_of_the_last_call": Program(
        "dangling-buffer",
        12,
        C
        + """\
import numpy as np
lib.decode_frame.restype = ctypes.POINTER(ctypes.c_float)

def frame(samples):
    data = lib.decode_frame(samples)
    return np.ctypeslib.as_array(data, shape=(samples,))

first, second = frame(3_000_000), frame(30_000_000)
print(first.mean())
""",
        ("`first`", "decode_frame", "copy()"),
    ),
    "resized_under_a_view": Program(
        "dangling-buffer",
        9,
        """\
import numpy as np

def tail(log):
    return log[-1000:]

log = np.zeros(2_000_000)
last = tail(log)
log.resize(10, refcheck=False)
print(last.sum())
""",
        ("`last`", "resize at main.py:8", "refcheck"),
    ),
    "segment_that_was_local": Program(
        "mapping-closed",
        12,
        """\
from multiprocessing import shared_memory
import numpy as np

class Store:
    def __init__(self, rows):
        segment = shared_memory.SharedMemory(create=True, size=rows * 8)
        self.table = np.ndarray((rows,), dtype=np.int64, buffer=segment.buf)
        segment.unlink()

def train(store):
    for step in range(3):
        store.table += step

train(Store(200000))
""",
        ("`store.table`",),
    ),
}

PROGRAMS_OF_OTHERS = {
    "copied_with_what_it_owns": Program(
        "native-double-free",
        4,
        """\
import ctypes
lib = ctypes.CDLL("./libsharer.so")
for size in (64, 128, 256):
    lib.pool_add(size)
lib.pool_clear()
""",
        ("Buffer::~Buffer of libsharer.so", "Buffer(const Buffer&) = delete"),
    ),
    "capsule_consumed_twice": Program(
        "native-double-free",
        7,
        """\
import capsules

def score(n):
    capsule = capsules.export_zeros(n)
    return capsules.total(capsule)

print(score(100))
""",
        ("used_dltensor",),
    ),
    "weights_not_kept": Program(
        "native-use-after-free",
        8,
        """\
import array
import capsules

def configure():
    capsules.set_weights(array.array("d", [0.5]) * 400_000)

configure()
print(capsules.score())
""",
        ("score of capsules",),
        ("Tensor",),
    ),
}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("gcc") or not shutil.which("g++"):
        pytest.skip("needs gcc and g++")
    folder = tmp_path_factory.mktemp("memory")
    include = sysconfig.get_paths()["include"]
    for compiler, source, library in (
        ("gcc", "lender.c", "liblender.so"),
        ("g++", "sharer.cc", "libsharer.so"),
        ("gcc", "capsules.c", f"capsules{sysconfig.get_config_var('EXT_SUFFIX')}"),
    ):
        if source == "capsules.c" and not (Path(include) / "Python.h").exists():
            continue
        flags = ["-O2", "-g", "-w", "-shared", "-fPIC", "-pthread", f"-I{include}"]
        words = [compiler, *flags, "-o", folder / library, PROGRAMS / "memory" / source]
        subprocess.run(words, check=True, timeout=120)
    return folder


def judged(run: Runner, built: Path, folder: Path, program: Program) -> Diagnosis:
    for library in built.iterdir():
        shutil.copy(library, folder)
    if "import capsules" in program.code and not list(folder.glob("capsules*")):
        pytest.skip("needs Python.h")
    (folder / "main.py").write_text(program.code)
    return diagnose(run([sys.executable, "main.py"]).died).diagnoses[0]


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(program, id=name)
        for name, program in (PROGRAMS_IN_C | PROGRAMS_WITH_NUMPY | PROGRAMS_OF_OTHERS).items()
    ],
)
def test_the_owner_is_told(run: Runner, built: Path, tmp_path: Path, program: Program) -> None:
    if "numpy" in program.code:
        pytest.importorskip("numpy")
    found = judged(run, built, tmp_path, program)
    first = found.fixes[0]
    told = "\n".join((found.title, first.title, first.detail))
    assert found.cause == program.cause, told
    assert found.location is not None and found.location.line == program.line
    for words in program.told:
        assert words in told
    for words in program.never:
        assert words not in told
