"""`check`: what a live pipeline hands out, and what in it goes wrong in silence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from faultlens.data.pipeline.buffers import ALIGNMENT, Reuse, reuse
from faultlens.data.pipeline.elements import HELD, Passed, passed
from faultlens.data.pipeline.python_parts import PythonPart, python_parts, steps
from faultlens.data.pipeline.result import Concern, PipelineCheck
from faultlens.data.pipeline.sharing import buffers, shared

MOSTLY = 0.9  # of the elements have as many labels as images: then the others are wrong
FEW = 5
COPY = "Hand out a copy: array.copy()."


def check(dataset: Any, elements: int = 100) -> PipelineCheck:
    """Take the first elements of a `tf.data.Dataset`, twice, and say what is wrong with them, with the evidence.

    A generator function, as `from_generator` takes it, can be given too."""
    import tensorflow as tf

    if not isinstance(dataset, tf.data.Dataset):
        if not callable(dataset):
            raise TypeError(f"check takes a tf.data.Dataset or a generator function, and not {type(dataset).__name__}.")
        found = reuse(dataset)
        return PipelineCheck(concerns=(_reused(found),) if found else (), elements=0, ended=False)
    first = passed(dataset, elements)
    concerns = [*_of_elements(first), *_last_batch(first, dataset)]
    if not first.error:
        concerns += _of_second_pass(first, passed(dataset, elements, look=False))
    parts = python_parts(dataset)
    concerns += _reused_buffers(dataset, first, parts)
    for part in parts:
        if part.parallel:
            concerns += _shared_objects(part)
    return PipelineCheck(concerns=tuple(concerns), elements=len(first.digests), ended=first.ended)


def _of_elements(seen: Passed) -> Iterator[Concern]:
    count = len(seen.digests)
    if seen.error:
        yield Concern(kind="raises", severity="error", element=count, reason=f"Element {count}: {seen.error}")
    elif not count:
        yield Concern(kind="empty", severity="warning", reason="There are no elements.")
    for each in seen.not_finite.values():
        what = " and ".join(
            f"{number} {name}" for number, name in ((each.nans, "NaN"), (each.infinities, "infinite")) if number
        )
        reason = f"Element {each.element}{_of(each.name)} has {what} of {each.size} values."
        yield Concern(kind="not-finite", severity="warning", element=each.element, reason=reason)
    yield from _counts(seen)


def _counts(seen: Passed) -> Iterator[Concern]:
    pairs = [(number, each[0], each[1]) for number, each in enumerate(seen.firsts) if each and None not in each[:2]]
    odd = [each for each in pairs if each[1] != each[2]]
    if odd and len(pairs) - len(odd) >= max(FEW, MOSTLY * len(pairs)):
        number, one, other = odd[0]
        reason = (
            f"Element {number} has {one} inputs and {other} labels; in {len(pairs) - len(odd)} of {len(pairs)} "
            "elements there are as many of one as of the other."
        )
        yield Concern(kind="counts", severity="warning", element=number, reason=reason)


def _last_batch(seen: Passed, dataset: Any) -> Iterator[Concern]:
    sizes = [each[0] for each in seen.firsts if each]
    if not seen.ended or len(sizes) < 2 or not any("Batch" in type(step).__name__ for step in steps(dataset)):
        return
    *others, last = sizes
    if len(set(others)) == 1 and others[0] is not None and last is not None and last < others[0]:
        reason = f"The last batch has {last} elements, the others {others[0]}."
        yield Concern(kind="last-batch", severity="note", reason=reason, element=len(sizes) - 1)


def _of_second_pass(first: Passed, second: Passed) -> Iterator[Concern]:
    if second.error:
        yield Concern(kind="raises", severity="error", reason=f"In the second pass: {second.error}")
    elif first.digests and not second.digests:
        reason = f"The first pass had {len(first.digests)} elements, the second none."
        advice = "from_generator wants a function that begins anew each time."
        yield Concern(kind="one-pass", severity="warning", reason=reason, advice=advice)
    elif first.digests != second.digests:
        order = "come in another order" if sorted(first.digests) == sorted(second.digests) else "are not the same"
        reason = f"The first {len(first.digests)} elements {order} in two passes."
        yield Concern(kind="not-deterministic", severity="note", reason=reason)


def _reused_buffers(dataset: Any, seen: Passed, parts: list[PythonPart]) -> Iterator[Concern]:
    """By what happens to elements that are held; else by what the functions hand out."""
    if seen.changed:
        yield _changed(*seen.changed)
        return
    for part in parts:
        # What was batched or mapped since is a copy, of whatever the buffer held at that time: look before that.
        before = passed(part.dataset, 2 * HELD, look=False) if part.dataset is not dataset else seen
        if before.changed:
            yield _changed(*before.changed)
        elif part.generator:
            if found := reuse(part.function, part.dataset.element_spec):
                yield _reused(found)
        elif part.in_place and not part.parallel:
            for name, array in buffers(part.function).items():
                address = array.__array_interface__["data"][0]
                reason = f"{_name(part)} writes to {name} and returns it, each time the same memory. {_luck(address)}"
                yield Concern(kind="reused-buffer", severity="warning", reason=reason, advice=COPY)


def _changed(element: int, name: str) -> Concern:
    reason = (
        f"Element {element}{_of(name)} changed while later ones were made: its memory is a buffer that is written "
        f"to again. TensorFlow uses such memory in place where its address is a multiple of {ALIGNMENT}."
    )
    return Concern(kind="reused-buffer", severity="error", element=element, reason=reason, advice=COPY)


def _reused(found: Reuse) -> Concern:
    one, other = found.elements
    reason = f"The generator yields elements {one} and {other}{_of(found.name)} in one buffer. {_luck(found.address)}"
    return Concern(
        kind="reused-buffer",
        severity="error" if found.in_place else "warning",
        element=one,
        reason=reason,
        advice=COPY,
    )


def _luck(address: int) -> str:
    if address % ALIGNMENT:
        return (
            f"It is at {address:#x} now, and is copied; at a multiple of {ALIGNMENT} TensorFlow uses it in place, "
            "and earlier elements change."
        )
    return (
        f"It is at {address:#x}, a multiple of {ALIGNMENT}: TensorFlow uses it in place, and earlier elements change."
    )


def _shared_objects(part: PythonPart) -> Iterator[Concern]:
    for each in shared(part.function):
        reason = f"{_name(part)} is called by several threads and uses {each.name}, {each.what}: {each.harm}."
        yield Concern(
            kind="shared-object", severity="warning", reason=reason, advice="Make one in each call, or lock it."
        )


def _name(part: PythonPart) -> str:
    return f"{getattr(part.function, '__qualname__', 'A function').rpartition('.')[2]}()"


def _of(name: str) -> str:
    return f", component {name}," if name else ""
