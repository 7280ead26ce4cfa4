"""Claim: bytes from outside can at worst make TensorFlow raise.
Reality: not always. `tf.io.parse_tensor` on crafted bytes dies with SIGSEGV, and so does a model file that is cut off
while TensorFlow Lite has it mapped (SIGBUS).
"""

import os
from pathlib import Path

import tensorflow as tf
from endings import ending
from tensorflow.core.framework import tensor_pb2


def random_bytes():
    tf.io.parse_tensor(b"no tensor at all", tf.float32)


def crafted_bytes():
    crafted = tensor_pb2.TensorProto(dtype=tf.variant.as_datatype_enum)
    crafted.variant_val.add(type_name="tensorflow::TensorList")  # without the numbers that must follow
    tf.io.parse_tensor(crafted.SerializeToString(), tf.variant)


def save_tflite():
    class Scale(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([1, 50_000])])
        def __call__(self, x):
            return x * tf.random.stateless_uniform([1, 50_000], seed=[1, 2])

    scale = Scale()
    Path("model.tflite").write_bytes(tf.lite.TFLiteConverter.from_concrete_functions(
        [scale.__call__.get_concrete_function()], scale).convert())


def model_file_cut_off():
    interpreter = tf.lite.Interpreter("model.tflite")
    os.truncate("model.tflite", 4096)
    interpreter.allocate_tensors()
    interpreter.invoke()


def main():
    for job in (random_bytes, crafted_bytes):
        print(f"{job.__name__}: {ending(job).how}")
    assert ending(save_tflite).how == "finished"
    print(f"model_file_cut_off: {ending(model_file_cut_off).how}")


if __name__ == "__main__":
    main()
