"""What the user says of the data: "image=float32[224,224,3] y=int32[]<1000 shuffle=10000 prefetch=4"."""

from __future__ import annotations

import re
from typing import NamedTuple

from faultlens.errors import FaultlensError
from faultlens.text.safe import one_line

_FIELD = re.compile(r"(?P<name>[\w./:-]+)=(?P<dtype>[a-z]+\d*)\[(?P<shape>[\d,\s]*)\](?:<(?P<bound>\d{1,15}))?")
UNITS = {"shuffle": "examples", "cache": "examples", "prefetch": "batches"}
_SETTING = re.compile(rf"(?P<name>{'|'.join(UNITS)})=(?P<value>\d{{1,15}})")
SIZES = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "string": 32,
}  # fmt: skip
_HOW = "Write it as 'image=float32[224,224,3] y=int32[]<1000 shuffle=10000 prefetch=4'."


class Field(NamedTuple):
    """One array of an example, without the batch."""

    dtype: str
    shape: tuple[int, ...]
    bound: int | None  # integers are below it


class DataSpec(NamedTuple):
    fields: dict[str, Field]  # by the names of the inputs; y, or y.NAME, are labels
    shuffle: int = 0  # examples in the buffer
    cache: int = 0  # examples kept in memory
    prefetch: int | None = None  # batches


def parse(text: str) -> DataSpec:
    fields: dict[str, Field] = {}
    settings: dict[str, int] = {}
    for word in re.findall(r"\S+=\S*\[[^\]]*\]\S*|\S+", text):
        field, setting = _FIELD.fullmatch(word), _SETTING.fullmatch(word)
        if setting:
            settings[setting["name"]] = int(setting["value"])
        elif field and field["dtype"] in SIZES:
            lengths = tuple(int(part) for part in field["shape"].split(",") if part.strip())
            fields[field["name"]] = Field(field["dtype"], lengths, int(field["bound"]) if field["bound"] else None)
        elif (name := word.partition("=")[0]) in UNITS:
            raise FaultlensError(f"{name} takes a number of {UNITS[name]}: {one_line(word, 80)!r} has none.", _HOW)
        else:
            raise FaultlensError(f"{one_line(word, 80)!r} does not describe the data.", _HOW)
    return DataSpec(fields, **settings)
