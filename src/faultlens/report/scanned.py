"""What `faultlens scan` found, as text: the findings of each file, what they add up to, and what to do about them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.console import Console
from rich.text import Text

from faultlens.records.scan import Flaw, Place, Scan, Unchecked
from faultlens.records.severity import Severity
from faultlens.report.page import ALARM, OWN, PATH_LIMIT, QUIET, WARNING, print_line, words, wrap
from faultlens.sandbox.guest import confinement
from faultlens.text.quantities import count, duration
from faultlens.text.sizes import in_words as size

_MARKS: dict[Severity, tuple[str, str]] = {"error": ("✗", ALARM), "warning": ("!", WARNING), "note": ("·", QUIET)}
_INDENT = 4
_NARROWEST = 24
_FILES_SHOWN, _FLAWS_SHOWN, _REASONS_SHOWN = 20, 5, 5
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
    for line in _extent(found):
        _wrapped(console, line)
    _not_checked(found, console, verbose)
    for line in _closing(found, written, cleaned):
        _wrapped(console, line)


def _flaws(flaws: list[Flaw], console: Console, verbose: bool) -> None:
    kept = flaws if verbose else flaws[:_FLAWS_SHOWN]
    for flaw in kept:
        where = _where(flaw.place)
        text = words(f"{where}: {flaw.reason}" if where else flaw.reason)
        if flaw.report:
            text.append_text(words(f" (`faultlens show {flaw.report}`)", QUIET))
        _hanging(console, Text.assemble("  ", _MARKS[flaw.severity], " "), text)
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


def _extent(found: Scan) -> Iterator[Text]:
    """How much was looked at, and what was left aside."""
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
        was = "was" if found.files_passed_over == 1 else "were"
        yield words(f"{count(found.files_passed_over, 'file')} in no format that is known {was} passed over.", QUIET)
    if found.hidden:
        names = "1 name that begins" if found.hidden == 1 else f"{found.hidden:,} names that begin"
        yield words(f"{names} with a dot {'was' if found.hidden == 1 else 'were'} passed over.", QUIET)
    if less := confinement.in_words(found.not_held):
        yield words(less, WARNING)


def _not_checked(found: Scan, console: Console, verbose: bool) -> None:
    """Each kind of check that was not made, and each reason why something could not be looked at, in one line."""
    lines = [_unchecked(each) for each in found.unchecked]
    told = {each.reason for each in found.unchecked}
    places: dict[str, list[Place]] = {}
    for flaw in found.flaws:
        if flaw.kind == "unsupported" and flaw.severity == "note" and not flaw.reason.endswith(tuple(told)):
            places.setdefault(flaw.reason, []).append(flaw.place)
    lines += [_unseen(reason, where) for reason, where in places.items()]
    if not lines:
        return
    print_line(console, words("Not checked:", WARNING))
    shown = lines if verbose else lines[: max(_REASONS_SHOWN, len(found.unchecked))]
    for line in shown:
        _hanging(console, Text.assemble("  ", _MARKS["note"], " "), words(line))
    if len(shown) < len(lines):
        print_line(console, words(f"    and {count(len(lines) - len(shown), 'more reason')} (-v)", QUIET))


def _unchecked(each: Unchecked) -> str:
    """ "NaN and infinity in arrays, in 2 files (data/a.npy, …): NumPy is not installed (pip install …)" """
    where = each.first if each.files == 1 else f"{each.files:,} files ({each.first}, …)"
    return f"{each.check}, in {where}: {each.reason}" + (f" ({each.advice})" if each.advice else "")


def _unseen(reason: str, places: list[Place]) -> str:
    first = ", ".join(part for part in (places[0].path, _where(places[0])) if part)
    return f"{first}: {reason}" + (f" (and {len(places) - 1:,} more)" if len(places) > 1 else "")


def _closing(found: Scan, written: str | None, cleaned: bool) -> Iterator[Text]:
    """What it adds up to, and what to do about it."""
    bad = len({flaw.place.path for flaw in found.flaws if flaw.severity != "note"})
    if not found.errors and not found.warnings:
        in_part = found.unchecked or found.unseen or found.problems
        yield words(f"Nothing wrong was found{' in what was checked' if in_part else ''}.", "" if in_part else "green")
        return
    sums = [count(found.errors, "error")] if found.errors else []
    sums += [count(found.warnings, "warning")] if found.warnings else []
    yield words(f"{' and '.join(sums)} in {bad:,} of {count(found.files_checked + found.files_unread, 'file')}.", ALARM)
    if any(flaw.severity == "error" and flaw.kind != "unreadable" for flaw in found.flaws):
        where = written if written and written != "-" else _LISTED
        how = "" if written and written != "-" else f" (after `--json {_LISTED}`)"
        if not cleaned:
            yield words("`--quarantine DIR` writes clean copies without what is bad; the originals stay as they are.")
        yield words(f'`faultlens.data.skip_bad(dataset, "{where}")` leaves it out of a tf.data pipeline{how}.')


def _hanging(console: Console, lead: Text, text: Text) -> None:
    for line in wrap(text, max(console.width - _INDENT, _NARROWEST)):
        print_line(console, Text.assemble(lead, line))
        lead = Text(" " * _INDENT)


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
