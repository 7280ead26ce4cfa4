"""Do arrays that belong together have one length? Only names that cannot mean anything else are believed."""

from __future__ import annotations

from collections.abc import Mapping

from faultlens.data.look import Look

# (x and y alone are axes as often as they are samples and labels.)
PAIRS = tuple((f"x_{part}", f"y_{part}") for part in ("train", "test", "val", "valid", "validation")) + (
    ("images", "labels"),
)


def check_pairs(lengths: Mapping[str, int], look: Look, around: str = "") -> None:
    """`lengths`: the first dimension by name."""
    lower = {name.lower(): (name, length) for name, length in lengths.items()}
    for one, other in PAIRS:
        if one in lower and other in lower and lower[one][1] != lower[other][1]:
            (name, length), (label, labels) = lower[one], lower[other]
            reason = f"it has {labels} entries, {name} beside it {length}"
            look.flaw("label", reason, member=around + label)
