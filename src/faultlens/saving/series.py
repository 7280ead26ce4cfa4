"""Which saves belong to one name pattern, such as `run/{epoch:02d}-{val_loss:.2f}.keras`: naming, finding, pruning."""

from __future__ import annotations

import glob
import os
import re
import string
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from faultlens.model_files.generations import Generation, folder_of, generations, targets_in
from faultlens.saving.monitored import Monitored
from faultlens.saving.preflight import own_target
from faultlens.saving.restore import described, in_words
from faultlens.saving.steps import WAIT
from faultlens.saving.target import Target, remove
from faultlens.saving.training_state import is_training_state

Warn = Callable[[str], None]


class Series:
    """Saves of one training. Without placeholders they are generations of one name, else they have a name each."""

    def __init__(self, pattern: str) -> None:
        names = [name for _, name, _, _ in string.Formatter().parse(pattern) if name is not None]
        if not all(map(str.isidentifier, names)):
            raise ValueError(f"the placeholders of {pattern!r} must be names, such as {{epoch}}")
        self.pattern = pattern
        self.varies = bool(names)

    def name(self, values: Mapping[str, Any], warn: Warn) -> str:
        """The pattern, filled in. A save under an imperfect name is better than none."""
        missing: list[str] = []
        path = _Lenient().vformat(self.pattern, (), _Values(values, missing))
        if missing:
            there = ", ".join(sorted(values))
            warn(f"{self.pattern}: there is no {missing[0]} (but {there}), so the name says {_UNKNOWN} instead")
        return path

    def newest(self, warn: Warn) -> Generation | None:
        """The newest save that is whole and tells where its training stood. Tells of those that it passes over."""
        problems: list[str] = []
        for generation in self._saves():
            damages = generation.damages()
            if damages:
                problems.append(in_words(damages))
            elif generation.manifest is None or not is_training_state(generation.manifest.training):
                problems.append(f"{generation.path} does not tell where its training stood")
            else:
                for problem in problems:
                    warn(f"{problem}; going on from {described(generation)} instead")
                return generation
        for problem in problems:
            warn(f"{problem}; the training starts from its beginning")
        return None

    def prune(self, keep: int, monitored: Monitored) -> None:
        """Leave `keep` names, the oldest go first: but never the newest, and never the one with the best value."""
        names = [(target, saves[0]) for target in self._targets() if (saves := generations(target))]
        names.sort(key=lambda each: each[1].time, reverse=True)
        best = _best([save for _, save in names], monitored)
        left = len(names)
        for target, save in reversed(names[1:]):
            if left > keep and save is not best:
                _forget(target)
                left -= 1

    def _saves(self) -> list[Generation]:
        """The newest first."""
        found = [generation for target in self._targets() for generation in generations(target)]
        return sorted(found, key=lambda generation: generation.time, reverse=True) if self.varies else found

    def _targets(self) -> Iterator[Path]:
        if not self.varies:
            yield own_target(self.pattern.format())
            return
        folder, name = os.path.split(self.pattern)
        fits = re.compile(_filled(name, re.escape, ".*"), re.DOTALL)
        for place in glob.glob(_filled(folder, glob.escape, "*")) if folder else ["."]:
            yield from (target for target in targets_in(Path(os.path.realpath(place))) if fits.fullmatch(target.name))


_UNKNOWN = "unknown"


class _Lenient(string.Formatter):
    """A number that cannot be written as it should be is written as it is."""

    def format_field(self, value: Any, format_spec: str) -> str:
        try:
            return str(super().format_field(value, format_spec))
        except ValueError:
            return str(value)


class _Unknown:
    def __format__(self, spec: str) -> str:
        return _UNKNOWN


class _Values(dict[str, Any]):
    """What placeholders stand for. Names that nothing is known of are noted."""

    def __init__(self, values: Mapping[str, Any], missing: list[str]) -> None:
        super().__init__(values)
        self._missing = missing

    def __missing__(self, name: str) -> _Unknown:
        self._missing.append(name)
        return _Unknown()


def _filled(pattern: str, literal: Callable[[str], str], anything: str) -> str:
    parts = string.Formatter().parse(pattern)
    return "".join(literal(text) + (anything if name is not None else "") for text, name, _, _ in parts)


def _best(saves: list[Generation], monitored: Monitored) -> Generation | None:
    best, best_value = None, None
    for save in saves if monitored.direction is not None else ():
        training = save.manifest.training if save.manifest is not None else {}
        value = training.get("monitored")
        if training.get("monitor") == monitored.name and value is not None and monitored.is_better(value, best_value):
            best, best_value = save, value
    return best


def _forget(target: Path) -> None:
    place = Target(target)
    with place.locked(WAIT):
        place.clean()
        if not place.unfinished_saves():  # another machine saves under this name
            remove(target)
            remove(folder_of(target))
