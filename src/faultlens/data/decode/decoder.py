"""Which items do a decoder harm? Hands them over in batches, and tells those that it refused, or that ended it.

An item that ended a process is tried again, as the first of a new one: what was kept, leaked or destroyed by those
before must not be laid on it, nor what a machine does once. If it is harmless then, the one that is to blame is looked
for among them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from faultlens.data.decode.worker import DecoderWorker, Decoding
from faultlens.data.formats.base import Item
from faultlens.errors import FaultlensError
from faultlens.records.scan import Kind, Place
from faultlens.sandbox.guest.board import ITEMS, KINDS
from faultlens.sandbox.warm.worker import End, Entry, Run
from faultlens.text.safe import one_line

BATCH_BYTES = 32 << 20  # one larger item is a batch of its own
MAX_ITEM = 1 << 30  # larger ones are not tried
STARTS_IN_VAIN = 3
LATER = ", at a later item that is harmless without this one"
MAX_SEARCHES = 20  # for the item that made a later one deadly
SAME_ERRORS = 32  # of the first items: the function is not made for them
ADVICE: dict[Kind, str] = {  # where it is not
    "decode": "It is called with one item, a scalar tensor of bytes, as `dataset.map` would call it.",
    "greedy": "Give it more memory with --memory-limit, if it needs that much for one item.",
}
# TensorFlow says which op of which device it was: of no use here.
_NODE, _OP = re.compile(r"\{\{[^}]*\}\} ?"), re.compile(r" ?\[Op:\w+\].*$")
_NUMBERS = re.compile(r"\d+")


class Verdict(NamedTuple):
    """About an item that is bad."""

    place: Place
    kind: Kind  # "decode", "deadly", "endless" or "greedy"
    reason: str
    report: str | None = None  # name of the stored report


_Saying = tuple[int, Literal["decode", "greedy", "deadly"], str, str]  # item, kind, feature of the Example, words


class Decoder:
    """For one process of a scan. Starts its own processes with the first item."""

    def __init__(
        self, decoding: Decoding, environment: Mapping[str, str] | None = None, tick: Callable[[], None] = lambda: None
    ) -> None:
        """`environment`: of the user's programs, where it is not this one. `tick`: called while it works."""
        if decoding.using is not None and not re.fullmatch(r"[\w.]+:[\w.]+", decoding.using):
            raise FaultlensError(f"{one_line(decoding.using, 100)!r} names no function.", "Say it as module:function.")
        self.count = 0  # items that the decoder was tried with
        self.notes: list[str] = []  # deaths that no item is to blame for
        self.too_large = 0  # items that were not tried
        self._using = decoding.using
        self._searches = 0
        self._data = os.memfd_create("faultlens-data", os.MFD_CLOEXEC)
        self._worker = DecoderWorker(decoding, self._data, environment or os.environ, tick)
        self._same: tuple[str, int] | None = ("", 0)  # the error of all items until now; None: there were others

    def __enter__(self) -> Decoder:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()
        os.close(self._data)

    def tried(self, items: Iterable[Item]) -> Iterator[Verdict]:
        """The bad ones, in order."""
        places: list[Place] = []
        entries: list[Entry] = []
        end = 0
        for item in items:
            if self._using is None and item.what == "line":
                continue
            if len(item.data) > MAX_ITEM:
                self.too_large += 1
                continue
            if entries and (len(entries) == ITEMS or end + len(item.data) > BATCH_BYTES):
                yield from self._through(places, entries)
                places, entries, end = [], [], 0
            self._write(item.data, end)
            places.append(item.place)
            entries.append((end, len(item.data), KINDS.index(item.what)))
            end += len(item.data)
        if entries:
            yield from self._through(places, entries)

    def _write(self, data: bytes, offset: int) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._data, view, offset)
            view, offset = view[written:], offset + written

    def _through(self, places: list[Place], entries: list[Entry]) -> list[Verdict]:
        found: dict[int, Verdict] = {}
        first = since = in_vain = 0
        suspect: End | None = None  # how a process that began at `since` ended at the item that is `first` now
        while first < len(entries):
            run = self._worker.run(entries, first)
            self.count += run.tried
            if run.end and run.at is None:  # something before the batch has ended it
                in_vain += 1
                if in_vain == STARTS_IN_VAIN:
                    raise FaultlensError(
                        f"{one_line(run.end.reason, 300)}, again and again, before any item was tried."
                    )
                continue
            in_vain = 0
            refused = {index: verdict for index, verdict in _refused(run, places) if index >= first}
            culprit = run.at if run.end and run.at not in refused else None
            stop = len(entries) if run.end is None or run.at is None else run.at + (culprit is None)
            for index in range(first, stop):
                self._learn(refused.get(index))
            found |= refused
            if suspect and suspect.kind == "deadly" and first < stop and first not in refused:
                before = self._culprit(entries, since, first)
                if before is not None:
                    found[before] = Verdict(places[before], "deadly", suspect.reason + LATER, suspect.report)
                else:
                    self.notes.append(f"{suspect.reason}, once, and not again with the same items")
            again = suspect is not None and culprit == first
            since, first, suspect = first, stop, None
            if culprit is not None and run.end is not None:
                if again:
                    found[culprit] = Verdict(places[culprit], run.end.kind, run.end.reason, run.end.report)
                    self._learn(found[culprit])
                    first = culprit + 1
                else:
                    suspect = run.end
                    self.count -= run.tried > 0  # it is tried once more
        os.ftruncate(self._data, 0)
        return [verdict for _, verdict in sorted(found.items())]

    def _culprit(self, entries: list[Entry], since: int, victim: int) -> int | None:
        """The last item from which on a process dies on its way to the victim, which is harmless alone."""
        if since == victim or self._searches == MAX_SEARCHES:
            return None
        self._searches += 1

        def dies(first: int) -> bool:
            self._worker.renew()
            end = self._worker.run(entries[: victim + 1], first).end
            return end is not None and end.kind == "deadly"

        if not dies(since):
            return None
        deadly, harmless = since, victim
        while harmless - deadly > 1:
            middle = (deadly + harmless) // 2
            if dies(middle):
                deadly = middle
            else:
                harmless = middle
        return deadly

    def _learn(self, verdict: Verdict | None) -> None:
        """A function that all of the first items make fail in the same way is not made for them."""
        if self._using is None or self._same is None:
            return
        error = _NUMBERS.sub("", verdict.reason) if verdict and verdict.kind in ADVICE else None
        known, times = self._same
        if error is None or error != (known or error):
            self._same = None
            return
        self._same = error, times + 1
        if verdict and times + 1 == SAME_ERRORS:
            raise FaultlensError(
                f"Every one of the first {SAME_ERRORS} items made {self._using} fail: {verdict.reason}",
                ADVICE[verdict.kind],
            )


def _refused(run: Run, places: list[Place]) -> Iterator[tuple[int, Verdict]]:
    """What the process said. It may have been taken over by what it read: only what makes sense is believed."""
    for line in run.said:
        try:
            index, kind, feature, words = msgspec.json.decode(line, type=_Saying)
        except (msgspec.MsgspecError, ValueError):
            continue
        if 0 <= index < len(places):
            place = replace(places[index], member=one_line(feature, 200)) if feature else places[index]
            reason = one_line(_OP.sub("", _NODE.sub("", words)), 300)
            if kind == "deadly":
                reason = f"the decoder harmed the process it ran in: {reason}"
            yield index, Verdict(place, kind, reason)
