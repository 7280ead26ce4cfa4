"""Claim: changing an array after `tf.constant` changes the tensor, or crashes.
Reality: no, `tf.constant` and `tf.convert_to_tensor` copy. `from_dlpack` does not; nor do `from_generator` and
`tf.numpy_function` in a graph, when the array happens to start at a multiple of 64 bytes.
"""

import numpy as np
import tensorflow as tf

BATCHES, SIZE = 50, 1024


def array(misaligned):
    """An array that starts at a multiple of 64 bytes, or so many bytes behind it."""
    memory = np.zeros(SIZE * 4 + 128, "uint8")
    start = -memory.ctypes.data % 64 + misaligned
    return memory[start : start + SIZE * 4].view("float32")


def changed_after(convert):
    source = array(0)
    tensor = convert(source)
    source[:] = 7
    return bool((tensor.numpy() == 7).any())


def wrong_from_generator(misaligned):
    buffer = array(misaligned)

    def batches():
        for i in range(BATCHES):
            buffer[:] = i  # the same array again and again
            yield buffer

    dataset = tf.data.Dataset.from_generator(batches, output_signature=tf.TensorSpec([SIZE])).prefetch(BATCHES)
    return sum(bool((batch != i).numpy().any()) for i, batch in enumerate(list(dataset)))


def wrong_from_numpy_function(misaligned):
    buffer = array(misaligned)

    def fill(i):
        buffer[:] = i
        return buffer

    dataset = tf.data.Dataset.range(BATCHES).map(lambda i: tf.numpy_function(fill, [i], tf.float32))
    return sum(bool((batch != i).numpy().any()) for i, batch in enumerate(list(dataset.prefetch(BATCHES))))


def main():
    print("constant: changed with the array:", changed_after(tf.constant))
    print("convert_to_tensor: changed with the array:", changed_after(tf.convert_to_tensor))
    from_dlpack = tf.experimental.dlpack.from_dlpack
    print("from_dlpack: changed with the array:", changed_after(lambda source: from_dlpack(source.__dlpack__())))
    for wrong in (wrong_from_generator, wrong_from_numpy_function):
        print(f"{wrong.__name__}: aligned {wrong(0)} of {BATCHES}, unaligned {wrong(4)} of {BATCHES}")


if __name__ == "__main__":
    main()
