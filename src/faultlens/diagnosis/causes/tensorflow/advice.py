"""What the causes of this family have in common: what is known of the op, and what to do about it."""

from __future__ import annotations

from typing import NamedTuple

from faultlens.diagnosis.causes.base import consider, safe
from faultlens.diagnosis.evidence import check_words, user_calls
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.kernels import tensor_in_words
from faultlens.diagnosis.evidence.oddities import Kind, Oddity, oddities
from faultlens.diagnosis.evidence.tensorflow_code import leading_frame, version
from faultlens.inspection.frames import short_function
from faultlens.knowledge import Known, known_crashes
from faultlens.records.crash import Frame
from faultlens.records.diagnosis import Evidence, Fix
from faultlens.text.safe import one_line

_SAID = 2  # oddities of one kind
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
        for crash in known(case, cause)[:2]
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


# What about the arguments explains which end, the likeliest first.
_EXPLAINS: dict[str, tuple[Kind, ...]] = {
    "op-check-failed": ("rank", "length", "window", "negative", "huge", "index", "splits", "zero", "empty"),
    "op-null-dereference": ("rank", "length", "splits", "index", "negative", "empty"),
    "op-out-of-bounds": ("splits", "index", "window", "rank", "length", "negative", "huge", "empty"),
    "op-division-by-zero": ("zero", "window", "length", "rank", "huge", "empty", "negative"),
    "op-uncaught-exception": ("huge", "negative", "rank", "length", "index", "splits", "not finite", "empty"),
}


class Explained(NamedTuple):
    """What is wrong with the arguments, in the user's terms."""

    says: str
    fix: Fix | None


def explained(case: Case, cause: str, check: str = "") -> Explained | None:
    """None where the record does not tell. `check` is the text of a check that failed."""
    reading = check_words.read(check, case.given) if check else None
    order = _EXPLAINS[cause]
    odd = [each for each in oddities(case.given) if each.kind in order] if case.given else []
    odd.sort(key=lambda each: (not each.sure, order.index(each.kind)))
    odd = [each for each in odd if not check or each.sure or each.kind in ("huge", "negative")]
    if reading and reading.argument and (not odd or not odd[0].sure or "dimension" not in reading.says):
        return Explained(reading.says, _fix(reading.instead, reading.code))
    if odd:
        return _of_oddities(odd, "" if odd[0].sure or reading is None else f": {reading.says}")
    return Explained(reading.says, _fix(reading.instead, reading.code)) if reading else None


def _of_oddities(odd: list[Oddity], because: str) -> Explained:
    alike = [each for each in odd if each.kind == odd[0].kind and each.sure == odd[0].sure][:_SAID]
    codes = [each.code for each in alike if each.code]
    return Explained("; ".join(each.says for each in alike) + because, _fix(odd[0].instead, "; ".join(codes)))


def _fix(instead: str, code: str) -> Fix | None:
    return consider(instead, f"to see it earlier: {code}" if code else "") if instead else None


def titled(otherwise: str, said: Explained | None) -> str:
    """The reason where it is known, else what happened."""
    return one_line(f"{otherwise}: {said.says}", _TITLE) if said else one_line(otherwise, _TITLE)


def argument_fixes(case: Case, said: Explained | None) -> tuple[Fix, ...]:
    return (said.fix,) if said and said.fix else (check_arguments(case),)


def check_arguments(case: Case) -> Fix:
    where = f" in {case.location.file.rpartition('/')[2]}:{case.location.line}" if case.location else ""
    return consider(
        f"check the arguments of {at_work(case)}{where} before the call",
        _given_in_words(case) or "empty, negative and very large values, and ranks, are what ops forget to check",
    )


def _given_in_words(case: Case) -> str:
    """What there is to look at."""
    if case.kernel is None or case.given is None:
        call = user_calls.call_of(case.op, case.crash.sources, case.location)
        return one_line("; ".join(user_calls.in_words(call)[:_LISTED]), 300) if call else ""
    told = [f"{each.name} is {tensor_in_words(each.tensor)}" for each in case.given.arguments[:_LISTED]]
    told += [f"{name} is {value}" for name, value in case.given.settings.items() if type(value) in (int, list)]
    return one_line("; ".join(told[:_LISTED]), 300)


def place_evidence(case: Case, frame: Frame | None) -> tuple[str, str] | None:
    """Where in TensorFlow it happened: the function that called the helper which failed."""
    leading = leading_frame(case) or frame
    if leading is None:
        return None
    return f"in {short_function(leading.function)} of {(leading.library or '').rpartition('/')[2]}", "native stack"
