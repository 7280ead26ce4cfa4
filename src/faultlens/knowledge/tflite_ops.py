"""The op that a kernel of TensorFlow Lite computes, by the name of its C++ function."""

from __future__ import annotations

import re

# "tflite::ops::builtin::conv::EvalFloat<…>(…)", "…::comparisons::(anonymous namespace)::LessEval(…)"
_KERNEL = re.compile(
    r"\btflite::ops::(?:builtin|custom)::(?P<group>\w+)::(?:\(anonymous namespace\)::|\w+::)*"
    r"(?P<before>[A-Za-z0-9]*?)(?:Eval|Prepare|Invoke)(?P<after>[A-Za-z0-9]*)\b"
)
# Sources of several kernels: the function is named after the op.
_SHARED = frozenset({
    "activations", "arg_min_max", "comparisons", "complex", "elementwise", "hashtable", "logical", "maximum_minimum",
    "pooling", "random", "reduce", "select", "unsorted_segment",
})  # fmt: skip
_GENERAL = frozenset({
    "", "Impl", "Generic", "Type", "Data", "Simple", "Quantized", "Float", "Hybrid", "Comparison", "ComparisonCommon",
    "AllOrAny", "MeanOrSum", "LogLUT",
})  # fmt: skip
_PRECISION = re.compile(r"(?:Float|Quantized|U?[iI]nt\d+|Hybrid|Impl)+$")
_POOLS = {"Max": "MAX_POOL_2D", "Average": "AVERAGE_POOL_2D", "L2": "L2_POOL_2D"}
_NAMES = {
    "ABS_QUANTIZED": "ABS",
    "BROADCASTTO": "BROADCAST_TO",
    "CALL_ONCE_KERNEL": "CALL_ONCE",
    "CONV": "CONV_2D",
    "CONV3D": "CONV_3D",
    "CONV3D_TRANSPOSE": "CONV_3D_TRANSPOSE",
    "DEPTHWISE_CONV": "DEPTHWISE_CONV_2D",
    "IF_KERNEL": "IF",
    "L2NORM": "L2_NORMALIZATION",
    "LOCAL_RESPONSE_NORM": "LOCAL_RESPONSE_NORMALIZATION",
    "REDUCE_WINDOW_OP": "REDUCE_WINDOW",
    "RELU0TO1": "RELU_0_TO_1",
    "RELU1": "RELU_N1_TO_1",
    "REVERSE": "REVERSE_V2",
    "SIGMOID": "LOGISTIC",
    "WHILE_KERNEL": "WHILE",
}


def tflite_op(function: str) -> str | None:
    """As the model's file spells it: "CONV_2D". None where the function is no kernel, or serves several."""
    match = _KERNEL.search(function) if "tflite::ops::" in function else None
    if match is None:
        return None
    group = match["group"]
    if group not in _SHARED:
        return _spelled(group.upper())
    words = (_PRECISION.sub("", word) for word in (match["before"], match["after"]))
    name = next((word for word in words if word not in _GENERAL), None)
    if name is None:
        return None
    if group == "pooling":
        return _POOLS.get(name)
    prefix = "UNSORTED_SEGMENT_" if group == "unsorted_segment" else "REDUCE_" if name == "Prod" else ""
    return _spelled(prefix + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper())


def _spelled(name: str) -> str:
    return _NAMES.get(name, name)
