"""Runs in the user's Python: calls every op of a library with inputs of many shapes and values, alone and from threads.

    python exercise.py LIBRARY

Whatever the op answers is fine; what a sanitizer says about it is not this program's business."""

from __future__ import annotations

import contextlib
import itertools
import re
import sys
import threading
from typing import Any

SHAPES = ((10,), (3, 4), (), (0,), (1,), (2, 3, 4), (2, 8, 8, 3), (0, 5))
TYPES = ("DT_FLOAT", "DT_INT32", "DT_INT64", "DT_DOUBLE", "DT_STRING", "DT_BOOL", "DT_UINT8")
LARGE = 20_000
THREADS, ROUNDS = 3, 6
CALLS = 40  # of each op


def main(library: str) -> None:
    import tensorflow as tf
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session

    module = tf.load_op_library(library)
    listed = op_def_pb2.OpList()
    listed.ParseFromString(pywrap_tf_session.TF_GetOpList(pywrap_tf_session.TF_LoadLibrary(library)))
    for definition in listed.op:
        call = getattr(module, _python_name(definition.name), None)
        if call is not None:
            _alone(tf, definition, call)
            _together(tf, definition, call)


def _python_name(name: str) -> str:
    """ReadPast is read_past; CSVInts is csv_ints."""
    spaced = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z\d])([A-Z])", r"\1_\2", spaced).lower()


def _alone(tf: Any, definition: Any, call: Any) -> None:
    shapes = itertools.product(SHAPES, repeat=min(2, max(1, len(definition.input_arg))))
    kinds = ("negative", "beyond")
    ordered = sorted(shapes, key=lambda pair: len(set(pair)))  # alike first: most ops want that
    for number, chosen in enumerate(itertools.islice(ordered, CALLS)):
        _try(tf, definition, call, chosen, "small")
        _try(tf, definition, call, chosen, kinds[number % 2])


def _together(tf: Any, definition: Any, call: Any) -> None:
    """The same call from several threads: what is not guarded shows only then."""

    def many() -> None:
        for _ in range(ROUNDS):
            _try(tf, definition, call, ((LARGE,),), "small")
            _try(tf, definition, call, ((LARGE // 100, 100),), "small")

    threads = [threading.Thread(target=many) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _try(tf: Any, definition: Any, call: Any, shapes: tuple[tuple[int, ...], ...], kind: str) -> None:
    with contextlib.suppress(Exception):  # refused, which is as it should be
        call(**_arguments(tf, definition, shapes, kind))


def _arguments(tf: Any, definition: Any, shapes: tuple[tuple[int, ...], ...], kind: str) -> dict[str, Any]:
    types = {attribute.name: _chosen_type(attribute) for attribute in definition.attr if attribute.type == "type"}
    arguments: dict[str, Any] = {}
    for number, argument in enumerate(definition.input_arg):
        dtype = argument.type or types.get(argument.type_attr) or 1
        value = _tensor(tf, tf.dtypes.as_dtype(dtype), shapes[number % len(shapes)], kind)
        arguments[argument.name] = [value, value] if argument.number_attr else value
    counted = {argument.number_attr for argument in definition.input_arg}
    inferred = {argument.type_attr for argument in definition.input_arg}
    for attribute in definition.attr:
        if not attribute.HasField("default_value") and attribute.name not in counted | inferred:
            arguments[attribute.name] = _attribute(tf, attribute, types)
    return arguments


def _chosen_type(attribute: Any) -> int:
    from tensorflow.core.framework import types_pb2

    allowed = list(attribute.allowed_values.list.type)
    wanted = [types_pb2.DataType.Value(name) for name in TYPES]
    return next((each for each in wanted if not allowed or each in allowed), allowed[0] if allowed else 1)


def _attribute(tf: Any, attribute: Any, types: dict[str, int]) -> Any:
    if attribute.type == "type":
        return tf.dtypes.as_dtype(types[attribute.name])
    plain = {
        "int": 2,
        "float": 1.0,
        "bool": False,
        "string": "",
        "shape": [1],
        "list(int)": [1, 1],
        "list(float)": [1.0],
    }
    if attribute.type == "int" and attribute.has_minimum:
        return max(2, attribute.minimum)
    if attribute.type == "string" and attribute.allowed_values.list.s:
        return attribute.allowed_values.list.s[0]
    return plain.get(attribute.type, 1)


def _tensor(tf: Any, dtype: Any, shape: tuple[int, ...], kind: str) -> Any:
    count = 1
    for size in shape:
        count *= size
    if dtype == tf.string:
        values: list[Any] = [("abc" * (number % 3)) for number in range(count)]
    elif dtype == tf.bool:
        values = [number % 2 == 0 for number in range(count)]
    else:
        first = {"small": 0, "negative": -3, "beyond": 1_000}[kind]
        values = [abs(value) if dtype.is_unsigned else value for value in (first + n % 3 for n in range(count))]
    return tf.reshape(tf.constant(values, dtype=dtype), shape)


if __name__ == "__main__":
    main(sys.argv[1])
