from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.interpret.symbols import Symbol
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule
from faultlens.custom_op.check.syntax.syntax import name_of
from faultlens.records.op_finding import OpFinding

_FIXES = {
    "new": ("let something own it", "auto values = std::make_unique<float[]>(n);  // or std::vector, or allocate_temp"),
    "malloc": ("let something own it", "std::vector<float> values(n);  // or ctx->allocate_temp"),
    "reference": ("let something give it back", "core::ScopedUnref unref(resource);"),
    "file": ("close it on every path", "std::unique_ptr<FILE, decltype(&fclose)> file(fopen(…), &fclose);"),
    "thread": ("wait for it on every path", "thread.join();"),
}


class MemoryLeak(Rule):
    """Memory from `new` or `malloc` that is not given back on every path is lost with every call: training runs out of
    memory after hours. The macros hide paths: OP_REQUIRES leaves the function, and so does every `return` behind it.
    A `std::thread` that is neither joined nor detached when it goes out of scope ends the process (std::terminate).
    A resource from `LookupResource` stays alive for ever without its `Unref`."""

    code = "OP113"
    slug = "memory-leak"
    severity = "error"
    headline = "memory, a reference or a thread is not given back on a path"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        told: set[Symbol] = set()
        for event in summary.of("exit"):
            for symbol, held in event.point.held.items():
                if held.state != "live" or symbol in told or _returned(summary):
                    continue
                told.add(symbol)
                title, code = _FIXES.get(held.what, _FIXES["malloc"])
                through = name_of(event.node.get("function")) if event.name == "requires" else ""
                path = f"where {through} leaves" if through else "on a path to the end"
                yield self.found(
                    held.node,
                    f"{_called(held.what)} is not given back {path}",
                    title,
                    code,
                    summary=summary,
                    related=[("the function is left here", event.node)] if event.name != "end" else (),
                )


def _called(what: str) -> str:
    names = {"reference": "the reference to the resource", "thread": "the thread", "file": "the file"}
    return names.get(what, f"memory from {what}")


def _returned(summary: FunctionSummary) -> bool:
    """A function that returns a pointer gives it to its caller."""
    return "*" in summary.function.returns
