"""What do the words of a refusal say about ranks and numbers that an op wants? Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

_RANKS = {"scalar": 0, "vector": 1, "matrix": 2, "matrices": 2}
_RANK = re.compile(
    r"\brank[ -]?(?:of |must be |is )?(\d)|\b(\d)[ -]?(?:d\b|dim)|\b(scalar|vector|matrix|matrices)\b", re.I
)
_SHAPE = re.compile(r"\[([\w ,.*+-]*,[\w ,.*+-]*)\]")
_NUMBER = re.compile(r"(?<![\w.-])\d{1,3}(?![\w.])")
_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "pair": 2, "pairs": 2}
MOST = 256


def ranks(words: str) -> tuple[int, ...]:
    found = [int(each[0] or each[1]) if not each[2] else _RANKS[each[2].lower()] for each in _RANK.findall(words)]
    found += [each.count(",") + 1 for each in _SHAPE.findall(words) if "..." not in each]
    return tuple(dict.fromkeys(each for each in found if each <= 8))


def numbers(words: str) -> tuple[int, ...]:
    found = [int(each) for each in _NUMBER.findall(words)]
    found += [_WORDS[each] for each in re.findall(r"[a-z]+", words.lower()) if each in _WORDS]
    return tuple(dict.fromkeys(each for each in found if 0 < each <= MOST))


def about(words: str, names: Sequence[str]) -> tuple[int, ...]:
    """Which of the inputs are named; all, where none is."""
    named = tuple(i for i, name in enumerate(names) if re.search(rf"\b{re.escape(name)}\b", words))
    return named or tuple(range(len(names)))
