import numpy as np
import tensorflow as tf


class Window(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([16], tf.float32), tf.TensorSpec([1], tf.int32)])
    def __call__(self, signal, start):
        return tf.reduce_max(tf.slice(signal, start, [4]))


def convert(module):
    fn = module.__call__.get_concrete_function()
    return tf.lite.TFLiteConverter.from_concrete_functions([fn], module).convert()


class WindowRunner:
    def __init__(self, blob):
        self.lite = tf.lite.Interpreter(model_content=blob)
        self.lite.allocate_tensors()
        self.inputs = {d["dtype"]: d["index"] for d in self.lite.get_input_details()}
        self.output = self.lite.get_output_details()[0]["index"]

    def peak(self, signal, start):
        self.lite.set_tensor(self.inputs[np.float32], signal)
        self.lite.set_tensor(self.inputs[np.int32], np.array([start], np.int32))
        self.lite.invoke()
        return float(self.lite.get_tensor(self.output))


def main():
    runner = WindowRunner(convert(Window()))
    signal = np.linspace(0, 1, 16).astype("float32")
    event_times = [0, 5, 12, 1_637_000_000]  # the last one is still a UNIX time
    for start in event_times:
        print(start, runner.peak(signal, start))


main()
