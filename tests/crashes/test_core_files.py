"""Cores of real programs that really died: what can be read back from them."""

from __future__ import annotations

import gzip
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import pytest
import zstandard

from faultlens.cli import main
from faultlens.errors import FaultlensError
from faultlens.inspection.corefile.read import read_core
from faultlens.records.crash import Crash, Frame
from faultlens.report.make import make_report

PATTERN = Path("/proc/sys/kernel/core_pattern").read_text().strip()
pytestmark = pytest.mark.skipif(
    "/" in PATTERN or PATTERN.startswith("|"), reason=f"cores do not go to the working directory: {PATTERN}"
)

PROGRAM = r"""
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_through(int *pointer) { return *pointer; }
static int recurse(int depth) { volatile int here = depth; return recurse(here + 1) + here; }
static void *overflow(void *unused) { return (void *)(long)recurse(0) + (unused != 0); }
static void *wait_here(void *unused) { pause(); return unused; }
static void smash(void) { char small[16]; memset(small, 'A', 400); }
static void raise_again(int number) { signal(number, SIG_DFL); raise(number); }

int main(int argc, char **argv) {
  pthread_t thread;
  volatile int zero = 0;
  const char *how = argc > 1 ? argv[1] : "";
  if (argc > 2) signal(atoi(argv[2]), raise_again);
  if (!strcmp(how, "null")) return read_through((int *)8);
  if (!strcmp(how, "constant")) *(char *)"constant" = 1;
  if (!strcmp(how, "wild")) *(char *)0x8000000000000000ul = 1;
  if (!strcmp(how, "jump")) ((void (*)(void))0x1234567)();
  if (!strcmp(how, "divide")) return argc / zero;
  if (!strcmp(how, "trap")) __builtin_trap();
  if (!strcmp(how, "overflow")) return recurse(0);
  if (!strcmp(how, "smash")) smash();
  if (!strcmp(how, "free")) { char *block = malloc(10); free(block); free(block); }
  if (!strcmp(how, "sent")) { kill(getpid(), SIGSEGV); pause(); }
  if (!strcmp(how, "thread")) {
    pthread_create(&thread, 0, wait_here, 0);
    pthread_create(&thread, 0, overflow, 0);
    pthread_join(thread, 0);
  }
  return 0;
}
"""

Died = Callable[..., Path]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    folder = tmp_path_factory.mktemp("program")
    (folder / "die.c").write_text(PROGRAM)
    flags = ["-g", "-O0", "-w", "-pthread", "-fno-stack-protector", "-U_FORTIFY_SOURCE"]
    subprocess.run(["gcc", *flags, "-o", folder / "die", folder / "die.c"], check=True, timeout=60)
    return folder / "die"


@pytest.fixture
def dump(tmp_path: Path, program: Path) -> Died:
    """dump("null") lets the C program die so; dump(code="…") a Python program. The path of the core."""

    def run(
        *arguments: str,
        code: str | None = None,
        options: tuple[str, ...] = (),
        python: str = sys.executable,
        **variables: str,
    ) -> Path:
        folder = tmp_path / "run"
        folder.mkdir()
        command = [str(program), *arguments]
        if code is not None:
            (folder / "script.py").write_text(code)
            command = [python, *options, "script.py", *arguments]
        environment = {"PATH": os.environ["PATH"], "SECRET_TOKEN": "hunter2", "OMP_NUM_THREADS": "3", **variables}
        subprocess.run(command, cwd=folder, preexec_fn=_allow_cores, capture_output=True, env=environment, timeout=60)
        return next(folder.glob("core*"))

    return run


def _allow_cores() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


def stack(crash: Crash) -> tuple[Frame, ...]:
    assert crash.crashed_thread is not None
    return crash.crashed_thread.frames


# ----------------------------------------------------------------------------------------- C programs


@pytest.mark.parametrize(
    ("how", "number", "code", "address", "access"),
    [
        ("null", "SIGSEGV", "SEGV_MAPERR", 8, "read"),
        ("constant", "SIGSEGV", "SEGV_ACCERR", ..., "write"),
        ("wild", "SIGSEGV", "SI_KERNEL", None, "write"),
        ("jump", "SIGSEGV", "SEGV_MAPERR", 0x1234567, "execute"),
        ("divide", "SIGFPE", "FPE_INTDIV", ..., None),
        ("trap", "SIGILL", "ILL_ILLOPN", ..., None),
    ],
)
def test_the_fault_is_read(dump: Died, how: str, number: str, code: str, address: object, access: str | None) -> None:
    crash = read_core(dump(how))
    assert (crash.outcome.kind, crash.outcome.signal, crash.method) == ("signal", number, "core")
    assert crash.fault is not None
    assert (crash.fault.signal, crash.fault.code, crash.fault.access) == (number, code, access)
    assert crash.fault.address == address or address is ...


@pytest.mark.parametrize(
    ("how", "number", "code", "access"),
    [
        ("null", signal.SIGSEGV, "SEGV_MAPERR", "read"),
        ("constant", signal.SIGSEGV, "SEGV_ACCERR", "write"),
        ("wild", signal.SIGSEGV, "SI_KERNEL", "write"),
        ("divide", signal.SIGFPE, "FPE_INTDIV", None),
        ("trap", signal.SIGILL, "ILL_ILLOPN", None),
    ],
)
def test_the_fault_is_recovered_when_a_handler_raised_it_again(
    dump: Died, how: str, number: signal.Signals, code: str, access: str | None
) -> None:
    crash = read_core(dump(how, str(int(number))))
    assert crash.fault is not None
    assert (crash.fault.seen, crash.fault.signal, crash.fault.code) == ("signal-frame", number.name, code)
    assert crash.fault.access == access
    assert stack(crash)[0].function in ("main", "read_through")  # and not the handler


def test_a_signal_that_was_sent_stays_one(dump: Died) -> None:
    crash = read_core(dump("sent"))
    assert crash.fault is not None
    assert (crash.fault.code, crash.fault.sender_pid, crash.fault.address) == ("SI_USER", crash.pid, None)


def test_the_stack_has_functions_and_lines(dump: Died, program: Path) -> None:
    core = dump("null")
    crash = read_core(core)
    frames = stack(crash)
    assert [frame.function for frame in frames[:2]] == ["read_through", "main"]
    line = next(n for n, text in enumerate(PROGRAM.splitlines(), 1) if "read_through(int" in text)
    assert (frames[0].line, frames[0].library) == (line, str(program))
    assert crash.program.command[0] == str(program)
    assert crash.program.executable == str(program)
    kept = make_report(crash).crash
    assert kept.program.environment["OMP_NUM_THREADS"] == "3"
    assert "hunter2" not in repr(kept)
    assert any(mapping.path == "[stack]" for mapping in crash.mappings)
    assert all(library.build_id for library in crash.libraries if "libc" in library.path)


def test_the_caller_of_a_wild_jump_is_found(dump: Died) -> None:
    assert "main" in [frame.function for frame in stack(read_core(dump("jump")))]


def test_glibc_says_why_it_aborted(dump: Died) -> None:
    crash = read_core(dump("free"))
    assert crash.outcome.signal == "SIGABRT"
    assert crash.abort_message is not None
    assert "double free" in crash.abort_message
    assert "abort" in [frame.function for frame in stack(crash)]


@pytest.mark.parametrize("how", ["overflow", "thread"])
def test_a_stack_overflow_is_bounded(dump: Died, how: str) -> None:
    crash = read_core(dump(how))
    frames = stack(crash)
    assert frames[0].function == "recurse"
    assert len(frames) <= 501
    assert any("left out" in frame.function for frame in frames)
    assert crash.fault is not None
    assert crash.fault.address is not None
    assert abs(crash.fault.address - crash.fault.registers["rsp"]) <= 4096
    assert len(crash.threads) == (3 if how == "thread" else 1)
    assert (crash.crashed_thread is not None) and (crash.crashed_thread.id == crash.pid) == (how == "overflow")


def test_a_smashed_stack_still_names_the_function(dump: Died) -> None:
    assert stack(read_core(dump("smash")))[0].function == "smash"


def test_without_the_executable_the_rest_is_told(dump: Died, program: Path, tmp_path: Path) -> None:
    core = dump("null")
    hidden = tmp_path / "hidden"
    program.rename(hidden)
    try:
        crash = read_core(core)
        assert crash.fault is not None
        assert crash.fault.address == 8
        assert any("is not there" in gap for gap in crash.gaps)
        assert [file.state for file in crash.files if file.path == str(program)] == ["missing"]
        told = read_core(core, hidden)
        assert "read_through" in [frame.function for frame in stack(told)]
    finally:
        hidden.rename(program)


# ------------------------------------------------------------------------------------ Python programs

FAILING_LINE = "ctypes.string_at(16)"
SCRIPT = f"""
import ctypes, sys, threading, time
def inner():
    {FAILING_LINE}
def outer():
    inner()
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
outer()
"""


@pytest.mark.parametrize("options", [(), ("-X", "faulthandler")])
def test_python_and_native_frames_are_one_stack(dump: Died, options: tuple[str, ...]) -> None:
    crash = read_core(dump(code=SCRIPT, options=options))
    assert crash.fault is not None
    assert (crash.fault.code, crash.fault.address, crash.fault.access) == ("SEGV_MAPERR", 16, "read")
    assert crash.fault.seen == ("signal-frame" if options else "direct")
    frames = stack(crash)
    assert frames[0].kind == "native"
    python = [frame for frame in frames if frame.kind == "python" and (frame.file or "").endswith("script.py")]
    assert [frame.function for frame in python] == ["inner", "outer", "<module>"]
    assert SCRIPT.splitlines()[(python[0].line or 0) - 1].strip() == FAILING_LINE
    assert crash.launching_thread is crash.crashed_thread
    assert len(crash.threads) == 2
    assert crash.exiting is False
    assert crash.program.python is not None
    assert crash.program.python.version == f"3.{sys.version_info.minor}"


def test_a_crash_at_exit_is_told_as_such(dump: Died) -> None:
    crash = read_core(dump(code="import atexit, ctypes\natexit.register(ctypes.string_at, 16)\n"))
    assert crash.exiting is True


def test_an_active_environment_need_not_be_that_of_the_program(dump: Died) -> None:
    """Another Python may be started from the shell in which it is active."""
    if sys.prefix == sys.base_prefix:
        pytest.skip("needs a virtual environment")
    crash = read_core(dump(code=SCRIPT, python=f"{sys.base_prefix}/bin/python3", VIRTUAL_ENV=sys.prefix))
    assert crash.program.python is not None
    assert crash.program.python.prefix is None


def test_the_environment_of_the_program_is_told(dump: Died) -> None:
    if sys.prefix == sys.base_prefix:
        pytest.skip("needs a virtual environment")
    crash = read_core(dump(code="import sys\nsys.path.append('/added')\n" + SCRIPT))
    assert crash.program.python is not None
    assert crash.program.python.prefix == sys.prefix
    assert crash.program.python.path[-1] == "/added", "its own search path, read from the core"


# ------------------------------------------------------------------------------------- packed and bad


def test_packed_cores_are_unpacked_and_removed(dump: Died, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = dump("null").read_bytes()
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(unpacked))
    packed = {
        "gzip": gzip.compress(data, 1),
        "zstd": zstandard.ZstdCompressor().compress(data),
        "lz4": lz4.frame.compress(data),
    }
    for name, content in packed.items():
        path = tmp_path / name  # by its content and not by its name
        path.write_bytes(content)
        crash = read_core(path)
        assert crash.fault is not None, name
        assert stack(crash)[0].function == "read_through"
    assert not list(unpacked.iterdir())


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lz4.frame.compress, zstandard.compress])
def test_a_cut_off_core_gives_what_is_left(dump: Died, tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    data = pack(dump("null").read_bytes())
    path = tmp_path / "cut"
    path.write_bytes(data[: len(data) * 3 // 4])
    try:
        crash = read_core(path)
    except FaultlensError as error:
        assert pack is not bytes, error  # packed in one block: all of it is lost
        return
    assert crash.fault is not None
    assert crash.fault.address == 8
    assert any("cut off" in gap for gap in crash.gaps)


def elf_header(elf_class: int, machine: int, kind: int = 4) -> bytes:
    ident = b"\x7fELF" + bytes([elf_class, 1, 1]) + bytes(9)
    return ident + kind.to_bytes(2, "little") + machine.to_bytes(2, "little") + bytes(44)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"Segmentation fault (core dumped)\n", "is not a core file"),
        (b"\x7fELF\x02\x01\x01", "ends within the ELF header"),
        (elf_header(1, 3), "32-bit x86"),
        (elf_header(2, 183), "64-bit AArch64"),
        (elf_header(2, 62, 3), "is a program or library"),
        (elf_header(2, 62), "does not say which threads"),
        (gzip.compress(b"some text"), "is packed, and what is in it is not a core"),
        (b"\x1f\x8b garbage", "is packed, but damaged"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "core"
    path.write_bytes(content)
    with pytest.raises(FaultlensError, match=problem) as caught:
        read_core(path)
    assert caught.value.advice
    assert "\n" not in str(caught.value)


def test_bad_paths_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FaultlensError, match="is a directory"):
        read_core(tmp_path)
    with pytest.raises(FaultlensError, match="There is no file"):
        read_core(tmp_path / "none")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(FaultlensError, match="not a regular file"):
        read_core(tmp_path / "fifo")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_core_of_somebody_else_is_told(tmp_path: Path) -> None:
    path = tmp_path / "core"
    path.write_bytes(b"x")
    path.chmod(0)
    with pytest.raises(FaultlensError, match="may not be read"):
        read_core(path)


# ------------------------------------------------------------------------------- what explain says of it


def test_a_cut_off_core_is_said_to_be_one(dump: Died, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = tmp_path / "cut"
    data = dump("null").read_bytes()
    cut.write_bytes(data[: len(data) * 3 // 4])
    assert main(["explain", "--no-save", str(cut)]) == 0
    assert "faultlens: the core is cut off: " in capsys.readouterr().err


def test_another_program_is_not_taken_for_the_one_that_died(dump: Died, capsys: pytest.CaptureFixture[str]) -> None:
    other = Path(shutil.which("ls") or "/bin/ls")
    core = dump("null")
    assert "read_through" in [frame.function for frame in stack(read_core(core, other))]
    assert main(["explain", "--no-save", str(core), str(other)]) == 0
    assert f"faultlens: {other} is not the program that left this core" in capsys.readouterr().err


def test_sources_that_are_not_there_can_be_named(dump: Died, capsys: pytest.CaptureFixture[str]) -> None:
    core = dump(code="import ctypes\nctypes.string_at(16)\n")
    (core.parent / "script.py").unlink()
    assert main(["explain", "--no-save", str(core)]) == 0
    assert "--source-root" in capsys.readouterr().err


UNALIGNED = """
import numpy as np
import tensorflow as tf
values = tf.experimental.dlpack.from_dlpack(np.arange(257, dtype=np.float32)[1:].__dlpack__())
print(tf.matmul(tf.reshape(values, [16, 16]), tf.ones([16, 16])))
"""


@pytest.mark.tensorflow
def test_what_a_failed_check_logged_is_read_from_memory(dump: Died) -> None:
    """It went to a pipe and is gone; without it another cause would come first than live."""
    report = make_report(read_core(dump(code=UNALIGNED)))
    assert "Check failed: IsAligned() ptr = 0x" in (report.crash.output.stderr or "")
    assert report.diagnoses[0].cause == "unaligned-buffer"
