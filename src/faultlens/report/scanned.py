"""What `faultlens scan` found, as text: the findings of each file, what they add up to, and what to do about them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.console import Console
from rich.text import Text

from faultlens.report.page import ALARM, OWN, PATH_LIMIT, QUIET, WARNING, print_line, words, wrap
from faultlens.report.quantities import count, duration, size
from faultlens.sandbox import confinement
from faultlens.scanned import Flaw, Place, Scan, Severity

_MARKS: dict[Severity, tuple[str, str]] = {"error": ("✗", ALARM), "warning": ("!", WARNING), "note": ("·", QUIET)}
_INDENT = 4
_NARROWEST = 24
_FILES_SHOWN, _FLAWS_SHOWN = 20, 5
_LISTED = "findings.json"


def render(
    found: Scan, *, console: Console, verbose: bool = False, written: str | None = None, cleaned: bool = False
) -> None:
    """`written`: the file that has all of it as JSON; `cleaned`: there are clean copies already."""
    shown = [flaw for flaw in found.flaws if verbose or flaw.severity != "note"]
    by_file = [(path, list(flaws)) for path, flaws in groupby(shown, key=lambda flaw: flaw.place.path)]
    facts = {file.path: file for file in found.files}
    for path, flaws in by_file if verbose else by_file[:_FILES_SHOWN]:
        file = facts.get(path)
        told = f"  {file.format}, {_contents(file.records, file.size)}" if file else ""
        print_line(console, Text.assemble(words(path, OWN, PATH_LIMIT), words(told, QUIET)))
        _flaws(flaws, console, verbose)
        print_line(console, Text())
    if not verbose and len(by_file) > _FILES_SHOWN:
        print_line(console, words(f"and {count(len(by_file) - _FILES_SHOWN, 'more file')} (-v shows them all)"))
        print_line(console, Text())
    if verbose:
        for file in found.files:
            for note in file.notes:
                _wrapped(console, words(f"{file.path}: {note}", QUIET))
    for line in _closing(found, written, cleaned):
        _wrapped(console, line)


def _flaws(flaws: list[Flaw], console: Console, verbose: bool) -> None:
    kept = flaws if verbose else flaws[:_FLAWS_SHOWN]
    for flaw in kept:
        lead = Text.assemble("  ", _MARKS[flaw.severity], " ")
        where = _where(flaw.place)
        text = words(f"{where}: {flaw.reason}" if where else flaw.reason)
        if flaw.report:
            text.append_text(words(f" (`faultlens show {flaw.report}`)", QUIET))
        for line in wrap(text, max(console.width - _INDENT, _NARROWEST)):
            print_line(console, Text.assemble(lead, line))
            lead = Text(" " * _INDENT)
    if len(kept) < len(flaws):
        print_line(console, words(f"    and {len(flaws) - len(kept):,} more (-v)", QUIET))


def _where(place: Place) -> str:
    """ "record 17 at byte 172,056, feature image" """
    parts = [f"record {place.record:,}"] if place.record is not None else []
    parts += [f"at byte {place.offset:,}"] if place.offset is not None else []
    told = " ".join(parts)
    return ", ".join(part for part in (told, place.member) if part)


def _contents(records: int, bytes_in_it: int) -> str:
    return f"{count(records, 'record')}, {size(bytes_in_it)}" if records > 1 else size(bytes_in_it)


def _closing(found: Scan, written: str | None, cleaned: bool) -> Iterator[Text]:
    told = [count(found.files_checked, "file")]
    told += [count(found.records, "record")] if found.records else []
    told += [size(found.bytes)]
    told += [f"{found.decoded:,} decoded"] if found.decoded else []
    rate = f" ({size(int(found.bytes / found.seconds))}/s)" if found.seconds > 1 else ""
    line = f"{', '.join(told)} in {duration(found.seconds)}{rate}."
    if found.resumed:
        line += f" {count(found.resumed, 'piece')} had been checked before."
    yield words(line, QUIET)
    if found.files_passed_over:
        yield words(f"{count(found.files_passed_over, 'file')} in no format that is known were passed over.", QUIET)
    if less := confinement.in_words(found.not_held):
        yield words(less, WARNING)
    if found.unseen:
        yield words(f"{count(found.unseen, 'file')} could not be looked at in full (-v says why).", WARNING)
    bad = len({flaw.place.path for flaw in found.flaws if flaw.severity != "note"})
    if not bad and not found.flaws_untold:
        yield words("Nothing wrong was found in the others." if found.unseen else "Nothing wrong was found.", "green")
        return
    sums = [count(found.errors, "error")] if found.errors else []
    sums += [count(found.warnings, "warning")] if found.warnings else []
    yield words(f"{' and '.join(sums)} in {bad:,} of {count(found.files_checked, 'file')}.", ALARM)
    if found.errors:
        where = written if written and written != "-" else _LISTED
        how = "" if written and written != "-" else f" (after `--json {_LISTED}`)"
        if not cleaned:
            yield words("`--quarantine DIR` writes clean copies without what is bad; the originals stay as they are.")
        yield words(f'`faultlens.data.skip_bad(dataset, "{where}")` leaves it out of a tf.data pipeline{how}.')


def _wrapped(console: Console, text: Text) -> None:
    for line in wrap(text, max(console.width, _NARROWEST)):
        print_line(console, line)


def progress(files: int, all_files: int, done: int, whole: int, flaws: int, seconds: float) -> str:
    """One line while it goes on."""
    share = done / whole if whole else 1.0
    told = f"{files:,} of {count(all_files, 'file')}, {size(done)} of {size(whole)}"
    if seconds > 2 and 0 < share < 1:
        told += f", {size(int(done / seconds))}/s, {duration(seconds / share - seconds)} left"
    return told + (f", {count(flaws, 'finding')}" if flaws else "")
