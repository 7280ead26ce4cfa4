"""CRC-32C, the checksum of TensorFlow's files."""

from __future__ import annotations

import google_crc32c

_MASK_DELTA = 0xA282EAD8


def crc32c(data: bytes | memoryview, crc: int = 0) -> int:
    # The library takes nothing that could change while it reads.
    return int(google_crc32c.extend(crc, data if isinstance(data, bytes) else bytes(data)))


def masked(crc: int) -> int:
    """As it is stored beside the data that it covers."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF
