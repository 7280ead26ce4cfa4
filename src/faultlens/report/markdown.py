"""The report as Markdown, ready to be pasted into a bug report: what happened, why, where, with which versions."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from faultlens.diagnosis.evidence.folding import Fold, fold, fold_in_words
from faultlens.diagnosis.evidence.kernels import kernel_at_fault
from faultlens.diagnosis.evidence.last_words import last_words
from faultlens.diagnosis.evidence.leaks import in_full
from faultlens.inspection.frames import without_dying
from faultlens.records.crash import Crash, Kernel, Thread
from faultlens.records.diagnosis import Diagnosis, Reproducer
from faultlens.records.report_file import Report
from faultlens.report.headline import headline, short_path
from faultlens.report.inline import Run, runs
from faultlens.report.kernels import attributes_of, contents_in_words, inputs_of, line_in_words, others_in_words
from faultlens.report.progress import progress_in_words
from faultlens.report.reproducer import HINT, arrays, reproducer_in_words, script_lines, worth_reproducing
from faultlens.report.saves import saving_in_words
from faultlens.report.source import excerpt
from faultlens.report.threads import frame_place, function_name, shown_threads, thread_in_words
from faultlens.report.verdict import called_from, is_unknown, pointed_at, subject, sure, tempting, verdict
from faultlens.report.words import fault_in_words
from faultlens.text.redaction import hide_values, redact_command
from faultlens.text.safe import last_lines, one_line

_TEXT = 600
_EVIDENCE, _FIXES, _RULED_OUT = 12, 6, 5
_WORDS, _TRACEBACK_LINES = 10, 30
_FUNCTION_WIDTH = 44
_INPUTS, _VALUES, _ATTRIBUTES = 24, 8, 30
_SCRIPT = 20_000  # characters; GitHub takes 65,536 in all

# Packages a maintainer asks for first.
_ASKED_FOR = re.compile(
    r"(?i)tensorflow|tf[-_]|keras|numpy|protobuf|ml[-_]dtypes|h5py|jax|torch|nvidia-(?:cuda-runtime|cudnn)|grpcio$|absl"
)
_MOST_PACKAGES = 25
_HOME = re.compile(r"(?:/home|/Users)/[^/\s'\"]+|/root(?=/)")

# What GitHub would read as markup, a link, a mention of a person or an issue.
_MARKUP = re.compile(r"[\\`*<>\[\]|~&$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_AT_START = re.compile(r"^(\s*\d*)([-+#.)])(?=\s|$)")
_CALLS_SOMEBODY = re.compile(r"([@#])(?=\w)")
_LINK = re.compile(r"(?i)\b(https?|ftp|mailto|xmpp)(:)|\b(www)(\.)")


def document(report: Report) -> str:
    """No line names a person's home folder, and no argument or variable is told that may be a secret."""
    text = "\n".join(_lines(report)).rstrip() + "\n"
    text = hide_values(text, subject(report).program.environment)
    return _HOME.sub("~", text)


def _lines(report: Report) -> Iterator[str]:
    crash = subject(report)
    found = verdict(report)
    yield f"## {_sentence(found.title if found else headline(report.crash))}"
    yield ""
    if found:
        doubt = f" ({sure(found)})" if sure(found) else ""
        yield f"`{_code(found.code, 12)}` `{_code(found.cause, 60)}`{doubt}"
        yield ""
    yield from _what_happened(report, crash)
    yield from _source(report, crash)
    yield from _in_tensorflow(report, crash)
    if found:
        yield from _verdict(report, found)
    yield from _stacks(crash)
    yield from _output(crash)
    yield from _versions(crash)
    yield from _reproduce(report, crash)


def _what_happened(report: Report, crash: Crash) -> Iterator[str]:
    yield "### What happened"
    yield ""
    yield _sentence(headline(report.crash)) + "."
    if crash.fault:
        yield f"The fault: {_sentence(fault_in_words(crash.fault, crash))}."
    found = verdict(report)
    if found and found.op:
        yield f"The op: `{_code(found.op, 80)}`."
    if progress := progress_in_words(crash.progress):
        yield f"Progress: {_sentence(progress)}."
    for growth in crash.growth:
        yield f"Growth: {_sentence(in_full(growth))}."
    if saves := saving_in_words(crash):
        yield ". ".join(_sentence(line[:1].upper() + line[1:]) for line in saves) + "."
    yield ""


def _source(report: Report, crash: Crash) -> Iterator[str]:
    frame = pointed_at(report)
    lines = excerpt(frame, crash) if frame else []
    if frame is None or not lines:
        return
    digits = len(str(lines[-1].number))
    yield f"`{_code(short_path(frame.file or '', crash), 200)}:{frame.line}`, in `{_code(frame.function, 80)}`:"
    yield ""
    marks = {True: ">", False: " "}
    yield from _fenced(
        [f"{marks[line.number == frame.line]} {line.number:>{digits}} | {one_line(line.text)}" for line in lines],
        "python",
    )
    if caller := called_from(report):
        yield f"Called from {_sentence(line_in_words(caller, crash))}."
        yield ""


def _in_tensorflow(report: Report, crash: Crash) -> Iterator[str]:
    kernel, others = kernel_at_fault(crash), others_in_words(crash)
    if kernel is None and others is None:
        return
    yield "### In TensorFlow"
    yield ""
    if kernel:
        yield from _kernel(kernel, crash)
    if others:
        yield _sentence(others[0].upper() + others[1:]) + "."
        yield ""
    if kept := contents_in_words(report.crash, "the report file"):
        yield _sentence(kept[0].upper() + kept[1:]) + "."
        yield ""


def _kernel(kernel: Kernel, crash: Crash) -> Iterator[str]:
    facts = [
        ("node", kernel.node if kernel.node != kernel.op else ""),
        ("layer", kernel.layer or ""),
        ("kernel", kernel.kernel_class or ""),
        ("written at", line_in_words(kernel.written, crash) if kernel.written else ""),
        ("layer made at", line_in_words(kernel.layer_made, crash) if kernel.layer_made else ""),
    ]
    told = [f"`{_code(kernel.op, 120)}`", *(f"{name} `{_code(value, 200)}`" for name, value in facts if value)]
    yield ", ".join(told) + (", whose kernel was being constructed." if kernel.stage == "construct" else ".")
    yield ""
    if kernel.inputs:
        yield "| input | type and shape | values |"
        yield "|---|---|---|"
        for given, tensor in zip(inputs_of(kernel, _INPUTS, _VALUES), kernel.inputs, strict=False):
            # Bug reports are read by everybody: numbers may be told, texts may be private.
            values = given.values if tensor and tensor.strings is None else ""
            yield f"| {_sentence(given.name)} | {_sentence(given.words)} | {_sentence(values)} |"
        if len(kernel.inputs) > _INPUTS:
            yield f"| … | {len(kernel.inputs) - _INPUTS} more | |"
        yield ""
    attributes = [f"`{_code(name, 80)}` = `{_code(value, 160)}`" for name, value in attributes_of(kernel, _ATTRIBUTES)]
    if len(kernel.attributes) > _ATTRIBUTES:
        attributes.append(f"… {len(kernel.attributes) - _ATTRIBUTES} more")
    if attributes:
        yield f"Attributes: {', '.join(attributes)}."
        yield ""


def _verdict(report: Report, found: Diagnosis) -> Iterator[str]:
    yield from _list(
        "Evidence", [f"{_sentence(item.fact)} ({_sentence(item.source)})" for item in found.evidence], _EVIDENCE
    )
    title = "What would decide it" if is_unknown(found) else "Fix"
    fixes = []
    for fix in found.fixes:
        grade = "" if is_unknown(found) else f" *({fix.grade})*"
        fixes.append(_sentence(fix.title) + grade + (f": {_sentence(fix.detail)}" if fix.detail else ""))
        fixes[-1] += f": `{_code(fix.command, 400)}`" if fix.command else ""
    yield from _list(title, fixes, _FIXES)
    others = [f"`{_code(other.cause, 60)}`: {_sentence(other.because)}" for other in tempting(report, _RULED_OUT)]
    yield from _list("Ruled out", others, _RULED_OUT)


def _stacks(crash: Crash) -> Iterator[str]:
    threads = shown_threads(crash)
    if not threads:
        return
    yield "### Stack"
    yield ""
    for thread in threads:
        yield _sentence(thread_in_words(thread, crash)) + ":"
        yield ""
        yield from _fenced(_stack(thread, crash), "text")


def _stack(thread: Thread, crash: Crash) -> list[str]:
    rows = []
    for row in fold(without_dying(thread.frames), 1 if thread.launched and not thread.crashed else 3):
        if isinstance(row, Fold):
            rows.append(one_line(fold_in_words(row)))
        else:
            rows.append(f"{function_name(row):<{_FUNCTION_WIDTH}}  {one_line(frame_place(row, crash), 200)}")
    return rows or ["no frames could be read"]


def _output(crash: Crash) -> Iterator[str]:
    if crash.outcome.kind == "exception":
        lines = last_lines(crash.output.stderr or "", _TRACEBACK_LINES, 300)
    else:
        lines = [one_line(line, 300) for line in last_words(crash)[-_WORDS:]]
    if lines:
        yield "### Its last words"
        yield ""
        yield from _fenced(lines, "text")


def _versions(crash: Crash) -> Iterator[str]:
    python, machine = crash.program.python, crash.machine
    rows = [("Python", (python.version or "") if python else "")]
    packages = [package for package in (python.packages if python else ()) if _ASKED_FOR.match(package.name)]
    rows += [(package.name, package.version) for package in sorted(packages, key=lambda p: p.name)[:_MOST_PACKAGES]]
    if machine:
        rows += [
            ("system", machine.distribution or ""),
            ("kernel", machine.kernel or ""),
            ("CPU", machine.cpu_model or ""),
        ]
    rows = [(name, value) for name, value in rows if value]
    if not rows:
        return
    yield "### Versions"
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield from (f"| {_sentence(one_line(name, 80))} | {_sentence(one_line(value, 120))} |" for name, value in rows)
    yield ""


def _reproduce(report: Report, crash: Crash) -> Iterator[str]:
    command = redact_command(crash.program.command)
    if not (command or report.reproducer):
        return
    yield "### Reproduce"
    yield ""
    if report.reproducer:
        yield from _reproducer(report.reproducer)
    elif worth_reproducing(report):
        yield f"{HINT}."
        yield ""
    if command:
        words = (PurePosixPath(command[0]).name or command[0], *command[1:])
        yield from _fenced([one_line(f"faultlens run -- {shlex.join(words)}", 1000)], "sh")


def _reproducer(found: Reproducer) -> Iterator[str]:
    told = reproducer_in_words(found)
    yield _sentence(told[0].upper() + told[1:]) + "."
    yield ""
    lines = script_lines(found)
    if sum(map(len, lines)) > _SCRIPT:
        yield "The script is too long to stand here; `faultlens repro` writes it."
        yield ""
        return
    yield from _fenced(lines, "python")
    if beside := arrays(found):
        files = [f"`{_code(name, 120)}` ({amount})" for name, amount in beside[:_INPUTS]]
        more = [f"… {len(beside) - _INPUTS} more"] if len(beside) > _INPUTS else []
        yield "Beside it: " + ", ".join([*files, *more]) + "."
        yield ""


# ------------------------------------------------------------------------------------------ the dialect


def _list(title: str, entries: Sequence[str], most: int) -> Iterator[str]:
    if not entries:
        return
    yield f"### {title}"
    yield ""
    yield from (f"- {entry}" for entry in entries[:most])
    if len(entries) > most:
        yield f"- … {len(entries) - most} more"
    yield ""


def _fenced(lines: Iterable[str], language: str) -> Iterator[str]:
    """A fence longer than any run of backticks inside it."""
    kept = list(lines)
    longest = max((len(run) for line in kept for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield fence + language
    yield from kept
    yield fence
    yield ""


def _sentence(text: str) -> str:
    """Foreign or own words in which only `code` is markup."""
    return "".join(_run(run) for run in runs(text, _TEXT))


def _run(run: Run) -> str:
    if run.code:  # no backtick can be in it; a bar would end the cell of a table
        return f"`{run.text.replace('|', chr(92) + '|')}`"
    text = _MARKUP.sub(lambda match: "\\" + match[0], run.text)
    text = _LINK.sub(lambda match: (match[1] or match[3]) + "\\" + (match[2] or match[4]), text)
    text = _AT_START.sub(r"\1\\\2", text)
    return _CALLS_SOMEBODY.sub(r"\1<!-- -->", text)


def _code(text: str, limit: int) -> str:
    return one_line(text, limit).replace("`", "'") or "?"
