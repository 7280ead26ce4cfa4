"""The registered spelling of an op: "fifo_queue_v2" and "FifoQueueV2" are FIFOQueueV2."""

from __future__ import annotations

from functools import cache
from importlib import resources


def registered(name: str) -> str | None:
    """The op's name as TensorFlow spells it; None when it has no such op."""
    return _spellings().get(plain(name))


def plain(name: str) -> str:
    return name.replace("_", "").lower()


def all_names() -> list[str]:
    return resources.files(__package__).joinpath("op_names.txt").read_text().split()


@cache
def _spellings() -> dict[str, str]:
    return {plain(name): name for name in all_names()}
