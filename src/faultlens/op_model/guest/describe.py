"""Runs in the program's own Python: says how an op is called. Prints one JSON object.

Arguments: the op, then libraries that may have registered it, which are loaded one by one until it is known."""

from __future__ import annotations

import inspect
import json
import sys
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import dtypes, op_def_registry


def describe(op: str, libraries: list[str]) -> dict[str, Any] | None:
    definition = op_def_registry.get(op)
    library, module = None, tf.raw_ops
    for path in libraries if definition is None else ():
        module = load(path)
        definition = op_def_registry.get(op) if module else None
        if definition is not None:
            library = path
            break
    if definition is None:
        return None
    function = function_of(module, op)
    return {
        "op": op,
        "library": library,
        "function": function,
        "parameters": list(inspect.signature(getattr(module, function)).parameters) if function else [],
        "inputs": [described_input(each) for each in definition.input_arg],
        "attributes": [described_attribute(each) for each in definition.attr],
    }


def load(path: str) -> Any:
    try:
        return tf.load_op_library(path)
    except Exception:
        return None


def function_of(module: Any, op: str) -> str | None:
    """raw_ops has the op's own name; a library that was loaded also has it in snake case, as people write it."""
    plain = op.replace("_", "").lower()
    names = [name for name in dir(module) if name.replace("_", "").lower() == plain and not name.startswith("_")]
    snake = [name for name in names if name == name.lower()]
    if module is tf.raw_ops:
        return op if op in names else None
    return next(iter(snake or names), None)


def described_input(argument: Any) -> dict[str, Any]:
    return {
        "name": argument.name,
        "dtype": dtype_name(argument.type) if argument.type else None,
        "type_attribute": argument.type_attr or None,
        "list_attribute": argument.type_list_attr or None,
        "number_attribute": argument.number_attr or None,
        "by_reference": argument.is_ref,
    }


def described_attribute(attribute: Any) -> dict[str, Any]:
    has_default = attribute.HasField("default_value")
    return {
        "name": attribute.name,
        "kind": attribute.type,
        "has_default": has_default,
        "default": plain_value(attribute.default_value) if has_default else None,
    }


def plain_value(value: Any) -> Any:
    """As in the report: types by name, shapes as lists with -1, strings as text."""
    kind = value.WhichOneof("value")
    if kind == "list":
        for name in ("s", "i", "f", "b", "type", "shape"):
            items = getattr(value.list, name)
            if len(items):
                return [plain_item(name, item) for item in items]
        return []
    return plain_item(kind, getattr(value, kind)) if kind else None


def plain_item(kind: str, item: Any) -> Any:
    if kind == "s":
        return item.decode("utf-8", "surrogateescape")
    if kind == "type":
        return dtype_name(item)
    if kind == "shape":
        return None if item.unknown_rank else [each.size for each in item.dim]
    return item if kind in ("i", "f", "b") else None


def dtype_name(number: int) -> str:
    try:
        return str(dtypes.as_dtype(number).name)
    except TypeError:
        return "invalid"


if __name__ == "__main__":
    json.dump(describe(sys.argv[1], sys.argv[2:]), sys.stdout)
    sys.stdout.flush()
