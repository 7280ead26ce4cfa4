"""The facts below the verdict, section by section."""

from __future__ import annotations

from typing import Any

from faultlens.diagnosis.evidence import fenced
from faultlens.records.crash import Crash
from faultlens.report import facts
from faultlens.report.headline import headline
from faultlens.report.html.ops import op_in_flight
from faultlens.report.html.source import LINE
from faultlens.report.html.stacks import other_stacks, stack
from faultlens.report.saves import saves, saving_in_words
from faultlens.report.some import Some, some
from faultlens.report.threads import shown_threads
from faultlens.report.timeline_chart import chart
from faultlens.report.words import fault_in_words, memory_in_words
from faultlens.text.safe import last_lines

_OUTPUT_LINES = 80
_ROWS = 200  # of any table
_EXCEPTIONS = 20
_KERNELS = 20


def facts_of_crash(crash: Crash) -> dict[str, Any]:
    fault = crash.fault
    registers = fault.registers if fault else {}
    return {
        "fault": fault_in_words(fault, crash) if fault else "",
        "fault_facts": _fault_facts(crash),
        "also_faulted": some([(f.thread, fault_in_words(f, crash)) for f in crash.also_faulted], 10),
        "registers": some([(name, f"{value:#018x}") for name, value in registers.items()], 64),
        "saving": saving_in_words(crash),
        "saves": saves(crash),
        "ops": [op_in_flight(kernel, crash) for kernel in crash.kernels[:_KERNELS]],
        "more_ops": len(crash.kernels) - _KERNELS,
        "stacks": [stack(thread, crash) for thread in shown_threads(crash)],
        "other_stacks": other_stacks(crash),
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
        lines = last_lines(text or "", _OUTPUT_LINES + 1, LINE)
        if lines:
            earlier = (text or "").count("\n") + 1 - len(lines) if len(lines) > _OUTPUT_LINES else 0
            tails.append((name, Some(tuple(lines[-_OUTPUT_LINES:]), earlier)))
    return tails
