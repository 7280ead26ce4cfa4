"""Scans data sets: plans the pieces, has them checked, puts the findings together."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from faultlens.data.aggregate.duplicates import duplicates
from faultlens.data.aggregate.indexes import against_indexes
from faultlens.data.aggregate.merge import Merged, by_place, misaligned
from faultlens.data.aggregate.outliers import outliers
from faultlens.data.aggregate.schema import Schema
from faultlens.data.aggregate.writers import writers, written
from faultlens.data.engine import plan
from faultlens.data.engine.journal import Journal, default_place
from faultlens.data.engine.pool import Job, Pool
from faultlens.data.source import is_remote
from faultlens.errors import FaultlensError
from faultlens.records.scan import Checked, Flaw, Piece, Scan, Scanned
from faultlens.sandbox.guest import confinement
from faultlens.text.file_names import to_text

ADVICE = "faultlens scan --help names the formats."


class Engine(Protocol):
    """What has pieces checked."""

    name: str

    def run(self, pieces: Iterator[Piece], job: Job) -> Iterator[Checked]: ...


class LocalEngine:
    name = "local"

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))

    def run(self, pieces: Iterator[Piece], job: Job) -> Iterator[Checked]:
        with Pool(job, self.workers) as pool:
            yield from pool.run(pieces)


class Options(NamedTuple):
    job: Job = Job()
    schema: Schema | None = None
    resume: bool = False
    journal: Path | None = None
    piece_size: int = plan.PIECE


DEFAULTS = Options()


class Progress(NamedTuple):
    files: int
    all_files: int
    bytes: int
    all_bytes: int
    flaws: int
    seconds: float


def scan(
    roots: Sequence[str],
    options: Options = DEFAULTS,
    engine: Engine | None = None,
    tell: Callable[[str | Progress], None] = lambda _: None,
) -> Scan:
    """What is wrong with the files at these paths. Without an engine, on all CPUs of this machine."""
    began = time.monotonic()
    engine = engine or LocalEngine()
    plan.check_roots(roots)
    tell("looking for files")
    found = list(plan.files(roots, options.piece_size))
    known = [each for each in found if each.pieces]
    unknown = [each.path for each in found if each.unknown]
    if not known and not any(each.flaw for each in found):
        raise _nothing_there(roots, found)
    job = options.job._replace(remote=any(is_remote(each.path) for each in known))
    merged = Merged()
    for each in found:
        if each.flaw is not None:
            merged.add_flaw(each.flaw)
    who = writers() if any(not is_remote(each.path) for each in known) else {}
    with Journal(options.journal or default_place(roots, job), options.resume) as journal:
        resumed = _Run(known, job, engine, journal, merged, tell, began).all()
    flaws = _all_flaws(merged, options.schema, who)
    named = set(map(to_text, roots))
    return replace(
        _result(merged, flaws),
        roots=tuple(map(to_text, roots)),
        folder=to_text(os.path.abspath(os.curdir)),
        files_unread=sum(each.flaw is not None and not each.pieces for each in found),
        files_passed_over=len(unknown),
        hidden=sum(each.hidden for each in found),
        seconds=time.monotonic() - began,
        engine=engine.name,
        resumed=resumed,
        problems=tuple(f"{path} is in no format that faultlens knows. {ADVICE}" for path in unknown if path in named),
        not_held=confinement.available().not_held() if job.decoding is not None else (),
    )


def _all_flaws(merged: Merged, schema: Schema | None, who: Mapping[tuple[int, int], str]) -> list[Flaw]:
    """Of single files, and of the data set as a whole."""
    flaws = [
        *merged.flaws,
        *outliers(merged, schema),
        *duplicates(merged.files),
        *against_indexes(merged.files),
        *written(merged.files, who),
    ]
    return sorted(flaws, key=lambda flaw: (*by_place(flaw.place), flaw.kind, flaw.reason))


def _result(merged: Merged, flaws: Sequence[Flaw]) -> Scan:
    return Scan(
        roots=(),
        flaws=tuple(flaws),
        files=_with_findings(merged, flaws),
        flaws_untold=sum(merged.untold_errors.values()),
        warnings_untold=sum(merged.untold_warnings.values()),
        files_checked=len(merged.files),
        records=merged.records,
        bytes=merged.bytes,
        decoded=merged.decoded,
        unchecked=merged.unchecked,
    )


def _nothing_there(roots: Sequence[str], found: Sequence[plan.Found]) -> FaultlensError:
    where = to_text(roots[0]) if len(roots) == 1 else "these paths"
    if not found and all(os.path.isdir(root) for root in roots):
        return FaultlensError(f"There is no file in {where}.", "Name files or folders of training data.")
    advice = ADVICE
    if hidden := sum(each.hidden for each in found):
        names = "1 name begins" if hidden == 1 else f"{hidden:,} names begin"
        advice = f"{names} with a dot: what bears such a name is looked at only if you name it."
    return FaultlensError(f"There is no file in a format that faultlens knows at {where}.", advice)


class _Run:
    """Has all pieces checked, again where the pieces of a file do not fit together."""

    def __init__(
        self,
        files: Sequence[plan.Found],
        job: Job,
        engine: Engine,
        journal: Journal,
        merged: Merged,
        tell: Callable[[str | Progress], None],
        began: float,
    ) -> None:
        self._job, self._engine, self._journal, self._merged = job, engine, journal, merged
        self._tell, self._began = tell, began
        self._files = len(files)
        self._bytes = sum(piece.end - piece.start for file in files for piece in file.pieces)
        self._open: dict[str, dict[int, Checked | None]] = {
            file.path: dict.fromkeys(range(len(file.pieces))) for file in files
        }
        self._waiting = [(number, piece) for file in files for number, piece in enumerate(file.pieces)]
        self._numbers: dict[tuple[str, int], int] = {}
        self._done = 0
        self._resumed = 0

    def all(self) -> int:
        """How many pieces an earlier scan had checked."""
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            for checked in self._engine.run(self._unknown(waiting), self._job):
                self._journal.add(checked)
                self._take(checked)
        return self._resumed

    def _unknown(self, waiting: list[tuple[int, Piece]]) -> Iterator[Piece]:
        for number, piece in waiting:
            self._numbers[piece.path, piece.start] = number
            known = self._journal.known(piece)
            if known is None:
                yield piece
            else:
                self._resumed += 1
                self._take(known)

    def _take(self, checked: Checked) -> None:
        path = checked.piece.path
        number = self._numbers.pop((path, checked.piece.start))
        pieces = self._open[path]
        pieces[number] = checked
        self._done += checked.piece.end - checked.piece.start
        whole = [each for _, each in sorted(pieces.items()) if each is not None]
        if len(whole) == len(pieces):
            again = misaligned(whole)
            if again is not None:
                pieces[again[0]] = None
                self._waiting.append(again)
            else:
                self._merged.add(whole)
                del self._open[path]
        self._tell(
            Progress(
                len(self._merged.files),
                self._files,
                self._done,
                self._bytes,
                len(self._merged.flaws),
                time.monotonic() - self._began,
            )
        )


def _with_findings(merged: Merged, flaws: Sequence[Flaw]) -> tuple[Scanned, ...]:
    errors, warnings = dict(merged.untold_errors), dict(merged.untold_warnings)
    noted = {path for path, file in merged.files.items() if file.notes} | {flaw.place.path for flaw in flaws}
    for flaw in flaws:
        if flaw.severity != "note":
            counts = errors if flaw.severity == "error" else warnings
            counts[flaw.place.path] = counts.get(flaw.place.path, 0) + 1
    return tuple(
        Scanned(
            path=path,
            format=file.format,
            size=file.identity.size,
            records=file.records,
            identity=file.identity,
            errors=errors.get(path, 0),
            warnings=warnings.get(path, 0),
            notes=file.notes,
        )
        for path, file in sorted(merged.files.items())
        if path in errors or path in warnings or path in noted
    )
