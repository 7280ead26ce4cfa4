"""Everything that was recorded of a crash, as text: the part of the report behind -v."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from faultlens.diagnosis.evidence.fenced import in_full
from faultlens.records.crash import Crash, Fault, Kernel
from faultlens.report import facts, timeline
from faultlens.report.kernels import attributes_of, facts_of, inputs_of
from faultlens.report.page import OWN, PATH_LIMIT, QUIET, Section, flow, pairs, unbroken, words
from faultlens.report.progress import last_marks
from faultlens.report.saves import saves
from faultlens.report.threads import whole_stack
from faultlens.report.words import fault_in_words
from faultlens.text.quantities import count
from faultlens.text.safe import last_lines

_REGISTER_WIDTH = 27
_OUTPUT_LINES = 40
_THREADS = 100
_KERNELS, _INPUTS, _ATTRIBUTES, _VALUES = 50, 40, 60, 8
_MARKS = 12
_INDENT = 2


def sections(crash: Crash, width: int) -> Iterator[Section]:
    if crash.fault:
        yield Section("signal", _signal(crash.fault, crash))
        yield Section("code", pairs(facts.code(crash.fault), width), spaced=False)
        yield Section("register", _registers(crash.fault, width))
    yield Section("block", pairs(in_full(crash), width))
    for fault in crash.also_faulted:
        yield Section("also", [words(f"thread {fault.thread}: {fault_in_words(fault, crash)}")])
    for index, kernel in enumerate(crash.kernels[:_KERNELS]):
        yield Section("ops" if index == 0 else "", _kernel(kernel, crash, width))
    if len(crash.kernels) > _KERNELS:
        yield Section("", [words(f"… and {count(len(crash.kernels) - _KERNELS, 'more op')} in flight", QUIET)])
    for index, thread in enumerate(crash.threads[:_THREADS]):
        yield Section("threads" if index == 0 else "", whole_stack(thread, crash))
    if len(crash.threads) > _THREADS:
        yield Section("", [words(f"… and {count(len(crash.threads) - _THREADS, 'more thread')}", QUIET)])
    for child in (child for child in crash.children if child.was_running):
        for index, thread in enumerate(child.threads[:_THREADS]):
            name = words(f"child process {child.pid}: ", QUIET) if index == 0 else words("")
            title, *rows = whole_stack(thread, child)
            yield Section("", [Text.assemble(name, title), *rows])
    yield Section("maps", [words(line, QUIET if row else "") for row, line in enumerate(facts.mappings(crash))])
    yield Section("files", [words(f"{file.path}: {facts.file_state(file)}") for file in crash.files])
    yield Section("library", _libraries(crash))
    yield Section("held", pairs(facts.held(crash), width))
    yield Section("usage", pairs(facts.usage(crash), width))
    yield Section("time", timeline.rows(crash, width))
    yield Section("marks", pairs(last_marks(crash.progress, _MARKS), width))
    yield Section("on disk", pairs(saves(crash), width))
    yield Section("limits", pairs(facts.limits(crash), width))
    yield Section("cgroup", pairs(facts.cgroup(crash.cgroup_before, crash.cgroup), width))
    yield Section("machine", pairs(facts.machine(crash), width))
    yield Section("program", pairs(facts.program(crash), width))
    yield Section("packages", _packages(crash))
    yield Section("env", pairs(facts.environment(crash), width))
    yield Section("kernel", [words(line) for line in crash.kernel_log])
    yield Section("stdout", _tail(crash.output.stdout))
    yield Section("stderr", _tail(crash.output.stderr))


def _signal(fault: Fault, crash: Crash) -> list[Text]:
    rows = [words(facts.signal(fault)), words(f"seen: {fault.seen}, captured by: {crash.method}", QUIET)]
    where = facts.faulting_mapping(fault, crash)
    return [*rows, words(f"address lies in {where}")] if where else rows


def _registers(fault: Fault, width: int) -> list[Text]:
    cells = [f"{name:<7}{value:#018x}" for name, value in fault.registers.items()]
    per_row = max(width // _REGISTER_WIDTH, 1)
    rows = (cells[start : start + per_row] for start in range(0, len(cells), per_row))
    return [unbroken(words("  ".join(row))) for row in rows]


def _kernel(kernel: Kernel, crash: Crash, width: int) -> list[Text]:
    mark = words("  at fault" if kernel.at_fault else "  in flight", QUIET)
    known = facts_of(kernel, crash)
    for given in inputs_of(kernel, _INPUTS, _VALUES):
        known.append((given.name, given.words + (f" = {given.values}" if given.values else "")))
    if len(kernel.inputs) > _INPUTS:
        known.append(("", f"… and {count(len(kernel.inputs) - _INPUTS, 'more input')}"))
    attributes = [f"{name} = {value}" for name, value in attributes_of(kernel, _ATTRIBUTES)]
    if len(kernel.attributes) > _ATTRIBUTES:
        attributes.append(f"… and {count(len(kernel.attributes) - _ATTRIBUTES, 'more attribute')}")
    rows = [*pairs(known, width), *flow(attributes, width - _INDENT)]
    return [Text.assemble(words(kernel.op, OWN, 120), mark), *(unbroken(Text(" " * _INDENT), row) for row in rows)]


def _libraries(crash: Crash) -> list[Text]:
    return [
        unbroken(words(library.path, limit=PATH_LIMIT), words(f"  {library.build_id or ''}", QUIET))
        for library in crash.libraries
    ]


def _packages(crash: Crash) -> list[Text]:
    names = facts.packages(crash)
    return [words(", ".join(names), limit=20_000)] if names else []


def _tail(text: str | None) -> list[Text]:
    return [words(line) for line in last_lines(text or "", _OUTPUT_LINES)]
