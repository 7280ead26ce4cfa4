import numpy as np
import tensorflow as tf


@tf.function(input_signature=[tf.TensorSpec([3], tf.int32), tf.TensorSpec([3], tf.int32)])
def per_unit(amount, units):
    return amount // units


def build():
    return tf.lite.TFLiteConverter.from_concrete_functions([per_unit.get_concrete_function()]).convert()


def price(interp, amount, units):
    for detail in interp.get_input_details():
        value = units if "units" in detail["name"] else amount
        interp.set_tensor(detail["index"], np.array(value, np.int32))
    interp.invoke()
    return interp.get_tensor(interp.get_output_details()[0]["index"])


def main():
    interp = tf.lite.Interpreter(model_content=build())
    interp.allocate_tensors()
    orders = [([100, 250, 80], [4, 5, 2]), ([90, 10, 30], [3, 0, 6])]
    for amount, units in orders:
        print(price(interp, amount, units))


main()
