"""The statement "this must hold" that did not: checks of TensorFlow, raw logs of abseil, assertions of C."""

from __future__ import annotations

import re

from faultlens.clues.case import Case
from faultlens.clues.messages import CheckFailure

_RAW = re.compile(r"\[(?P<file>[\w.]+) : (?P<line>\d+)\] RAW: (?P<text>[^\n]+)")
_ASSERTION = re.compile(r"(?P<file>[\w./-]+):(?P<line>\d+): [^\n]*?(?P<text>Assertion [`'][^\n]*?' failed)")
# "(::tsl::TfCheckOkDeprecationMarker(), InitDims(sizes)) is OK (INVALID…)" says "InitDims(sizes) is OK (INVALID…)".
_MARKER = re.compile(r"\(::tsl::TfCheckOkDeprecationMarker\(\), (.*)\) is OK")


def failed_check(case: Case) -> CheckFailure | None:
    if case.check is not None:
        return CheckFailure(_MARKER.sub(r"\1 is OK", case.check.text), case.check.place)
    for pattern in (_RAW, _ASSERTION):
        if text := case.said(pattern):
            match = pattern.search(text)
            return CheckFailure(match["text"].strip(), f"{match['file']}:{match['line']}") if match else None
    return None
