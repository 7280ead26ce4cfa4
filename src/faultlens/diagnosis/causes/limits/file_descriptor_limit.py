from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import LIKELY, PROVEN, SAID, STRONG, Cause, Finding, consider, evidence
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.leaks import evidence_of, growth_of
from faultlens.diagnosis.evidence.limits import FATAL, open_files
from faultlens.diagnosis.evidence.loader import short
from faultlens.diagnosis.evidence.messages import line_saying
from faultlens.diagnosis.evidence.shortages import TOO_MANY_FILES
from faultlens.diagnosis.evidence.wordings import Wording
from faultlens.records.diagnosis import Evidence
from faultlens.text.safe import one_line

# libstdc++ opens a device for std::random_device and tells of nothing else when that fails.
_NO_DEVICE = re.compile(r"random_device")
SPARE = 4  # descriptors that may be left when one call needs several


class FileDescriptorLimit(Cause):
    """
    ## What it is
    The program has as many files, sockets and pipes open as `RLIMIT_NOFILE` (`ulimit -n`) allows, and the next one
    could not be opened.

    ## How it looks
    "Too many open files" as an exception (OSError 24, ResourceExhaustedError), or an abort with a message that
    speaks of something else: `random_device could not be read`, because that too is a file.

    ## How to prove it
    Compare the entries of `/proc/PID/fd` with "Max open files" in `/proc/PID/limits`. What the entries point to
    shows who opened them.

    ## How to fix it
    Close what is opened (`with open(…)`, writers, datasets and pools), open fewer at once (`cycle_length` of
    `interleave`), or raise the limit: `ulimit -n 65536`, `LimitNOFILE=` of the service.
    """

    slug = "file-descriptor-limit"
    code = "FL205"
    headline = "No more files could be opened"

    def examine(self, case: Case) -> Finding | None:
        budget, symptom = open_files(case.crash), _symptom(case)
        full = budget is not None and budget.left <= SPARE
        died = case.fault is not None or (case.only_words and case.signal in FATAL)
        if symptom is None or (symptom.source == "stderr" and not died):
            return None
        said = bool(TOO_MANY_FILES.search(symptom.fact))
        if not said and budget is not None and not full and symptom.source != "traceback":
            return None
        mention = case.mentions(Wording.SETS_OPEN_FILES)
        return Finding(
            strength=SAID
            if case.only_words and not full
            else PROVEN
            if said and (full or symptom.source == "traceback")
            else STRONG
            if said or full
            else LIKELY + 0.05,
            title="no more files could be opened: " + _used_up(case, full),
            evidence=evidence(
                symptom,
                (f"{budget.used} of {budget.limit} descriptors were in use", "/proc/PID/fd")
                if budget and full
                else None,
                (f"the limit is set at {mention.file}:{mention.line}: {mention.text}", "source") if mention else None,
                ("EMFILE means that the process has used up RLIMIT_NOFILE", "errno") if said else None,
                *case.fault_evidence[:1],
                *evidence_of(growth_of(case.crash, "open files")),
            ),
            fixes=(
                consider("close files, writers and datasets when they are done", "`with` closes them on every way out"),
                consider(f"raise the limit that {short(mention.file)}:{mention.line} sets")
                if mention
                else consider("raise the limit", "ulimit -n 65536, or LimitNOFILE= of the service"),
                consider("open fewer files at once", "a smaller cycle_length or num_parallel_calls of interleave"),
            ),
        )

    def rule_out(self, case: Case) -> str | None:
        budget = open_files(case.crash)
        if case.fault is None or budget is None or budget.used > budget.limit / 2 or case.said(TOO_MANY_FILES):
            return None
        return f"only {budget.used} of {budget.limit} file descriptors were in use"


def _used_up(case: Case, full: bool) -> str:
    """Of an exception only the last sample is known, which may be older than most of the files."""
    limit = case.crash.limits.get("RLIMIT_NOFILE")
    if limit is None or limit.soft is None:
        return "the limit was reached"
    return f"all {limit.soft} descriptors were in use" if full else f"the limit is {limit.soft} (ulimit -n)"


def _symptom(case: Case) -> Evidence | None:
    if case.exception is not None:
        text = f"{case.exception.type}: {case.exception.details}"
        if TOO_MANY_FILES.search(text) or _NO_DEVICE.search(text):
            return Evidence(fact=one_line(text, 240), source="traceback")
    thrown = case.thrown
    if thrown is not None and (TOO_MANY_FILES.search(thrown.message or "") or _NO_DEVICE.search(thrown.message or "")):
        return Evidence(fact=f"{thrown.type}: {thrown.message}", source="C++ exceptions")
    line = line_saying(case.crash, TOO_MANY_FILES) or line_saying(case.crash, _NO_DEVICE)
    return Evidence(fact=one_line(line, 240), source="stderr") if line else None
