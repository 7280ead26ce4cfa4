"""What reports say of the small program that dies as the reported one did, or of how to get one."""

from __future__ import annotations

from faultlens.diagnosis.causes import find
from faultlens.diagnosis.evidence.kernels import kernel_at_fault
from faultlens.records.diagnosis import Reproducer
from faultlens.records.report_file import Report
from faultlens.report.facts import Pairs
from faultlens.report.verdict import subject, verdict
from faultlens.text.quantities import count
from faultlens.text.safe import one_line
from faultlens.text.sizes import in_words as size

HINT = "`faultlens repro` writes a small script that crashes the same way"
_LINE = 1000
# Families of causes that lie in the program itself, so that a smaller one shows them, too.
_IN_THE_PROGRAM = frozenset({"tensorflow", "native", "buffers"})


def reproducer_in_words(found: Reproducer) -> str:
    """ "reproduces 3 of 3, 7 lines: SIGABRT in tensorflow::BlockLSTMOp::Compute"."""
    tried = f"reproduces {found.same:,} of {found.runs:,}" if found.runs else "not tried"
    how = f": {one_line(found.signature, 200)}" if found.signature else ""
    return f"{tried}, {count(_length(found), 'line')}{how}"


def script_lines(found: Reproducer) -> list[str]:
    """The script as it may be shown anywhere."""
    lines = found.script.rstrip("\n").split("\n")
    return [one_line(line.expandtabs(4).rstrip(), _LINE) for line in lines]


def arrays(found: Reproducer) -> Pairs:
    """The files beside the script."""
    return [(one_line(name, 120), size(len(data))) for name, data in found.files.items()]


def worth_reproducing(report: Report) -> bool:
    """Whether there is none yet and `faultlens repro` may find one."""
    crash, found = subject(report), verdict(report)
    if report.reproducer is not None or crash.fault is None:
        return False
    cause = find(found.cause) if found else None
    return kernel_at_fault(crash) is not None or (cause is not None and cause.family in _IN_THE_PROGRAM)


def _length(found: Reproducer) -> int:
    return len(found.script.strip().splitlines())
