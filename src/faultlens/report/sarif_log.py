"""What every SARIF 2.1.0 log of faultlens is made of: the document, its rules, places in files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from faultlens import __version__
from faultlens.records.severity import Severity
from faultlens.text.safe import one_line

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
TEXT = 1000  # characters of one sentence
_PATH = 4096

Json = dict[str, Any]


class RulePage(Protocol):
    """How a rule is described."""

    @property
    def code(self) -> str: ...
    @property
    def slug(self) -> str: ...
    @property
    def headline(self) -> str: ...
    @property
    def explanation(self) -> str: ...


def written(log: Json) -> bytes:
    return msgspec.json.format(msgspec.json.encode(log), indent=1) + b"\n"


def log(rules: Sequence[Json], invocation: Json, results: Sequence[Json]) -> Json:
    """Of one run. Results refer to their rule by its place in the list, where it has one."""
    run = {
        "tool": {"driver": {"name": "faultlens", "version": __version__, "rules": rules}},
        "invocations": [invocation],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def places_of(rules: Sequence[Json]) -> dict[str, int]:
    return {rule["id"]: number for number, rule in enumerate(rules)}


def rule(page: RulePage, level: Severity, tags: Sequence[str] = ()) -> Json:
    text = page.explanation or page.headline
    return {
        "id": page.code,
        "name": rule_name(page.slug),
        "shortDescription": {"text": one_line(page.headline, TEXT)},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": level},
        "properties": ({"tags": list(tags)} if tags else {}) | {"slug": page.slug},
    }


def rule_name(slug: str) -> str:
    """As the standard wants it: "StackOverflow"."""
    return "".join(part[:1].upper() + part[1:] for part in slug.split("-"))


def uri(path: str, folder: str | None) -> str:
    """Relative to the folder where it lies in it, as code review tools want it."""
    if folder and PurePosixPath(path).is_relative_to(folder):
        return quote(one_line(str(PurePosixPath(path).relative_to(folder)), _PATH))
    return ("file://" if path.startswith("/") else "") + quote(one_line(path, _PATH))


def snippet(line: str) -> Json:
    """What a region shows of its line; nothing of an empty one."""
    return {"snippet": {"text": one_line(line)}} if line.strip() else {}
