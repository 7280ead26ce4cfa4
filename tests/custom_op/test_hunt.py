"""`faultlens run --hunt`: heap damage that nobody notices, caught in the act; healthy programs that notice nothing."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from faultlens import guard_alloc
from faultlens.records import report_file
from faultlens.records.crash import FencedBlock, Frame
from faultlens.records.report_file import Report

HERE = Path(__file__).parent
PAGE = 4096
CALL = """
import ctypes, sys
function = getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])
function.argtypes = [ctypes.c_size_t]
for _ in range(int(sys.argv[4])):
    function(int(sys.argv[3]))
print("finished")
"""
FREED_BY_PYTHON = """
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
block = libc.malloc(1000)
libc.free(block)
"""
HEALTHY = """
import os, subprocess, sys, threading
import numpy as np

def work(number):
    rng = np.random.default_rng(number)
    rows = [rng.normal(size=rng.integers(1, 3000)) for _ in range(300)]
    return sum(float(row.sum()) for row in rows)

sums = {}
threads = [threading.Thread(target=lambda n=n: sums.update({n: work(n)})) for n in range(4)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
child = os.fork()
if not child:
    os._exit(7 if work(0) == sums[0] else 8)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), sorted(sums.items()))
code = "print(sum(len(bytes(n)) for n in range(3000)))"
print(subprocess.run([sys.executable, "-c", code], capture_output=True).stdout)
sys.exit(3)
"""

pytestmark = pytest.mark.skipif(not guard_alloc.LIBRARY.exists(), reason="the fence was not built")


class Ended(NamedTuple):
    status: int
    stdout: str
    stderr: str
    report: Report

    @property
    def block(self) -> FencedBlock:
        hunt = self.report.crash.hunt
        assert hunt and hunt.block, self.stderr
        return hunt.block

    @property
    def verdict(self) -> tuple[str, str]:
        best = self.report.diagnoses[0]
        return best.cause, best.title


def run(folder: Path, *words: str | Path, hunt: str = "all", **environment: str) -> Ended:
    report = folder / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "faultlens", "run", f"--hunt={hunt}", "--json", report, "--no-save", "--", *words],
        env={**os.environ, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return Ended(done.returncode, done.stdout, done.stderr, report_file.read(report))


def names(frames: tuple[Frame, ...]) -> list[str]:
    return [frame.function for frame in frames[:2]]


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    library = tmp_path_factory.mktemp("blocks") / "blocks.so"
    words = ["gcc", "-g", "-O1", "-shared", "-fPIC", "-fno-optimize-sibling-calls", "-o", library, HERE / "blocks.c"]
    subprocess.run(words, check=True)
    return library


@pytest.mark.parametrize(
    ("function", "size", "status", "misuse", "seen", "cause", "title"),
    [
        ("write_behind", PAGE, -11, "overflow", "access", "native-heap-overflow", "wrote 8 bytes behind the end of"),
        ("write_before", PAGE, -11, "underflow", "access", "native-heap-overflow", "wrote 1 byte before"),
        ("read_behind", PAGE, -11, "overflow", "access", "native-out-of-bounds", "read right behind the end of"),
        ("write_behind", 33, -6, "overflow", "free", "native-heap-overflow", "that make_block of blocks.so"),
        ("use_freed", 100, -11, "use after free", "access", "native-use-after-free", "used a block of 100 bytes"),
        ("free_twice", 100, -6, "double free", "free", "native-double-free", "drop_block of blocks.so"),
        ("free_inside", 100, -6, "invalid free", "free", "native-double-free", "freed an address 16 bytes into"),
        ("write_and_keep", 33, 0, "overflow", "exit", "native-heap-overflow", "right behind the end of a block of 33"),
    ],
)
def test_who_allocated_who_freed_who_touched(
    blocks: Path, tmp_path: Path, function: str, size: int, status: int, misuse: str, seen: str, cause: str, title: str
) -> None:
    ended = run(tmp_path, sys.executable, "-c", CALL, blocks, function, str(size), "1")
    assert ended.status == status
    assert ended.stdout == ("finished\n" if status == 0 else "")
    assert (ended.block.misuse, ended.block.seen, ended.block.size) == (misuse, seen, size)
    assert names(ended.block.made) == ["make_block", function]
    assert names(ended.block.freed) == (["drop_block", function] if function in ("use_freed", "free_twice") else [])
    assert ended.verdict[0] == cause and title in ended.verdict[1]
    if shutil.which("addr2line"):
        assert ended.block.made[0].file and ended.block.made[0].file.endswith("blocks.c")


def test_sampling_catches_what_happens_often(blocks: Path, tmp_path: Path) -> None:
    ended = run(tmp_path, sys.executable, "-c", CALL, blocks, "use_freed", "100", "200000", hunt="fence")
    assert (ended.status, ended.verdict[0]) == (-11, "native-use-after-free")
    assert names(ended.block.freed) == ["drop_block", "use_freed"]


@pytest.mark.parametrize(
    ("misuse", "cause"),
    [("ctypes.string_at(block, 8)", "dangling-buffer"), ("libc.free(block)", "double-free-buffer")],
)
def test_what_python_asked_for_is_not_blamed_on_native_code(tmp_path: Path, misuse: str, cause: str) -> None:
    ended = run(tmp_path, sys.executable, "-c", FREED_BY_PYTHON + misuse)
    assert ended.verdict[0] == cause, ended.stderr
    assert ended.block.size == 1000


@pytest.mark.parametrize("python", [sys.executable, "/usr/bin/python3"])
def test_a_call_that_is_told_too_many_bytes(tmp_path: Path, python: str) -> None:
    if not Path(python).exists():
        pytest.skip("needs /usr/bin/python3")
    script = tmp_path / "fill.py"
    script.write_text(
        "import ctypes\n\n\ndef fill(buffer, count):\n    ctypes.memset(ctypes.addressof(buffer), 65, count)\n\n\n"
        "for _ in range(4):  # the guard lies behind most blocks, and before one of four\n"
        "    fill(ctypes.create_string_buffer(5000), 8700)\n"
    )
    ended = run(tmp_path, python, script)
    best = ended.report.diagnoses[0]
    assert best.cause == "foreign-call-overrun", ended.stderr
    assert "memset" in best.title and "a block of 5,000 bytes that ctypes had allocated" in best.title
    assert best.location and best.location.line == 5
    assert not any("stride" in fix.detail for fix in best.fixes)


def test_a_death_without_a_hit_says_what_the_hunt_is_worth(tmp_path: Path) -> None:
    ended = run(tmp_path, sys.executable, "-c", "import ctypes; ctypes.string_at(1)", hunt="fence")
    hunt = ended.report.crash.hunt
    assert hunt and hunt.block is None and hunt.problem is None
    assert "no fenced block was touched" in " ".join(ended.stderr.split())


@pytest.mark.parametrize("hunt", ["fence", "all,malloc"])
def test_a_healthy_program_is_as_ever(tmp_path: Path, hunt: str) -> None:
    pytest.importorskip("numpy")
    alone = subprocess.run([sys.executable, "-c", HEALTHY], capture_output=True, text=True, cwd=tmp_path)
    ended = run(tmp_path, sys.executable, "-c", HEALTHY, hunt=hunt)
    assert (ended.status, ended.stdout, ended.stderr) == (3, alone.stdout, alone.stderr)
    hunted = ended.report.crash.hunt
    assert hunted and hunted.fenced > 50 and hunted.block is None


def test_another_allocator_is_left_alone(blocks: Path, tmp_path: Path) -> None:
    source, other = tmp_path / "other.c", tmp_path / "other.so"
    source.write_text(
        "#include <stddef.h>\nvoid *__libc_malloc(size_t);\nvoid *malloc(size_t n) { return __libc_malloc(n); }"
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", other, source], check=True)
    ended = run(tmp_path, sys.executable, "-c", CALL, blocks, "behave", "100", "10", LD_PRELOAD=str(other))
    hunt = ended.report.crash.hunt
    assert ended.stdout == "finished\n"
    assert hunt and hunt.problem and "allocator" in hunt.problem


def test_an_executable_at_a_fixed_address_is_fenced(tmp_path: Path) -> None:
    """It has an entry of its own for each function whose address it takes, as Debian's python3 for malloc."""
    source, program = tmp_path / "fixed.c", tmp_path / "fixed"
    source.write_text(
        "#include <stdlib.h>\nvoid *(*volatile make)(size_t);\n"
        'int main(void) { make = malloc; char *block = make(4096); block[atoi("4096")] = 1; return 0; }'
    )
    subprocess.run(["gcc", "-no-pie", "-fno-pie", "-o", program, source], check=True)
    ended = run(tmp_path, program)
    assert (ended.status, ended.block.misuse, ended.block.size) == (-11, "overflow", 4096)


def test_a_rung_that_is_not_there(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "faultlens", "run", "--hunt=ladder", "--", "true"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and "--hunt=ladder" in done.stderr and "tensors" in done.stderr


@pytest.mark.tensorflow
def test_an_op_that_views_a_string_that_is_gone(tmp_path: Path) -> None:
    if importlib.util.find_spec("tensorflow") is None or not shutil.which("g++"):
        pytest.skip("needs TensorFlow and g++")
    from faultlens.custom_op.building import build, target_of

    folder = HERE / "ops" / "feature_cross"
    about = json.loads((folder / "about.json").read_text())
    library, script = tmp_path / "op.so", tmp_path / "train.py"
    build([folder / "bug.cc"], library, target_of(sys.executable), extra=["-g", "-O1"])
    head = f"import numpy as np, tensorflow as tf\nop = tf.load_op_library({str(library)!r})\n"
    script.write_text(head + about["call"])
    ended = run(tmp_path, sys.executable, script, TF_CPP_MIN_LOG_LEVEL="3")
    assert (ended.status, ended.verdict[0]) == (-11, "native-use-after-free"), ended.stderr
    assert ended.report.diagnoses[0].op == about["op"]
    if shutil.which("addr2line"):
        kept = ended.block.made + ended.block.freed
        guilty = {line for first, last in about["guilty"] for line in range(first, last + 1)}
        assert {frame.line for frame in kept if frame.file and frame.file.endswith("bug.cc")} <= guilty
