"""Feeds mutated cores and reports to their readers: only a result or a FaultlensError may come out, and soon.

    python tools/fuzz.py --count 100000 [--seed N] [--core FILE] [--report FILE]

Without files it makes a small core (needs gcc) and takes the recorded reports of the tests.
"""

from __future__ import annotations

import argparse
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from faultlens.errors import FaultlensError
from faultlens.inspection.corefile.read import read_core
from faultlens.records import report_file

SLOW = 5.0  # seconds for one small file
HEADERS = 8 << 10  # where the structure of a core is
EXTREMES = (0, 1, 0x7F, 0xFF, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 47, (1 << 63) - 1, (1 << 64) - 1)
RECORDED = Path(__file__).parent.parent / "tests" / "unit" / "report" / "crashes"


def mutate(data: bytes, rng: random.Random) -> bytes:
    """A few changes of one kind, most of them where the structure is."""
    if not data:
        return data
    if rng.random() < 0.15:
        return data[: rng.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        span = len(changed) if rng.random() < 0.2 else min(len(changed), HEADERS)
        position = rng.randrange(span)
        kind = rng.randrange(5)
        if kind == 0:
            changed[position] ^= 1 << rng.randrange(8)
        elif kind == 1:
            changed[position] = rng.randrange(256)
        elif kind == 2:
            word = struct.pack("<Q", rng.choice(EXTREMES))[: rng.choice((1, 2, 4, 8))]
            changed[position : position + len(word)] = word[: len(changed) - position]
        elif kind == 3:
            size = rng.randrange(1, 64)
            source = rng.randrange(span)
            piece = changed[source : source + size]
            changed[position : position + len(piece)] = piece
        else:
            del changed[position : position + rng.randrange(1, 64)]
        if not changed:
            break
    return bytes(changed)


def try_core(data: bytes, folder: Path) -> str:
    path = folder / "core"
    path.write_bytes(data)
    return _try(lambda: read_core(path, with_stacks=False))


def try_report(data: bytes) -> str:
    return _try(lambda: report_file.from_json(data))


def _try(read: Callable[[], object]) -> str:
    """The word "read", or the problem that was reported; anything else is raised."""
    start = time.monotonic()
    try:
        read()
        answer = "read"
    except FaultlensError as error:
        if not error.problem.strip() or "\n" in error.problem:
            raise AssertionError(f"not a sentence: {error.problem!r}") from error
        answer = error.problem
    if time.monotonic() - start > SLOW:
        raise AssertionError(f"took {time.monotonic() - start:.1f} s")
    return answer


def make_core(folder: Path) -> Path:
    """A core of a C program with two threads that dereferences null."""
    source = folder / "null.c"
    source.write_text(
        "#include <pthread.h>\n#include <unistd.h>\n"
        "static void *wait_here(void *unused) { pause(); return unused; }\n"
        "int main(void) {\n"
        "  pthread_t thread;\n  pthread_attr_t small;\n  pthread_attr_init(&small);\n"
        "  pthread_attr_setstacksize(&small, 1 << 15);\n"
        "  pthread_create(&thread, &small, wait_here, 0);\n  usleep(10000);\n"
        "  return *(volatile int *)8;\n}\n"
    )
    subprocess.run(["gcc", "-g", "-pthread", "-o", folder / "null", source], check=True)
    subprocess.run([folder / "null"], cwd=folder, preexec_fn=allow_cores, check=False)
    return next(folder.glob("core*"))


def allow_cores() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--core", type=Path)
    parser.add_argument("--report", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        core = (arguments.core or make_core(folder)).read_bytes()
        recorded = [arguments.report] if arguments.report else sorted(RECORDED.glob("*.json"))
        reports = [path.read_bytes() for path in recorded]
        answers: dict[str, int] = {"read": 0, "refused": 0}
        for number in range(arguments.count):
            rng = random.Random(f"{arguments.seed}-{number}")
            is_core = number % 2 == 0 or not reports
            data = mutate(core if is_core else rng.choice(reports), rng)
            try:
                answer = try_core(data, folder) if is_core else try_report(data)
            except BaseException:
                kept = Path(f"fuzz-{arguments.seed}-{number}.{'core' if is_core else 'json'}")
                kept.write_bytes(data)
                print(f"the input is kept in {kept}", file=sys.stderr)
                raise
            answers["read" if answer == "read" else "refused"] += 1
    print(f"{arguments.count} inputs, seed {arguments.seed}: {answers['read']} read, {answers['refused']} refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
