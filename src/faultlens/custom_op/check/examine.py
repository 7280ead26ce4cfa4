"""What is wrong with ops, told from their sources and libraries alone: nothing is built or run."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from faultlens.custom_op.building import SOURCES
from faultlens.custom_op.check.check import check, ops_of, units
from faultlens.custom_op.check.interpret.unit import Unit
from faultlens.custom_op.check.library import sources_of
from faultlens.custom_op.check.rules import catalogue
from faultlens.custom_op.check.syntax.syntax import Node, Source
from faultlens.custom_op.op_files import refuse_other_files
from faultlens.errors import FaultlensError
from faultlens.records.op_finding import Coverage, LibraryFindings, OpFinding, OpReport

HEADERS = (".h", ".hpp", ".hh", ".cuh", ".inc")
MOST_FILES = 2000
_SHOWN_LINES = 4
_KERNEL = re.compile(r"\b(?:Async)?OpKernel\b")
_COMPUTE = re.compile(r"\bCompute(?:Async)?\s*\(")

CheckLibrary = Callable[[Path, "str | None"], LibraryFindings]


def examine(paths: Sequence[Path], python: str | None, check_library: CheckLibrary) -> OpReport:
    """Sources, libraries and folders of sources. `check_library`: whether TensorFlow and the CPU take a library."""
    began = time.monotonic()
    sources, libraries = _sorted(paths)
    seen = _Seen()
    read = list(units(sources))
    for unit in read:
        seen.unit(unit)
    if sources:
        lines = sum(source.lines for unit in read for source in unit.sources)
        files = "1 source" if len(sources) == 1 else f"{len(sources)} sources"
        seen.done.append(f"{files} read ({lines:,} lines, {len(catalogue())} rules).")
    for library in libraries:
        seen.library(library, check_library(library, python))
    subject = ", ".join(str(path) for path in paths[:3]) + (" …" if len(paths) > 3 else "")
    if not seen.findings and not libraries and not any(_has_op(unit) for unit in read):
        raise FaultlensError(
            f"There is no op in {subject}.", "Name a source that has REGISTER_OP or REGISTER_KERNEL_BUILDER in it."
        )
    return OpReport(
        verb="check",
        subject=subject,
        ops=ops_of(read),
        findings=tuple(seen.findings),
        done=tuple(seen.done),
        skipped=tuple(seen.skipped),
        coverage=seen.coverage,
        seconds=time.monotonic() - began,
    )


class _Seen:
    """What was found so far, and how much was looked at."""

    def __init__(self) -> None:
        self.findings: list[OpFinding] = []
        self.done: list[str] = []
        self.skipped: list[str] = []
        self.coverage: Coverage = "whole"

    def unit(self, unit: Unit) -> None:
        self.findings += check(unit, self.skipped)
        for summary in unit.summaries:
            if not summary.whole:
                self.skipped.append(f"some paths of {summary.function.full_name}: it has too many")
        for source in unit.sources:
            if wrong := _not_understood(source):
                lines = list(dict.fromkeys(node.line for node in wrong))
                shown = ", ".join(map(str, lines[:_SHOWN_LINES])) + (" …" if len(lines) > _SHOWN_LINES else "")
                of_kernel = any(_is_of_kernel(node) for node in wrong)
                whose = ", in a kernel" if of_kernel else ""
                self.skipped.append(f"{source.path}: what the parser does not understand (line {shown}{whose})")
                self._lower("insufficient" if of_kernel else "part")
            if not unit.kernels and not unit.ops:
                self.skipped.append(f"{source.path} registers no op: the rules about tensors do not apply to it")

    def library(self, path: Path, seen: LibraryFindings) -> None:
        self.findings += seen.findings
        self.done += seen.done
        self.skipped += seen.skipped
        self.skipped += [f"the source of {path.name}: faultlens op check {source}" for source in sources_of(path)]
        if not seen.has_ops:
            self.skipped.append(f"ops in {path.name}: it registers none, and no kernel")
            self._lower("insufficient")

    def _lower(self, coverage: Coverage) -> None:
        self.coverage = max(self.coverage, coverage, key=("whole", "part", "insufficient").index)


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
        else:
            refuse_other_files(path)
            libraries[path] = None
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


def _has_op(unit: Unit) -> bool:
    """A kernel may be registered in another source."""
    text = (source.data.decode("utf-8", "replace") for source in unit.sources)
    return bool(unit.ops or unit.kernels or any(map(_KERNEL.search, text)))


def _not_understood(source: Source) -> list[Node]:
    """Where the parser met an error, in the order of the text."""
    wrong = (node for node in source.root.find("ERROR") if len(node.text.strip()) > 1)
    return sorted(wrong, key=lambda node: node.start)


def _is_of_kernel(node: Node) -> bool:
    """It lies in a kernel's class or in its Compute, or it has swallowed them."""
    if _KERNEL.search(node.text) or _COMPUTE.search(node.text):
        return True
    for above in node.above():
        if above.kind in ("class_specifier", "struct_specifier") and _KERNEL.search(_head(above)):
            return True
        if above.kind == "function_definition" and _COMPUTE.search(_head(above)):
            return True
    return False


def _head(node: Node) -> str:
    """Of a class or a function: what stands before its body."""
    body = node.get("body")
    return node.source.data[node.start : body.start if body else node.end].decode("utf-8", "replace")
