"""Small saved models of every format, written byte by byte: what TensorFlow and Keras write, without them."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path

from faultlens.model_files.crc32c import crc32c, masked

WEIGHTS = bytes(range(256)) * 16  # of one variable


def keras_archive(weights: bytes | None = None, version: str = "3.15.1", **config: object) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": version, "date_saved": "2026-11-16@18:12:11"}))
        archive.writestr("config.json", json.dumps({"class_name": "Sequential", "config": config}))
        archive.writestr("model.weights.h5", hdf5() if weights is None else weights)
    return file.getvalue()


def hdf5(content: bytes = WEIGHTS, **attributes: str) -> bytes:
    """Superblock of version 0 with addresses of 8 bytes; attributes are texts as h5py writes them."""
    root = b"\1\0\1\0"
    if attributes:
        content = _attributes(attributes, 96 + len(root)) + content
    end = 96 + len(root) + len(content)
    head = b"\x89HDF\r\n\x1a\n" + bytes([0, 0, 0, 0, 0, 8, 8, 0]) + struct.pack("<HHI", 4, 16, 0)
    return head + struct.pack("<QQQQQQ", 0, 2**64 - 1, end, 2**64 - 1, 0, 96) + bytes(24) + root + content


def _attributes(attributes: Mapping[str, str], place: int) -> bytes:
    """Messages that lead into the heap behind them, which follows at once."""
    names = [_padded(name.encode() + b"\0") for name in attributes]
    heap_at = place + sum(len(name) + 24 + 8 + 16 for name in names)
    messages, objects = b"", b""
    for number, (name, text) in enumerate(zip(names, attributes.values(), strict=True), 1):
        messages += name + b"\x19\1\1".ljust(24, b"\0") + bytes(8) + struct.pack("<IQI", len(text), heap_at, number)
        objects += struct.pack("<HHIQ", number, 0, 0, len(text)) + _padded(text.encode())
    return messages + b"GCOL\1\0\0\0" + struct.pack("<Q", 16 + len(objects) + 16) + objects + bytes(16)


def _padded(raw: bytes) -> bytes:
    return raw.ljust(-(-len(raw) // 8) * 8, b"\0")


def write_checkpoint(prefix: Path, content: bytes = WEIGHTS) -> None:
    prefix.parent.mkdir(parents=True, exist_ok=True)
    names = (b"Variable\xc3\xb6", b"word")
    text = varint(5) + masked(length := crc32c(struct.pack("<I", 5))).to_bytes(4, "little") + b"hello"
    covered = crc32c(text[1:], length)
    data = content + text
    entries = [
        (b"", field(1, 1)),
        (names[0], entry(1, len(content) // 4, 0, len(content), masked(crc32c(content)))),
        (names[1], entry(7, 1, len(content), len(text), masked(covered))),
    ]
    prefix.with_name(prefix.name + ".index").write_bytes(sstable(entries))
    prefix.with_name(prefix.name + ".data-00000-of-00001").write_bytes(data)


def write_saved_model(
    folder: Path, version: str = "2.21.0", min_consumer: int = 12, table: str = "", asset: str = ""
) -> None:
    """`table`: the file that a table is filled from; `asset`: one that the model only names."""
    write_checkpoint(folder / "variables" / "variables")
    info = field(5, version.encode())
    graph = field(1, field(1, b"node")) + field(4, field(1, 2474) + field(2, min_consumer))
    objects = field(1, field(7, field(1, 1)))
    names = [name for name in (table, asset) if name]
    assets = b"".join(field(6, field(2, name.encode())) for name in names)
    objects += b"".join(field(1, field(5, field(1, place))) for place in range(len(names)))
    if table:
        objects += field(1, field(1, field(1, 1) + field(2, b"_filename")))
    meta_graph = field(1, info) + field(2, graph) + assets + field(7, objects)
    (folder / "saved_model.pb").write_bytes(field(1, 1) + field(2, meta_graph))


def tflite(content: bytes = WEIGHTS) -> bytes:
    """Model {operator_codes: [{}], subgraphs: [{tensors: [], operators: []}], buffers: [{data}]}."""
    image = bytearray(8)

    def table(*values: bytes | None) -> int:
        """Fields of 4 bytes each; a vtable stands before."""
        start = len(image) + 4 + 2 * len(values)
        start += -start % 4
        image.extend(bytes(start - (4 + 2 * len(values)) - len(image)))
        offsets, inline = [], b""
        for value in values:
            offsets.append(4 + len(inline) if value is not None else 0)
            inline += value or b""
        image.extend(struct.pack(f"<HH{len(values)}H", 4 + 2 * len(values), 4 + len(inline), *offsets))
        image.extend(struct.pack("<i", 4 + 2 * len(values)) + inline)
        return start

    # Offsets lead forward, so that the tables are written twice: once to learn where they are.
    model = table(struct.pack("<I", 3), bytes(4), bytes(4), None, bytes(4))
    slots = {number: model + 4 + 4 * index for index, number in enumerate((0, 1, 2, 4))}

    def point(slot: int) -> None:
        image[slot : slot + 4] = struct.pack("<I", len(image) - slot)

    def vector_of_one() -> int:
        image.extend(struct.pack("<I", 1) + bytes(4))
        return len(image) - 4

    for number in (1, 2):
        point(slots[number])
        slot = vector_of_one()
        start = table(*(() if number == 1 else (bytes(4), None, None, bytes(4))))
        image[slot : slot + 4] = struct.pack("<I", start - slot)
        for place in (start + 4, start + 8) if number == 2 else ():
            point(place)
            image.extend(bytes(4))
    point(slots[4])
    slot = vector_of_one()
    start = table(bytes(4))
    image[slot : slot + 4] = struct.pack("<I", start - slot)
    point(start + 4)
    image.extend(struct.pack("<I", len(content)) + content)
    image[:8] = struct.pack("<I", model) + b"TFL3"
    return bytes(image)


# ----------------------------------------------------------------------------------------------------- pieces


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def entry(dtype: int, elements: int, offset: int, size: int, crc: int) -> bytes:
    """BundleEntryProto."""
    where = field(4, offset) + field(5, size) + varint(6 << 3 | 5) + struct.pack("<I", crc)
    return field(1, dtype) + field(2, field(2, field(1, elements))) + where


def sstable(entries: list[tuple[bytes, bytes]]) -> bytes:
    """One block of data, one of extras, one index."""
    data = _block(entries)
    table = bytearray(_sealed(data))
    extras, extras_at = _block([]), len(table)
    table += _sealed(extras)
    index, index_at = _block([(entries[-1][0], varint(0) + varint(len(data)))]), len(table)
    table += _sealed(index)
    handles = varint(extras_at) + varint(len(extras)) + varint(index_at) + varint(len(index))
    return bytes(table) + handles.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


def _block(entries: list[tuple[bytes, bytes]]) -> bytes:
    rows = (varint(0) + varint(len(key)) + varint(len(value)) + key + value for key, value in entries)
    return b"".join(rows) + struct.pack("<II", 0, 1)


def _sealed(block: bytes) -> bytes:
    return block + b"\0" + struct.pack("<I", masked(crc32c(block + b"\0")))
