import numpy as np
import tensorflow as tf


def start_service():
    config = tf.data.experimental.service.DispatcherConfig(port=0)
    dispatcher = tf.data.experimental.service.DispatchServer(config)
    print("dispatcher at", dispatcher.target, flush=True)
    return dispatcher


def augment(image):
    image = tf.image.random_flip_left_right(image)
    return tf.image.random_brightness(image, 0.2)


def pipeline(target):
    images = np.random.rand(64, 24, 24, 3).astype("float32")
    ds = tf.data.Dataset.from_tensor_slices(images).map(augment)
    ds = ds.apply(tf.data.experimental.service.distribute(
        processing_mode=tf.data.experimental.service.ShardingPolicy.OFF, service=target))
    return ds.batch(16)


def main():
    dispatcher = start_service()
    for i, batch in enumerate(pipeline(dispatcher.target)):
        print(i, batch.shape, flush=True)
    print("done")


main()
