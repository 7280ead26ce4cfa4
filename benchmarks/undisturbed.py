"""The programs and test suites of benchmarks/transparency.py: how each is built and run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = HERE.parent / "tests" / "crashes" / "programs" / "undisturbed"
SUITES = HERE / "programs" / "suites"

Words = Sequence[str | Path]
Build = Callable[[Path], Words]  # in a folder of its own: what to run
Meanwhile = Callable[["subprocess.Popen[bytes]", Path], None]

# What no two runs have in common: addresses, process ids, times, line numbers of the interpreter.
ADDRESSES = r"0x[0-9a-fA-F]+|\bT\d+\b|==\d+==|\b[0-9a-f]{6,}\b|hs_err_\S+|\b\d+(\.\d+)? ?(s|ms|seconds)\b|\b\d{3,}\b"


@dataclass(frozen=True)
class Program:
    """Its status, output and errors must be the same."""

    name: str
    build: Build
    varies: str = ""  # a pattern of what differs from run to run
    meanwhile: Meanwhile | None = None
    whole: bool = False  # takes long: not in the short form


@dataclass(frozen=True)
class Suite:
    """The outcome of each of its tests must be the same."""

    name: str
    command: Callable[[Path], Words]  # given the file of results
    environment: Mapping[str, str] = field(default_factory=dict)
    whole: bool = True


def native(
    name: str,
    source: str,
    *words: str,
    by: str = "gcc",
    flags: Sequence[str] = (),
    within: Sequence[str] = (),
    varies: str = "",
) -> Program:
    """A program of ours, compiled; within another command, if one is given."""

    def build(folder: Path) -> Words:
        binary = folder / Path(source).stem
        command: Words = [by, "-O1", "-g", "-w", "-pthread", PROGRAMS / source, "-o", binary, *flags]
        subprocess.run(command, check=True, capture_output=True)
        return [*within, binary, *words]

    return Program(name, build, varies)


def script(name: str, interpreter: Sequence[str], source: str, *words: str, varies: str = "") -> Program:
    return Program(name, lambda _: [*interpreter, PROGRAMS / source, *words], varies)


def command(name: str, *words: str) -> Program:
    return Program(name, lambda _: words)


# ------------------------------------------------------------------------------------- those that need more


def _java(folder: Path, *words: str) -> Words:
    subprocess.run(["javac", "-d", folder, PROGRAMS / "Faults.java"], check=True, capture_output=True)
    return ["java", "-XX:+UseSerialGC", "-Xmx64m", "-cp", folder, "Faults", *words]


def _go(folder: Path, *words: str) -> Words:
    variables = {**os.environ, "GOCACHE": str(folder / "cache"), "GO111MODULE": "off"}
    build: Words = ["go", "build", "-o", folder / "faults", PROGRAMS / "faults.go"]
    subprocess.run(build, check=True, capture_output=True, env=variables)
    return [folder / "faults", *words]


def _ocaml(folder: Path) -> Words:
    source = shutil.copy(PROGRAMS / "faults.ml", folder)
    build: Words = ["ocamlopt", "unix.cmxa", source, "-o", folder / "faults"]
    subprocess.run(build, check=True, capture_output=True, cwd=folder)
    return [folder / "faults"]


def _setuid(folder: Path) -> Words:
    """With the rights of another user the loader ignores what is preloaded."""
    binary = Path(native("", "ends.c").build(folder)[0])
    os.chown(binary, 65534, 65534)
    binary.chmod(0o4755)
    return [binary, "segv"]


def _other_root(folder: Path) -> Words:
    """With its libraries, in a root where the agent is not."""
    binary, root = Path(native("", "ends.c").build(folder)[0]), folder / "root"
    listed = subprocess.run(["ldd", binary], check=True, capture_output=True, text=True).stdout
    for path in (word for word in listed.split() if word.startswith("/")):
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copy(binary, root / "ends")
    return ["chroot", root, "/ends", "segv"]


# ------------------------------------------------------------------------------------- signals from outside


def _until_ready(folder: Path) -> None:
    deadline = time.monotonic() + 20
    while not (folder / "ready").exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def _send_each(process: subprocess.Popen[bytes], folder: Path, to_the_job: bool) -> None:
    """What schedulers, shells and people send, each once."""
    _until_ready(folder)
    names = "TERM INT HUP USR1 USR2 XCPU VTALRM PROF IO PWR URG WINCH".split()
    numbers = [int(getattr(signal, f"SIG{name}")) for name in names]
    for number in [*numbers, int(signal.SIGRTMIN) + 5, int(signal.SIGRTMAX), int(signal.SIGQUIT)]:
        (os.killpg if to_the_job else os.kill)(process.pid, number)
        time.sleep(0.1)


def _interrupt(process: subprocess.Popen[bytes], folder: Path) -> None:
    _until_ready(folder)
    os.killpg(process.pid, signal.SIGINT)


# ------------------------------------------------------------------------------------------------- the table

PYTHON = [sys.executable]
RAYLET = r"[^\n]*\(raylet\)[^\n]*\n"  # its log comes when it comes
BOTH = ("sh", "-c", '"$0" segv; echo $?; "$0" exit; echo $?')  # as children of a shell
THROWING = ("-fnon-call-exceptions",)
COUNTING = script("", PYTHON, "counted_signals.py").build
SBCL = ("sbcl", "--noinform", "--disable-ldb", "--no-sysinit", "--no-userinit", "--disable-debugger", "--load")
DEBUGGED = ("gdb", "-nx", "-batch", "-ex", "run", "-ex", "backtrace", "--args")

PROGRAM_ROWS: dict[str, list[Program]] = {
    "Handlers, stacks, threads, children": [
        native("a thread crashes while main finishes", "race_to_exit.c", "50"),
        script("the same in Python", PYTHON, "race_to_exit.py"),
        script("a worker crashes after its parent crashed", PYTHON, "late_workers.py", "1", "crash"),
        script("12 workers crash after their parent ended", PYTHON, "late_workers.py", "12", "0"),
        native("handlers set 1,000 times", "handlers_often.c", "1000"),
        script("faulthandler on and off, default action", PYTHON, "faulthandler_often.py", "default"),
        script("faulthandler on and off, own handler", PYTHON, "faulthandler_often.py", "own"),
        native("a handler that needs 100 KB of stack", "handler_needs_stack.c", "100000"),
        native("a handler that needs 300 KB of stack", "handler_needs_stack.c", "300000"),
        native("what a handler sees of stack and mask", "stack_seen_in_handler.c"),
        native("a handler that raises again", "raise_again.c", "segv"),
        native("a handler that raises SIGABRT again", "raise_again.c", "abort"),
        native("an address is probed", "probe_address.c"),
        *[
            native(f"handlers of a child ({how})", "childs_handlers.c", how)
            for how in ("fork", "bare", "clone", "vfork")
        ],
        native("sigset, bsd_signal, sigignore", "old_setters.c"),
        *[native(f"seccomp filter, {how}", "sandboxed.c", how) for how in ("segv", "abort", "well")],
        native("pointers to nowhere", "bad_pointers.c"),
        Program("14 signals to the command", COUNTING, meanwhile=partial(_send_each, to_the_job=False)),
        Program("14 signals to the job", COUNTING, meanwhile=partial(_send_each, to_the_job=True)),
        *[
            native(f"signal {n} to the job at the very end", "signal_at_the_end.c", str(n))
            for n in (10, 15, 30, 34, 64)
        ],
        Program("interrupted while saving", script("", PYTHON, "interrupted_save.py").build, meanwhile=_interrupt),
        native("names of the C library reused", "own_names.c", "segv"),
        native("exceptions out of a handler", "throws.cc", "caught", by="g++", flags=THROWING),
        native("an exception nobody catches", "throws.cc", "uncaught", by="g++", flags=THROWING),
        script("process pools whose workers crash", PYTHON, "pools.py", varies=ADDRESSES),
    ],
    "Other builds and surroundings": [
        native("static", "ends.c", "segv", flags=["-static"]),
        native("static, position independent", "ends.c", "segv", flags=["-static-pie"]),
        native("musl", "ends.c", "segv", by="musl-gcc"),
        native("musl, child of a shell", "ends.c", by="musl-gcc", within=BOTH),
        native("32-bit", "ends.c", "segv", flags=["-m32"]),
        native("32-bit, child of a shell", "ends.c", flags=["-m32"], within=BOTH),
        native("AddressSanitizer", "ends.c", "segv", flags=["-fsanitize=address"], varies=ADDRESSES),
        native("AddressSanitizer, ends well", "ends.c", "exit", flags=["-fsanitize=address"], varies=ADDRESSES),
        native(
            "AddressSanitizer, child of a shell", "ends.c", flags=["-fsanitize=address"], within=BOTH, varies=ADDRESSES
        ),
        native("ThreadSanitizer", "race_to_exit.c", "50", flags=["-fsanitize=thread"], varies=ADDRESSES),
        native("UndefinedBehaviorSanitizer", "ends.c", "segv", flags=["-fsanitize=undefined"], varies=ADDRESSES),
        Program("setuid", _setuid),
        Program("another root", _other_root),
        native("no environment", "ends.c", "segv", within=["env", "-i"]),
        native("8 open files at most", "ends.c", "segv", within=["prlimit", "--nofile=8"]),
    ],
    "Language runtimes": [
        Program("JVM", _java),
        Program("JVM, crash", lambda folder: _java(folder, "crash"), varies=ADDRESSES),
        Program("Go with cgo", _go, varies=ADDRESSES, whole=True),
        Program("Go with cgo, crash", lambda folder: _go(folder, "crash"), varies=ADDRESSES, whole=True),
        script("node", ["node"], "faults.js", "well"),
        script("node, abort", ["node"], "faults.js", "abort", varies=ADDRESSES),
        script("SBCL", SBCL, "faults.lisp", varies=ADDRESSES),
        Program("OCaml", _ocaml),
        script("Perl", ["perl"], "traps.pl"),
        script("Ruby", ["ruby"], "traps.rb"),
        script("bash", ["bash"], "traps.sh", varies=ADDRESSES),
        script("dash", ["dash"], "traps.sh"),
        script("busybox", ["busybox", "sh"], "traps.sh"),
        Program("Ray", script("", PYTHON, "on_ray.py").build, varies=RAYLET, whole=True),
    ],
    "Tools inside": [
        native("gdb", "ends.c", "segv", within=DEBUGGED, varies=ADDRESSES),
        native("valgrind", "ends.c", "segv", within=["valgrind", "-q"], varies=ADDRESSES),
        native("strace", "ends.c", "segv", within=["strace", "-f", "-e", "trace=none"], varies=ADDRESSES),
        command("timeout", "timeout", "0.3", "sleep", "20"),
        command("a pipeline", "bash", "-c", "set -o pipefail; yes | head -n 3; echo $?"),
        script("make", ["make", "-s", "-f"], "Makefile.crash"),
    ],
}


def _cpython(*modules: str, start: str = "", whole: bool = True) -> Suite:
    """Tests of the interpreter that runs this; its own, not those of a virtual environment."""
    python = Path(sys.executable).resolve()
    name = ", ".join(module.removeprefix("test.") for module in modules)
    if start:
        name = f"multiprocessing ({start}): {', '.join(module.partition(':')[2] for module in modules)}"
    environment = {"START_METHOD": start, "PYTHONPATH": str(SUITES)}
    return Suite(name, lambda results: [python, SUITES / "run_tests.py", results, *modules], environment, whole)


def _pytest(name: str, package: str, *paths: str) -> Suite:
    words = [f"{package}.{path}" for path in paths] or [package]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--pyargs"]
    return Suite(name, lambda results: [*PYTHON, "-m", "pytest", *options, f"--junitxml={results}", *words])


PROCESSES = ["multiprocessing_tests:ProcessesTestProcess", "multiprocessing_tests:ProcessesTestPool"]
NUMPY = "test_multithreading test_memmap test_errstate test_regression test_ufunc"

SUITE_ROWS: dict[str, list[Suite]] = {
    "CPython's own tests": [
        *[
            _cpython(f"test.test_{name}", whole=name not in ("fork1", "mmap", "wait4"))
            for name in (
                "signal faulthandler threadsignals threading subprocess fork1 wait3 wait4 popen mmap os posix "
                "exceptions sys ctypes atexit resource selectors pty cmd_line c_locale_coercion regrtest"
            ).split()
        ],
        _cpython("test._test_eintr"),
        *[_cpython(*PROCESSES, start=start) for start in ("fork", "spawn", "forkserver")],
    ],
    "Public suites": [
        _pytest("NumPy", "numpy._core.tests", *NUMPY.split()),
        _pytest("h5py", "h5py.tests"),
    ],
}
