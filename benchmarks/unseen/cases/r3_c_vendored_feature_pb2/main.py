import numpy as np
import tensorflow as tf

from sensors import feature_pb2


def to_feature(values, unit):
    return feature_pb2.Feature(float_list=feature_pb2.FloatList(value=values), unit=unit)


def main():
    readings = tf.random.stateless_normal((5,), seed=(9, 9)).numpy()
    blob = to_feature(readings, "mV").SerializeToString()
    print(len(blob), np.mean(readings))


main()
