import tensorflow as tf


class SlotMemory(tf.Module):
    """Stores one value per key; grows as needed."""

    def __init__(self, seed=11):
        super().__init__()
        self.seed = seed

    def slot(self, key):
        return tf.bitwise.bitwise_and(key * 1103515245 + self.seed, 0x7FFFFFFF)

    @tf.function
    def run(self, keys, values):
        slots = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[], clear_after_read=False)
        for i in tf.range(tf.shape(keys)[0]):
            slots = slots.write(self.slot(keys[i]), values[i])
        return slots.read(self.slot(keys[0]))


def main():
    memory = SlotMemory()
    keys = tf.constant([31, 4, 6], tf.int32)
    values = tf.constant([0.5, 1.5, 2.5])
    print("first slot", int(memory.slot(keys[0])))
    print(memory.run(keys, values).numpy())


main()
