"""Writes docs/causes.md and a page for each cause, from the catalogue itself: `python tools/write_docs.py`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from faultlens.causes import by_family, catalogue, family_title
from faultlens.causes.base import Cause

DOCS = Path(__file__).parent.parent / "docs"
PAGES = DOCS / "causes"

INTRODUCTION = """\
# The causes that faultlens knows

Each has a stable code. `faultlens causes` lists them, `faultlens causes CODE` shows the page of one. This page and
those behind its links are written by `tools/write_docs.py` from `src/faultlens/causes/`: change them there.
"""
TABLE = "| code | cause | in short |\n|---|---|---|"


def pages() -> dict[Path, str]:
    """Every file there must be, and its text."""
    return {DOCS / "causes.md": _overview(), **{PAGES / f"{cause.slug}.md": _page(cause) for cause in catalogue()}}


def outdated() -> list[Path]:
    """Files that are missing or say something else, and those of causes that are no more."""
    wanted = pages()
    changed = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    return changed + [path for path in PAGES.glob("*.md") if path not in wanted]


def _overview() -> str:
    families = (f"## {family_title(family)}\n\n{TABLE}\n{_rows(causes)}\n" for family, causes in by_family().items())
    return "\n".join([INTRODUCTION, *families])


def _rows(causes: Iterable[Cause]) -> str:
    return "\n".join(
        f"| {cause.code} | [{cause.slug}](causes/{cause.slug}.md) | {_sentence(cause)} |" for cause in causes
    )


def _page(cause: Cause) -> str:
    title = f"# {cause.code} {cause.slug}"
    return "\n\n".join((title, _sentence(cause), cause.explanation.strip(), "[All causes](../causes.md)\n"))


def _sentence(cause: Cause) -> str:
    return cause.headline[:1].upper() + cause.headline[1:].rstrip(".").replace("|", "\\|") + "."


if __name__ == "__main__":
    PAGES.mkdir(parents=True, exist_ok=True)
    for path in outdated():
        if path in (texts := pages()):
            path.write_text(texts[path])
        else:
            path.unlink()
