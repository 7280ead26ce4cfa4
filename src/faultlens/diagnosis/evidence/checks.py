"""The statement "this must hold" that did not: checks of TensorFlow, raw logs of abseil, assertions of C."""

from __future__ import annotations

import re

from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.messages import CheckFailure
from faultlens.inspection.frames import short_function
from faultlens.inspection.owners import owner_of

_RAW = re.compile(r"\[(?P<file>[\w.]+) : (?P<line>\d+)\] RAW: (?P<text>[^\n]+)")
_ASSERTION = re.compile(r"(?P<file>[\w./-]+):(?P<line>\d+): [^\n]*?(?P<text>Assertion [`'][^\n]*?' failed)")
# The C library's own: of its heap, its locks, its loader, not of what an op was given.
_OF_LIBC = re.compile(
    r"(?:^|/)(?:malloc|arena|tpp|allocatestack|cancellation|dl-[\w-]+|pthread_\w+)\.c$|nptl/|sysdeps/"
)
# "(::tsl::TfCheckOkDeprecationMarker(), InitDims(sizes)) is OK (INVALID…)" says "InitDims(sizes) is OK (INVALID…)".
_MARKER = re.compile(r"\(::tsl::TfCheckOkDeprecationMarker\(\), (.*)\) is OK")


def failed_check(case: Case) -> CheckFailure | None:
    if case.check is not None:
        return CheckFailure(_MARKER.sub(r"\1 is OK", case.check.text), case.check.place)
    for pattern in (_RAW, _ASSERTION):
        if text := case.said(pattern):
            match = pattern.search(text)
            if match is None or _OF_LIBC.search(match["file"]):
                return None
            return CheckFailure(match["text"].strip(), f"{match['file']}:{match['line']}")
    return _by_its_frames(case)


def _by_its_frames(case: Case) -> CheckFailure | None:
    """TensorFlow's own code called abort(), which it does for nothing else; the text was lost (a core file)."""
    thread = case.crash.crashed_thread
    frames = thread.frames if thread and case.signal == "SIGABRT" else ()
    abort = next((index for index, frame in enumerate(frames) if frame.function == "abort"), None)
    if abort is None or abort + 1 >= len(frames) or owner_of(frames[abort + 1]) != "tensorflow":
        return None
    return CheckFailure(f"a check failed in {short_function(case.stack[0].function)}", "its text was not recorded")
