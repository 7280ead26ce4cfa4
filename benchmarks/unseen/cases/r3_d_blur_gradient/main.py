"""A fixed depthwise blur with a hand-written gradient, used in a loss term."""
import numpy as np
import tensorflow as tf


def gaussian_kernel(channels, size=3, sigma=1.0):
    r = np.arange(size) - size // 2
    k = np.exp(-(r[:, None] ** 2 + r[None, :] ** 2) / (2 * sigma ** 2))
    k = (k / k.sum()).astype("float32")
    return np.repeat(k[:, :, None, None], channels, axis=2)


class Blur:
    def __init__(self, channels, stride=1):
        self.kernel = tf.constant(gaussian_kernel(channels))
        self.stride = stride

    def __call__(self, images):
        @tf.custom_gradient
        def blur(x):
            y = tf.nn.depthwise_conv2d(x, self.kernel, [1, self.stride, self.stride, 1], "SAME")

            def grad(dy):
                return tf.raw_ops.DepthwiseConv2dNativeBackpropInput(
                    input_sizes=tf.shape(x), filter=self.kernel, out_backprop=dy,
                    strides=[self.stride, self.stride], padding="SAME")

            return y, grad

        return blur(images)


@tf.function
def train_step(images, target, blur, lr):
    with tf.GradientTape() as tape:
        tape.watch(images)
        loss = tf.reduce_mean(tf.square(blur(images) - target))
    return images - lr * tape.gradient(loss, images), loss


def main():
    rng = np.random.default_rng(4)
    target = tf.constant(rng.random((2, 16, 16, 3)), tf.float32)
    images = tf.zeros_like(target)
    blur = Blur(3)
    print("blurred", blur(target).shape)
    for step in range(5):
        images, loss = train_step(images, target, blur, 0.5)
        print(step, float(loss))


if __name__ == "__main__":
    main()
