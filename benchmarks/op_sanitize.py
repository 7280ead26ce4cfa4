"""How long is it from a planted overflow to its line, and what does each rung of `op sanitize` cost the program?"""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

from measure import FAULTLENS, PROGRAMS, Bench, Table, clean_environment, median_text

from faultlens.custom_op.building import build, target_of

STEPS, ROUNDS = 3000, 3
# valgrind takes minutes for the import of TensorFlow alone, and GWP-ASan samples: it needs many more calls.
RUNGS = ("malloc", "fence", "asan", "ubsan", "outputs", "tsan", "asan ubsan outputs")
GUILTY = "guilty line"
HEADER = ("rung", "line named", "from the command to the line", "the program's own loop", "against plain")
TEXT = f"""\
An op that writes one element too far, in a program that calls a healthy op {STEPS} times before (eagerly; the loop is
timed inside the program). The time contains the build of the op, the start of TensorFlow and the look at what was
reported. `malloc` and `fence` need no source; they run the program's own build."""


def run(bench: Bench) -> Table:
    table = Table("Sanitizers of custom ops", TEXT, HEADER)
    source, program = PROGRAMS / "op_sanitize.cc", PROGRAMS / "op_sanitize.py"
    library = bench.folder / "libop_sanitize.so"
    build([source], library, target_of(bench.python), ("-g",))
    command = [bench.python, str(program), str(library), str(bench.scaled(STEPS))]
    rounds = 1 if bench.quick else ROUNDS
    plain = [_plain([*command, "healthy"]) for _ in range(rounds)]
    table.rows.append(["(plain)", "", "", median_text(plain, "s", 1), ""])
    table.data["plain"] = plain
    for rung in RUNGS:
        results = [_sanitized(bench, rung, source, library, command) for _ in range(rounds)]
        loops = [result["loop"] for result in results]
        ratio = sorted(loops)[len(loops) // 2] / sorted(plain)[len(plain) // 2]
        took = median_text([result["seconds"] for result in results], "s", 1, 1)
        named = "yes" if all(result["named"] for result in results) else "no"
        table.rows.append([rung.replace(" ", " + "), named, took, median_text(loops, "s", 1), f"{ratio:.2f}x"])
        table.data[rung] = results
    return table


def _plain(command: list[str]) -> float:
    return _loop_seconds(subprocess.run(command, capture_output=True, text=True, env=clean_environment()).stdout)


def _sanitized(bench: Bench, rung: str, source: Path, library: Path, command: list[str]) -> dict[str, Any]:
    written = bench.folder / "sanitized.json"
    flags = [f"--{name}" for name in rung.split()]
    words = [*FAULTLENS, "op", "sanitize", source, library, *flags, "--json", written, "--", *command]
    began = time.monotonic()
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, env=clean_environment())
    seconds = time.monotonic() - began
    if done.returncode not in (0, 1):
        raise RuntimeError(f"op sanitize --{rung}: {done.stderr}")
    guilty = next(number for number, line in enumerate(source.read_text().splitlines(), 1) if line.endswith(GUILTY))
    found = json.loads(written.read_text())["findings"]
    named = any((finding.get("span") or {}).get("line") == guilty for finding in found)
    return {
        "seconds": seconds,
        "loop": _loop_seconds(done.stdout),
        "named": named,
        "rules": [each["rule"] for each in found],
    }


def _loop_seconds(output: str) -> float:
    return next(float(line.split()[1]) for line in output.splitlines() if line.startswith("loop "))
