"""Recorded memory of programs that died inside TensorFlow: what tools/record_kernels.py wrote, ready to be searched."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from functools import cache

import msgspec

import places
from faultlens.inspection.tensorflow.kernels import Scan, kernels_in_flight
from faultlens.inspection.tensorflow.layout import Layout, choose, table
from faultlens.records.crash import CppException, Fault, Kernel, Mapping, Record, Thread, decode_address, encode_address

FOLDER = places.RECORDED / "kernels"
SECONDS = 60.0  # far more than is needed: how fast the machine is must not matter


class Image(Record, frozen=True):
    release: str  # of TensorFlow: "2.21"
    mappings: tuple[Mapping, ...]
    threads: tuple[Thread, ...]
    registers: dict[int, dict[str, int]]
    fault: Fault | None
    exceptions: tuple[CppException, ...]
    memory: dict[str, bytes]  # by address in hexadecimal
    kernels: tuple[Kernel, ...]  # what was found


def encode(image: Image) -> bytes:
    return msgspec.json.encode(image, enc_hook=encode_address)


@cache
def load(name: str) -> Image:
    data = gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes())
    return msgspec.json.decode(data, type=Image, dec_hook=decode_address)


def names() -> list[str]:
    return sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz"))


class ImageMemory:
    """The recorded bytes; what lies between them in the same page was not looked at and is zero."""

    PAGE = 4096

    def __init__(self, parts: dict[int, bytes]) -> None:
        self.pages: dict[int, bytearray] = {}
        self.reads = 0
        for start, data in parts.items():
            self.write(start, data)

    def copy(self) -> ImageMemory:
        memory = ImageMemory({})
        memory.pages = {start: bytearray(page) for start, page in self.pages.items()}
        return memory

    def write(self, start: int, data: bytes) -> None:
        while data:
            offset = start % self.PAGE
            page = self.pages.setdefault(start - offset, bytearray(self.PAGE))
            part = data[: self.PAGE - offset]
            page[offset : offset + len(part)] = part
            start, data = start + len(part), data[len(part) :]

    def read(self, address: int, size: int) -> bytes:
        self.reads += 1
        parts = []
        while size > 0:
            offset = address % self.PAGE
            page = self.pages.get(address - offset)
            if page is None:
                break
            part = bytes(page[offset : offset + size])
            parts.append(part)
            address += len(part)
            size -= len(part)
        return b"".join(parts)


def scan(
    image: Image,
    memory: ImageMemory | None = None,
    contents: bool = True,
    seconds: float = SECONDS,
    layouts: Sequence[Layout] | None = None,
) -> Scan:
    return kernels_in_flight(
        memory or image_memory(image),
        image.mappings,
        image.threads,
        image.registers,
        image.fault,
        image.exceptions,
        contents,
        seconds,
        layouts_of(image.release) if layouts is None else layouts,
    )


def layouts_of(series: str) -> tuple[Layout, ...]:
    return choose(table(), set(), f"{series}.0")


def image_memory(image: Image) -> ImageMemory:
    """A copy that may be written to."""
    return ImageMemory({int(start, 16): data for start, data in image.memory.items()})
