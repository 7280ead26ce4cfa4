from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.checked import facts
from faultlens.custom_op.check.extents import extent
from faultlens.custom_op.check.index_range import highest
from faultlens.custom_op.check.interpret.buffer_symbols import Element, Vector, is_input_element
from faultlens.custom_op.check.interpret.call_symbols import Result
from faultlens.custom_op.check.interpret.composition import loops_in, parts
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.linear import constant, is_constant, linear, minus
from faultlens.custom_op.check.interpret.symbols import ONE, Attr, String
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.limits import unlimited
from faultlens.custom_op.check.rule import Rule
from faultlens.custom_op.check.wording import context_of
from faultlens.records.op_finding import OpFinding


class ExceptionLeaves(Rule):
    """TensorFlow is built to live without exceptions: one that leaves `Compute` finds nobody who catches it, and the
    process ends (std::terminate, SIGABRT) where it should have been an error in Python. `throw` itself, `.at()` with an
    index that may be wrong, `std::stoi` and its kin with text from outside.

    ```cpp
    int32 value;
    OP_REQUIRES(ctx, absl::SimpleAtoi(text, &value), errors::InvalidArgument("not a number: ", text));
    ```
    """

    code = "OP117"
    slug = "exception-leaves"
    severity = "error"
    headline = "an exception can leave Compute"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        if not summary.computes:
            return
        for event in summary.of("throw"):
            if event.point.in_try:
                continue
            context = context_of(event.node)
            if event.name == "throw":
                yield self.found(
                    event, "this exception leaves Compute, and nobody catches it: the process ends",
                    "return an error instead",
                    f'OP_REQUIRES({context}, ok, errors::InvalidArgument("…"));', summary=summary,
                )  # fmt: skip
            elif event.name == "substr":
                if event.by and _may_be_npos(event):
                    yield self.found(
                        event, "`substr` throws where the text ends before that, and nobody catches it",
                        "check the position first",
                        f'OP_REQUIRES({context}, at <= text.size(), errors::InvalidArgument("…"));', summary=summary,
                    )  # fmt: skip
            elif event.name == "regex":
                if any(isinstance(part, (Element, Attr)) for part in parts(event.by[0])):
                    yield self.found(
                        event, "std::regex throws where the pattern is wrong, and nobody catches it",
                        "use RE2, which says whether it is", "RE2 pattern(text); … pattern.ok()", summary=summary,
                    )  # fmt: skip
            elif event.name == "at":
                if _may_throw(event):
                    yield self.found(
                        event, "`at` throws where there is no such element, and nobody catches it: the process ends",
                        "check it, then use operator[]",
                        f'OP_REQUIRES({context}, FastBoundsCheck(i, values.size()), errors::OutOfRange("…"));',
                        summary=summary,
                    )  # fmt: skip
            else:
                yield self.found(
                    event, f"`{event.name}` throws where the text is not a number, and nobody catches it",
                    "use a function that says whether it is one",
                    f'OP_REQUIRES({context}, absl::SimpleAtoi(text, &value), errors::InvalidArgument("…"));',
                    summary=summary,
                )  # fmt: skip


def _may_be_npos(event: Event) -> bool:
    """A position that find() gave, or data, which nothing has checked."""
    position = event.by[0]
    sum_ = linear(position)
    searched = [atom for atom in sum_ if isinstance(atom, Result) and atom.function.startswith(("find", "rfind"))]
    if sum_.get(ONE, 0) == 1:  # npos + 1 is 0: text.substr(text.rfind('/') + 1) is all of it
        searched = []
    data = unlimited(event.point, position)
    asked = any(part in parts(fact.condition) for fact in facts(event.point) for part in (position, *searched))
    return not asked and (bool(searched) or data is not None)


def _may_throw(event: Event) -> bool:
    """Silent where the index was checked, or runs over the container itself."""
    index = event.by[0] if event.by else None
    if index is None or isinstance(index, String):
        return False
    for fact in facts(event.point):
        if index in parts(fact.condition) or event.on in parts(fact.condition):
            return False
        if any(loop in parts(fact.condition) for loop in loops_in(index)):
            return False
    size = extent(event.point, event.on)
    if isinstance(event.on, Vector) and size is not None:
        high = highest(index)
        if high is None:
            return any(isinstance(part, Element) for part in parts(index))
        over = minus(high, size)
        if is_constant(over):
            return over.get(ONE, 0) >= 0
        return constant(size) is not None or any(isinstance(part, Element) for part in parts(index))
    return any(is_input_element(part) for part in parts(index))
