"""Memory for tests: a few stretches of bytes at chosen addresses."""

from __future__ import annotations

from faultlens.records.crash import Address, Mapping


class FakeMemory:
    def __init__(self, parts: dict[int, bytes]) -> None:
        self._parts = parts

    def read(self, address: int, size: int) -> bytes:
        for start, data in self._parts.items():
            if start <= address < start + len(data):
                return data[address - start : address - start + size]
        return b""


def mapping(start: int, end: int, permissions: str, path: str | None = None) -> Mapping:
    return Mapping(start=Address(start), end=Address(end), permissions=permissions, path=path)
