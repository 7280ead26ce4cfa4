from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule
from faultlens.custom_op.check.syntax.syntax import name_of
from faultlens.records.op_finding import OpFinding


class CallbackMissed(Rule):
    """An AsyncOpKernel is done when it calls its callback: exactly once on every path. Measured with TensorFlow 2.21:
    without the call, eager code and graphs wait without end; with two calls a graph ends with a segmentation fault or
    "Missing 0-th output"; OP_REQUIRES in `ComputeAsync` aborts the process as soon as its condition does not hold. The
    macro for this is `OP_REQUIRES_ASYNC(ctx, condition, status, done)`."""

    code = "OP123"
    slug = "callback-missed"
    severity = "error"
    headline = "an asynchronous kernel does not call done exactly once"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        if not summary.callback:
            return
        told = set()
        for event in summary.of("exit"):
            calls = event.point.callback_calls
            macro = name_of(event.node.get("function")) if event.name == "requires" else ""
            if (calls == 1 or event.point.callback_escaped) and calls < 2:
                continue
            if event.node.start in told:
                continue
            told.add(event.node.start)
            if calls > 1:
                title, code = (
                    f"`{summary.callback}` is called twice on a path to here",
                    f"{summary.callback}();\nreturn;",
                )
                fix = "call it once"
            elif macro:
                title = f"{macro} leaves without calling `{summary.callback}`"
                fix, code = "use the macro for asynchronous kernels", f"{macro}_ASYNC(…, {summary.callback});"
            else:
                title = f"a path ends without a call of `{summary.callback}`: the step waits without end"
                fix, code = "call it before", f"{summary.callback}();"
            where = event.node if event.name != "end" else summary.function.node.get("declarator") or event.node
            yield self.found(where, title, fix, code, summary=summary)
