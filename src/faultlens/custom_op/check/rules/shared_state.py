from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.check.interpret.buffer_symbols import Element, Memory
from faultlens.custom_op.check.interpret.call_symbols import Result
from faultlens.custom_op.check.interpret.composition import origins
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.symbols import Loop, Member, Name, Param, Symbol, Unknown, Variable, Varying
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule
from faultlens.records.op_finding import OpFinding

_SAFE = re.compile(
    r"\batomic\b|\bAtomic|\bmutex\b|\bMutex\b|\bonce_flag\b|\bthread_local\b|\bCounter\b|PersistentTensor|\bNotification\b|\bcondition_variable\b|\bBlockingCounter\b"
)


class SharedState(Rule):
    """One kernel object serves all calls of its node, and TensorFlow runs them in several threads at once: parallel
    branches, `map(num_parallel_calls=…)`, two callers of one function. A member, static or global variable that
    `Compute` changes without a lock is a data race: lost updates, torn values, and with containers a damaged heap. The
    same holds for a variable of `Compute` that the lambda of `Shard` or `ParallelFor` changes.

    ```cpp
    mutex mu_;
    int64_t calls_ TF_GUARDED_BY(mu_) = 0;
    …
    mutex_lock lock(mu_);
    ++calls_;
    ```
    """

    code = "OP116"
    slug = "shared-state"
    severity = "error"
    headline = "state that several threads share is changed without a lock"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        if not summary.computes or (summary.owner is None):
            return
        told = set()
        for event in summary.of("assign"):
            if event.point.locks or event.name in told or _is_safe(event, summary) or _only_once(event):
                continue
            told.add(event.name)
            yield self._finding(event, summary)
        for event in summary.of("index"):
            adds = event.write and event.detail != "=" and event.point.parallel is not None and not event.point.locks
            if adds and _is_shared_element(event):
                yield self.found(
                    event,
                    "several threads add to the same element at once",
                    "let each thread add to an array of its own, and sum those up at the end",
                    summary=summary,
                )

    def _finding(self, event: Event, summary: FunctionSummary) -> OpFinding:
        kind = {"member": "a member of the kernel", "static": "static", "global": "global"}.get(event.detail, "")
        if event.detail == "captured":
            title = f"`{event.name}` is changed by several threads at once, without a lock"
            fix, code = "give each thread its own, or use std::atomic", "std::atomic<int64_t> total{0};"
        else:
            title = f"`{event.name}` is {kind}: calls in other threads change it at the same time"
            fix = "guard it, or keep it in a local variable"
            code = "mutex_lock lock(mu_);  // member: mutex mu_;"
        return self.found(event, title, fix, code, summary=summary)


def _is_safe(event: Event, summary: FunctionSummary) -> bool:
    if event.detail == "member":
        member = summary.owner.members.get(event.name) if summary.owner else None
        return member is None or bool(_SAFE.search(member.type))
    if event.detail == "global":
        return bool(_SAFE.search(summary.unit.globals.get(event.name, "")))
    head = event.point.function.node.text
    declared = re.search(rf"^[^\n;]*\b{re.escape(event.name)}\b", head, re.MULTILINE)
    everywhere = re.findall(rf"[^\n;{{]*\b{re.escape(event.name)}\s*(?:[;({{=\[]|$)", summary.function.node.text)
    return any(_SAFE.search(text) for text in (declared.group() if declared else "", *everywhere[:4]))


def _only_once(event: Event) -> bool:
    """std::call_once(flag, [&] { … })."""
    return any(each.kind == "call_expression" and "call_once" in each.text[:40] for each in event.node.above())


def _is_shared_element(event: Event) -> bool:
    """An index from data, or the same for all: not one that depends on the thread's own range."""
    own = event.point.parallel
    if own is None or (isinstance(event.on, Memory) and own.start <= event.on.place < own.end):
        return False
    for index in event.by:
        counters = [each for part in _outside_of_data(index) if isinstance(part, Loop) for each in origins(part)]
        if any(isinstance(each, Loop) and own.start <= each.place < own.end for each in counters):
            return False  # a loop of the thread's own, maybe in a function that it calls with its range
        if any(isinstance(part, (Varying, Param, Result, Unknown, Variable, Member, Name)) for part in origins(index)):
            return False
    return bool(event.by)


def _outside_of_data(symbol: Symbol) -> Iterator[Symbol]:
    """Parts of an index, but not those that only say which element of the data it is from."""
    if isinstance(symbol, Element):
        return
    yield symbol
    if not isinstance(symbol, Loop):
        for part in symbol.operands():
            yield from _outside_of_data(part)
