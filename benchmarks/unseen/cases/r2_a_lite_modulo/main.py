import numpy as np
import tensorflow as tf


class BucketIndex(tf.Module):
    """index of a hashed key: key mod number of buckets (sign chosen by the caller)"""

    @tf.function(input_signature=[tf.TensorSpec([4], tf.int32), tf.TensorSpec([4], tf.int32)])
    def __call__(self, keys, buckets):
        return tf.math.floormod(keys, buckets)


def to_lite(module):
    fn = module.__call__.get_concrete_function()
    return tf.lite.TFLiteConverter.from_concrete_functions([fn], module).convert()


class LiteRunner:
    def __init__(self, model):
        self.interp = tf.lite.Interpreter(model_content=model)
        self.interp.allocate_tensors()
        details = sorted(self.interp.get_input_details(), key=lambda d: d["name"])
        self.slots = {("buckets" if "buckets" in d["name"] else "keys"): d["index"] for d in details}
        self.out = self.interp.get_output_details()[0]["index"]

    def __call__(self, keys, buckets):
        self.interp.set_tensor(self.slots["keys"], np.asarray(keys, np.int32))
        self.interp.set_tensor(self.slots["buckets"], np.asarray(buckets, np.int32))
        self.interp.invoke()
        return self.interp.get_tensor(self.out)


def main():
    runner = LiteRunner(to_lite(BucketIndex()))
    print(runner([7, 8, 9, -3], [4, 4, 4, 4]))
    print(runner([-2147483648, 8, 9, -3], [-1, 4, 4, 4]))


main()
