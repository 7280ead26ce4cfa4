"""Whether faultlens itself asked the program to end, and whether others did."""

from __future__ import annotations

from faultlens.diagnosis.evidence.case import Case
from faultlens.records.crash import StopRequest
from faultlens.text.sizes import in_words


def request_in_words(request: StopRequest) -> str:
    if request.limit_of == "program":
        return (
            f"faultlens sent SIGTERM {request.seconds:,.1f} s after the start, when the program and the processes below"
            f" it held {in_words(request.used)}; {in_words(request.limit)} was the size that --stop-before-oom named"
        )
    return (
        f"faultlens sent SIGTERM {request.seconds:,.1f} s after the start, when {in_words(request.used)} of the"
        f" {in_words(request.limit)} of the {request.limit_of} were used"
    )


def sent_by_others(case: Case) -> str | None:
    return next((line for line in case.crash.handed_on if line.startswith("SIGTERM ")), None)


def asked_by_us(case: Case, name: str | None) -> bool:
    """The signal that ended the program is the one that faultlens sent."""
    return case.crash.stop_request is not None and name == "SIGTERM" and sent_by_others(case) is None
