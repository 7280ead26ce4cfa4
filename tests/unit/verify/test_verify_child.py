"""The process that reads a save may be killed, taken over or held up by it: what is told then, what it cannot do."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sys
import time
from pathlib import Path

import pytest

from faultlens.sandbox.guest import confinement
from faultlens.verify.confined import Answer, Limits, ask

LIMITS = Limits(seconds=8, memory=1 << 30)


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """told(opening) → what comes of an HDF5 file when h5py does this as it opens it; `importing`: as it is imported."""

    def call(opening: str, importing: str = "pass", limits: Limits = LIMITS) -> Answer:
        fake = "import ctypes, os, signal, sys, time\n{importing}\ndef File(*_):\n    {opening}\n"
        (tmp_path / "h5py.py").write_text(fake.format(importing=importing, opening=opening))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        (tmp_path / "model.h5").write_bytes(b"any")
        return ask(sys.executable, {"do": "read", "kind": "HDF5 file", "path": str(tmp_path / "model.h5")}, limits)

    return call


def test_a_death_is_told(told) -> None:
    answer = told("print('last words', file=sys.stderr, flush=True); ctypes.string_at(8)")
    assert answer.crashed and answer.died == "SIGSEGV: last words"
    assert told("os.abort()").crashed


def test_the_death_of_python_is_not_that_of_the_save(told) -> None:
    assert not told("pass", importing="ctypes.string_at(8)").crashed
    assert not told("os.kill(os.getpid(), signal.SIGKILL)").crashed  # memory ran out, or somebody sent it
    assert not told("os._exit(3)").crashed
    (missing,) = [told("pass", importing="import no_such_module")]
    assert missing.told is not None and missing.told.raised == "ModuleNotFoundError"
    nowhere = ask("/no/such/python", {}, LIMITS)
    assert "cannot be run" in nowhere.died and not nowhere.crashed


def test_what_never_ends_is_ended(told) -> None:
    start = time.monotonic()
    answer = told("time.sleep(600)", limits=LIMITS._replace(seconds=3))
    assert answer.endless == "its header" and time.monotonic() - start < 10
    assert told("pass", importing="time.sleep(600)", limits=LIMITS._replace(seconds=1)).late


def test_what_it_started_is_ended_too(told) -> None:
    mark = f"9{secrets.randbelow(10**8):08}"
    told(
        "pid = os.fork()\n    if pid: os.waitpid(pid, 0); os._exit(0)\n"
        f"    os.setsid(); os.fork() and os._exit(0); os.closerange(0, 50); os.execlp('sleep', 'sleep', '{mark}')"
    )
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            assert mark.encode() not in path.read_bytes()


def test_memory_is_limited(told) -> None:
    answer = told("bytearray(4 << 30)")
    assert answer.told is not None
    assert answer.told.damages == ("h5py cannot open it: MemoryError",) or answer.told.raised == "MemoryError"


SAY = """\
import stat
    opened = [n for n in range(3, 20) if os.path.exists(f"/proc/self/fd/{n}")]
    answers = next(n for n in opened if stat.S_ISFIFO(os.fstat(n).st_mode))
    say = lambda data: os.write(answers, data)
    """


def test_a_process_that_was_taken_over_is_not_believed(told) -> None:
    for nonsense in ("nonsense", '{"done": {"damages": 7}}', '{"done": ' + "[" * 50_000, '{"at": 1}'):
        line = nonsense.encode() + b"\n"
        answer = told(f"{SAY}say({line!r}); time.sleep(600)")
        assert answer.crashed and answer.told is None
    start = time.monotonic()
    answer = told(f"{SAY}\n    while True: say(bytes(1 << 20))")
    assert answer.told is None and time.monotonic() - start < 6


@pytest.mark.skipif(not confinement.available().holds_files, reason="needs namespaces or Landlock")
def test_it_may_write_nowhere(told, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    answer = told(f"open({str(precious)!r}, 'w')")
    assert answer.told is not None and re.search("Permission denied|Read-only", answer.told.damages[0])
    told(f"os.chmod({str(precious)!r}, 0o777)")
    told(f"os.remove({str(precious)!r})")
    assert precious.stat().st_mode & 0o777 != 0o777
    assert precious.read_text() == "mine" and os.listdir(tmp_path)
