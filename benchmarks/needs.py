"""What TensorFlow programs need of the machine, and at which limits they fail."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from measure import PROGRAMS, Bench, Table, clean_environment

PROGRAM = PROGRAMS / "needs.py"
KIB, MIB = 1 << 10, 1 << 20
CPUS = (1, 2, 8, 64)
INTERVAL_S = 0.002
SECONDS = 120
HALVINGS, FEW = 6, 3

WORK = {
    "import": "`import tensorflow`",
    "op": "the first op",
    "data": "tf.data: parallel map, prefetch",
    "interleave": "tf.data: 16 files at once",
    "fit": "Keras `fit`, small model",
    "jit": "the same with `jit_compile`",
    "save": "`fit` and `save` of a million parameters",
}


# ---------------------------------------------------------------------------------- what they use


def run(bench: Bench) -> Table:
    table = Table(
        "What a TensorFlow program uses",
        "Each program alone, once; memory as the kernel counts it at the end or at the peak, threads and descriptors "
        f"counted every {INTERVAL_S * 1000:.0f} ms. For another number of CPUs than the machine has, a preloaded "
        "library invents them.",
        (
            "program", "memory, peak", "of it not in files", "mapped, peak", "mappings", "open files",
            *(f"threads, {cpus} CPU{'s' if cpus > 1 else ''}" for cpus in CPUS),
        ),
    )  # fmt: skip
    library = _library(bench.folder)
    for name, words in WORK.items():
        seen = {cpus: _watched(bench, name, library, cpus) for cpus in (CPUS[:2] if bench.quick else CPUS)}
        own = seen[2]
        table.data[name] = {str(cpus): numbers for cpus, numbers in seen.items()}
        table.rows.append(
            [
                words,
                *(_mib(own[key]) for key in ("resident", "anonymous", "mapped")),
                *(str(own[key]) for key in ("mappings", "files")),
                *(str(seen[cpus]["threads"]) if cpus in seen else "" for cpus in CPUS),
            ]
        )
    return table


def _library(folder: Path) -> Path:
    library = folder / "libcpus.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, PROGRAMS / "cpus.c", "-ldl"], check=True)
    return library


def _watched(bench: Bench, work: str, library: Path, cpus: int) -> dict[str, int]:
    environment = clean_environment(LD_PRELOAD=library, CPUS=str(cpus))
    threads = files = 0
    with subprocess.Popen(
        [bench.python, PROGRAM, work], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        folder = Path(f"/proc/{process.pid}")
        while process.poll() is None:
            with contextlib.suppress(OSError):
                threads = max(threads, len(os.listdir(folder / "task")))
                files = max(files, len(os.listdir(folder / "fd")))
            time.sleep(INTERVAL_S)
        assert process.stderr
        last = process.stderr.read().decode(errors="replace").strip().rpartition("\n")[2]
    return {**json.loads(last), "threads": threads, "files": files}


# ------------------------------------------------------------------------------- where they fail


@dataclass(frozen=True)
class Limit:
    name: str
    work: str
    low: int  # is known to fail
    high: int  # should work
    unit: int
    set: Callable[[int], object]  # called in the child before it becomes the program


def thresholds(bench: Bench) -> Table:
    table = Table(
        "Limits at which it fails",
        "By bisection, one run at each value; between the two columns it was not tried. The control groups need root.",
        ("limit", "program", "fails with", "how", "works with"),
    )
    for limit in _limits():
        fails, ending, works = _bisected(bench, limit)
        table.data[f"{limit.name}, {limit.work}"] = {"fails": fails, "works": works, "ending": ending}
        shown = [_shown(value, limit.unit) for value in (fails, works)]
        table.rows.append([f"`{limit.name}`", WORK[limit.work], shown[0], ending, shown[1]])
    return table


def _limits() -> Iterator[Limit]:
    for work, high in (("import", 1500), ("fit", 3000)):
        yield Limit("RLIMIT_AS", work, 200 * MIB, high * MIB, MIB, _rlimit("RLIMIT_AS"))
    for work, high in (("import", 400), ("fit", 800)):
        yield Limit("RLIMIT_DATA", work, 20 * MIB, high * MIB, MIB, _rlimit("RLIMIT_DATA"))
    for work in ("import", "fit"):
        yield Limit("RLIMIT_STACK", work, 16 * KIB, 512 * KIB, KIB, _rlimit("RLIMIT_STACK"))
    yield Limit("RLIMIT_NOFILE", "fit", 3, 16, 1, _rlimit("RLIMIT_NOFILE"))
    yield Limit("RLIMIT_NOFILE", "interleave", 4, 128, 1, _rlimit("RLIMIT_NOFILE"))
    if os.geteuid() == 0:
        yield Limit("pids.max", "fit", 1, 64, 1, _group("pids", "pids.max"))
        memory = _group("memory", "memory.max")
        for work in ("import", "fit"):
            yield Limit("memory.max", work, 50 * MIB, 400 * MIB, MIB, memory)


def _bisected(bench: Bench, limit: Limit) -> tuple[int, str, int]:
    """The largest value that failed, how, and the smallest that worked."""
    low, high, ending = limit.low, limit.high, "not tried"
    if (problem := _ending(bench, limit, high)) is not None:
        return high, problem, 0
    for _ in range(FEW if bench.quick else HALVINGS):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        problem = _ending(bench, limit, middle)
        if problem is None:
            high = middle
        else:
            low, ending = middle, problem
    return low, ending, high


def _ending(bench: Bench, limit: Limit, value: int) -> str | None:
    """None when the program did its work."""
    try:
        done = subprocess.run(
            [bench.python, PROGRAM, limit.work],
            env=clean_environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: limit.set(value),
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"not done after {SECONDS} s"
    if done.returncode < 0:
        return signal.Signals(-done.returncode).name
    last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    return (last.partition(":")[0].rpartition(".")[2] or "exit status") if done.returncode else None


def _rlimit(name: str) -> Callable[[int], object]:
    return lambda value: resource.setrlimit(getattr(resource, name), (value, value))


def _group(controller: str, name: str) -> Callable[[int], object]:
    """A group of its own, of either version, without swap."""
    root = Path("/sys/fs/cgroup")
    old = (root / controller).is_dir()
    folder = (root / controller if old else root) / f"needs-{controller}-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    atexit.register(folder.rmdir)

    def join(value: int) -> None:
        if old and controller == "memory":
            for file in ("memory.memsw.limit_in_bytes", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"):
                with contextlib.suppress(OSError):  # the one may not be below the other on the way
                    (folder / file).write_text(str(value))
        else:
            (folder / name).write_text(str(value))
            with contextlib.suppress(OSError):
                (folder / "memory.swap.max").write_text("0")
        (folder / "cgroup.procs").write_text(str(os.getpid()))

    return join


def _mib(size: int) -> str:
    return f"{size / MIB:,.0f} MiB"


def _shown(value: int, unit: int) -> str:
    return f"{value / unit:,.0f}" + {KIB: " KiB", MIB: " MiB", 1: ""}[unit]
