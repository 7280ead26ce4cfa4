"""What the Examples in a TFRecord file are like: the features they have, their kinds and lengths, and their images."""

from __future__ import annotations

from faultlens.data.images.checking import check_image
from faultlens.data.look import Look
from faultlens.data.native.layout import (
    EXAMPLE,
    FEATURES,
    KIND_SHIFT,
    KINDS,
    RAW,
    VALUES,
    FeatureC,
    PlaceC,
    StateC,
    ValueC,
)
from faultlens.data.tfrecord.records import Run
from faultlens.data.tfrecord.relations import Beside, Numbers, Relations
from faultlens.records.scan import Kind, Place

PRESENT = "present"
EMPTY = KINDS[0]
AN_EXAMPLE, OTHER = "a tf.train.Example", "something else"


def look_into(run: Run, state: StateC, relations: Relations, look: Look, group: str) -> None:
    """At what C has put aside: numbers that are not finite, and images."""
    for event in state.events[: state.event_count]:
        told = "one number is" if event.count == 1 else f"{event.count:,} numbers are"
        look.flaw(
            "not-finite",
            f"{told} NaN or infinite",
            member=_name(state.features[event.feature]),
            **_numbers(event.place),
        )
    held = memoryview(run.window.buffer)
    try:
        for blob in state.blobs[: state.blob_count]:
            name = _name(state.features[blob.feature]) if blob.feature < state.feature_count else "a feature"
            place = _numbers(blob.place)
            image = check_image(
                bytes(held[blob.start : blob.start + blob.size]), look, member=name, group=group, **place
            )
            if image is None:
                continue
            relations.add_image(name, image.width, image.height, place)
            if blob.cell_count and not relations.settled:
                cells = state.cells[blob.cells : blob.cells + blob.cell_count]
                others = [
                    Beside(_name(state.features[cell.feature]), KINDS[cell.kind], cell.length, cell.size, cell.first)
                    for cell in cells
                    if cell.feature != blob.feature
                ]
                relations.add(name, image.width, image.height, image.channels, others, place)
    finally:
        held.release()


def describe(state: StateC, look: Look, group: str) -> None:
    """The traits of all records, when they have been seen."""
    for number, value in enumerate(state.kinds):
        what = OTHER if number == RAW else AN_EXAMPLE
        _trait(look, "kind of record", what, value, group, kind="structure", usual=AN_EXAMPLE)
    if not state.kinds[RAW].count or state.kinds[EXAMPLE].count:
        _presence(state, look, group)
        for feature in state.features[: state.feature_count]:
            _describe_feature(feature, look, group)
    if state.more_features:
        look.unchecked("some features of Examples", f"there are more than {FEATURES} different ones")


def _presence(state: StateC, look: Look, group: str) -> None:
    """A feature that is missing breaks what parses it; one too many does not."""
    masks = state.masks[: state.masks_used]
    for number, feature in enumerate(state.features[: state.feature_count]):
        name = f"feature {_name(feature)}"
        if state.masks_used == VALUES:
            look.varied(name, group)
        else:
            for mask in masks:
                _trait(look, name, PRESENT if mask.value >> number & 1 else "missing", mask, group, usual=PRESENT)


def _describe_feature(feature: FeatureC, look: Look, group: str) -> None:
    name = _name(feature)
    kinds: dict[str, list[ValueC]] = {}
    for value in feature.lengths[: feature.lengths_used]:
        kinds.setdefault(KINDS[value.value >> KIND_SHIFT & 3], []).append(value)
    kinds.pop(EMPTY, None)  # an empty list need not say of what
    for kind, values in kinds.items():
        for value in values:
            _trait(look, f"type of the feature {name}", kind, value, group)
    lengths, sizes = f"number of values of the feature {name}", f"size of the feature {name}"
    if feature.lengths_used == VALUES:
        look.varied(lengths, group)
    elif not feature.in_list:  # how many steps a sequence has is its own affair
        for value in feature.lengths[: feature.lengths_used]:
            _trait(look, lengths, f"{value.value & ((1 << KIND_SHIFT) - 1):,}", value, group)
    if feature.sizes_used == VALUES:
        look.varied(sizes, group)
    else:
        for value in feature.sizes[: feature.sizes_used]:
            _trait(look, sizes, f"{value.value:,} bytes", value, group)


def sizes(state: StateC, look: Look, group: str) -> None:
    """How large the records are."""
    for bits, count in enumerate(state.sizes):
        if count:
            look.sizes_seen(bits, int(count), group)
    if state.largest.size:
        look.largest_seen(Place(path=look.piece.path, **_numbers(state.largest)), group)


def _trait(
    look: Look, name: str, text: str, value: ValueC, group: str, kind: Kind = "differs", usual: str = ""
) -> None:
    count = int(value.count)
    kept = value.places[: min(count, len(value.places))]
    for index, place in enumerate(kept):
        more = count - len(kept) + 1 if index == len(kept) - 1 else 1
        look.trait(name, text, count=more, group=group, kind=kind, usual=usual, **_numbers(place))


def _numbers(place: PlaceC) -> Numbers:
    return {"record": place.record, "offset": place.offset, "size": place.size}


def _name(feature: FeatureC) -> str:
    return bytes(feature.name).decode("utf-8", "replace")
