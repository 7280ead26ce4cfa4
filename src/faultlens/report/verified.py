"""What `faultlens verify` found, as text: one line for each save that is there, and which of them would be loaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from faultlens.records.verification import Verification, VerifiedGeneration, VerifiedSave
from faultlens.report.page import ALARM, GAP, OWN, PATH_LIMIT, QUIET, WARNING, print_line, words, wrap
from faultlens.sandbox.guest import confinement
from faultlens.text.quantities import count, moment
from faultlens.text.sizes import in_words as size

_GOOD, _BAD, _OPEN, _NOTE, _NONE = ("✓", "green"), ("✗", ALARM), ("!", WARNING), ("·", QUIET), (" ", "")
_INDENT = 6
_NARROWEST = 24
_DAMAGES_SHOWN = 4
_NAMES = 3


def render(found: Verification, *, console: Console, verbose: bool = False) -> None:
    for save in found.saves:
        _save(save, console, verbose)
        print_line(console, Text())
    for line in _closing(found, verbose) if found.saves else ():
        for row in wrap(line, console.width):
            print_line(console, row)


def _save(save: VerifiedSave, console: Console, verbose: bool) -> None:
    formats = ", ".join(dict.fromkeys(each.format for each in save.generations if each.format))
    print_line(console, Text.assemble(words(save.path, OWN, PATH_LIMIT), words(f"  {formats}", QUIET)))
    if save.missing:
        kept = "these were kept of it" if save.generations else "nothing was kept of it"
        gone = f"{PurePath(save.path).name} itself is gone; {kept}"
        _row(console, _BAD, Text(), words(gone, ALARM))
    labels = [_label(each, save) for each in save.generations]
    sizes = [size(each.size) for each in save.generations]
    rooms = max(map(cell_len, labels), default=0), max(map(len, sizes), default=0)
    for generation, label, amount in zip(save.generations, labels, sizes, strict=True):
        columns = label.ljust(rooms[0]), (moment(generation.time) or "?").ljust(16), amount.rjust(rooms[1])
        head = Text((" " * GAP).join(column for column in columns if column) + " " * GAP)
        _row(console, _mark(generation), head, _state(generation, save.missing or len(save.generations) > 1))
        _below(generation, console, verbose)
    for note in save.notes:
        _row(console, _NOTE, Text(), words(note))


def _below(found: VerifiedGeneration, console: Console, verbose: bool) -> None:
    """What has no room beside it."""
    shown = found.damages[1:] if verbose else found.damages[1:_DAMAGES_SHOWN]
    hidden = len(found.damages[1:]) - len(shown)
    rows = [words(f"and {damage}", ALARM) for damage in shown]
    rows += [words(f"and {count(hidden, 'more damage')} (-v)", ALARM)] if hidden else []
    rows += [words(f"code: {each}", WARNING) for each in found.code]
    rows += [words(f"note: {note}", WARNING) for note in found.notes]
    rows += [words(detail, QUIET, PATH_LIMIT) for detail in (found.path, *found.details) if verbose]
    for row in rows:
        _row(console, _NONE, Text("  "), row)


def _row(console: Console, mark: tuple[str, str], head: Text, text: Text) -> None:
    """A text that does not fit beside its head stands below it."""
    lead = Text.assemble("  ", mark, " ", head)
    if head.plain.strip() and cell_len(lead.plain) + cell_len(text.plain) > console.width:
        print_line(console, lead)
        lead = Text(" " * _INDENT)
    indent = min(cell_len(lead.plain), _INDENT)
    for line in wrap(text, max(console.width - indent, _NARROWEST)):
        print_line(console, Text.assemble(lead, line))
        lead = Text(" " * indent)


def _label(found: VerifiedGeneration, save: VerifiedSave) -> str:
    name = PurePath(found.path).name
    if found.format == "checkpoint":
        return name if name != PurePath(save.path).name else ""
    if found.number is not None:
        return f"generation {found.number}"
    return "unnumbered" if len(save.generations) > 1 else ""


def _mark(found: VerifiedGeneration) -> tuple[str, str]:
    if found.whole is False or found.loaded is False:
        return _BAD
    return _OPEN if found.whole is None or found.load_problem or found.code else _GOOD


def _state(found: VerifiedGeneration, tell_taken: bool) -> Text:
    if found.whole is False:
        told = words(f"damaged: {found.damages[0]}" if found.damages else "damaged", ALARM)
    elif found.whole is None:
        told = words(f"uncertain: {found.unknown}", WARNING)
    elif found.compared == "structure":
        told = words("complete (it has no checksums)", "green")
    else:
        told = words("whole", "green")
    if found.loaded is False:
        told.append_text(words(f", does not load: {found.load_problem}", ALARM))
    elif found.loaded:
        told.append_text(words(", loads", "green"))
    elif found.load_problem:
        told.append_text(words(f", could not be loaded here: {found.load_problem}", WARNING))
    if found.taken and tell_taken:
        told.append_text(words("; faultlens.load takes it"))
    return told


def _closing(found: Verification, verbose: bool) -> Iterator[Text]:
    generations = found.generations
    bad = sum(each.whole is False for each in generations)
    stuck = sum(each.whole is not False and each.loaded is False for each in generations)
    dark = sum(each.whole is None for each in generations)
    many = len(generations) > 1
    if bad:
        yield words(f"{bad} of {len(generations)} saves {_is(bad)} damaged." if many else "It is damaged.", ALARM)
    if stuck:
        does = "does" if stuck == 1 else "do"
        yield words(f"{stuck} of {len(generations)} saves {does} not load." if many else "It does not load.", ALARM)
    if dark:
        yield words(f"{dark} of {len(generations)} saves could not be judged." if many else "It could not be judged.")
    gone = [PurePath(save.path).name for save in found.saves if save.missing]
    if gone:
        yield words(f"{_listed(gone)} {_is(len(gone))} gone.", ALARM)
    if not (bad or stuck or dark or gone):
        proved = all(each.compared != "structure" for each in generations)
        whole = f"All {len(generations)} saves are whole." if many else "It is whole."
        yield words(whole if proved else "No damage was found.", "green")
    carrying = sum(bool(each.code) for each in generations)
    if carrying:
        which = (
            f"{carrying} of {len(generations)} saves {'carries' if carrying == 1 else 'carry'}"
            if many
            else "It carries"
        )
        advice = (
            "load it only if you trust who wrote it" if carrying == 1 else "load them only if you trust their authors"
        )
        yield words(f"{which} code that runs when it is loaded or called: {advice}.", WARNING)
    if less := confinement.in_words(found.not_held):
        yield words(less, WARNING)
    yield from _lost(found)
    if not verbose:
        yield words("`-v` tells what was looked at.", QUIET)


def _lost(found: Verification) -> Iterator[Text]:
    """Names under which nothing whole is left."""
    lost = [PurePath(save.path).name for save in found.saves if _all_damaged(save)]
    if lost:
        yield words(f"Nothing whole is left of {_listed(lost)}: restore from a backup.")
    if any(len(save.generations) == 1 and _all_damaged(save) for save in found.saves):
        yield words("faultlens.save keeps the previous save until the new one is proved whole.", QUIET)


def _all_damaged(save: VerifiedSave) -> bool:
    return bool(save.generations or save.missing) and all(each.whole is False for each in save.generations)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")


def _is(number: int) -> str:
    return "is" if number == 1 else "are"
