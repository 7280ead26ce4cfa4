"""Makes the packaged table of what ops take: python tools/write_op_arguments.py, with TensorFlow installed.

Names come from the definitions of the ops. The ranks that an argument may have come from an experiment: the op is put
into a graph with tensors of every rank, and TensorFlow's own shape function says which it refuses. Eager calls do not
ask it, which is how such arguments reach the kernels."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import op_def_registry, ops

from faultlens.knowledge import op_names

TABLE = Path(__file__).parent.parent / "src" / "faultlens" / "knowledge" / "op_arguments.json"
RANKS = range(7)
LISTED = 2  # the length of inputs that are lists
ABOUT_RANK = re.compile(r"must be (?:at least |at most )?rank|rank", re.I)
TYPES = (tf.float32, tf.int32, tf.int64, tf.string, tf.quint8, tf.qint32, tf.complex64, tf.resource, tf.variant)
INTEGERS = (1, 2, 3, 4)
LENGTHS = (4, 1, 2, 3, 5, 0)


def main() -> None:
    names = sorted(op_names.all_names())
    table = {name: entry for name in names if (entry := described(name)) is not None}
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in table.items())
    TABLE.write_text(f"{{\n{lines}\n}}\n")
    ranked = sum("ranks" in entry for entry in table.values())
    print(f"{len(table)} ops, {ranked} of them with ranks")


def described(name: str) -> dict[str, Any] | None:
    definition = op_def_registry.get(name)
    if definition is None or not definition.input_arg:
        return None
    entry: dict[str, Any] = {"inputs": [_input(each) for each in definition.input_arg]}
    if ranks := in_child(lambda: dict(_ranks(definition))):
        entry["ranks"] = ranks
    return entry


def in_child(work: Callable[[], dict[str, list[int]]]) -> dict[str, list[int]]:
    """Some shape functions end the process, too; such an op stays without ranks."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writing, "w") as answer:
            json.dump(work(), answer)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if status == 0 else {}


def _input(each: Any) -> str:
    """Lists are marked with what tells their length: "values*N"; a list of types by "*"."""
    if each.number_attr:
        return f"{each.name}*{each.number_attr}"
    return f"{each.name}*{each.type_list_attr}" if each.type_list_attr else str(each.name)


def _ranks(definition: Any) -> Iterator[tuple[str, list[int]]]:
    call = next(_calls(definition), None)
    if call is None:
        return
    for each in definition.input_arg:
        accepted = [rank for rank in RANKS if not _is_refused(definition, call, each.name, rank)]
        if 0 < len(accepted) < len(RANKS):
            yield each.name, accepted


def _is_refused(definition: Any, call: dict[str, Any], name: str, rank: int) -> bool:
    shape = [None] * rank
    error = _error(definition, call, {name: shape})
    return error is not None and bool(ABOUT_RANK.search(error))


def _calls(definition: Any) -> Iterator[dict[str, Any]]:
    """Attributes with which the op can be put into a graph, all shapes unknown."""
    required = [each for each in definition.attr if not each.HasField("default_value")]
    choices = [list(_values(each)) for each in required]
    for values in itertools.islice(itertools.product(*choices), 400):
        call = dict(zip((each.name for each in required), values, strict=True))
        if _error(definition, call, {}) is None:
            yield call


def _values(each: Any) -> Iterator[Any]:
    allowed = each.allowed_values.list
    if each.type == "type":
        yield from (list(map(tf.as_dtype, allowed.type))[:4] or TYPES)
    elif each.type == "list(type)":
        yield [tf.float32] * LISTED
        yield [tf.string] * LISTED
    elif each.type == "int":
        yield from (max(number, each.minimum) for number in (LISTED, *INTEGERS))
    elif each.type == "list(int)":
        yield from ([1] * length for length in LENGTHS)
    elif each.type == "string":
        yield from ([text.decode() for text in allowed.s] or ["", "a"])
    elif each.type == "bool":
        yield from (False, True)
    elif each.type == "float":
        yield 1.0
    elif each.type == "shape":
        yield tf.TensorShape(None)
        yield tf.TensorShape([1])
    elif each.type == "list(shape)":
        yield [tf.TensorShape(None)] * LISTED
    elif each.type == "list(string)":
        yield ["a"] * LISTED
    elif each.type == "list(float)":
        yield [1.0] * LISTED


def _error(definition: Any, call: dict[str, Any], shapes: dict[str, Any]) -> str | None:
    """What TensorFlow says against it."""
    try:
        with tf.Graph().as_default() as graph:
            inputs = [tensor for each in definition.input_arg for tensor in _tensors(each, call, shapes.get(each.name))]
            attributes = {name: _attr_value(definition, name, value) for name, value in call.items()}
            node = ops._NodeDef(definition.name, "node")
            for name, value in attributes.items():
                node.attr[name].CopyFrom(value)
            grouped = list(_grouped(definition, call, inputs))
            ops._create_c_op(graph, node, grouped, [], op_def=definition)
    except Exception as error:
        return str(error)
    return None


def _tensors(each: Any, call: dict[str, Any], shape: Any) -> Iterator[Any]:
    if each.type_list_attr:
        types = call.get(each.type_list_attr, [])
    else:
        one = tf.as_dtype(each.type) if each.type else call.get(each.type_attr, tf.float32)
        count = call.get(each.number_attr, LISTED) if each.number_attr else 1
        types = [one] * count
    for dtype in types:
        yield tf.compat.v1.placeholder(dtype, shape)


def _grouped(definition: Any, call: dict[str, Any], tensors: list[Any]) -> Iterator[Any]:
    left = list(tensors)
    for each in definition.input_arg:
        count = len(list(_tensors(each, call, None)))
        taken, left = left[:count], left[count:]
        yield taken if each.number_attr or each.type_list_attr else taken[0]


def _attr_value(definition: Any, name: str, value: Any) -> Any:
    from tensorflow.core.framework import attr_value_pb2

    kind = next(each.type for each in definition.attr if each.name == name)
    made = attr_value_pb2.AttrValue()
    if kind == "type":
        made.type = value.as_datatype_enum
    elif kind == "list(type)":
        made.list.type.extend(each.as_datatype_enum for each in value)
    elif kind == "int":
        made.i = value
    elif kind == "list(int)":
        made.list.i.extend(value)
        made.list.SetInParent()
    elif kind == "string":
        made.s = value.encode()
    elif kind == "bool":
        made.b = value
    elif kind == "float":
        made.f = value
    elif kind == "shape":
        made.shape.CopyFrom(value.as_proto())
    elif kind == "list(shape)":
        made.list.shape.extend(each.as_proto() for each in value)
    elif kind == "list(string)":
        made.list.s.extend(each.encode() for each in value)
    elif kind == "list(float)":
        made.list.f.extend(value)
    return made


if __name__ == "__main__":
    main()
