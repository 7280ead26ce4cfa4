"""What is wrong with ops, told from their sources and libraries alone: nothing is built or run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from faultlens.custom_op.building import SOURCES
from faultlens.custom_op.check.check import check, ops_of, units
from faultlens.custom_op.check.interpret.unit import Unit
from faultlens.custom_op.check.library import sources_of
from faultlens.custom_op.check.rules import catalogue
from faultlens.errors import FaultlensError
from faultlens.records.op_finding import LibraryFindings, OpFinding, OpReport

HEADERS = (".h", ".hpp", ".hh", ".cuh", ".inc")
MOST_FILES = 2000
_SHOWN_LINES = 4
_ELF = b"\x7fELF"


CheckLibrary = Callable[[Path, "str | None"], LibraryFindings]


def examine(paths: Sequence[Path], python: str | None, check_library: CheckLibrary) -> OpReport:
    """Sources, libraries and folders of sources. `check_library`: whether TensorFlow and the CPU take a library."""
    began = time.monotonic()
    sources, libraries = _sorted(paths)
    findings: list[OpFinding] = []
    done: list[str] = []
    skipped: list[str] = []
    read = list(units(sources))
    for unit in read:
        findings += check(unit, skipped)
        skipped += _not_seen(unit)
    if sources:
        lines = sum(source.lines for unit in read for source in unit.sources)
        files = "1 source" if len(sources) == 1 else f"{len(sources)} sources"
        done.append(f"{files} read ({lines:,} lines, {len(catalogue())} rules).")
    for library in libraries:
        seen = check_library(library, python)
        findings += seen.findings
        done += seen.done
        skipped += seen.skipped
        skipped += [f"the source of {library.name}: faultlens op check {source}" for source in sources_of(library)]
    return OpReport(
        verb="check",
        subject=", ".join(str(path) for path in paths[:3]) + (" …" if len(paths) > 3 else ""),
        ops=ops_of(read),
        findings=tuple(findings),
        done=tuple(done),
        skipped=tuple(skipped),
        seconds=time.monotonic() - began,
    )


def _sorted(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    sources: dict[Path, None] = {}
    libraries: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            found = list(_in_folder(path))
            if not found:
                raise FaultlensError(f"There are no C++ sources in {path}.", f"Those end in {', '.join(SOURCES)}.")
            sources.update(dict.fromkeys(found))
        elif not path.is_file():
            raise FaultlensError(f"There is no file {path}.", "Name a source, a library, or a folder of sources.")
        elif path.name.endswith((*SOURCES, *HEADERS)):
            sources[path] = None
        elif _begins_like_library(path):
            libraries[path] = None
        else:
            raise FaultlensError(f"{path} is neither C++ nor a library.", f"Sources end in {', '.join(SOURCES)}.")
    return list(sources), list(libraries)


def _in_folder(folder: Path) -> Iterator[Path]:
    count = 0
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in ("build", "__pycache__")
        )
        for name in sorted(names):
            if name.endswith(SOURCES):
                count += 1
                if count > MOST_FILES:
                    raise FaultlensError(f"{folder} has more than {MOST_FILES} sources.", "Name a smaller folder.")
                yield Path(where) / name


def _begins_like_library(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == _ELF
    except OSError as error:
        raise FaultlensError(f"Cannot read {path}: {error.strerror}.", "Name another file.") from error


def _not_seen(unit: Unit) -> Iterator[str]:
    """What the rules did not get to see of a source."""
    for summary in unit.summaries:
        if not summary.whole:
            yield f"some paths of {summary.function.full_name}: it has too many"
    for source in unit.sources:
        wrong = sorted({node.line for node in source.root.find("ERROR") if len(node.text.strip()) > 1})
        if wrong:
            lines = ", ".join(map(str, wrong[:_SHOWN_LINES])) + (" …" if len(wrong) > _SHOWN_LINES else "")
            yield f"{source.path}: what the parser does not understand (line {lines})"
        if not unit.kernels and not unit.ops:
            yield f"{source.path} registers no op: the rules about tensors do not apply to it"
