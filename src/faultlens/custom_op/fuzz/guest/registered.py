"""Which ops does a library register, how are they called, and for what are there kernels? Asked of TensorFlow itself.

Runs in the Python of the user's programs, from 3.9 on. No op is run."""

from __future__ import annotations

import inspect
from typing import Any


def ops_of(path: str, library: Any, describe: Any, with_gradients: list[str]) -> list[dict[str, Any]]:
    """`describe`: the module that describes ops for `faultlens repro`."""
    ops = (op_of(definition, path, library, describe) for definition in definitions(path))
    return [{**op, "gradient": op["definition"]["op"] in with_gradients} for op in ops]


def with_gradients(path: str) -> list[str]:
    return [definition.name for definition in definitions(path) if has_gradient(definition.name)]


def definitions(path: str) -> Any:
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session

    handle = pywrap_tf_session.TF_LoadLibrary(path)  # loaded already: tells again what it registers
    listed = op_def_pb2.OpList()
    listed.ParseFromString(pywrap_tf_session.TF_GetOpList(handle))
    return listed.op


def op_of(definition: Any, path: str, library: Any, describe: Any) -> dict[str, Any]:
    function = describe.function_of(library, definition.name)
    parameters = list(inspect.signature(getattr(library, function)).parameters) if function else []
    return {
        "definition": {
            "op": definition.name,
            "library": path,
            "function": function,
            "parameters": parameters,
            "inputs": [named(describe.described_input(each), parameters) for each in definition.input_arg],
            "attributes": [named(describe.described_attribute(each), parameters) for each in definition.attr],
        },
        "outputs": [describe.described_input(each) for each in definition.output_arg],
        "bounds": {spelled(each.name, parameters): bounds_of(each, describe) for each in definition.attr},
        "kernels": kernels_of(definition.name, describe),
        "stateful": definition.is_stateful,
    }


def named(described: dict[str, Any], parameters: list[str]) -> dict[str, Any]:
    return {**described, "name": spelled(described["name"], parameters)}


def spelled(name: str, parameters: list[str]) -> str:
    """As Python can write it: an input "in" is the parameter "in_"."""
    return name + "_" if name not in parameters and name + "_" in parameters else name


def bounds_of(attribute: Any, describe: Any) -> dict[str, Any]:
    allowed = describe.plain_value(attribute.allowed_values) if attribute.HasField("allowed_values") else None
    return {"allowed": allowed, "minimum": attribute.minimum if attribute.has_minimum else None}


def count_kernels(path: str) -> int:
    from tensorflow.python.framework import kernels

    return sum(len(kernels.get_registered_kernels_for_op(each.name).kernel) for each in definitions(path))


def kernels_of(op: str, describe: Any) -> list[dict[str, Any]]:
    """Devices, and which types of its attributes each kernel is for."""
    from tensorflow.python.framework import kernels

    return [
        {
            "device": kernel.device_type,
            "types": {
                each.name: [describe.dtype_name(number) for number in each.allowed_values.list.type]
                for each in kernel.constraint
            },
        }
        for kernel in kernels.get_registered_kernels_for_op(op).kernel
    ]


def has_gradient(op: str) -> bool:
    from tensorflow.python.framework import ops

    try:
        return ops.gradient_registry.lookup(op) is not None
    except LookupError:
        return False
