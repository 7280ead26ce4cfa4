"""What was going on inside TensorFlow, and how to see it again."""

from __future__ import annotations

from typing import Any, NamedTuple

from faultlens.records.crash import Crash, Kernel
from faultlens.records.report_file import Report
from faultlens.report import facts
from faultlens.report.kernels import Input, attributes_of, facts_of, inputs_of
from faultlens.report.reproducer import arrays, reproducer_in_words, script_lines
from faultlens.report.some import Some, some
from faultlens.text.safe import one_line

_INPUTS, _ATTRIBUTES = 40, 60
_VALUES, _FIRST_VALUES = 64, 4  # of an input: in the fold, and beside its type
_SCRIPT_LINES, _FILES = 400, 200


class Op(NamedTuple):
    """An op in flight."""

    name: str
    aside: str
    at_fault: bool
    facts: facts.Pairs
    inputs: Some[tuple[Input, str]]  # with more of its values, where there are more
    attributes: Some[tuple[str, str]]


def op_in_flight(kernel: Kernel, crash: Crash) -> Op:
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


def reproducer_section(report: Report) -> dict[str, Any] | None:
    found = report.reproducer
    if found is None:
        return None
    return {
        "words": reproducer_in_words(found),
        "script": some(script_lines(found), _SCRIPT_LINES),
        "files": some(arrays(found), _FILES),
    }
