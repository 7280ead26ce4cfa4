"""`faultlens causes`: the catalogue, or the explanation of one cause."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from faultlens.cli import output
from faultlens.cli.exit_codes import FINE
from faultlens.errors import FaultlensError

if TYPE_CHECKING:
    from faultlens.diagnosis.causes.base import Cause

# Heavy modules are imported where they are used: `faultlens --help` must stay quick.

DESCRIPTION = """\
List the causes that faultlens knows, or explain one: what it is, how it looks, how to prove it and how to fix it.
CAUSE is a code (FL203) or a name (stack-overflow); codes of `faultlens op` (OP104) and checks of `faultlens doctor`
(numpy-abi) are explained as well."""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("causes", help="list the known causes, or explain one", description=DESCRIPTION)
    parser.add_argument("cause", nargs="?", metavar="CAUSE", help="a code or a name")
    parser.add_argument("--json", metavar="PATH", help="write it as JSON; - is standard output")
    parser.set_defaults(handler=causes)


def causes(arguments: argparse.Namespace) -> int:
    from faultlens.diagnosis.causes import catalogue

    chosen = [_find(arguments.cause)] if arguments.cause is not None else [_page(cause) for cause in catalogue()]
    if arguments.json:
        import msgspec

        records = [page._asdict() for page in chosen]
        document = msgspec.json.encode(records[0] if arguments.cause is not None else records)
        output.write_bytes(msgspec.json.format(document, indent=1) + b"\n", arguments.json)
    if arguments.json == "-":
        return FINE
    if arguments.cause is not None:
        _explain(chosen[0])
    else:
        _list()
    return FINE


class Page(NamedTuple):
    """The explanation of something that reports name."""

    code: str
    cause: str
    family: str
    headline: str
    explanation: str


def _page(cause: Cause) -> Page:
    return Page(cause.code, cause.slug, cause.family, cause.headline, cause.explanation)


def _of_other_verbs() -> Iterator[Page]:
    from faultlens.cli.op.check import explanations
    from faultlens.doctor.checks import catalogue

    for check in catalogue():
        yield Page(check.name, check.name, "doctor", "what `faultlens doctor` looks at", check.explanation)
    for code, slug, _, text in explanations():
        headline, _, explanation = text.partition("\n\n")
        yield Page(code, slug, "op", headline, explanation)


def _find(name: str) -> Page:
    from faultlens.diagnosis.causes import catalogue, find
    from faultlens.text.safe import one_line

    if cause := find(name):
        return _page(cause)
    for page in _of_other_verbs():
        if name.strip().lower() in (page.code.lower(), page.cause):
            return page
    names = [word for cause in catalogue() for word in (cause.slug, cause.code.lower())]
    wanted = name.strip().lower()[:100]
    near = [word for word in names if wanted and wanted in word][:4] or difflib.get_close_matches(wanted, names, 4)
    hints = [word.upper() if word.startswith("fl") and word[2:].isdigit() else word for word in near]
    advice = f"Did you mean {' or '.join(hints)}?" if hints else "`faultlens causes` lists them."
    raise FaultlensError(f"There is no cause {one_line(name, 60)!r}.", advice)


def _list() -> None:
    from rich.text import Text

    from faultlens.diagnosis.causes import by_family, family_title
    from faultlens.report.page import GAP, LABEL, QUIET, print_line, words, wrap

    console = output.console(sys.stdout)
    families = by_family()
    room = max((len(cause.slug) for causes in families.values() for cause in causes), default=0)
    for number, (family, causes) in enumerate(families.items()):
        if number:
            print_line(console, Text())
        print_line(console, words(family_title(family), "bold"))
        for cause in causes:
            head = Text.assemble("  ", (cause.code, LABEL), " " * GAP, cause.slug.ljust(room + GAP))
            for line in wrap(
                words(cause.headline[:1].upper() + cause.headline[1:], QUIET), max(console.width - len(head), 30)
            ):
                print_line(console, Text.assemble(head, line))
                head = Text(" " * len(head))


def _explain(page: Page) -> None:
    from rich.text import Text

    from faultlens.report.page import print_line, words

    console = output.console(sys.stdout)
    name = " ".join(dict.fromkeys((page.code, page.cause)))
    print_line(console, Text.assemble(words(f"{name}: ", "bold red"), words(page.headline, "bold")))
    print_line(console, Text())
    if console.is_terminal:
        from rich.markdown import Markdown

        console.print(Markdown(page.explanation), width=min(console.width, 100))
    else:
        for line in page.explanation.splitlines():
            print_line(console, words(line))
