"""What a rule is: a code, an explanation, and a look at what the functions of a source do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from faultlens import rules
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.unit import FunctionSummary, Unit
from faultlens.custom_op.check.syntax.syntax import Node
from faultlens.records.diagnosis import Evidence, Fix
from faultlens.records.op_finding import OpFinding, Related
from faultlens.records.severity import Severity


class Rule(rules.Rule):
    """One mistake. The docstring of a subclass is its page: what happens, why, and how it is written right."""

    needed = (*rules.Rule.needed, "severity")

    severity: ClassVar[Severity]

    def examine(self, unit: Unit) -> Iterator[OpFinding]:
        """All functions of the unit; rules about registrations look at those instead."""
        for summary in unit.summaries:
            yield from self.look(summary)

    def look(self, summary: FunctionSummary) -> Iterable[OpFinding]:  # noqa: ARG002
        """What one function does wrong."""
        return ()

    # -------------------------------------------------------------------------------- for subclasses

    def found(
        self,
        where: Event | Node,
        title: str,
        fix: str,
        code: str = "",
        *,
        summary: FunctionSummary | None = None,
        op: str = "",
        severity: Severity | None = None,
        related: Iterable[tuple[str, Node]] = (),
        evidence: Iterable[tuple[str, str]] = (),
    ) -> OpFinding:
        node = where.node if isinstance(where, Event) else where
        return OpFinding(
            code=self.code,
            rule=self.slug,
            severity=severity or self.severity,
            title=title,
            span=node.source.span(node),
            op=op or (summary.named if summary else ""),
            related=tuple(Related(says=says, span=other.source.span(other)) for says, other in related),
            evidence=tuple(Evidence(fact=fact, source=source) for fact, source in evidence),
            fixes=(Fix(title=fix, detail=code, grade="needs thought"),),
        )


def good(events: Iterable[Event]) -> Iterator[Event]:
    """Those on paths where no status was set before: the others are a mistake of their own."""
    return (event for event in events if event.point.failed is None)
