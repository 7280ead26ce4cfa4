"""A kind of mistake that is seen while an op runs: its code, and what is to be done about it."""

from __future__ import annotations

from typing import NamedTuple

from faultlens.records.severity import Severity


class Observation(NamedTuple):
    code: str  # stays: "OP301"
    severity: Severity
    fix: str
    meaning: str  # for --explain
    title: str = "{words}"  # of a finding, with {op} and {words}
