"""What is to be said about the elements of a pipeline: values, shapes, counts, and whether they come again?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from faultlens.data.pipeline.elements import Passed, Shape
from faultlens.data.pipeline.python_parts import steps
from faultlens.data.pipeline.result import Concern

MOSTLY = 0.9  # of the elements agree: then the others are wrong
FEW = 5  # that agree are too few for a rule
NEARLY = 0.9  # as many: nobody wants two data sets that differ so little


def of_elements(seen: Passed, dataset: Any) -> Iterator[Concern]:
    count = len(seen.digests)
    if seen.error:
        yield Concern(kind="raises", severity="error", element=count, reason=f"Element {count}: {seen.error}")
    elif not count:
        yield Concern(kind="empty", severity="warning", reason="There are no elements.")
    for each in seen.not_finite.values():
        what = " and ".join(
            f"{number} {name}" for number, name in ((each.nans, "NaN"), (each.infinities, "infinite")) if number
        )
        reason = f"Element {each.element}{component(each.name)} has {what} of {each.size} values."
        yield Concern(kind="not-finite", severity="warning", element=each.element, reason=reason)
    yield from _ranks(seen)
    yield from _counts(seen, dataset)
    yield from _last_batch(seen, dataset)


def of_passes(first: Passed, second: Passed) -> Iterator[Concern]:
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


def of_zipped(dataset: Any) -> Iterator[Concern]:
    """zip ends with the shortest, without a word."""
    for step in steps(dataset):
        if "Zip" in type(step).__name__:
            counts = [int(each.cardinality()) for each in step._inputs()]
            if min(counts) < 0 or min(counts) == max(counts):  # below 0: endless, or not known
                continue
            reason = f"Data sets of {' and '.join(f'{count:,}' for count in counts)} elements are zipped."
            nearly = min(counts) >= NEARLY * max(counts)
            advice = (
                "Its last ones are not used, and if one is missing in the middle, the others do not belong together."
            )
            yield Concern(kind="counts", severity="warning" if nearly else "note", reason=reason, advice=advice)


def component(name: str) -> str:
    return f", component {name}," if name else ""


def _ranks(seen: Passed) -> Iterator[Concern]:
    """A grey image among coloured ones."""
    for name in dict.fromkeys(name for shapes in seen.shapes for name in shapes):
        shapes = [each[name] for each in seen.shapes if name in each]
        (usual, count), *others = Counter(map(len, shapes)).most_common()
        if others and count >= max(FEW, MOSTLY * len(shapes)):
            number = next(number for number, shape in enumerate(shapes) if len(shape) != usual)
            reason = (
                f"Element {number}{component(name)} has the shape {shapes[number]}; {count} of {len(shapes)} "
                f"elements have {usual} dimensions."
            )
            yield Concern(kind="shape", severity="warning", element=number, reason=reason)


def _counts(seen: Passed, dataset: Any) -> Iterator[Concern]:
    found = [(number, _rows(each, "[0]"), _rows(each, "[1]")) for number, each in enumerate(seen.shapes)]
    pairs = [(number, one, other) for number, one, other in found if one is not None and other is not None]
    odd = [each for each in pairs if each[1] != each[2]]
    same = len(pairs) - len(odd)
    # Batches that were made side by side have as many elements each; of other pairs only most can tell.
    enough = 1 if _zips_batches(dataset) else max(FEW, MOSTLY * len(pairs))
    if odd and same >= enough:
        number, one, other = odd[0]
        reason = (
            f"Element {number} has {one} inputs and {other} labels; in {same} of {len(pairs)} "
            "elements there are as many of one as of the other."
        )
        yield Concern(kind="counts", severity="warning", element=number, reason=reason)


def _rows(shapes: dict[str, Shape], part: str) -> int | None:
    """Of (images, labels): how many there are of one, if that can be said."""
    firsts = {shape[0] if shape else None for name, shape in shapes.items() if name.startswith(part)}
    return firsts.pop() if len(firsts) == 1 else None


def _last_batch(seen: Passed, dataset: Any) -> Iterator[Concern]:
    firsts = [{shape[0] if shape else None for shape in shapes.values()} for shapes in seen.shapes]
    if not seen.ended or len(firsts) < 2 or not _batches(dataset) or any(len(each) != 1 for each in firsts):
        return
    *others, last = (each.pop() for each in firsts)
    if len(set(others)) == 1 and others[0] is not None and last is not None and last < others[0]:
        reason = f"The last batch has {last} elements, the others {others[0]}."
        yield Concern(kind="last-batch", severity="note", reason=reason, element=len(firsts) - 1)


def _batches(dataset: Any) -> bool:
    return any("Batch" in type(step).__name__ for step in steps(dataset))


def _zips_batches(dataset: Any) -> bool:
    zips = (step for step in steps(dataset) if "Zip" in type(step).__name__)
    return any(all(map(_batches, step._inputs())) for step in zips)
