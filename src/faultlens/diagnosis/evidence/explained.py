"""What is wrong with the arguments of the op at fault, in the user's terms: the failed check read with the recorded
values, or what is odd about them and explains such an end."""

from __future__ import annotations

from typing import NamedTuple

from faultlens.diagnosis.evidence import check_words
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.oddities import Kind, Oddity, oddities

_SAID = 2  # oddities of one kind
# What about the arguments explains which cause, the likeliest first.
_EXPLAINS: dict[str, tuple[Kind, ...]] = {
    "op-check-failed": ("rank", "length", "window", "negative", "huge", "splits", "index", "zero", "empty"),
    "op-null-dereference": ("rank", "length", "splits", "index", "negative", "huge", "empty"),
    "op-out-of-bounds": ("splits", "index", "window", "rank", "length", "not finite", "negative", "huge"),
    "op-division-by-zero": ("zero", "window", "huge", "length", "rank", "empty", "negative"),
    "op-uncaught-exception": ("huge", "negative", "rank", "length", "index", "splits", "not finite", "empty"),
    "oversized-allocation": ("huge", "negative", "index"),
    "hang": ("not finite",),
    "native-out-of-bounds": ("splits", "index", "negative", "empty"),
    "native-heap-overflow": ("splits", "index"),
    "native-division-by-zero": ("zero", "empty"),
    "native-null-dereference": ("empty",),
}


class Explained(NamedTuple):
    says: str
    instead: str = ""  # what to do
    code: str = ""  # that checks it before the call

    @property
    def detail(self) -> str:
        return f"to see it earlier: {self.code}" if self.code else ""


def explained(case: Case, cause: str, check: str = "") -> Explained | None:
    """None where the record does not tell. `check` is the text of a check that failed."""
    reading = check_words.read(check, case.given) if check else None
    order = _EXPLAINS.get(cause, ())
    odd = [each for each in oddities(case.given) if each.kind in order] if case.given else []
    odd.sort(key=lambda each: (not each.sure, order.index(each.kind)))
    if reading:
        odd = [each for each in odd if each.sure or each.kind in ("negative", "huge")]
    # A check says itself what failed: only what TensorFlow surely refuses explains it better.
    if reading and reading.argument and (not odd or not odd[0].sure or "dimension" not in reading.says):
        return Explained(reading.says, reading.instead, reading.code)
    if odd:
        return _of_oddities(odd, "" if odd[0].sure or reading is None else f": {reading.says}")
    return Explained(reading.says, reading.instead, reading.code) if reading else None


def _of_oddities(odd: list[Oddity], because: str) -> Explained:
    alike = [each for each in odd if each.kind == odd[0].kind and each.sure == odd[0].sure][:_SAID]
    codes = [each.code for each in alike if each.code]
    return Explained("; ".join(each.says for each in alike) + because, odd[0].instead, "; ".join(codes))
