"""Classes that other distributions add through entry points: causes, checks, rules about ops, formats of data.

A leaf, because the lists that they are added to belong to features and engines, which do not know each other. One that
is broken costs one line on stderr, and nothing else."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import TypeVar

from faultlens.text.safe import make_printable, one_line

T = TypeVar("T")


def plugged(group: str, base: type[T]) -> list[T]:
    """One instance of every class that the entry points of the group name, in the order of their names."""
    points = sorted(metadata.entry_points(group=group), key=lambda point: (point.name, point.value))
    return [made for point in points if (made := _made(point, base)) is not None]


def complain(what: str, because: str | BaseException) -> None:
    """`what`: which plugin, as its user knows it."""
    reason = f"{type(because).__name__}: {because}" if isinstance(because, BaseException) else because
    said = f"faultlens: the plugin {what} is left out: {reason}"
    print(one_line(said, 400), file=make_printable(sys.stderr), flush=True)


def name_of(made: object) -> str:
    """ "faultlens_lab.causes:ThermalShutdown"."""
    return f"{type(made).__module__}:{type(made).__qualname__}"


def _made(point: metadata.EntryPoint, base: type[T]) -> T | None:
    try:
        found = point.load()
        if isinstance(found, type) and issubclass(found, base):
            return found()
    except (Exception, SystemExit) as error:  # it is somebody else's code
        complain(point.value, error)
        return None
    complain(point.value, f"it is not a class derived from {base.__module__}.{base.__qualname__}")
    return None
