"""Crashes of ops that are known: published advisories, and calls that were tried on several releases."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from faultlens.knowledge.op_names import plain

ISSUES = "https://github.com/tensorflow/tensorflow/issues/"
ADVISORIES = "https://github.com/advisories/"
_SIGNALS = ("SIGABRT", "SIGSEGV", "SIGFPE", "SIGILL", "SIGBUS")
_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(rc|\.?dev|a|b)?")


class Known(NamedTuple):
    """A crash of an op in one release, as it is known to others."""

    id: str  # "CVE-2021-29530"; "" when it was only tried
    ops: tuple[str, ...]
    effect: str  # slugs of causes, or the signal; "" when nothing more is known than that it crashes
    fixed_in: str | None  # the first release without it, as far as known
    url: str
    source: str


def known_crashes(op: str, version: str) -> tuple[Known, ...]:
    """What is known to crash in this op in this release; nothing when the release has the fix."""
    wanted, release = _unversioned(op), _release(version)
    if release is None:
        return ()
    return tuple(_published(wanted, release)) + tuple(_tried(wanted, release))


def all_known_crashes(version: str) -> tuple[Known, ...]:
    """What is known to crash in this release, in any op."""
    release = _release(version)
    return () if release is None else tuple(_published(None, release)) + tuple(_tried(None, release))


def _published(op: str | None, release: tuple[int, ...]) -> Iterator[Known]:
    table = _table("advisories.json")
    for row in table["advisories"]:
        if op is not None and op not in map(_unversioned, row["ops"]):
            continue
        for first, fixed in row["affected"]:
            if (_release(first) or (0,)) <= release < (_release(fixed) or (0,)):
                effects = ", ".join(row["effects"])
                yield Known(row["id"], tuple(row["ops"]), effects, fixed, ADVISORIES + row["ghsa"], table["source"])


def _tried(op: str | None, release: tuple[int, ...]) -> Iterator[Known]:
    for row in _table("tried.json"):
        if op is not None and op != _unversioned(row["op"]):
            continue
        tried = sorted((_release(version) or (0,), version, ending) for version, ending in row["tried"].items())
        nearest = [ending for number, _, ending in tried if number[:2] <= release[:2]][-1:]
        crashing = [version for _, version, ending in tried if ending in _SIGNALS]
        # A release between two that were tried is taken to behave like the older; nothing is claimed of newer ones.
        if not crashing or not nearest or nearest[0] not in _SIGNALS or release[:2] > tried[-1][0][:2]:
            continue
        fixed = next(
            (version for number, version, ending in tried if number > release and ending not in _SIGNALS), None
        )
        issue = row.get("issue")
        url = f"{ISSUES}{issue}" if issue else ""
        source = f"tried on TensorFlow {', '.join(crashing)}"
        yield Known(f"issue {issue}" if issue else "", (row["op"],), nearest[0], fixed, url, source)


def _unversioned(op: str) -> str:
    """Of a function of TensorFlow's its last name: "tf.nest.flatten" is flatten."""
    return re.sub(r"v\d$", "", plain(op.rpartition(".")[2]))


def _release(version: str) -> tuple[int, ...] | None:
    """Comparable: a release candidate comes before its release."""
    match = _RELEASE.match(version)
    return (int(match[1]), int(match[2]), int(match[3] or 0), 0 if match[4] else 1) if match else None


@cache
def _table(name: str) -> Any:
    return json.loads(resources.files(__package__).joinpath(name).read_bytes())
