"""From what a sanitizer reported to findings: the line of the op, the other lines that matter, the line of Python."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from faultlens.custom_op.sanitize.parsers.python_lines import Noted
from faultlens.custom_op.sanitize.reports import Frame, Reported
from faultlens.custom_op.sanitize.rules import RULES
from faultlens.records.diagnosis import Evidence, Fix, Location
from faultlens.records.op_finding import OpFinding, Related, Span

_FOREIGN = re.compile(
    r"/(site|dist)-packages/|/include/(c\+\+|tensorflow|absl|Eigen|unsupported|cub|thrust|cuda|cccl)/|^/usr/(include|lib)"
)
_INNERMOST = ("gpu-uninitialised", "gpu-data-race", "gpu-leak", "gpu-call-failed")
_NO_LINES = "For the line, build the library with -g."
_NO_LINES_OF_KERNELS = "For the line, name its .cu source, too, or build the library with nvcc -lineinfo."
_KERNEL = re.compile(r"(?:^|\s|::)(\w+)(?:<[^()]*>)?::Compute(?:Async)?\(")


class Op:
    """Whose lines count: those of its sources, and of headers beside them."""

    def __init__(self, sources: Sequence[Path], library: Path | None = None) -> None:
        self.library = library.name if library else ""
        self.sources = {str(source.resolve()) for source in sources}
        self.folders = tuple({str(source.resolve().parent) + "/" for source in sources})

    def owns(self, frame: Frame) -> bool:
        if not frame.file.startswith("/") or not frame.line:
            return False  # the op is built with whole paths
        path = str(Path(frame.file).resolve())
        if path in self.sources:
            return True
        return (not self.folders or path.startswith(self.folders)) and not _FOREIGN.search(path)

    def is_in_library(self, frame: Frame) -> bool:
        """Frames of a GPU know no library."""
        return not frame.module or Path(frame.module).name == self.library

    def has_part(self, reported: Reported) -> bool:
        """Whether its library is on the stack, in code without line numbers."""
        stacks = (reported.frames, *(other.frames for other in reported.others))
        return any(frame.module and self.is_in_library(frame) for stack in stacks for frame in stack)


def finding_of(reported: Reported, op: Op, called_from: Location | None) -> OpFinding | None:
    """None: no line of the op has to do with it."""
    stacks = [reported.frames, *(other.frames for other in reported.others)]
    own = [frame for stack in stacks for frame in stack if op.owns(frame)]
    place = _again(own) if reported.rule == "stack-exhausted" else next(iter(own), None)
    if (place is None and not op.has_part(reported)) or not _is_believed(reported, op):
        return None
    rule = RULES[reported.rule]
    related = []
    for other in reported.others:
        beside = next((frame for frame in other.frames if op.owns(frame)), None)
        if beside and place and (beside.file, beside.line) != (place.file, place.line):
            related.append(Related(other.says, span_of(beside)))
    weak = reported.weak or (reported.rule == "undefined-behaviour" and not op.owns(reported.frames[0]))
    return OpFinding(
        code=rule.code,
        rule=reported.rule,
        severity="warning" if weak else rule.severity,
        title=reported.words,
        span=span_of(place) if place else None,
        op=reported.op or _kernel([*reported.frames, *(frame for other in reported.others for frame in other.frames)]),
        related=tuple(related),
        evidence=tuple(Evidence(fact, reported.tool) for fact in reported.facts),
        fixes=tuple(Fix(text) for text in (rule.fix, "" if place else _how_to_line(reported)) if text),
        called_from=called_from,
    )


def _how_to_line(reported: Reported) -> str:
    return _NO_LINES_OF_KERNELS if reported.rule.startswith("gpu-") else _NO_LINES


def _again(own: Sequence[Frame]) -> Frame | None:
    """Where a function calls itself: the stack ends at the beginning of one more call."""
    functions = [frame.function for frame in own]
    repeated = (frame for place, frame in enumerate(own) if frame.function in functions[:place])
    return next(repeated, own[0] if own else None)


def _is_believed(reported: Reported, op: Op) -> bool:
    """Two threads race where both run the same part of the op: what one part hands over to another (a kernel to its
    shards) is ordered by TensorFlow, unseen. CUDA's own templates read ahead on purpose, and pools keep what others
    asked for: there the innermost line has to be the op's."""
    if reported.rule in _INNERMOST:
        first = reported.frames[0] if reported.frames else None
        return first is not None and (op.owns(first) or (not first.file and op.is_in_library(first)))
    if reported.rule != "data-race":
        return True
    entries = {_entry(stack, op) for stack in (reported.frames, reported.others[0].frames)}
    return len(entries) == 1 and "" not in entries


def _entry(frames: Sequence[Frame], op: Op) -> str:
    """The outermost function of the op."""
    return next((frame.function for frame in reversed(frames) if op.owns(frame)), "")


def _kernel(frames: Iterable[Frame]) -> str:
    return next((found[1] for frame in frames if (found := _KERNEL.search(frame.function))), "")


def span_of(frame: Frame) -> Span:
    path = str(Path(frame.file).resolve())
    text = linecache.getline(path, frame.line).rstrip("\n")
    column = frame.column or len(text) - len(text.lstrip()) + 1
    return Span(path, frame.line, column, text=text)


def without_doubles(findings: Iterable[OpFinding]) -> tuple[OpFinding, ...]:
    """One for each line and rule; what is undefined behaviour only in general goes where the damage is named."""
    kept: dict[tuple[str, str, int], OpFinding] = {}
    for each in findings:
        where = (each.span.path, each.span.line) if each.span else (each.title, 0)
        kept.setdefault((each.rule, *where), each)
    exact = {key[1:] for key in kept if key[0] not in ("undefined-behaviour", "died")}
    if any(each.span for each in kept.values()):  # the death in another pass, which has no line, says nothing more
        kept = {key: each for key, each in kept.items() if key[0] != "died" or each.span}
    return tuple(each for key, each in kept.items() if key[0] != "undefined-behaviour" or key[1:] not in exact)


def line_for(reported: Reported, noted: Sequence[Noted]) -> Location | None:
    if reported.called_from:
        return reported.called_from
    own = [note for note in noted if note.kind == reported.noted]
    return own[reported.order].location if reported.noted and reported.order < len(own) else None
