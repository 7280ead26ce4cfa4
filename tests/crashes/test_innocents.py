"""Verdicts that accuse nobody who did nothing, and advice that fits what the program uses."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PROGRAMS, Run, Runner

from faultlens.diagnosis.rank import diagnose
from faultlens.records.diagnosis import Diagnosis


@pytest.fixture(scope="session")
def innocent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("g++"):
        pytest.skip("needs g++")
    library = tmp_path_factory.mktemp("innocent") / "libinnocent.so"
    words = ["g++", "-O1", "-g", "-shared", "-fPIC", "-pthread", "-o", library, PROGRAMS / "innocent.cc"]
    subprocess.run(words, check=True, timeout=120)
    return library


def verdict(done: Run) -> Diagnosis:
    return diagnose(done.died).diagnoses[0]


def told(found: Diagnosis) -> str:
    fixes = (f"{fix.title} {fix.detail}" for fix in found.fixes)
    return "\n".join((found.title, *(fact.fact for fact in found.evidence), *fixes))


def script(folder: Path, code: str) -> list[str]:
    (folder / "main.py").write_text(code)
    return [sys.executable, "main.py"]


# ---------------------------------------------------------------------------------------- small numbers, null


@pytest.mark.parametrize("number", ["1", "8", "0x40"])
@pytest.mark.parametrize(
    "call", ["ctypes.string_at({})", "ctypes.memset({}, 0, 100)", "ctypes.memmove(b, {}, 9)", "lib.length({})"]
)
def test_a_small_number_is_no_null_pointer(run: Runner, tmp_path: Path, innocent: Path, call: str, number: str) -> None:
    code = f"import ctypes\nlib = ctypes.CDLL({str(innocent)!r})\nb = ctypes.create_string_buffer(9)\n"
    found = verdict(run(script(tmp_path, code + call.format(number) + "\n")))
    assert found.cause == "wild-pointer-passed"
    assert f"a small number ({int(number, 0):#x}) that is not an address" in found.title
    assert "null pointer" not in told(found) and "argtypes" not in told(found)


# ------------------------------------------------------------------------------------------------ time limits


def test_a_program_that_prints_between_its_sleeps_does_not_hang(run: Runner, tmp_path: Path) -> None:
    code = "import time\nfor i in range(200):\n    print('batch', i, flush=True)\n    time.sleep(0.3)\n"
    assert verdict(run(script(tmp_path, code), options=["--timeout", "4"])).cause == "time-limit"
    same = code.replace("'batch', i", "'waiting'")
    assert verdict(run(script(tmp_path, same), options=["--timeout", "4"])).cause == "hang"


def test_an_event_that_nobody_sets(run: Runner, tmp_path: Path) -> None:
    code = "import asyncio\nasync def main():\n    await asyncio.Event().wait()\nasyncio.run(main())\n"
    found = verdict(run(script(tmp_path, code), options=["--timeout", "3"]))
    assert found.title == "no progress: the event loop of asyncio has nothing to do"
    assert "input" not in found.title and "join()" not in told(found)


def test_a_fork_by_hand_is_not_answered_with_multiprocessing_s_start_method(run: Runner, tmp_path: Path) -> None:
    code = """\
import os, threading, time
lock = threading.Lock()
def hold():
    with lock:
        time.sleep(60)
threading.Thread(target=hold, daemon=True).start()
time.sleep(0.2)
pid = os.fork()
if pid == 0:
    with lock:
        os._exit(0)
os.waitpid(pid, 0)
"""
    found = verdict(run(script(tmp_path, code), options=["--timeout", "3"]))
    assert found.cause == "fork-after-threads"
    assert "fork() at main.py:8" in found.fixes[0].title
    assert "set_start_method" not in told(found)


# ----------------------------------------------------------------------------------------------------- signals


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGFPE"])
def test_no_handler_is_advised_for_a_fault_that_was_sent(run: Runner, tmp_path: Path, name: str) -> None:
    code = (
        "import os, subprocess, sys, time\n"
        f"subprocess.Popen(['kill', '-{signal.Signals[name].value}', str(os.getpid())])\n"
        "time.sleep(30)\n"
    )
    found = verdict(run(script(tmp_path, code)))
    assert found.cause == "killed-from-outside"
    assert "signal.signal" not in told(found)


def test_an_old_log_that_is_printed_does_not_contest_an_abort_on_the_stack(run: Runner, tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "print(\"terminate called after throwing an instance of 'std::bad_alloc'\", file=sys.stderr, flush=True)\n"
        "os.abort()\n"
    )
    found = verdict(run(script(tmp_path, code)))
    assert found.cause == "signal-raised-by-program" and found.confidence >= 0.95


# --------------------------------------------------------------------------------------------- native libraries


def test_a_view_of_any_shape_is_named_beside_a_library_that_is_only_loaded(
    run: Runner, tmp_path: Path, innocent: Path
) -> None:
    pytest.importorskip("numpy")
    code = f"""\
import ctypes
import numpy as np
from numpy.lib.stride_tricks import as_strided
lib = ctypes.CDLL({str(innocent)!r})
lib.checksum(b"abc", 3)
def windows(x, w):
    return as_strided(x, shape=(x.size - w + 4, w), strides=(x.itemsize, x.itemsize))
rows = [np.random.rand(2000) for _ in range(50)]
for row in rows:
    v = windows(row, 8); v *= 0.0; v += 1.0
rows.clear()
more = [np.zeros(3000) for _ in range(50)]
"""
    done = run(script(tmp_path, code))
    found = diagnose(done.died).diagnoses
    assert "as_strided" in told(found[0])
    assert all(each.confidence <= 0.5 for each in found if each.cause.startswith("native-"))
    assert "faultlens run --hunt=all -- " in told(found[0])


def test_a_count_that_was_spoiled_by_hand_is_told_of_its_line(run: Runner, tmp_path: Path) -> None:
    code = """\
import ctypes, gc
records = [{"key": i} for i in range(100)]
def release(o):
    for _ in range(3):
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(o))
for r in records:
    release(r)
out = [dict(r) for r in records]
records.clear()
gc.collect()
"""
    found = verdict(run(script(tmp_path, code), env={**os.environ, "PYTHONMALLOC": "malloc"}))
    assert "an extension" not in told(found)


def test_a_thread_that_nobody_joined_is_no_shutdown(run: Runner, tmp_path: Path, innocent: Path) -> None:
    code = f"import ctypes\nlib = ctypes.CDLL({str(innocent)!r})\nlib.prefetch()\n"
    found = verdict(run(script(tmp_path, code)))
    assert found.title.startswith("prefetch of libinnocent.so") and "destroyed a std::thread" in found.title
    assert "shut down" not in told(found) and "sanitize" not in told(found)


def test_memory_that_a_thread_of_the_library_still_uses(run: Runner, tmp_path: Path, innocent: Path) -> None:
    code = f"""\
import ctypes, time
lib, libc = ctypes.CDLL({str(innocent)!r}), ctypes.CDLL(None)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
lib.begin.argtypes = [ctypes.c_void_p]
def submit():
    p = libc.mmap(None, ctypes.c_size_t(4 << 20), 3, 0x22, -1, 0)
    lib.begin(p)
    libc.munmap(p, 4 << 20)
submit()
time.sleep(5)
"""
    found = verdict(run(script(tmp_path, code)))
    assert found.cause == "dangling-buffer"
    assert found.location is not None and found.location.line == 10
