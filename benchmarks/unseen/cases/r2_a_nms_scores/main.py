import numpy as np
import tensorflow as tf


class Detector:
    def __init__(self, anchors=6, seed=4):
        self.rng = np.random.default_rng(seed)
        self.anchors = anchors

    def predict(self, batch):
        low = self.rng.random((batch, self.anchors, 1, 2))
        boxes = np.concatenate([low, low + 0.2], axis=-1).astype("float32")
        objectness = self.rng.random((batch, self.anchors)).astype("float32")
        return boxes, objectness


def postprocess(boxes, scores, limit=3):
    return tf.image.combined_non_max_suppression(
        boxes, scores, max_output_size_per_class=limit, max_total_size=limit,
        iou_threshold=0.5, score_threshold=0.1)


def main():
    boxes, scores = Detector().predict(batch=2)
    kept = postprocess(boxes, scores)
    print(kept.valid_detections.numpy())


main()
