from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.checked import facts, not_empty, size_told, speaks_of
from faultlens.custom_op.check.interpret.buffer_symbols import (
    Dim,
    ExtremeIndex,
    Input,
    NumElements,
    Output,
    Shape,
    ShapeOf,
    Temporary,
    Vector,
    is_tensor,
)
from faultlens.custom_op.check.interpret.composition import parts
from faultlens.custom_op.check.interpret.events import Event, ProgramPoint
from faultlens.custom_op.check.interpret.linear import constant, linear, minus
from faultlens.custom_op.check.interpret.symbols import ONE, Product, Symbol
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.syntax.types import is_integer
from faultlens.custom_op.check.wording import context_of, tensor_named
from faultlens.records.op_finding import OpFinding

_SIZES = (NumElements, Dim)


class MaybeEmpty(Rule):
    """Tensors may have no elements: `tf.zeros([0])`, the last batch after a filter. Then element 0 and the last element
    lie outside of the buffer: what is read there is somebody else's (no crash in most runs, measured), what is written
    damages it. An integer divided by the number of elements is a division by zero: SIGFPE, the process is gone.
    Floating point numbers divided by it give NaN, which is no crash.

    ```cpp
    OP_REQUIRES(ctx, x.NumElements() > 0, errors::InvalidArgument("x must not be empty"));
    ```
    """

    code = "OP104"
    slug = "maybe-empty"
    severity = "error"
    headline = "the first or last element, or a division by the size, of a tensor that may be empty"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in good(summary.of("index")):
            if is_tensor(event.on) and not isinstance(event.on, Temporary):
                yield from self._element(event, summary)
            elif isinstance(event.on, Vector):
                yield from self._container(event, summary)
        for event in good(summary.of("divide")):
            yield from self._division(event, summary)

    def _element(self, event: Event, summary: FunctionSummary) -> Iterator[OpFinding]:
        if event.name not in ("flat", "ptr", "vec", "unaligned_flat", "matrix", "tensor"):
            return
        for index in event.by:
            known = constant(index)
            last, most = _is_last(index, event.on), _extreme(index, event.on)
            if (known is None or known < 0) and not last and not most:
                continue
            if most and speaks_of(event.point, index):
                return
            if not_empty(event.point, event.on) or (known and size_told(event.point, event.on)):
                return
            if isinstance(event.on, Output) and not _may_be_empty(event.point, event.on):
                return
            which = f"what {most} finds" if most else "the last element" if last else f"element {known}"
            name = tensor_named(event.on, summary.op)
            may = "which may be empty" if not known else "which may have fewer"
            yield self._finding(event, summary, f"{which} of {name} is used, {may}", event.on, known or 0)
            return

    def _container(self, event: Event, summary: FunctionSummary) -> Iterator[OpFinding]:
        size = event.point.shapes.get(event.on)
        if size is None or not event.by:
            return
        tensors = _sized_by(size)
        index = event.by[0]
        at_end = linear(index) == {**linear(size), ONE: -1} if constant(size) is None else False
        if (
            (constant(index) == 0 or at_end)
            and tensors
            and set(linear(size)) <= {NumElements(each) for each in tensors}
        ):
            tensor = next(iter(tensors))
            if not not_empty(event.point, tensor):
                name = tensor_named(tensor, summary.op)
                yield self._finding(event, summary, f"it has as many elements as {name}, which may be empty", tensor, 0)

    def _division(self, event: Event, summary: FunctionSummary) -> Iterator[OpFinding]:
        divisor = event.by[0]
        if event.name == "/" and not is_integer(event.detail):
            return
        atoms = linear(divisor)
        sizes = [atom for atom in atoms if isinstance(atom, (*_SIZES, Product))]
        if not sizes or len(sizes) != len(atoms.keys() - {ONE}) or atoms.get(ONE, 0) > 0:
            return
        tensors = {tensor for atom in sizes for tensor in _sized_by(atom)}
        for tensor in sorted(tensors, key=repr):
            if not not_empty(event.point, tensor) and not any(
                divisor in parts(fact.condition) for fact in facts(event.point)
            ):
                name = tensor_named(tensor, summary.op)
                sign = "divided by" if event.name == "/" else "taken modulo"
                yield self._finding(
                    event, summary, f"an integer is {sign} the size of {name}, which may be 0", tensor, 0
                )
                return

    def _finding(self, event: Event, summary: FunctionSummary, title: str, tensor: Symbol, least: int) -> OpFinding:
        context = context_of(event.node)
        x = f"{context}->input({tensor.index})" if isinstance(tensor, Input) and isinstance(tensor.index, int) else "x"
        return self.found(
            event,
            title,
            "ask first whether there are any",
            f"OP_REQUIRES({context}, {x}.NumElements() > {least},\n"
            '            errors::InvalidArgument("the input must not be empty"));',
            summary=summary,
        )


def _sized_by(size: Symbol) -> set[Symbol]:
    return {part.subject for part in parts(size) if isinstance(part, _SIZES) and is_tensor(part.subject)}


def _is_last(index: Symbol, tensor: Symbol) -> bool:
    """x(n - 1)."""
    atoms = linear(index)
    return len(atoms) == 2 and any(
        isinstance(atom, _SIZES) and atom.subject == tensor and atoms == {atom: 1, ONE: -1} for atom in atoms
    )


def _extreme(index: Symbol, tensor: Symbol) -> str:
    """max_element of *std::max_element(begin, end), where the two are as far apart as the tensor is long."""
    if isinstance(index, ExtremeIndex) and minus(index.end, index.begin) == {NumElements(tensor): 1}:
        return index.function
    return ""


def _may_be_empty(point: ProgramPoint, output: Symbol) -> bool:
    """An output that was allocated with the shape of an input, or with its size."""
    match point.shapes.get(output):
        case Shape():
            return True
        case ShapeOf(dims):
            return any(constant(dim) is None for dim in dims)
    return False
