"""What all records have in common, and how they are written as JSON."""

from __future__ import annotations

from typing import Any

import msgspec


class Address(int):
    """A machine word that people read in hexadecimal; written as "0x…" in JSON."""

    def __repr__(self) -> str:
        return hex(self)


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=False):
    """Base of all records: immutable, compared by value, unknown fields of newer versions ignored."""


def encode_address(value: Any) -> Any:
    if isinstance(value, Address):
        return hex(value)
    raise NotImplementedError(type(value))


def decode_address(kind: type, value: Any) -> Any:
    if kind is Address and isinstance(value, str):
        number = int(value, 16)
        if 0 <= number < 1 << 64:
            return Address(number)
    raise ValueError(f"not an address: {value!r}")


def address_schema(kind: type) -> dict[str, Any]:
    if kind is Address:
        return {"type": "string", "pattern": "^0x[0-9a-f]{1,16}$"}
    raise NotImplementedError(kind)
