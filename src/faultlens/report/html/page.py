"""The page as a whole: what its template is given, and which sections it has."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from faultlens import __version__
from faultlens.records.report_file import Report
from faultlens.report.headline import headline, kind_of_end, program_name
from faultlens.report.html.facts import facts_of_crash
from faultlens.report.html.ops import reproducer_section
from faultlens.report.html.source import source_section
from faultlens.report.html.verdict import TEXT, rival, ruled_out, verdict_section
from faultlens.report.inline import runs
from faultlens.report.kernels import contents_in_words
from faultlens.report.progress import progress_in_words
from faultlens.report.some import some
from faultlens.report.verdict import subject, verdict
from faultlens.text.quantities import duration, moment
from faultlens.text.safe import one_line

_LONGEST = 4096  # characters of anything
_RIVALS = 4


def page(report: Report) -> str:
    return _templates().get_template("report.html").render(_view(report))


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("faultlens.report"),
        autoescape=True,
        finalize=_printable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _printable(value: Any) -> Any:
    """Whatever a template puts on the page passes here, so that nothing foreign can be forgotten."""
    return value if isinstance(value, Markup) else one_line(str(value), _LONGEST)


def _view(report: Report) -> dict[str, Any]:
    crash = subject(report)
    found = verdict(report)
    source = source_section(report)
    sections = _sections(report, source is not None)
    return {
        "version": __version__,
        "kind": kind_of_end(crash),
        "happened": headline(report.crash),
        "program": program_name(crash),
        "when": moment(crash.time),
        "progress": progress_in_words(crash.progress) or "",
        "lasted": duration(crash.seconds) if crash.seconds is not None and crash.seconds >= 0 else "",
        "verdict": verdict_section(report, found, sections) if found else None,
        "rivals": some([rival(other) for other in report.diagnoses[1:]], _RIVALS),
        "ruled_out": ruled_out(report),
        "source": source,
        "crash": crash,
        "sections": sections,
        "reproducer": reproducer_section(report),
        "contents": runs(contents_in_words(report.crash) or "", TEXT),
        **facts_of_crash(crash),
    }


def _sections(report: Report, has_source: bool) -> dict[str, str]:
    """The sections of facts that this page has: anchor and title."""
    crash = subject(report)
    output = crash.output
    present = {
        "source": ("Source", has_source),
        "tensorflow": ("In TensorFlow", bool(crash.kernels or progress_in_words(crash.progress))),
        "saves": ("Saves", crash.saving is not None),
        "reproduce": ("Reproduce", report.reproducer is not None),
        "fault": ("Fault", crash.fault is not None),
        "registers": ("Registers", bool(crash.fault and crash.fault.registers)),
        "threads": ("Threads", bool(crash.threads)),
        "memory": ("Memory", bool(crash.memory or crash.timeline or crash.cgroup or crash.limits)),
        "output": ("Output", bool(output.stderr or output.stdout or crash.kernel_log or crash.exceptions)),
        "files": ("Files", bool(crash.mappings or crash.files or crash.libraries)),
        "environment": ("Environment", True),
    }
    return {anchor: title for anchor, (title, there) in present.items() if there}
