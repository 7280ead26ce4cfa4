"""Writes the calls of tools/crashing_ops.py as crash programs with their truth, split by op into two parts.

    PYTHON benchmarks/corpus_variants.py FOLDER [--each N] [--only OP …] [--within SURROUNDING …]

PYTHON has the TensorFlow on which they should die. FOLDER/train and FOLDER/heldout get cases/ID/{case.json, run.sh,
main.py} as crashlab has them, and baseline.json: how each program ended when it was tried. Which part an op falls into
is decided by its name alone, before anybody looks at what is said about it: rules are mended with the training part,
and the other one tells whether that helped. Programs that do not die are left out; with --each N of the others only N
for every call, another choice for each. What FOLDER has already stays. Measure them with

    python benchmarks/accuracy.py measure --set variants_train variants_heldout \\
        --cases FOLDER/train/cases FOLDER/heldout/cases --venvs … --tool-python …"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import variant_truth
from variant_programs import SURROUNDINGS, WORKER_EXIT, Program, chosen, part, programs

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
from crashing_ops import CALLS, Call

GIB = 1 << 30
SECONDS = 60
ENVIRONMENT = "tf221"
RUN = """\
#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/ENVIRONMENT}
exec ${WRAP:-} "$VENV/bin/python" main.py
"""


class Ending(NamedTuple):
    kind: str  # "signal" or "exit"
    value: str
    stderr: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--each", type=int, default=99, metavar="N")
    parser.add_argument("--only", nargs="+", default=[], metavar="OP")
    parser.add_argument("--within", nargs="+", default=list(SURROUNDINGS), choices=SURROUNDINGS)
    arguments = parser.parse_args()
    for call in CALLS:
        if arguments.only and call.op not in arguments.only:
            continue
        home = arguments.folder / part(call.op)
        home.mkdir(parents=True, exist_ok=True)
        told = write_variants(call, home, arguments.within, arguments.each)
        print(part(call.op), call.op, told, flush=True)


def write_variants(call: Call, home: Path, within: list[str], each: int) -> str:
    """The programs that die as the plain one does, with the truth that it has."""
    found = {program.surrounding: program for program in programs(call.code)}
    plain = ending_of(found["eager"].text)
    if plain.kind != "signal":
        return f"ends by {plain.kind} {plain.value}"
    fault = fault_of(found["eager"].text) if plain.value == "SIGSEGV" else None
    if not variant_truth.causes(plain.value, plain.stderr, fault, call.code):
        return f"{plain.value}, why is undecided"
    kept: list[str] = []
    for surrounding in chosen(call.op, [name for name in within if name in found], len(found)):
        if len(kept) == each:
            break
        program = found[surrounding]
        ending = plain if surrounding == "eager" else ending_of(program.text)
        causes = variant_truth.causes(plain.value, ending.stderr, fault, call.code)
        if not causes or not dies_so(program, ending, plain.value):
            continue
        truth = case(call, f"{snake(call.op)}_{surrounding}", program, plain.value, causes)
        write_case(home / "cases" / truth["id"], program, truth)
        remember(home / "baseline.json", truth["id"], ending)
        kept.append(surrounding)
    return f"{plain.value} {' '.join(kept)}"


def dies_so(program: Program, ending: Ending, killed_by: str) -> bool:
    wanted = ("exit", str(WORKER_EXIT)) if program.worker else ("signal", killed_by)
    return (ending.kind, ending.value) == wanted


def case(call: Call, name: str, program: Program, killed_by: str, causes: list[str]) -> dict[str, Any]:
    apis = re.findall(r"tf\.((?:\w+\.)*\w+)\(", call.code)[:1]
    return {
        "id": name,
        "title": f"{call.op}, {program.surrounding}",
        "environment": ENVIRONMENT,
        "needs": [],
        "timeout_s": SECONDS,
        "outcome": f"exit:{WORKER_EXIT}" if program.worker else f"signal:{killed_by}",
        "causes": causes,
        "op": sorted({call.op, re.sub(r"V\d+$", "", call.op), *(f"tf.{api}" for api in apis)}),
        "location": {"file": "main.py", "lines": list(program.lines)},
        "deterministic": True,
    }


def write_case(folder: Path, program: Program, truth: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.py").write_text(program.text)
    (folder / "run.sh").write_text(RUN.replace("ENVIRONMENT", ENVIRONMENT))
    (folder / "case.json").write_text(json.dumps(truth, indent=1) + "\n")


def remember(path: Path, name: str, ending: Ending) -> None:
    """How it ends on its own, where benchmarks/accuracy.py looks for it."""
    known = json.loads(path.read_text()) if path.exists() else {"cases": {}}
    known["cases"][name] = {"status": {"kind": ending.kind, "value": ending.value}}
    path.write_text(json.dumps(known, indent=1) + "\n")


def snake(op: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", op).lower()


# ---------------------------------------------------------------------------------------------- trying


def ending_of(text: str) -> Ending:
    """In a child that was forked after the import and before the first op, as tools/try_ops.py does."""
    import tensorflow  # type: ignore[import-not-found]  # noqa: F401

    with tempfile.TemporaryFile() as log:
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            _run(text)
        status = _wait(pid)
        log.seek(0)
        stderr = log.read().decode(errors="replace")
    if os.WIFSIGNALED(status):
        return Ending("signal", signal.Signals(os.WTERMSIG(status)).name, stderr)
    return Ending("exit", str(os.WEXITSTATUS(status)), stderr)


def _run(text: str) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (8 * GIB, 8 * GIB))
    code = 1
    try:
        exec(compile(text, "main.py", "exec"), {"__name__": "__main__"})
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}"[:500].encode())
    with contextlib.suppress(io.UnsupportedOperation):
        sys.stdout.flush()
    os._exit(code)


def _wait(pid: int) -> int:
    """Its status; a program that hangs, with all that it started, is killed."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def fault_of(text: str) -> variant_truth.Fault | None:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "main.py"
        program.write_text(text)
        return variant_truth.fault_of(sys.executable, program)


if __name__ == "__main__":
    main()
