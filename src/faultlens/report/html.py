"""The report as one page that needs nothing else: no network, no scripts, readable anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from faultlens import __version__
from faultlens.diagnosis.causes import find
from faultlens.diagnosis.evidence import fenced
from faultlens.diagnosis.evidence.folding import Fold, fold, fold_in_words, fold_recursion
from faultlens.inspection.frames import is_kernel, is_own, without_dying
from faultlens.records.crash import Crash, Frame, Kernel, Thread
from faultlens.records.diagnosis import Diagnosis, Evidence, Fix
from faultlens.records.report_file import Report
from faultlens.report import facts
from faultlens.report.headline import headline, kind_of_end, line_of, program_name, short_path
from faultlens.report.inline import Run, runs
from faultlens.report.kernels import Input, attributes_of, contents_in_words, facts_of, inputs_of
from faultlens.report.progress import progress_in_words
from faultlens.report.reproducer import arrays, reproducer_in_words, script_lines
from faultlens.report.saves import saves, saving_in_words
from faultlens.report.some import Some, some
from faultlens.report.source import SourceLine, excerpt
from faultlens.report.threads import frame_place, function_name, kind_of_name, shown_threads, thread_in_words
from faultlens.report.timeline_chart import chart
from faultlens.report.verdict import called_from, certainty, is_unknown, pointed_at, subject, sure, tempting, verdict
from faultlens.report.words import fault_in_words, memory_in_words
from faultlens.text.quantities import count, duration, moment
from faultlens.text.safe import last_lines, one_line

_TEXT = 600  # characters of one sentence
_LONGEST = 4096  # of anything
_EVIDENCE, _FIXES, _RIVALS = 30, 12, 4
_RULED_OUT_OPEN, _RULED_OUT = 5, 80
_FRAMES, _FRAMES_OF_OTHERS, _GROUPS, _IDS = 150, 40, 40, 12
_OUTPUT_LINES, _LINE = 80, 400
_ROWS = 200  # of any table
_EXCEPTIONS = 20
_KERNELS, _INPUTS, _ATTRIBUTES = 20, 40, 60
_VALUES, _FIRST_VALUES = 64, 4  # of an input: in the fold, and beside its type
_SCRIPT_LINES = 400

# Where on the page the facts are that evidence was read from, by words in the name of its source.
_ANCHORS = tuple(
    (re.compile(pattern, re.I), anchor)
    for pattern, anchor in (
        (r"\bsaves?\b", "saves"),
        (r"kernels? in flight|\bops? in flight|\bgraph\b|\btraced?\b|\bprogress\b", "tensorflow"),
        (r"register", "registers"),
        (r"traceback|python exception", "output"),
        (r"stack|thread|frame|symbol|gil\b|process state|/task", "threads"),
        (r"source|your code|script", "source"),
        (
            r"stderr|stdout|output|messag|\blog\b|said|glibc|abort|thrown|exception|terminat|runtime|loader|errno",
            "output",
        ),
        (r"siginfo|signal|instruction|disassembl|fault|trap", "fault"),
        (r"\bmaps?\b|mapping|\bfiles?\b|file state|disk|librar|\bstat(?:v?fs)?\b", "files"),
        (r"time limit", "environment"),
        (r"cgroup|memory|rss|r?limit|counter|timeline|sample|shm|/proc/\S*/status", "memory"),
        (
            r"environ|variable|package|version|machine|cpu|program|command|status|exit|kernel|agent|/proc/",
            "environment",
        ),
    )
)


class Proof(NamedTuple):
    words: list[Run]
    source: str
    anchor: str | None


class Remedy(NamedTuple):
    title: list[Run]
    detail: list[Run]
    grade: str
    command: str


class SourceRow(NamedTuple):
    number: int
    failing: bool
    before: str
    marked: str
    after: str


class Call(NamedTuple):
    function: str
    place: str
    own: bool
    kernel: bool


class Folded(NamedTuple):
    summary: str
    calls: tuple[Call, ...]


class Op(NamedTuple):
    """An op in flight."""

    name: str
    aside: str
    at_fault: bool
    facts: facts.Pairs
    inputs: Some[tuple[Input, str]]  # with more of its values, where there are more
    attributes: Some[tuple[str, str]]


class Stack(NamedTuple):
    title: str
    rows: tuple[Call | Folded, ...]
    more: int
    open: bool


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
    source = _source(report)
    sections = _sections(report, source is not None)
    return {
        "version": __version__,
        "kind": kind_of_end(crash),
        "happened": headline(report.crash),
        "program": program_name(crash),
        "when": moment(crash.time),
        "progress": progress_in_words(crash.progress) or "",
        "lasted": duration(crash.seconds) if crash.seconds is not None and crash.seconds >= 0 else "",
        "verdict": _verdict(report, found, sections) if found else None,
        "rivals": some([_rival(other) for other in report.diagnoses[1:]], _RIVALS),
        "ruled_out": _ruled_out(report),
        "source": source,
        "crash": crash,
        "sections": sections,
        "reproducer": _reproducer(report),
        "contents": runs(contents_in_words(report.crash) or "", _TEXT),
        **_facts(crash),
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


# ------------------------------------------------------------------------------------------- the verdict


def _verdict(report: Report, found: Diagnosis, sections: dict[str, str]) -> dict[str, Any]:
    crash = subject(report)
    cause = find(found.cause)
    location = found.location
    caller = called_from(report)
    return {
        "code": one_line(found.code, 12),
        "cause": one_line(found.cause, 60),
        "title": runs(found.title, _TEXT),
        "plain_title": found.title,
        "unknown": is_unknown(found),
        "sure": sure(found),
        "percent": f"{certainty(found):.0%}",
        "location": f"{short_path(location.file, crash)}:{location.line}" if location else "",
        "function": location.function if location else "",
        "caller": line_of(caller, crash) if caller else "",
        "calling": caller.function if caller else "",
        "op": found.op or "",
        "evidence": some([_proof(item, sections) for item in found.evidence], _EVIDENCE),
        "fixes": some([_remedy(fix) for fix in found.fixes], _FIXES),
        "headline": cause.headline if cause else "",
        "explanation": _prose(cause.explanation) if cause else "",
    }


def _proof(item: Evidence, sections: dict[str, str]) -> Proof:
    return Proof(runs(item.fact, _TEXT), one_line(item.source, 80), anchor_of(item.source, sections))


def anchor_of(source: str, sections: Iterable[str]) -> str | None:
    there = set(sections)
    return next((anchor for pattern, anchor in _ANCHORS if anchor in there and pattern.search(source[:200])), None)


def _remedy(fix: Fix) -> Remedy:
    return Remedy(runs(fix.title, _TEXT), runs(fix.detail, 2 * _TEXT), fix.grade, one_line(fix.command, 2 * _TEXT))


def _rival(other: Diagnosis) -> dict[str, Any]:
    return {"code": one_line(other.code, 12), "title": runs(other.title, _TEXT), "sure": sure(other)}


def _ruled_out(report: Report) -> dict[str, Any]:
    others = [(one_line(other.cause, 60), runs(other.because, _TEXT)) for other in tempting(report, _RULED_OUT)]
    shown = _RULED_OUT_OPEN if len(others) > _RULED_OUT_OPEN + 2 else len(others)  # a fold of one or two saves nothing
    return {
        "open": others[:shown],
        "folded": others[shown:],
        "more": len(report.ruled_out) - len(others),
    }


def _prose(markdown: str) -> Markup:
    """The explanation of a cause. It is ours, and still no HTML in it is passed on."""
    from markdown_it import MarkdownIt

    return Markup(MarkdownIt("commonmark", {"html": False}).render(markdown))


# -------------------------------------------------------------------------------------- the user's line


def _source(report: Report) -> dict[str, Any] | None:
    crash = subject(report)
    frame = pointed_at(report)
    lines = excerpt(frame, crash) if frame else []
    if frame is None or not lines:
        return None
    return {
        "where": f"{short_path(frame.file or '', crash)}:{frame.line}",
        "function": one_line(frame.function, 120),
        "rows": [_source_row(line, line.number == frame.line) for line in lines],
    }


def _source_row(line: SourceLine, failing: bool) -> SourceRow:
    start, end = line.underline or (0, 0)
    pieces = (line.text[:start], line.text[start:end], line.text[end:])
    return SourceRow(line.number, failing, *(one_line(piece, _LINE) for piece in pieces))


# -------------------------------------------------------------------------------------------- the facts


def _facts(crash: Crash) -> dict[str, Any]:
    fault = crash.fault
    registers = fault.registers if fault else {}
    return {
        "fault": fault_in_words(fault, crash) if fault else "",
        "fault_facts": _fault_facts(crash),
        "also_faulted": some([(f.thread, fault_in_words(f, crash)) for f in crash.also_faulted], 10),
        "registers": some([(name, f"{value:#018x}") for name, value in registers.items()], 64),
        "saving": saving_in_words(crash),
        "saves": saves(crash),
        "ops": [_op(kernel, crash) for kernel in crash.kernels[:_KERNELS]],
        "more_ops": len(crash.kernels) - _KERNELS,
        "stacks": [_stack(thread, crash) for thread in shown_threads(crash)],
        "other_stacks": _other_stacks(crash),
        "memory": memory_in_words(crash) or "",
        "chart": chart(crash),
        "memory_tables": [
            (title, some(rows, _ROWS))
            for title, rows in (
                ("Growth", facts.growth(crash)),
                ("What held it", facts.held(crash)),
                ("Use", facts.usage(crash)),
                ("Control group", facts.cgroup(crash.cgroup_before, crash.cgroup)),
                ("Limits", facts.limits(crash)),
            )
            if rows
        ],
        "outputs": _outputs(crash),
        "thrown": some([facts.thrown(exception) for exception in crash.exceptions], _EXCEPTIONS),
        "files": some([(file.path, facts.file_state(file)) for file in crash.files], 50),
        "mappings": facts.mappings(crash),
        "libraries": some([(library.path, library.build_id or "") for library in crash.libraries], _ROWS),
        "program_facts": facts.program(crash),
        "machine_facts": facts.machine(crash),
        "packages": some(facts.packages(crash), _ROWS),
        "environment": some(facts.environment(crash), _ROWS),
        "children": some([headline(child) for child in crash.children], 20),
        "gaps": some(crash.gaps, 30),
    }


def _fault_facts(crash: Crash) -> facts.Pairs:
    fault = crash.fault
    if fault is None:
        return []
    rows = [("signal", facts.signal(fault)), *facts.code(fault)]
    where = facts.faulting_mapping(fault, crash)
    rows += [("address lies in", where)] if where else []
    return [*rows, *fenced.in_full(crash), ("seen", f"{fault.seen}, by {crash.method}")]


def _outputs(crash: Crash) -> list[tuple[str, Some[str]]]:
    streams = {"stderr": crash.output.stderr, "stdout": crash.output.stdout, "kernel log": "\n".join(crash.kernel_log)}
    tails = []
    for name, text in streams.items():
        lines = last_lines(text or "", _OUTPUT_LINES + 1, _LINE)
        if lines:
            earlier = (text or "").count("\n") + 1 - len(lines) if len(lines) > _OUTPUT_LINES else 0
            tails.append((name, Some(tuple(lines[-_OUTPUT_LINES:]), earlier)))
    return tails


# ------------------------------------------------------------------------------------ inside TensorFlow


def _op(kernel: Kernel, crash: Crash) -> Op:
    node = one_line(kernel.node, 120)
    return Op(
        name=one_line(kernel.op, 120),
        aside=node if node != kernel.op else "",
        at_fault=kernel.at_fault,
        facts=facts_of(kernel, crash),
        inputs=Some(_inputs(kernel), len(kernel.inputs) - _INPUTS),
        attributes=Some(tuple(attributes_of(kernel, _ATTRIBUTES)), len(kernel.attributes) - _ATTRIBUTES),
    )


def _inputs(kernel: Kernel) -> tuple[tuple[Input, str], ...]:
    briefly, fully = (inputs_of(kernel, _INPUTS, most) for most in (_FIRST_VALUES, _VALUES))
    return tuple((one, more.values if more != one else "") for one, more in zip(briefly, fully, strict=True))


def _reproducer(report: Report) -> dict[str, Any] | None:
    found = report.reproducer
    if found is None:
        return None
    return {
        "words": reproducer_in_words(found),
        "script": some(script_lines(found), _SCRIPT_LINES),
        "files": some(arrays(found), _ROWS),
    }


# ------------------------------------------------------------------------------------------- the threads


def _stack(thread: Thread, crash: Crash) -> Stack:
    """Runs of library frames and recursion are folded, as is what only carries out an abort."""
    telling = without_dying(thread.frames)
    dying = thread.frames[: len(thread.frames) - len(telling)]
    aborting = [Folded(f"… {count(len(dying), 'frame')} of aborting", _calls(dying, crash))] if dying else []
    rows = _rows(fold(telling, 1 if thread.launched and not thread.crashed else 3), telling, crash)
    return Stack(_thread_title(thread, crash), (*aborting, *rows), 0, True)


def _rows(rows: Iterable[Frame | Fold], frames: Sequence[Frame], crash: Crash) -> Iterator[Call | Folded]:
    """`rows` are the frames, folded."""
    position = 0
    for row in rows:
        if isinstance(row, Fold):
            run = frames[position : position + min(row.frames, _FRAMES)]
            yield Folded(fold_in_words(row), _calls(run, crash))
            position += row.frames
        else:
            yield _call(row, crash)
            position += 1


def _other_stacks(crash: Crash) -> Some[Stack]:
    """Threads that stand at the same place are one item."""
    shown = {thread.id for thread in shown_threads(crash)}
    groups: dict[tuple[object, ...], list[Thread]] = {}
    for thread in crash.threads:
        if thread.id not in shown:
            key = (kind_of_name(thread), *((frame.function, frame.file, frame.line) for frame in thread.frames))
            groups.setdefault(key, []).append(thread)
    alike = sorted(groups.values(), key=len, reverse=True)
    stacks = [_group(threads, crash) for threads in alike[:_GROUPS]]
    return Some(tuple(stacks), sum(len(threads) for threads in alike[_GROUPS:]))


def _group(threads: Sequence[Thread], crash: Crash) -> Stack:
    first = threads[0]
    title = _thread_title(first, crash)
    if len(threads) > 1:
        ids = ", ".join(str(thread.id) for thread in threads[:_IDS])
        title = f"{len(threads)} × {kind_of_name(first)} ({ids}{', …' if len(threads) > _IDS else ''})"
    rows = tuple(_rows(fold_recursion(first.frames), first.frames, crash))
    return Stack(title, rows[:_FRAMES_OF_OTHERS], len(rows) - _FRAMES_OF_OTHERS, False)


def _thread_title(thread: Thread, crash: Crash) -> str:
    return one_line(thread_in_words(thread, crash), 120)


def _calls(frames: Iterable[Frame], crash: Crash) -> tuple[Call, ...]:
    return tuple(_call(frame, crash) for frame in frames)


def _call(frame: Frame, crash: Crash) -> Call:
    return Call(function_name(frame), frame_place(frame, crash), is_own(frame), is_kernel(frame))
