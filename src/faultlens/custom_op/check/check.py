"""Which mistakes the sources show: every rule asked about every source, without those that the source allows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from faultlens.custom_op.check.interpret.unit import Unit, load
from faultlens.custom_op.check.rules import catalogue
from faultlens.custom_op.check.syntax.registered import Op
from faultlens.custom_op.check.syntax.syntax import Source
from faultlens.records.diagnosis import Evidence
from faultlens.records.op_finding import OpFinding

_ALLOWED = re.compile(r"//\s*faultlens:\s*allow\s+(OP\d{3}|[a-z-]+)\b[ \t]*(.*)")


def check(unit: Unit, failed: list[str] | None = None) -> list[OpFinding]:
    """Sorted by place; one finding for each rule and line. A rule that fails is told in `failed`, if that is given."""
    found: dict[tuple[str, str, int], OpFinding] = {}
    for rule in catalogue():
        try:
            for finding in rule.examine(unit):
                if finding.span is not None:
                    found.setdefault((finding.code, finding.span.path, finding.span.line), finding)
        except Exception as error:
            if failed is None:
                raise
            failed.append(f"{unit.sources[0].path} by {rule.code}: it failed with {type(error).__name__}")
    sources = {source.path: source for source in unit.sources}
    kept = [_allowed(finding, sources) for finding in found.values() if finding.span and finding.span.path in sources]
    return sorted(
        kept, key=lambda finding: (finding.span.path, finding.span.line, finding.code) if finding.span else ()
    )


def units(paths: Sequence[Path]) -> Iterator[Unit]:
    """Each source with its own headers; registrations of ops are known to all."""
    made = [load([path]) for path in paths]
    ops: dict[str, Op] = {}
    for unit in made:
        ops.update(unit.ops)
    for unit in made:
        unit.elsewhere = ops
        yield unit


def _allowed(finding: OpFinding, sources: dict[str, Source]) -> OpFinding:
    """`// faultlens: allow OP104 because …` on the line or the one above makes it a note."""
    assert finding.span is not None
    source = sources[finding.span.path]
    for number in (finding.span.line, finding.span.line - 1):
        for name, reason in _ALLOWED.findall(source.line(number)):
            if name in (finding.code, finding.rule):
                evidence = Evidence(fact=f"allowed: {reason.strip() or 'no reason given'}", source=f"line {number}")
                return OpFinding(
                    code=finding.code, rule=finding.rule, severity="note", title=finding.title, span=finding.span,
                    op=finding.op, related=finding.related, evidence=(*finding.evidence, evidence), fixes=finding.fixes,
                )  # fmt: skip
    return finding


def ops_of(units: Iterable[Unit]) -> tuple[str, ...]:
    """Names of all ops that the sources register, or have kernels for."""
    names: dict[str, None] = {}
    for unit in units:
        names.update(dict.fromkeys(op.name for op in unit.ops.values()))
        names.update(dict.fromkeys(kernel.op for kernel in unit.kernels))
    return tuple(names)
