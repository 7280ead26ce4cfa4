from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.interpret.symbols import Member, Persistent, Symbol
from faultlens.custom_op.check.interpret.unit import FunctionSummary, Unit
from faultlens.custom_op.check.rule import Rule
from faultlens.custom_op.check.syntax.syntax import Node
from faultlens.records.op_finding import OpFinding


class Deadlock(Rule):
    """A lock that its own thread holds already is waited for without end; so is one that an earlier call never gave
    back, because OP_REQUIRES or a `return` left between `lock()` and `unlock()`; and two locks that two functions take
    in different orders. `mutex_lock` in the smallest block that needs it avoids all three."""

    code = "OP121"
    slug = "deadlock"
    severity = "error"
    headline = "a lock is taken twice, kept, or taken in two orders"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in summary.of("lock"):
            before = next((node for lock, node in event.point.locks if lock == event.on), None)
            if (
                before is not None
                and "shared" not in event.name
                and isinstance(event.on, Persistent)
                and not _recursive(event.on, summary)
            ):
                yield self.found(
                    event, "this lock is held already by the same thread: it waits for itself",
                    "give it back before, or let a function that needs the lock not take it",
                    summary=summary, related=[("taken here", before)],
                )  # fmt: skip
        told: set[Symbol] = set()
        for event in summary.of("exit"):
            for lock in event.point.manual_locks:
                if lock not in told:
                    told.add(lock)
                    taken = next((node for held, node in event.point.locks if held == lock), event.node)
                    yield self.found(
                        taken, "the lock is not given back on a path: the next call waits for ever",
                        "let an object give it back", "mutex_lock lock(mu_);",
                        summary=summary, related=[("the function is left here", event.node)],
                    )  # fmt: skip

    def examine(self, unit: Unit) -> Iterator[OpFinding]:
        yield from super().examine(unit)
        orders: dict[tuple[Persistent, Persistent], tuple[Node, FunctionSummary]] = {}
        for summary in unit.summaries:
            for event in summary.of("lock"):
                for lock, _ in event.point.locks:
                    if lock != event.on and isinstance(lock, Persistent) and isinstance(event.on, Persistent):
                        orders.setdefault((lock, event.on), (event.node, summary))
        for (first, second), (node, summary) in orders.items():
            other = orders.get((second, first))
            if other is not None and node.start < other[0].start:
                yield self.found(
                    node, f"`{first.name}` and `{second.name}` are taken in another order elsewhere: two threads may "
                    "wait for each other", "take them in one order, or both at once", "std::scoped_lock lock(a_, b_);",
                    summary=summary, related=[("the other order", other[0])],
                )  # fmt: skip


def _recursive(lock: Persistent, summary: FunctionSummary) -> bool:
    member = summary.owner.members.get(lock.name) if summary.owner and isinstance(lock, Member) else None
    kind = member.type if member else summary.unit.globals.get(lock.name, "")
    return "recursive" in kind
