from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule
from faultlens.records.op_finding import OpFinding


class FreedMemory(Rule):
    """What was given back belongs to somebody else. Freed twice, or written to afterwards, the heap's lists break: the
    process aborts later, in whatever allocates next ("double free or corruption"). Reading gives another's data.

    A reference or iterator into a `std::vector` is the same mistake: `push_back` may move all elements elsewhere.

    Memory that something owns (std::vector, std::unique_ptr, a Tensor from `allocate_temp`) is freed once, at the
    end of its scope."""

    code = "OP114"
    slug = "freed-memory"
    severity = "error"
    headline = "memory is freed twice, or used after it was freed"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in summary.of("touch"):
            if event.name:
                yield self.found(
                    event,
                    f"`{event.name}` points into a container that has moved its elements since",
                    "take it again after the container has grown",
                    summary=summary,
                )
        for event in summary.of("free", "touch"):
            held = event.point.held.get(event.on)
            if held is None or held.state not in ("freed", "owned") or held.at is None or held.at is event.node:
                continue
            twice = event.kind == "free"
            if held.state == "owned":
                if twice:
                    yield self.found(
                        event,
                        "a smart pointer owns this memory and frees it as well: it is freed twice",
                        "let one owner free it",
                        summary=summary,
                        related=[("taken by its owner here", held.at)],
                    )
                continue
            yield self.found(
                event,
                "this memory was freed before: it is freed twice" if twice else "this memory was freed before",
                "let one owner free it, once" if twice else "free it after its last use",
                "std::vector<float> values(n);  // instead of new or malloc",
                summary=summary,
                related=[("freed here", held.at), ("allocated here", held.node)],
            )
