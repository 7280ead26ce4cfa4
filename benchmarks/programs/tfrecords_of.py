"""Writes TFRecord files of random records, all of one size."""

import random
import struct

from faultlens.model_files.crc32c import crc32c, masked


def write(path, size, total):
    chance = random.Random(size)
    length = struct.pack("<Q", size)
    head = length + struct.pack("<I", masked(crc32c(length)))
    with path.open("wb") as file:
        for _ in range(total // (size + 16)):
            data = chance.randbytes(size)
            file.write(head + data + struct.pack("<I", masked(crc32c(data))))
