"""Whether the installed TensorFlow would load a library of ops, and this CPU run it: the doctor's checks."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from faultlens.doctor.check import Check
from faultlens.doctor.checks.cpu.cpu import CpuFeatures
from faultlens.doctor.checks.given.custom_op import CustomOp
from faultlens.records.finding import Examination
from faultlens.records.op_finding import LibraryFindings, OpFinding
from faultlens.records.severity import Severity
from faultlens.system.elf import ElfError
from faultlens.target_env.op_library import read_op
from faultlens.target_env.target import Options, meet


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


# In names that a library with kernels asks for: of the C++ interface, and of the C interface.
_OF_KERNELS = ("17OpKernelRegistrar", "8OpKernel", "TF_RegisterKernelBuilder", "16KernelDefBuilder")

PAGES = (
    Page("OP201", "not-loadable", "the installed TensorFlow would not load the library", CustomOp),
    Page("OP202", "cpu-features", "the library uses instructions that this CPU lacks", CpuFeatures, "warning"),
)


def check_library(path: Path, python: str | None) -> LibraryFindings:
    target = meet(Options(python=python, ops=(path,)))
    seen = [(PAGES[0], CustomOp().examine_named(target))]
    if target.machine.cpu_flags:
        seen.append((PAGES[1], CpuFeatures().examine_named(target)))
    done = [f"{path.name}: {examination.summary}." for _, examination in seen if examination.mark == "ok"]
    skipped = [f"{path.name}: {examination.summary}" for _, examination in seen if examination.mark == "skipped"]
    findings = tuple(each for seen_ in seen for each in _findings(*seen_))
    return LibraryFindings(findings, tuple(done), tuple(skipped), has_ops(path))


def has_ops(path: Path) -> bool:
    """Whether it registers ops or kernels; what cannot be read may."""
    try:
        library = read_op(path)
    except (OSError, ElfError):
        return True
    return library.registers_ops or any(part in name for name in library.wants for part in _OF_KERNELS)


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
