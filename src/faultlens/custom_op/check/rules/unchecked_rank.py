from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.checked import one_element, rank_known, ranks
from faultlens.custom_op.check.interpret.buffer_symbols import Element, Input, is_tensor
from faultlens.custom_op.check.interpret.composition import origins
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.linear import constant
from faultlens.custom_op.check.interpret.symbols import ZERO, Attr, Loop, Member, Param, Varying
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.wording import context_of, object_text, tensor_named
from faultlens.records.op_finding import OpFinding

_ASKS = {0: "IsScalar", 1: "IsVector", 2: "IsMatrix"}


class UncheckedRank(Rule):
    """`vec`, `matrix`, `tensor<T, N>` and `scalar` end the whole process (CHECK, SIGABRT) where the tensor has another
    rank, and so does `dim_size(k)` of a dimension that is not there. A check in the shape function does not help:
    measured with TensorFlow 2.21, an op whose shape function demands rank 2 still aborts when it is called eagerly with
    a vector, and in a graph whose shapes are not known; only a graph with known shapes gives an error. So each of them
    needs a check in the kernel:

    ```cpp
    OP_REQUIRES(ctx, TensorShapeUtils::IsMatrix(x.shape()),
                errors::InvalidArgument("x must be a matrix, not ", x.shape().DebugString()));
    ```
    """

    code = "OP101"
    slug = "unchecked-rank"
    severity = "error"
    headline = "an input is used with a rank that nothing has checked"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in good(summary.of("view", "dim")):
            tensor = event.on
            if not is_tensor(tensor):
                continue
            if event.kind == "view":
                yield from self._view(event, summary)
            else:
                yield from self._dim(event, summary)

    def _view(self, event: Event, summary: FunctionSummary) -> Iterator[OpFinding]:
        rank = constant(event.by[0])
        if rank is None or rank < 0:
            return
        name = tensor_named(event.on, summary.op)
        if one_element(event.point, event.on) if rank == 0 else rank_known(event.point, event.on):
            left = ranks(event.point, event.on)
            if rank and isinstance(event.on, Input) and left is not None and left and left != {rank}:
                title = f"`{event.name}` needs rank {rank}, and the checks let others of {name} pass"
                yield self._rank(event, summary, title, rank)
            return
        says = f"`{event.name}` needs rank {rank}" if rank else "`scalar` needs exactly one element"
        yield self._rank(event, summary, f"{says}, and nothing has checked {name}", rank)

    def _dim(self, event: Event, summary: FunctionSummary) -> Iterator[OpFinding]:
        at = event.by[0] if event.by else ZERO
        known = constant(at)
        left = ranks(event.point, event.on) if isinstance(event.on, Input) else None
        if left and known is not None and known >= 0 and min(left) <= known and rank_known(event.point, event.on):
            name = tensor_named(event.on, summary.op)
            title = f"dimension {known} of {name} is asked for, and the checks let rank {min(left)} pass"
            yield self._rank(event, summary, title, known + 1, at_least=True)
            return
        if rank_known(event.point, event.on) or any(
            isinstance(part, (Loop, Varying, Attr, Element, Param, Member)) for part in origins(at)
        ):
            return
        name = tensor_named(event.on, summary.op)
        least = known + 1 if known is not None and known >= 0 else 1
        which = f"dimension {known}" if known is not None else "a dimension"
        yield self._rank(
            event, summary, f"{which} of {name} is asked for, and nothing has checked its rank", least, at_least=True
        )

    def _rank(self, event: Event, summary: FunctionSummary, title: str, rank: int, at_least: bool = False) -> OpFinding:
        x, context = object_text(event.node).removesuffix(".shape()").removesuffix("->shape()"), context_of(event.node)
        if at_least:
            check = f"{x}.dims() >= {rank}"
            told = f"{x} needs {rank} dimension{'s' if rank > 1 else ''}"
        else:
            asks = _ASKS.get(rank)
            check = f"TensorShapeUtils::{asks}({x}.shape())" if asks else f"{x}.dims() == {rank}"
            told = f"{x} must have rank {rank}"
        return self.found(
            event,
            title,
            "check it first",
            f'OP_REQUIRES({context}, {check},\n            errors::InvalidArgument("{told}"));',
            summary=summary,
        )
