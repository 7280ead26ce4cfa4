"""`faultlens op check`: what is wrong with ops, told from their source or library."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faultlens.cli import output
from faultlens.cli.exit_codes import FINE, exit_status
from faultlens.errors import FaultlensError

if TYPE_CHECKING:
    from faultlens.report.op_sarif import RulePage

# Heavy modules are imported where they are used: `faultlens --help` must stay quick.

DESCRIPTION = """\
Read the source of custom ops, or a library of them, and say what will crash: each finding with its code, its line and
what to write instead. Nothing is built or run. PATH is a source, a library, or a folder of sources.

  faultlens op check my_op.cc                    the source
  faultlens op check build/_my_op.so             whether TensorFlow and this CPU take the library
  faultlens op check src --sarif findings.sarif  a whole folder, for code review tools
  faultlens op check --explain OP104             what a code means

A comment `// faultlens: allow OP104 the caller has checked it` on the line or above it silences a finding.

Exit status: 0 nothing wrong, 1 findings, 2 it could not be checked.
"""


def register(verbs: Any) -> None:
    parser = verbs.add_parser(
        "check",
        help="read the source or library of ops and say what will crash",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help="sources, libraries, or folders of sources")
    parser.add_argument("--explain", metavar="CODE", help="what a code means, and how it is written right")
    parser.add_argument("--python", metavar="PYTHON", help="the Python or virtual environment whose TensorFlow counts")
    parser.add_argument("-v", "--verbose", action="store_true", help="show notes as well")
    parser.add_argument("--json", metavar="PATH", help="write what was found as JSON; - is standard output")
    parser.add_argument("--sarif", metavar="PATH", help="write it as SARIF 2.1.0, for code review tools")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    if arguments.explain is not None:
        return _explain(arguments.explain)
    if not arguments.paths:
        raise FaultlensError("Nothing to check.", "Name a source, a library, or a folder of sources.")
    from faultlens.custom_op.check.examine import examine
    from faultlens.doctor.op_libraries import check_library
    from faultlens.report import op_findings

    reads_libraries = any(path.endswith(".so") for path in arguments.paths)
    python = output.python_for(arguments) if reads_libraries else arguments.python
    found = examine([Path(path) for path in arguments.paths], python, check_library)
    if arguments.sarif:
        from faultlens.report import op_sarif

        output.write_bytes(op_sarif.document(found, _pages()), arguments.sarif)
    output.present(found, arguments, op_findings.render)
    return exit_status(findings=found.is_grave, unseen=found.coverage == "insufficient")


def _pages() -> Sequence[RulePage]:
    from faultlens.custom_op.check.rules import catalogue
    from faultlens.doctor.op_libraries import PAGES

    return (*catalogue(), *PAGES)


def _explain(name: str) -> int:
    from faultlens.text.safe import one_line

    wanted = name.strip().lower()
    for code, slug, severity, text in explanations():
        if wanted in (code.lower(), slug):
            print(f"{code} {slug} ({severity}): {text}")
            sys.stdout.flush()
            return FINE
    codes = sorted(code for code, *_ in explanations())
    raise FaultlensError(f"There is no code {one_line(name, 40)}.", f"They go from {codes[0]} to {codes[-1]}.")


def explanations() -> Iterator[tuple[str, str, str, str]]:
    """Code, name, severity and text of all that `faultlens op` can find."""
    from faultlens.custom_op.fuzz import rules as tested
    from faultlens.custom_op.sanitize import rules as sanitized

    for page in _pages():
        yield page.code, page.slug, page.severity, f"{page.headline}\n\n{page.explanation}"
    for slug, rule in (*tested.RULES.items(), *sanitized.RULES.items()):
        yield rule.code, slug, rule.severity, f"{rule.meaning}\n\nFix: {rule.fix}"
