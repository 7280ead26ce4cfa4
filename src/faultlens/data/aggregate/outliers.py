"""What is odd about a data set as a whole: values that differ from the rest or from a schema, records far too large."""

from __future__ import annotations

from collections.abc import Iterator

from faultlens.data.aggregate.merge import Merged
from faultlens.data.aggregate.schema import Schema
from faultlens.data.look import severity_of
from faultlens.records.scan import Flaw, Place, Seen, Trait
from faultlens.text.sizes import in_words

ENOUGH_RECORDS, ENOUGH_FILES = 100, 3  # below, there is no rule that something could break
FAR_LARGER, LARGE = 7, 1 << 20  # bits above the median (128 times), and bytes
FEW = 0.01
A_FEW, RARE = 3, 0.001  # odd ones; more of them are another kind of record, and no mistake
FEATURE = "feature "


def outliers(merged: Merged, schema: Schema | None) -> Iterator[Flaw]:
    for trait in merged.traits.values():
        expected = schema.expected(trait.name) if schema else None
        if expected is not None:
            yield from _against_schema(trait, expected)
        elif (usual := _usual(trait)) is not None:
            yield from _odd(trait, usual)
    if schema:
        yield from _missing(merged, schema)
    yield from _oversized(merged)


def _usual(trait: Trait) -> str | None:
    """The value that is the rule, if there is one."""
    if trait.varied or len(trait.values) < 2:
        return None
    total = sum(seen.count for seen in trait.values.values())
    value, seen = max(trait.values.items(), key=lambda item: (item[1].count, item[0]))
    if trait.usual and value != trait.usual:
        return None
    if trait.share is not None:
        return value if total >= ENOUGH_FILES and seen.count > trait.share * total else None
    return value if total >= ENOUGH_RECORDS and total - seen.count <= max(A_FEW, RARE * total) else None


def _odd(trait: Trait, usual: str) -> Iterator[Flaw]:
    total = sum(seen.count for seen in trait.values.values())
    rule = trait.values[usual].count
    for value, seen in sorted(trait.values.items()):
        if value != usual:
            if trait.kind == "label":
                reason = f"{trait.name}, unlike in {rule:,} of {total:,}"
            else:
                reason = f"the {trait.name} is {value}; in {rule:,} of {total:,} it is {usual}"
            yield from _flaws(trait, seen, reason)


def _against_schema(trait: Trait, expected: str) -> Iterator[Flaw]:
    for value, seen in sorted(trait.values.items()):
        if value != expected:
            yield from _flaws(trait, seen, f"the {trait.name} is {value}, and not {expected} as the schema says", True)


def _flaws(trait: Trait, seen: Seen, reason: str, certain: bool = False) -> Iterator[Flaw]:
    hidden = seen.count - len(seen.places)
    for index, place in enumerate(seen.places):
        more = f" (and in {hidden:,} more places)" if hidden > 0 and index == len(seen.places) - 1 else ""
        severity = "error" if certain else severity_of(trait.kind)
        yield Flaw(kind=trait.kind, severity=severity, place=place, reason=reason + more)


def _missing(merged: Merged, schema: Schema) -> Iterator[Flaw]:
    """Features that the schema asks for and no record of a group has; some records, and it is a trait."""
    groups: dict[str, set[str]] = {}
    for group, name in merged.traits:
        if name.startswith(FEATURE):
            groups.setdefault(group, set()).add(name[len(FEATURE) :])
    for group, names in sorted(groups.items()):
        for name in sorted(schema.features() - names):
            reason = f"no record has the feature {name}, which the schema asks for"
            yield Flaw(kind="differs", severity="error", place=Place(path=group), reason=reason)


def _oversized(merged: Merged) -> Iterator[Flaw]:
    for group, sizes in merged.sizes.items():
        total = sum(sizes.values())
        if total < ENOUGH_RECORDS:
            continue
        median = _median_bits(sizes, total)
        if sum(count for bits, count in sizes.items() if bits >= median + FAR_LARGER - 1) > FEW * total:
            continue  # not a few
        for place in merged.largest.get(group, ()):
            size = place.size or 0
            if size >= LARGE and size.bit_length() >= median + FAR_LARGER:
                usual = in_words(1 << max(median - 1, 0))
                yield _large(place, f"it has {in_words(size)}; half of the records have about {usual} or less")


def _median_bits(sizes: dict[int, int], total: int) -> int:
    passed = 0
    for bits, count in sorted(sizes.items()):
        passed += count
        if 2 * passed >= total:
            return bits
    return 0


def _large(place: Place, reason: str) -> Flaw:
    return Flaw(kind="oversized", severity="warning", place=place, reason=reason)
