"""Cut satellite scenes into tiles, augment them and train a small classifier."""
import numpy as np
import tensorflow as tf

TILE = 128


def scene(index):
    rng = np.random.default_rng(index)
    return rng.integers(0, 255, size=(1024, 1024, 3), dtype=np.uint8)


def tiles(image):
    image = tf.cast(image, tf.float32) / 255.0
    patches = tf.image.extract_patches(image[None], [1, TILE, TILE, 1], [1, TILE // 2, TILE // 2, 1], [1, 1, 1, 1], "VALID")
    return tf.reshape(patches, [-1, TILE, TILE, 3])


def augment(batch):
    flipped = tf.image.flip_left_right(batch)
    rotated = tf.image.rot90(batch)
    return tf.concat([batch, flipped, rotated], axis=0)


def main():
    model = tf.keras.Sequential([
        tf.keras.layers.Input((TILE, TILE, 3)),
        tf.keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(4, activation="softmax"),
    ])
    model.compile("adam", "sparse_categorical_crossentropy")
    prepared = []
    for index in range(8):
        prepared.append(augment(tiles(scene(index))))
        labels = np.full(len(prepared[-1]), index % 4)
        loss = model.train_on_batch(prepared[-1], labels)
        print("scene", index, "tiles", len(labels), "loss %.3f" % loss, flush=True)
    everything = tf.concat(prepared, axis=0)
    print("kept", everything.shape)


if __name__ == "__main__":
    main()
