import numpy as np
import tensorflow as tf


def build_model():
    model = tf.keras.Sequential([
        tf.keras.Input(shape=(32, 32, 1)),
        tf.keras.layers.Conv2D(4, 5, activation="relu"),
        tf.keras.layers.Conv2D(1, 1),
    ])
    return tf.lite.TFLiteConverter.from_keras_model(model).convert()


class TileScorer:
    def __init__(self, blob):
        self.lite = tf.lite.Interpreter(model_content=blob)
        self.inp = self.lite.get_input_details()[0]["index"]
        self.out = self.lite.get_output_details()[0]["index"]

    def score(self, tile):
        self.lite.resize_tensor_input(self.inp, tile.shape)
        self.lite.allocate_tensors()
        self.lite.set_tensor(self.inp, tile)
        self.lite.invoke()
        return float(self.lite.get_tensor(self.out).mean())


def tiles(image, step):
    for top in range(0, image.shape[0], step):
        for left in range(0, image.shape[1], step):
            yield image[None, top:top + step, left:left + step, None]


def main():
    image = np.random.default_rng(2).random((65, 65)).astype("float32")
    scorer = TileScorer(build_model())
    for tile in tiles(image, 32):
        print(tile.shape, round(scorer.score(np.ascontiguousarray(tile)), 4))


main()
