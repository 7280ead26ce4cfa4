"""Whether an exception was raised while a saved model, checkpoint or weights file was read."""

from __future__ import annotations

import re

from faultlens.clues.tracebacks import PythonException

_LOADERS = re.compile(
    r"/keras/(?:src/)?saving/|/keras/(?:src/)?legacy/saving/|/tf_keras/(?:src/)?saving/|/tensorflow/python/saved_model/"
    r"|/tensorflow/python/checkpoint/|/tensorflow/python/training/(?:saver|py_checkpoint_reader|checkpoint_utils)"
    r"|/tensorflow/lite/python/interpreter|/tensorflow/python/training/saving/|/safetensors/|/torch/serialization"
)
_LOADING = re.compile(r"load|restore|read|__init__|from_config|deserial|get_tensor|new_checkpoint_reader|_parse")
_WORDS = re.compile(r"\[Op:Restore(?:V2)?\]|TensorBundle|\bcheckpoint\b.*(?:read|restor)|saved_model\.pb")


def loads_model(error: PythonException) -> str | None:
    """The function that was loading; None where no model was being read."""
    for frame in error.frames:
        if _LOADERS.search(frame.file or "") and _LOADING.search(frame.function):
            return frame.function
    return "the checkpoint reader" if _WORDS.search(error.details) else None
