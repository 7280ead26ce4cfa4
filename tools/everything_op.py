"""Dies inside the op of everything_op.cc: python everything_op.py eager|graph|construct LIBRARY TRUTH.

What the op was given is written to the file TRUTH before."""

from __future__ import annotations

import json
import sys
from typing import Any

import tensorflow as tf  # type: ignore[import-not-found]


def main(mode: str, library: str, truth: str) -> None:
    everything = tf.load_op_library(library).everything
    inputs = inputs_of_all_kinds()
    attributes = attributes_of_all_kinds(early=mode == "construct")

    def call() -> None:
        everything(values=inputs, name="the_node", **attributes)

    given = {
        "version": tf.__version__,
        "op": "Everything",
        "node": "Everything" if mode == "eager" else "the_node",
        "stage": "construct" if mode == "construct" else "compute",
        "at_fault": True,
        "inputs": [] if mode == "construct" else [in_words(value) for value in inputs],
        "attributes": {
            "Tin": [value.dtype.name for value in inputs],
            **{name: attribute_in_words(value) for name, value in attributes.items()},
        },
    }
    with open(truth, "w") as file:
        json.dump(given, file)
    call() if mode == "eager" else tf.function(call)()


def inputs_of_all_kinds() -> list[Any]:
    numbers = tf.reshape(tf.range(6), [2, 3])
    dtypes = "float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 complex64 complex128"
    return [
        *(tf.cast(numbers, dtype) for dtype in dtypes.split()),
        tf.constant([True, False, True]),
        tf.constant(3.5),
        tf.zeros([0]),
        tf.zeros([65_535], tf.uint8),  # too much for 16 bits
        tf.zeros([0, 1 << 33], tf.int8),  # too much for 32 bits
        tf.reshape(tf.range(12), [1, 2, 1, 3, 1, 2, 1]),  # too many dimensions to lie within the tensor
        tf.constant(["short", "", "longer than what fits into a tstring itself" * 3]),
        tf.Variable([1.0, 2.0]).handle,
        tf.raw_ops.EmptyTensorList(element_shape=[2], max_num_elements=3, element_dtype=tf.float32),
    ]


def attributes_of_all_kinds(early: bool) -> dict[str, Any]:
    doubled = tf.function(lambda x: x * 2, input_signature=[tf.TensorSpec([])])
    return {
        "early": early,
        "an_int": -(1 << 40),
        "a_float": 0.25,
        "a_bool": True,
        "a_string": "text",
        "long_string": "a string on the heap, because it is too long to lie within std::string",
        "a_type": tf.complex64,
        "a_shape": tf.TensorShape([2, None, 1 << 40]),
        "open_shape": tf.TensorShape(None),
        "a_func": doubled.get_concrete_function(),
        "no_ints": [],
        "one_int": [-7],
        "ints": [1, -2, 1 << 50],
        "one_float": [1.5],
        "floats": [1.5, -2.5, 0.0],
        "one_bool": [True],
        "bools": [True, False, True, True, False],
        "one_string": ["alone"],
        "strings": ["first", "second"],
        "types": [tf.float32, tf.string, tf.resource],
        "shapes": [tf.TensorShape([1, None]), tf.TensorShape(None), tf.TensorShape([])],
    }


def in_words(tensor: Any) -> dict[str, Any]:
    words: dict[str, Any] = {"dtype": tensor.dtype.name, "shape": tensor.shape.as_list()}
    if tensor.dtype == tf.string:
        words["strings"] = [text.decode() for text in tensor.numpy().ravel().tolist()]
    elif tensor.dtype not in (tf.resource, tf.variant) and 0 not in tensor.shape:
        words["contents"] = tensor.numpy().tobytes().hex()
    return words


def attribute_in_words(value: Any) -> Any:
    if isinstance(value, list):
        return [attribute_in_words(each) for each in value]
    if isinstance(value, tf.DType):
        return value.name
    if isinstance(value, tf.TensorShape):
        return None if value.rank is None else [-1 if size is None else size for size in value.as_list()]
    if hasattr(value, "function_def"):
        return value.function_def.signature.name
    return value


if __name__ == "__main__":
    main(*sys.argv[1:])
