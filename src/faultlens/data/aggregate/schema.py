"""What the user says the data must be like: a JSON file for `--schema`.

{"features": {"image": "bytes", "label": "int64[1]", "scores": "float[10]"},
 "arrays": {"dtype": "float32", "shape": [28, 28]}, "columns": 5, "channels": 3}"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from faultlens.errors import FaultlensError

_FEATURE = re.compile(r"(bytes|float|int64)(?:\[(\d+)\])?")


class Arrays(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    dtype: str | None = None
    shape: tuple[int, ...] | None = None  # of one row


class Schema(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    named: dict[str, str] = msgspec.field(default_factory=dict, name="features")
    arrays: Arrays = Arrays()
    columns: int | None = None
    channels: int | None = None

    def features(self) -> set[str]:
        return set(self.named)

    def expected(self, trait: str) -> str | None:
        """The value that a trait of this name must have."""
        for name, text in self.named.items():
            kind, _, length = text.partition("[")
            if trait == f"feature {name}":
                return "present"
            if trait == f"type of the feature {name}":
                return kind
            if trait == f"number of values of the feature {name}" and length:
                return f"{int(length[:-1]):,}"
        simple = {
            "dtype": self.arrays.dtype,
            "shape of a row": str(tuple(self.arrays.shape)) if self.arrays.shape is not None else None,
            "number of columns": str(self.columns) if self.columns is not None else None,
            "number of channels": str(self.channels) if self.channels is not None else None,
        }
        return simple.get(trait)


def read(path: Path) -> Schema:
    try:
        schema = msgspec.json.decode(path.read_bytes(), type=Schema)
    except OSError as error:
        raise FaultlensError(f"Cannot read the schema {path}: {error.strerror}.", "Name another file.") from error
    except (msgspec.MsgspecError, ValueError) as error:
        raise FaultlensError(f"{path} is not a schema: {error}.", "docs/scan.md shows one.") from error
    for name, text in schema.named.items():
        if not _FEATURE.fullmatch(text):
            raise FaultlensError(
                f"{path} says {text!r} of the feature {name}.", "Write bytes, float or int64, with [length] behind it."
            )
    return schema
