"""Claim: arrays of the wrong dtype, shape or memory layout crash TensorFlow.
Reality: no. They raise, or the result is right.
"""

import numpy as np
import tensorflow as tf

RIGHT = np.arange(12, dtype="float32").reshape(3, 4)
SAME_NUMBERS = {
    "Fortran order": np.asfortranarray(RIGHT),
    "negative strides": np.ascontiguousarray(RIGHT[::-1, ::-1])[::-1, ::-1],
    "every second column": np.repeat(RIGHT, 2, axis=1)[:, ::2],
    "big endian": RIGHT.astype(">f4"),
    "unaligned": np.frombuffer(b"x" + RIGHT.tobytes(), "uint8")[1:].view("float32").reshape(3, 4),
    "read only": np.frombuffer(RIGHT.tobytes(), "float32").reshape(3, 4),
}
WRONG = {
    "objects": np.array([object()], dtype=object),
    "dates": np.array(["2026-01-01"], "datetime64[D]"),
    "records": np.zeros(2, [("a", "f4")]),
    "ragged list": [[1.0], [2.0, 3.0]],
}


def main():
    for name, array in SAME_NUMBERS.items():
        try:
            result = f"right: {np.array_equal(tf.constant(array), RIGHT)}"
        except Exception as error:
            result = type(error).__name__
        print(f"{name}: {result}")
    for name, array in WRONG.items():
        try:
            print(f"{name}: {tf.constant(array).dtype}")
        except Exception as error:
            print(f"{name}: {type(error).__name__}")
    try:
        tf.matmul(RIGHT, RIGHT)
    except Exception as error:
        print(f"wrong shape: {type(error).__name__}")


if __name__ == "__main__":
    main()
