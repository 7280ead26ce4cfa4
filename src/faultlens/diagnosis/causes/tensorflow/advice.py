"""What the causes of this family have in common: what is known of the op, and what to do about it."""

from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import consider, safe
from faultlens.diagnosis.evidence import call_arguments
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.explained import Explained
from faultlens.diagnosis.evidence.kernels import tensor_in_words
from faultlens.diagnosis.evidence.tensorflow_code import leading_frame, version
from faultlens.inspection.frames import short_function
from faultlens.knowledge import Known, known_crashes
from faultlens.records.crash import Frame
from faultlens.records.diagnosis import Evidence, Fix
from faultlens.text.safe import one_line

_LISTED = 6  # arguments
_TITLE = 240

_ENDINGS = {
    "op-check-failed": ("SIGABRT",),
    "op-null-dereference": ("SIGSEGV",),
    "op-out-of-bounds": ("SIGSEGV", "SIGABRT", "SIGBUS"),
    "op-division-by-zero": ("SIGFPE",),
    "op-uncaught-exception": ("SIGSEGV", "SIGABRT"),
}


def at_work(case: Case) -> str:
    """The op or API in the title."""
    return case.op or "TensorFlow"


def known(case: Case, cause: str) -> tuple[Known, ...]:
    """Crashes of this kind that are known of this op in this release."""
    release = version(case.crash)
    crashes = known_crashes(case.op, release) if case.op and release else ()
    return tuple(crash for crash in crashes if cause in crash.effect or crash.effect in ("", *_ENDINGS[cause]))


def known_evidence(case: Case, cause: str) -> tuple[Evidence, ...]:
    release = version(case.crash)
    return tuple(
        Evidence(
            fact=f"{crash.ops[0]} of TensorFlow {release} is known to crash on bad input"
            + (f": {crash.id}" if crash.id else ""),
            source=crash.source,
        )
        for crash in sorted(known(case, cause), key=lambda each: not each.id)[:1]
    )


def fixes(case: Case, cause: str, *first: Fix) -> tuple[Fix, ...]:
    """Mend the arguments; upgrade where a release is known to reject them; else tell TensorFlow."""
    fitting = known(case, cause)
    fixed = next((crash.fixed_in for crash in fitting if crash.fixed_in), None)
    if fixed:
        return (
            *first,
            safe(f"upgrade TensorFlow to {fixed} or later", "there the op rejects such arguments or handles them"),
        )
    place = fitting[0].url if fitting and fitting[0].url else "https://github.com/tensorflow/tensorflow/issues"
    return (*first, consider("report it to TensorFlow: bad input should raise an exception", place))


def titled(otherwise: str, said: Explained | None) -> str:
    """The reason where it is known, else what happened."""
    return one_line(f"{otherwise}: {said.says}", _TITLE) if said else one_line(otherwise, _TITLE)


def argument_fixes(case: Case, said: Explained | None) -> tuple[Fix, ...]:
    return (consider(said.instead, said.detail),) if said and said.instead else (check_arguments(case),)


_READS_BYTES = re.compile(r"^(?:Parse|Decode)\w+")


def check_arguments(case: Case) -> Fix:
    if case.op and _READS_BYTES.match(case.op):
        return consider(
            f"look for the damaged input: {case.op} reads bytes that came from a file",
            "faultlens scan FILES --decode names the record",
        )
    where = f" in {case.location.file.rpartition('/')[2]}:{case.location.line}" if case.location else ""
    return consider(
        f"check the arguments of {at_work(case)}{where} before the call",
        _given_in_words(case) or "empty, negative and very large values, and ranks, are what ops forget to check",
    )


def _given_in_words(case: Case) -> str:
    """What there is to look at."""
    if case.kernel is None or case.given is None:
        call = call_arguments.call_of(case.op, case.crash.sources, case.location)
        return one_line("; ".join(call_arguments.in_words(call)[:_LISTED]), 300) if call else ""
    told = [f"{each.name} is {tensor_in_words(each.tensor)}" for each in case.given.arguments[:_LISTED]]
    told += [f"{name} is {value}" for name, value in case.given.settings.items() if type(value) in (int, list)]
    return one_line("; ".join(told[:_LISTED]), 300)


def place_evidence(case: Case, frame: Frame | None) -> tuple[str, str] | None:
    """Where in TensorFlow it happened: the function that called the helper which failed."""
    leading = leading_frame(case) or frame
    if leading is None:
        return None
    return f"in {short_function(leading.function)} of {(leading.library or '').rpartition('/')[2]}", "native stack"
