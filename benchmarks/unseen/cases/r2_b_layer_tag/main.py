import sys

import tensorflow as tf

sys.path.insert(0, "build")
import layertag

model = tf.keras.Sequential([
    tf.keras.layers.Input((32, 32, 3)),
    tf.keras.layers.Conv2D(4, 3, name="stem"),
    tf.keras.layers.DepthwiseConv2D(3, name="block1_depthwise"),
    tf.keras.layers.BatchNormalization(name="block1_depthwise_batch_normalization"),
    tf.keras.layers.GlobalAveragePooling2D(name="pool"),
])
for layer in model.layers:
    print(layer.name, layertag.tag(layer.name), flush=True)
