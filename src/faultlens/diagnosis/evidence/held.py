"""What held the memory when it was nearly used up, as evidence."""

from __future__ import annotations

from faultlens.records.crash import Crash, Held
from faultlens.records.diagnosis import Evidence
from faultlens.text.sizes import in_words


def held_evidence(crash: Crash, most: int | None = None) -> tuple[Evidence, ...]:
    """The moment first: it may not be taken for the peak. What held less than half of the limit explains nothing."""
    held = crash.held
    if held is None or not held.holders or held.used < held.limit // 2:
        return ()
    return (
        Evidence(fact=moment(held, crash.seconds), source="census"),
        *(Evidence(fact=holder.text, source=f"census: {holder.kind}") for holder in held.holders[:most]),
    )


def moment(held: Held, end: float | None) -> str:
    """ "what held memory 1.2 s before the end, …"."""
    when = f"{max(end - held.seconds, 0):,.1f} s before the end" if end else f"{held.seconds:,.1f} s after the start"
    share = f"{100 * held.used // max(held.limit, 1)}% of the {in_words(held.limit)} of the {held.limit_of}"
    between = "two steps" if held.steps else "two calls"
    how = (
        f"seen between {between}, so without what is only used while they run"
        if held.inside
        else "seen from outside: the program did not answer"
    )
    return f"what held memory {when}, when it had come to {share} ({how})"
