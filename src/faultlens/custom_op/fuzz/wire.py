"""An input as the process that tries it reads it. Pure."""

from __future__ import annotations

import json
from typing import Any

from faultlens.custom_op.fuzz.vast import is_vast
from faultlens.op_model.arrays import Array
from faultlens.op_model.op_call import Argument, Call, Setting


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
        **({"vast": True} if is_vast(array) else {}),
    }


def _value(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, complex):
        return [value.real, value.imag]
    return [_value(each) for each in value] if isinstance(value, tuple) else value


def understood(ask: bytes, op: str, library: str | None) -> Call:
    """The call that was asked for."""
    return call_of(json.loads(ask), op, library)


def call_of(told: dict[str, Any], op: str, library: str | None) -> Call:
    arguments = tuple(
        Argument(each["name"], tuple(_array_of(array) for array in each["arrays"]), each["list"])
        for each in told["arguments"]
    )
    settings = tuple(Setting(name, kind, _frozen(value)) for name, kind, value in told["settings"])
    return Call(op, told["function"], arguments, settings, library)


def _array_of(told: dict[str, Any]) -> Array:
    dtype = told["dtype"]
    values = None if told["values"] is None else tuple(_value_of(dtype, each) for each in told["values"])
    return Array(dtype, tuple(told["shape"]), values, _value_of(dtype, told["fill"]))


def _value_of(dtype: str, value: Any) -> Any:
    if dtype == "string":
        return value.encode("latin-1") if isinstance(value, str) else value
    return complex(*value) if isinstance(value, list) else value


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
