"""Whether the installed TensorFlow would load a library of ops, and this CPU run it: the doctor's checks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from faultlens.custom_op.building import SOURCES
from faultlens.doctor.check import Check
from faultlens.doctor.checks.cpu.cpu import CpuFeatures
from faultlens.doctor.checks.given.custom_op import CustomOp
from faultlens.records.finding import Examination
from faultlens.records.op_finding import OpFinding, Severity
from faultlens.target_env.target import Wishes, meet

MOST_READ = 64 << 20  # bytes of a library that are searched for the names of its sources


class Read(NamedTuple):
    """What looking at a library gave."""

    findings: tuple[OpFinding, ...]
    done: tuple[str, ...]
    skipped: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """A finding about libraries, as rules about sources are described."""

    code: str
    slug: str
    headline: str
    check: type[Check]
    severity: Severity = "error"

    @property
    def explanation(self) -> str:
        return inspect.cleandoc(self.check.__doc__ or "")


PAGES = (
    Page("OP201", "not-loadable", "the installed TensorFlow would not load the library", CustomOp),
    Page("OP202", "cpu-features", "the library uses instructions that this CPU lacks", CpuFeatures, "warning"),
)


def check_library(path: Path, python: str | None) -> Read:
    patient = meet(Wishes(python=python, ops=(path,)))
    seen = [(PAGES[0], CustomOp().examine_named(patient))]
    if patient.machine.cpu_flags:
        seen.append((PAGES[1], CpuFeatures().examine_named(patient)))
    done = [f"{path.name}: {examination.summary}." for _, examination in seen if examination.mark == "ok"]
    skipped = [f"{path.name}: {examination.summary}" for _, examination in seen if examination.mark == "skipped"]
    for source in sources_of(path):
        skipped.append(f"the source of {path.name}: faultlens op check {source}")
    return Read(tuple(each for seen_ in seen for each in _findings(*seen_)), tuple(done), tuple(skipped))


def _findings(page: Page, examination: Examination) -> Iterator[OpFinding]:
    for finding in examination.findings:
        yield OpFinding(
            code=page.code,
            rule=page.slug,
            severity=finding.severity,
            title=finding.title,
            evidence=finding.evidence,
            fixes=finding.fixes,
        )


def sources_of(library: Path) -> list[Path]:
    """Sources that lie beside the library, or that its debug information names, if they are there."""
    stem = library.name.partition(".")[0].removeprefix("_").removeprefix("lib")
    beside = [library.with_name(stem + suffix) for suffix in SOURCES]
    named: set[Path] = set()
    try:
        with library.open("rb") as file:
            data = file.read(MOST_READ)
        for found in re.findall(rb"[\w./+-]{3,255}\.(?:cu\.cc|cc|cpp|cxx|cu)(?=\0)", data)[:200]:
            named.add(library.parent / found.decode())
    except OSError:
        pass
    return [path for path in dict.fromkeys((*beside, *sorted(named))) if path.is_file()][:3]
