import tensorflow as tf


class MaxPyramid(tf.Module):
    """Keeps the brightest pixel of every 3x3 neighbourhood, level by level."""

    def __init__(self, levels):
        super().__init__()
        self.levels = levels

    def __call__(self, frames):
        out = [frames]
        for _ in range(self.levels):
            frames = tf.nn.max_pool2d(frames, ksize=3, strides=2, padding="VALID")
            out.append(frames)
        return out
