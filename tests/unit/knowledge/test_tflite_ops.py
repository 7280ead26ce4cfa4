"""Ops of TensorFlow Lite by the functions of their kernels."""

from __future__ import annotations

import pytest

from faultlens.knowledge.tflite_ops import tflite_op

BUILTIN = "tflite::ops::builtin::"


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (f"void {BUILTIN}conv::EvalFloat<({BUILTIN}conv::KernelType)2>(TfLiteContext*, TfLiteNode*)", "CONV_2D"),
        (f"{BUILTIN}depthwise_conv::Prepare(TfLiteContext*, TfLiteNode*)", "DEPTHWISE_CONV_2D"),
        (f"{BUILTIN}comparisons::(anonymous namespace)::LessEval(TfLiteContext*, TfLiteNode*, int, int)", "LESS"),
        (f"{BUILTIN}comparisons::(anonymous namespace)::GreaterEqualEval(TfLiteContext*)", "GREATER_EQUAL"),
        (f"TfLiteStatus {BUILTIN}activations::SigmoidEval<(int)2>(TfLiteContext*, TfLiteNode*)", "LOGISTIC"),
        (f"{BUILTIN}pooling::MaxEvalFloat<(int)2>(TfLiteContext*)", "MAX_POOL_2D"),
        (f"{BUILTIN}reduce::EvalMean<(int)1>(TfLiteContext*)", "MEAN"),
        (f"{BUILTIN}reduce::EvalGeneric<(int)1>(TfLiteContext*)", None),  # another frame tells
        (f"{BUILTIN}unsorted_segment::EvalMax(TfLiteContext*)", "UNSORTED_SEGMENT_MAX"),
        (f"{BUILTIN}lstm::full::Eval(TfLiteContext*, TfLiteNode*)", "LSTM"),
        ("tflite::ops::custom::detection_postprocess::Eval(TfLiteContext*)", "DETECTION_POSTPROCESS"),
        ("tflite::Subgraph::InvokeImpl()", None),
        ("tensorflow::ConvOp::Compute(x)", None),
    ],
)
def test_kernels(function: str, op: str | None) -> None:
    assert tflite_op(function) == op
