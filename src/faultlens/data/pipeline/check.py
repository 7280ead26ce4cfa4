"""`check`: what a live pipeline hands out, and what in it goes wrong in silence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from faultlens.data.pipeline.elements import HELD, Changed, passed
from faultlens.data.pipeline.generators import ALIGNMENT, Converted, Reuse, converted, reuse
from faultlens.data.pipeline.python_parts import PythonPart, python_parts
from faultlens.data.pipeline.result import Concern, PipelineCheck
from faultlens.data.pipeline.sharing import buffers, shared
from faultlens.data.pipeline.values import component, of_elements, of_passes, of_zipped

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
    concerns = [*of_elements(first, dataset), *of_zipped(dataset)]
    if not first.error:
        concerns += of_passes(first, passed(dataset, elements, look=False))
    if first.changed:
        concerns.append(_changed(first.changed))
    for part in python_parts(dataset):
        concerns += _of_part(part, look=not first.changed)
    return PipelineCheck(concerns=tuple(dict.fromkeys(concerns)), elements=len(first.digests), ended=first.ended)


def _of_part(part: PythonPart, look: bool) -> Iterator[Concern]:
    if part.in_place and look:
        yield from _used_again(part)
    if part.in_place and part.generator and (lost := converted(part.function, part.dataset.element_spec)):
        yield _converted(lost)
    if part.parallel:
        for each in shared(part.function):
            reason = f"{_name(part)} is called by several threads and uses {each.name}, {each.what}: {each.harm}."
            yield Concern(
                kind="shared-object",
                severity="note" if each.minor else "warning",
                reason=reason,
                advice="Make one in each call, or lock it.",
            )


def _used_again(part: PythonPart) -> Iterator[Concern]:
    """By what happens to elements that are held; else by what the function hands out."""
    # What was batched or mapped later is a copy, of whatever the buffer held at that time: look before that.
    changed = passed(part.dataset, 2 * HELD, look=False).changed
    if changed:
        yield _changed(changed)
    elif part.generator:
        if found := reuse(part.function, part.dataset.element_spec):
            yield _reused(found)
    elif not part.parallel:
        for name, array in buffers(part.function).items():
            address = array.__array_interface__["data"][0]
            reason = f"{_name(part)} writes to {name} and returns it, each time the same memory. {_luck(address)}"
            yield Concern(kind="reused-buffer", severity="warning", reason=reason, advice=COPY)


def _changed(found: Changed) -> Concern:
    where = f", at {found.address:#x}," if found.address is not None else ""
    reason = (
        f"Element {found.element}{component(found.name)} changed while later ones were made: its memory{where} is a "
        f"buffer that is written to again. TensorFlow uses memory in place where its address is a multiple of "
        f"{ALIGNMENT}."
    )
    return Concern(kind="reused-buffer", severity="error", element=found.element, reason=reason, advice=COPY)


def _reused(found: Reuse) -> Concern:
    what = "which is in the same memory" if found.same else "and has parts of its memory"
    reason = (
        f"The generator's element {found.element}{component(found.name)} changes when it makes element {found.later}, "
        f"{what}. {_luck(found.address)}"
    )
    return Concern(
        kind="reused-buffer",
        severity="error" if found.in_place else "warning",
        element=found.element,
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


def _converted(lost: Converted) -> Concern:
    reason = (
        f"The generator's element {lost.element}{component(lost.name)} has a value {lost.value:g} ({lost.dtype}), of "
        f"which TensorFlow makes {lost.becomes:g}, without a word: {lost.promised} was promised."
    )
    advice = "Promise the type that the generator yields."
    return Concern(kind="converted", severity="warning", element=lost.element, reason=reason, advice=advice)


def _name(part: PythonPart) -> str:
    return f"{getattr(part.function, '__qualname__', 'A function').rpartition('.')[2]}()"
