"""Makes a small recorded crash for the tests out of a real report: python tools/record.py REPORT NAME.

Keeps what causes look at, drops bulk, and puts made-up paths in the place of those of this machine."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from msgspec.structs import replace

from faultlens.inspection.owners import custom_libraries
from faultlens.records import report_file
from faultlens.records.crash import Crash, Mapping, Thread
from faultlens.records.report_file import Report

FOLDER = Path(__file__).parent.parent / "tests" / "recorded"
MAX_FRAMES = 60
MAX_OTHER_THREADS = 2
MAX_SAMPLES = 12
STDERR = 6000
NEAR = 4  # mappings kept on either side of an interesting address
TELLING = re.compile(r"LD_|TF_(?!CLI)|OMP|KMP|CUDA")
INSTALLED = "/home/ada/venv/lib/python3.11/site-packages"
MADE_UP = (
    (r"/tmp/run-\w+/jobs/\w+", "/home/ada/project"),
    (r"/tmp/run-\w+/tmp", "/tmp"),
    (r'(?<="prefix": ")[^"]*', "/home/ada/venv"),
    (r"/[\w./-]*?venvs?/[\w.-]+/(bin|lib)/", r"/home/ada/venv/\1/"),
    (r"/[\w./-]*?/faultlens/(agent|guard_alloc)/", rf"{INSTALLED}/faultlens/\1/"),
    (r"/[\w./-]*?/\.pyenv/versions/[\d.]+/", "/usr/local/"),
    (r"/tmp/python-build[\w.-]*/Python-[\d.]+/", "/usr/src/python/"),
)
PACKAGES = {"tensorflow", "tensorflow_cpu", "keras", "numpy", "protobuf", "h5py", "torch", "ml_dtypes", "jax"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("name")
    parser.add_argument("--replace", nargs="*", default=[], metavar="OLD=NEW", help="paths to hide")
    arguments = parser.parse_args()
    report = report_file.read(arguments.report)
    crash = shrink(report.crash)
    data = report_file.to_json(Report(outcome=crash.outcome, crash=crash)).decode()
    for pair in arguments.replace:
        old, _, new = pair.partition("=")
        data = data.replace(old, new)
    for pattern, plain in MADE_UP:
        data = re.sub(pattern, plain, data)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{arguments.name}.json").write_text(json.dumps(json.loads(data), indent=1) + "\n")


def shrink(crash: Crash) -> Crash:
    threads = [thread for thread in crash.threads if thread.crashed or thread.launched]
    others = [thread for thread in crash.threads if thread not in threads]
    kept = tuple(_short(thread) for thread in threads + others[:MAX_OTHER_THREADS])
    named = {frame.library for thread in kept for frame in thread.frames} | set(custom_libraries(crash))
    python = crash.program.python
    if python is not None:
        wanted = tuple(p for p in python.packages if p.name.lower().replace("-", "_") in PACKAGES)
        python = replace(python, packages=wanted)
    step = max(1, len(crash.timeline) // MAX_SAMPLES)
    return replace(
        crash,
        threads=kept,
        libraries=tuple(library for library in crash.libraries if library.path in named),
        mappings=_near(crash),
        files=tuple(state for state in crash.files if "/locale/" not in state.path and "gconv" not in state.path),
        program=replace(crash.program, python=python, environment=_telling(crash.program.environment)),
        timeline=crash.timeline[::step],
        output=replace(
            crash.output,
            stderr=(crash.output.stderr or "")[-STDERR:],
            stdout=(crash.output.stdout or "")[-500:],
        ),
        machine=crash.machine and replace(crash.machine, distribution=None),
        children=tuple(shrink(child) for child in crash.children),
    )


def _short(thread: Thread) -> Thread:
    return replace(thread, frames=thread.frames[:MAX_FRAMES])


def _near(crash: Crash) -> tuple[Mapping, ...]:
    fault = crash.fault
    wanted = [fault.address, *fault.registers.values()] if fault else []
    keep: set[int] = set()
    for address in (value for value in wanted if value is not None):
        for index, mapping in enumerate(crash.mappings):
            if mapping.end > address:
                keep.update(range(max(0, index - NEAR), min(len(crash.mappings), index + NEAR)))
                break
    return tuple(crash.mappings[index] for index in sorted(keep))


def _telling(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if TELLING.match(name)}


if __name__ == "__main__":
    main()
