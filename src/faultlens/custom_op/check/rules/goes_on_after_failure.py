from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.interpret.buffer_symbols import Buffer, Pointer
from faultlens.custom_op.check.interpret.composition import parts
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.symbols import Symbol
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule
from faultlens.custom_op.check.syntax.syntax import name_of
from faultlens.custom_op.check.wording import context_of
from faultlens.records.op_finding import OpFinding

_WORK = ("view", "index", "divide", "output", "copy", "dim")


class GoesOnAfterFailure(Rule):
    """Setting a status does not end anything: the function goes on with what it has just found to be wrong. This
    happens in two ways. `ctx->SetStatus(…)` or `ctx->CtxFailure(…)` without a `return` behind it; and OP_REQUIRES in
    a helper: the macro returns from the helper, and its caller goes on as if nothing had happened.

    ```cpp
    CheckShapes(ctx, x, y);                 // uses OP_REQUIRES
    if (!ctx->status().ok()) return;        // what is missing
    ```

    Better: let the helper return a Status, and write `OP_REQUIRES_OK(ctx, CheckShapes(x, y));`."""

    code = "OP110"
    slug = "goes-on-after-failure"
    severity = "error"
    headline = "an error is set, and the function goes on"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        told = set()
        for event in summary.of(*_WORK):
            failed = event.point.failed
            if failed is None or failed.start in told or not _matters(event.on, event.kind):
                continue
            macro = name_of(failed.get("function"))
            if macro.startswith("OP_REQUIRES") and not _depends(event):
                continue
            told.add(failed.start)
            context = context_of(failed)
            call, goes_on = event.point.returned_from, ("and goes on to here", event.node)
            if macro.startswith("OP_REQUIRES") and call is not None:
                title = f"{macro} in {name_of(call.get('function'))} leaves only that function: this one goes on"
                code = f"if (!{context_of(call)}->status().ok()) return;"
                related = [("an error is set here", failed), goes_on]
                yield self.found(call, title, "look whether it failed", code, summary=summary, related=related)
            elif macro.startswith("OP_REQUIRES"):
                title = f"{macro} leaves only this function: its caller goes on"
                code = f"if (!{context}->status().ok()) return;"
                yield self.found(failed, title, "let the caller look", code, summary=summary, related=[goes_on])
            else:
                title = f"{macro} sets an error, and the function goes on"
                yield self.found(failed, title, "leave", "return;", summary=summary, related=[goes_on])


def _depends(event: Event) -> bool:
    """What was found wrong is what the caller goes on to use: the same tensor, or one that was not allocated."""
    return event.kind != "output" and event.on in parts(event.point.failed_condition)


def _matters(on: Symbol, kind: str) -> bool:
    return kind in ("divide",) or isinstance(on, (Buffer, Pointer))
