from __future__ import annotations

from faultlens.diagnosis.causes.base import PROVEN, STRONG, Cause, Finding, consider, evidence
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.saving import left_behind, save_with_faultlens
from faultlens.diagnosis.evidence.senders import ended_by
from faultlens.diagnosis.evidence.shortages import TOO_LARGE
from faultlens.text.safe import one_line
from faultlens.text.sizes import in_words


class FileSizeLimit(Cause):
    """
    ## What it is
    A file grew to the size that the process may write (`ulimit -f`, RLIMIT_FSIZE), or that its file system can hold
    (4 GiB on FAT).

    ## How it looks
    "File too large" (errno 27) while saving or logging. Python ignores the signal that the kernel sends (SIGXFSZ), so
    it is an exception; in a program without Python it is a death by SIGXFSZ. The file is cut at the limit, and the
    model that was saved under its name before is lost.

    ## How to prove it
    The message or the signal, and `ulimit -f` in the shell or job that starts the program (it counts 1024 bytes).

    ## How to fix it
    `ulimit -f unlimited`, or raise the limit of the job. `faultlens.save` looks at it before it writes a byte.
    """

    slug = "file-size-limit"
    code = "FL210"
    headline = "A file reached the size that may be written"

    def examine(self, case: Case) -> Finding | None:
        error = case.exception
        text = f"{error.type}: {error.details}" if error is not None and case.fault is None else ""
        said = bool(TOO_LARGE.search(text))
        signal = "SIGXFSZ" in (ended_by(case), case.fault.signal if case.fault else None)
        if not (said or signal):
            return None
        limit = case.crash.limits.get("RLIMIT_FSIZE")
        size = limit.soft if limit is not None else None
        return Finding(
            strength=PROVEN if signal or size is not None else STRONG,
            title="a file reached the size that may be written"
            + (f": {in_words(size)} (ulimit -f)" if size is not None else ""),
            evidence=evidence(
                (one_line(text, 240), "traceback") if said else ("ended by SIGXFSZ", "wait status"),
                (f"RLIMIT_FSIZE is {in_words(size)}", "/proc/PID/limits") if size is not None else None,
                ("EFBIG is returned only for a file that reaches a limit on its size", "errno") if said else None,
                *left_behind(case),
            ),
            fixes=(
                consider("raise the limit before the program starts", "ulimit -f unlimited, or the job's limit"),
                *save_with_faultlens(case, "it looks at the limit before it writes; "),
            ),
        )
