"""Whether an exception was raised while a saved model, checkpoint or weights file was read."""

from __future__ import annotations

import re

from faultlens.diagnosis.evidence.case import Case
from faultlens.inspection.frames import is_own

_LOADERS = re.compile(
    r"/keras/(?:src/)?saving/|/keras/(?:src/)?legacy/saving/|/tf_keras/(?:src/)?saving/|/tensorflow/python/saved_model/"
    r"|/tensorflow/python/checkpoint/|/tensorflow/python/training/(?:saver|py_checkpoint_reader|checkpoint_utils)"
    r"|/tensorflow/lite/python/interpreter|/tensorflow/python/training/saving/|/safetensors/|/torch/serialization"
)
_LOADING = re.compile(r"load|restore|read|__init__|from_config|deserial|get_tensor|new_checkpoint_reader|_parse")
_SAVING = re.compile(r"(?:^|_)(?:save|export)(?:_|$)")
_WORDS = re.compile(r"\[Op:Restore(?:V2)?\]|TensorBundle|\bcheckpoint\b.*(?:read|restor)|saved_model\.pb|\.keras\b")
# Keras leaves its own frames out of tracebacks: the user's line still shows the call.
_CALLS = re.compile(
    r"\b(load_model|load_weights|restore|load_checkpoint|saved_model\.load|Interpreter|load_state_dict)\("
)


def loads_model(case: Case) -> str | None:
    """The function that was loading; None where no model was being read."""
    error = case.exception
    if error is None:
        return None
    inside = [frame.function for frame in error.frames if _LOADERS.search(frame.file or "")]
    if any(_SAVING.search(function) for function in inside):
        return None
    if loading := next((function for function in inside if _LOADING.search(function)), None):
        return loading
    for frame in error.frames:
        lines = case.crash.sources.get(frame.file or "", "").split("\n") if is_own(frame) else []
        if frame.line and frame.line <= len(lines) and (call := _CALLS.search(lines[frame.line - 1])):
            return call[1]
    return "the checkpoint reader" if _WORDS.search(error.details) else None
