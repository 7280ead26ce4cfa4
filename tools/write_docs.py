"""Writes docs/causes.md, a page for each cause, docs/doctor.md and docs/op-rules.md, from the catalogues themselves.

python tools/write_docs.py"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from faultlens.custom_op.check import rules
from faultlens.diagnosis.causes import by_family, catalogue, family_title
from faultlens.diagnosis.causes.base import Cause
from faultlens.doctor import checks
from faultlens.doctor.check import Check
from faultlens.doctor.op_libraries import PAGES as PAGES_OF_LIBRARIES

DOCS = Path(__file__).parent.parent / "docs"
PAGES = DOCS / "causes"

INTRODUCTION = """\
# The causes that faultlens knows

Each has a stable code. `faultlens causes` lists them, `faultlens causes CODE` shows the page of one. This page and
those behind its links are written by `tools/write_docs.py` from `src/faultlens/diagnosis/causes/`: change them there.
"""
CHECKS = """\
# What the doctor looks at

`faultlens doctor` runs all of these, `faultlens doctor NAME` one of them, `-v` tells what it saw. Nothing is imported
or loaded, and nothing that the environment runs at every start of Python either: `.pth` files are read for the folders
that they name, not run, and `sitecustomize` is left alone. This page is written by `tools/write_docs.py` from
`src/faultlens/doctor/checks/`: change it there.

An error is proved by a fact: it will fail or crash. A warning names the condition under which it will.
"""
RULES = """\
# What `faultlens op check` finds

Each rule has a stable code; `faultlens op check --explain CODE` shows its text. This page is written by
`tools/write_docs.py` from `src/faultlens/custom_op/check/rules/`: change it there.

The source is read with a C++ parser (tree-sitter): nothing is built or run. The macros of the file are replaced, each
kernel is followed from its constructor through `Compute` along its paths, and so are the functions of the same source
that it calls. A check counts as soon as it speaks of the thing that is used later: what is reported here is meant to be
right, and what is not reported may still be wrong. `faultlens op test` and `faultlens op sanitize` look for that.

An error crashes, damages memory or gives wrong results for inputs that the registration allows. A warning does so
under the conditions that it names. A comment `// faultlens: allow OP104 why` on the line or above it turns a finding
into a note.

| code | name | in short |
|---|---|---|
"""
TABLE = "| code | cause | in short |\n|---|---|---|"


def pages() -> dict[Path, str]:
    """Every file there must be, and its text."""
    causes = {PAGES / f"{cause.slug}.md": _page(cause) for cause in catalogue()}
    doctor = "\n".join([CHECKS, *map(_check, checks.catalogue())])
    return {DOCS / "causes.md": _overview(), DOCS / "doctor.md": doctor, DOCS / "op-rules.md": _rules(), **causes}


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


def _rules() -> str:
    pages = (*rules.catalogue(), *PAGES_OF_LIBRARIES)
    rows = "\n".join(
        f"| {page.code} | [{page.slug}](#{page.code.lower()}-{page.slug}) | {page.headline} |" for page in pages
    )
    texts = (
        f"## {page.code} {page.slug}\n\n{page.headline.capitalize()} ({page.severity}).\n\n{page.explanation}\n"
        for page in pages
    )
    return RULES + rows + "\n\n" + "\n".join(texts)


def _check(check: Check) -> str:
    leads_to = ", ".join(f"[{slug}](causes/{slug}.md)" for slug in check.causes)
    parts = [f"## {check.name}", check.explanation.strip(), f"Foresees: {leads_to}." if leads_to else ""]
    return "\n\n".join(filter(None, parts)) + "\n"


def _sentence(cause: Cause) -> str:
    return cause.headline[:1].upper() + cause.headline[1:].rstrip(".").replace("|", "\\|") + "."


if __name__ == "__main__":
    PAGES.mkdir(parents=True, exist_ok=True)
    for path in outdated():
        if path in (texts := pages()):
            path.write_text(texts[path])
        else:
            path.unlink()
