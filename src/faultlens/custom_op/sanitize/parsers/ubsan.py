"""What UndefinedBehaviorSanitizer wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.sanitize.reports import Frame, Reported, sections, stacks_of

TOOL = "UndefinedBehaviorSanitizer"
_BEGIN = re.compile(r"^(?P<file>\S.*?):(?P<line>\d+):(?P<column>\d+): runtime error: (?P<what>.*)$")
# The compiler may assume that these do not happen; what the machine does is mostly harmless.
_WEAK = (
    "signed integer overflow", "negation of", "shift ", "is outside the range", "misaligned address",
    "not a valid value for type",
)  # fmt: skip


def parse(text: str) -> Iterator[Reported]:
    for order, (head, lines) in enumerate(sections(text, _BEGIN)):
        what = head["what"]
        frames = next((stack for _, stack in stacks_of(lines)), ())
        place = Frame(frames[0].function if frames else "", head["file"], int(head["line"]), int(head["column"]))
        yield Reported(
            rule="undefined-behaviour",
            words=re.sub(r"0x[0-9a-f]{6,}", "an address", what),
            tool=TOOL,
            frames=(place, *frames),
            facts=(what,),
            noted="ubsan",
            order=order,
            weak=any(word in what for word in _WEAK),
        )
