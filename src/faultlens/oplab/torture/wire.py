"""An input as the process that tries it reads it. Pure."""

from __future__ import annotations

import json
from typing import Any

from faultlens.remedy.arrays import Array
from faultlens.remedy.op_call import Call


def asked(call: Call, probe: str, **more: Any) -> bytes:
    return json.dumps({**plain(call), "probe": probe, **more}).encode()


def plain(call: Call) -> dict[str, Any]:
    return {
        "function": call.function,
        "arguments": [
            {"name": each.name, "list": each.is_list, "arrays": [_array(array) for array in each.arrays]}
            for each in call.arguments
        ],
        "settings": [[each.name, each.kind, _value(each.value)] for each in call.settings],
    }


def _array(array: Array) -> dict[str, Any]:
    return {
        "dtype": array.dtype,
        "shape": list(array.shape),
        "values": None if array.values is None else [_value(each) for each in array.values],
        "fill": _value(array.fill),
    }


def _value(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, complex):
        return [value.real, value.imag]
    return [_value(each) for each in value] if isinstance(value, tuple) else value
