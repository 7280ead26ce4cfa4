"""What is left of a model that was being saved at the end: which save is safe, and how to load it."""

from __future__ import annotations

from pathlib import PurePosixPath

from faultlens.records.crash import Crash, SaveState, Saving
from faultlens.report.facts import Pairs
from faultlens.report.headline import kind_of_end, short_path
from faultlens.text.quantities import duration, moment
from faultlens.text.safe import one_line
from faultlens.text.sizes import in_words as size

_SAVES_SHOWN = 8
_ABSURD_S = 1e9  # a damaged report may say so
_ENDED = {
    "crash": "died",
    "killed": "was killed",
    "ended": "was ended",
    "hang": "hung",
    "timeout": "was stopped",
    "exception": "failed",
}


def saving_in_words(crash: Crash) -> list[str]:
    """One or two sentences; none where nothing was being saved."""
    saving = crash.saving
    if saving is None:
        return []
    name = short_path(saving.path, crash)
    safe = next((save for save in saving.saves if save.whole), None)
    damaged = next((save for save in saving.saves if save.current and save.whole is False), None)
    happened = f"{_ENDED.get(kind_of_end(crash), 'ended')} while saving {name}"
    if not saving.under_way:
        happened = f"its last save to {name} had failed"
    if damaged is None:
        return [f"{happened}: {_left(safe, saving, crash)}", *(_loading(safe, saving, name) if safe else [])]
    happened += f", which is damaged now: {_told(damaged)}" if saving.under_way else f": {_told(damaged)}"
    if safe is not None:
        return [happened, _left(safe, saving, crash), *_loading(safe, saving, name)]
    return [happened, f"{_lost(name, saving, crash)}; faultlens.save would have kept it"]


def _lost(name: str, saving: Saving, crash: Crash) -> str:
    """Marks of progress prove that the program itself had saved it before."""
    done = [mark for mark in (crash.progress.marks if crash.progress else ()) if mark.kind == "saved"]
    path = crash.progress.detail if saving.under_way and crash.progress else done.pop().text if done else None
    times = [mark.seconds for mark in done if mark.text == path]
    before = crash.seconds - times[-1] if times and crash.seconds is not None else 0.0
    if 0 < before < _ABSURD_S:
        return f"the save of {duration(before)} before the end is lost"
    return f"what was saved as {name} before, if anything was, is lost"


def saves_now(saving: Saving, crash: Crash) -> list[str]:
    """The saves as they are on the disk today."""
    if not saving.saves:
        return [f"{short_path(saving.path, crash)} is not there any more"]
    return [f"{label}: {told}" for label, told in _rows(saving)]


def saves(crash: Crash) -> Pairs:
    """Everything that was recorded of them."""
    saving = crash.saving
    if saving is None:
        return []
    rows = [("saving", one_line(saving.path)), *_rows(saving)]
    if saving.unfinished is not None:
        rows.append(("unfinished", f"{size(saving.unfinished)} of the new one; the next faultlens.save removes them"))
    if saving.disk_free is not None:
        rows.append(("disk", f"{size(saving.disk_free)} free"))
    return rows


def _left(safe: SaveState | None, saving: Saving, crash: Crash) -> str:
    """ "generation 7 is safe (12 MiB, saved 3 min before the end)"."""
    if safe is None:
        unread = next((save for save in saving.saves if save.damage), None)
        if unread is not None:
            return f"what is left of it could not be told ({_told(unread)})"
        return "nothing has been saved under this name before"
    ended, written = crash.time, safe.time
    before = ended - written if ended is not None and written is not None else 0.0
    ago = f"saved {duration(before)} before the end" if 0 < before < _ABSURD_S else ""
    about = ", ".join(part for part in (size(safe.size) if safe.size is not None else "", ago) if part)
    state = "safe" if saving.kept or safe.path != saving.path else "whole"
    return f"{_label(safe, saving)} is {state}" + (f" ({about})" if about else "")


def _loading(safe: SaveState, saving: Saving, name: str) -> list[str]:
    if not saving.kept:
        return []
    if _has_other_name(safe, saving):
        name = str(PurePosixPath(name).with_name(PurePosixPath(safe.path).name))
    removed = "; the next faultlens.save removes what is left of this one" if saving.unfinished is not None else ""
    return [f'faultlens.load("{name}") takes it{removed}']


def _rows(saving: Saving) -> Pairs:
    rows = []
    for save in saving.saves[:_SAVES_SHOWN]:
        facts = [save.format or "", size(save.size) if save.size is not None else "", moment(save.time)]
        about = ", ".join(one_line(fact, 80) for fact in facts if fact)
        why = f": {_told(save)}" if not save.whole else ""
        rows.append((_label(save, saving), _state(save) + (f" ({about})" if about else "") + why))
    return rows


def _state(save: SaveState) -> str:
    if save.whole is None:
        return "not looked through"
    return "damaged" if not save.whole else "whole" if save.checked else "complete"


def _label(save: SaveState, saving: Saving) -> str:
    """A checkpoint has its number in its name."""
    if save.generation is None or save.format == "checkpoint" or _has_other_name(save, saving):
        return one_line(PurePosixPath(save.path).name, 80)
    return one_line(f"generation {save.generation}", 40)


def _has_other_name(save: SaveState, saving: Saving) -> bool:
    """It was saved before, to a file of its own. Generations that were kept of a file lie in a folder of theirs."""
    path, target = PurePosixPath(save.path), PurePosixPath(saving.path)
    return save.format != "checkpoint" and path.parent == target.parent and path != target


def _told(save: SaveState) -> str:
    return one_line(save.damage or "nobody knows why", 200)
