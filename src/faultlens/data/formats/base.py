"""What a format is: one small class that knows its files by their name and beginning, and reads them whole.

To add one: write the class in a module of this folder and name it in formats/__init__.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Literal, NamedTuple

from faultlens.data.look import Look
from faultlens.data.source import Source
from faultlens.records.scan import Piece, Place

HEAD = 512  # bytes that a format is shown of a file


class Item(NamedTuple):
    """What a decoder is given: one record, one image, one line."""

    place: Place
    what: Literal["record", "image", "line"]
    data: bytes


class Format(ABC):
    name: ClassVar[str]  # "TFRecord"
    suffixes: ClassVar[tuple[str, ...]]  # in lower case, with the dot: names that claim to be such a file
    by_name_only: ClassVar[bool] = False  # many other files begin the same way
    needs: ClassVar[tuple[str, ...]] = ()  # modules that are no part of faultlens; without them its files are left out

    @abstractmethod
    def begins(self, head: bytes) -> bool:
        """Whether a file that begins like this is one. Where it is damaged, its name decides."""

    def cuts(self, source: Source, size: int, wanted: int) -> list[int]:  # noqa: ARG002
        """Where a file can be cut into pieces of about this size: offsets in order, without 0. None by default."""
        return []

    @abstractmethod
    def check(self, source: Source, piece: Piece, look: Look) -> None:
        """Say everything that is wrong with the piece to `look`. Raise OSError where it cannot be read.

        Any other exception counts as our own fault and is shown as such: bad data must never cause one."""

    def items(self, source: Source, piece: Piece) -> Iterator[Item]:  # noqa: ARG002
        """What decoders are tried with; only what is whole."""
        return iter(())
